"""What keeps the units on some slots, and where the jobs that hold slots wait themselves. Read-only, for explanations.

Few requests read much: rows are read by the hundred. Of very large pools only a part is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.domain.jobs.jobs import Job, State, job_key
from penstock.domain.pools import delays
from penstock.domain.pools.delays import Delay
from penstock.domain.pools.pools import WORKER, Lease, LeaseState, Slot, SlotState, lease_key
from penstock.domain.units.units import Unit, unit_key
from penstock.kernel.rows import Key, Row
from penstock.listings import rows_at
from penstock.system import System
from penstock.usecases.jobs import flow

SLOTS_READ = 300
"""Of how many held slots it is read what keeps their units."""

HOLDERS_READ = 32
"""Of how many jobs that hold something it is read where they wait."""


def delays_of(on: System, slots: Sequence[Slot]) -> dict[str, Delay]:
    """What keeps the units on some slots, by unit. A resource may be kept by its attempt's worker. [UNIT-3]"""
    now = on.world.now()
    names = [slot.unit for slot in slots if slot.unit and slot.state in (SlotState.HELD, SlotState.IDLE)]
    units = _units(on, list(dict.fromkeys(names))[:SLOTS_READ])
    own = {unit.id: found for unit in units.values() if (found := delays.delay_of(unit, now))}
    return own | _by_others(on, [unit for unit in units.values() if unit.lease.job and unit.lease.order != WORKER])


def _by_others(on: System, resources: Sequence[Unit]) -> dict[str, Delay]:
    """What keeps resources while others of their attempts have their turn first."""
    now = on.world.now()
    jobs = rows_at(on, [job_key(unit.lease.job) for unit in resources])
    keys = {unit.id: _turns(unit, jobs.get(job_key(unit.lease.job))) for unit in resources}
    rows = rows_at(on, [key for of in keys.values() for key in of])
    leases = {unit: [row for key in of if isinstance(row := rows.get(key), Lease)] for unit, of in keys.items()}
    units = _units(on, [lease.unit for of in leases.values() for lease in of if lease.unit])
    found = {
        unit: delays.first_delay([(lease, units.get(lease.unit or "")) for lease in of], now)
        for unit, of in leases.items()
    }
    return {unit: delay for unit, delay in found.items() if delay}


def _turns(unit: Unit, job: Row | None) -> list[Key]:
    """The keys of an attempt's leases up to a resource's own, in the order of their release."""
    orders = {need.order for need in job.request.needs} if isinstance(job, Job) else set()
    later = sorted((order for order in orders if order > unit.lease.order), reverse=True)
    return [lease_key(unit.lease.job, unit.lease.attempt, order) for order in (WORKER, *later, unit.lease.order)]


def waiting_steps(on: System, slots: Iterable[Slot], most: int) -> list[tuple[Job, int]]:
    """The holders of some slots that wait for more, at most so many, and the step for which each waits."""
    holders = list(
        dict.fromkeys((slot.job, slot.attempt) for slot in slots if slot.state is SlotState.HELD and slot.job)
    )
    rows = rows_at(on, [job_key(str(job)) for job, _ in holders[:SLOTS_READ]])
    jobs = [row for row in rows.values() if isinstance(row, Job) and row.state is State.ACQUIRING]
    present = [job for job in jobs if (job.id, job.attempt) in holders]
    steps = ((job, _waiting_step(on, job)) for job in present[:most])
    return [(job, step) for job, step in steps if step is not None]


def _waiting_step(on: System, job: Job) -> int | None:
    rows = flow.lease_rows(on, job.id, job.attempt)
    return next((row.step for row in rows if row.state is LeaseState.WAITING), None)


def _units(on: System, names: Sequence[str]) -> dict[str, Unit]:
    found = rows_at(on, [unit_key(name) for name in names])
    return {row.id: row for row in found.values() if isinstance(row, Unit)}
