"""How long artifacts, caches and logs are kept. `Spans` has every duration; a site may override each.

A job owns its outputs and inputs, and its Retention says until when:

    submit ──▶ open ──settle──▶ until its time ──(no dependents)──▶ ended ──(everything is released)──▶ gone
                 └── a dependent keeps them from its submit until it settles, whatever else runs out ──┘

No job may depend on what has ended: it is being deleted.

Most jobs' retention is nothing but a time. It stands in the job's own row, so that a job's end writes one row less. A
row of its own takes over when there is more to say: that jobs depend on it, or that it lasts longer.
"""

from __future__ import annotations

from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.jobs.jobs import Job, Outcome
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

HOUR = 3600
DAY = 24 * HOUR


@dataclass(frozen=True)
class Rule:
    """One row of the table: what is kept, when its time starts, and the bounds for a site's own value."""

    keeps: str
    begins: str
    least: int
    most: int


def _span(seconds: int, keeps: str, begins: str, least: int = 1, most: int = 10 * 365 * DAY) -> int:
    made: int = field(default=seconds, metadata={"rule": Rule(keeps, begins, least, most)})
    return made


@dataclass(frozen=True)
class Spans:
    """How long everything is kept, in seconds. docs/users/retention.md is generated from it."""

    upload: int = _span(
        12 * HOUR,
        "unfinished uploads",
        "the start of the upload, or the last request for URLs of its parts",
        2 * HOUR,
        7 * DAY,
    )
    succeeded: int = _span(30 * DAY, "artifacts of a job that succeeded", "the end of the job")
    failed: int = _span(14 * DAY, "artifacts of a job that failed", "the end of the job")
    errored: int = _span(
        14 * DAY, "artifacts of a job that errored: the service could not run it", "the end of the job"
    )
    cancelled: int = _span(7 * DAY, "artifacts of a job that was cancelled", "the end of the job")
    latest_failure: int = _span(
        90 * DAY, "artifacts of the latest failed job of each user (or repository) and name", "the end of the job"
    )
    cache: int = _span(14 * DAY, "cache entries", "the last save or restore", DAY)
    log: int = _span(
        HOUR, "a job's log in the database, before it becomes an artifact of the job", "the end of the job",
        60, 30 * DAY,
    )  # fmt: skip
    log_wait: int = _span(
        DAY, "the same, while something that the job held is not given back yet", "the end of the job", 60, 30 * DAY
    )
    look: int = _span(
        HOUR, "artifacts that only unsettled dependents still need: how often the dependents are rechecked",
        "the last check", 60, DAY,
    )  # fmt: skip
    stray: int = _span(DAY, "objects in storage that the database does not know", "their upload", HOUR, 30 * DAY)
    inventory: int = _span(
        DAY, "nothing: how often all of storage is compared with the database", "the start of the last comparison",
        HOUR, 30 * DAY,
    )  # fmt: skip


def by_outcome(spans: Spans, outcome: Outcome) -> timedelta:
    """How long a job's artifacts are kept after its end."""
    return timedelta(
        seconds={
            Outcome.SUCCEEDED: spans.succeeded,
            Outcome.FAILED: spans.failed,
            Outcome.ERRORED: spans.errored,
            Outcome.CANCELLED: spans.cancelled,
        }[outcome]
    )


@dataclass(frozen=True, kw_only=True)
class Retention(Row):
    """How long a job's artifacts are kept.

    `until` is None while the job is unsettled. `longer`: a later time, for the latest failure of a name. `dependents`:
    unsettled jobs that need the artifacts; while there are some it does not end, and at `look` the sweep checks that
    they are still unsettled. `ended`: since when the artifacts are being released; `discarded_by`: who had
    that done before its time.
    """

    kind: ClassVar[str] = "retention"
    shards: ClassVar[int] = 4
    later: ClassVar[bool] = True
    job: str
    until: datetime | None = None
    longer: datetime | None = None
    dependents: tuple[str, ...] = ()
    look: datetime | None = None
    ended: datetime | None = None
    discarded_by: str | None = None

    @property
    def key(self) -> Key:
        return retention_key(self.job)

    @property
    def end(self) -> datetime | None:
        """When it ends if it has no dependents then; None while the job is unsettled."""
        return self.until and max(self.until, self.longer or self.until)

    @property
    def deadline(self) -> datetime | None:
        if self.ended or not self.end:
            return self.ended
        return max(self.end, self.look) if self.dependents and self.look else self.end


def retention_key(job: str) -> Key:
    """The key of a job's retention."""
    return Key(f"job#{job}", "retention")


def told_by(job: Job) -> Retention | None:
    """The retention that a job's own row tells of; None if it tells of none."""
    end = job.end
    if not end.kept_until:
        return None
    return Retention(job=job.id, until=end.kept_until, ended=end.outputs_gone, discarded_by=end.discarded_by)


def teller(row: Retention, job: Job | None) -> Retention | Job:
    """The row that tells of a retention: its own, or its job's."""
    return job if job and job.end.kept_until else row


def is_short(row: Retention) -> bool:
    """Whether a retention is nothing but a time, so that its job's row can tell of it."""
    return not (row.dependents or row.longer or row.look)


def tell(job: Job, row: Retention) -> Job:
    """A job whose own row tells of its retention."""
    end = replace(job.end, kept_until=row.until, outputs_gone=row.ended, discarded_by=row.discarded_by)
    return replace(job, end=end)


def hand_over(job: Job) -> Job:
    """A job whose own row tells of its retention no more: that has a row by now, or is over."""
    return replace(job, end=replace(job.end, kept_until=None))


def settled(row: Retention, job: Job, spans: Spans) -> Retention:
    """The retention of a settled job, by its outcome. The first end stands."""
    if row.until or job.end.outcome is None or job.times.settled is None:
        return row
    return replace(row, until=job.times.settled + by_outcome(spans, job.end.outcome))


@dataclass(frozen=True, kw_only=True)
class LatestFailure(Row):
    """The latest failed job of an owner and a name: its artifacts are kept longer."""

    kind: ClassVar[str] = "latest"
    is_recreated: ClassVar[bool] = True
    owner: str
    name: str
    job: str
    settled: datetime

    @property
    def key(self) -> Key:
        return latest_key(self.owner, self.name)


def latest_key(owner: str, name: str) -> Key:
    """The key of the latest failure."""
    return Key(f"latest#{owner}/{name}", "failure")


def failure(job: Job) -> LatestFailure | None:
    """A job as the latest failure; None if it did not fail."""
    if job.end.outcome is not Outcome.FAILED or job.times.settled is None:
        return None
    return LatestFailure(owner=job.owner, name=job.name, job=job.id, settled=job.times.settled)


def longer(row: Retention, of: LatestFailure, spans: Spans) -> Retention:
    """A retention that lasts longer, for the latest failure of a name."""
    return replace(row, longer=of.settled + timedelta(seconds=spans.latest_failure))


def recheck(row: Retention, left: tuple[str, ...], spans: Spans, now: datetime) -> Retention:
    """A retention that was checked and still has these dependents."""
    return replace(row, dependents=left, look=now + timedelta(seconds=spans.look))


def end(row: Retention, now: datetime) -> Retention:
    """A retention that ends now. Raises ValueError while the artifacts are still needed. [ART-1]"""
    if row.dependents or row.end is None or row.end > now:
        raise ValueError(f"what job {row.job} owns is still kept")
    return replace(row, ended=now)


def discard(row: Retention, by: str, now: datetime) -> Retention:
    """A retention that ends before its time, because nobody wants the artifacts. Those that need them have settled."""
    return end(replace(row, until=now, longer=None, dependents=(), discarded_by=by), now)


def outputs_gone(job: str, since: datetime, by: str | None) -> Refused:
    """The refusal of a request for outputs that are deleted. `by`: who discarded them, if somebody did."""
    said = f"the outputs of job {job} are gone since {since:%Y-%m-%d %H:%M} UTC: {why_gone(by)}"
    return Refused(422, "outputs-gone", said)


def why_gone(by: str | None) -> str:
    """Why what a job had is deleted: somebody discarded it, or its time was over."""
    return f"{by} discarded what the job had" if by else "the site keeps what a job had for a limited time"


def pinned(row: Retention, dependent: str) -> Retention | Refused:
    """A retention with one more dependent, until that settles; or the refusal. [ART-1]"""
    if row.ended:
        return outputs_gone(row.job, row.ended, row.discarded_by)
    if dependent in row.dependents:
        return row
    if len(row.dependents) >= limits.DEPENDENTS:
        most = f"at most {limits.DEPENDENTS} unsettled jobs may depend on one"
        return Refused(409, "too-many-dependents", f"{most}, and so many depend on job {row.job}")
    return replace(row, dependents=(*row.dependents, dependent))


def unpinned(row: Retention, dependent: str) -> Retention:
    """A retention without this dependent; the same row if it had none such."""
    if dependent not in row.dependents:
        return row
    return replace(row, dependents=tuple(name for name in row.dependents if name != dependent))
