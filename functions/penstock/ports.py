"""The ports: protocols for everything outside that use cases need. Adapters and drivers implement them.

A driver may implement more protocols than `Driver`, for example `CleaningDriver`. Callers check with isinstance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from penstock.domain.account import Thing as Thing
from penstock.domain.artifacts.content import Content
from penstock.domain.artifacts.volumes import Part
from penstock.domain.metrics import Metric
from penstock.domain.site.site import GitHubApp
from penstock.domain.units.units import CleanProof
from penstock.domain.users.oidc import PublicKey
from penstock.kernel.errors import Shortage
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Due, Key, Listed, Look, Row

if TYPE_CHECKING:
    from penstock.domain.alarms import Alarm, DeadLetterQueue

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
        limit: int | None = 1000,
        last: bool = False,
        after: str = "",
        upto: str = "",
        readable: bool = False,
    ) -> list[R]:
        """The rows of a collection whose sort key begins with a prefix, in order; with `last`, from the end.

        Without a limit, all of them, which is for few: `listings.every_of` reads them page by page. With `after`,
        only rows behind that sort key; with `upto`, only rows up to it; not both. Raises for a row that cannot be read;
        with `readable` it is left out. That is only for rows which nobody misses: without its row, a lease would look
        released.
        """

    def count(self, pk: str, prefix: str, *, upto: str = "") -> int:
        """How many rows of a collection have a sort key that begins with a prefix; with `upto`, only up to that one.

        However many they are, all of them are counted, which costs as much as to read them.
        """

    def commit(self, changes: Sequence[Change]) -> bool:
        """Make all changes, or make none and return False: another writer was first, so read again."""

    def shards(self, *, later: bool) -> Sequence[str]:
        """The shards of the due index: of rows that somebody waits for, or with `later` of the others (Row.later)."""

    def overdue(self, shard: str, now: datetime, *, page: int = 100) -> Iterable[Due]:
        """The rows of a shard that the sweep is to look at, oldest first; a read that may lag. So many at once."""

    def rows_at(self, keys: Sequence[Key]) -> Mapping[Key, Row]:
        """The rows at some keys, at most 100. Those that are gone, or cannot be read, are left out."""

    def look_later(self, due: Due, look: Look, was: Row | None) -> bool:
        """Have the sweep look at a row later. The row stays as it is, its version too: so no step loses a race by it.

        False if the index has another time by now; or if the row is not that which was read, if it was.
        """

    def listed(self, name: str, kind: type[R], *, limit: int = 100, after: str = "", newest: bool = False) -> list[R]:
        """The rows of a listing, in its order; a read that may lag. Fewer than the limit only at the listing's end.

        Those that cannot be read are left out, so that one such row stops nobody who goes through them. `entries` has
        them: who may overlook none asks `listings.whole_page`.
        """

    def entries(self, name: str, *, after: str = "", newest: bool = False, page: int = 100) -> Iterator[Listed]:
        """The entries of a listing, in its order, so many at once; a read that may lag, and reads no row."""


class Queues(Protocol):
    """Messages to the functions that do the next step. Any may be lost, doubled, late or out of order."""

    def schedule(self, message: Mapping[str, Any]) -> None:
        """Send the scheduler a step."""

    def serve(self, names: Sequence[str], group: str) -> None:
        """Have what some pools have granted to those who wait. Of one group one call at a time does that, as a rule."""

    def advance(self, unit: str, is_worker: bool, after: int = 0, maker: str = "") -> None:
        """Send a unit's factory or well its next step, after some seconds (at most 900).

        Messages with the same `maker` share their queue's attention: many, or slow ones, do not delay those of others.
        """

    def console(self, unit: str, by: str, maker: str = "") -> None:
        """Have a worker's factory write the machine's console output into its journal, for `by`."""

    def power(self, host: str, after: int = 0, maker: str = "") -> None:
        """Have a host's factory take the next step of switching it on or off, after some seconds (at most 900)."""

    def sweep(self, message: Mapping[str, Any]) -> None:
        """Leave a part of the sweep to another call of its function."""


class Flows(Protocol):
    """The state machine that sequences one attempt."""

    def start(self, job: str, attempt: int, steps: Sequence[int]) -> None:
        """Start the flow of an attempt. If it was started before, nothing happens. Raises Unreached."""

    def stop(self, job: str, attempt: int) -> None:
        """Stop the flow of an attempt that is over. Without a running flow, nothing happens."""

    def succeed(self, token: str) -> bool:
        """Answer a waiting step, and return whether it waited. If it no longer does, nothing happens."""

    def fail(self, token: str, error: str, cause: str) -> None:
        """Answer a waiting step with an error. If it no longer waits, nothing happens."""

    def ended(self) -> Iterable[tuple[str, int, str]]:
        """Job, attempt and status of flows that ended recently without success."""


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
        """Assemble an object from its parts, if all have arrived and this (hex) is the digest of their digests."""

    def abandon(self, name: str) -> None:
        """Delete the parts of an object that was never completed; there may be none."""

    def download(self, name: str, seconds: int, filename: str) -> Grant:
        """Permission to download an object for some seconds, to be saved under a file name."""

    def size(self, name: str) -> int | None:
        """An object's size in bytes; None if it does not exist."""

    def content(self, name: str) -> Content | None:
        """An object's size and the digest that the store itself computed; None if it does not exist."""

    def store(self, name: str, content: bytes) -> None:
        """Store an object in one call."""

    def begin(self, name: str) -> str:
        """Begin to store an object in parts. An upload that is never completed expires after a day."""

    def part(self, name: str, upload: str, number: int, content: bytes) -> str | None:
        """Store a part, counted from 1, and return its tag; None if the upload no longer exists.

        The same part again replaces it. All but the last have 5 MiB at least.
        """

    def complete(self, name: str, upload: str, tags: Sequence[str]) -> None:
        """Assemble an object from its parts. Without effect if repeated, or if the upload no longer exists."""

    def read(self, name: str, start: int, size: int) -> bytes:
        """Some bytes of an object from a position on; fewer at its end, none if it does not exist."""

    def delete(self, name: str) -> None:
        """Delete an object; it need not exist."""

    def list(self, prefix: str, after: str, limit: int) -> Sequence[Stored]:
        """The objects whose names begin with a prefix and come after `after`, in order; a short page is the last."""


@dataclass(frozen=True)
class AgentFile:
    """Where the agent's file is. Its name is its SHA-256 in hex, with `.pyz` behind it: infra/agent.py."""

    objects: Objects
    name: str


class World(Protocol):
    """Time and randomness."""

    def now(self) -> datetime:
        """The time, in UTC."""

    def ulid(self) -> str:
        """A new id."""

    def secret(self) -> str:
        """A new random text that nobody can guess."""

    def draw(self, count: int) -> int:
        """A number from 0 on below a count, at random: for choices that need not be secret."""

    def pause(self, tries: int) -> None:
        """Wait a moment, longer with every try, before a lost race is repeated."""

    def limit(self, seconds: float) -> AbstractContextManager[None]:
        """A block that is broken off after some seconds: TimeLimit is raised in it. Blocks do not nest."""


class Metrics(Protocol):
    """Metrics for operators. No step may depend on them."""

    def add(self, metric: Metric, value: float = 1, **by: str) -> None:
        """Add a value, with all dimensions of the metric. Never fails; reported when the handler has ended."""

    def wants(self, metric: Metric) -> bool:
        """Whether a metric is reported at all. If not, callers need not read rows only for it."""


class Alarms(Protocol):
    """The alarms of the deployment."""

    def read(self) -> Sequence[Alarm]:
        """All of them, as they are now. Raises Unreached if that cannot be known."""


class DeadLetters(Protocol):
    """The dead-letter queues of the deployment."""

    def read(self) -> Sequence[DeadLetterQueue]:
        """All of them, with counts that may be a minute late. Raises Unreached if one cannot be counted."""


@dataclass(frozen=True)
class Ready:
    """The unit is ready.

    `metadata` is for the unit's job. `public` are those of its keys whose values may appear in the job's log; all
    others are masked there. [SEC-1] `expires`, of wells, is when the metadata becomes invalid. Well before
    that, `create` is called again for the same lease, and its answer replaces this one.
    `shortages` are those that other alternatives met. `proves` are the scopes that have capacity, because the unit was
    just made there; None for all scopes that were not avoided.
    `notes`, of a ContextDriver, are stored in the unit's row and passed to later calls: some KiB of JSON, no secrets.
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

    `stops_itself`, of `destroy` of a worker: its agent stops the job by itself when it loses its lease. One lease
    period later nothing of the job runs any more, and only traces are left. `notes` as in Ready.
    """

    after: int = 5
    reason: str | None = None
    stops_itself: bool = False
    notes: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Order:
    """What a driver needs to make one unit.

    `key`, of workers, is the bootstrap key with which the agent says hello once. Of wells, it is a secret to derive
    passwords from: all calls for one lease get the same, so that all return the same password; the next lease gets
    another. "" for a well that makes nothing. `avoid` are the scopes whose shortages are too recent to try again;
    a driver without scopes ignores them. `job` is the job of the lease, "" for a unit that is made ahead of need.
    `lasts` is how many seconds the lease can last at most; None if unknown.
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
        """Whether the order is for a factory: then it has the URL that the agent connects to."""
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
        """Make the unit, tagged with its id. Calls with the same id make one unit. Raises DriverError."""

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Remove the unit completely; it need not exist. Raises DriverError.

        If the driver finds nothing, and its provider lists new units late, it says how late: `CleanProof.lag`.
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

    def reusable(self, kind: str, driver: str) -> bool:
        """Whether a driver's units can be cleaned and leased again; `kind` is factory or well."""

    def quarantines(self, kind: str, driver: str) -> bool:
        """Whether a driver's units exist already, so that broken ones are quarantined; `kind` is factory or well."""

    def makes_nothing(self, driver: str) -> bool:
        """Whether what a well leases is only a slot: its `create` answers at once."""

    def hosts(self, driver: str) -> bool:
        """Whether a factory's workers are machines that exist already, each with its own name."""

    def objections(
        self, kind: str, driver: str, options: Mapping[str, Any], maker: Mapping[str, Any], of_type: Mapping[str, Any]
    ) -> Sequence[str]:
        """What is wrong with a job's options, by the settings of the factory or well, `kind`, and of the type."""

    def options(self, driver: str, well: Mapping[str, Any], kind: Mapping[str, Any]) -> Sequence[Option] | None:
        """The options that jobs may pass to a well with these settings; None if its driver does not declare them."""


class Vault(Protocol):
    """Encrypts secrets for rows. `of` binds a sealed secret to its use: it opens only with the same `of`."""

    def seal(self, secret: bytes, of: Mapping[str, str]) -> str:
        """The encrypted secret, as text."""

    def open(self, sealed: str, of: Mapping[str, str]) -> bytes:
        """The secret. Raises ValueError if it was not sealed with the same `of`."""


class Signer(Protocol):
    """Signs identity tokens, with a key that never leaves its service."""

    def kid(self) -> str:
        """The id of the key that signs now."""

    def sign(self, message: bytes) -> bytes:
        """An RS256 signature by that key."""

    def keys(self) -> Sequence[PublicKey]:
        """The public half of that key, and of the keys that signed before it or will sign after it."""


class Attestor(Protocol):
    """Signs statements about outputs, with a key that never leaves its service."""

    def kid(self) -> str:
        """The id of the key."""

    def sign(self, message: bytes) -> bytes:
        """An ECDSA signature of the message's SHA-256 on the curve P-256, in DER."""

    def public_key(self) -> bytes:
        """The public half of the key: a SubjectPublicKeyInfo in DER."""


@runtime_checkable
class CleaningDriver(Driver, Protocol):
    """A driver whose units can be cleaned for reuse."""

    def clean(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Restore the unit to its state after `create`, with nothing of its last lease. Raises DriverError.

        Before the next lease, `create` is called again with the same id. A unit that was made ahead of need was made
        without options and is not cleaned before its first lease; the second `create` then has the job's options.
        Factories need no `clean`, because their workers' agents clean.
        """


@dataclass(frozen=True)
class UnitContext:
    """What the unit's row has: its slot, the fence of its lease, and the driver's notes."""

    slot: str
    fence: int
    notes: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class ContextDriver(Protocol):
    """A driver that needs more than a unit's id.

    `with_context` is called before each call for a unit that has a row. A stray has none, and is destroyed without.
    """

    def with_context(self, of: UnitContext) -> Driver:
        """The driver, for the next call for this unit."""


@runtime_checkable
class ThingsDriver(Protocol):
    """A driver that makes more than one kind of thing for a unit, or things that can outlive what `list` shows."""

    def things(self) -> Iterable[Thing]:
        """Everything outside that has our tags, of every kind that the driver makes or causes to be made.

        Also what other factories or wells of the site made, if the driver sees it: they may be gone. It is called once
        a night, destroys nothing, and has a minute. Raises DriverError.
        """


@runtime_checkable
class EvidenceDriver(Protocol):
    """A driver that can show the console output of a machine: if its agent never said hello, or an operator asks."""

    def evidence(self, unit: str) -> str | None:
        """The last output or state of the unit, for people; None if unknown. Raises DriverError."""


@runtime_checkable
class IdentityDriver(Protocol):
    """A driver that verifies a machine by its identity document when the agent says hello.

    It is called only if the driver's settings have `identity`, and calls no service itself.
    """

    def identity_mismatch(self, shown: Mapping[str, str], made: Mapping[str, Any]) -> str | None:
        """Why the identity document `shown` is not that of the machine with the metadata `made`; None if it is."""


@runtime_checkable
class PlacementDriver(Protocol):
    """A driver with several alternatives for making a unit, such as types or zones. Each has scopes of shortages."""

    def has_alternative(self, order: Order) -> bool:
        """Whether the order leaves an alternative to try. If not, `create` only checks what exists."""

    def shares_scope(self, scope: str) -> bool:
        """Whether units of this driver count towards this scope, even if another maker met the shortage."""


@dataclass(frozen=True)
class Switching:
    """What a host's power is to be. `serial` grows with each order for the host; a repeated one has the same.

    `missed`: how often in a row the host did not come after it was switched on.
    """

    is_on: bool
    serial: int
    missed: int = 0


@runtime_checkable
class PowerDriver(Protocol):
    """A factory of hosts that can switch them on and off. It is called only if the settings have `power`."""

    def switch(self, host: str, to: Switching) -> Ready | NotYet:
        """Switch a host, if no later order for it came before. Raises DriverError.

        `Ready` means that it is so, and that no earlier order takes effect any more.
        """


class MachineFate(StrEnum):
    """What a cloud announces for a worker's machine."""

    DRAINING = "draining"  # still works, but should get no new job
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

    def read_event(self, event: Mapping[str, Any]) -> MachineNotice | None:
        """The notice in an event about a worker of this site; None if it is about none. Raises DriverError."""


@dataclass(frozen=True)
class TokenScope:
    """What an installation's token permits: a repository, perhaps others, and permissions for them.

    Repository 0 means all repositories of the installation.
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

    With `raw` the answer is a file's bytes; with an `etag` GitHub may answer 304 (not modified). A `token` is sent
    instead of one that is made for the scope; if GitHub refuses it, the answer is returned like any other.
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

    def enqueue(self, message: Mapping[str, Any], after: int = 0) -> None:
        """Send the front end its next step, after some seconds (at most 900). Like all messages, it may be lost."""

    def call(self, app: GitHubApp, ask: GitHubRequest) -> GitHubResponse:
        """Call GitHub. Raises RateLimited; or Unknown for 5xx, for no answer, or if GitHub refuses its own token."""

    def exchange(self, app: GitHubApp, code: str, verifier: str, redirect: str) -> str:
        """The token of who signed in, for their code; "" if GitHub refuses it. Raises as `call` does."""

    def secret(self) -> str:
        """The secret that webhooks are signed with."""
