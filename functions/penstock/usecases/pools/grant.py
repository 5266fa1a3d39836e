"""One grant: what pools have and who waits for it, the changes that give leases their units, and what follows.

However large a pool or long a queue, no more than a bounded part of it is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from penstock.domain.jobs.jobs import Job
from penstock.domain.logs.logs import DETAIL
from penstock.domain.pools import grants, leases, pools
from penstock.domain.pools.grants import WINDOW, Allocator, Stock, heads
from penstock.domain.pools.leases import WORKER, Lease, Need
from penstock.domain.pools.pools import WAITING, Claim, Pool, Slot, behind, collection, pool_key
from penstock.domain.probes import factory_test
from penstock.domain.units import units
from penstock.domain.units.units import STEP_WITHIN, Creation, Unit, UnitKind, UnitLease, UnitState, unit_key
from penstock.kernel.rows import Change, Create, Replace, Row
from penstock.system import System
from penstock.usecases.logs import logs
from penstock.usecases.telemetry import counters
from penstock.usecases.units import retire

IDLE = 100
"""How many idle slots of a pool are read."""

WARM = 100
"""Among how many warm slots one is chosen whose unit is ready already."""

SPREAD = 100
"""Among how many free slots a claim that nobody stands before takes one at random. Claims that are granted at the same
time seldom fight for the same slot then, which all but one would lose.
"""


def first_waiting(on: System, pool: str, most: int = 0) -> list[Claim]:
    """The first claims of each line of a pool's queue, in the order in which they are granted. [QUEUE-1] [QUEUE-2]

    Of each line at most WINDOW are read, or `most`; then its others are passed over. So this is one read for each line
    that is as long, and as many as the others fill.
    """
    most = most or WINDOW
    found: list[Claim] = []
    after = ""
    while True:
        page = on.store.find(collection(pool), WAITING, Claim, limit=most, after=after)
        found += page
        if len(page) < most:
            return heads(found, most)
        line = page[-1].line
        is_read = sum(claim.line == line for claim in found) >= most
        after = behind(line) if is_read else page[-1].key.sk


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


def look(on: System, claims: Sequence[Claim]) -> dict[str, Stock]:
    """What the pools of a new claim have, its slots in random order. Empty if somebody waits in one of them. [QUEUE-2]

    A claim comes when it looks: one that is written after that is behind it, though it may be granted later.
    """
    found: dict[str, Stock] = {}
    for claim in claims:
        cold = _free(on, claim.pool, "cold", max(SPREAD, claim.count))
        pool, waits = head(on, claim.pool)
        if pool is None or waits:
            return {}
        warm = _warm(on, pool, claim.count) if pool.warm else []
        first = on.world.draw(len(cold)) if cold else 0
        found[claim.pool] = Stock(pool, (), _others([*cold[first:], *cold[:first]], warm), warm)
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
    pk = pools.collection(name)
    waiting = first_waiting(on, name) if claims is None else claims
    most = sum(claim.count for claim in waiting)
    cold = _free(on, name, "cold", most)
    pool = on.store.get(pool_key(name), Pool)
    if pool is None:
        return None
    warm = _warm(on, pool, most) if most and pool.warm and not pool.paused else []
    idle = on.store.find(pk, "idle#", Slot, limit=IDLE) if grants.reserved_claims(waiting) else []
    return Stock(pool, waiting, [] if pool.paused else _others(cold, warm), warm, idle)


def _free(on: System, name: str, rank: str, most: int) -> list[Slot]:
    """The first free slots of a pool. A quota has none, and nobody asks for them."""
    if not most or pools.is_quota(name):
        return []
    return on.store.find(pools.collection(name), f"free#{rank}#", Slot, limit=most)


def _others(cold: Sequence[Slot], warm: Sequence[Slot]) -> list[Slot]:
    """Without those that got a unit between the two reads, while nobody waited."""
    twice = {slot.name for slot in warm}
    return [slot for slot in cold if slot.name not in twice]


def _warm(on: System, pool: Pool, most: int) -> list[Slot]:
    """Slots that carry a unit; where units are made ahead of need, those first whose unit is ready."""
    limit = max(most, WARM) if pool.min_warm else most
    found = on.store.find(pools.collection(pool.name), "free#warm#", Slot, limit=limit)
    return sorted(found, key=lambda slot: slot.since is None)[:most]


def grant_changes(
    on: System, job: Job, claim: Claim, waiting: Sequence[Lease], hand: Allocator
) -> tuple[list[Change], list[Unit]]:
    """The changes of a step's leases, each of which gets a unit, and these units; none if a warm unit proved unfit.

    The changes of what they take are the allocator's. Leases of a claim that is granted when it comes are created.
    """
    changes: list[Change] = []
    given: list[Unit] = []
    for lease in waiting:
        need = next(need for need in job.request.needs if need.order == lease.order)
        warm = hand.warm(claim, need.pool)
        unit = _assign_warm(on, hand, claim, warm, need) if warm else _ordered(on, hand, job, claim, lease, need)
        if unit is None:
            return [], []
        granted = leases.grant(lease, unit.lease.slot, unit.lease.fence, unit.id, unit.since)
        changes.append(Replace(lease, granted) if lease.version else Create(granted))
        given.append(unit)
    return changes, given


def _ordered(on: System, hand: Allocator, job: Job, claim: Claim, lease: Lease, need: Need) -> Unit:
    return hand.order(claim, _order_unit(on, job, lease, need), need)


def _assign_warm(on: System, hand: Allocator, claim: Claim, warm: Slot, need: Need) -> Unit | None:
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
    return hand.over(claim, unit, warm, others, need.order, now)


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


def claim_granted(
    on: System, given: Sequence[Unit], waiting: Sequence[Lease], warm: Collection[str], before: str = ""
) -> None:
    """What follows once a step is granted, in order: its units are made or prepared, counted, and logged.

    `warm` are those that were kept for the next lease. `before`: a line of the job's log that stands before that.
    """
    for unit in given:
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER, maker=unit.maker)
    counters.claim_granted(on, given, waiting, warm)
    lease, until = given[0].lease, waiting[0].granted or given[0].since
    waited = int((until - waiting[0].since).total_seconds())
    got = ", ".join(f"slot {unit.lease.slot} ({'warm ' * (unit.id in warm)}unit {unit.id})" for unit in given)
    logs.append(on, lease.job, lease.attempt, f"{before}\n{lease.pool}: got {got} after {waited} s".lstrip(), DETAIL)


def ready_units(stocks: Mapping[str, Stock]) -> set[str | None]:
    """The units that were kept for whoever came."""
    return {slot.unit for stock in stocks.values() for slot in stock.warm}
