"""Claims and grants: what the scheduler does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from penstock.domain import jobs, leases, pools
from penstock.domain.jobs import Job, State, job_key
from penstock.domain.leases import WORKER, Lease, LeaseState, Need
from penstock.domain.pools import Claim, Pool, Slot, SlotName, SlotState, pool_key
from penstock.domain.rows import Change, Check, Create, Delete, Replace
from penstock.domain.units import STEP_WITHIN, Unit, UnitKind, UnitState
from penstock.domain.why import block, explain
from penstock.system import System
from penstock.usecases import logs, race

GRANTS = 25
"""How many grants one serving makes; if more could be made it asks to be called again."""


def acquire(on: System, job_id: str, attempt: int, step: int, token: str) -> None:
    """Claim what one step of a flow waits for. The token is answered when it is there, or never will be."""
    job = on.store.get(job_key(job_id), Job)
    needs = _needs(job, attempt, step)
    if job is None or not needs or job.cancelled_by:
        error = "Cancelled" if job and job.cancelled_by else "Stale"
        on.flows.fail(token, error, "the attempt needs nothing more")
        return
    held = race.run(on, lambda: _claim(on, job_id, attempt, step, token))
    if not held:
        on.flows.fail(token, "Stale", "the attempt needs nothing more")
    elif held[0].state is not LeaseState.WAITING:
        answer(on, held)
        for lease in held:
            if lease.state is LeaseState.GRANTED and lease.unit:
                on.queues.advance(lease.unit, step == WORKER)
    elif not on.store.get(pool_key(needs[0].pool), Pool):
        on.flows.fail(token, "Unsatisfiable", f"the site no longer has {needs[0].pool}")
    else:
        serve(on, needs[0].pool)
        _tell_if_waiting(on, job_id, held[0])


def answer(on: System, held: Sequence[Lease]) -> None:
    """Answer the step that waits for these leases, if all are ready. Answering twice is answering once."""
    if held and all(lease.state is LeaseState.READY for lease in held):
        on.flows.succeed(held[0].token)


def step_of(on: System, job_id: str, attempt: int, step: int) -> list[Lease]:
    """The leases that one step of an attempt's flow waits for."""
    found = on.store.find(f"job#{job_id}", leases.prefix(attempt), Lease)
    return [lease for lease in found if lease.step == step]


def _needs(job: Job | None, attempt: int, step: int) -> list[Need]:
    """What a step acquires, if the attempt is the job's present one and not over.

    Also while it runs: its worker's step may be told again between the hello that made it so and its answer.
    """
    if job is None or job.attempt != attempt or job.is_settled:
        return []
    return [need for need in job.needs if need.step == step]


def _claim(on: System, job_id: str, attempt: int, step: int, token: str) -> tuple[Sequence[Change], list[Lease]]:
    """The claim of a step: waiting leases and their place in the pool's queue, while the attempt still wants them."""
    job = on.store.get(job_key(job_id), Job)
    needs = _needs(job, attempt, step)
    if job is None or job.cancelled_by or not needs:
        return [], []
    held = step_of(on, job_id, attempt, step)
    if held:
        told = [replace(lease, token=token) for lease in held]
        return [Replace(was, now) for was, now in zip(held, told, strict=True) if was.token != token], told
    now = on.world.now()
    fresh = [_lease(job, need, token, now) for need in needs]
    claim = Claim(
        pool=needs[0].pool,
        job=job_id,
        attempt=attempt,
        step=step,
        count=len(needs),
        priority=job.priority,
        since=now,
    )
    return [Replace(job, jobs.acquire(job, now)), Create(claim), *map(Create, fresh)], fresh


def _lease(job: Job, need: Need, token: str, now: datetime) -> Lease:
    return Lease(
        job=job.id,
        attempt=job.attempt,
        order=need.order,
        step=need.step,
        name=need.name,
        type=need.type,
        pool=need.pool,
        state=LeaseState.WAITING,
        token=token,
        since=now,
    )


def serve(on: System, pool_name: str) -> None:
    """Grant what can be granted: the first free slots to the first claims. [QUEUE-1] [QUEUE-2]

    Both a claim and a release write first and serve after, with consistent reads: of two that race, one sees both.
    """
    for tries in range(GRANTS):
        found = _first(on, pool_name)
        if found is None:
            return
        if not _grant(on, *found):
            on.world.pause(min(tries, 4))
    on.queues.schedule({"do": "serve", "pool": pool_name})


def _first(on: System, pool_name: str) -> tuple[list[Slot], Claim] | None:
    """The first claim of a pool and the free slots for it; None while there are not enough, or it is paused."""
    pool = on.store.get(pool_key(pool_name), Pool)
    if pool is None or pool.paused:
        return None
    claims = on.store.find(pools.collection(pool_name), "wait#", Claim, limit=1)
    if not claims:
        return None
    free = on.store.find(pools.collection(pool_name), "free#", Slot, limit=claims[0].count)
    return (free, claims[0]) if len(free) == claims[0].count else None


def _grant(on: System, free: Sequence[Slot], claim: Claim) -> bool:
    """Grant free slots to a claim, all or none, or drop a claim that nobody waits with. False for a lost race."""
    job = on.store.get(job_key(claim.job), Job)
    waiting = step_of(on, claim.job, claim.attempt, claim.step)
    if job is None or not waiting or any(lease.state is not LeaseState.WAITING for lease in waiting):
        return on.store.commit([Delete(claim)])
    changes: list[Change] = [Delete(claim)]
    made = []
    for slot, lease in zip(free, waiting, strict=True):
        unit = _unit(on, lease, slot, next(need.maker for need in job.needs if need.order == lease.order))
        taken = pools.take(slot, claim, lease.order, unit.id, unit.since)
        granted = leases.grant(lease, slot.name, taken.fence, unit.id)
        changes += [*pools.move(slot, taken), Replace(lease, granted), Create(unit)]
        made.append(unit)
    if not on.store.commit(changes):
        return False
    for unit in made:
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER)
    waited = int((made[0].since - waiting[0].since).total_seconds())
    got = ", ".join(f"slot {unit.slot} (unit {unit.id})" for unit in made)
    logs.say(on, job.id, claim.attempt, f"{claim.pool}: got {got} after {waited} s")
    return True


def _unit(on: System, lease: Lease, slot: Slot, maker: str) -> Unit:
    """The unit that a granted lease will have: its id is chosen, and written, before anything is made."""
    now = on.world.now()
    is_worker = lease.order == WORKER
    return Unit(
        id=f"{'w' if is_worker else 'r'}-{on.world.ulid()}",
        is_a=UnitKind.WORKER if is_worker else UnitKind.RESOURCE,
        maker=maker,
        type=lease.type,
        state=UnitState.CREATING,
        job=lease.job,
        attempt=lease.attempt,
        order=lease.order,
        pool=slot.pool,
        slot=slot.name,
        fence=slot.fence + 1,
        since=now,
        due=now + STEP_WITHIN,
    )


def _tell_if_waiting(on: System, job_id: str, lease: Lease) -> None:
    """Tell the job's log what it waits for, once, when it was not granted at once."""
    lease_now = on.store.get(lease.key, Lease)
    job = on.store.get(job_key(job_id), Job)
    if lease_now is None or job is None or lease_now.state is not LeaseState.WAITING:
        return
    pool = on.store.get(pool_key(lease.pool), Pool)
    if pool is None:
        return
    claims = on.store.find(pools.collection(lease.pool), "wait#", Claim, limit=100)
    held = on.store.find(pools.collection(lease.pool), "held#", Slot, limit=100)
    logs.say(on, job_id, lease.attempt, explain(job, [lease_now], block(pool, held, claims, job_id)).summary)


def run(on: System, job_id: str, attempt: int, token: str) -> None:
    """Park the step of a flow that waits for the script to end; answered at once if it has ended already."""

    def decide() -> tuple[Sequence[Change], str | None]:
        job = on.store.get(job_key(job_id), Job)
        if job is None or job.attempt != attempt or job.is_settled or job.report:
            return [], "done"
        return ([Replace(job, replace(job, run_token=token))] if job.run_token != token else []), None

    if race.run(on, decide):
        on.flows.succeed(token)


def start(on: System, job_id: str) -> bool:
    """Start the flow of a queued attempt, unless the worker of the attempt before it may still run. [JOB-2]

    False when the flow was started before.
    """
    job = on.store.get(job_key(job_id), Job)
    if job is None or job.state is not State.QUEUED:
        return True
    if job.attempt > 1:
        before = on.store.find(f"job#{job_id}", leases.prefix(job.attempt - 1), Lease)
        worker = next((lease for lease in before if lease.order == WORKER), None)
        if worker and worker.state is not LeaseState.RELEASED:
            return True
    return on.flows.start(job.id, job.attempt, steps(job.needs))


def steps(needs: Sequence[Need]) -> list[int]:
    """The steps in which an attempt acquires its resources; the worker's comes after them."""
    return sorted({need.step for need in needs} - {WORKER})


def resize(on: System, pool_name: str) -> None:
    """Bring a pool's slots to what its row says, then serve it. Each step checks that the row is still the same."""
    for tries in range(race.TRIES):
        pool = on.store.get(pool_key(pool_name), Pool)
        if pool is None:
            return
        slots = _slots(on, pool_name)
        if slots is not None:
            todo = pools.fit(pool, slots)
            if not todo:
                settled = replace(pool, due=None, over=any(slot.withdrawn for slot in slots))
                if settled == pool or on.store.commit([Replace(pool, settled)]):
                    break
            for step in todo:
                on.store.commit([Check(pool), *step])
        on.world.pause(tries)
    serve(on, pool_name)


def _slots(on: System, pool_name: str) -> list[Slot] | None:
    """All slots of a pool; None when one was on the move while they were read, and so was not seen."""
    pk = pools.collection(pool_name)
    known = {row.name for row in on.store.find(pk, "name#", SlotName, limit=10_000)}
    found = {slot.name: slot for state in SlotState for slot in on.store.find(pk, f"{state}#", Slot, limit=10_000)}
    return list(found.values()) if known == set(found) else None
