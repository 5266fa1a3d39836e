"""Units that are not what their rows say: some vanished, and some nobody wants any more. [JOB-1] [UNIT-1]"""

from __future__ import annotations

from datetime import datetime, timedelta

from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.jobs.outcome import Boot
from penstock.domain.units import comparison, units
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.kernel.rows import Replace
from penstock.system import System
from penstock.usecases import losing, retiring

UNWANTED_AFTER = timedelta(minutes=10)
"""How long a unit has been where it is before it is asked whether its attempt still wants it."""


def vanished(on: System, unit: Unit, lease: timedelta, start: datetime) -> bool:
    """Have a unit's attempt lost, for its maker does not list it any more; unless it was heard of since then."""
    cause = f"{unit.is_a} {unit.id} was lost: {unit.maker} does not list it any more"
    if unit.state is UnitState.IDLE:
        return retiring.retire(on, unit.id, cause, is_setback=True, boot=Boot.DISAPPEARED)

    def is_lost(fresh: Unit) -> bool:
        return fresh.state is unit.state and not comparison.was_heard(fresh, start, lease)

    return losing.lose(on, unit, cause, is_lost, cause) is not None


def unwanted(on: System, unit: Unit) -> None:
    """Have a unit put back whose attempt is over. Its end does that in the same commit; this is for what it missed."""
    now = on.world.now()
    if unit.state not in (UnitState.CREATING, UnitState.READY) or now - unit.since < UNWANTED_AFTER:
        return
    job = on.store.get(job_key(unit.job), Job)
    if job and not job.is_settled and job.attempt == unit.attempt:
        return
    if on.store.commit([Replace(unit, units.soil(unit, "its attempt is over", now))]):
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER)
