/* ---- what is given back: usecases/units.py, usecases/settling.py ---- */

/* It does not write the pool's row. If more than the limit may be held, a grant does not take what came back. */
inline give_back(c, p) {
    for (k : 0 .. 1) {
        m = FIRST_SLOT(p) + k;
        if
        :: slot[m] == HELD_BY(c) ->
            if :: withdrawn[m] -> slot[m] = OFF; withdrawn[m] = !withdrawn[m] :: else -> slot[m] = FREE fi;
            wrote_slot(m)
        :: else
        fi
    }
}

inline release(c, goes_on) {
    for (v : 0 .. POOLS - 1) {
        if
        :: COUNT(c, v) ->
            if :: IS_AMOUNT(v) -> used = used - COUNT(c, v); wrote_pool(v) :: else -> give_back(c, v) fi
        :: else
        fi
    }
    lease[c] = RELEASED;
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
