"""Units that are not what their rows say: some vanished, and some nobody wants any more. [JOB-1] [UNIT-1]"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from penstock.domain import comparing, jobs, units
from penstock.domain.jobs import Job, Report, Result, State, job_key
from penstock.domain.rows import Change, Check, Replace
from penstock.domain.units import Unit, UnitKind, UnitState, unit_key
from penstock.system import System
from penstock.usecases import logs, race, retiring
from penstock.usecases.jobs import stop_waiting

UNWANTED_AFTER = timedelta(minutes=10)
"""How long a unit has been where it is before it is asked whether its attempt still wants it."""


def vanished(on: System, unit: Unit, lease: timedelta, start: datetime) -> bool:
    """Have a unit's attempt lost, for its maker does not list it any more; unless it was heard of since then."""
    cause = f"{unit.is_a} {unit.id} was lost: {unit.maker} does not list it any more"
    if unit.state is UnitState.IDLE:
        return retiring.retire(on, unit.id, cause)

    def decide() -> tuple[Sequence[Change], Job | None]:
        fresh = on.store.get(unit_key(unit.id), Unit)
        job = on.store.get(job_key(unit.job), Job)
        if fresh is None or fresh.state is not unit.state or comparing.was_heard(fresh, start, lease):
            return [], None
        if job is None or job.is_settled or job.attempt != unit.attempt or fresh.attempt != unit.attempt:
            return [], None
        if job.state is not State.RUNNING:
            return [], job
        told = jobs.report(job, Report(Result.LOST, cause, on.world.now()))
        return ([Check(fresh), Replace(job, told)] if told != job else []), told

    job = race.run(on, decide)
    if job is None:
        return False
    if job.state is not State.RUNNING:
        stop_waiting(on, job, "Lost", cause)
        return True
    logs.say(on, job.id, job.attempt, cause)
    if job.run_token:
        on.flows.succeed(job.run_token)
    return True


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
