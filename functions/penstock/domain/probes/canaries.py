"""Canaries: jobs of the site's own that show, again and again, whether a target or a resource type works.

What one fails on counts as broken: what exists already is quarantined, and of what is made no more is made for a while
when three in a row were broken. The next that succeeds ends that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.jobs.jobs import Job, Outcome, Result
from penstock.domain.units import units
from penstock.domain.units.units import Unit
from penstock.kernel.rows import Key, Place, Row

USER = "canary"
"""Who owns the jobs of canaries. Only operators see them."""

TAG = "penstock-canary"


REFUSED = "refused"
"""What a canary came to whose job was not accepted."""

RECHECK_INTERVAL = timedelta(minutes=2)
"""How often one looks whether the job of a canary has settled."""


@dataclass(frozen=True, kw_only=True)
class Canary(Row):
    """The canary of a pool: its last job, how that ended, and when there is something to do again.

    `failures` is how many in a row have failed. What neither succeeded nor failed told nothing of it.
    """

    kind: ClassVar[str] = "canary"
    pool: str
    due: datetime | None
    job: str | None = None
    since: datetime | None = None
    is_out: bool = False
    outcome: str | None = None
    reason: str | None = None
    failures: int = 0

    @property
    def key(self) -> Key:
        return canary_key(self.pool)

    @property
    def place(self) -> Place:
        return Place("canaries", self.pool)

    @property
    def deadline(self) -> datetime | None:
        return self.due


def canary_key(pool: str) -> Key:
    """Where the canary of a pool is."""
    return Key(f"canary#{pool}", "canary")


def submitted(canary: Canary, job: str, now: datetime) -> Canary:
    """A canary whose job was submitted."""
    return replace(canary, job=job, since=now, is_out=True, due=now + RECHECK_INTERVAL)


def recheck(canary: Canary, now: datetime) -> Canary:
    """A canary whose job has not settled yet."""
    return replace(canary, due=now + RECHECK_INTERVAL)


def settled(canary: Canary, job: Job, every: timedelta, now: datetime) -> Canary:
    """A canary whose job has settled; the next is sent when the time has come since the last was."""
    told = {Outcome.SUCCEEDED: 0, Outcome.FAILED: canary.failures + 1}
    failures = told.get(job.outcome, canary.failures) if job.outcome else canary.failures
    due = max(now, (canary.since or now) + every)
    return replace(canary, is_out=False, outcome=str(job.outcome), reason=job.reason, failures=failures, due=due)


def refused(canary: Canary, why: str, every: timedelta, now: datetime) -> Canary:
    """A canary whose job was not accepted."""
    return replace(canary, is_out=False, outcome=REFUSED, reason=why, since=now, due=now + every)


def is_failing(canary: Canary) -> bool:
    """Whether what it looks at did not work when it last told, or it could not be sent, or not be run."""
    return canary.failures > 0 or canary.outcome in (Outcome.ERRORED, REFUSED)


def mark_broken(job: Job, had: Sequence[Unit], now: datetime) -> list[tuple[Unit, Unit]]:
    """What a canary has failed on, and what becomes of it; nothing for any other job."""
    if not job.canary or job.report is None or job.report.result not in (Result.FAILED, Result.TIMED_OUT):
        return []
    why = f"canary job {job.id} failed on it: {job.report.reason}"
    return [(unit, units.mark_broken(unit, why, now)) for unit in had if unit.pool == job.canary and not unit.broken]
