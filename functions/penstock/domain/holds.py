"""What an operator can ask of a unit: to keep it as it is for a while, or to take it out of use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from penstock.kernel import limits

DEFAULT = 8 * 3600
MOST = limits.HOLD_SECONDS
"""How long a hold stands that names no time, and the longest, in seconds. Whoever needs more holds again."""

REASON = 300
"""How many characters a reason may have."""


@dataclass(frozen=True)
class Hold:
    """Until then nothing that happens by itself touches the unit, whatever becomes of its job. [UNIT-3]"""

    by: str
    reason: str
    since: datetime
    until: datetime

    def __str__(self) -> str:
        return f"held by {self.by} until {clock(self.until)}: {self.reason}"


@dataclass(frozen=True)
class Drain:
    """The unit is not lent again: it is destroyed after its lease, or with `at_once` its lease is ended for that."""

    by: str
    reason: str
    since: datetime
    at_once: bool = False

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"{'recycled' if self.at_once else 'drained'} by {self.by}{why}"


def clock(time: datetime) -> str:
    """A time as sentences name it."""
    return time.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")
