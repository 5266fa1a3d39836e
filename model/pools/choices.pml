/* ---- which slots fit a claim, and which it takes: domain/pools/matching.py, domain/pools/choosing.py ----
 *
 * With FITS0 to FITS3, each slot of A is a thing of its own. A set of slots is a number then, a bit for each. With ONE_THING,
 * both slots of A are of one thing: its slots are alike, so room is counted, as where nobody chooses. */

#define IS_FREE(s0) (slot[s0] == FREE)
#define FREE_IN(p) (IS_FREE(FIRST_SLOT(p)) + 2 * IS_FREE(FIRST_SLOT(p) + 1))
#define SLOTS_IN(bits) (((bits) & 1) + ((bits) >> 1))

/* Of a thing as a whole: the slots that it is to have. Of the whole thing none is offered unless all of these are free, and
 * nobody has one that is to go. */
#define WHOLE_OF(p) (BIT(limit[p]) - 1)
#define WHOLE_NOW(p) (!due[p] && HELD_IN(p) == 0 && FREE_IN(p) == WHOLE_OF(p) -> WHOLE_OF(p) : 0)
#ifdef APART
#define OFFERED_NOW(c, p) ((p) == A -> PARTS_NOW(c) : FREE_IN(p))
#else
#define OFFERED_NOW(c, p) (IS_WHOLE(c, p) -> WHOLE_NOW(p) : (FREE_IN(p) & FITS(c, p)))
#endif
#define WANTED(c, p) (IS_WHOLE(c, p) -> (limit[p] -> limit[p] : 1) : COUNT(c, p))

#if defined(APART)
#define OFFERED(x, c, p) ((p) == A -> PARTS(c, seen_free[AT(x, A)], whose[x]) : seen_free[AT(x, p)])
#elif defined(ONE_THING)
#define OFFERED(x, c, p) (IS_WHOLE(c, p) -> whole[x] : seen_free[AT(x, p)])
#else
#define OFFERED(x, c, p) (seen_free[AT(x, p)] & FITS(c, p))
#endif

/* What there would be of p if nobody had any. */
#define COULD(p) (paused[p] -> 0 : limit[p])

/* Claims are matched to slots of A one after the other: to those that are there (NOW), and to those that would be if
 * nobody had any (EVER). A further claim, which the slots f fit, gets one of these that is left; or one whose taker can
 * have another that is left. If there is none, the claim lacks a slot, and useful are those of which one more would serve
 * it: those that fit it, and those that fit their takers. With two slots no path is longer. */
#define NOW 0
#define EVER 1
#define TAKER(t, k) taker[(t) * 2 + (k)] /* which slots fit the claim that has this one; 0 if nobody has it */
#define CAN_SWAP(t, f, k) (((f) & BIT(k)) && (TAKER(t, k) & rest[t]))
#define CAN_MATCH(t, f) ((rest[t] & (f)) || CAN_SWAP(t, f, 0) || CAN_SWAP(t, f, 1))
#ifdef OWN_FIT_ONLY
#define FITS_TAKER(t, k) (is_server -> 0 : TAKER(t, k))
#else
#define FITS_TAKER(t, k) TAKER(t, k)
#endif

inline match(t, f) {
    useful = 0;
    if
    :: rest[t] & f & 1 -> TAKER(t, 0) = f; rest[t] = rest[t] & ~BIT(0)
    :: (rest[t] & f) == 2 -> TAKER(t, 1) = f; rest[t] = rest[t] & ~BIT(1)
    :: !(rest[t] & f) && CAN_SWAP(t, f, 0) -> TAKER(t, 1) = TAKER(t, 0); TAKER(t, 0) = f; rest[t] = 0
    :: !(rest[t] & f) && CAN_SWAP(t, f, 1) -> TAKER(t, 0) = TAKER(t, 1); TAKER(t, 1) = f; rest[t] = 0
    :: else -> useful = (f) | ((f) & 1 -> FITS_TAKER(t, 0) : 0) | ((f) & 2 -> FITS_TAKER(t, 1) : 0)
    fi
}

/* What there is is in room; what somebody is about to take of that, in gone. */
inline start_matching() {
    rest[NOW] = room & ~gone;
    rest[EVER] = BIT(COULD(A)) - 1;
    for (ha : 0 .. 3) { taker[ha] = 0 }
}

/* A claim that takes one slot, of those that are in gone: the first, or the second. */
#define TAKES_ALL(c, p) (IS_WHOLE(c, p) || (IS_APART(p) && COUNT(c, p) == 2))
inline take_one(c, p) {
    if
    :: TAKES_ALL(c, p) -> skip
    :: !TAKES_ALL(c, p) && gone == 3 && second -> gone = 2
    :: else -> gone = (gone & 1 -> 1 : gone)
    fi
}
