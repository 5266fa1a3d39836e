"""What a driver may have besides what every driver has. Who needs it, looks whether the driver has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from penstock.domain.units import CleanProof
from penstock.ports import Driver, NotYet, Order


@runtime_checkable
class Keeper(Driver, Protocol):
    """A driver whose units can be made as new: for wells that clean, and factories whose workers' agents do."""

    def clean(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Make the unit as it was when it was made, with nothing of its last lease. Raises DriverError.

        After it, `create` is asked with the same id again. Factories are not asked: their workers' agents clean.
        A unit that was made ahead of need is asked for without options, and then, as nobody has had it, without being
        cleaned once more with its job's: `create` gives it these.
        """


@dataclass(frozen=True)
class Standing:
    """What our rows know of a unit: the slot that it has, the fence of its lease, and what its driver noted of it."""

    slot: str
    fence: int
    notes: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Informed(Protocol):
    """What a driver may have besides: it wants to know more of a unit than its id.

    It is asked before each call for one unit that has a row; a stray, which has none, is destroyed without.
    """

    def informed(self, of: Standing) -> Driver:
        """The driver, for the next call for this unit."""


@runtime_checkable
class Witness(Protocol):
    """What a driver may have besides: it can tell what a machine that never said hello said of itself."""

    def evidence(self, unit: str) -> str | None:
        """The last that is known of the unit, for people to read; None when there is nothing. Raises DriverError."""


@runtime_checkable
class Identifier(Protocol):
    """What a driver may have besides: it knows the machine that it made by what that shows of itself.

    It is asked only where its settings have `identity`, by whoever answers agents, and asks nobody.
    """

    def stranger(self, shown: Mapping[str, str], made: Mapping[str, Any]) -> str | None:
        """Why the machine that shows this is not the one that `create` gave the metadata of; None when it is."""


@runtime_checkable
class Chooser(Protocol):
    """What a driver may have besides: it makes things in several ways, and knows scopes by their names. Asks nobody."""

    def has_way(self, order: Order) -> bool:
        """Whether there is a way that the order does not avoid. Without one, `create` only looks what there is."""

    def shares(self, scope: str) -> bool:
        """Whether what this driver makes counts towards the quota of this scope, whichever maker met it."""


class Fate(StrEnum):
    """What becomes of a worker's machine, whatever we do."""

    DRAINING = "draining"  # it works still, and should get nothing new
    LOST = "lost"  # it works no more


@dataclass(frozen=True)
class Tidings:
    """What is said of a worker's machine, and why. `until` is how long it works still, as far as that is said."""

    unit: str
    fate: Fate
    why: str
    until: datetime | None = None


@runtime_checkable
class Listener(Protocol):
    """What a driver may have besides: it understands what its cloud says of machines by itself."""

    def tidings(self, event: Mapping[str, Any]) -> Tidings | None:
        """What an event says of a worker of this site; None when it says nothing of any. Raises DriverError."""
