/* ---- claims and grants: usecases/pools/scheduler.py, domain/pools/grants.py ----
 *
 * The order of claims is fixed by number, and they come in any order: as jobs of all ages, or with all turns, do. */

inline claim(c) {
    lease[c] = WAITING;
    for (i : 0 .. POOLS - 1) {
        if :: COUNT(c, i) -> queue[i] = queue[i] | BIT(c); wrote_claim(c, i) :: else fi
    }
    moved();
}

/* Nothing more is kept for who waits for p elsewhere: its other queues are served. */
inline serve_beside(p) {
#ifndef NOT_BESIDE
    for (hk : 0 .. PLACES - 1) {
        for (ha : 0 .. POOLS - 1) {
            if :: (queue[p] & BIT(hk)) && ha != p && COUNT(hk, ha) -> to_serve[ha] = 1 :: else fi
        }
    }
#endif
    skip
}

/* Nor for those that c, which has come, stands before: all queues of c are served where it is not the last. */
inline serve_who_was_before(c) {
#ifndef NOT_BESIDE
    for (ha : 0 .. POOLS - 1) {
        for (hk : 0 .. PLACES - 1) {
            if :: COUNT(c, ha) && (queue[ha] & BIT(hk)) && BEFORE(c, hk, ha) -> to_serve[ha] = 1 :: else fi
        }
    }
#endif
    skip
}

/* Where jobs share a host, the claims of each owner stand in lines of their own. */
#ifdef LINES_IGNORE_OWNERS
#define SAME_OWNER(o, c) true
#else
#define SAME_OWNER(o, c) (OWNER(o) == OWNER(c))
#endif

/* Who wants the same as c and waits before it: whatever lets that go on serves c after it. */
inline find_who_is_first(c) {
    is_first = 1;
    for (hk : 0 .. PLACES - 1) {
        same = (FITS(c, A) == FITS(hk, A) && SAME_OWNER(hk, c));
        for (ha : 0 .. POOLS - 1) { if :: COUNT(c, ha) != COUNT(hk, ha) -> same = 0 :: else fi }
        if :: hk != c && same && (queue[OWN(c)] & BIT(hk)) && BEFORE(hk, c, OWN(c)) -> is_first = 0 :: else fi
    }
}

inline acquire(c, goes_on) {
    if
    :: !ended[JOB_OF(c)] && lease[c] == 0 -> claim(c)
    :: else
    fi;
    find_who_is_first(c);
    if :: goes_on && lease[c] == WAITING && is_first -> to_serve[OWN(c)] = 1 :: else fi;
    if :: goes_on && lease[c] == WAITING -> serve_who_was_before(c) :: else fi;
#ifdef TWO_COMMITS
    for (i : 0 .. POOLS - 1) { if :: goes_on && COUNT(c, i) -> to_serve[i] = 1 :: else fi }
#endif
    skip
}

/* A new claim looks at one pool after the other: who waits there, and what is free. If nobody waits anywhere, it is
 * granted in the commit that it comes with; otherwise, and when it lost a race, it waits. Looking is at 1 to POOLS, then
 * comes the commit. */
#ifdef PASS_WAITING
#define STANDS_ANY(p) false
#else
#define STANDS_ANY(p) (queue[p] != 0)
#endif
#ifdef GRANT_IGNORES_OVER
#define IS_CLOSED(p) paused[p]
#else
#define IS_CLOSED(p) (paused[p] || (over[p] && !IS_NAMED(p)))
#endif
#define HAS_NOW(c, p) (IS_AMOUNT(p) -> used + COUNT(c, p) <= limit[p] : OFFERED_NOW(c, p) != 0)

inline look(c, p) {
    if
    :: STANDS_ANY(p) || IS_CLOSED(p) || !HAS_NOW(c, p) -> acquire(c, 1); stop_looking(c)
    :: else ->
        if :: !IS_AMOUNT(p) -> gone = OFFERED_NOW(c, p); take_one(c, p); saw_free[(c) * 2 + (p)] = gone :: else fi;
#ifdef APART
        if :: IS_APART(p) -> look_beside(c) :: else fi;
#endif
        looking[c]++
    fi
}

inline look_further(c) {
    do
    :: looking[c] && looking[c] <= POOLS && !COUNT(c, (looking[c] - 1)) -> looking[c]++
    :: else -> break
    od
}

inline stop_looking(c) {
    if :: looking[c] -> ends(looking[c]) :: else fi;
    saw_free[(c) * 2] = 0; saw_free[(c) * 2 + 1] = 0; fresh_look[c] = 0;
#ifdef APART
    saw_beside[c] = 0
#endif
}

inline grant_at_once(c) {
    if
    :: fresh_look[c] && !ended[JOB_OF(c)] && lease[c] == 0 ->
        for (n : 0 .. POOLS - 1) {
            if
            :: COUNT(c, n) ->
                gone = (IS_AMOUNT(n) -> 0 : saw_free[(c) * 2 + n]);
                pass(c, n);
                if
                :: IS_AMOUNT(n) -> m = COUNT(c, n); take_amount(m)
                :: else -> take_slots(c, n)
                fi
            :: else
            fi
        }
        lease[c] = GRANTED;
        moved();
        check_pools();
        go_on(c)
    :: else
    fi
}

/* What a server looks at next: its own pool's queue, then of every pool that those in it want the row, the queue if it
 * is another one, and the free slots. Each is one read. */
#define OF_POOL(x) ((x) / 2)

/* The first WINDOW claims of each line in the queue of p, and which of them are not to be passed. Those that take the same
 * stand in one line, and those whom other slots fit in another. */
#if defined(ONE_LINE)
#define SAME_LINE(o, c) true
#elif defined(LINES_IGNORE_CHOICES)
#define SAME_LINE(o, c) (ALL_OF(o) == ALL_OF(c))
#else
#define SAME_LINE(o, c) (ALL_OF(o) == ALL_OF(c) && FITS(o, A) == FITS(c, A) && SAME_OWNER(o, c))
#endif

inline next_claim(x, p) {
    seen_queue[AT(x, p)] = queue[p];
    kept[AT(x, p)] = 0;
    for (i : 0 .. PLACES - 1) {
        if
        :: seen_queue[AT(x, p)] & BIT(i) ->
            n = 0;
            for (k : 0 .. PLACES - 1) {
                if :: k <= i && (queue[p] & BIT(k)) && SAME_LINE(k, i) -> n++ :: else fi
            }
            if :: n > WINDOW -> seen_queue[AT(x, p)] = seen_queue[AT(x, p)] & ~BIT(i)
               :: n <= WINDOW && overtaken[i * POOLS + p] >= BOUND -> kept[AT(x, p)] = kept[AT(x, p)] | BIT(i)
               :: else
            fi
        :: else
        fi
    }
    fresh_queue[AT(x, p)] = seen_queue[AT(x, p)];
}

/* The free slots, and after them the pool's row: of an amount, how much is left; of other pools, whether it is open. A
 * slot that came back after the limit was lowered is seen with a row that says so: a resize decides what is free then. */
inline next_slot(x, p) {
    seen_free[AT(x, p)] = 0;
    for (i : 0 .. 1) {
        if :: slot[FIRST_SLOT(p) + i] == FREE -> seen_free[AT(x, p)] = seen_free[AT(x, p)] | BIT(i) :: else fi
    }
    fresh_free[AT(x, p)] = seen_free[AT(x, p)];
}

/* A thing is known to be free as a whole by what is read after the free slots: that nobody has any of its slots; and the
 * pool's row, which is not about to change, and is the same as before. */
#ifdef HELD_UNREAD
#define HAS_NOBODY(p) true
#else
#define HAS_NOBODY(p) (HELD_IN(p) == 0)
#endif
#ifdef ROW_READ_ONCE
#define IS_SAME(x, p) true
#else
#define IS_SAME(x, p) fresh_pool[AT(x, p)]
#endif

#if defined(ONE_THING) && !defined(READ_ONCE)
#define READS_AGAIN(x, p) ((p) == A && !IS_SAME(x, p))
#else
#define READS_AGAIN(x, p) false
#endif

inline next_held(x, p) {
#ifdef APART
    next_parts(x)
#else
    whole[x] = HAS_NOBODY(p)
#endif
}

inline next_whole(x, p) {
#ifdef APART
    reach(x, IS_SAME(x, p));
#endif
    if
    :: whole[x] && IS_SAME(x, p) && !due[p] && !paused[p] && !(~seen_free[AT(x, p)] & WHOLE_OF(p)) -> whole[x] = WHOLE_OF(p)
    :: else -> whole[x] = 0
    fi;
    fresh_pool[AT(x, p)] = 1
}

inline next_pool(x, p) {
#ifdef ONE_THING
    if :: p == A -> next_whole(x, p) :: else fi;
#endif
    if
    :: IS_AMOUNT(p) ->
        seen_free[AT(x, p)] = (!paused[p] && used < limit[p] -> limit[p] - used : 0);
        fresh_pool[AT(x, p)] = 1;
        fresh_free[AT(x, p)] = seen_free[AT(x, p)]
    :: !IS_AMOUNT(p) && IS_CLOSED(p) ->
        if :: seen_free[AT(x, p)] && !paused[p] -> to_resize[p] = 1 :: else fi;
        seen_free[AT(x, p)] = 0;
        fresh_free[AT(x, p)] = 0
    :: else
    fi
}

#define HAS(x, c, p) (IS_AMOUNT(p) -> seen_free[AT(x, p)] >= COUNT(c, p) : OFFERED(x, c, p) != 0)
#ifdef NO_BOUND
#define IS_KEPT(x, p, o) false
#else
#define IS_KEPT(x, p, o) (kept[AT(x, p)] & BIT(o))
#endif

#ifdef TWO_COMMITS
#define ASKS(x, p) ((p) == OF_POOL(x))
#else
#define ASKS(x, p) true
#endif

/* Where claims choose: a slot that is kept for nobody, if there is one; of such, one that the fewest ahead would miss, and
 * then the fewest behind. Two that are missed by as many are as good as each other: the placement decides. */
#ifdef FEWEST_ONLY
#define MISSED(x, p) missed
#else
#define MISSED(x, p) (missed + (h & kept[AT(x, p)] -> 256 : 0))
#endif

inline choose(x, c, p) {
#ifdef FIRST_FREE
    take_one(c, p)
#else
    if
    :: IS_MATCHED(p) && gone == 3 ->
        gone = 1; harm(c, p); best = MISSED(x, p);
        gone = 2; harm(c, p);
        if :: MISSED(x, p) < best || (MISSED(x, p) == best && second) -> skip :: else -> gone = 1 fi
    :: else -> take_one(c, p)
    fi
#endif
}

/* What the grant of c by what x has seen takes of p, and whom that harms. */
inline harm_by_grant(x, c, p) {
    is_server = 1;
    those = seen_queue[AT(x, p)];
    room = ROOM(x, p);
#ifdef APART
    had_by = whose[x];
#endif
    gone = (IS_AMOUNT(p) -> 0 : OFFERED(x, c, p));
    choose(x, c, p);
    harm(c, p);
    is_server = 0
}

/* w: whether c may be granted by what x has seen; n: how many it overtakes. */
inline may_be_granted(x, c) {
    w = 1;
    n = 0;
    for (i : 0 .. POOLS - 1) {
        if
        :: COUNT(c, i) && ASKS(x, i) ->
            if :: !(seen_queue[AT(x, i)] & BIT(c)) || !HAS(x, c, i) -> w = 0 :: else fi;
            harm_by_grant(x, c, i);
            for (k : 0 .. PLACES - 1) {
                if :: OVERTAKES & BIT(k) -> n++; if :: IS_KEPT(x, i, k) -> w = 0 :: else fi :: else fi
            }
        :: else
        fi
    }
    if :: n > WINDOW -> w = 0 :: else fi
}

/* The first in the queue that all of its pools can grant. Of what was seen only what the commit names is kept. */
inline pick(x, p) {
    chosen[x] = 0;
    for (v : 0 .. PLACES - 1) {
        if
        :: !chosen[x] && (seen_queue[AT(x, p)] & BIT(v)) ->
            may_be_granted(x, v);
            if :: w -> chosen[x] = v + 1 :: else fi
        :: else
        fi
    }
    for (i : 0 .. POOLS - 1) {
        m = 0;
        if :: !chosen[x] || !COUNT((chosen[x] - 1), i) || !ASKS(x, i) -> seen_free[AT(x, i)] = 0; fresh_pool[AT(x, i)] = 0
           :: else ->
            harm_by_grant(x, (chosen[x] - 1), i);
            m = OVERTAKES | BIT(chosen[x] - 1);
#ifdef APART
            if :: IS_APART(i) -> name_parts(x) :: else fi;
#endif
            seen_free[AT(x, i)] = gone;
            if :: !IS_CHECKED((chosen[x] - 1), i) -> fresh_pool[AT(x, i)] = 0 :: else fi
        fi;
        seen_queue[AT(x, i)] = seen_queue[AT(x, i)] & m;
        fresh_queue[AT(x, i)] = fresh_queue[AT(x, i)] & seen_queue[AT(x, i)];
        fresh_free[AT(x, i)] = fresh_free[AT(x, i)] & seen_free[AT(x, i)];
        kept[AT(x, i)] = 0
    }
#ifdef APART
    if :: !chosen[x] || !COUNT((chosen[x] - 1), A) -> forget_parts(x) :: else fi;
#endif
#ifdef ONE_THING
    whole[x] = 0
#endif
}

inline forget(x) {
    for (i : 0 .. POOLS - 1) {
        seen_queue[AT(x, i)] = 0; fresh_queue[AT(x, i)] = 0; kept[AT(x, i)] = 0;
        seen_free[AT(x, i)] = 0; fresh_free[AT(x, i)] = 0; fresh_pool[AT(x, i)] = 0
    }
    chosen[x] = 0;
    at_pool[x] = 0;
#ifdef APART
    forget_parts(x);
#endif
#ifdef ONE_THING
    whole[x] = 0
#endif
}

inline take(s0, c) {
    slot[s0] = HELD_BY(c);
    wrote_slot(s0);
    assert(due[POOL_OF(s0)] || COUNTED_IN(POOL_OF(s0)) <= limit[POOL_OF(s0)]); /* [SLOT-1] */
}

/* Those that are in gone. */
inline take_slots(c, p) {
    for (k : 0 .. 1) { if :: gone & BIT(k) -> m = FIRST_SLOT(p) + k; take(m, c) :: else fi }
    assert(!IS_WHOLE(c, p) || (gone == WHOLE_OF(p) && HELD_IN(p) == SLOTS_IN(gone))) /* [SLOT-1] for itself */
}

inline take_amount(count) {
    used = used + count;
    assert(used <= limit[Q]); /* [SLOT-1] */
    wrote_pool(Q);
}

/* [QUEUE-2] Beside those that are counted only a grant takes from it that was decided before the claim came. */
inline pass(c, p) {
#ifdef COME_AGAIN
    those = queue[p];
    room = ROOM_NOW(p);
    had_by = WHOSE_NOW;
    harm(c, p);
    for (k : 0 .. PLACES - 1) {
        if
        :: h & BIT(k) -> passed[k * POOLS + p]++; assert(passed[k * POOLS + p] <= BOUND + BUSY)
        :: else
        fi
    }
    passed[(c) * POOLS + p] = 0
#else
    skip
#endif
}

inline overtake(o, p) {
#if !defined(NO_BOUND) || !defined(LTL)
    overtaken[(o) * POOLS + p]++;
    assert(overtaken[(o) * POOLS + p] <= BOUND); /* [QUEUE-2] */
#endif
    wrote_claim(o, p);
}

/* Everything that the commit names is still as it was read. */
inline still(x) {
    w = (lease[chosen[x] - 1] == WAITING);
#ifdef APART
    if :: beside[x] != fresh_beside[x] -> w = 0 :: else fi;
#endif
    for (i : 0 .. POOLS - 1) {
        if
        :: fresh_queue[AT(x, i)] != seen_queue[AT(x, i)] || fresh_free[AT(x, i)] != seen_free[AT(x, i)] -> w = 0
        :: IS_CHECKED((chosen[x] - 1), i) && !fresh_pool[AT(x, i)] -> w = 0
        :: else
        fi
    }
}

/* One pool's part of a grant. */
inline grant_from(x, c, p) {
    queue[p] = queue[p] & ~BIT(c);
    wrote_claim(c, p);
    for (k : 0 .. PLACES - 1) {
        if :: k != c && (seen_queue[AT(x, p)] & BIT(k)) -> overtake(k, p) :: else fi
    }
    overtaken[(c) * POOLS + p] = 0;
    gone = seen_free[AT(x, p)];
    pass(c, p);
    if
    :: IS_AMOUNT(p) -> m = COUNT(c, p); take_amount(m)
    :: else -> take_slots(c, p)
    fi
}

#ifdef TWO_COMMITS
/* What this pool has is taken at once, the rest when the other pools are served. */
inline grant(x, goes_on) {
    s = chosen[x] - 1;
    still(x);
    if
    :: w -> n = OF_POOL(x); grant_from(x, s, n); moved();
        if
        :: !(queue[A] & BIT(s)) && !(queue[B] & BIT(s)) && !(queue[Q] & BIT(s)) -> lease[s] = GRANTED; go_on(s)
        :: else
        fi
    :: else
    fi
}
#else
inline grant(x, goes_on) {
    s = chosen[x] - 1;
    still(x);
    if
    :: w ->
        for (n : 0 .. POOLS - 1) {
            if :: COUNT(s, n) -> grant_from(x, s, n) :: else fi
        }
        lease[s] = GRANTED;
        moved();
        check_pools();
        go_on(s);
#ifndef ONE_QUEUE
        for (n : 0 .. POOLS - 1) {
            if :: goes_on && COUNT(s, n) && n != OF_POOL(x) && queue[n] -> to_serve[n] = 1 :: else fi
        }
#endif
    :: else
    fi
}
#endif
