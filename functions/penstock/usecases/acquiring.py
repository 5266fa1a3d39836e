"""Claims and grants: what the scheduler does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.domain import jobs, leases, pools
from penstock.domain.jobs import Job, State, job_key
from penstock.domain.leases import WORKER, Lease, LeaseState, Need, lease_key
from penstock.domain.pools import Claim, Pool, Slot, SlotName, SlotState, pool_key
from penstock.domain.rows import Change, Check, Create, Delete, Replace
from penstock.domain.units import STEP_WITHIN, Unit, UnitKind, UnitState
from penstock.domain.why import block, explain
from penstock.system import System
from penstock.usecases import logs, race

GRANTS = 25
"""How many grants one serving makes; if more could be made it asks to be called again."""


def acquire(on: System, job_id: str, attempt: int, order: int, token: str) -> None:
    """Claim what one step of a flow waits for. The token is answered when it is there, or never will be."""
    job = on.store.get(job_key(job_id), Job)
    need = _need(job, attempt, order)
    if job is None or need is None or job.cancelled_by:
        error = "Cancelled" if job and job.cancelled_by else "Stale"
        on.flows.fail(token, error, "the attempt needs nothing more")
        return
    lease = race.run(on, lambda: _claim(on, job_id, attempt, need, token))
    if lease is None:
        on.flows.fail(token, "Stale", "the attempt needs nothing more")
    elif lease.state is LeaseState.READY:
        on.flows.succeed(token)
    elif lease.state is LeaseState.GRANTED and lease.unit:
        on.queues.advance(lease.unit, order == WORKER)
    elif not on.store.get(pool_key(need.pool), Pool):
        on.flows.fail(token, "Unsatisfiable", f"the site no longer has {need.pool}")
    else:
        serve(on, need.pool)
        _tell_if_waiting(on, job_id, lease)


def _need(job: Job | None, attempt: int, order: int) -> Need | None:
    """What an attempt needs, if it is the job's present one and still acquiring."""
    if job is None or job.attempt != attempt or job.state not in (State.QUEUED, State.ACQUIRING):
        return None
    return next((need for need in job.needs if need.order == order), None)


def _claim(on: System, job_id: str, attempt: int, need: Need, token: str) -> tuple[Sequence[Change], Lease | None]:
    """The claim of a need: a waiting lease and its place in the pool's queue, while the attempt still wants it."""
    job = on.store.get(job_key(job_id), Job)
    if job is None or job.cancelled_by or _need(job, attempt, need.order) is None:
        return [], None
    lease = on.store.get(lease_key(job_id, attempt, need.order), Lease)
    if lease and lease.token == token:
        return [], lease
    if lease:
        told = replace(lease, token=token)
        return [Replace(lease, told)], told
    now = on.world.now()
    fresh = Lease(
        job=job_id, attempt=attempt, order=need.order, name=need.name, type=need.type, pool=need.pool,
        state=LeaseState.WAITING, token=token, since=now,
    )  # fmt: skip
    claim = Claim(pool=need.pool, job=job_id, attempt=attempt, order=need.order, priority=job.priority, since=now)
    begun: Change = Replace(job, jobs.acquire(job, now)) if job.state is State.QUEUED else Check(job)
    return [begun, Create(fresh), Create(claim)], fresh


def serve(on: System, pool_name: str) -> None:
    """Grant what can be granted: the first free slots to the first claims. [QUEUE-1]

    Both a claim and a release write first and serve after, with consistent reads: of two that race, one sees both.
    """
    for tries in range(GRANTS):
        pair = _next_pair(on, pool_name)
        if pair is None:
            return
        if not _grant(on, *pair):
            on.world.pause(min(tries, 4))
    on.queues.schedule({"do": "serve", "pool": pool_name})


def _next_pair(on: System, pool_name: str) -> tuple[Slot, Claim] | None:
    pool = on.store.get(pool_key(pool_name), Pool)
    if pool is None or pool.paused:
        return None
    claims = on.store.find(pools.collection(pool_name), "wait#", Claim, limit=1)
    if not claims:
        return None
    free = on.store.find(pools.collection(pool_name), "free#", Slot, limit=1)
    return next(iter(pools.pairs(pool, free, claims)), None)


def _grant(on: System, slot: Slot, claim: Claim) -> bool:
    """Grant a free slot to a claim, or drop a claim that nobody waits with. False when somebody else was first."""
    lease = on.store.get(lease_key(claim.job, claim.attempt, claim.order), Lease)
    if lease is None or lease.state is not LeaseState.WAITING:
        return on.store.commit([Delete(claim)])
    job = on.store.get(job_key(claim.job), Job)
    if job is None:
        return on.store.commit([Delete(claim)])
    unit = _unit(on, lease, slot, next(need.maker for need in job.needs if need.order == lease.order))
    taken = pools.take(slot, claim, unit.id, unit.since)
    granted = leases.grant(lease, slot.name, taken.fence, unit.id)
    changes = [*pools.move(slot, taken), Delete(claim), Replace(lease, granted), Create(unit)]
    if not on.store.commit(changes):
        return False
    on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER)
    waited = int((unit.since - lease.since).total_seconds())
    logs.say(on, job.id, claim.attempt, f"{slot.pool}: got slot {slot.name} after {waited} s (unit {unit.id})")
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


def start(on: System, job_id: str) -> None:
    """Start the flow of a queued attempt, unless what the attempt before it used is not put back yet. [JOB-2]"""
    job = on.store.get(job_key(job_id), Job)
    if job is None or job.state is not State.QUEUED:
        return
    if job.attempt > 1:
        before = on.store.find(f"job#{job_id}", leases.prefix(job.attempt - 1), Lease)
        worker = next((lease for lease in before if lease.order == WORKER), None)
        if worker and worker.state is not LeaseState.RELEASED:
            return
    on.flows.start(job.id, job.attempt, [need.order for need in job.needs if need.order != WORKER])


def resize(on: System, pool_name: str) -> None:
    """Bring a pool's slots to what its row says, then serve it. Each step checks that the row is still the same."""
    for tries in range(race.TRIES):
        pool = on.store.get(pool_key(pool_name), Pool)
        if pool is None:
            return
        slots = _slots(on, pool_name)
        if slots is not None:
            steps = pools.fit(pool, slots)
            if not steps:
                if pool.due:
                    on.store.commit([Replace(pool, replace(pool, due=None))])
                break
            for step in steps:
                on.store.commit([Check(pool), *step])
        on.world.pause(tries)
    serve(on, pool_name)


def _slots(on: System, pool_name: str) -> list[Slot] | None:
    """All slots of a pool; None when one was on the move while they were read, and so was not seen."""
    pk = pools.collection(pool_name)
    known = {row.name for row in on.store.find(pk, "name#", SlotName, limit=10_000)}
    found = {slot.name: slot for state in SlotState for slot in on.store.find(pk, f"{state}#", Slot, limit=10_000)}
    return list(found.values()) if known == set(found) else None
