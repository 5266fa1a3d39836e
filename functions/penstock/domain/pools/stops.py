"""What operators change by hand, and stops: nothing new is granted on the whole site, or of one factory or well.

A stop is a row. Each pool that it concerns carries it as well, so whoever grants reads no more rows than without stops.
docs/decisions/0094-a-stop-is-carried-by-its-pools.md
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from penstock.domain.units.units import format_time
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

WHOLE_SITE = "site"
"""The scope of a stop of all pools. Those of factories and wells are like `factory/NAME`."""

AGAIN = timedelta(minutes=1)
"""When all pools are looked at once more: a list of pools may lack one that was just made."""


@dataclass(frozen=True)
class ByHand:
    """Who changed a pool by hand, when, and why, if they gave a reason. `scope` is that of a stop, if it was one."""

    by: str
    at: datetime
    reason: str = ""
    scope: str = ""

    def __str__(self) -> str:
        told = f"by {self.by} at {format_time(self.at)}" + (f": {self.reason}" if self.reason else "")
        return f"with {in_words(self.scope)} {told}" if self.scope else told


@dataclass(frozen=True, kw_only=True)
class Stop(Row):
    """A stop. It is lifted while `wish` is None, and then goes as soon as no pool carries it any more.

    `drains` says that units are drained too: those that nobody leases go at once, the others after their lease.
    `is_spread`: all pools were brought to it once. The second time nothing is due any more.
    """

    kind: ClassVar[str] = "stop"
    scope: str
    wish: ByHand | None
    drains: bool = False
    is_spread: bool = False
    due: datetime | None = None

    @property
    def key(self) -> Key:
        return stop_key(self.scope)

    @property
    def deadline(self) -> datetime | None:
        return self.due


STOPS = "stops"
"""The collection of all stops."""

PREFIX = "stop#"
"""How their sort keys begin."""


def stop_key(scope: str) -> Key:
    """Where the stop of a scope is."""
    return Key(STOPS, f"{PREFIX}{scope}")


def in_words(scope: str) -> str:
    """A scope as a sentence names it: `the whole site`, `factory ec2`."""
    return "the whole site" if scope == WHOLE_SITE else scope.replace("/", " ", 1)


def carried(stops: tuple[ByHand, ...], scope: str, wish: ByHand | None) -> tuple[ByHand, ...]:
    """The stops that a pool carries, with that of one scope as it is to be."""
    others = [stop for stop in stops if stop.scope != scope]
    return tuple(sorted([*others, *([wish] if wish else [])], key=lambda stop: (stop.at, stop.scope)))
