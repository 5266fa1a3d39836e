/* ---- claims and grants ---- */

inline claim(f, o) {
    l = (f) * 3 + (o);
    lease[l] = WAITING;
    claimed[l] = 1;
    if :: COUNT(l) == 2 -> lease[l + 1] = WAITING :: else fi;
#ifdef PHANTOM_CLAIM
    if :: job[JOB_OF(f)] == QUEUED -> version[JOB_OF(f)]++ :: else fi;
#else
    version[JOB_OF(f)]++;
#endif
    if :: job[JOB_OF(f)] == QUEUED -> job[JOB_OF(f)] = ACQUIRING :: else fi;
    nudged[JOB_OF(f)] = 0;
    moved();
}

#ifdef STALE_AFTER_HELLO
#define OVER(f) (attempt[JOB_OF(f)] != ATTEMPT_OF(f) || job[JOB_OF(f)] >= RUNNING)
#else
#define OVER(f) (attempt[JOB_OF(f)] != ATTEMPT_OF(f) || job[JOB_OF(f)] == SETTLED)
#endif
#define ALL_READY(l) (lease[l] == READY && (COUNT(l) == 1 || lease[l + 1] == READY))

inline acquire(f, o, goes_on) {
    l = (f) * 3 + (o);
    if
    :: cancelled[JOB_OF(f)] -> if :: goes_on -> answer(f, o, CANCELLED) :: else fi
    :: !cancelled[JOB_OF(f)] && OVER(f) -> if :: goes_on -> answer(f, o, STALE) :: else fi
    :: !cancelled[JOB_OF(f)] && !OVER(f) && lease[l] == 0 -> claim_and_serve(f, o, goes_on)
    :: !cancelled[JOB_OF(f)] && !OVER(f) && lease[l] == WAITING ->
        if :: goes_on -> to_serve[POOL_OF(l)] = 1 :: else fi
    :: else ->
        if
        :: goes_on ->
            if :: ALL_READY(l) -> answer(f, o, NOTHING) :: else fi;
            if :: lease[l] == GRANTED -> to_advance[l] = 1 :: else fi;
            if :: COUNT(l) == 2 && lease[l + 1] == GRANTED -> to_advance[l + 1] = 1 :: else fi
        :: else
        fi
    fi
}

#ifdef SERVE_FIRST
inline claim_and_serve(f, o, goes_on) {
    if
    :: goes_on && !served[l] -> to_serve[POOL_OF(l)] = 1; served[l] = 1; to_acquire[l]++
    :: else -> claim(f, o)
    fi
}
#else
inline claim_and_serve(f, o, goes_on) {
    claim(f, o);
    if :: goes_on -> to_serve[POOL_OF(l)] = 1 :: else fi
}
#endif

/* A new job of which nothing is made before its worker is created with its claims, if nobody waits in any of their pools
 * and a slot of each is free: it has no flow. */
#ifdef ONLY_FLOWS
#define MAY_CLAIM(j) false
#else
#define MAY_CLAIM(j) (is_new[j] && to_start[j] && MAY_GET(j, 0) && MAY_GET(j, 1) && MAY_GET(j, 2))
#endif
#define MAY_GET(j, o) (!NEEDS(j, o) || ((holder[(o) * 2] == 0 || holder[(o) * 2 + 1] == 0) && NOBODY_WAITS(o)))
#if FLOWS == 1
#define NOBODY_WAITS(o) true
#elif FLOWS == 2
#define NOBODY_WAITS(o) (!claimed[o] && !claimed[3 + (o)])
#elif FLOWS == 3
#define NOBODY_WAITS(o) (!claimed[o] && !claimed[3 + (o)] && !claimed[6 + (o)])
#else
#define NOBODY_WAITS(o) (!claimed[o] && !claimed[3 + (o)] && !claimed[6 + (o)] && !claimed[9 + (o)])
#endif

inline grant_with_job(j, goes_on) {
    is_new[j] = 0;
    to_start[j] = 0;
    for (i : 0 .. 2) {
        if
        :: NEEDS(j, i) ->
            l = (j) * ATTEMPTS * 3 + i;
            s = (holder[i * 2] == 0 -> i * 2 : i * 2 + 1);
            take(s, l, fence[s]);
            if :: i -> made[l] = 1; unit[l] = UP; lease[l] = READY :: else fi
        :: else
        fi
    }
    l = (j) * ATTEMPTS * 3;
    job[j] = ACQUIRING;
    version[j]++;
    moved();
    check_slots();
    if :: goes_on -> to_advance[l] = 1 :: else fi
}

/* The first claim in a pool's queue, then the first free slot: two reads. */
inline next_claim(x, p) {
    seen_claim[x] = 0;
    for (i : 0 .. LEASES - 1) {
        if
        :: seen_claim[x] == 0 && claimed[i] && POOL_OF(i) == p -> seen_claim[x] = i + 1
        :: else
        fi
    }
}

inline next_slot(x, p) {
    seen_slot[x] = OFF;
    for (i : (p) * 2 .. (p) * 2 + 1) {
        if
        :: seen_slot[x] == OFF && holder[i] == 0 -> seen_slot[x] = i; seen_fence[x] = fence[i]
        :: else
        fi
    }
    l = seen_claim[x] - 1;
    if
    :: COUNT(l) == 2 && (holder[(p) * 2] != 0 || holder[(p) * 2 + 1] != 0) -> seen_slot[x] = OFF
    :: else
    fi
}

inline take(s0, l0, seen) {
    holder[s0] = l0 + 1;
    assert(seen + 1 > fence[s0]); /* [SLOT-3] */
    fence[s0] = seen + 1;
    lease[l0] = GRANTED;
    slot_of[l0] = s0;
    fence_of[l0] = fence[s0];
    unit[l0] = CREATING;
}

/* A slot that was held in between has another version: here its fence tells the two apart. */
#ifdef VERSION_ANEW
#define STILL_FREE(s0, seen) true
#else
#define STILL_FREE(s0, seen) (fence[s0] == (seen))
#endif

inline grant(x, goes_on) {
    l = seen_claim[x] - 1;
    s = seen_slot[x];
    if
    :: claimed[l] && lease[l] != WAITING -> claimed[l] = 0; moved()
    :: claimed[l] && lease[l] == WAITING && holder[s] == 0 && STILL_FREE(s, seen_fence[x]) &&
        (COUNT(l) == 1 || holder[s + 1] == 0) ->
        claimed[l] = 0;
        take(s, l, seen_fence[x]);
        if :: COUNT(l) == 2 -> k = s + 1; i = l + 1; take(k, i, fence[k]) :: else fi;
        moved();
        check_slots();
        if
        :: goes_on -> to_advance[l] = 1; if :: COUNT(l) == 2 -> to_advance[l + 1] = 1 :: else fi
        :: else
        fi
    :: else
    fi
}

#ifdef NO_CHECK
#define MAY_START(j) (job[j] == QUEUED)
#else
#define MAY_START(j) (job[j] == QUEUED && (attempt[j] == 0 || \
    lease[((j) * ATTEMPTS + attempt[j] - 1) * 3] == 0 || lease[((j) * ATTEMPTS + attempt[j] - 1) * 3] == RELEASED))
#endif

inline start(j) {
    f1 = (j) * ATTEMPTS + attempt[j];
    if
    :: MAY_START(j) && flow[f1] == 0 -> begin(f1); moved()
    :: else
    fi
}
