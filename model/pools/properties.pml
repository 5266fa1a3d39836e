/* What must hold. Each is checked inside the step that could break it; take_amount and overtake have one each. */

#define ON(s0) (slot[s0] != OFF && !withdrawn[s0])
#define HELD_IN(p) (IS_HELD(FIRST_SLOT(p)) + IS_HELD(FIRST_SLOT(p) + 1))
#define COUNTS(s0) (IS_HELD(s0) && (!IS_NAMED(POOL_OF(s0)) || !withdrawn[s0]))
#define COUNTED_IN(p) (COUNTS(FIRST_SLOT(p)) + COUNTS(FIRST_SLOT(p) + 1))
#define ON_IN(p) (ON(FIRST_SLOT(p)) + ON(FIRST_SLOT(p) + 1))
#define HOLDS(c) (lease[c] == GRANTED || lease[c] == RELEASING)
#define HAS_SLOT(c, p) ((slot[FIRST_SLOT(p)] == HELD_BY(c)) + (slot[FIRST_SLOT(p) + 1] == HELD_BY(c)))

/* [SLOT-1] What is used of an amount is what its holders have. When a pool is as its row says, exactly as many slots as
 * its limit may be granted, and there is no withdrawn one that a release would overlook.
 * [SLOT-2] Who holds a lease holds all that its step takes, in every pool, and nobody else holds anything; and the slots
 * that it holds fit it. Of a thing as a whole it has those that there were when it was granted: take_slots checks that.
 * [SEC-2] All who have parts of a host have one owner. */
#define IS_MISFIT(s0, c) (slot[s0] == HELD_BY(c) && !(FITS(c, POOL_OF(s0)) & BIT((s0) % 2)))
inline check_pools() {
    m = 0;
    for (i : 0 .. PLACES - 1) {
        if :: HOLDS(i) -> m = m + COUNT(i, Q) :: else fi;
        assert(HAS_SLOT(i, A) == (HOLDS(i) -> COUNT(i, A) : 0) || (IS_WHOLE(i, A) && HOLDS(i) && HAS_SLOT(i, A)));
        assert(!IS_MISFIT(FIRST_SLOT(A), i) && !IS_MISFIT(FIRST_SLOT(A) + 1, i));
        assert(HAS_SLOT(i, B) == (HOLDS(i) -> COUNT(i, B) : 0));
    }
    assert(used == m);
    assert(IS_SHARED_BY_ONE);
    for (i : A .. B) {
        assert(due[i] || ON_IN(i) == limit[i]);
        assert(due[i] || over[i] || (!withdrawn[FIRST_SLOT(i)] && !withdrawn[FIRST_SLOT(i) + 1]));
    }
}

#ifdef EACH_ITS_ORDER
#define NTH(k0, p) ((p) == Q -> PLACES - 1 - (k0) : (k0))
#else
#define NTH(k0, p) (k0)
#endif
#define ROOM(x, p) (IS_AMOUNT(p) || IS_MATCHED(p) -> seen_free[AT(x, p)] : SLOTS_IN(seen_free[AT(x, p)]))
#define ROOM_NOW(p) (IS_AMOUNT(p) -> limit[Q] - used : (IS_CHOSEN(p) -> FREE_IN(p) : SLOTS_IN(FREE_IN(p))))

/* ht: whether o is one of those that could all be granted if nobody had anything. Limits and pauses are those of this
 * moment: a handler that read older ones may count a pass too few or too many, and does no other harm. */
inline is_turn(o) {
    ht = 1;
    for (ha : 0 .. POOLS - 1) { if :: COUNT(o, ha) && asked[ha] + WANTED(o, ha) > COULD(ha) -> ht = 0 :: else fi }
#ifdef APART
    if :: COUNT(o, A) && could_by && could_by != OWNER(o) -> ht = 0 :: else fi;
    if :: COUNT(o, A) && ht -> could_by = OWNER(o) :: else fi;
#endif
#ifdef CHOICES
    own = FITS(o, A);
    if :: COUNT(o, A) && !CAN_MATCH(EVER, own) -> ht = 0 :: else fi;
    if :: COUNT(o, A) && ht -> match(EVER, own) :: else fi;
#endif
    for (ha : 0 .. POOLS - 1) { if :: ht -> asked[ha] = asked[ha] + WANTED(o, ha) :: else fi }
}

/* lacks: whether no room is left for o; where claims choose, whether no slot is left for it, and one that is gone would be
 * of use to it; of a host that jobs share, as pack says. */
inline give_room(o, p) {
    if
    :: IS_MATCHED(p) -> own = FITS(o, p); match(NOW, own); lacks = ((useful & gone) != 0)
#ifdef APART
    :: IS_APART(p) -> pack(o)
#endif
    :: !IS_MATCHED(p) && !IS_APART(p) -> room = room - WANTED(o, p); lacks = (room < 0)
    fi
}

/* h: of those before c in the queue of p, whom c takes from: there is no room left for them and those before them;
 * g: all whom it passes. What there is, and who stands in the queue, is in room and those. Where claims choose, what c
 * takes is in gone; missed: how many before it miss that, times 16, and how many behind it. */
inline harm(c, p) {
    h = 0;
    g = 0;
    missed = 0;
#ifdef APART
    start_packing(c);
    could_by = 0;
#endif
    if :: IS_MATCHED(p) -> start_matching() :: else -> room = room - WANTED(c, p) fi;
    for (ha : 0 .. POOLS - 1) { asked[ha] = 0 }
    for (hk : 0 .. PLACES - 1) {
        ho = NTH(hk, p);
        if
        :: BEFORE(ho, c, p) && (those & BIT(ho)) ->
            is_turn(ho);
            lacks = 0;
            if :: ht -> give_room(ho, p) :: else fi;
            g = g | BIT(ho);
            if :: lacks -> h = h | BIT(ho); missed = missed + 16 :: else fi
        :: IS_MATCHED(p) && !BEFORE(ho, c, p) && (those & BIT(ho)) ->
            is_turn(ho);
            lacks = 0;
            if :: ht && ho != (c) -> give_room(ho, p) :: else fi;
            if :: lacks -> missed++ :: else fi
        :: else
        fi
    }
}

#ifdef EVERY_PASS
#define OVERTAKES g
#else
#define OVERTAKES h
#endif

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

/* n: whether what c would take of p, which is in gone, is kept for a claim ahead; m: from how many claims it takes. */
inline check_kept(c, p) {
    those = queue[p];
    room = ROOM_NOW(p);
    had_by = WHOSE_NOW;
    harm(c, p);
    for (s : 0 .. PLACES - 1) {
        if
        :: h & BIT(s) -> m++; if :: overtaken[s * POOLS + p] >= BOUND -> n = 1 :: else fi
        :: else
        fi
    }
}

/* n: whether a pool has not what c wants, or c would take from a claim ahead that it is kept for, whichever slot it
 * takes, or (m) from more claims than one grant may. */
inline check_waits(c) {
    n = 0;
    m = 0;
    for (i : 0 .. POOLS - 1) {
        if
        :: COUNT(c, i) ->
            if
            :: paused[i] || (IS_AMOUNT(i) && used + COUNT(c, i) > limit[i]) -> n = 1
            :: !IS_AMOUNT(i) && OFFERED_NOW(c, i) == 0 -> n = 1
            :: else
            fi;
            gone = (IS_AMOUNT(i) -> 0 : OFFERED_NOW(c, i));
            if
            :: IS_CHOSEN(i) && gone == 3 && !n ->
                v = m;
                gone = 1; check_kept(c, i);
                if :: n -> n = 0; m = v; gone = 2; check_kept(c, i) :: else fi
            :: else -> check_kept(c, i)
            fi
        :: else
        fi
    }
    assert(n || m > WINDOW);
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
