"""Units between two leases: which are kept warm, for how long, and how the next lease gets one."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.pools.pools import Pool, Serves, Warm
from penstock.domain.units import units
from penstock.domain.units.units import STEP_WITHIN, CleanProof, Unit, UnitKind, UnitState, add_entry, is_prewarming

OUTDATED = "it was made before the settings changed by which it is made"


def is_outdated(unit: Unit, pool: Pool) -> bool:
    """Whether a unit was made by settings that its pool has no more."""
    return pool.renewed is not None and (unit.creation.born or unit.since) <= pool.renewed


def why_not_kept(unit: Unit, pool: Pool, others: int, owned: int, now: datetime) -> str | None:
    """Why a clean unit is not kept; None if it is. The pool keeps `others`, of which `owned` serve one owner only."""
    born, warm = unit.creation.born or unit.since, pool.warm
    if unit.drain:
        return str(unit.drain)
    if is_outdated(unit, pool):
        return OUTDATED
    if warm is None or others >= warm.most:
        return f"{others} are kept already"
    if warm.serves is Serves.OWNER and unit.lease.leases and owned >= warm.most_of_owners:
        return f"{owned} are kept already that serve one owner; the others are to serve anybody"
    if unit.lease.leases >= warm.reuse:
        return f"it had {unit.lease.leases} leases"
    if now - born >= timedelta(seconds=warm.life):
        return "it is too old"
    return None


def keep_warm(unit: Unit, proof: CleanProof, warm: Warm, now: datetime, lease: timedelta) -> Unit:
    """A clean unit that is kept for the next lease. It needs the record that it was cleaned. [UNIT-2]"""
    end = (unit.creation.born or unit.since) + timedelta(seconds=warm.life)
    until = min(now + timedelta(seconds=warm.idle), end)
    unit = add_entry(unit, now, f"clean, and kept for the next ({proof.by})")
    kept = replace(
        units.release_lease(unit),
        state=UnitState.IDLE,
        cleaning=replace(unit.cleaning, proof=proof, until=until, begun=None),
        step=replace(unit.step, reason=None, tries=0, busy=None, next_look=None),
        since=now,
        hold=None,
    )
    return renew(kept, now, lease)


def renew(unit: Unit, now: datetime, lease: timedelta) -> Unit:
    """An idle unit after contact. A resource is due when its idle time ends; a worker's agent has to stay in
    contact.
    """
    until = unit.cleaning.until or now
    return replace(unit, due=min(until, now + lease) if unit.is_a is UnitKind.WORKER else until)


def lend(unit: Unit, job: str, attempt: int, order: int, fence: int, now: datetime) -> Unit:
    """An idle unit that was granted again: its well is called once more, or its agent comes for the job.

    A prewarmed unit that is still being made goes on from where it is: an ordered machine keeps its boot deadline; a
    unit that is not ordered yet is ordered at once, whatever it was waiting for.
    """
    is_worker, is_on_its_way = unit.is_a is UnitKind.WORKER, is_prewarming(unit)
    due = unit.due if is_on_its_way and unit.creation.made else now + STEP_WITHIN
    made = unit.creation.made if is_on_its_way else now if is_worker else None
    unit = add_entry(unit, now, f"handed over to job {job}, attempt {attempt}")
    return replace(
        unit,
        state=UnitState.CREATING,
        lease=replace(
            unit.lease,
            job=job,
            attempt=attempt,
            order=order,
            fence=fence,
            leases=unit.lease.leases + 1,
            is_over=False,
        ),
        creation=replace(
            unit.creation,
            made=made,
            is_making=unit.creation.is_making and is_on_its_way,
            is_probe=unit.creation.is_probe and is_on_its_way,
        ),
        since=now,
        due=due,
        cleaning=replace(unit.cleaning, until=None, proof=None),
        step=replace(unit.step, reason=None, tries=0, next_look=None),
    )
