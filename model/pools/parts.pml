/* ---- parts of one host, and whose they may be: domain/pools/packing.py ----
 *
 * With APART, both slots of A are parts of one host, and every claim takes one of them, or both. Nobody gets one while
 * somebody of another owner has the other. No row says whose the host is: those who have parts of it say it. */

#define PARTS(c, free, by) (SLOTS_IN(free) >= COUNT(c, A) && ((by) == 0 || (by) == OWNER(c)) -> (free) : 0)
#define OWNER_AT(s0) (IS_HELD(s0) -> OWNER(slot[s0] - 1) : 0)
#define WHOSE_NOW (IS_HELD(FIRST_SLOT(A)) -> OWNER_AT(FIRST_SLOT(A)) : OWNER_AT(FIRST_SLOT(A) + 1))
#define PARTS_NOW(c) (due[A] -> 0 : PARTS(c, FREE_IN(A), WHOSE_NOW))
#ifdef APART
#define IS_SHARED_BY_ONE (!IS_HELD(FIRST_SLOT(A)) || OWNER_AT(FIRST_SLOT(A) + 1) == 0 || \
    OWNER_AT(FIRST_SLOT(A)) == OWNER_AT(FIRST_SLOT(A) + 1))
#else
#define IS_SHARED_BY_ONE true
#endif

#ifdef APART
/* What there is of the host is in room, who has the rest of it in had_by, and what somebody is about to take in gone. */
inline start_packing(c) {
    parts = room; parts_by = had_by;
    rest_parts = room - SLOTS_IN(gone); rest_by = (gone -> OWNER(c) : had_by)
}

/* A further claim gets what it wants of the host, or waits for all that is left of it: before something is taken, and
 * after that. lacks: whether it has enough before, and not after; or waits for what is taken. */
#define GETS(o, there, by) (PARTS(o, BIT(there) - 1, by) != 0)
#ifdef PASSED_UNCOUNTED
#define IS_OF_USE false
#else
#define IS_OF_USE (gone != 0)
#endif

inline pack(o) {
    had_it = GETS(o, parts, parts_by);
    lacks = (had_it -> !GETS(o, rest_parts, rest_by) : IS_OF_USE);
    parts = (had_it -> parts - COUNT(o, A) : 0);
    rest_parts = (GETS(o, rest_parts, rest_by) -> rest_parts - COUNT(o, A) : 0);
    parts_by = OWNER(o);
    rest_by = OWNER(o)
}

/* Who has parts, as a server reads it after the free ones. */
inline next_parts(x) {
    beside[x] = IS_HELD(FIRST_SLOT(A)) + 2 * IS_HELD(FIRST_SLOT(A) + 1);
    fresh_beside[x] = beside[x];
    whose[x] = WHOSE_NOW
}

/* The parts are known by what was read if the pool's row is the same as before, and not about to change; and if all that
 * it says were seen, free or not. One that came back between the two reads was seen in neither. */
#ifdef PART_UNSEEN
#define SAW_ALL(x) true
#else
#define SAW_ALL(x) !(~(seen_free[AT(x, A)] | beside[x]) & WHOLE_OF(A))
#endif

inline reach(x, is_same) {
    if
    :: is_same && !due[A] && SAW_ALL(x) -> skip
    :: else -> seen_free[AT(x, A)] = 0; fresh_free[AT(x, A)] = 0; forget_parts(x)
    fi
}

inline forget_parts(x) { beside[x] = 0; fresh_beside[x] = 0; whose[x] = 0 }

/* The commit names all parts that were seen, and takes those that are in gone. */
inline name_parts(x) {
#ifdef PARTS_UNCHECKED
    forget_parts(x);
#else
    fresh_beside[x] = (seen_free[AT(x, A)] | beside[x]) & ~gone & \
        ~(beside[x] & ~fresh_beside[x]) & ~(seen_free[AT(x, A)] & ~fresh_free[AT(x, A)]);
    beside[x] = (seen_free[AT(x, A)] | beside[x]) & ~gone;
#endif
    whose[x] = 0
}

inline wrote_part(s0) {
    for (w : 0 .. SERVERS - 1) {
        if :: POOL_OF(s0) == A -> fresh_beside[w] = fresh_beside[w] & ~BIT(s0 % 2) :: else fi
    }
    for (w : 0 .. PLACES - 1) {
        if :: POOL_OF(s0) == A && (saw_beside[w] & BIT(s0 % 2)) -> fresh_look[w] = 0 :: else fi
    }
}

/* Who comes when nobody waits names all parts as well. */
inline look_beside(c) {
#ifndef PARTS_UNCHECKED
    saw_beside[c] = (slot[FIRST_SLOT(A)] != OFF) + 2 * (slot[FIRST_SLOT(A) + 1] != OFF)
#else
    skip
#endif
}
#endif
