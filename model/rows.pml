/* The rows, the flows and the messages: everything that a step may read or write.
 *
 * What a configuration may set with -D, and its default:
 *   JOBS       jobs, all submitted at the start                                     2
 *   ATTEMPTS   attempts that a job may have: its retries and one                    1
 *   NEED0..2   what job 0..2 needs: 1 = resource A, 2 = resource B, 3 = both        3
 *   LIMIT_T, LIMIT_A, LIMIT_B   slots of the target and of each resource type, 0-2  1
 *   CRASHES LOSSES DUPS         how many handlers crash, messages are lost, doubled 0
 *   MUTES CANCELS EARLY         how many agents fall silent, jobs are cancelled,
 *                               deadlines fall due although all goes well           0
 *   BUSY       handlers of more than one step that run at the same time             2
 *   CLEANERS   of these, how many may put back the same unit                        1
 *   PROMPT     no deadline of hours helps: the sweep and its short ones must do
 *   NO_SWEEP   nothing is ever swept
 *   ONLY_FLOWS no job is created with its claim: all claim by the steps of flows
 *   ONLY_SLOTS nothing is made of a resource: it is ready when it is granted               0
 *   TWINS      resource B is a second one of type A: one step claims both, one grant gives both
 */
#ifndef JOBS
#define JOBS 2
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 1
#endif
#ifndef NEED0
#define NEED0 3
#endif
#ifndef NEED1
#define NEED1 3
#endif
#ifndef NEED2
#define NEED2 3
#endif
#ifndef LIMIT_T
#define LIMIT_T 1
#endif
#ifndef LIMIT_A
#define LIMIT_A 1
#endif
#ifndef LIMIT_B
#define LIMIT_B 1
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef DUPS
#define DUPS 0
#endif
#ifndef MUTES
#define MUTES 0
#endif
#ifndef CANCELS
#define CANCELS 0
#endif
#ifndef EARLY
#define EARLY 0
#endif
#ifndef BUSY
#define BUSY 2
#endif
#ifndef ONLY_SLOTS
#define ONLY_SLOTS 0
#endif
#ifndef CLEANERS
#define CLEANERS 1
#endif

/* An attempt is f = job * ATTEMPTS + attempt; its lease, its claim and its unit are l = f * 3 + order. In a pool's
 * queue the claims stand in the order of l, as their keys do. Slots: two places per pool. */
#define FLOWS (JOBS * ATTEMPTS)
#define LEASES (FLOWS * 3)
#define POOLS 3
#define SLOTS (POOLS * 2)
#define JOB_OF(f) ((f) / ATTEMPTS)
#define ATTEMPT_OF(f) ((f) % ATTEMPTS)
#define FLOW_OF(l) ((l) / 3)
#define ORDER_OF(l) ((l) % 3)
#define NEED_OF(j) ((j) == 0 -> NEED0 : ((j) == 1 -> NEED1 : NEED2))
#define NEEDS(j, o) ((o) == 0 || ((NEED_OF(j) >> ((o) - 1)) & 1))
#if defined(TWINS) || defined(ONE_BY_ONE)
#define POOL_OF(l) (ORDER_OF(l) -> 1 : 0)
#else
#define POOL_OF(l) (ORDER_OF(l))
#endif
/* A step of the flow is named by the first order that it acquires. */
#ifdef TWINS
#define STEP_OF(o) ((o) -> 1 : 0)
#define COUNT(l) (ORDER_OF(l) == 1 && NEEDS(JOB_OF(FLOW_OF(l)), 2) -> 2 : 1)
#else
#define STEP_OF(o) (o)
#define COUNT(l) 1
#endif
#define LIMIT_OF(p) ((p) == 0 -> LIMIT_T : ((p) == 1 -> LIMIT_A : LIMIT_B))

/* jobs */
#define QUEUED 0
#define ACQUIRING 1
#define RUNNING 2
#define SETTLED 3
/* reports, and why a flow or the sweep ends an attempt */
#define NOTHING 0
#define DONE 1
#define LOST 2
#define CANCELLED 3
#define STALE 4
#define DEADLINE 5
/* leases */
#define WAITING 1
#define GRANTED 2
#define READY 3
#define RELEASING 4
#define RELEASED 5
#define HOLDS(l) (lease[l] >= GRANTED && lease[l] <= RELEASING)
/* units */
#define CREATING 1
#define UP 2
#define DIRTY 3
#define GONE 4
/* agents: what runs on a worker, heard of or not */
#define BOOTS 1
#define RUNS 2
#define MUTE 3
#define STOPPED 4
#define MAY_RUN(f) (agent[f] == RUNS || agent[f] == MUTE)
/* flows: parked for order o is o + 1; 0 has not begun. An attempt whose job was created with its claim has none */
#define PARKED(o) ((o) + 1)
#define SETTLING 5
#define ENDED 6
#define PARKED_ALL 7
#define OFF 255

byte job[JOBS], attempt[JOBS], version[JOBS], report[JOBS];
bit cancelled[JOBS], nudged[JOBS], was_settled[JOBS], is_new[JOBS];
byte lease[LEASES], slot_of[LEASES], fence_of[LEASES];
bit claimed[LEASES];
byte unit[LEASES];
bit made[LEASES], exists[LEASES];
byte agent[FLOWS];
byte holder[SLOTS], fence[SLOTS];

/* messages under way: 0, 1, or 2 when doubled; replies to a flow's parked step: one bit per error, ok is bit 0 */
byte to_acquire[LEASES], to_advance[LEASES], to_start[JOBS], to_serve[POOLS];
bit to_stop[JOBS];
byte flow[FLOWS], why[FLOWS], reply[FLOWS];
#define BIT(w) (1 << (w))

/* handlers of several steps: which step each is at, and what it has read */
byte making[LEASES], cleaning[LEASES * CLEANERS];
byte serving[POOLS * 2], seen_claim[POOLS * 2], seen_slot[POOLS * 2], seen_fence[POOLS * 2];
byte ending[FLOWS + JOBS], seen_version[FLOWS + JOBS], seen_leases[FLOWS + JOBS], ending_why[FLOWS + JOBS];
byte busy;

byte crashes = CRASHES, losses = LOSSES, dups = DUPS, mutes = MUTES, cancels = CANCELS, early = EARLY;
byte rounds; /* sweeps since a row last changed */

hidden byte i, k, l, s, turn, f1, j1;
