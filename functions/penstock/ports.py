"""What the system needs from the world, on one screen. Adapters and drivers keep these promises."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

from penstock.domain.metric import Metric
from penstock.domain.parts import Part
from penstock.domain.units import CleanProof
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
