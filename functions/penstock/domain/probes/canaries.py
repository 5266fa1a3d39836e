"""Canaries: the site's own jobs that check periodically whether a target or a resource type works.

A unit on which a canary fails counts as broken: an existing resource is quarantined. When three in a row were broken, a
target's workers are not made for a while. The next canary that succeeds ends that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.jobs.jobs import Job, Outcome, Result
from penstock.domain.units import units
from penstock.domain.units.units import Unit
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Place, Row

USER = "canary"
"""The user who owns canary jobs. Only operators see them."""

TAG = "penstock-canary"


REFUSED = "refused"
"""The outcome of a canary whose job was not accepted."""

RECHECK_INTERVAL = timedelta(minutes=2)
"""How often to check whether a canary's job has settled."""


@dataclass(frozen=True, kw_only=True)
class Canary(Row):
    """The canary of a pool: its last job, how that ended, and when to act again.

    `failures`: how many in a row have failed. A job that neither succeeded nor failed counts for nothing.
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
    """The key of a pool's canary."""
    return Key(f"canary#{pool}", "canary")


def submitted(canary: Canary, job: str, now: datetime) -> Canary:
    """A canary whose job was submitted."""
    return replace(canary, job=job, since=now, is_out=True, due=now + RECHECK_INTERVAL)


def recheck(canary: Canary, now: datetime) -> Canary:
    """A canary whose job has not settled yet."""
    return replace(canary, due=now + RECHECK_INTERVAL)


def settled(canary: Canary, job: Job, every: timedelta, now: datetime) -> Canary:
    """A canary whose job has settled. The next one is sent `every` so often, counted from the last."""
    told = {Outcome.SUCCEEDED: 0, Outcome.FAILED: canary.failures + 1}
    failures = told.get(job.end.outcome, canary.failures) if job.end.outcome else canary.failures
    due = max(now, (canary.since or now) + every)
    return replace(
        canary, is_out=False, outcome=str(job.end.outcome), reason=job.end.reason, failures=failures, due=due
    )


def refused(canary: Canary, why: str, every: timedelta, now: datetime) -> Canary:
    """A canary whose job was not accepted."""
    return replace(canary, is_out=False, outcome=REFUSED, reason=why, since=now, due=now + every)


def is_failing(canary: Canary) -> bool:
    """Whether its last result was a failure, or it could not be sent or run."""
    return canary.failures > 0 or canary.outcome in (Outcome.ERRORED, REFUSED)


def mark_broken(job: Job, had: Sequence[Unit], now: datetime) -> list[tuple[Unit, Unit]]:
    """The units on which a canary job failed, before and after; empty for any other job."""
    if (
        not job.provenance.canary
        or job.run.report is None
        or job.run.report.result not in (Result.FAILED, Result.TIMED_OUT)
    ):
        return []
    why = f"canary job {job.id} failed on it: {job.run.report.reason}"
    return [
        (unit, units.mark_broken(unit, why, now))
        for unit in had
        if unit.lease.pool == job.provenance.canary and not unit.health.broken
    ]
