/* What must hold. Each is checked inside the step that could break it. */

/* [SLOT-1] [SLOT-2] [SLOT-3] Who holds a lease holds its slot, with this fence; so no slot has two holders, and no
 * slot was taken from its holder by somebody else's release. A lease, its slot and its unit move together. */
inline check_slots() {
    for (i : 0 .. LEASES - 1) {
        assert(!HOLDS(i) || holder[slot_of[i]] == i + 1);
        assert(!HOLDS(i) || fence[slot_of[i]] == fence_of[i]);
        assert(HOLDS(i) == (unit[i] >= CREATING && unit[i] <= DIRTY));
        assert((lease[i] == READY) == (unit[i] == UP));
        assert((lease[i] == RELEASING) == (unit[i] == DIRTY));
    }
}

/* [JOB-1] A job that was settled stays so, and is settled for a reason that is one. */
inline check_settled(j) {
    assert(!was_settled[j] || job[j] == SETTLED);
}

/* [JOB-2] No script of an older attempt may run still when a newer one starts. */
inline check_alone(f) {
    for (i : 0 .. FLOWS - 1) {
        assert(i == f || JOB_OF(i) != JOB_OF(f) || !MAY_RUN(i));
    }
}

/* Everything has come to its end and is put back: the only state in which time may pass and nothing happen. */
#if JOBS == 1
#define ALL_SETTLED (job[0] == SETTLED)
#elif JOBS == 2
#define ALL_SETTLED (job[0] == SETTLED && job[1] == SETTLED)
#else
#define ALL_SETTLED (job[0] == SETTLED && job[1] == SETTLED && job[2] == SETTLED)
#endif
#define NOBODY(s) (holder[s] == 0 || holder[s] == OFF)
#define ALL_FREE (NOBODY(0) && NOBODY(1) && NOBODY(2) && NOBODY(3) && NOBODY(4) && NOBODY(5))
#define CLEAN(f) (!exists[(f) * 3] && !exists[(f) * 3 + 1] && !exists[(f) * 3 + 2] && \
    !claimed[(f) * 3] && !claimed[(f) * 3 + 1] && !claimed[(f) * 3 + 2] && !MAY_RUN(f))
#if (JOBS * ATTEMPTS) == 1
#define ALL_CLEAN CLEAN(0)
#elif (JOBS * ATTEMPTS) == 2
#define ALL_CLEAN (CLEAN(0) && CLEAN(1))
#elif (JOBS * ATTEMPTS) == 3
#define ALL_CLEAN (CLEAN(0) && CLEAN(1) && CLEAN(2))
#elif (JOBS * ATTEMPTS) == 4
#define ALL_CLEAN (CLEAN(0) && CLEAN(1) && CLEAN(2) && CLEAN(3))
#else
#define ALL_CLEAN (CLEAN(0) && CLEAN(1) && CLEAN(2) && CLEAN(3) && CLEAN(4) && CLEAN(5))
#endif
#define QUIET (ALL_SETTLED && ALL_FREE && ALL_CLEAN)

#ifdef LTL
/* [JOB-1] [QUEUE-1] [QUEUE-3] On every run, sooner or later, all is settled and put back. */
ltl all_ends { <> QUIET }
#endif
