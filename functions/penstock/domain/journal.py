"""A unit's own log: the last of what was decided about it, kept in its row.

An entry is written by the commit that makes the decision, so it costs no write of its own, is there exactly when the
decision is, and is forgotten with the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MOST = 32
"""How many entries are kept. A worker that is kept for job after job forgets its oldest ones."""

LONGEST = 400
"""How many characters of an entry are kept. A row is paid for by its size."""

_START = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Entry:
    """What was decided, and why; `at` is in milliseconds since 1970, which takes less room than a date."""

    at: int
    what: str

    @property
    def time(self) -> datetime:
        """When it was decided."""
        return _START + timedelta(milliseconds=self.at)


@dataclass(frozen=True)
class Journal:
    """The entries that are kept, and how many there were before them: so entries keep their numbers, from 1."""

    entries: tuple[Entry, ...] = ()
    forgotten: int = 0

    def with_(self, now: datetime, what: str) -> Journal:
        """The journal with one more entry."""
        entry = Entry((now - _START) // timedelta(milliseconds=1), what[:LONGEST])
        kept = (*self.entries, entry)[-MOST:]
        return Journal(kept, self.forgotten + len(self.entries) + 1 - len(kept))

    def after(self, number: int) -> Sequence[tuple[int, Entry]]:
        """The entries with a greater number, each with its own."""
        return [(seq, entry) for seq, entry in enumerate(self.entries, self.forgotten + 1) if seq > number]
