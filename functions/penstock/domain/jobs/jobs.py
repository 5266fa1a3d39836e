"""Jobs: what a user submits, and how it ends.

                    ┌──────────── lost, and tries are left ────────────┐
                    ▼                                                  │
    submit ──▶ queued ──first acquire──▶ acquiring ──hello──▶ running ─┤
       └▶ waiting ┴───────────────────────────┴──────────────────┴─────┴──▶ settled

A job settles exactly once [JOB-1]: only `settle` makes it settled, and it accepts only an unsettled job. A cancellation
is recorded beside the state, so that it never races with it.

Beside the job's row: its spec, unless that is short.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar
from zlib import crc32

from penstock.domain.jobfile.sections import CacheAsk, Post
from penstock.domain.jobs.dependencies import Dependency
from penstock.domain.jobs.failures import Failure, Kind
from penstock.domain.jobs.reviews import Review
from penstock.domain.jobs.tasks import NewTask, as_json
from penstock.domain.pools.pools import Need
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Look, Place, Row

START_WITHIN = timedelta(minutes=1)
"""How long an accepted job may wait for its flow before the sweep starts it again."""

STEP_WITHIN = timedelta(minutes=2)
"""How long a job's flow may take from one step to the next while it waits for nothing of ours."""

FLOW_WITHIN = timedelta(minutes=10)
"""How long a flow may take from its start to its first step under heavy load."""

MAX_GIVE_BACKS = 8
"""How often a job gives back. Each time others may be granted what it waits for, so it is bounded. [QUEUE-2]"""

SETTLE_WITHIN = timedelta(minutes=2)
"""How much longer than its timeout and grace a job may appear to run before it counts as lost."""


class State(StrEnum):
    """The state of a job. The comments say who moves it on, and by when."""

    WAITING = "waiting"  # for jobs, inputs and a review; moved on by their settling and coming; due: the sweep looks
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
    """How an attempt ended. `is_unbegun`: nothing of it had begun, or its machine was broken before its script did."""

    result: Result
    reason: str
    time: datetime
    exit_code: int | None = None
    is_unbegun: bool = False


@dataclass(frozen=True)
class Times:
    """When a job reached each stage. `turn` is by when it stands in its queues, on a site with shares."""

    submitted: datetime
    turn: datetime | None = None
    ready: datetime | None = None
    acquired: datetime | None = None
    started: datetime | None = None
    settled: datetime | None = None


@dataclass(frozen=True)
class PastAttempt:
    """An attempt that was followed by another. `started` is when its script was, None if it was not."""

    attempt: int
    outcome: str
    reason: str
    failure: Kind | None = None
    started: datetime | None = None
    ended: datetime | None = None


LEASES = "(lease)"
"""What stands for the target of a lease in metrics and sums. No target can be called so."""


@dataclass(frozen=True)
class Request:
    """What a job needs and waits for, as it was submitted. Nothing changes it.

    `target_resolved` is the target that an alias stood for; both are "" for a lease without a job. `publishes` says
    that something of the job is to be published when it has succeeded. `cache_scope` is whose caches it adds to, "" for
    nobody's. `chosen` says why it runs on `target_resolved`, if that was chosen among several.
    """

    target: str
    target_resolved: str
    needs: tuple[Need, ...]
    dependencies: tuple[Dependency, ...] = ()
    inputs: tuple[str, ...] = ()
    priority: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)
    publishes: bool = False
    cache_scope: str = ""
    chosen: str = ""

    @property
    def is_lease(self) -> bool:
        """Whether it is a lease without a job: there is no target, and so no worker."""
        return not self.target

    @property
    def slots(self) -> int:
        """How many slots it takes of the pools of what it asks for: more than one of a thing that it has for itself."""
        return sum(need.slots for need in self.needs)

    @property
    def shown_target(self) -> str:
        """Where it runs, as metrics and sums name it."""
        return self.target_resolved or LEASES

    @property
    def came_by(self) -> str:
        """How it came to its target, if that is not the name that was asked for; else ""."""
        return "" if self.target == self.target_resolved else self.chosen or f"asked for as {self.target}"

    @property
    def has_downloads(self) -> bool:
        """Whether the agent downloads files before the script begins: inputs, and outputs of other jobs."""
        return bool(self.inputs) or any(each.copy_outputs for each in self.dependencies)


@dataclass(frozen=True)
class JobLimits:
    """How long each part of a job may take, in seconds, and how often it is tried again.

    `extended` is how many seconds of the timeout its owner asked for later. Nothing else changes them.

    `idle_hold` is for how long an attempt may hold what it cannot use yet, 0 for as long as it takes.
    """

    timeout: int
    queue_seconds: int
    grace: int
    idle_hold: int = 0
    retries: int = 1
    retry_failed: bool = False
    extended: int = 0


UNTRUSTED = (
    "the commit is of somebody who may not write to the repository, or of a ref that `trusted_refs` does not name"
)
"""Why a job is an outsider's."""


@dataclass(frozen=True)
class Provenance:
    """Who submitted a job, and for what. Set once, before the job is stored.

    `check` is the check of a commit that shows the job at GitHub, `vouched` what its submitter may say of its source,
    `canary` the pool that it is a canary of, and `proves` the factory that it tests. `outsider` says that its script
    is of somebody who may not write to the repository, or of a ref that the repository does not trust: it publishes
    nothing, and has no identity. [SEC-2]
    """

    check: str = ""
    vouched: Mapping[str, str] = field(default_factory=dict)
    outsider: bool = False
    canary: str = ""
    proves: Proves | None = None

    @property
    def ref(self) -> str:
        """The branch or pull request that the source is vouched to be of, as `refs/heads/main`; "" for none."""
        number = self.vouched.get("pull_request")
        return self.vouched.get("ref") or (f"refs/pull/{number}" if number else "")


@dataclass(frozen=True)
class History:
    """The attempts before the present one. A new attempt adds to it: `retry` and `give_back`.

    `spared` counts the lost attempts that are no retries, `given_back` those that gave back what they held.
    """

    attempts: tuple[PastAttempt, ...] = ()
    spared: int = 0
    given_back: int = 0


@dataclass(frozen=True)
class Run:
    """The script of the present attempt. `start` and `report` fill it in; the next attempt begins with an empty one.

    `health` is how long the health checks of the worker may take, in seconds. `failure` is why the attempt did not
    succeed: what its agent said of that until the job settles, and the service's own verdict from then on.
    """

    worker: str | None = None
    report: Report | None = None
    failure: Failure | None = None
    health: int = 0


@dataclass(frozen=True)
class Flow:
    """Where the workflow of the present attempt stands. `acquire`, `nudge` and each new attempt move it.

    `nudged` says that the sweep has reminded the workflow of its step. `queue_until` is the queue deadline;
    `parked_until` is when an attempt queues that follows one that gave back. `stop_from` is the first attempt that the
    sweep ended and whose workflow it has not stopped yet.
    """

    nudged: bool = False
    queue_until: datetime | None = None
    parked_until: datetime | None = None
    stop_from: int | None = None


@dataclass(frozen=True)
class Cancellation:
    """Who cancelled a job. `refused` is why the service did: its owner may no longer have what it waits for."""

    cancelled_by: str | None = None
    refused: str | None = None


@dataclass(frozen=True)
class End:
    """How a job ended. `settle` fills it in, once.

    `kept_until` is until when what the job owns is kept, as long as its row alone says so: None when a retention does,
    and when all is deleted. `outputs_gone` is since when nobody gets it any more, and `discarded_by` who
    wanted that before its time.
    """

    outcome: Outcome | None = None
    reason: str | None = None
    exit_code: int | None = None
    kept_until: datetime | None = None
    outputs_gone: datetime | None = None
    discarded_by: str | None = None


@dataclass(frozen=True)
class Usage:
    """What a job has used of the service beside its machines. Each use is counted when it begins.

    `has_secrets` says that its store has, or had, secret values; once the job is settled, that they are not deleted
    yet. `cache_saves` counts the saves to a cache that it began, and `identities` the identity tokens that it got. At
    its submit its owner's use was raised by `expected` seconds, and its owner's tally by `counted` jobs; the tally also
    counts those that have `begun`, and are under way.
    """

    has_secrets: bool = False
    cache_saves: int = 0
    identities: int = 0
    expected: int = 0
    counted: int = 0
    begun: bool = False


@dataclass(frozen=True)
class Charge:
    """What one thing cost that a job leased: its worker, or a resource; all attempts together.

    `held` is for how many milliseconds it was leased, `unused` how many of them the script did not run. The costs of
    both are in millionths of the bill's currency.
    """

    order: int
    name: str
    type: str
    held: int
    unused: int
    cost: int
    unused_cost: int


@dataclass(frozen=True)
class Bill:
    """What a job cost, in millionths of a currency. Until it is closed it says only when that is `due`.

    `control` is for what the service itself does for a job, `stored` for its files as long as they are kept, `sent` for
    those that its workers downloaded.
    """

    due: datetime | None = None
    currency: str = ""
    control: int = 0
    stored: int = 0
    sent: int = 0
    charges: tuple[Charge, ...] = ()

    @property
    def total(self) -> int:
        """All that the job cost."""
        return self.control + self.stored + self.sent + sum(charge.cost for charge in self.charges)

    @property
    def unused(self) -> int:
        """The part for what was leased while the script did not run."""
        return sum(charge.unused_cost for charge in self.charges)


@dataclass(frozen=True, kw_only=True)
class Job(Row):
    """A job and its present attempt. Kept small, for it is written at every step.

    Each group of fields is a value of its own that changes as a whole: a write says which part of the job it changes.
    `keep` is who wants to look at its worker and resources after its end; `review` is of the environment that it asks
    for; `spec` is what it runs, unless that is so long that it has a row of its own. `bill` is None until it settles,
    and on a site without prices.
    """

    kind: ClassVar[str] = "job"
    ends_as: ClassVar[str] = "kept"
    shards: ClassVar[int] = 8
    id: str
    name: str
    owner: str
    state: State
    request: Request
    limits: JobLimits
    provenance: Provenance = Provenance()
    times: Times
    attempt: int = 1
    history: History = History()
    run: Run = Run()
    flow: Flow = Flow()
    cancellation: Cancellation = Cancellation()
    keep: HoldRequest | None = None
    review: Review | None = None
    spec: Spec | None = None
    end: End = End()
    usage: Usage = Usage()
    bill: Bill | None = None
    due: datetime | None = None

    @property
    def key(self) -> Key:
        return job_key(self.id)

    @property
    def place(self) -> Place:
        where = leases_of(self.owner) if self.is_lease else listing(self.owner, self.end.outcome)
        return Place(where, place_sort(self.id, self.name, self.request))

    @property
    def tag(self) -> str:
        return self.state.value

    def outgrew(self, has: Look) -> bool:
        """Whether its entry in the due index would name for long a state that it has left."""
        since = self.times.settled or self.started
        return since is not None and has.tag != self.tag and has.at - since > TAGGED_WITHIN

    @property
    def deadline(self) -> datetime | None:
        later = (self.bill.due if self.bill else None, self.end.kept_until)
        return self.due or min((time for time in later if time), default=None)

    @property
    def due_as(self) -> str:
        return self.ends_as if self.is_settled and not self.due else self.kind

    @property
    def is_settled(self) -> bool:
        """Whether the job has ended."""
        return self.state is State.SETTLED

    @property
    def is_lease(self) -> bool:
        """Whether it is a lease without a job: bare_leases.py."""
        return self.request.is_lease

    @property
    def noun(self) -> str:
        """What to call it."""
        return "lease" if self.is_lease else "job"

    @property
    def started(self) -> datetime | None:
        """When the script of the present attempt was started, or a lease began; None if that was not."""
        return self.times.started if self.run.worker or self.is_lease else None

    @property
    def awaits_review(self) -> bool:
        """Whether somebody has to approve the job for the environment that it asks for."""
        return self.state is State.WAITING and self.review is not None and self.review.is_open

    @property
    def may_give_back(self) -> bool:
        """Whether the attempt gives back what it holds if it waits too long for the rest."""
        is_limited = self.limits.idle_hold > 0 and self.history.given_back < MAX_GIVE_BACKS
        return is_limited and self.state is State.ACQUIRING

    def privileges_of(self, step: int) -> set[str]:
        """The privileges that the owner needs for what a step acquires. A canary belongs to the site and needs none."""
        return {each for need in self.request.needs if need.step == step for each in self.privileges_for(need)}

    def privileges_for(self, need: Need) -> set[str]:
        """The privileges that the owner needs for something: those that the job has not got by a review. [SEC-2]"""
        if self.provenance.canary:
            return set()
        return {each for each in need.privileges if self.review is None or each not in self.review.privileges}


APART = (Outcome.FAILED, Outcome.CANCELLED, Outcome.ERRORED)
"""The outcomes whose jobs are in listings of their own."""

TAGGED_WITHIN = timedelta(minutes=5)
"""For how long the due index may have a job with a state that it has left."""

PLACED_NAME, PLACED_TAGS, LEFT_OUT = 64, 25, "*"
"""How long a name and how many tags may be to stand in a listing, and what stands for tags that may not."""


def listing(owner: str, outcome: str | None = None) -> str:
    """The name of a listing of an owner's jobs, which has those with an outcome; None for those that go on."""
    return f"jobs#{owner}#{outcome}" if outcome in APART else f"jobs#{owner}"


def leases_of(owner: str) -> str:
    """The name of the listing of all leases that an owner has, or had, without a job."""
    return f"leases#{owner}"


def place_sort(id: str, name: str, asked: Request) -> str:
    """A job's place in its listing, and what that says of it: places.py."""
    sums = "".join(map(tag_sum, asked.tags.items())) if len(asked.tags) <= PLACED_TAGS else LEFT_OUT
    targets = ",".join(dict.fromkeys((asked.target, asked.target_resolved)))
    return f"{id}#{sums}#{targets}#{name if len(name) <= PLACED_NAME else ''}"


def tag_sum(tag: tuple[str, str]) -> str:
    """What a listing has of a tag: a checksum in four hex digits."""
    return f"{crc32('='.join(tag).encode()) & 0xFFFF:04x}"


def job_key(job: str) -> Key:
    """The key of a job's row."""
    return Key(f"job#{job}", "job")


def acquire(job: Job, now: datetime) -> Job:
    """A job that has a claim. It may wait until its queue deadline, which starts anew with each attempt."""
    until = job.flow.queue_until or now + timedelta(seconds=job.limits.queue_seconds)
    flow = replace(job.flow, queue_until=until, nudged=False, parked_until=None)
    return replace(job, state=State.ACQUIRING, flow=flow, due=until)


def step_on(job: Job, now: datetime) -> Job:
    """A job whose claim was granted: its flow takes the next step soon.

    Each attempt whose flow was lost gives the next more time: if a backlog delays all messages, it is not added to.
    """
    if job.state is not State.ACQUIRING:
        return job
    return replace(job, due=now + STEP_WITHIN * (1 + job.history.spared), flow=replace(job.flow, nudged=False))


def nudge(job: Job, now: datetime, within: timedelta) -> Job:
    """A job whose flow was reminded of its step. If it is overdue again, it is lost."""
    return replace(job, due=now + within, flow=replace(job.flow, nudged=True))


def start(job: Job, worker: str, now: datetime, health: int = 0) -> Job:
    """An acquiring job whose worker said hello. From now on the script may run. `health`: seconds for health checks."""
    times = replace(job.times, acquired=job.times.acquired or now, started=now)
    run = replace(job.run, worker=worker, health=health)
    begun = replace(job, state=State.RUNNING, run=run, times=times)
    return replace(begun, due=now + longest_run(begun))


def longest_run(job: Job) -> timedelta:
    """How long after its start a job that runs is overdue. A lease has nobody who would end it before, and whom to wait
    for.
    """
    if job.is_lease:
        return timedelta(seconds=job.limits.timeout)
    return timedelta(seconds=job.limits.timeout + job.limits.grace + job.run.health) + SETTLE_WITHIN


def latest_end(job: Job, now: datetime) -> datetime:
    """The latest time at which a job's units are given back, unless somebody holds them: its script starts by its queue
    deadline and ends within its timeout.
    """
    ends = job.due if job.state is State.RUNNING else None
    until = job.flow.queue_until or now + timedelta(seconds=job.limits.queue_seconds)
    return ends or until + longest_run(job)


def report(job: Job, news: Report, failure: Failure | None = None) -> Job:
    """A job with the report of how its attempt ended, and why. The first report stands."""
    if job.run.report:
        return job
    return replace(job, run=replace(job.run, report=news, failure=failure), due=news.time + SETTLE_WITHIN)


def cancel(job: Job, by: str, now: datetime) -> Job:
    """A job that somebody cancels. Its agent has the grace period; after that the sweep ends it."""
    limit = now + timedelta(seconds=job.limits.grace + job.run.health) + SETTLE_WITHIN
    cancellation = replace(job.cancellation, cancelled_by=job.cancellation.cancelled_by or by)
    return replace(job, cancellation=cancellation, due=min(job.due or limit, limit))


def refuse(job: Job, why: str, now: datetime) -> Job:
    """A job whose owner lost a privilege that it needs, or that was not approved: it ends like a cancelled job, and
    fails. [SEC-2]
    """
    cancelled = cancel(job, "the service", now)
    return replace(cancelled, cancellation=replace(cancelled.cancellation, refused=why))


def approve(job: Job, by: str) -> Job:
    """A job that somebody approved for its environment. The first approval stands. [SEC-2]"""
    return replace(job, review=replace(job.review, by=by)) if job.review and job.review.is_open else job


def settle(
    job: Job, outcome: Outcome, reason: str, now: datetime, exit_code: int | None = None, failure: Failure | None = None
) -> Job:
    """A settled job: its outcome, and why it did not succeed. [JOB-1]

    It stays due only while a flow has to be stopped, or secrets have to be deleted, which begins at once.
    Raises ValueError for a settled job.
    """
    if job.is_settled:
        raise ValueError(f"job {job.id} is settled already: {job.end.outcome}")
    times = replace(job.times, settled=now)
    cleared = now + SETTLE_WITHIN if job.usage.has_secrets else None
    return replace(
        job,
        state=State.SETTLED,
        end=replace(job.end, outcome=outcome, reason=reason, exit_code=exit_code),
        run=replace(job.run, failure=failure),
        times=times,
        due=now if job.flow.stop_from else cleared,
    )


def flows_stopped(job: Job) -> Job:
    """A job none of whose flows has to be stopped any more."""
    is_done = job.is_settled and not job.usage.has_secrets
    return replace(job, flow=replace(job.flow, stop_from=None), due=None if is_done else job.due)


def secrets_deleted(job: Job) -> Job:
    """A settled job none of whose secrets is left."""
    return replace(job, usage=replace(job.usage, has_secrets=False), due=job.due if job.flow.stop_from else None)


def retry(
    job: Job, why: Report, outcome: str, now: datetime, *, spared: bool = False, failure: Kind | None = None
) -> Job:
    """The job with its next attempt queued. That attempt starts when the last one's worker is gone. [JOB-2]

    `spared`: it uses up none of the job's retries. `failure`: why the last attempt did not succeed.
    """
    past = PastAttempt(job.attempt, outcome, why.reason, failure, job.started, now)
    return replace(
        job,
        state=State.QUEUED,
        attempt=job.attempt + 1,
        history=replace(job.history, attempts=(*job.history.attempts, past), spared=job.history.spared + spared),
        flow=replace(job.flow, queue_until=None, nudged=False, parked_until=None),
        run=Run(),
        due=now + START_WITHIN,
    )


def give_back(job: Job, why: Report, now: datetime) -> Job:
    """The job with its next attempt parked, because it held for too long what it could not use. [QUEUE-3]

    It uses up no retry, and the queue deadline stays the same.
    """
    parked_until = now + timedelta(seconds=job.limits.idle_hold)
    queue_until = job.flow.queue_until
    parked = retry(job, why, "gave back", now)
    return replace(
        parked,
        history=replace(parked.history, given_back=job.history.given_back + 1),
        flow=replace(parked.flow, parked_until=parked_until, queue_until=queue_until),
        due=min(parked_until, queue_until or parked_until),
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
    """What a job runs, `script` or `tasks`: written once, in its job's row or in one of its own, and read to start it.

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
    tasks: tuple[NewTask, ...] = ()

    @property
    def key(self) -> Key:
        return spec_key(self.job)

    @property
    def source(self) -> str:
        """The job file; for a job without one, its tasks as JSON."""
        return as_json(self.tasks) if self.tasks else self.script


def spec_key(job: str) -> Key:
    """The key of a job's spec."""
    return Key(f"job#{job}", "spec")
