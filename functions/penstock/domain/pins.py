"""Pins: users who want an artifact kept, why, and until when. A pin is an owner like any other. [ART-1]"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from penstock.domain.artifacts import collection
from penstock.domain.owners import PIN, owner
from penstock.kernel.rows import Key, Row

REASON = 300
"""How many characters say why."""

MOST = 10 * 365 * 24 * 3600
"""The longest that a pin may last which ends, in seconds."""


@dataclass(frozen=True, kw_only=True)
class Pin(Row):
    """One user's pin on an artifact; `until` is None for as long as they don't take it back."""

    kind: ClassVar[str] = "pin"
    later: ClassVar[bool] = True
    artifact: str
    by: str
    reason: str
    since: datetime
    until: datetime | None = None

    @property
    def key(self) -> Key:
        return pin_key(self.artifact, self.by)

    @property
    def deadline(self) -> datetime | None:
        return self.until

    @property
    def owner(self) -> str:
        """What the artifact calls its owner."""
        return owner(PIN, self.by)


def pin_key(artifact: str, by: str) -> Key:
    """Where a user's pin on an artifact is."""
    return Key(collection(artifact), f"pin#{by}")
