/* What must hold. Each is checked inside the step that could break it; take_amount and overtake have one each. */

#define ON(s0) (slot[s0] != OFF && !withdrawn[s0])
#define HELD_IN(p) (IS_HELD(FIRST_SLOT(p)) + IS_HELD(FIRST_SLOT(p) + 1))
#define ON_IN(p) (ON(FIRST_SLOT(p)) + ON(FIRST_SLOT(p) + 1))
#define HOLDS(c) (lease[c] == GRANTED || lease[c] == RELEASING)
#define HAS_SLOT(c, p) ((slot[FIRST_SLOT(p)] == HELD_BY(c)) + (slot[FIRST_SLOT(p) + 1] == HELD_BY(c)))

/* [SLOT-1] What is used of an amount is what its holders have. When a pool is as its row says, exactly as many slots as
 * its limit may be granted, and there is no withdrawn one that a release would overlook.
 * [SLOT-2] Who holds a lease holds all that its step takes, in every pool, and nobody else holds anything. */
inline check_pools() {
    m = 0;
    for (i : 0 .. PLACES - 1) {
        if :: HOLDS(i) -> m = m + COUNT(i, Q) :: else fi;
        assert(HAS_SLOT(i, A) == (HOLDS(i) -> COUNT(i, A) : 0));
        assert(HAS_SLOT(i, B) == (HOLDS(i) -> COUNT(i, B) : 0));
    }
    assert(used == m);
    for (i : A .. B) {
        assert(due[i] || ON_IN(i) == limit[i]);
        assert(due[i] || over[i] || (!withdrawn[FIRST_SLOT(i)] && !withdrawn[FIRST_SLOT(i) + 1]));
    }
}

/* [QUEUE-1] When all is at rest but for the jobs that run, which may be for days, nobody waits who could be granted. */
#define NO_MESSAGE (!to_serve[A] && !to_serve[B] && !to_serve[Q] && !to_resize[SET_POOL])
inline check_served() {
    w = (NO_MESSAGE && busy == 0 && CRASHES + LOSSES == 0);
    for (i : 0 .. PLACES - 1) {
        if :: to_acquire[i] || lease[i] == RELEASING -> w = 0 :: else fi
    }
    for (k : 0 .. PLACES - 1) {
        if :: w && lease[k] == WAITING -> check_waits(k) :: else fi
    }
}

#ifdef ANY_WINDOW
#define WINDOW_ENDS(count) false
#else
#define WINDOW_ENDS(count) ((count) >= WINDOW)
#endif

/* n: whether a pool has not what c wants, or keeps it for a claim ahead, or has too many ahead. */
inline check_waits(c) {
    n = 0;
    for (i : 0 .. POOLS - 1) {
        if
        :: COUNT(c, i) ->
            if
            :: paused[i] || (IS_AMOUNT(i) && used + COUNT(c, i) > limit[i]) -> n = 1
            :: !IS_AMOUNT(i) && slot[FIRST_SLOT(i)] != FREE && slot[FIRST_SLOT(i) + 1] != FREE -> n = 1
            :: else
            fi;
            m = 0;
            for (s : 0 .. PLACES - 1) {
                if
                :: s != c && (queue[i] & BIT(s)) && BEFORE(s, c, i) ->
                    m++;
                    if :: WINDOW_ENDS(m) || overtaken[s * POOLS + i] >= BOUND -> n = 1 :: else fi
                :: else
                fi
            }
        :: else
        fi
    }
    assert(n);
}

#define JOB_IS_OVER(j) (ended[j] && IS_OVER((j) * 2) && IS_OVER((j) * 2 + 1))
#if JOBS == 1
#define ALL_OVER JOB_IS_OVER(0)
#elif JOBS == 2
#define ALL_OVER (JOB_IS_OVER(0) && JOB_IS_OVER(1))
#elif JOBS == 3
#define ALL_OVER (JOB_IS_OVER(0) && JOB_IS_OVER(1) && JOB_IS_OVER(2))
#else
#define ALL_OVER (JOB_IS_OVER(0) && JOB_IS_OVER(1) && JOB_IS_OVER(2) && JOB_IS_OVER(3))
#endif
#define QUIET (ALL_OVER && !due[A] && !due[B] && !due[Q])

#ifdef LTL
/* [QUEUE-2] However many come behind it, for ever, the first job gets what it waits for. */
ltl first_ends { <> JOB_IS_OVER(0) }
#endif
