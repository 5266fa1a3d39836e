"""Holding a job's worker and resources when its script has ended, so that somebody can look at them. [UNIT-3]

The hold is set by the write that records how the script ended. A later write could be too late: the worker's agent
learns from that response whether its machine stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from penstock.domain.jobs import outcome
from penstock.domain.jobs.jobs import HoldRequest, Job, Outcome
from penstock.domain.units import maintenance
from penstock.domain.units.units import Hold, Unit, UnitState, format_time, is_held
from penstock.kernel.errors import Refused
from penstock.kernel.frozen import dataclass


@dataclass(frozen=True)
class HeldUnits:
    """What of a job is held, until when the longest, and what that has cost so far: units times seconds."""

    units: Sequence[Unit]
    until: datetime
    unit_seconds: float


def is_wanted(keep: HoldRequest, job: Job, now: datetime) -> bool:
    """Whether a requested hold applies to the outcome just reported. It does not if another attempt follows."""
    after = outcome.conclude(job, None, None, now)
    return after.end.outcome is Outcome.FAILED or (keep.whatever and after.end.outcome is Outcome.SUCCEEDED)


def hold_units(keep: HoldRequest, units: Sequence[Unit], now: datetime) -> list[tuple[Unit, Unit]]:
    """The units of an attempt that can be held, each before and after. Operators' holds and recycles stay."""
    found = []
    for unit in units:
        if unit.state is UnitState.READY and not unit.health.broken and not is_held(unit, now):
            with suppress(Refused):
                found.append((unit, maintenance.hold(unit, keep.by, keep.reason, keep.seconds, now)))
    return found


def held_units(keep: HoldRequest, units: Sequence[Unit], now: datetime) -> HeldUnits | None:
    """What is held now because of this request."""
    found = [(unit, hold) for unit in units if (hold := _held_for(keep, unit, now))]
    if not found:
        return None
    seconds = sum((now - hold.since).total_seconds() for _, hold in found)
    return HeldUnits([unit for unit, _ in found], max(hold.until for _, hold in found), seconds)


def _held_for(keep: HoldRequest, unit: Unit, now: datetime) -> Hold | None:
    return unit.hold if is_held(unit, now) and is_for_job(keep, unit.hold) else None


def is_for_job(keep: HoldRequest, hold: Hold | None) -> bool:
    """Whether a hold is this job's, and not an operator's."""
    return hold is not None and (hold.by, hold.reason) == (keep.by, keep.reason)


def describe(found: HeldUnits) -> str:
    """The held units, as a sentence."""
    names = ", ".join(f"{unit.is_a} {unit.id}" for unit in found.units)
    return f"held until {format_time(found.until)}: {names}"
