"""Jobs, their logs and their outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from penstock.domain.units import units
from penstock.kernel import limits
from penstock.wire.shapes import Bound

JobState = Literal["waiting", "queued", "acquiring", "running", "settled"]
JobOutcome = Literal["succeeded", "failed", "cancelled", "errored"]


@dataclass(frozen=True)
class SubmitJob:
    """A job to run. `script` is a whole job file; the other values win over those in its header.

    It waits for `inputs`, which are sent after it: they are the names of files below /input. Each of `dependencies` is
    `{"job": ID, "on": "success", "copy_outputs": true}`, by the name of its folder there. `matrix` says which of the
    jobs it is that a file with a matrix stands for: a value for each axis. `owner` is the repository whose job it is,
    where it is not its submitter's. `without` are the file's dependencies that the job does not wait for.
    `cache_scope` is the branch whose caches it adds to (docs/users/caches.md): its file cannot say it.
    """

    script: str
    path: Annotated[str, Bound(most=1024)] = "job.sh"
    name: str | None = None
    target: str | None = None
    resources: list[str] | dict[str, dict[str, Any]] | None = None
    output_rules: list[str] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    priority: int | None = None
    timeout: int | str | None = None
    retries: int | None = None
    hold_on_failure: int | str | None = None
    inputs: list[str] | None = None
    dependencies: dict[str, Any] | None = None
    matrix: dict[str, str] | None = None
    owner: Annotated[str, Bound(most=200)] | None = None
    without: list[str] | None = None
    cache_scope: Annotated[str, Bound(most=limits.CACHE_SCOPE_CHARS)] | None = None


@dataclass(frozen=True)
class JobResource:
    """A resource that a job asked for, and how far it is."""

    name: str
    type: str
    state: Literal["wanted", "waiting", "granted", "ready", "releasing", "released"]
    slot: str | None


@dataclass(frozen=True)
class JobTimes:
    """When the job reached each of its stations."""

    submitted: str
    ready: str | None
    acquired: str | None
    started: str | None
    settled: str | None


@dataclass(frozen=True)
class JobAttempt:
    """An attempt that was followed by another; `failure` is the kind of why, where that is known."""

    attempt: int
    outcome: str
    reason: str
    failure: str | None = None


@dataclass(frozen=True)
class FailedTask:
    """The task that ended a job. `index` counts from 0."""

    index: int
    name: str


@dataclass(frozen=True)
class JobFailure:
    """Why a job did not succeed. `kind` is one of a closed set, and `evidence` what there is to show for it: see
    docs/users/failures.md. `lines` are the last that the job said, or its machine's console, as `lines_of` says."""

    kind: str
    what: str
    advice: str
    evidence: dict[str, Any]
    task: FailedTask | None
    lines: list[str]
    lines_of: Literal["job", "console"]


@dataclass(frozen=True)
class JobDependency:
    """A job that was to end before this one: as `on` says, and with its outputs below /input/`name` if so."""

    name: str
    job: str
    on: Literal["success", "failure", "always"]
    copy_outputs: bool


@dataclass(frozen=True)
class HoldJob:
    """Hold a job's worker and resources `for` some seconds when its script fails, or `whatever` it comes to.

    Without `for`, as long as the site lets users hold what their jobs had.
    """

    reason: Annotated[str, Bound(most=units.HOLD_REASON_CHARS)]
    for_: Annotated[int | None, Bound(least=1, most=units.HOLD_MOST)] = None
    whatever: bool = False


@dataclass(frozen=True)
class HeldUnit:
    """A worker or a resource of a job that is held."""

    kind: Literal["worker", "resource"]
    id: str
    pool: str
    slot: str


@dataclass(frozen=True)
class HeldJob:
    """What a job had is held, for somebody to look at. `unit_seconds`, units times seconds, is its cost so far."""

    by: str
    reason: str
    until: str
    unit_seconds: float
    units: list[HeldUnit]


@dataclass(frozen=True)
class JobView:
    """A job. `timeout` in seconds. `failure` is null until it settles, and for one that succeeded.

    `held` is told of one job, and not in lists.

    `outputs_gone` is since when nothing is kept any more of what it made. `cache_scope` is the branch whose caches it
    adds to: null where it adds to none.
    """

    id: str
    name: str
    owner: str
    state: JobState
    outcome: JobOutcome | None
    reason: str | None
    attempt: int
    target: str
    target_resolved: str
    resources: list[JobResource]
    times: JobTimes
    worker: str | None
    exit_code: int | None
    tags: dict[str, str]
    priority: int
    timeout: int
    attempts: list[JobAttempt]
    failure: JobFailure | None = None
    held: HeldJob | None = None
    dependencies: list[JobDependency] = field(default_factory=list)
    outputs_gone: str | None = None
    cache_scope: str | None = None


@dataclass(frozen=True)
class JobPage:
    """Some jobs, newest first. `next` is the page to ask for next, or null."""

    items: list[JobView]
    next: str | None


@dataclass(frozen=True)
class EventView:
    """One line of a job's log."""

    seq: int
    time: str
    stream: str
    task: int | None
    attempt: int
    payload: str


@dataclass(frozen=True)
class EventPage:
    """Lines of a job's log. `next` is the number to ask after; state and outcome are the job's."""

    items: list[EventView]
    next: int
    state: JobState
    outcome: JobOutcome | None


@dataclass(frozen=True)
class HeldView:
    """How long an attempt held a resource, or its worker, and how long of that its script did not run yet."""

    attempt: int
    name: str
    type: str
    seconds: float
    unused_seconds: float


@dataclass(frozen=True)
class TimingsView:
    """When a job reached each station, and the seconds between them; and what its attempts held, used or not."""

    times: JobTimes
    intervals: dict[str, float]
    held: list[HeldView] = field(default_factory=list)
