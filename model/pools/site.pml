/* Who takes the steps: servers, resizers, releases, jobs, the operator, the network and the sweep. As in the first
 * model, a process has one control state, and every option below may be interleaved with every other. */

#include "rows.pml"

inline moved() { rounds = 0; }

/* A row was written: who read it before, has read another one. */
inline wrote_claim(c, p) {
    for (w : 0 .. SERVERS - 1) { fresh_queue[w * POOLS + p] = fresh_queue[w * POOLS + p] & ~BIT(c) }
}

inline wrote_slot(s0) {
    for (w : 0 .. PLACES - 1) {
        if :: saw_free[w * 2 + POOL_OF(s0)] & BIT(s0 % 2) -> fresh_look[w] = 0 :: else fi
    }
    for (w : 0 .. SERVERS - 1) {
        fresh_free[w * POOLS + POOL_OF(s0)] = fresh_free[w * POOLS + POOL_OF(s0)] & ~BIT(s0 % 2)
    }
#ifdef APART
    wrote_part(s0);
#endif
#if CHANGES
    for (w : 0 .. RESIZERS - 1) {
        if :: POOL_OF(s0) == SET_POOL -> fresh_slot[w * 2 + s0 % 2] = 0 :: else fi
    }
#endif
}

/* A grant names the row of an amount, and that of a pool of which it takes a thing as a whole, or parts of a host. */
#ifdef WHOLE_UNCHECKED
#define IS_CHECKED(c, p) (IS_AMOUNT(p) && COUNT(c, p))
#else
#define IS_CHECKED(c, p) ((IS_AMOUNT(p) && COUNT(c, p)) || IS_WHOLE(c, p) || (IS_APART(p) && COUNT(c, p)))
#endif

inline wrote_pool(p) {
    for (w : 0 .. PLACES - 1) { if :: IS_CHECKED(w, p) -> fresh_look[w] = 0 :: else fi }
    for (w : 0 .. SERVERS - 1) { fresh_pool[w * POOLS + p] = 0 }
#if CHANGES
    for (w : 0 .. RESIZERS - 1) { if :: p == SET_POOL -> fresh_limit[w] = 0 :: else fi }
#endif
}

/* The flow: a job's last step follows its first. */
inline go_on(c) {
    if :: (c) % 2 == 0 -> to_acquire[(c) + 1] = 1 :: else fi
}

inline begin(j) { if :: ALL_OF((j) * 2) -> to_acquire[(j) * 2] = 1 :: else -> to_acquire[(j) * 2 + 1] = 1 fi }

inline come_again(c) {
#ifdef COME_AGAIN
    if
    :: JOB_OF(c) > 0 && IS_OVER(JOB_OF(c) * 2) ->
        lease[LAST_OF(JOB_OF(c))] = 0; lease[JOB_OF(c) * 2] = 0; ended[JOB_OF(c)] = 0; begin(JOB_OF(c))
    :: else
    fi
#else
    skip
#endif
}

#include "choices.pml"
#include "parts.pml"
#include "properties.pml"
#include "queues.pml"
#include "limits.pml"
#include "releases.pml"

#define CALM (busy < BUSY)
inline begins(what) { what = 1; busy++; }
inline ends(what) { what = 0; busy--; }
/* After a fault, the minutes until the next sweep are counted anew. */
inline crash() { crashes--; rounds = 0 }
inline lose(m0) { losses--; m0 = 0; rounds = 0 }

/* One of the two handlers that may serve a pool at once. Its steps: 1 the pool's queue, then 2 the queue, 3 the slots
 * and 4 the row of each pool that it needs to look at, 5 the grant. Where somebody may want a thing for itself, or parts of a host, 3
 * is the pool's row, 6 the slots, 7 who has any, and 4 the row again, or all of that if the row has changed. */
#define IS_WANTED(x, p) (((seen_queue[AT(x, OF_POOL(x))] & BIT(0)) && COUNT(0, p)) || \
    ((seen_queue[AT(x, OF_POOL(x))] & BIT(1)) && COUNT(1, p)) || \
    ((seen_queue[AT(x, OF_POOL(x))] & BIT(2)) && COUNT(2, p)) || \
    ((seen_queue[AT(x, OF_POOL(x))] & BIT(3)) && COUNT(3, p)) || \
    (JOBS > 2 && (seen_queue[AT(x, OF_POOL(x))] & BIT(4)) && COUNT(4, p)) || \
    (JOBS > 2 && (seen_queue[AT(x, OF_POOL(x))] & BIT(5)) && COUNT(5, p)) || \
    (JOBS > 3 && (seen_queue[AT(x, OF_POOL(x))] & BIT(6)) && COUNT(6, p)) || \
    (JOBS > 3 && (seen_queue[AT(x, OF_POOL(x))] & BIT(7)) && COUNT(7, p)))

inline look_on(x) {
    do
    :: at_pool[x] < POOLS && !IS_WANTED(x, at_pool[x]) -> at_pool[x]++
    :: else -> break
    od;
    if
    :: at_pool[x] < POOLS -> serving[x] = 2
    :: else ->
        at_pool[x] = 0;
        pick(x, OF_POOL(x));
        if :: chosen[x] -> serving[x] = 5 :: else -> forget(x); ends(serving[x]) fi
    fi
}

proctype Server(byte x) {
end:
    do
    :: d_step { to_serve[OF_POOL(x)] && !serving[x] && (x % 2 == 0 || serving[x - 1]) && CALM ->
        to_serve[OF_POOL(x)] = 0; begins(serving[x]); skip }
    :: d_step { serving[x] == 1 -> next_claim(x, OF_POOL(x));
        if :: seen_queue[AT(x, OF_POOL(x))] -> at_pool[x] = 0; look_on(x) :: else -> ends(serving[x]) fi; skip }
    :: d_step { serving[x] == 2 ->
        if :: at_pool[x] != OF_POOL(x) -> next_claim(x, at_pool[x]) :: else fi;
        serving[x] = 3; skip }
#ifdef ONE_THING
    :: d_step { serving[x] == 3 && IS_ONE_THING(at_pool[x]) -> fresh_pool[AT(x, A)] = 1; serving[x] = 6; skip }
    :: d_step { serving[x] == 6 -> next_slot(x, A); serving[x] = 7; skip }
    :: d_step { serving[x] == 7 -> next_held(x, A); serving[x] = 4; skip }
    :: d_step { serving[x] == 4 && READS_AGAIN(x, at_pool[x]) -> serving[x] = 3; skip }
#endif
    :: d_step { serving[x] == 3 && !IS_ONE_THING(at_pool[x]) ->
        if :: !IS_AMOUNT(at_pool[x]) -> next_slot(x, at_pool[x]) :: else fi;
        serving[x] = 4; skip }
    :: d_step { serving[x] == 4 && !READS_AGAIN(x, at_pool[x]) ->
        next_pool(x, at_pool[x]); at_pool[x]++; look_on(x); skip }
#if defined(CHOICES) || defined(APART)
    :: d_step { serving[x] == 4 && !READS_AGAIN(x, at_pool[x]) -> second = 1; next_pool(x, at_pool[x]); at_pool[x]++; look_on(x); second = 0; skip }
#endif
    :: d_step { serving[x] == 5 -> grant(x, 1); forget(x); serving[x] = 1; skip }
    :: d_step { serving[x] == 5 && crashes -> crash(); grant(x, 0); forget(x); ends(serving[x]); skip }
    od
}

/* What happens to one step of a job. A unit is put back after those of later steps. */
#define MAY_GO(c) ((c) % 2 || (lease[(c) + 1] != RELEASING && lease[(c) + 1] != GRANTED))

proctype Step(byte c) {
end:
    do
    :: d_step { to_acquire[c] && !looking[c] && !lease[c] && CALM ->
        to_acquire[c] = 0; begins(looking[c]); fresh_look[c] = 1; look_further(c); skip }
    :: d_step { looking[c] && looking[c] <= POOLS -> look(c, looking[c] - 1); look_further(c); skip }
#if defined(CHOICES) || defined(ONE_THING)
    :: d_step { looking[c] && looking[c] <= POOLS -> second = 1; look(c, looking[c] - 1); look_further(c); second = 0; skip }
#endif
    :: d_step { looking[c] > POOLS -> grant_at_once(c);
        if :: !lease[c] -> acquire(c, 1) :: else fi; stop_looking(c); skip }
    :: d_step { crashes && looking[c] -> crash(); stop_looking(c); to_acquire[c] = 1; skip }
    :: d_step { to_acquire[c] -> to_acquire[c] = 0; acquire(c, 1); skip }
    :: d_step { crashes && to_acquire[c] -> crash(); acquire(c, 0); skip }
    :: d_step { lease[c] == RELEASING && MAY_GO(c) -> release(c, 1); skip }
    :: d_step { crashes && lease[c] == RELEASING && MAY_GO(c) -> crash(); release(c, 0); skip }
    od
}

proctype Job(byte j) {
end:
    do
    :: d_step { !ended[j] && lease[LAST_OF(j)] == GRANTED -> check_served(); settle(j, 1); skip }
#ifdef SETTLE_READS_FIRST
    :: d_step { cancels && !ended[j] && !saw_waiting -> cancels--; saw_waiting = 128; read_waiting(j); saw_job = j; skip }
    :: d_step { saw_waiting && saw_job == j -> settle(j, 1); saw_waiting = 0; skip }
#else
    :: d_step { cancels && !ended[j] -> cancels--; settle(j, 1); skip }
#endif
    :: d_step { cancels && crashes && !ended[j] -> cancels--; crash(); settle(j, 0); skip }
    od
}

/* The steps of a resize: 1 the row, 2 to 4 the slots, 5 and 6 a commit each, what goes off first, 7 that it is done. */
#define NEXT_SLOT(r) (todo[IN(r, 0)] && (todo[IN(r, 0)] == GO_OFF || todo[IN(r, 1)] != GO_OFF) -> 5 : \
    (todo[IN(r, 1)] -> 6 : 7))
proctype Resizer(byte r) {
end:
    do
    :: d_step { to_resize[SET_POOL] && !resizing[r] && (r == 0 || resizing[0]) && CALM ->
        to_resize[SET_POOL] = 0; begins(resizing[r]); skip }
    :: d_step { resizing[r] == 1 -> read_limit(r, SET_POOL); resizing[r] = (IS_AMOUNT(SET_POOL) -> 7 : 2); skip }
    :: d_step { resizing[r] == 2 -> look_slots(r, SET_POOL, FREE); resizing[r] = 3; skip }
    :: d_step { resizing[r] == 3 -> look_slots(r, SET_POOL, HELD_BY(0)); resizing[r] = 4; skip }
    :: d_step { resizing[r] == 4 -> look_slots(r, SET_POOL, OFF);
        if
        :: !seen_slot[IN(r, 0)] || !seen_slot[IN(r, 1)] -> forget_slots(r); resizing[r] = 1
        :: else -> fit(r);
            resizing[r] = NEXT_SLOT(r)
        fi; skip }
    :: d_step { resizing[r] == 5 || resizing[r] == 6 -> resize_slot(r, SET_POOL, (resizing[r] - 5));
        resizing[r] = NEXT_SLOT(r);
        if :: resizing[r] == 7 -> forget_slots(r); resizing[r] = 1 :: else fi; skip }
    :: d_step { resizing[r] == 7 -> resize_done(r, SET_POOL); forget_slots(r);
        if :: w -> to_serve[SET_POOL] = 1; serve_beside(SET_POOL); ends(resizing[r]) :: else -> resizing[r] = 1 fi; skip }
    :: d_step { resizing[r] == 7 && crashes -> crash(); resize_done(r, SET_POOL); forget_slots(r); ends(resizing[r]); skip }
    :: d_step { resizing[r] && crashes -> crash(); forget_slots(r); ends(resizing[r]); skip }
    od
}

#define NEXT_LIMIT (changes == 0 -> SET1 : SET2)

proctype Operator() {
end:
    do
    :: d_step { changes < CHANGES -> n = NEXT_LIMIT; changes++; set_limit(SET_POOL, n, 1); skip }
    :: d_step { crashes && changes < CHANGES -> n = NEXT_LIMIT; changes++; crash(); set_limit(SET_POOL, n, 0); skip }
    :: d_step { pauses && !paused[SET_POOL] -> pause(SET_POOL, 1); skip }
    :: d_step { crashes && pauses && !paused[SET_POOL] -> crash(); pause(SET_POOL, 0); skip }
    :: d_step { paused[SET_POOL] -> pauses--; resume(SET_POOL, 1); skip }
#ifdef TOUCHES
    :: d_step { touches -> touches--; wrote_pool(SET_POOL); skip }
#endif
    :: d_step { crashes && paused[SET_POOL] -> pauses--; crash(); resume(SET_POOL, 0); skip }
    od
}

proctype Network() {
end:
    do
    :: d_step { losses && to_serve[A] -> lose(to_serve[A]); skip }
    :: d_step { losses && to_serve[B] -> lose(to_serve[B]); skip }
    :: d_step { losses && to_serve[Q] -> lose(to_serve[Q]); skip }
    :: d_step { losses && to_resize[SET_POOL] -> lose(to_resize[SET_POOL]); skip }
    od
}

/* The sweep runs when all else has come to rest. */
inline sweep() {
    for (i : 0 .. POOLS - 1) {
        if :: queue[i] -> to_serve[i] = 1 :: else fi;
        if :: due[i] -> to_resize[i] = 1 :: else fi
    }
}

proctype Time() {
end:
    do
    :: d_step { cancels -> cancels = 0; skip }
#ifdef NO_SWEEP
    :: atomic { timeout && !QUIET -> d_step { assert(false); skip } }
#else
    :: atomic { timeout && !QUIET && rounds == 0 -> d_step { rounds = 1; sweep(); skip } }
    :: atomic { timeout && !QUIET && rounds == 1 -> d_step { assert(false); skip } }
#endif
    od
}

#define IS_TAKEN(p) (COUNT(0, p) || COUNT(1, p) || COUNT(2, p) || COUNT(3, p) || \
    (JOBS > 2 && (COUNT(4, p) || COUNT(5, p))) || (JOBS > 3 && (COUNT(6, p) || COUNT(7, p))))

init {
    atomic {
        limit[A] = LIMIT_A; limit[B] = LIMIT_B; limit[Q] = LIMIT_Q;
        for (s : 0 .. SLOTS - 1) { slot[s] = (s % 2 < limit[POOL_OF(s)] -> FREE : OFF) }
        for (s : 0 .. JOBS - 1) { begin(s); run Job(s) }
        for (s : 0 .. PLACES - 1) { if :: ALL_OF(s) -> run Step(s) :: else fi }
        for (s : 0 .. SERVERS - 1) { if :: s % 2 < PER_POOL && IS_TAKEN(OF_POOL(s)) -> run Server(s) :: else fi }
        if :: CHANGES > 0 -> run Resizer(0); run Resizer(1) :: else fi;
#ifdef TOUCHES
        run Operator();
#else
        if :: CHANGES + PAUSES > 0 -> run Operator() :: else fi;
#endif
        if :: LOSSES > 0 -> run Network() :: else fi;
#ifndef LTL
        run Time()
#endif
    }
}
