"""The rows of the account diff: everything outside that has our tags, compared with the units each night. [UNIT-1]

Reconciliation compares the ids of units, every few minutes, and destroys strays. The diff finds what that cannot see:
things of any kind, such as a volume, whose unit is gone. It destroys nothing: docs/decisions/0095-the-account-diff.md.
What is a leftover, `leftovers` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

KEPT = timedelta(days=90)
"""For how long a diff is kept."""

PK = "account"
"""The collection of the diffs."""

DIFFS = "diff#"
"""What the places of diffs begin with."""


DIGEST = "sha256:"
"""What the maker of a thing begins with if its provider shows only a digest of the name."""


@dataclass(frozen=True)
class Thing:
    """Something outside that has our tag: what it is, such as `volume`, and its id there.

    `unit` is the id of the unit that it was made for; "" if its tag does not say that. `made`: when, if known.
    `until`: until when it may outlive its unit, None if it may not. `maker`: the name of the factory or well that made
    it; "" if that is the one that lists it; DIGEST and the beginning of its name's SHA-256 if no more is known.
    """

    kind: str
    id: str
    unit: str
    made: datetime | None = None
    until: datetime | None = None
    maker: str = ""


@dataclass(frozen=True)
class Leftover:
    """A thing that no unit accounts for. `made`: when, or at the earliest when; None if unknown."""

    maker: str
    kind: str
    id: str
    unit: str
    made: datetime | None
    why: str
    owner: str | None = None


@dataclass(frozen=True)
class Checked:
    """What was found of one factory or well. With `why`, its list could not be had, and the counts mean nothing."""

    things: int = 0
    left: int = 0
    why: str | None = None


@dataclass(frozen=True, kw_only=True)
class AccountDiff(Row):
    """One diff. Until it is finished, each sweep whose time has come sends its message again: `again`.

    `makers` are those that are done; `tries` says how often the message was sent since the last of them. `leftovers`
    are the oldest, at most MOST. `whole` is when the last diff began that listed everything, this or an earlier one;
    before there was any, when the first began.
    """

    kind: ClassVar[str] = "accountdiff"
    id: str
    began: datetime
    by: str = ""
    again: datetime
    whole: datetime
    tries: int = 0
    finished: datetime | None = None
    makers: Mapping[str, Checked] = field(default_factory=dict)
    leftovers: tuple[Leftover, ...] = ()

    @property
    def key(self) -> Key:
        return diff_key(self.id)

    @property
    def expiry(self) -> datetime:
        return self.began + KEPT

    @property
    def things(self) -> int:
        """How many things have our tags."""
        return sum(each.things for each in self.makers.values())

    @property
    def left(self) -> int:
        """How many of them are leftovers."""
        return sum(each.left for each in self.makers.values())

    @property
    def unlisted(self) -> int:
        """How many factories and wells could not be listed."""
        return sum(each.why is not None for each in self.makers.values())


def diff_key(id: str) -> Key:
    """The key of a diff. Keys sort by time."""
    return Key(PK, f"{DIFFS}{id}")
