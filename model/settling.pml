/* ---- the end of an attempt ---- */

#define PACKED(f) (lease[(f) * 3] + 6 * lease[(f) * 3 + 1] + 36 * lease[(f) * 3 + 2])
#define SEEN(x, o) (o == 0 -> seen_leases[x] % 6 : (o == 1 -> (seen_leases[x] / 6) % 6 : seen_leases[x] / 36))

inline read_end(x, f, w) { seen_version[x] = version[JOB_OF(f)]; seen_leases[x] = PACKED(f); ending_why[x] = w; }

/* The commit names the job and the leases that were read. A lease that was not there then, it cannot name. */
inline stands(x, f) {
    k = (seen_version[x] == version[JOB_OF(f)]);
    for (i : 0 .. 2) {
        if :: SEEN(x, i) != 0 && SEEN(x, i) != lease[(f) * 3 + i] -> k = 0 :: else fi
    }
}

inline conclude(j, w) {
    if
    :: (report[j] == LOST || (report[j] == NOTHING && w == LOST)) && !cancelled[j] && attempt[j] < ATTEMPTS - 1 ->
        job[j] = QUEUED; attempt[j]++; report[j] = NOTHING; nudged[j] = 0
    :: else ->
        assert(!was_settled[j]);
        assert(report[j] != NOTHING || cancelled[j] || (w != STALE && w != NOTHING));
        job[j] = SETTLED; was_settled[j] = 1; nudged[j] = 0
    fi;
    version[j]++;
}

/* Whoever wrote or found a report alone ends the attempt in the same call. The flow's own end has another mark. */
#define BY_FLOW 1
#define BY_REPORT 2

inline end_by_report(f, goes_on) {
    if
    :: goes_on && !ending[f] -> begins(ending[f]); ending[f] = BY_REPORT; read_end(f, f, NOTHING)
    :: else
    fi
}

/* A flow ends its own attempt, and none whose agent has said hello: only its agent, or the silence of it, ends that. */
#ifdef ENDS_WHAT_RUNS
#define IS_NOT_FOR_A_FLOW(f) (attempt[JOB_OF(f)] != ATTEMPT_OF(f) || job[JOB_OF(f)] == SETTLED)
#else
#define IS_NOT_FOR_A_FLOW(f) (attempt[JOB_OF(f)] != ATTEMPT_OF(f) || job[JOB_OF(f)] >= RUNNING)
#endif

/* Fails the step that waits for a lease. An attempt that has no flow ends in the same call. */
inline fail_step(f, o, w) {
    if
#ifndef NOBODY_ANSWERS
    :: flow[f] == 0 && !ending[f] && !IS_NOT_FOR_A_FLOW(f) -> begins(ending[f]); ending[f] = BY_REPORT; read_end(f, f, w)
#endif
    :: flow[f] != 0 -> answer(f, o, w)
    :: else
    fi
}

inline end_lease(l0) {
    if
    :: lease[l0] == WAITING -> lease[l0] = RELEASED; claimed[l0] = 0
    :: lease[l0] == GRANTED || lease[l0] == READY -> lease[l0] = RELEASING; unit[l0] = DIRTY
    :: else
    fi
}

inline settle(x, f) {
    for (i : 0 .. 2) {
        if :: SEEN(x, i) != 0 -> end_lease((f) * 3 + i) :: else fi
    }
    conclude(JOB_OF(f), ending_why[x]);
    moved();
    check_slots();
}

#ifdef NO_CHECK
#define WORKER_IS_BACK true
#else
#define WORKER_IS_BACK (turn == OFF || ORDER_OF(turn) != 0)
#endif

inline put_back(f) {
    next_release(f);
    if :: turn != OFF -> to_advance[turn] = 1 :: else fi;
    if :: job[JOB_OF(f)] == QUEUED && WORKER_IS_BACK -> to_start[JOB_OF(f)] = 1 :: else fi
}

/* ---- the sweep reminds a flow of its step; one that is reminded in vain is lost ---- */

#define BETWEEN_STEPS(f) (job[JOB_OF(f)] == ACQUIRING && \
    lease[(f) * 3] != WAITING && lease[(f) * 3] != GRANTED && lease[(f) * 3 + 1] != WAITING && \
    lease[(f) * 3 + 1] != GRANTED && lease[(f) * 3 + 2] != WAITING && lease[(f) * 3 + 2] != GRANTED)

inline nudge(j) { nudged[j] = 1; version[j]++; moved(); }

inline remind_to_step(f) {
    for (i : 1 .. 2) {
        if :: lease[(f) * 3 + i] == READY && ALL_READY(((f) * 3 + STEP_OF(i))) -> answer(f, i, NOTHING) :: else fi
    }
    j1 = JOB_OF(f);
    nudge(j1);
}

inline remind_to_start(f) {
    j1 = JOB_OF(f);
    if
    :: flow[f] == 0 -> to_start[j1] = 1
    :: flow[f] != 0 && !nudged[j1] -> nudge(j1)
    :: else
    fi
}
