"""The audit log: what operators did. One row each: who, when, what, and to what. Rows are only added. [SEC-2]"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar, Literal

from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import EPOCH, Key, Place, Row, ulid_time

KEPT_FOR = timedelta(days=400)
"""How long entries are kept: more than a year, so that a yearly review misses nothing."""

DETAIL_CHARS = 1000
"""How many characters of detail an entry keeps."""

LISTING = "audit"

Deed = Literal[
    "accept repository", "account diff", "apply config", "approve", "approve login", "cancel", "create user",
    "delete cache", "disable user", "discard", "drain", "enable user", "grant", "hold", "identity token",
    "link account", "make token", "open series", "pause", "pin", "publish", "recycle", "redeliver", "refuse",
    "release", "remove", "remove user", "rename user", "resize", "resume", "revoke", "revoke token", "sign in",
    "unpin", "unpublish",
]  # fmt: skip
"""What may be done. A row keeps it as text, so that a release may add some."""


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


@dataclass(frozen=True)
class Wanted:
    """Which entries are asked for: of whom, what was done, to what, and when; whatever is empty is any.

    `what` is how the subject begins, such as `pool resource/`. Entries of `until` and later are left out.
    """

    who: str = ""
    did: str = ""
    what: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def has(self, row: Entry) -> bool:
        """Whether an entry is wanted, but for its time."""
        return self.who in ("", row.by) and self.did in ("", row.did) and row.what.startswith(self.what)

    def is_over(self, row: Entry) -> bool:
        """Whether an entry, and with it all older ones, is too old."""
        return self.since is not None and row.at < self.since

    def start(self, page: str) -> str:
        """The place behind which the reading of a page begins, of a listing with the newest first."""
        until = ulid_time(max(self.until, EPOCH)) if self.until else ""
        return min(filter(None, (page, until)), default="")


def clip_detail(text: str) -> str:
    """The detail, shortened to what an entry keeps."""
    return text if len(text) <= DETAIL_CHARS else f"{text[: DETAIL_CHARS - 3]}..."
