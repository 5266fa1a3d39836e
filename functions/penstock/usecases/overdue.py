"""What is overdue, shard by shard of the due index, for as long as there is time. [JOB-1] [UNIT-1]

Each kind of row has shards of its own. A sweep takes a shard itself if there is little in it. Otherwise it leaves the
shard to messages, each for a part, which other calls of the sweep function take at the same time. A message names the
end of its time, so that a late one does nothing; and who takes it sends none.

The index may have an earlier time than the row, or have it in another shard than it belongs to: then nobody is nudged,
and the entry moves to the row's own time and shard. If
the row is overdue, its entry moves on first, further each time that nothing came of it. So a row that nobody can move
on costs a little and hides nothing; and of two sweeps at a time, one nudges. A row that nobody waits for has its first
nudge without that.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from penstock.kernel.rows import Due, Key, Look, Row, exact_look
from penstock.system import System
from penstock.usecases.isolation import Isolation

LITTLE = 25
"""How many rows of a shard a sweep takes itself: with more, it would keep the other shards waiting."""

PAGE = 100
"""How many rows are read at once: as many as a batch may have."""

PARTS = 4
"""How many messages a shard is divided among."""

BACK_OFF, DOUBLINGS = timedelta(seconds=50), 4
"""The pause after a nudge, which ends before the next sweep, and how often it doubles: to 13 minutes at most."""

NEW = timedelta(seconds=90)
"""A row is newly overdue for so long: a sweep and half of its period."""

Nudge = Callable[[System, str, Key], None]


class Unreadable(Exception):
    """A row that is due cannot be read."""


@dataclass
class Walk:
    """A way through shards. `nudge` moves one row on by its kind; `until` is when the way ends, wherever it is.

    `left` is until when others may take what is left. `overdue` counts the rows that were to be moved on; `late` is for
    how many seconds the index had had the first of them, before they were first looked at.
    """

    on: System
    nudge: Nudge
    until: datetime
    left: datetime
    rows: Isolation = field(default_factory=Isolation)
    overdue: int = 0
    late: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.on.world.now() >= self.until

    def take(self, shards: Sequence[str]) -> None:
        """Take every shard, or leave it to messages."""
        for shard in shards:
            with self.rows.step("reading what is due", shard=shard):
                if self.is_over or not self._take_little(shard):
                    self._leave(shard)

    def _take_little(self, shard: str) -> bool:
        """Take a shard with little in it; False if there is more, or was no time."""
        found = list(islice(self.on.store.overdue(shard, self.on.world.now()), LITTLE + 1))
        for due in found[:1]:
            self._note_lateness(due)
        return len(found) <= LITTLE and self._take(found)

    def _leave(self, shard: str) -> None:
        for part in range(PARTS):
            self.on.queues.sweep({"shard": shard, "part": part, "until": self.left.isoformat()})

    def take_part(self, shard: str, part: int) -> None:
        """Take a part of a shard: every row has one."""
        with self.rows.step("reading what is due", shard=shard):
            mine = (due for due in self.on.store.overdue(shard, self.on.world.now()) if part_of(due.key) == part)
            while page := list(islice(mine, PAGE)):
                if not self._take(page):
                    return

    def _take(self, page: Sequence[Due]) -> bool:
        """Look at rows, one by one; False if the time was over before the last."""
        found = self.on.store.rows_at([due.key for due in page])
        for due in page:
            if self.is_over:
                return False
            with self.rows.step("a nudge", kind=due.kind, key=list(due.key)):
                self._look(due, found.get(due.key))
        return True

    def _note_lateness(self, due: Due) -> None:
        if not due.look.nudges:
            self.late = max(self.late, (self.on.world.now() - due.look.at).total_seconds())

    def _look(self, due: Due, row: Row | None) -> None:
        """Look at one row: if it is overdue, nudge it; and if that came to nothing before, look at it later again."""
        now = self.on.world.now()
        self._note_lateness(due)
        true = exact_look(row) if row else due.look
        if true is None:
            return
        if true.at > now or true.shard != due.look.shard:
            self.on.store.look_later(due, true, row)
        elif _needs_no_move(due, row, now) or self.on.store.look_later(due, next_time(due.look, now), row):
            self.overdue += 1
            if row is None:
                raise Unreadable(f"the row of {due.key} cannot be read")
            self.nudge(self.on, due.kind, due.key)


def _needs_no_move(due: Due, row: Row | None, now: datetime) -> bool:
    """Whether a row that nobody waits for is new here: its nudge moves it on by itself, such as a deletion.

    That saves a write. If the nudge comes to nothing, the next one is as any other.
    """
    return row is not None and row.is_later and not due.look.nudges and now - due.look.at < NEW


def next_time(look: Look, now: datetime) -> Look:
    """When to look at a row again that is nudged now."""
    return Look(now + BACK_OFF * 2 ** min(look.nudges, DOUBLINGS), look.nudges + 1, look.shard, look.tag)


def part_of(key: Key) -> int:
    """The part of its shard that a row belongs to."""
    return zlib.crc32(key.pk.encode()) // 8 % PARTS
