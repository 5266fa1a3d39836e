/* Who takes the steps: handlers woken by messages, agents, users, the network, and the sweep.
 *
 * A process has one control state; what it is in the middle of is in the rows' file. So every option below may be
 * interleaved with every other. */

#include "rows.pml"
#ifdef SERVE_FIRST
bit served[LEASES];
#endif
#include "properties.pml"
#include "protocol.pml"

#define CALM (busy < BUSY)

inline begins(what) { what = 1; busy++; }
inline ends(what) { what = 0; busy--; }

/* After a fault, the minutes until the next sweep are counted anew. */
inline crash() { crashes--; rounds = 0 }
inline lose(m) { losses--; m--; rounds = 0 }

/* What messages do to one lease and its unit, o of attempt f. */
#define ABOUT(f, o, l0) \
:: d_step { to_acquire[l0] -> to_acquire[l0]--; acquire(f, o, 1); skip } \
:: d_step { crashes && to_acquire[l0] -> crash(); acquire(f, o, 0); skip } \
:: d_step { to_advance[l0] && unit[l0] == CREATING && !made[l0] && !making[l0] && CALM -> \
    to_advance[l0]--; begins(making[l0]); skip } \
:: d_step { making[l0] == 1 -> create(l0); making[l0] = 2; skip } \
:: d_step { making[l0] == 2 -> advance_make(l0, 1); ends(making[l0]); skip } \
:: d_step { making[l0] == 2 && crashes -> crash(); to_advance[l0] = 1; advance_make(l0, 0); ends(making[l0]); skip } \
:: d_step { making[l0] == 2 && crashes -> crash(); to_advance[l0] = 1; ends(making[l0]); skip } \
:: d_step { to_advance[l0] && unit[l0] == DIRTY && CALM && (!cleaning[l0] || !cleaning[SECOND(l0)]) -> \
    to_advance[l0]--; next_release(f); \
    if :: turn != OFF && turn != l0 \
       :: else -> if :: !cleaning[l0] -> begins(cleaning[l0]) :: else -> begins(cleaning[SECOND(l0)]) fi \
    fi; skip } \
:: d_step { cleaning[l0] == 1 -> clean(l0); cleaning[l0] = 2; skip } \
:: d_step { cleaning[l0] == 2 -> release(l0, 1); ends(cleaning[l0]); skip } \
:: d_step { cleaning[l0] == 2 && crashes -> crash(); release(l0, 0); ends(cleaning[l0]); skip } \
:: d_step { cleaning[l0] == 2 && crashes -> crash(); to_advance[l0] = 1; ends(cleaning[l0]); skip } \
SECOND_CLEANER(l0) \
:: d_step { to_advance[l0] && (unit[l0] == GONE || unit[l0] == UP || unit[l0] == CREATING && made[l0]) -> \
    to_advance[l0]--; \
    if :: o == 0 && made[l0] && agent[f] != BOOTS && agent[f] != RUNS -> advance_lose(l0, 1) \
       :: else -> advance_answer(l0) \
    fi; skip } \
:: d_step { crashes && o == 0 && to_advance[l0] && unit[l0] == UP && made[l0] && agent[f] == MUTE -> \
    crash(); advance_lose(l0, 0); skip } \
:: d_step { early && o == 0 && to_advance[l0] && made[l0] && (unit[l0] == UP || unit[l0] == CREATING) -> \
    early--; to_advance[l0]--; advance_lose(l0, 1); skip }

#if CLEANERS == 2
#define SECOND(l0) (LEASES + (l0))
#define SECOND_CLEANER(l0) \
:: d_step { cleaning[SECOND(l0)] == 1 -> clean(l0); cleaning[SECOND(l0)] = 2; skip } \
:: d_step { cleaning[SECOND(l0)] == 2 -> release(l0, 1); ends(cleaning[SECOND(l0)]); skip }
#else
#define SECOND(l0) (l0)
#define SECOND_CLEANER(l0)
#endif

/* What happens to one attempt: its flow, its agent, its end. */
proctype Attempt(byte me) {
end:
    do
    ABOUT(me, 0, (me * 3))
    ABOUT(me, 1, (me * 3 + 1))
    ABOUT(me, 2, (me * 3 + 2))
    :: d_step { reply[me] & BIT(NOTHING) -> reply[me] = reply[me] & ~BIT(NOTHING); go_on(me); skip }
    :: d_step { reply[me] & BIT(CANCELLED) -> give_up(me, CANCELLED); skip }
    :: d_step { reply[me] & BIT(STALE) -> give_up(me, STALE); skip }
    :: d_step { reply[me] & BIT(LOST) -> give_up(me, LOST); skip }
    :: d_step { agent[me] == BOOTS && MAY_CALL(me) -> hello(me, 1); skip }
    :: d_step { crashes && agent[me] == BOOTS -> crash(); hello(me, 0); skip }
    :: d_step { agent[me] == RUNS -> finish(me, 1); skip }
    :: d_step { crashes && agent[me] == RUNS -> crash(); finish(me, 0); skip }
    :: d_step { agent[me] == RUNS && !ending[me] && CALM -> write_report(me, 1); skip }
    :: d_step { crashes && agent[me] == RUNS && !ending[me] -> crash(); write_report(me, 0); skip }
    :: d_step { ending[me] == BY_REPORT -> stands(me, me);
        if
        :: k -> settle(me, me); put_back(me); if :: agent[me] == RUNS -> agent[me] = STOPPED :: else fi
        :: else
        fi;
        ends(ending[me]); skip }
    :: d_step { ending[me] == BY_REPORT && crashes -> crash(); stands(me, me);
        if :: k -> settle(me, me) :: else fi;
        ends(ending[me]); skip }
    :: d_step { ending[me] == BY_REPORT && crashes -> crash(); ends(ending[me]); skip }
    :: d_step { mutes && agent[me] == BOOTS -> mutes--; agent[me] = STOPPED; skip }
    :: d_step { mutes && agent[me] == RUNS -> mutes--; agent[me] = MUTE; skip }
    :: d_step { flow[me] == SETTLING && !ending[me] && CALM ->
        if
        :: IS_NOT_FOR_A_FLOW(me) -> put_back(me); flow[me] = ENDED
        :: else -> begins(ending[me]); read_end(me, me, why[me])
        fi; skip }
    :: d_step { ending[me] == BY_FLOW -> stands(me, me);
        if :: k -> settle(me, me); put_back(me); flow[me] = ENDED :: else fi;
        ends(ending[me]); skip }
    :: d_step { ending[me] == BY_FLOW && crashes -> crash(); stands(me, me);
        if :: k -> settle(me, me) :: else fi;
        ends(ending[me]); skip }
    od
}

/* What happens to one job beside its attempts: its start, its cancellation, its end by the sweep. */
#define BY_SWEEP(j) (FLOWS + (j))
#define NOW(j) ((j) * ATTEMPTS + attempt[j])

proctype Job(byte me) {
end:
    do
    :: d_step { MAY_CLAIM(me) -> grant_with_job(me, 1); skip }
    :: d_step { crashes && MAY_CLAIM(me) -> crash(); grant_with_job(me, 0); skip }
    :: d_step { to_start[me] -> is_new[me] = 0; to_start[me]--; start(me); skip }
    :: d_step { cancels && job[me] != SETTLED && !cancelled[me] -> cancels--; cancel(me, 1); skip }
    :: d_step { cancels && crashes && job[me] != SETTLED && !cancelled[me] -> cancels--; crash(); cancel(me, 0); skip }
    :: d_step { to_stop[me] -> to_stop[me] = 0; stop_waiting(me); skip }
    :: d_step { early && job[me] == ACQUIRING && !ending[BY_SWEEP(me)] ->
        early--; begins(ending[BY_SWEEP(me)]); read_end(BY_SWEEP(me), NOW(me), DEADLINE); skip }
    :: d_step { early && BETWEEN_STEPS(NOW(me)) && !ending[BY_SWEEP(me)] ->
        early--; begins(ending[BY_SWEEP(me)]); read_end(BY_SWEEP(me), NOW(me), LOST); skip }
    :: d_step { early && job[me] == RUNNING && !ending[BY_SWEEP(me)] ->
        early--; begins(ending[BY_SWEEP(me)]); read_end(BY_SWEEP(me), NOW(me), LOST); skip }
    :: d_step { ending[BY_SWEEP(me)] ->
        f1 = NOW(me);
        stands(BY_SWEEP(me), f1);
        if :: k -> settle(BY_SWEEP(me), f1); put_back(f1); flow[f1] = ENDED; reply[f1] = 0 :: else fi;
        ends(ending[BY_SWEEP(me)]); skip }
    od
}

/* Whoever serves a pool: x of the two that may at once. */
#define SERVER(x, p) \
:: d_step { to_serve[p] && !serving[x] && CALM -> to_serve[p]--; begins(serving[x]); skip } \
:: d_step { serving[x] == 1 -> next_claim(x, p); \
    if :: seen_claim[x] -> serving[x] = 2 :: else -> ends(serving[x]) fi; skip } \
:: d_step { serving[x] == 2 -> next_slot(x, p); \
    if :: seen_slot[x] != OFF -> serving[x] = 3 :: else -> seen_claim[x] = 0; seen_slot[x] = 0; ends(serving[x]) fi; skip } \
:: d_step { serving[x] == 3 -> grant(x, 1); seen_claim[x] = 0; seen_slot[x] = 0; seen_fence[x] = 0; serving[x] = 1; skip } \
:: d_step { serving[x] == 3 && crashes -> crash(); grant(x, 0); \
    seen_claim[x] = 0; seen_slot[x] = 0; seen_fence[x] = 0; ends(serving[x]); skip }

proctype Pool(byte me) {
end:
    do
    SERVER((me * 2), me)
    SERVER((me * 2 + 1), me)
    od
}

/* The network loses and doubles. What it may still do, it need not. */
#define FATE(m) \
:: d_step { losses && m -> lose(m); skip } \
:: d_step { dups && m == 1 -> dups--; m = 2; skip }

proctype Network(byte me) {
end:
    do
    FATE(to_acquire[me * 3])
    FATE(to_acquire[me * 3 + 1])
    FATE(to_acquire[me * 3 + 2])
    FATE(to_advance[me * 3])
    FATE(to_advance[me * 3 + 1])
    FATE(to_advance[me * 3 + 2])
    FATE(to_start[JOB_OF(me)])
    :: d_step { losses && reply[me] -> lose(reply[me]); reply[me] = 0; skip }
    od
}

/* The sweep: it runs when all else has come to rest, for only then time must pass. What it does while others are at
 * work is what doubled messages, second servers and early deadlines do. */
#define OVERDUE(n) (unit[n] == CREATING || unit[n] == DIRTY || \
    (unit[n] == UP && ORDER_OF(n) == 0 && agent[FLOW_OF(n)] != RUNS))

#ifdef NO_REMINDER
#define REMINDS false
#else
#define REMINDS true
#endif

inline end_by_sweep(j, w) {
    if
    :: !ending[BY_SWEEP(j)] -> begins(ending[BY_SWEEP(j)]); read_end(BY_SWEEP(j), NOW(j), w)
    :: else
    fi
}

inline sweep_jobs() {
    for (s : 0 .. JOBS - 1) {
        if
        :: job[s] == QUEUED && !cancelled[s] ->
            is_new[s] = 0;
            if :: attempt[s] > 0 -> f1 = s * ATTEMPTS + attempt[s] - 1; put_back(f1) :: else fi;
            f1 = NOW(s);
            if
            :: REMINDS && flow[f1] != 0 && nudged[s] -> end_by_sweep(s, LOST)
            :: REMINDS && (flow[f1] == 0 || !nudged[s]) -> remind_to_start(f1)
            :: else -> to_start[s] = 1
            fi
        :: job[s] != SETTLED && (cancelled[s] || report[s]) -> end_by_sweep(s, CANCELLED)
        :: job[s] != SETTLED && !cancelled[s] && !report[s] && job[s] == ACQUIRING && flow[NOW(s)] == ENDED ->
            end_by_sweep(s, DEADLINE)
        :: REMINDS && !cancelled[s] && !report[s] && BETWEEN_STEPS(NOW(s)) && flow[NOW(s)] != ENDED ->
            if :: nudged[s] -> end_by_sweep(s, LOST) :: else -> f1 = NOW(s); remind_to_step(f1) fi
        :: else
        fi
    }
}

inline sweep() {
    for (i : 0 .. LEASES - 1) {
        if :: OVERDUE(i) -> to_advance[i] = 1 :: else fi;
        if :: claimed[i] -> to_serve[POOL_OF(i)] = 1 :: else fi;
        if :: unit[i] == GONE && exists[i] -> clean(i); moved() :: else fi
    }
    sweep_jobs();
}

inline deadlines() {
    for (s : 0 .. JOBS - 1) {
        if
        :: job[s] == ACQUIRING -> end_by_sweep(s, DEADLINE)
        :: job[s] == RUNNING -> end_by_sweep(s, LOST)
        :: else
        fi
    }
}

/* A flow ends by itself after 31 days, and its end is told. */
inline flows_end() {
    for (s : 0 .. JOBS - 1) {
        if
        :: flow[NOW(s)] != 0 && flow[NOW(s)] < SETTLING && !IS_NOT_FOR_A_FLOW(NOW(s)) ->
            flow[NOW(s)] = ENDED; end_by_sweep(s, DEADLINE)
        :: else
        fi
    }
}

active proctype Time() {
end:
    do
    :: d_step { cancels -> cancels = 0; skip }
    :: d_step { early -> early = 0; skip }
#ifdef NO_SWEEP
    :: atomic { timeout && !QUIET -> d_step { assert(false); skip } }
#else
    :: atomic { timeout && !QUIET && rounds == 0 -> d_step { rounds = 1; sweep(); skip } }
#ifdef PROMPT
    :: atomic { timeout && !QUIET && rounds == 1 -> d_step { assert(false); skip } }
#else
    :: atomic { timeout && !QUIET && rounds == 1 -> d_step { rounds = 2; deadlines(); skip } }
    :: atomic { timeout && !QUIET && rounds == 2 -> d_step { rounds = 3; flows_end(); skip } }
    :: atomic { timeout && !QUIET && rounds == 3 -> d_step { assert(false); skip } }
#endif
#endif
    od
}

init {
    atomic {
        for (s : 0 .. SLOTS - 1) { holder[s] = (s % 2 < LIMIT_OF(s / 2) -> 0 : OFF) }
        for (s : 0 .. JOBS - 1) { to_start[s] = 1; is_new[s] = (NEED_OF(s) == 0 || ONLY_SLOTS); run Job(s) }
        for (s : 0 .. FLOWS - 1) { run Attempt(s) }
        for (s : 0 .. POOLS - 1) { run Pool(s) }
#if LOSSES + DUPS > 0
        for (s : 0 .. FLOWS - 1) { run Network(s) }
#endif
    }
}
