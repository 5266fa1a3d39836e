"""What came to nothing of units that are made ahead of need."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Setback:
    """Units that were made ahead of need came to nothing: how many in a row, why, and until when none is made."""

    count: int
    until: datetime
    why: str
