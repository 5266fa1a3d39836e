"""Jobs: what a user submits, and how it ends.

                    ┌──────────── lost, and tries are left ────────────┐
                    ▼                                                  │
    submit ──▶ queued ──first acquire──▶ acquiring ──hello──▶ running ─┤
       └▶ waiting ┴───────────────────────────┴──────────────────┴─────┴──▶ settled

A job settles exactly once [JOB-1]: only `settle` makes it settled, and it accepts only an unsettled job. A cancellation
is recorded beside the state, so that it never races with it.

Beside the job's row: its spec (what to run and publish), the accepted submission, and whether somebody watches the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar

from penstock.domain.jobfile.sections import CacheAsk, Post
from penstock.domain.jobs.dependencies import Dependency
from penstock.domain.jobs.failures import Failure, Kind
from penstock.domain.pools.leases import Need
from penstock.kernel.rows import Key, Place, Row

START_WITHIN = timedelta(minutes=1)
"""How long an accepted job may wait for its flow before the sweep starts it again."""

STEP_WITHIN = timedelta(minutes=2)
"""How long a job's flow may take from one step to the next while it waits for nothing of ours."""

FLOW_WITHIN = timedelta(minutes=10)
"""How long a flow may take from its start to its first step under heavy load."""

SETTLE_WITHIN = timedelta(minutes=2)
"""How much longer than its timeout and grace a job may appear to run before it counts as lost."""


class State(StrEnum):
    """The state of a job. The comments say who moves it on, and by when."""

    WAITING = "waiting"  # for other jobs and inputs; moved on by their settling and coming; due: the sweep looks
    QUEUED = "queued"  # moved on by its flow's first step; due START_WITHIN: the sweep starts the flow again
    ACQUIRING = "acquiring"  # moved on by its leases, due at the queue deadline; between two steps by its flow
    RUNNING = "running"  # moved on by finish; due at its timeout and some: the sweep calls it lost
    SETTLED = "settled"  # final


class Outcome(StrEnum):
    """How a job ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ERRORED = "errored"  # our fault


class Result(StrEnum):
    """How an attempt ended, as its agent reports, or as we conclude for an agent that cannot report."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"


@dataclass(frozen=True)
class Report:
    """How an attempt ended. `is_unbegun`: its machine was broken before its script began."""

    result: Result
    reason: str
    time: datetime
    exit_code: int | None = None
    is_unbegun: bool = False


@dataclass(frozen=True)
class Times:
    """When a job reached each stage."""

    submitted: datetime
    ready: datetime | None = None
    acquired: datetime | None = None
    started: datetime | None = None
    settled: datetime | None = None


@dataclass(frozen=True)
class PastAttempt:
    """An attempt that was followed by another."""

    attempt: int
    outcome: str
    reason: str
    failure: Kind | None = None


@dataclass(frozen=True, kw_only=True)
class Job(Row):
    """A job and its present attempt. Kept small, for it is written at every step; the script is in its spec.

    `stop_from` is the first attempt that the sweep ended and whose flow it has not stopped yet. `spared` are the lost
    attempts that count against no retry, `health` how long the health checks of its worker may take, in seconds.
    `idle_hold` is for how many seconds it may hold what it cannot use, 0 for as long as it takes; `given_back` is how
    often it got no further and gave all of it back, and `parked_until` when it queues again after that: see `idling`.
    `refused` is why it was ended while it waited: its owner may not have any more what it waits for. `outputs_gone` is
    since when nothing is kept any more of what it owned. `has_secrets` says that its store has, or had, secret values,
    `publishes` that something of it is to be published when it has succeeded.
    `cache_scope` is whose caches it adds to, "" for nobody's; `cache_saves`, how often it began to.
    `failure` is why it did not succeed, or until it settles what its agent told of that.
    `vouched` is what whoever submitted it may say of its source, and `identities` how many identity tokens it had.
    `check` is the check of a commit that shows it at GitHub, if one does.
    """

    kind: ClassVar[str] = "job"
    id: str
    name: str
    owner: str
    target: str
    target_resolved: str
    state: State
    needs: tuple[Need, ...]
    times: Times
    timeout: int
    queue_seconds: int
    grace: int
    priority: int = 0
    retries: int = 1
    retry_failed: bool = False
    dependencies: tuple[Dependency, ...] = ()
    inputs: tuple[str, ...] = ()
    attempt: int = 1
    attempts: tuple[PastAttempt, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    proves: Proves | None = None
    keep: HoldRequest | None = None
    canary: str = ""
    check: str = ""
    cancelled_by: str | None = None
    refused: str | None = None
    run_token: str | None = None
    worker: str | None = None
    report: Report | None = None
    queue_until: datetime | None = None
    nudged: bool = False
    stop_from: int | None = None
    spared: int = 0
    health: int = 0
    idle_hold: int = 0
    given_back: int = 0
    parked_until: datetime | None = None
    outcome: Outcome | None = None
    reason: str | None = None
    exit_code: int | None = None
    failure: Failure | None = None
    outputs_gone: datetime | None = None
    has_secrets: bool = False
    publishes: bool = False
    cache_scope: str = ""
    cache_saves: int = 0
    vouched: Mapping[str, str] = field(default_factory=dict)
    identities: int = 0
    due: datetime | None = None

    @property
    def key(self) -> Key:
        return job_key(self.id)

    @property
    def place(self) -> Place:
        return Place(f"jobs#{self.owner}", self.id)

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def is_settled(self) -> bool:
        """Whether the job has ended."""
        return self.state is State.SETTLED


def job_key(job: str) -> Key:
    """The key of a job's row."""
    return Key(f"job#{job}", "job")


def acquire(job: Job, now: datetime) -> Job:
    """A job that has a claim. It may wait until its queue deadline, which starts anew with each attempt."""
    until = job.queue_until or now + timedelta(seconds=job.queue_seconds)
    return replace(job, state=State.ACQUIRING, queue_until=until, due=until, nudged=False, parked_until=None)


def step_on(job: Job, now: datetime) -> Job:
    """A job whose claim was granted: its flow takes the next step soon."""
    return replace(job, due=now + STEP_WITHIN, nudged=False) if job.state is State.ACQUIRING else job


def nudge(job: Job, now: datetime, within: timedelta) -> Job:
    """A job whose flow was reminded of its step. If it is overdue again, it is lost."""
    return replace(job, due=now + within, nudged=True)


def start(job: Job, worker: str, now: datetime, health: int = 0) -> Job:
    """An acquiring job whose worker said hello. From now on the script may run. `health`: seconds for health checks."""
    limit = timedelta(seconds=job.timeout + job.grace + health) + SETTLE_WITHIN
    times = replace(job.times, acquired=job.times.acquired or now, started=now)
    return replace(job, state=State.RUNNING, worker=worker, times=times, due=now + limit, health=health)


def latest_end(job: Job, now: datetime) -> datetime:
    """The latest time at which a job's units are given back, unless somebody holds them: its script starts by its queue
    deadline and ends within its timeout.
    """
    ends = job.due if job.state is State.RUNNING else None
    until = job.queue_until or now + timedelta(seconds=job.queue_seconds)
    return ends or until + timedelta(seconds=job.timeout + job.grace) + SETTLE_WITHIN


def report(job: Job, news: Report, failure: Failure | None = None) -> Job:
    """A job with the report of how its attempt ended, and why. The first report stands."""
    return job if job.report else replace(job, report=news, failure=failure, due=news.time + SETTLE_WITHIN)


def cancel(job: Job, by: str, now: datetime) -> Job:
    """A job that somebody cancels. Its agent has the grace period; after that the sweep ends it."""
    limit = now + timedelta(seconds=job.grace + job.health) + SETTLE_WITHIN
    return replace(job, cancelled_by=job.cancelled_by or by, due=min(job.due or limit, limit))


def refuse(job: Job, why: str, now: datetime) -> Job:
    """A job whose owner lost a privilege that it needs: it ends like a cancelled job, and fails. [SEC-2]"""
    return replace(cancel(job, "the service", now), refused=why)


def settle(
    job: Job, outcome: Outcome, reason: str, now: datetime, exit_code: int | None = None, failure: Failure | None = None
) -> Job:
    """A settled job: its outcome, and why it did not succeed. It stays due only while a flow has to be stopped. [JOB-1]

    Raises ValueError for a settled job.
    """
    if job.is_settled:
        raise ValueError(f"job {job.id} is settled already: {job.outcome}")
    times = replace(job.times, settled=now)
    return replace(
        job,
        state=State.SETTLED,
        outcome=outcome,
        reason=reason,
        exit_code=exit_code,
        failure=failure,
        times=times,
        due=now if job.stop_from else None,
        run_token=None,
    )


def retry(
    job: Job, why: Report, outcome: str, now: datetime, *, spared: bool = False, failure: Kind | None = None
) -> Job:
    """The job with its next attempt queued. That attempt starts when the last one's worker is gone. [JOB-2]

    `spared`: it uses up none of the job's retries. `failure`: why the last attempt did not succeed.
    """
    past = PastAttempt(job.attempt, outcome, why.reason, failure)
    return replace(
        job,
        state=State.QUEUED,
        attempt=job.attempt + 1,
        attempts=(*job.attempts, past),
        run_token=None,
        worker=None,
        report=None,
        failure=None,
        queue_until=None,
        nudged=False,
        spared=job.spared + spared,
        health=0,
        parked_until=None,
        due=now + START_WITHIN,
    )


def give_back(job: Job, why: Report, now: datetime) -> Job:
    """The job with its next attempt parked, because it held for too long what it could not use. [QUEUE-3]

    It uses up no retry, and the queue deadline stays the same.
    """
    parked_until = now + timedelta(seconds=job.idle_hold)
    return replace(
        retry(job, why, "gave back", now),
        given_back=job.given_back + 1,
        parked_until=parked_until,
        queue_until=job.queue_until,
        due=min(parked_until, job.queue_until or parked_until),
    )


@dataclass(frozen=True)
class Proves:
    """That a job is there to show that a factory works: its worker is new, looked for in the factory's list, not kept.

    With `keep`, its worker is held for that many seconds from when it is ordered.
    """

    factory: str
    keep: int | None = None


@dataclass(frozen=True)
class HoldRequest:
    """Who wants to look at a job's worker and resources when its script has failed, and for how many seconds they are
    held for that; `whatever` it came to, if so."""

    by: str
    reason: str
    seconds: int
    whatever: bool = False


@dataclass(frozen=True)
class Publication:
    """What a job publishes when it has succeeded: the output with exactly this path, and its published name."""

    path: str
    series: str
    version: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Spec(Row):
    """What a job runs: written once, and read to start or repeat it.

    `toolchain`: a Rust channel, or the name of the repository's file that names it; "" for none.
    """

    kind: ClassVar[str] = "spec"
    job: str
    path: str
    script: str
    output_rules: tuple[str, ...] = ()
    publish: tuple[Publication, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    posts: tuple[Post, ...] = ()
    toolchain: str = ""
    skip_clone: bool = False
    request: Mapping[str, Any] = field(default_factory=dict)
    caches: tuple[CacheAsk, ...] = ()

    @property
    def key(self) -> Key:
        return spec_key(self.job)


def spec_key(job: str) -> Key:
    """The key of a job's spec."""
    return Key(f"job#{job}", "spec")


SUBMISSION_KEPT = timedelta(days=1)
"""How long an Idempotency-Key is remembered."""

WATCH_WINDOW = timedelta(seconds=30)
"""How long a job counts as watched after somebody read its log."""


@dataclass(frozen=True, kw_only=True)
class Submission(Row):
    """An accepted submission: its owner's Idempotency-Key, and the digest of the request."""

    kind: ClassVar[str] = "submission"
    owner: str
    key_digest: str
    request_digest: str
    job: str
    time: datetime

    @property
    def key(self) -> Key:
        return submission_key(self.owner, self.key_digest)

    @property
    def expiry(self) -> datetime:
        return self.time + SUBMISSION_KEPT


@dataclass(frozen=True, kw_only=True)
class Watch(Row):
    """Somebody is reading a job's log: until then its agent sends lines faster."""

    kind: ClassVar[str] = "watch"
    job: str
    until: datetime

    @property
    def key(self) -> Key:
        return watch_key(self.job)

    @property
    def expiry(self) -> datetime:
        return self.until


def submission_key(owner: str, key_digest: str) -> Key:
    """The key of the submission with this digest of an Idempotency-Key."""
    return Key(f"submission#{owner}", key_digest)


def watch_key(job: str) -> Key:
    """The key of a job's Watch."""
    return Key(f"job#{job}", "watch")
