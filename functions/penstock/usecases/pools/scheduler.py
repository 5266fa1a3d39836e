"""Claims: a step gets what it needs at once, or waits in its queues; and who asks that pools are served. [QUEUE-1]

The schedule function calls `acquire` for messages; what accepts a job calls `claim_with_job` and `granted_at_once`;
whatever gives something back calls `freed`. penstock.usecases.pools.serving grants those who wait what they wait for.
However large a pool or long a queue, no more than a bounded part of it is read.

Both grant in the same way, which stands here: what pools have, the changes that give leases their units, and what
follows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from itertools import count, groupby

from penstock.domain import metrics
from penstock.domain.jobs import bare_leases, jobs, unused
from penstock.domain.jobs.jobs import Job, State, job_key
from penstock.domain.logs.logs import DETAIL
from penstock.domain.pools import grants, pools
from penstock.domain.pools.grants import Allocator, Pick, Stock
from penstock.domain.pools.pools import (
    WORKER,
    Claim,
    Lease,
    LeaseState,
    Need,
    Pool,
    Serves,
    Slot,
    SlotState,
    Warm,
    pool_key,
)
from penstock.domain.pools.why import explain
from penstock.domain.probes import factory_test
from penstock.domain.units import units
from penstock.domain.units.units import (
    STEP_WITHIN,
    Creation,
    Unit,
    UnitKind,
    UnitLease,
    UnitState,
    format_time,
    unit_key,
)
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Create, Replace, Row, exact_look
from penstock.listings import every_of
from penstock.system import System, current_site, measure, transact
from penstock.usecases.jobs import flow
from penstock.usecases.jobs.flow import answer_step, slots_of
from penstock.usecases.logs import logs
from penstock.usecases.pools import forecast
from penstock.usecases.pools.forecast import first_waiting
from penstock.usecases.units import prewarm, retire
from penstock.usecases.users import privileges

DIRECT_TRIES = 6
"""How often a new claim tries to be granted at once. After that many lost races it waits in its queues, and is granted
by whoever serves them.
"""


@dataclass(frozen=True)
class Claimed:
    """What came of a step's claim: its leases, and the units of those that were granted at once.

    `stale` is the flow's error if the attempt needs nothing more. `stocks`: what the claim's pools had. `begun`: it is
    a lease without a job, which has everything; `is_repeated` if that was so before.
    """

    leases: Sequence[Lease] = ()
    claims: Sequence[Claim] = ()
    given: Sequence[Unit] = ()
    stocks: Mapping[str, Stock] = field(default_factory=dict)
    stale: str = ""
    begun: Job | None = None
    is_repeated: bool = False


def acquire(on: System, job_id: str, attempt: int, step: int, token: str) -> None:
    """Claim what one step of a flow needs. The step is answered when it is granted and ready, or never will be."""
    tries = count()
    claimed = transact(
        on, lambda: _claim_changes(on, job_id, attempt, step, token, may_grant=next(tries) < DIRECT_TRIES)
    )
    if claimed.stale:
        on.flows.fail(token, claimed.stale, "the attempt needs nothing more")
    elif claimed.begun:
        on.flows.succeed(token)
        lease_begun(on, claimed)
    elif claimed.given:
        granted_at_once(on, claimed)
    elif claimed.leases[0].state is not LeaseState.WAITING:
        _answer_again(on, claimed.leases)
    elif (missing := forecast.missing_pool(on, claimed.claims[0].pool)) and not missing.is_coming:
        on.flows.fail(token, "Unsatisfiable", f"the site no longer has {missing.name}")
    else:
        _ask_if_first(on, claimed.claims)
        _log_if_waiting(on, job_id, claimed.leases[0])


ROWS_OF_JOB = 4
"""How many rows a new job may have beside its grant: its own, what it runs, its request's key, its owner's tally."""


def claim_with_job(on: System, job: Job, made: Callable[[Unit], Unit]) -> tuple[Job, list[Change], Claimed]:
    """A new job's claims, for the commit that creates the job: if it is granted all that it needs at once, and nothing
    is to be made before its worker.

    Its attempt has no flow then. Everybody else claims by the steps of a flow: the job is returned as it was.
    `made`: what a unit becomes that has its slots.
    docs/decisions/0065-what-is-only-a-slot-needs-no-flow.md
    """
    needs = job.request.needs
    if job.state is not State.QUEUED or not all(_is_there_once_granted(on, need) for need in needs):
        return job, [], Claimed()
    now = on.world.now()
    claims = [claim for step in (*flow.steps(needs), WORKER) for claim in grants.claims(job, step, now)]
    stocks = look(on, claims)
    fresh = [_lease(job, need, "", now) for need in needs]
    granted, given = _grant_at_once(on, job, claims, fresh, Allocator(stocks, made)) if stocks else ([], [])
    if not given or len(granted) + ROWS_OF_JOB > limits.TRANSACTION_ITEMS:
        return job, [], Claimed()
    looked_at = replace(job, indexed=exact_look(job))  # a short job is over by then: the index is not written before
    claimed = _claimed(jobs.acquire(looked_at, now), fresh, WORKER, now)
    begun = replace(bare_leases.begin(claimed, now), indexed=None) if job.is_lease else None
    return begun or claimed, granted, Claimed(fresh, claims, given, stocks, begun=begun)


def _is_there_once_granted(on: System, need: Need) -> bool:
    """Whether nothing is made of it before the worker: it is only a slot, or the worker."""
    if need.step == WORKER:
        return True
    well = current_site(on).wells.get(need.maker)
    return well is not None and on.drivers.makes_nothing(well.driver)


def lease_begun(on: System, claimed: Claimed) -> None:
    """What follows once a lease without a job has everything."""
    job = claimed.begun
    if job and not claimed.is_repeated:
        assert job.due, "a lease that is held has an end"
        measure(on, metrics.job_started(job, on.world.now()))
        logs.append(on, job.id, job.attempt, f"{job.owner} has it until {format_time(job.due)}")


def granted_at_once(on: System, claimed: Claimed, accepted: str = "") -> None:
    """What follows once a claim was granted when it came. `accepted` stands before that in the log of a new job.

    A step that did not wait is logged when what it got is there.
    """
    warm = [unit.id for unit in claimed.given if unit.id in ready_units(claimed.stocks)]
    claim_granted(on, claimed.given, claimed.leases, warm)
    if accepted:
        log_granted(on, claimed.given, claimed.leases, warm, [accepted])
    for name, stock in claimed.stocks.items():
        if stock.pool.min_warm:
            prewarm.fill(on, name)  # in the place of those that were granted


def _answer_again(on: System, had: Sequence[Lease]) -> None:
    """Answer a step that comes again after its claim was granted, and remind those who make its units."""
    answer_step(on, had)
    for lease in had:
        if lease.state is LeaseState.GRANTED and lease.unit:
            on.queues.advance(lease.unit, lease.order == WORKER)


def _needs(job: Job | None, attempt: int, step: int) -> list[Need]:
    """What a step acquires, if the attempt is the job's present one and not over.

    Also while it runs: the worker's step may be repeated between the hello that started the job and its answer.
    """
    if job is None or job.attempt != attempt or job.is_settled:
        return []
    return [need for need in job.request.needs if need.step == step]


def _claim_changes(
    on: System, job_id: str, attempt: int, step: int, token: str, *, may_grant: bool
) -> tuple[Sequence[Change], Claimed]:
    """The claim of a step, while the attempt needs it: granted at once, or waiting in the queues of its pools."""
    job = on.store.get(job_key(job_id), Job)
    needs = _needs(job, attempt, step)
    if job and job.is_lease and step == WORKER and job.attempt == attempt and not job.cancellation.cancelled_by:
        return _begin_changes(on, job)
    if job is None or job.cancellation.cancelled_by or not needs:
        return [], Claimed(stale="Cancelled" if job and job.cancellation.cancelled_by else "Stale")
    now = on.world.now()
    claims = grants.claims(job, step, now)
    # Until the first claim of an attempt, which moves the job on, it has no leases.
    every = [] if job.state is State.QUEUED else flow.lease_rows(on, job_id, attempt)
    had = [lease for lease in every if lease.step == step]
    if had:
        renewed = [replace(lease, token=token) for lease in had]
        changed = [Replace(was, now) for was, now in zip(had, renewed, strict=True) if was.token != token]
        return changed, Claimed([flow.see(on, lease) for lease in renewed], claims)
    fresh = [_lease(job, need, token, now) for need in needs]
    stocks = look(on, claims) if may_grant else {}
    granted, given = _grant_at_once(on, job, claims, fresh, Allocator(stocks)) if stocks else ([], [])
    claimed = _claimed(jobs.acquire(job, now), [*every, *fresh], step, now)
    waiting = [] if given else [*map(Create, claims), *map(Create, fresh)]
    return [Replace(job, claimed), *granted, *waiting], Claimed(fresh, claims, given, stocks)


def _begin_changes(on: System, job: Job) -> tuple[Sequence[Change], Claimed]:
    """A lease without a job begins where a job's worker would be acquired: once everything before that is ready."""
    if job.state is State.RUNNING:
        return [], Claimed(begun=job, is_repeated=True)
    had = flow.leases_of(on, job)
    is_ready = len(had) == len(job.request.needs) and all(lease.state is LeaseState.READY for lease in had)
    if not is_ready:
        return [], Claimed(stale="Stale")
    begun = bare_leases.begin(job, on.world.now())
    return [Replace(job, begun)], Claimed(begun=begun)


def _claimed(job: Job, leases: Sequence[Lease], step: int, now: datetime) -> Job:
    """A job that has claimed a step. It may have to give back what it acquired before."""
    holds = any(lease.step != step for lease in leases)
    if not holds or (step == WORKER and not job.may_give_back):
        return job
    seen = [lease if lease.step == step else replace(lease, state=LeaseState.READY) for lease in leases]
    return replace(job, due=unused.next_check(job, seen, now))


def _grant_at_once(
    on: System, job: Job, claims: Sequence[Claim], fresh: Sequence[Lease], hand: Allocator
) -> tuple[list[Change], list[Unit]]:
    """The changes that create leases as granted, and their units; none if they have to wait. [SLOT-2] [QUEUE-2]

    Nobody waited in any of their pools when it looked. What needs a privilege is granted only while the owner has it; a
    claim of an owner who has it not waits, and is ended when its turn comes. [SEC-2]
    """
    steps = {claim.step: [other for other in claims if other.step == claim.step] for claim in claims}
    found = {step: grants.pick_at_once(mine, hand.stocks) for step, mine in steps.items()}
    picks = {step: pick for step, pick in found.items() if pick}
    if len(picks) < len(steps):
        return [], []
    wanted = {privilege for step in steps for privilege in job.privileges_of(step)}
    why, owner = privileges.check_owner(on, job.owner, wanted) if wanted else (None, [])
    if why:
        return [], []
    granted, given = grant_changes(on, job, picks, fresh, hand)
    changes = [*granted, *hand.changes(), *owner]
    has_room = len(changes) < limits.TRANSACTION_ITEMS  # beside the job's row
    return (changes, given) if given and has_room else ([], [])


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


def freed(on: System, names: Sequence[str]) -> list[Pool]:
    """Something came back to pools, and that is written: have it granted if anybody waits. Their rows. [QUEUE-1]

    A claim is written before it asks to be served, and what is free before this looks who waits. So of the two, one
    sees the other. Where nobody waits, units are made ahead of need.
    """
    heads = [head(on, name) for name in names]
    found = [pool for pool, _ in heads if pool]
    if any(is_waited_for for _, is_waited_for in heads):
        on.queues.serve(names, pools.group_of(names))
        return found
    for pool in found:
        if pool.min_warm:
            prewarm.fill(on, pool.name)
    return found


def _ask_if_first(on: System, claims: Sequence[Claim]) -> None:
    """Ask that a new claim's pools are served, if it is the first of its line, others stand behind it, or something is
    kept for its owner. [QUEUE-1]

    Who stands before it in its line wants the same: whatever lets them go on serves this claim after them. But what is
    kept for one owner the others cannot have. Those behind it have nothing reserved any more that they cannot have
    until it had its turn: others may get that.
    """
    own = claims[0]
    first = on.store.find(pools.collection(own.pool), pools.line_prefix(own.line), Claim, limit=1)
    is_first = any(claim.order >= own.order for claim in first)
    if is_first or any(_is_overtaking(on, claim) or _is_kept_for(on, claim) for claim in claims):
        on.queues.serve(own.pools, pools.group_of(own.pools))


def _is_kept_for(on: System, claim: Claim) -> bool:
    """Whether a warm unit is there that serves the claim's owner only. A quota has no units."""
    if pools.is_quota(claim.pool):
        return False
    warm = on.store.find(pools.collection(claim.pool), "free#warm#", Slot, limit=WARM)
    return any(slot.owner == claim.owner for slot in warm)


def _is_overtaking(on: System, claim: Claim) -> bool:
    return any(other.order > claim.order for other in forecast.first_waiting(on, claim.pool))


def _log_if_waiting(on: System, job_id: str, lease: Lease) -> None:
    """Write into the job's log what it waits for, once, if it was not granted at once."""
    job = on.store.get(job_key(job_id), Job)
    if job is None:
        return
    blocked = forecast.short_block(on, job, lease.step)
    lease_now = on.store.get(lease.key, Lease)
    if lease_now and lease_now.state is LeaseState.WAITING:
        missing = None if blocked else forecast.missing_pool(on, *forecast.pools_of(job, lease.step))
        logs.append(on, job_id, lease.attempt, explain(job, [lease_now], blocked, missing=missing).summary)


WARM = 100
"""Among how many warm slots one is chosen: whose unit serves the job's owner, and is ready already. Whose is not among
them is not handed over, and the job gets another unit.
"""

SPREAD = 120
"""Among how many free slots a claim that nobody stands before takes one at random. Claims that are granted at the same
time seldom fight for the same slot then, which all but one would lose.
"""


def read_stocks(on: System, pool_name: str) -> dict[str, Stock]:
    """What a pool has, and what the other pools have that its claims want as well. Empty if nobody waits, or without
    such a pool.

    Of each pool the first claims, and as many free slots as these want together. Where they want more than there is,
    also the rows of the other pools that decide whose turn it is; where slots are reserved for one, what is idle.
    """
    claims = first_waiting(on, pool_name)
    found: dict[str, Stock] = {}
    for name in dict.fromkeys(name for claim in claims for name in claim.pools):
        stock = read_stock(on, name, claims if name == pool_name else None)
        if stock is not None:
            found[name] = stock
    if pool_name not in found:
        return {}
    short = [claim for stock in found.values() if stock.is_short for claim in stock.claims]
    for name in dict.fromkeys(name for claim in short for name in claim.pools):
        pool = None if name in found else on.store.get(pool_key(name), Pool)
        if pool is not None:
            found[name] = Stock(pool, ())
    return found


READINGS = 3
"""How often slots are read of which somebody wants a thing for itself, while the pool's row is written meanwhile. Not
all who write it have the pool served: what they write may have nothing to do with its slots. [QUEUE-1]
"""


def look(on: System, claims: Sequence[Claim]) -> dict[str, Stock]:
    """What the pools of a new claim have, its slots in random order. Empty if somebody waits in one of them. [QUEUE-2]

    A claim comes when it looks: one that is written after that is behind it, though it may be granted later.
    """
    found: dict[str, Stock] = {}
    for claim in claims:
        most = max(SPREAD, claim.count)
        before, cold, had = _read_slots(on, claim.pool, [claim], most)
        pool, waits = head(on, claim.pool)
        if pool is None or waits:
            return {}
        warm = _warm(on, pool.name, pool.warm, [claim]) if pool.warm else []
        first = on.world.draw(len(cold)) if cold else 0
        free = _others([*cold[first:], *cold[:first]], warm)
        found[claim.pool] = Stock(pool, (), free, warm, had=_known_whole(before, pool, had))
    return found


def head(on: System, name: str) -> tuple[Pool | None, bool]:
    """A pool's row, and whether anybody waits there. They stand next to each other, so one request reads both."""
    found = on.store.find(pools.collection(name), "", Row, limit=2, after=pools.BEFORE_ITS_ROW)
    pool = next((row for row in found if isinstance(row, Pool)), None)
    return pool, any(isinstance(row, Claim) for row in found)


def read_stock(on: System, name: str, claims: Sequence[Claim] | None) -> Stock | None:
    """What one pool has, and who waits for it. None if there is no such pool.

    Its slots are read before its row. A limit that was lowered before one of them came back is seen then. [SLOT-1]
    """
    waiting = first_waiting(on, name) if claims is None else claims
    pool, cold, had = _read_pool(on, name, waiting)
    if pool is None:
        return None
    warm = _warm(on, name, pool.warm, waiting) if waiting and pool.warm and not pool.is_paused else []
    idle = read_idle(on, name) if grants.reserved_claims(waiting) else []
    free = [] if pool.is_paused else _others(cold, warm)
    return Stock(pool, waiting, free, warm, idle, had)


def read_idle(on: System, name: str) -> list[Slot]:
    """All idle slots of a pool: one wants more than a few, and what is leaving already may be behind others."""
    return list(every_of(on, pools.collection(name), "idle#", Slot))


def _read_pool(
    on: System, name: str, claims: Sequence[Claim], again: int = READINGS - 1, *, is_shared: bool = False
) -> tuple[Pool | None, list[Slot], list[Slot] | None]:
    """A pool's free, cold slots, and after them its row. If somebody wants a thing for itself, also the slots that
    somebody has; None if they do not tell which things are free as a whole.
    """
    before, cold, had = _read_slots(on, name, claims, sum(claim.count for claim in claims), is_shared=is_shared)
    pool = on.store.get(pool_key(name), Pool)
    if pool and pool.share and not before:  # the claims came before jobs shared its hosts
        return _read_pool(on, name, claims, again, is_shared=True)
    if before and pool and before.version != pool.version and again:
        return _read_pool(on, name, claims, again - 1)
    return pool, cold, _known_whole(before, pool, had) if pool else None


def _read_slots(
    on: System, name: str, claims: Sequence[Claim], most: int, *, is_shared: bool = False
) -> tuple[Pool | None, list[Slot], list[Slot]]:
    """The first free, cold slots of a pool; all of them, if one of these claims chooses.

    If one wants a thing for itself, or parts of one, also the slots that somebody has, and first the pool's row: see
    `_known_whole`.
    """
    choices = grants.choosing_among(claims, name)
    is_whole = is_shared or any(choice.exclusive or choice.together for choice in choices)
    before = on.store.get(pool_key(name), Pool) if is_whole else None
    is_chosen = bool(choices) or is_shared
    cold = _every_slot(on, name, "free#cold#") if is_chosen else _free(on, name, "cold", most)
    had = _every_slot(on, name, f"{SlotState.HELD}#") if is_whole else []
    return before, cold, had


def _every_slot(on: System, name: str, prefix: str) -> list[Slot]:
    """All slots of a pool in one state: somebody may have chosen the last one. One request reads as many as the things
    of a type may have together; a type of plain names may have more.
    """
    found: list[Slot] = []
    while True:
        after = found[-1].key.sk if found else ""
        page = on.store.find(pools.collection(name), prefix, Slot, limit=limits.THINGS_SLOTS, after=after)
        found += page
        if len(page) < limits.THINGS_SLOTS:
            return found


def _known_whole(before: Pool | None, pool: Pool, had: list[Slot]) -> list[Slot] | None:
    """The slots that somebody has, if what was read tells which things are free as a whole; else None.

    It does if the pool's row did not change meanwhile, and its slots are what the row says. For the slots of a thing
    change with the row only: all that it is to have were free, and one that is to go is held until it is gone. [SLOT-1]
    """
    is_settled = before is not None and before.version == pool.version and pool.due is None
    return had if is_settled else None


def _free(on: System, name: str, rank: str, most: int) -> list[Slot]:
    """The first free slots of a pool. A quota has none, and nobody asks for them."""
    if not most or pools.is_quota(name):
        return []
    return on.store.find(pools.collection(name), f"free#{rank}#", Slot, limit=most)


def _others(cold: Sequence[Slot], warm: Sequence[Slot]) -> list[Slot]:
    """Without those that got a unit between the two reads, while nobody waited."""
    twice = {slot.name for slot in warm}
    return [slot for slot in cold if slot.name not in twice]


def _warm(on: System, name: str, kept: Warm, claims: Sequence[Claim]) -> list[Slot]:
    """Slots that carry a unit, those first whose unit is ready: as many as the claims want, whomever they serve; more
    where these differ.
    """
    most = sum(claim.count for claim in claims)
    are_alike = kept.serves is Serves.SITE and not kept.least
    limit = most if are_alike else max(most, WARM)
    if grants.choosing_among(claims, name):
        found = _every_slot(on, name, "free#warm#")
    else:
        found = on.store.find(pools.collection(name), "free#warm#", Slot, limit=limit)
    return sorted(found, key=lambda slot: slot.since is None)


def grant_changes(
    on: System, job: Job, picks: Mapping[int, Pick], waiting: Sequence[Lease], hand: Allocator
) -> tuple[list[Change], list[Unit]]:
    """The changes of the leases of some steps, and the unit that each gets; none if what was read is stale.

    The changes of what they take are the allocator's. Leases of a claim that is granted when it comes are created.
    """
    changes: list[Change] = []
    given: list[Unit] = []
    for lease in waiting:
        need = next(need for need in job.request.needs if need.order == lease.order)
        unit = _given(on, job, picks[lease.step], lease, need, hand)
        if unit is None:
            return [], []
        granted = pools.grant_lease(lease, unit.lease.slot, unit.lease.fence, unit.id, unit.since)
        changes.append(Replace(lease, granted) if lease.version else Create(granted))
        given.append(unit)
    return ([], []) if hand.is_stale else (changes, given)


def _given(on: System, job: Job, pick: Pick, lease: Lease, need: Need, hand: Allocator) -> Unit | None:
    """The unit of one lease of a claim; None if what was read is stale."""
    number = [other.order for other in job.request.needs if other.step == need.step].index(need.order)
    claim, chosen = next(iter(pick.rows.values())), pick.slots_of(number)
    warm = hand.warm(claim, need.pool, chosen)
    if warm:
        return _assign_warm(on, hand, claim, warm, need)
    return hand.order(claim, _order_unit(on, job, lease, need), need, chosen)


def _assign_warm(on: System, hand: Allocator, claim: Claim, warm: Slot, need: Need) -> Unit | None:
    """A warm unit for a need. One of another factory, or with other quotas, is destroyed instead."""
    unit = on.store.get(unit_key(warm.unit or ""), Unit)
    if unit is None or unit.state is not UnitState.IDLE or units.is_held(unit, on.world.now()):  # [UNIT-3]
        return None
    others = slots_of(on, unit)[1:]
    now = on.world.now()
    is_late = unit.creation.made and units.is_due(unit, now)
    if unit.maker != need.maker or pools.amounts(others) != need.uses or is_late:
        retire.retire(on, unit.id, "it is not what the site now says, or not heard of any more")
        return None
    return hand.over(claim, unit, warm, others, need.order, now)


def _order_unit(on: System, job: Job, lease: Lease, need: Need) -> Unit:
    unit = _new_unit(on, lease, need)
    tested = job.provenance.proves
    return factory_test.ordered(unit, tested, job.owner, on.world.now()) if tested else unit


def _new_unit(on: System, lease: Lease, need: Need) -> Unit:
    """The unit of a granted lease: its id is chosen and written before anything is made."""
    now = on.world.now()
    is_a = UnitKind.WORKER if lease.order == WORKER else UnitKind.RESOURCE
    ordered = Unit(
        id=f"{units.PREFIXES[is_a]}{on.world.ulid()}",
        is_a=is_a,
        maker=need.maker,
        type=lease.type,
        state=UnitState.CREATING,
        lease=UnitLease(job=lease.job, attempt=lease.attempt, order=lease.order, pool=lease.pool, slot="", fence=0),
        since=now,
        creation=Creation(born=now, to_order=need.is_made_to_order),
        due=now + STEP_WITHIN,
    )
    return units.add_entry(ordered, now, f"ordered from {need.maker} for job {lease.job}, attempt {lease.attempt}")


def claim_granted(on: System, given: Sequence[Unit], waiting: Sequence[Lease], warm: Collection[str]) -> None:
    """What follows once steps are granted, in order: units are made or prepared, and counted.

    `warm` are those that were kept for the next lease.
    """
    for unit in given:
        if unit.state is not UnitState.READY:
            on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER, maker=unit.maker)
    for units_, leases in _by_step(given, waiting):
        measure(on, metrics.claim_granted(units_, leases, warm))


def log_granted(
    on: System, given: Sequence[Unit], waiting: Sequence[Lease], warm: Collection[str], before: Sequence[str] = ()
) -> None:
    """Write into the job's log what it got, after other lines."""
    lines = [*before, *(_describe_grant(units_, leases[0], warm) for units_, leases in _by_step(given, waiting))]
    logs.append(on, given[0].lease.job, given[0].lease.attempt, "\n".join(lines), DETAIL)


def _by_step(given: Sequence[Unit], waiting: Sequence[Lease]) -> Iterator[tuple[Sequence[Unit], Sequence[Lease]]]:
    """Units and their leases, step by step."""
    for _, pairs in groupby(zip(given, waiting, strict=True), lambda pair: pair[1].step):
        units_, leases = zip(*pairs, strict=True)
        yield units_, leases


def _describe_grant(given: Sequence[Unit], waited: Lease, warm: Collection[str]) -> str:
    seconds = int(((waited.granted or given[0].since) - waited.since).total_seconds())
    got = ", ".join(f"slot {unit.lease.slot} ({'warm ' * (unit.id in warm)}unit {unit.id})" for unit in given)
    return f"{given[0].lease.pool}: got {got} after {seconds} s"


def ready_units(stocks: Mapping[str, Stock]) -> set[str | None]:
    """The units that were kept for whoever came."""
    return {slot.unit for stock in stocks.values() for slot in stock.warm}
