/* ---- what an operator says, and what is done about it: usecases/configuring.py, usecases/resizing.py ---- */

inline set_limit(p, to, goes_on) {
    if :: !IS_AMOUNT(p) && to < limit[p] -> over[p] = 1 :: else fi;
    limit[p] = to;
    due[p] = 1;
    wrote_pool(p);
    moved();
    if :: goes_on -> to_resize[p] = 1 :: else fi
}

inline pause(p, goes_on) {
    paused[p] = 1;
    wrote_pool(p);
    moved();
    if :: goes_on -> serve_beside(p) :: else fi
}

inline resume(p, goes_on) {
    paused[p] = 0;
    wrote_pool(p);
    moved();
#ifndef RESUME_ONLY
    if :: goes_on -> to_serve[p] = 1 :: else fi
#endif
}

/* A resize reads the pool's row, then its slots by their state: what is free, what is held, what is off. One that it
 * saw in none of the three was on the move. */
#define IN(r, k) ((r) * 2 + (k))
#define SAW_FREE 1
#define SAW_HELD 2
#define SAW_WITHDRAWN 3
#define SAW_OFF 4
#define SEES(s0) (slot[s0] == FREE -> SAW_FREE : (slot[s0] == OFF -> SAW_OFF : (withdrawn[s0] -> SAW_WITHDRAWN : SAW_HELD)))

inline read_limit(r, p) { fresh_limit[r] = 1; seen_limit[r] = limit[p]; seen_due[r] = due[p]; seen_over[r] = over[p]; }

inline look_slots(r, p, which) {
    for (k : 0 .. 1) {
        m = FIRST_SLOT(p) + k;
        if
        :: (which == FREE && slot[m] == FREE) || (which == OFF && slot[m] == OFF) || (which == HELD_BY(0) && IS_HELD(m)) ->
            seen_slot[IN(r, k)] = SEES(m); fresh_slot[IN(r, k)] = 1
        :: else
        fi
    }
}

/* The slots that are to stay: as many as the limit says, first those that are held, then the free, then those off. */
#define GO_OFF 1
#define GO_ON 2
#define RANK(r, k) (seen_slot[IN(r, k)] * 2 + (k))
#define IS_ON(r, k) (seen_slot[IN(r, k)] == SAW_FREE || seen_slot[IN(r, k)] == SAW_HELD)
#define WANTS(r, k) (seen_limit[r] >= 2 || (seen_limit[r] == 1 && (IS_NAMED(SET_POOL) -> (k) == 0 : \
    IS_BETTER(seen_slot[IN(r, k)], seen_slot[IN(r, (1 - (k)))]) || \
    (seen_slot[IN(r, k)] == seen_slot[IN(r, (1 - (k)))] && (k) == 0))))
#define WORTH(v0) ((v0) == SAW_HELD -> 4 : ((v0) == SAW_WITHDRAWN -> 3 : ((v0) == SAW_FREE -> 2 : 1)))
#define IS_BETTER(v0, v1) (WORTH(v0) > WORTH(v1))

inline fit(r) {
    for (k : 0 .. 1) {
        todo[IN(r, k)] = 0;
        if
        :: WANTS(r, k) && !IS_ON(r, k) -> todo[IN(r, k)] = GO_ON
        :: !WANTS(r, k) && IS_ON(r, k) -> todo[IN(r, k)] = GO_OFF
        :: else
        fi
    }
}

#ifdef RESIZE_UNCHECKED
#define LIMIT_STANDS(r) true
#else
#define LIMIT_STANDS(r) fresh_limit[r]
#endif

inline resize_slot(r, p, k0) {
    m = FIRST_SLOT(p) + k0;
    if
    :: LIMIT_STANDS(r) && fresh_slot[IN(r, k0)] ->
        if
        :: todo[IN(r, k0)] == GO_OFF && slot[m] == FREE -> slot[m] = OFF
        :: todo[IN(r, k0)] == GO_OFF && slot[m] != FREE -> withdrawn[m] = 1
        :: todo[IN(r, k0)] == GO_ON && slot[m] == OFF -> slot[m] = FREE
        :: todo[IN(r, k0)] == GO_ON && slot[m] != OFF -> withdrawn[m] = 0
        fi;
        wrote_slot(m);
#ifndef RESIZE_ONLY_CHECKS
#ifndef NOT_DUE_MEANWHILE
        due[p] = true; /* it was set before, or is set again until this resize is done */
#endif
        wrote_pool(p);
        fresh_limit[r] = 1; /* it knows the version that it wrote */
#endif
        moved();
        check_pools()
    :: else
    fi;
    todo[IN(r, k0)] = 0;
}

/* Commit: the pool is as its row says. w: whether it is, or the row is not the one that was read any more. */
inline resize_done(r, p) {
    n = (seen_slot[IN(r, 0)] == SAW_WITHDRAWN || seen_slot[IN(r, 1)] == SAW_WITHDRAWN);
    if
    :: !seen_due[r] && seen_over[r] == n -> w = 1
    :: (seen_due[r] || seen_over[r] != n) && !fresh_limit[r] -> w = 0
    :: else -> due[p] = 0; over[p] = n; wrote_pool(p); moved(); check_pools(); w = 1
    fi
}

inline forget_slots(r) {
    for (k : 0 .. 1) { seen_slot[IN(r, k)] = 0; fresh_slot[IN(r, k)] = 0; todo[IN(r, k)] = 0 }
    fresh_limit[r] = 0;
    seen_limit[r] = 0;
    seen_due[r] = 0;
    seen_over[r] = 0
}
