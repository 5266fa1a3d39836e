"""How far the deliveries that GitHub lists were compared with those that came."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from penstock.kernel.rows import Key, Row

BACK = timedelta(days=3)
"""How far back GitHub can be asked. Source: GitHub, "Redelivering webhooks"."""

OVERLAP = timedelta(hours=1)
"""How much is looked at once more: what is listed late is found all the same."""


@dataclass(frozen=True, kw_only=True)
class Look(Row):
    """The last look at GitHub's list: when it began, and the ETag of what it saw."""

    kind: ClassVar[str] = "look"
    at: datetime
    etag: str = ""
    found: int = 0

    @property
    def key(self) -> Key:
        return LOOK_KEY


LOOK_KEY = Key("github", "look")


def since(last: Look | None, now: datetime) -> datetime:
    """From when on deliveries are compared."""
    earliest = now - BACK
    return max(last.at - OVERLAP, earliest) if last else earliest


@dataclass(frozen=True, kw_only=True)
class Pause(Row):
    """GitHub asked us to slow down: nobody calls for an installation until then. 0 is the App itself."""

    kind: ClassVar[str] = "pause"
    installation: int
    until: datetime

    @property
    def key(self) -> Key:
        return pause_key(self.installation)

    @property
    def expiry(self) -> datetime:
        return self.until


def pause_key(installation: int) -> Key:
    """Where it is noted that an installation is to be left alone."""
    return Key("github", f"pause#{installation}")
