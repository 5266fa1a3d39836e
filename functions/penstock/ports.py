"""What the system needs from the world, on one screen. Adapters and drivers keep these promises.

What is done with keys that never leave the service that has them: a port, like those of ports.py.

What a driver may have besides what every driver has. Who needs it, looks whether the driver has it.

What the front end for GitHub needs of it: a port, like those of ports.py.
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
    """The table. Reads see every commit that was answered before them, except where said."""

    def get(self, key: Key, kind: type[R]) -> R | None:
        """The row at a key. Raises TypeError when another kind of row stands there."""

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

        Only those behind the place `after`, or those not behind the place `upto`; not both.
        """

    def commit(self, changes: Sequence[Change]) -> bool:
        """Make all changes, or none and say False: somebody else moved first, read again."""

    def overdue(self, now: datetime, limit: int, *, later: bool = False) -> list[tuple[str, Key]]:
        """The kinds and keys of rows whose deadline has passed, oldest first; a read that may lag.

        Either those of kinds that somebody waits for, or those of the others: Row.later.
        """

    def listed(self, name: str, kind: type[R], *, limit: int = 100, after: str = "", newest: bool = False) -> list[R]:
        """The rows of a listing, in order of their place; a read that may lag."""


class Queues(Protocol):
    """Hints to whoever does the next step. Any of them may be lost, doubled, late or out of order."""

    def schedule(self, message: Mapping[str, Any]) -> None:
        """Ask the scheduler for a step."""

    def advance(self, unit: str, is_worker: bool, after: int = 0) -> None:
        """Ask the unit's factory or well to take its next step, after some seconds (at most 900)."""


class Flows(Protocol):
    """The state machine that sequences one attempt."""

    def start(self, job: str, attempt: int, steps: Sequence[int]) -> bool:
        """Start the flow of an attempt; False when it was started before, which changes nothing. Raises Unreached."""

    def stop(self, job: str, attempt: int) -> None:
        """Stop the flow of an attempt that is over. Stopping one that is no more changes nothing."""

    def succeed(self, token: str) -> None:
        """Answer a parked step. Answering one that is no more changes nothing."""

    def fail(self, token: str, error: str, cause: str) -> None:
        """Answer a parked step with an error. Answering one that is no more changes nothing."""

    def ended(self) -> Iterable[tuple[str, int, str]]:
        """Job, attempt and status of flows that lately ended other than well."""


@dataclass(frozen=True)
class Grant:
    """Leave to send or fetch one object for a while: how, where, and with which headers."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """An object that is in the store, and since when."""

    name: str
    size: int
    time: datetime


class Objects(Protocol):
    """Where bytes are."""

    def upload(self, name: str, size: int, sha256: str) -> Grant:
        """Leave to send an object of this size (bytes) and digest (hex)."""

    def parts(self, name: str, wanted: Sequence[Part]) -> Sequence[Grant | None]:
        """Leave to send some parts of an object, in their order; None for each that is there already."""

    def join(self, name: str, count: int, composite: str) -> None:
        """Make an object of its parts, if all are there and this (hex) is the digest of their digests."""

    def abandon(self, name: str) -> None:
        """Delete the parts of an object that was not made of them; there may be none."""

    def download(self, name: str, seconds: int, filename: str) -> Grant:
        """Leave to fetch an object for some seconds, to be saved under a file name."""

    def size(self, name: str) -> int | None:
        """An object's size in bytes; None when there is none."""

    def store(self, name: str, content: bytes) -> None:
        """Store an object of our own, as a whole."""

    def begin(self, name: str) -> str:
        """Begin to store an object in parts. What is never completed is forgotten after a day."""

    def part(self, name: str, upload: str, number: int, content: bytes) -> str | None:
        """Store a part, counted from 1, and return its tag; None when the upload is no more.

        The same part again takes its own place. All but the last have 5 MiB at least.
        """

    def complete(self, name: str, upload: str, tags: Sequence[str]) -> None:
        """Make an object of its parts. Done again, or with an upload that is no more, it changes nothing."""

    def read(self, name: str, start: int, size: int) -> bytes:
        """So many bytes of an object from a place on; fewer at its end, none where there is no object."""

    def delete(self, name: str) -> None:
        """Delete an object; deleting what is gone is fine."""

    def list(self, prefix: str, after: str, limit: int) -> Sequence[Stored]:
        """The objects whose names begin like this and stand behind `after`, in order; fewer than `limit` at the end."""


class World(Protocol):
    """Time and chance, passed into the domain by whoever asks."""

    def now(self) -> datetime:
        """The time, in UTC."""

    def ulid(self) -> str:
        """A new id."""

    def secret(self) -> str:
        """A new random text that nobody guesses."""

    def pause(self, tries: int) -> None:
        """Wait a moment, longer with every try, before racing again."""


class Metrics(Protocol):
    """What is counted and measured, for whoever watches the site. No step may depend on it."""

    def add(self, metric: Metric, value: float = 1, **by: str) -> None:
        """Tell a value, by all dimensions of the metric. Never fails, and is told when the handler has ended."""

    def wants(self, metric: Metric) -> bool:
        """Whether a metric is told at all: what is read for it alone need not be read otherwise."""


@dataclass(frozen=True)
class Ready:
    """The driver is done. `metadata` is what the unit's job may know of it; `shortages` are what it met on the way.

    `proves` are the scopes of which there is some, for that was just made of it; None for all that was not avoided.
    `notes`, of an Informed driver, are what it is to be told again: some KiB of JSON in the unit's row, and no secrets.
    `expires`, of a well's, is when the metadata is worth nothing any more: well before that `create` is asked again,
    for the same lease, and what it says then takes the place of this. `public` are the keys of the metadata whose
    values may stand in a job's log; all others are hidden there. [SEC-1]
    """

    metadata: Mapping[str, Any] = field(default_factory=dict)
    shortages: Sequence[Shortage] = ()
    proves: Collection[str] | None = None
    notes: Mapping[str, Any] | None = None
    expires: datetime | None = None
    public: Collection[str] = ()


@dataclass(frozen=True)
class NotYet:
    """The driver is not done: look again in some seconds.

    `stops_itself`, of a worker that is to be destroyed: once a lease has passed since its own ended, nothing of its
    job runs any more, for its agent sees to that; what is left are its traces. `notes` as in Ready.
    """

    after: int = 5
    reason: str | None = None
    stops_itself: bool = False
    notes: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Order:
    """What a driver needs to make one unit. `key` lets a worker's agent say hello once. A well's is a secret to make
    passwords with: the same for every call for one lease, so that the last answer is right whichever of them made it,
    and another for the next lease.

    `avoid` are the scopes of shortages that are too fresh to ask again. A driver that knows no scopes need not look.
    `job` is whose lease it is for, "" for one that is made ahead of need; `lasts`, how many seconds that lease may last
    from now at the most, None where nobody knows.
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
        """Whether a factory is asked: there is an agent then, which dials a URL."""
        return bool(self.url)


@dataclass(frozen=True)
class Option:
    """One option that a job may pass to a well: what it may be, for people to read and for the check.

    `kind` is string, number, whole number, true or false, list, or table; without `allowed` any of the kind will do.
    """

    name: str
    kind: str
    meaning: str = ""
    default: Any = None
    allowed: Sequence[Any] = ()


class Driver(Protocol):
    """What factories and wells have in common. A driver never touches our tables."""

    def create(self, order: Order) -> Ready | NotYet:
        """Make the unit, tagged with its id. Asked twice with one id it makes one. Raises DriverError."""

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Remove every trace of the unit, and the unit; fine for what is gone. Raises DriverError.

        Who found nothing, where what is just made may not be seen at once, says by how much: `CleanProof.lag`.
        """

    def list(self) -> Iterable[str]:
        """The ids of all units that exist outside and carry our tag. Raises DriverError."""


class Drivers(Protocol):
    """The drivers that a site may choose from. `name` is the factory's or well's own, which a driver may tag with."""

    def factory(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Driver:
        """The driver of a factory. Raises Misconfigured."""

    def well(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Driver:
        """The driver of a well. Raises Misconfigured."""

    def complaints(self, kind: str, driver: str, settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with a driver's settings; `kind` is factory or well."""

    def keeps(self, kind: str, driver: str) -> bool:
        """Whether a driver's units can be kept for the next lease; `kind` is factory or well."""

    def quarantines(self, kind: str, driver: str) -> bool:
        """Whether a driver's units exist already, so that a broken one is kept apart; `kind` is factory or well."""

    def hosts(self, driver: str) -> bool:
        """Whether the workers of a factory are machines that exist already, each with a name of its own."""

    def objections(
        self, driver: str, options: Mapping[str, Any], well: Mapping[str, Any], kind: Mapping[str, Any]
    ) -> Sequence[str]:
        """What is wrong with the options that a job passes to a well, by its settings and the resource type's."""

    def options(self, driver: str, well: Mapping[str, Any], kind: Mapping[str, Any]) -> Sequence[Option] | None:
        """The options that jobs may pass to a well of these settings; None when its driver does not say."""


class Vault(Protocol):
    """Seals what rows may not have in clear. `of` says what it is of: only with the same words is it opened again."""

    def seal(self, secret: bytes, of: Mapping[str, str]) -> str:
        """A text that tells nobody anything who may not open it."""

    def open(self, sealed: str, of: Mapping[str, str]) -> bytes:
        """What was sealed. Raises ValueError for what was not sealed as this."""


class Signer(Protocol):
    """Signs identity tokens, with a key that never leaves where it is."""

    def kid(self) -> str:
        """What tokens call the key that signs now."""

    def sign(self, message: bytes) -> bytes:
        """An RS256 signature by that key."""

    def keys(self) -> Sequence[PublicKey]:
        """The public half of that key, and of those that signed before it or will after it."""


@runtime_checkable
class CleaningDriver(Driver, Protocol):
    """A driver whose units can be made as new: for wells that clean, and factories whose workers' agents do."""

    def clean(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Make the unit as it was when it was made, with nothing of its last lease. Raises DriverError.

        After it, `create` is asked with the same id again. Factories are not asked: their workers' agents clean.
        A unit that was made ahead of need is asked for without options, and then, as nobody has had it, without being
        cleaned once more with its job's: `create` gives it these.
        """


@dataclass(frozen=True)
class UnitContext:
    """What our rows know of a unit: the slot that it has, the fence of its lease, and what its driver noted of it."""

    slot: str
    fence: int
    notes: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class ContextDriver(Protocol):
    """What a driver may have besides: it wants to know more of a unit than its id.

    It is asked before each call for one unit that has a row; a stray, which has none, is destroyed without.
    """

    def informed(self, of: UnitContext) -> Driver:
        """The driver, for the next call for this unit."""


@runtime_checkable
class EvidenceDriver(Protocol):
    """What a driver may have besides: it can tell what a machine that never said hello said of itself."""

    def evidence(self, unit: str) -> str | None:
        """The last that is known of the unit, for people to read; None when there is nothing. Raises DriverError."""


@runtime_checkable
class IdentityDriver(Protocol):
    """What a driver may have besides: it knows the machine that it made by what that shows of itself.

    It is asked only where its settings have `identity`, by whoever answers agents, and asks nobody.
    """

    def stranger(self, shown: Mapping[str, str], made: Mapping[str, Any]) -> str | None:
        """Why the machine that shows this is not the one that `create` gave the metadata of; None when it is."""


@runtime_checkable
class PlacementDriver(Protocol):
    """What a driver may have besides: it makes things in several ways, and knows scopes by their names. Asks nobody."""

    def has_way(self, order: Order) -> bool:
        """Whether there is a way that the order does not avoid. Without one, `create` only looks what there is."""

    def shares(self, scope: str) -> bool:
        """Whether what this driver makes counts towards the quota of this scope, whichever maker met it."""


class MachineFate(StrEnum):
    """What becomes of a worker's machine, whatever we do."""

    DRAINING = "draining"  # it works still, and should get nothing new
    LOST = "lost"  # it works no more


@dataclass(frozen=True)
class MachineNotice:
    """What is said of a worker's machine, and why. `until` is how long it works still, as far as that is said."""

    unit: str
    fate: MachineFate
    why: str
    until: datetime | None = None


@runtime_checkable
class EventDriver(Protocol):
    """What a driver may have besides: it understands what its cloud says of machines by itself."""

    def tidings(self, event: Mapping[str, Any]) -> MachineNotice | None:
        """What an event says of a worker of this site; None when it says nothing of any. Raises DriverError."""


@dataclass(frozen=True)
class TokenScope:
    """What a token of an installation is good for: one repository and maybe others, and what may be done there.

    Without a repository, 0, it is good for all that the installation has.
    """

    installation: int
    repository_id: int
    permissions: Mapping[str, str]
    others: tuple[int, ...] = ()

    @property
    def asks(self) -> Mapping[str, Any]:
        """What GitHub is asked for a token with."""
        of = {"repository_ids": [self.repository_id, *self.others]} if self.repository_id else {}
        return {**of, "permissions": dict(self.permissions)}


@dataclass(frozen=True)
class GitHubRequest:
    """One call of GitHub's API. Without a scope it is the App itself that asks.

    With `raw` the answer is a file's bytes; with an `etag` GitHub may say that nothing is new: 304. A `token` is shown
    in the place of one that would be made for the scope; that GitHub does not take it is an answer as any other: 401.
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
    """What GitHub answered. `next` are the parameters of the page that follows."""

    status: int
    body: Any = None
    etag: str = ""
    next: Mapping[str, str] | None = None


class Forge(Protocol):
    """GitHub, and whoever does what follows from what it says."""

    def tell(self, message: Mapping[str, Any], after: int = 0) -> None:
        """Hint to the front end to take a step, after some seconds (at most 900). As with all hints, it may be lost."""

    def call(self, app: GitHubApp, ask: GitHubRequest) -> GitHubResponse:
        """Ask GitHub. Raises RateLimited, or Unknown for an answer of 5xx or none, or of 401 to a token of our own."""

    def secret(self) -> str:
        """What webhooks are signed with."""
