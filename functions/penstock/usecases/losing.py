"""Attempts whose worker or resource is no more: they end as lost, once, and the next follows. [JOB-1]"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from penstock.domain import jobs, units
from penstock.domain.jobs import Job, Report, Result, State, job_key
from penstock.domain.rows import Change, Check, Replace
from penstock.domain.units import Unit, unit_key
from penstock.system import System
from penstock.usecases import logs, race
from penstock.usecases.jobs import stop_waiting


def lose(
    on: System, unit: Unit, cause: str, is_lost: Callable[[Unit], bool], again: timedelta | None = None
) -> tuple[Job, bool] | None:
    """End the attempt that leases a unit, and say whether that was news; None when it is not the unit's any more.

    `is_lost` is asked of the unit as it is when the end is written. With `again`, the unit is due again after that
    long, for whoever asks is to see that the attempt does end.
    """

    def decide() -> tuple[Sequence[Change], tuple[Job, bool] | None]:
        fresh = on.store.get(unit_key(unit.id), Unit)
        job = on.store.get(job_key(unit.job), Job)
        if fresh is None or (fresh.job, fresh.attempt) != (unit.job, unit.attempt) or not is_lost(fresh):
            return [], None
        if job is None or job.is_settled or job.attempt != unit.attempt:
            return [], None
        now = on.world.now()
        is_news = job.state is State.RUNNING and job.report is None
        told = jobs.report(job, Report(Result.LOST, cause, now)) if is_news else job
        later: Change = Check(fresh)
        if again:
            later = Replace(fresh, units.later(fresh, cause, now, again))
        changes = [later, Replace(job, told)] if is_news else [later] if again else []
        return changes, (told, is_news)

    found = race.run(on, decide)
    if found:
        _tell(on, *found, cause)
    return found


def _tell(on: System, job: Job, is_news: bool, cause: str) -> None:
    """Answer the step that the attempt's flow is parked in; the first answer may have been lost."""
    if is_news:
        logs.say(on, job.id, job.attempt, cause)
    if job.run_token:
        on.flows.succeed(job.run_token)
    elif job.state is not State.RUNNING:
        stop_waiting(on, job, "Lost", cause)
