/* ---- what is given back: usecases/units.py, usecases/settling.py ---- */

#define SLOT_IN(c, p) (slot[FIRST_SLOT(p)] == HELD_BY(c) -> FIRST_SLOT(p) : FIRST_SLOT(p) + 1)
#ifdef RELEASE_IGNORES_OVER
#define LOOKS_FOR_SPARE(c, p) false
#else
#define LOOKS_FOR_SPARE(c, p) (over[p] && !withdrawn[SLOT_IN(c, p)])
#endif

/* A slot of the pool that another holds although it was withdrawn. */
inline next_spare(c) {
    spare[c] = 0;
    for (i : FIRST_SLOT(OWN(c)) .. FIRST_SLOT(OWN(c)) + 1) {
        if :: IS_HELD(i) && slot[i] != HELD_BY(c) && withdrawn[i] -> spare[c] = i + 1 :: else fi
    }
}

/* This slot goes in the place of a withdrawn one. */
inline swap(s0, s1) {
    slot[s0] = OFF;
    withdrawn[s1] = 0;
    wrote_slot(s1);
}

inline give_back(c, p) {
    m = SLOT_IN(c, p);
    if
    :: spare[c] && p == OWN(c) -> n = spare[c] - 1; swap(m, n)
    :: else -> if :: withdrawn[m] -> slot[m] = OFF :: else -> slot[m] = FREE fi
    fi;
    withdrawn[m] = 0;
    wrote_slot(m);
}

inline release(c, goes_on) {
    for (v : 0 .. POOLS - 1) {
        if
        :: COUNT(c, v) ->
            if :: IS_AMOUNT(v) -> used = used - COUNT(c, v) :: else -> give_back(c, v) fi;
            wrote_pool(v)
        :: else
        fi
    }
    lease[c] = RELEASED;
    spare[c] = 0;
    moved();
    check_pools();
    serve_pools_of(c, goes_on);
    come_again(c);
}

inline serve_pools_of(c, goes_on) {
    for (i : 0 .. POOLS - 1) {
        if :: goes_on && COUNT(c, i) -> to_serve[i] = 1 :: else fi
    }
}

/* Those of which its end knows that they waited. */
#if defined(SETTLE_ONLY)
#define WAS_SEEN(k) false
#elif defined(SETTLE_READS_FIRST)
#define WAS_SEEN(k) (saw_waiting & BIT(k))
inline read_waiting(j) {
    for (k : (j) * 2 .. (j) * 2 + 1) {
        if :: lease[k] == WAITING -> saw_waiting = saw_waiting | BIT(k) :: else fi
    }
}
#else
#define WAS_SEEN(k) true
#endif

/* The end of a job, of its own accord or not: what waits is over, what is held is put back. */
inline settle(j, goes_on) {
    ended[j] = 1;
    for (k : (j) * 2 .. (j) * 2 + 1) {
        if
        :: lease[k] == WAITING ->
            lease[k] = RELEASED;
            for (n : 0 .. POOLS - 1) {
                if :: COUNT(k, n) -> queue[n] = queue[n] & ~BIT(k); overtaken[k * POOLS + n] = 0; wrote_claim(k, n) :: else fi
            }
            if :: WAS_SEEN(k) -> serve_pools_of(k, goes_on) :: else fi
        :: lease[k] == GRANTED -> lease[k] = RELEASING
        :: else
        fi
    }
    moved();
}
