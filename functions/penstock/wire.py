"""The JSON that users and operators send and get. The OpenAPI document is made from these classes.

Every field has its unit in its name or its comment. Times are RFC 3339 in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

JobState = Literal["waiting", "queued", "acquiring", "running", "settled"]
JobOutcome = Literal["succeeded", "failed", "cancelled", "errored"]


@dataclass(frozen=True)
class Bound:
    """How long a text may be, in characters, or how large a number."""

    most: int
    least: int = 0


@dataclass(frozen=True)
class SubmitJob:
    """A job to run. `script` is a whole job file; the other values win over those in its header."""

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
    inputs: list[str] | None = None
    dependencies: dict[str, Any] | None = None


@dataclass(frozen=True)
class Created:
    """The id of what was made."""

    id: str


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
    """An attempt that was followed by another."""

    attempt: int
    outcome: str
    reason: str


@dataclass(frozen=True)
class JobView:
    """A job. `timeout` in seconds."""

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


@dataclass(frozen=True)
class JobPage:
    """Some jobs, newest first. `next` is the page to ask for next, or null."""

    items: list[JobView]
    next: str | None


@dataclass(frozen=True)
class HolderView:
    """Who has a slot."""

    slot: str
    job: str
    since: str


@dataclass(frozen=True)
class AheadView:
    """Who comes first."""

    job: str
    since: str


@dataclass(frozen=True)
class BlockView:
    """The pool that a job waits for. `position` counts from 1."""

    pool: str
    kind: Literal["numbered", "named"]
    position: int
    ahead: list[AheadView]
    held_by: list[HolderView]
    limit: int
    held: int
    free: int
    paused: bool


@dataclass(frozen=True)
class WhyView:
    """Why a job is where it is."""

    job: str
    state: JobState
    summary: str
    blocked_on: BlockView | None
    waiting_for: str | None
    since: str


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
class OutputView:
    """A file that a job produced. `size` in bytes, `sha256` in hex."""

    id: str
    path: str
    size: int
    sha256: str
    time: str


@dataclass(frozen=True)
class OutputPage:
    """Some outputs."""

    items: list[OutputView]
    next: str | None


@dataclass(frozen=True)
class SignOutput:
    """Leave to fetch an output for some seconds, at most 3600."""

    expires_in: Annotated[int, Bound(least=1, most=3600)] = 3600


@dataclass(frozen=True)
class SignedOutput:
    """A URL that is good for `expires_in` seconds."""

    url: str
    size: int
    sha256: str
    expires_in: int


@dataclass(frozen=True)
class TimingsView:
    """When a job reached each station, and the seconds between them."""

    times: JobTimes
    intervals: dict[str, float]


@dataclass(frozen=True)
class SlotView:
    """A slot and who has it."""

    slot: str
    state: Literal["free", "held", "withdrawn"]
    job: str | None
    attempt: int | None
    since: str | None
    fence: int
    unit: str | None


@dataclass(frozen=True)
class QueuedView:
    """A claim and its place."""

    position: int
    job: str
    attempt: int
    since: str
    priority: int


@dataclass(frozen=True)
class PoolView:
    """A pool. `slots` and `queue` are given when one pool is asked for."""

    pool: str
    kind: Literal["numbered", "named"]
    limit: int
    held: int
    free: int
    waiting: int
    paused: bool
    slots: list[SlotView] | None = None
    queue: list[QueuedView] | None = None


@dataclass(frozen=True)
class PoolPage:
    """All pools."""

    items: list[PoolView]
    next: str | None


@dataclass(frozen=True)
class PoolLimit:
    """How many slots a numbered pool shall have."""

    limit: int


@dataclass(frozen=True)
class WorkerView:
    """A worker. `due` is when it is looked at again if nothing is heard."""

    id: str
    target: str
    factory: str
    state: str
    job: str
    attempt: int
    since: str
    due: str | None
    reason: str | None


@dataclass(frozen=True)
class WorkerPage:
    """All workers that exist."""

    items: list[WorkerView]
    next: str | None


@dataclass(frozen=True)
class ResourceView:
    """A resource. Its metadata is for its job alone."""

    id: str
    type: str
    well: str
    slot: str
    state: str
    job: str
    attempt: int
    since: str
    due: str | None
    reason: str | None


@dataclass(frozen=True)
class ResourcePage:
    """All resources that exist."""

    items: list[ResourceView]
    next: str | None


@dataclass(frozen=True)
class SiteView:
    """The site's configuration."""

    toml: str | None
    applied_at: str | None
    applied_by: str | None


@dataclass(frozen=True)
class ApplySite:
    """A site's configuration to check or apply."""

    toml: str
    path: Annotated[str, Bound(most=1024)] = "site.toml"


@dataclass(frozen=True)
class SiteChanges:
    """What applying changed, or would change, a sentence each."""

    changes: list[str]


@dataclass(frozen=True)
class Entry:
    """One target, resource type, factory or well of the site."""

    name: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class EntryPage:
    """All of one sort."""

    items: list[Entry]
    next: str | None


@dataclass(frozen=True)
class NewUser:
    """A user to be created."""

    name: str
    privileges: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class UserView:
    """A user and what they may do."""

    name: str
    privileges: list[str]
    created: str


@dataclass(frozen=True)
class UserPage:
    """All users."""

    items: list[UserView]
    next: str | None


@dataclass(frozen=True)
class NewToken:
    """A token to be made; `expires_in` in seconds, never when absent."""

    expires_in: int | None = None


@dataclass(frozen=True)
class TokenView:
    """A token, shown this once."""

    token: str
    expires: str | None


@dataclass(frozen=True)
class FaultView:
    """One thing wrong with a request."""

    message: str
    where: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None


@dataclass(frozen=True)
class ProblemView:
    """What every refusal looks like: RFC 9457, with a stable `code`."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: list[FaultView]
