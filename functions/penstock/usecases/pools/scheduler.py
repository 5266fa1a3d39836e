"""Claims and grants: who gets which slots, and when. [QUEUE-1] [QUEUE-2]

The schedule function calls `acquire` and `serve` for messages; whatever frees slots calls `serve`.
However large a pool or long a queue, a grant reads no more than a bounded part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from penstock import transaction
from penstock.domain import metrics
from penstock.domain.jobs import jobs, unused
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.logs.logs import DETAIL
from penstock.domain.pools import grants, leases, pools
from penstock.domain.pools.grants import WINDOW, Allocator, Pick, Stock
from penstock.domain.pools.leases import WORKER, Lease, LeaseState, Need
from penstock.domain.pools.pools import Claim, Pool, Slot, pool_key
from penstock.domain.pools.why import explain
from penstock.domain.probes import factory_test
from penstock.domain.units import units
from penstock.domain.units.units import STEP_WITHIN, Creation, Unit, UnitKind, UnitLease, UnitState, unit_key
from penstock.kernel import limits
from penstock.kernel.rows import Change, Create, Delete, Replace
from penstock.system import System
from penstock.usecases.jobs.flow import answer_step, leases_of_step
from penstock.usecases.logs import logs
from penstock.usecases.pools import forecast
from penstock.usecases.telemetry import counters
from penstock.usecases.units import prewarm, retire
from penstock.usecases.users import privileges

IDLE = 100
"""How many idle slots of a pool are read."""

WARM = 100
"""Among how many warm slots one is chosen whose unit is ready already."""

GRANTS = 25
"""How many grants one call makes. If more are possible, it schedules another call."""


def acquire(on: System, job_id: str, attempt: int, step: int, token: str) -> None:
    """Claim what one step of a flow needs. The step is answered when it is granted and ready, or never will be."""
    job = on.store.get(job_key(job_id), Job)
    needs = _needs(job, attempt, step)
    if job is None or not needs or job.cancellation.cancelled_by:
        error = "Cancelled" if job and job.cancellation.cancelled_by else "Stale"
        on.flows.fail(token, error, "the attempt needs nothing more")
        return
    held = transaction.run(on, lambda: _claim_changes(on, job_id, attempt, step, token))
    if not held:
        on.flows.fail(token, "Stale", "the attempt needs nothing more")
    elif held[0].state is not LeaseState.WAITING:
        answer_step(on, held)
        for lease in held:
            if lease.state is LeaseState.GRANTED and lease.unit:
                on.queues.advance(lease.unit, step == WORKER)
    elif not on.store.get(pool_key(needs[0].pool), Pool):
        on.flows.fail(token, "Unsatisfiable", f"the site no longer has {needs[0].pool}")
    else:
        serve(on, needs[0].pool)
        _serve_overtaken(on, grants.claims(job, step, on.world.now()))
        _log_if_waiting(on, job_id, held[0])


def _needs(job: Job | None, attempt: int, step: int) -> list[Need]:
    """What a step acquires, if the attempt is the job's present one and not over.

    Also while it runs: the worker's step may be repeated between the hello that started the job and its answer.
    """
    if job is None or job.attempt != attempt or job.is_settled:
        return []
    return [need for need in job.request.needs if need.step == step]


def _claim_changes(
    on: System, job_id: str, attempt: int, step: int, token: str
) -> tuple[Sequence[Change], list[Lease]]:
    """The claim of a step: waiting leases, and their places in the pools' queues, while the attempt needs them."""
    job = on.store.get(job_key(job_id), Job)
    needs = _needs(job, attempt, step)
    if job is None or job.cancellation.cancelled_by or not needs:
        return [], []
    every = on.store.find(f"job#{job_id}", leases.prefix(attempt), Lease)
    held = [lease for lease in every if lease.step == step]
    if held:
        renewed = [replace(lease, token=token) for lease in held]
        return [Replace(was, now) for was, now in zip(held, renewed, strict=True) if was.token != token], renewed
    now = on.world.now()
    fresh = [_lease(job, need, token, now) for need in needs]
    claims = grants.claims(job, step, now)
    claimed = jobs.acquire(job, now)
    if claimed.may_give_back:
        claimed = replace(claimed, due=unused.next_check(claimed, [*every, *fresh]))
    return [Replace(job, claimed), *map(Create, claims), *map(Create, fresh)], fresh


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


def _serve_overtaken(on: System, claims: Sequence[Claim]) -> None:
    """Serve the queues in which a new claim is not last, except for its own pool, which is served anyway.

    Nothing is reserved there any more for claims that must wait until the new one had its turn. [QUEUE-1]
    """
    for claim in claims[1:]:
        waiting = on.store.find(pools.collection(claim.pool), "wait#", Claim, limit=WINDOW)
        if any(other.key > claim.key for other in waiting):
            on.queues.schedule({"do": "serve", "pool": claim.pool})


def _log_if_waiting(on: System, job_id: str, lease: Lease) -> None:
    """Write into the job's log what it waits for, once, if it was not granted at once."""
    lease_now = on.store.get(lease.key, Lease)
    job = on.store.get(job_key(job_id), Job)
    if lease_now is None or job is None or lease_now.state is not LeaseState.WAITING:
        return
    blocked = forecast.block_of_step(on, job, lease.step)
    if blocked:
        logs.append(on, job_id, lease.attempt, explain(job, [lease_now], blocked).summary)


def serve(on: System, pool_name: str) -> None:
    """Grant what can be granted to those who wait for a pool. [QUEUE-1] [QUEUE-2]

    A claim and a release both write first and serve after, with consistent reads. So of two that race, one sees both.
    """
    left: dict[str, None] = {}
    for tries in range(GRANTS):
        stocks = read_stocks(on, pool_name)
        found = grants.pick(pool_name, stocks) if stocks else None
        if found is None:
            evict(on, pool_name, stocks)
            if not stocks and _has_min_warm(on, pool_name):
                prewarm.fill(on, pool_name)
            break
        if _grant(on, found, stocks):
            left |= dict.fromkeys(name for name in found.rows if name != pool_name)
        else:
            on.world.pause(min(tries, 4))
    else:
        left[pool_name] = None
    _serve_waiting(on, left)


def _has_min_warm(on: System, pool_name: str) -> bool:
    """Whether units of a pool are made ahead of need."""
    pool = on.store.get(pool_key(pool_name), Pool)
    return pool is not None and pool.min_warm > 0


def _grant(on: System, found: Pick, stocks: Mapping[str, Stock]) -> bool:
    """Grant a claim in all its pools at once, or drop one that no longer waits. False for a lost race. [SLOT-2]

    What needs a privilege is granted only while the owner has it. [SEC-2]
    """
    claim = next(iter(found.rows.values()))
    job = on.store.get(job_key(claim.job), Job)
    waiting = leases_of_step(on, claim.job, claim.attempt, claim.step)
    dropped: list[Change] = [Delete(row) for row in found.rows.values()]
    if job is None or not waiting or any(lease.state is not LeaseState.WAITING for lease in waiting):
        return on.store.commit(dropped)
    wanted = job.privileges_of(claim.step)
    why, owner = privileges.check_owner(on, job.owner, wanted) if wanted else (None, [])
    if why:
        privileges.end_waiting(on, job.id, why)
        return on.store.commit(dropped)
    passed = [Replace(other, replace(other, overtaken=other.overtaken + 1)) for other in found.overtaken]
    granted, given = _grant_changes(on, job, claim, waiting, stocks)
    changes = [*dropped, *passed, *granted, *owner]
    if len(changes) > limits.TRANSACTION_ITEMS:
        privileges.end_waiting(on, job.id, _too_many(claim, len(changes)))
        return on.store.commit(dropped)
    if not given or not on.store.commit(changes):
        return False
    claim_granted(on, claim, given, waiting, stocks)
    return True


def _too_many(claim: Claim, rows: int) -> str:
    """Why a claim can never be granted, although its job was accepted: by an older version, which counted otherwise."""
    most = limits.TRANSACTION_ITEMS
    return f"{claim.pool}: to grant all that the job wants at once takes {rows} rows, and a commit has room for {most}"


def _grant_changes(
    on: System, job: Job, claim: Claim, waiting: Sequence[Lease], stocks: Mapping[str, Stock]
) -> tuple[list[Change], list[Unit]]:
    """The changes that give every lease of a step a unit, and these units; none if a warm unit proved unfit."""
    hand = Allocator(claim, stocks)
    changes: list[Change] = []
    given: list[Unit] = []
    for lease in waiting:
        need = next(need for need in job.request.needs if need.order == lease.order)
        warm = hand.warm(need.pool)
        unit = _assign_warm(on, hand, warm, need) if warm else hand.order(_order_unit(on, job, lease, need), need)
        if unit is None:
            return [], []
        changes.append(Replace(lease, leases.grant(lease, unit.lease.slot, unit.lease.fence, unit.id, unit.since)))
        given.append(unit)
    return [*changes, *hand.changes()], given


def _assign_warm(on: System, hand: Allocator, warm: Slot, need: Need) -> Unit | None:
    """A warm unit for a need. One of another factory, or with other quotas, is destroyed instead."""
    unit = on.store.get(unit_key(warm.unit or ""), Unit)
    if unit is None or unit.state is not UnitState.IDLE or units.is_held(unit, on.world.now()):  # [UNIT-3]
        return None
    others = retire.slots_of(on, unit)[1:]
    now = on.world.now()
    is_late = unit.creation.made and units.is_due(unit, now)
    if unit.maker != need.maker or pools.amounts(others) != need.uses or is_late:
        retire.retire(on, unit.id, "it is not what the site now says, or not heard of any more")
        return None
    return hand.over(unit, warm, others, need.order, now)


def _order_unit(on: System, job: Job, lease: Lease, need: Need) -> Unit:
    unit = _new_unit(on, lease, need.maker)
    tested = job.provenance.proves
    return factory_test.ordered(unit, tested, job.owner, on.world.now()) if tested else unit


def _new_unit(on: System, lease: Lease, maker: str) -> Unit:
    """The unit of a granted lease: its id is chosen and written before anything is made."""
    now = on.world.now()
    is_worker = lease.order == WORKER
    ordered = Unit(
        id=f"{'w' if is_worker else 'r'}-{on.world.ulid()}",
        is_a=UnitKind.WORKER if is_worker else UnitKind.RESOURCE,
        maker=maker,
        type=lease.type,
        state=UnitState.CREATING,
        lease=UnitLease(job=lease.job, attempt=lease.attempt, order=lease.order, pool=lease.pool, slot="", fence=0),
        since=now,
        creation=Creation(born=now),
        due=now + STEP_WITHIN,
    )
    return units.add_entry(ordered, now, f"ordered from {maker} for job {lease.job}, attempt {lease.attempt}")


def _serve_waiting(on: System, left: Iterable[str]) -> None:
    """A granted claim left all its queues: what was reserved for it there may be granted to others. [QUEUE-1]

    Who waits is read after the grant: a claim that came just before it, and was behind it, would not be served
    otherwise.
    """
    for name in left:
        if on.store.find(pools.collection(name), "wait#", Claim, limit=1):
            on.queues.schedule({"do": "serve", "pool": name})


def claim_granted(
    on: System, claim: Claim, given: Sequence[Unit], waiting: Sequence[Lease], stocks: Mapping[str, Stock]
) -> None:
    """What follows once a claim is granted, in order: its units are made or prepared, counted, and logged."""
    for unit in given:
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER)
    ready = {slot.unit for stock in stocks.values() for slot in stock.warm}
    warm = {unit.id for unit in given if unit.id in ready}
    counters.claim_granted(on, given, waiting, warm)
    waited = int((given[0].since - waiting[0].since).total_seconds())
    got = ", ".join(f"slot {unit.lease.slot} ({'warm ' * (unit.id in warm)}unit {unit.id})" for unit in given)
    logs.append(on, claim.job, claim.attempt, f"{claim.pool}: got {got} after {waited} s", DETAIL)


def evict(on: System, pool_name: str, stocks: Mapping[str, Stock]) -> None:
    """Have idle units destroyed if nothing else keeps a claim waiting. It is granted when they are gone. [QUEUE-1]"""
    idle = {name: on.store.find(pools.collection(name), "idle#", Slot, limit=IDLE) for name in stocks}
    if any(idle.values()) or any(stock.warm for stock in stocks.values()):
        known = {name: replace(stock, idle=idle[name]) for name, stock in stocks.items()}
        for unit in grants.units_to_evict(pool_name, known):
            was_idle = retire.retire(on, unit, "it made room for others")
            on.metrics.add(metrics.EVICTIONS, int(was_idle), pool=pool_name)


def serve_other_queues(on: System, pool_name: str) -> None:
    """Serve the other queues of those who wait for a pool that was paused or lowered.

    Nothing is reserved there any more for claims that cannot be granted now: others may get it. [QUEUE-1]
    """
    waiting = on.store.find(pools.collection(pool_name), "wait#", Claim, limit=WINDOW)
    for name in dict.fromkeys(name for claim in waiting for name in claim.pools):
        if name != pool_name:
            on.queues.schedule({"do": "serve", "pool": name})


def read_stocks(on: System, pool_name: str) -> dict[str, Stock]:
    """What a pool has, and what the other pools have that its claims want as well. Empty if nobody waits.

    Of each pool at most WINDOW claims, and as many free slots as these want together. Where slots are reserved for one
    of them, also what is idle, and the rows of the other pools that decide whether it is that claim's turn.
    """
    claims = on.store.find(pools.collection(pool_name), "wait#", Claim, limit=WINDOW)
    found: dict[str, Stock] = {}
    for name in dict.fromkeys(name for claim in claims for name in claim.pools):
        pool = on.store.get(pool_key(name), Pool)
        if pool is not None:
            found[name] = _stock(on, pool, claims if name == pool_name else None)
    kept = [claim for stock in found.values() for claim in grants.reserved_claims(stock.claims)]
    for name in dict.fromkeys(name for claim in kept for name in claim.pools):
        pool = None if name in found else on.store.get(pool_key(name), Pool)
        if pool is not None:
            found[name] = Stock(pool, ())
    return found


def _stock(on: System, pool: Pool, claims: Sequence[Claim] | None) -> Stock:
    """What one pool has, and who waits for it."""
    pk = pools.collection(pool.name)
    queue = on.store.find(pk, "wait#", Claim, limit=WINDOW) if claims is None else claims
    most = 0 if pool.is_amount or pool.paused else sum(claim.count for claim in queue)
    cold = on.store.find(pk, "free#cold#", Slot, limit=most) if most else []
    warm = _warm(on, pool, most) if most and pool.warm else []
    twice = {slot.name for slot in warm}  # got a unit between the two reads, while nobody waited
    free = [slot for slot in cold if slot.name not in twice]
    idle = on.store.find(pk, "idle#", Slot, limit=IDLE) if grants.reserved_claims(queue) else []
    return Stock(pool, queue, free, warm, idle)


def _warm(on: System, pool: Pool, most: int) -> list[Slot]:
    """Slots that carry a unit; where units are made ahead of need, those first whose unit is ready."""
    limit = max(most, WARM) if pool.min_warm else most
    found = on.store.find(pools.collection(pool.name), "free#warm#", Slot, limit=limit)
    return sorted(found, key=lambda slot: slot.since is None)[:most]
