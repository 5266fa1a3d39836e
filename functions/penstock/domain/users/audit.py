"""The audit log: what operators did. One row each: who, when, what, and to what. Rows are only added. [SEC-2]"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Place, Row

KEPT_FOR = timedelta(days=400)
"""How long entries are kept: more than a year, so that a yearly review misses nothing."""

DETAIL_CHARS = 1000
"""How many characters of detail an entry keeps."""

LISTING = "audit"


@dataclass(frozen=True, kw_only=True)
class Entry(Row):
    """One thing that was done. `id` is a ULID, so that entries are listed in the order of their time."""

    kind: ClassVar[str] = "audit"
    id: str
    at: datetime
    by: str
    did: str
    what: str
    detail: str = ""

    @property
    def key(self) -> Key:
        return Key(f"audit#{self.id}", "audit")

    @property
    def place(self) -> Place:
        return Place(LISTING, self.id)

    @property
    def expiry(self) -> datetime:
        return self.at + KEPT_FOR


def clip_detail(text: str) -> str:
    """The detail, shortened to what an entry keeps."""
    return text if len(text) <= DETAIL_CHARS else f"{text[: DETAIL_CHARS - 3]}..."
