"""The ports: what use cases need of the world. Adapters, factories and wells implement them.

Drivers may implement more than `Driver`, for example `CleaningDriver`; whoever needs that checks for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, TypeVar, runtime_checkable

from penstock.domain.artifacts.volumes import Part
from penstock.domain.metrics import Metric
from penstock.domain.site.site import GitHubApp
from penstock.domain.units.units import CleanProof
from penstock.domain.users.oidc import PublicKey
from penstock.kernel.errors import Shortage
from penstock.kernel.rows import Change, Key, Row

R = TypeVar("R", bound=Row)


class Store(Protocol):
    """The table. Reads see every commit that was confirmed before them, unless stated otherwise."""

    def get(self, key: Key, kind: type[R]) -> R | None:
        """The row at a key. Raises TypeError if it is of another kind."""

    def find(
        self,
        pk: str,
        prefix: str,
        kind: type[R],
        *,
        limit: int = 1000,
        last: bool = False,
        after: str = "",
        upto: str = "",
    ) -> list[R]:
        """The rows of a collection whose place begins with a prefix, in order; with `last`, from the end.

        Only those after the place `after`, or those up to the place `upto`; not both.
        """

    def commit(self, changes: Sequence[Change]) -> bool:
        """Make all changes, or none and return False: another process was faster, so read again."""

    def overdue(self, now: datetime, limit: int, *, later: bool = False) -> list[tuple[str, Key]]:
        """The kinds and keys of rows whose deadline has passed, oldest first; a read that may lag.

        Either of the kinds that somebody waits for, or, with `later`, of the others: Row.later.
        """

    def listed(self, name: str, kind: type[R], *, limit: int = 100, after: str = "", newest: bool = False) -> list[R]:
        """The rows of a listing, in order of their place; a read that may lag."""


class Queues(Protocol):
    """Messages to whatever does the next step. Any of them may be lost, doubled, late or out of order."""

    def schedule(self, message: Mapping[str, Any]) -> None:
        """Send the scheduler a step."""

    def advance(self, unit: str, is_worker: bool, after: int = 0) -> None:
        """Send a unit's factory or well its next step, after some seconds (at most 900)."""


class Flows(Protocol):
    """The state machine that sequences one attempt."""

    def start(self, job: str, attempt: int, steps: Sequence[int]) -> None:
        """Start the flow of an attempt. If it was started before, nothing happens. Raises Unreached."""

    def stop(self, job: str, attempt: int) -> None:
        """Stop the flow of an attempt that is over. Without a running flow, nothing happens."""

    def succeed(self, token: str) -> None:
        """Answer a waiting step. If it no longer waits, nothing happens."""

    def fail(self, token: str, error: str, cause: str) -> None:
        """Answer a waiting step with an error. If it no longer waits, nothing happens."""

    def ended(self) -> Iterable[tuple[str, int, str]]:
        """Job, attempt and status of flows that ended lately, other than with success."""


@dataclass(frozen=True)
class Grant:
    """Permission to upload or download one object for a while: method, URL and headers."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """An object in the store, and since when."""

    name: str
    size: int
    time: datetime


class Objects(Protocol):
    """The object store."""

    def upload(self, name: str, size: int, sha256: str) -> Grant:
        """Permission to upload an object of this size (bytes) and digest (hex)."""

    def parts(self, name: str, wanted: Sequence[Part]) -> Sequence[Grant | None]:
        """Permission to upload some parts of an object, in their order; None for each that has arrived already."""

    def join(self, name: str, count: int, composite: str) -> None:
        """Make an object of its parts, if all have arrived and this (hex) is the digest of their digests."""

    def abandon(self, name: str) -> None:
        """Delete the parts of an object that was never completed; there may be none."""

    def download(self, name: str, seconds: int, filename: str) -> Grant:
        """Permission to download an object for some seconds, to be saved under a file name."""

    def size(self, name: str) -> int | None:
        """An object's size in bytes; None if it does not exist."""

    def store(self, name: str, content: bytes) -> None:
        """Store an object of our own, as a whole."""

    def begin(self, name: str) -> str:
        """Begin to store an object in parts. An upload that is never completed expires after a day."""

    def part(self, name: str, upload: str, number: int, content: bytes) -> str | None:
        """Store a part, counted from 1, and return its tag; None if the upload no longer exists.

        The same part again replaces it. All but the last have 5 MiB at least.
        """

    def complete(self, name: str, upload: str, tags: Sequence[str]) -> None:
        """Make an object of its parts. Repeated, or with an upload that no longer exists, it changes nothing."""

    def read(self, name: str, start: int, size: int) -> bytes:
        """Some bytes of an object from a position on; fewer at its end, none if it does not exist."""

    def delete(self, name: str) -> None:
        """Delete an object; it need not exist."""

    def list(self, prefix: str, after: str, limit: int) -> Sequence[Stored]:
        """The objects whose names begin with a prefix and come after `after`, in order; a short page is the last."""


class World(Protocol):
    """Time and chance."""

    def now(self) -> datetime:
        """The time, in UTC."""

    def ulid(self) -> str:
        """A new id."""

    def secret(self) -> str:
        """A new random text that nobody can guess."""

    def pause(self, tries: int) -> None:
        """Wait a moment, longer with every try, before a race is repeated."""


class Metrics(Protocol):
    """What is counted and measured for those who operate the site. No step may depend on it."""

    def add(self, metric: Metric, value: float = 1, **by: str) -> None:
        """Add a value, with all dimensions of the metric. Never fails; reported when the handler has ended."""

    def wants(self, metric: Metric) -> bool:
        """Whether a metric is reported at all: what is read only for it need not be read otherwise."""


@dataclass(frozen=True)
class Ready:
    """The driver is done. `metadata` is what the unit's job may know of it; `shortages` are what it met on the way.

    `proves` are the scopes with capacity, since the unit was just made of it; None for all that were not avoided.
    `notes`, of a ContextDriver, are what it wants to get back: some KiB of JSON in the unit's row, and no secrets.
    `expires`, of a well's answer, is when the metadata becomes useless: well before that, `create` is called again for
    the same lease, and its answer replaces this one. `public` are the keys of the metadata whose values may appear in a
    job's log; all others are masked there. [SEC-1]
    """

    metadata: Mapping[str, Any] = field(default_factory=dict)
    shortages: Sequence[Shortage] = ()
    proves: Collection[str] | None = None
    notes: Mapping[str, Any] | None = None
    expires: datetime | None = None
    public: Collection[str] = ()


@dataclass(frozen=True)
class NotYet:
    """The driver is not done: call it again in some seconds.

    `stops_itself`, of a worker that is to be destroyed: once a lease has passed since its own ended, nothing of its job
    runs any more, because its agent stops it; only traces are left. `notes` as in Ready.
    """

    after: int = 5
    reason: str | None = None
    stops_itself: bool = False
    notes: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Order:
    """What a driver needs to make one unit. A worker's `key` lets its agent say hello once. A well's is a secret to
    derive passwords from: the same for every call for one lease, so that the last answer is right whichever call made
    it, and another for the next lease.

    `avoid` are the scopes whose shortages are too recent to try again; a driver without scopes ignores them. `job` is
    whose lease it is for, "" for a unit made ahead of need; `lasts`, how many seconds that lease may last from now at
    most, None if unknown.
    """

    id: str
    type: str
    slot: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    url: str = ""
    key: str = ""
    avoid: Collection[str] = ()
    job: str = ""
    lasts: int | None = None

    @property
    def is_worker(self) -> bool:
        """Whether it is for a factory: then there is an agent, which connects to a URL."""
        return bool(self.url)


@dataclass(frozen=True)
class Option:
    """One option that a job may pass to a well: its meaning for people, and its type for the check.

    `kind` is string, number, whole number, true or false, list, or table; without `allowed` any value of the kind is
    valid.
    """

    name: str
    kind: str
    meaning: str = ""
    default: Any = None
    allowed: Sequence[Any] = ()


class Driver(Protocol):
    """What factories and wells have in common. A driver never touches our tables."""

    def create(self, order: Order) -> Ready | NotYet:
        """Make the unit, tagged with its id. Repeated with the same id, it makes one unit. Raises DriverError."""

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Remove every trace of the unit, and the unit; it need not exist. Raises DriverError.

        If the driver finds nothing, and new units become visible late, it says how late: `CleanProof.lag`.
        """

    def list(self) -> Iterable[str]:
        """The ids of all units that exist outside and have our tag. Raises DriverError."""


class Drivers(Protocol):
    """The drivers that a site may choose from. `name` is the factory's or well's own, which a driver may tag with."""

    def factory(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Driver:
        """The driver of a factory. Raises Misconfigured."""

    def well(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Driver:
        """The driver of a well. Raises Misconfigured."""

    def complaints(self, kind: str, driver: str, settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with a driver's settings; `kind` is factory or well."""

    def keeps(self, kind: str, driver: str) -> bool:
        """Whether a driver's units can stay for the next lease; `kind` is factory or well."""

    def quarantines(self, kind: str, driver: str) -> bool:
        """Whether a driver's units exist already, so that broken ones are quarantined; `kind` is factory or well."""

    def hosts(self, driver: str) -> bool:
        """Whether a factory's workers are machines that exist already, each with its own name."""

    def objections(
        self, driver: str, options: Mapping[str, Any], well: Mapping[str, Any], kind: Mapping[str, Any]
    ) -> Sequence[str]:
        """What is wrong with the options that a job passes to a well, by the well's and the type's settings."""

    def options(self, driver: str, well: Mapping[str, Any], kind: Mapping[str, Any]) -> Sequence[Option] | None:
        """The options that jobs may pass to a well with these settings; None if its driver does not declare them."""


class Vault(Protocol):
    """Seals what rows may not hold in plain text. `of` binds a seal to its use: it opens only with the same words."""

    def seal(self, secret: bytes, of: Mapping[str, str]) -> str:
        """A text that reveals nothing to anybody who may not open it."""

    def open(self, sealed: str, of: Mapping[str, str]) -> bytes:
        """What was sealed. Raises ValueError for anything that was not sealed with these words."""


class Signer(Protocol):
    """Signs identity tokens, with a key that never leaves its service."""

    def kid(self) -> str:
        """The id of the key that signs now."""

    def sign(self, message: bytes) -> bytes:
        """An RS256 signature by that key."""

    def keys(self) -> Sequence[PublicKey]:
        """The public half of that key, and of the keys that signed before it or will sign after it."""


@runtime_checkable
class CleaningDriver(Driver, Protocol):
    """A driver whose units can be made as new: wells that clean, and factories whose workers' agents do."""

    def clean(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Make the unit as it was when it was made, with nothing of its last lease. Raises DriverError.

        After it, `create` is called again with the same id. Factories are not called: their workers' agents clean. A
        unit that was made ahead of need is made without options; when it is first leased, it is not cleaned again:
        `create` adds its job's options.
        """


@dataclass(frozen=True)
class UnitContext:
    """What our rows know of a unit: its slot, the fence of its lease, and the driver's notes."""

    slot: str
    fence: int
    notes: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class ContextDriver(Protocol):
    """A driver that needs more of a unit than its id.

    It gets this before each call for one unit that has a row; a stray, which has none, is destroyed without.
    """

    def informed(self, of: UnitContext) -> Driver:
        """The driver, for the next call for this unit."""


@runtime_checkable
class EvidenceDriver(Protocol):
    """A driver that can tell what a machine that never said hello printed."""

    def evidence(self, unit: str) -> str | None:
        """The last that is known of the unit, for people to read; None if nothing is. Raises DriverError."""


@runtime_checkable
class IdentityDriver(Protocol):
    """A driver that recognizes the machine that it made by the machine's identity document.

    It is called only if its settings have `identity`, when an agent says hello, and calls no service itself.
    """

    def stranger(self, shown: Mapping[str, str], made: Mapping[str, Any]) -> str | None:
        """Why the machine that shows this is not the one whose metadata `create` returned; None when it is."""


@runtime_checkable
class PlacementDriver(Protocol):
    """A driver that makes units in several ways, and names their scopes. It calls no service for this."""

    def has_way(self, order: Order) -> bool:
        """Whether the order leaves it a way. Without one, `create` only checks what exists."""

    def shares(self, scope: str) -> bool:
        """Whether units of this driver count towards this scope's quota, whichever maker met it."""


class MachineFate(StrEnum):
    """What becomes of a worker's machine, whatever we do."""

    DRAINING = "draining"  # still works, and should get no new job
    LOST = "lost"  # no longer works


@dataclass(frozen=True)
class MachineNotice:
    """A cloud's notice about a worker's machine, and its reason. `until` is how long it still works, if known."""

    unit: str
    fate: MachineFate
    why: str
    until: datetime | None = None


@runtime_checkable
class EventDriver(Protocol):
    """A driver that understands its cloud's events about machines."""

    def tidings(self, event: Mapping[str, Any]) -> MachineNotice | None:
        """What an event says of a worker of this site; None if it concerns none. Raises DriverError."""


@dataclass(frozen=True)
class TokenScope:
    """What an installation's token permits: one repository, maybe others, and which permissions there.

    Repository 0 stands for all of the installation.
    """

    installation: int
    repository_id: int
    permissions: Mapping[str, str]
    others: tuple[int, ...] = ()

    @property
    def asks(self) -> Mapping[str, Any]:
        """The body of the request for a token."""
        of = {"repository_ids": [self.repository_id, *self.others]} if self.repository_id else {}
        return {**of, "permissions": dict(self.permissions)}


@dataclass(frozen=True)
class GitHubRequest:
    """One call of GitHub's API. Without a scope the App itself calls.

    With `raw` the answer is a file's bytes; with an `etag` GitHub may answer 304, nothing new. A `token` is sent
    instead of one made for the scope; that GitHub refuses it is an answer like any other: 401.
    """

    method: str
    path: str
    scope: TokenScope | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    etag: str = ""
    raw: bool = False
    token: str = field(default="", repr=False)


@dataclass(frozen=True)
class GitHubResponse:
    """GitHub's answer. `next` are the parameters of the next page."""

    status: int
    body: Any = None
    etag: str = ""
    next: Mapping[str, str] | None = None


class Forge(Protocol):
    """GitHub, and the queue of the front end for it."""

    def tell(self, message: Mapping[str, Any], after: int = 0) -> None:
        """Send the front end a step, after some seconds (at most 900). Like all messages, it may be lost."""

    def call(self, app: GitHubApp, ask: GitHubRequest) -> GitHubResponse:
        """Call GitHub. Raises RateLimited, or Unknown for 5xx, for no answer, or for 401 to a token of our own."""

    def secret(self) -> str:
        """The secret that webhooks are signed with."""
