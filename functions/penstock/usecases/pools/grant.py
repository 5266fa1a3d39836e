"""One grant: the changes that give a claim's leases their units, and what follows once they are committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.domain.jobs.jobs import Job
from penstock.domain.logs.logs import DETAIL
from penstock.domain.pools import leases, pools
from penstock.domain.pools.grants import Allocator, Stock
from penstock.domain.pools.leases import WORKER, Lease, Need
from penstock.domain.pools.pools import Claim, Slot
from penstock.domain.probes import factory_test
from penstock.domain.units import units
from penstock.domain.units.units import STEP_WITHIN, Creation, Unit, UnitKind, UnitLease, UnitState, unit_key
from penstock.kernel.rows import Change, Create, Replace
from penstock.system import System
from penstock.usecases.logs import logs
from penstock.usecases.telemetry import counters
from penstock.usecases.units import retire


def grant_changes(
    on: System, job: Job, claim: Claim, waiting: Sequence[Lease], stocks: Mapping[str, Stock]
) -> tuple[list[Change], list[Unit]]:
    """The changes that give every lease of a step a unit, and these units; none if a warm unit proved unfit.

    Leases of a claim that is granted when it comes are created by this commit.
    """
    hand = Allocator(claim, stocks)
    changes: list[Change] = []
    given: list[Unit] = []
    for lease in waiting:
        need = next(need for need in job.request.needs if need.order == lease.order)
        warm = hand.warm(need.pool)
        unit = _assign_warm(on, hand, warm, need) if warm else hand.order(_order_unit(on, job, lease, need), need)
        if unit is None:
            return [], []
        granted = leases.grant(lease, unit.lease.slot, unit.lease.fence, unit.id, unit.since)
        changes.append(Replace(lease, granted) if lease.version else Create(granted))
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


def claim_granted(
    on: System, claim: Claim, given: Sequence[Unit], waiting: Sequence[Lease], stocks: Mapping[str, Stock]
) -> None:
    """What follows once a claim is granted, in order: its units are made or prepared, counted, and logged."""
    for unit in given:
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER, maker=unit.maker)
    ready = {slot.unit for stock in stocks.values() for slot in stock.warm}
    warm = {unit.id for unit in given if unit.id in ready}
    counters.claim_granted(on, given, waiting, warm)
    waited = int((given[0].since - waiting[0].since).total_seconds())
    got = ", ".join(f"slot {unit.lease.slot} ({'warm ' * (unit.id in warm)}unit {unit.id})" for unit in given)
    logs.append(on, claim.job, claim.attempt, f"{claim.pool}: got {got} after {waited} s", DETAIL)
