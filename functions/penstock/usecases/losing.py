"""Attempts whose worker or resource is no more: they end as lost, once, and the next follows. [JOB-1]"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock import transaction
from penstock.domain.jobs import jobs
from penstock.domain.jobs.jobs import Job, Report, Result, State, job_key
from penstock.domain.units import retries
from penstock.domain.units.units import STEP_WITHIN, Unit, unit_key
from penstock.kernel.rows import Change, Replace
from penstock.system import System
from penstock.usecases import logs
from penstock.usecases.jobs import stop_waiting


def lose(on: System, unit: Unit, cause: str, is_lost: Callable[[Unit], bool], reason: str | None) -> bool | None:
    """End the attempt that leases a unit, and say whether that was news; None when it is not the unit's any more.

    `is_lost` is asked of the unit as it is when the end is written; `reason` is what its row then says
    of it. The unit is due again soon, for its attempt has to end, and the answer to its flow may be lost.
    """

    def decide() -> tuple[Sequence[Change], tuple[Job, bool] | None]:
        fresh = on.store.get(unit_key(unit.id), Unit)
        job = on.store.get(job_key(unit.job), Job)
        if fresh is None or (fresh.job, fresh.attempt) != (unit.job, unit.attempt) or not is_lost(fresh):
            return [], None
        if job is None or job.is_settled or job.attempt != unit.attempt:
            return [], None
        now = on.world.now()
        later = Replace(fresh, retries.later(fresh, reason, now, STEP_WITHIN))
        if job.state is not State.RUNNING or job.report:
            return [later], (job, False)
        told = jobs.report(job, Report(Result.LOST, cause, now))
        return [later, Replace(job, told)], (told, True)

    found = transaction.run(on, decide)
    if found is None:
        return None
    job, is_news = found
    if is_news:
        logs.say(on, job.id, job.attempt, cause)
    if job.run_token:
        on.flows.succeed(job.run_token)
    else:
        stop_waiting(on, job, "Lost", cause)
    return is_news
