/* The second model: pools that change while jobs wait and hold. Here a unit is only held and put back; what its driver
 * does, and its agent and its flow, are in the first one. What a configuration may set with -D, and its default:
 *   JOBS         jobs, all submitted at the start                                             2
 *   FIRST0..3    what the first step of job 0..3 takes, 0 for a job without: a sum of A1, B1
 *                (a slot of A, of B) and Q1, Q2 or Q3 (that much of the amount Q)             0
 *   TAKES0..3    what its last step takes, which is released first                            A1
 *   FITS0..3     which slots of A the last step of job 0..3 may have: 1 the first, 2 the second, 3
 *                any. With one of these, claims choose among the slots of A, and take one       3
 *   ONE_THING    the slots of A are those of one thing: who takes A2 has it for itself
 *   APART        and they are parts of a host that jobs share: who takes A2 takes two of them, and all who
 *                have one at the same time have one owner
 *   OWNER0..3    whose job 0..3 is                                                            0
 *   LIMIT_A LIMIT_B LIMIT_Q     what there is at the start; slots 0-2, an amount 0-3          1
 *   CHANGES                     how often an operator sets a limit: SET(n) is what the n-th
 *                               time, of the pool SET_POOL, which must be the first
 *                               of those that a job takes from                                0
 *   PAUSES                      how often SET_POOL is paused, and resumed                     0
 *   TOUCHES                     how often the row of SET_POOL is written for another reason,
 *                               after which nobody serves it                                  0
 *   BOUND        how often a claim may be overtaken in one queue: granting.OVERTAKEN          1
 *   WINDOW       how far one looks into each line of a queue: granting.WINDOW                 4
 *   CRASHES LOSSES CANCELS      how many handlers crash after their commit, messages are
 *                               lost, jobs are cancelled                                      0
 *   BUSY         handlers in the middle of their work, of any kind                            2
 *   PER_POOL     of these, how many may serve the same pool                                   2
 *   NO_SWEEP     nothing is ever swept
 *   COME_AGAIN   every job but the first comes again as soon as it is over, for ever
 */
#ifndef JOBS
#define JOBS 2
#endif
#ifndef FIRST0
#define FIRST0 0
#endif
#ifndef FIRST1
#define FIRST1 0
#endif
#ifndef FIRST2
#define FIRST2 0
#endif
#ifndef FIRST3
#define FIRST3 0
#endif
#ifndef TAKES0
#define TAKES0 A1
#endif
#ifndef TAKES1
#define TAKES1 A1
#endif
#ifndef TAKES2
#define TAKES2 A1
#endif
#ifndef TAKES3
#define TAKES3 A1
#endif
#if defined(FITS0) || defined(FITS1) || defined(FITS2) || defined(FITS3)
#define CHOICES
#endif
#ifndef FITS0
#define FITS0 3
#endif
#ifndef FITS1
#define FITS1 3
#endif
#ifndef FITS2
#define FITS2 3
#endif
#ifndef FITS3
#define FITS3 3
#endif
#ifndef OWNER0
#define OWNER0 0
#endif
#ifndef OWNER1
#define OWNER1 0
#endif
#ifndef OWNER2
#define OWNER2 0
#endif
#ifndef OWNER3
#define OWNER3 0
#endif
#ifndef LIMIT_A
#define LIMIT_A 1
#endif
#ifndef LIMIT_B
#define LIMIT_B 1
#endif
#ifndef LIMIT_Q
#define LIMIT_Q 1
#endif
#ifndef CHANGES
#define CHANGES 0
#endif
#ifndef SET_POOL
#define SET_POOL A
#endif
#ifndef SET1
#define SET1 1
#endif
#ifndef SET2
#define SET2 1
#endif
#ifndef PAUSES
#define PAUSES 0
#endif
#ifndef BOUND
#define BOUND 1
#endif
#ifndef WINDOW
#define WINDOW 4
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef CANCELS
#define CANCELS 0
#endif
#ifndef BUSY
#define BUSY 2
#endif

#define A 0
#define B 1
#define Q 2
#define POOLS 3
#define A1 1
#define A2 2
#define B1 4
#define Q1 16
#define Q2 32
#define Q3 48
#define IS_AMOUNT(p) ((p) == Q)

/* A step of a job is a place c = job * 2 + (0 for its first, 1 for its last). Claims stand in the order of c. */
#define PLACES (JOBS * 2)
#define JOB_OF(c) ((c) / 2)
#define LAST_OF(j) ((j) * 2 + 1)
#define ALL_OF(c) ((c) % 2 == 0 -> \
    ((c) == 0 -> (FIRST0) : ((c) == 2 -> (FIRST1) : ((c) == 4 -> (FIRST2) : (FIRST3)))) : \
    ((c) == 1 -> (TAKES0) : ((c) == 3 -> (TAKES1) : ((c) == 5 -> (TAKES2) : (TAKES3)))))
#define COUNT(c, p) ((ALL_OF(c) >> (2 * (p))) & 3)
#define FITS(c, p) ((p) != A || (c) % 2 == 0 -> 3 : \
    ((c) == 1 -> (FITS0) : ((c) == 3 -> (FITS1) : ((c) == 5 -> (FITS2) : (FITS3)))))
#define OWNER(c) ((c) / 2 == 0 -> 1 + (OWNER0) : ((c) / 2 == 1 -> 1 + (OWNER1) : ((c) / 2 == 2 -> 1 + (OWNER2) : 1 + (OWNER3))))
#define OWN(c) (COUNT(c, A) -> A : (COUNT(c, B) -> B : Q))
#define BIT(n) (1 << (n))
#ifdef EACH_ITS_ORDER
#define BEFORE(o, c, p) ((p) == Q -> (o) > (c) : (o) < (c))
#else
#define BEFORE(o, c, p) ((o) < (c))
#endif

/* Whether claims choose among the slots of p: what there is of it is a set of slots then, a bit each, and no number. */
#ifdef CHOICES
#define IS_CHOSEN(p) ((p) == A)
#else
#define IS_CHOSEN(p) false
#endif
#ifdef BY_NUMBER
#define IS_MATCHED(p) (IS_CHOSEN(p) && !is_server)
#else
#define IS_MATCHED(p) IS_CHOSEN(p)
#endif
/* Whether c wants all slots of p, which are one thing. */
#if defined(ONE_THING) && !defined(APART)
#define IS_WHOLE(c, p) ((p) == A && COUNT(c, A) == 2)
#else
#define IS_WHOLE(c, p) false
#endif
/* A pool with names says which of its slots stay when its limit is lowered, and is granted from meanwhile. */
#if defined(CHOICES) || defined(ONE_THING)
#define IS_NAMED(p) ((p) == A)
#else
#define IS_NAMED(p) false
#endif
#ifdef ONE_THING
#define IS_ONE_THING(p) ((p) == A)
#else
#define IS_ONE_THING(p) false
#endif
/* Whether the slots of p are parts of a host on which the jobs of one owner only may be. */
#ifdef APART
#define IS_APART(p) ((p) == A)
#else
#define IS_APART(p) false
#endif

/* leases: those of a step are one here */
#define WAITING 1
#define GRANTED 2
#define RELEASING 3
#define RELEASED 4
#define IS_OVER(c) (lease[c] == RELEASED || lease[c] == 0)
/* slots: two names in every pool that has slots, all of them made at the start */
#define SLOTS 4
#define FIRST_SLOT(p) ((p) * 2)
#define POOL_OF(s) ((s) / 2)
#define FREE 0
#define OFF 255
#define HELD_BY(c) ((c) + 1)
#define IS_HELD(s) (slot[s] != FREE && slot[s] != OFF)

byte lease[PLACES], overtaken[PLACES * POOLS];
byte queue[POOLS]; /* who stands in it: a bit per place */
byte slot[SLOTS];
bit withdrawn[SLOTS];
byte limit[POOLS], used;
bit paused[POOLS], over[POOLS], due[POOLS];
bit ended[JOBS];
#ifdef SETTLE_READS_FIRST
byte saw_waiting, saw_job;
#endif
#ifdef COME_AGAIN
byte passed[PLACES * POOLS]; /* how often one behind it was granted, counted or not */
#endif

bit to_acquire[PLACES], to_serve[POOLS], to_resize[POOLS];

/* Handlers in the middle of their work: the step that each is at, and what it has read. What somebody has written
 * since is not fresh any more: a commit that names it fails, as it does by the version of the row. */
#define SERVERS (POOLS * 2)
#ifndef PER_POOL
#define PER_POOL 2
#endif
byte serving[SERVERS], at_pool[SERVERS], chosen[SERVERS];
#define AT(x, p) ((x) * POOLS + (p))
byte seen_queue[SERVERS * POOLS], fresh_queue[SERVERS * POOLS], kept[SERVERS * POOLS];
byte seen_free[SERVERS * POOLS], fresh_free[SERVERS * POOLS];
bit fresh_pool[SERVERS * POOLS];
#ifdef ONE_THING
byte whole[SERVERS]; /* the slots of A, if they are known to be free as a whole */
#endif
#ifdef APART
byte whose[SERVERS]; /* the owner of those who have a part, as it was read; 0 if nobody has one */
byte beside[SERVERS], fresh_beside[SERVERS]; /* the parts that somebody has; then, all that the commit names and does not take */
#endif
#define RESIZERS 2
byte resizing[RESIZERS], seen_slot[RESIZERS * 2], todo[RESIZERS * 2];
bit fresh_slot[RESIZERS * 2], fresh_limit[RESIZERS], seen_due[RESIZERS], seen_over[RESIZERS];
byte seen_limit[RESIZERS];
byte looking[PLACES], saw_free[PLACES * 2]; /* of a claim that looks whether it can be granted at once */
bit fresh_look[PLACES];
#ifdef APART
byte saw_beside[PLACES]; /* the parts that it saw, free or not */
#endif
byte busy;

byte changes, pauses = PAUSES;
#ifdef TOUCHES
byte touches = TOUCHES;
#endif
byte crashes = CRASHES, losses = LOSSES, cancels = CANCELS;
byte rounds; /* sweeps since a row last changed */

hidden byte i, k, n, m, s, v, w;
hidden byte asked[POOLS], those, g, h, ha, hk, ho, ht, is_first, same;
hidden short room;
hidden short missed, best;
hidden byte gone, rest[2], taker[4], useful, own; /* of slots that are chosen: sets, a bit each */
hidden byte lacks, second, is_server;
hidden byte had_by, could_by, parts, parts_by, rest_parts, rest_by, had_it; /* of a host that jobs share */
