"""Jobs: what a user submits, and how it ends.

                    ┌──────────── lost, and tries are left ────────────┐
                    ▼                                                  │
    submit ──▶ queued ──first acquire──▶ acquiring ──hello──▶ running ─┤
       └▶ waiting ┴───────────────────────────┴──────────────────┴─────┴──▶ settled

A job settles exactly once [JOB-1]: `settle` is the only function that makes it settled, and it takes only an
unsettled one. Cancellation is a fact beside the state, so that it never races with it.

What users ask of a job: what it is to do and to publish, what it proves, and what of it is held at its end.

What is remembered of requests: that a job was submitted, and that somebody is watching one.
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
"""How long a job's flow may take from one step to the next, while it waits for nothing of ours."""

FLOW_WITHIN = timedelta(minutes=10)
"""How long a flow that was started may take to its first step, when much is going on."""

SETTLE_WITHIN = timedelta(minutes=2)
"""How much longer than its timeout and grace a job may seem to run before it counts as lost."""


class State(StrEnum):
    """Where a job is. Each says who moves it on, and by when."""

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
    """How an attempt ended, as told by its agent, or by us for an agent that no longer can."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"


@dataclass(frozen=True)
class Report:
    """What is known of how an attempt ended. `is_unbegun` says that its machine was broken before its script began."""

    result: Result
    reason: str
    time: datetime
    exit_code: int | None = None
    is_unbegun: bool = False


@dataclass(frozen=True)
class Times:
    """When a job reached each of its stations."""

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
        """Whether the job has come to its end."""
        return self.state is State.SETTLED


def job_key(job: str) -> Key:
    """Where a job's row is."""
    return Key(f"job#{job}", "job")


def acquire(job: Job, now: datetime) -> Job:
    """A job that claims something: it may wait until its queue deadline, which each attempt has anew."""
    until = job.queue_until or now + timedelta(seconds=job.queue_seconds)
    return replace(job, state=State.ACQUIRING, queue_until=until, due=until, nudged=False, parked_until=None)


def step_on(job: Job, now: datetime) -> Job:
    """A job that got what it claimed: its flow is to take the next step soon."""
    return replace(job, due=now + STEP_WITHIN, nudged=False) if job.state is State.ACQUIRING else job


def nudge(job: Job, now: datetime, within: timedelta) -> Job:
    """A job whose flow was reminded of its step. What is due a second time is lost."""
    return replace(job, due=now + within, nudged=True)


def start(job: Job, worker: str, now: datetime, health: int = 0) -> Job:
    """An acquiring job whose worker said hello. From here on the script may run; `health` is what checks may take."""
    limit = timedelta(seconds=job.timeout + job.grace + health) + SETTLE_WITHIN
    times = replace(job.times, acquired=job.times.acquired or now, started=now)
    return replace(job, state=State.RUNNING, worker=worker, times=times, due=now + limit, health=health)


def latest_end(job: Job, now: datetime) -> datetime:
    """When what a job holds is put back at the latest, if nobody holds it: its script starts by its queue deadline and
    ends within its timeout."""
    ends = job.due if job.state is State.RUNNING else None
    until = job.queue_until or now + timedelta(seconds=job.queue_seconds)
    return ends or until + timedelta(seconds=job.timeout + job.grace) + SETTLE_WITHIN


def report(job: Job, news: Report, failure: Failure | None = None) -> Job:
    """A job of whose attempt the end is known, and what is known of why. The first report stands."""
    return job if job.report else replace(job, report=news, failure=failure, due=news.time + SETTLE_WITHIN)


def cancel(job: Job, by: str, now: datetime) -> Job:
    """A job that somebody wants ended. Its agent gets its grace; after that the sweep ends it."""
    limit = now + timedelta(seconds=job.grace + job.health) + SETTLE_WITHIN
    return replace(job, cancelled_by=job.cancelled_by or by, due=min(job.due or limit, limit))


def refuse(job: Job, why: str, now: datetime) -> Job:
    """A job whose owner may not have what it waits for: it is ended as if it were cancelled, and fails. [SEC-2]"""
    return replace(cancel(job, "the service", now), refused=why)


def settle(
    job: Job, outcome: Outcome, reason: str, now: datetime, exit_code: int | None = None, failure: Failure | None = None
) -> Job:
    """The job's end, and why it did not succeed, if so. It is due only while a flow is to be stopped. [JOB-1]

    Raises ValueError for a job that is settled.
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
    """The job with its next attempt queued; the attempt starts when the last one's worker is gone. [JOB-2]

    With `spared` it is none of the job's retries. `failure` is why the last one did not succeed.
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
    """The job with its next attempt parked, after one that held too long what it could not use. [QUEUE-3]

    It is none of its retries, and no other wait: the queue deadline stays.
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
    """What a job is to publish when it has succeeded: the output with this very path, and as what."""

    path: str
    series: str
    version: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Spec(Row):
    """What a job is to do: written once, read by whoever starts or repeats it.

    `toolchain` is a channel of Rust's, or the name of the repository's file that says which; "" for none.
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
    """Where a job's spec is."""
    return Key(f"job#{job}", "spec")


SUBMISSION_KEPT = timedelta(days=1)
"""How long an Idempotency-Key is remembered."""

WATCH_WINDOW = timedelta(seconds=30)
"""How long after somebody read a job's log it counts as watched."""


@dataclass(frozen=True, kw_only=True)
class Submission(Row):
    """A submit that was accepted, by its owner's Idempotency-Key and the digest of what was asked."""

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
    """Somebody reads a job's log: its agent hurries until then."""

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
    """Where the submission with an Idempotency-Key of this digest is."""
    return Key(f"submission#{owner}", key_digest)


def watch_key(job: str) -> Key:
    """Where it is noted that a job is watched."""
    return Key(f"job#{job}", "watch")
