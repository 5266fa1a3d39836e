"""What a pool keeps warm, and what came to nothing of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Warm:
    """What a pool keeps for the next lease. Durations in seconds.

    At most `most` units, each for at most `idle` without a lease, `life` in all, and `reuse` leases. As long as there
    are fewer than `least`, more are made ahead of need: `ahead`.
    """

    least: int = 0
    most: int = 1
    idle: int = 600
    life: int = 24 * 3600
    reuse: int = 100


@dataclass(frozen=True)
class Setback:
    """Units that were made ahead of need came to nothing: how many in a row, why, and until when none is made."""

    count: int
    until: datetime
    why: str
