"""What is remembered of looking for a unit in its driver's list; `seeing` says when one looks, and what follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

LOOKS = 13
"""How often a unit is looked for in its driver's list: for a minute, each 5 seconds."""


@dataclass(frozen=True)
class Look:
    """Looking in a driver's list until it says what it should: when it did, how often it did not, and when again."""

    found: datetime | None = None
    tries: int = 0
    again: datetime | None = None
    why: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether it was found, or is looked for no more."""
        return self.found is not None or self.tries >= LOOKS


@dataclass(frozen=True)
class Seen:
    """What a unit is looked for in its driver's list: there after it was made, and gone after it was destroyed."""

    there: Look = field(default_factory=Look)
    gone: Look = field(default_factory=Look)
