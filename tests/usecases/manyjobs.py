"""A hundred thousand jobs of a site in a store that counts which rows are read; written as the use cases leave them."""

from __future__ import annotations

import gc
import random
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from penstock.domain.jobs.jobs import End, Job, Outcome, State, Times
from penstock.domain.pools.pools import LeaseState
from penstock.domain.users.users import User
from penstock.kernel.rows import Due, Key, Listed, Row, exact_look, ulid
from penstock.testing.store import MemoryStore, with_version
from tests.domain.helpers import NOW, job, lease

MANY = 100_000
OWNERS = ("ada", "bob", "oxide:hubris")
NAMES = (
    "build-linux",
    "build-illumos",
    "test",
    "a-name-that-is-so-long-that-no-listing-has-room-for-all-of-it-at-any-time",
)
EACH = timedelta(seconds=6)
PLAIN = job()
DAY = timedelta(days=1)


class CountedStore(MemoryStore):
    """Rows are there from the start, and nothing writes. `read` are the jobs that were read."""

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__()
        self.read: list[Key] = []
        self.looked = 0
        self._dues: dict[str, list[Due]] = defaultdict(list)
        self._lists: dict[str, list[Listed]] = defaultdict(list)
        for row in rows:
            self.rows[row.key] = row
            if row.indexed:
                self._dues[row.indexed.shard].append(Due(row.indexed, row.key))
            if row.place:
                self._lists[row.place.name].append(Listed(row.place.sort, row.key))
        for found in self._lists.values():
            found.sort()

    def entries(self, name: str, *, after: str = "", newest: bool = False, page: int = 100) -> Iterator[Listed]:
        assert newest or not after
        del page
        found = self._lists[name]
        end = bisect_left(found, (after,)) if after else len(found)
        for at in range(end - 1, -1, -1) if newest else range(end):
            self.looked += 1
            yield found[at]

    def overdue(self, shard: str, now: object, *, page: int = 100) -> Sequence[Due]:
        del now, page
        return self._dues[shard]

    def rows_at(self, keys: Sequence[Key]) -> Mapping[Key, Row]:
        assert 0 < len(keys) <= 100
        self.read += keys
        return super().rows_at(keys)


def store_of_many(seed: int = 7) -> CountedStore:
    """Jobs of the last week: the oldest has settled long ago, of the newest 3,000 some wait and some run."""
    chance = random.Random(seed)
    users: list[Row] = [User(name=name, created=NOW) for name in OWNERS]
    gc.disable()  # nothing of what is made goes: to look for it takes a third of the time
    try:
        return CountedStore([*users, *(row for number in range(MANY) for row in _rows(chance, number))])
    finally:
        gc.enable()


def _rows(chance: random.Random, number: int) -> Iterator[Row]:
    """A job, the newest first; and its lease if it stands in a queue."""
    submitted = NOW - number * EACH
    target = chance.choices(("ubuntu", "lab"), (99, 1))[0]
    tags = {"set": f"s{number // 20}", **({"rare": "yes"} if number % 5000 == 0 else {})}
    made = replace(
        PLAIN,
        id=ulid(submitted, chance.randbytes(10)),
        name=chance.choices(NAMES, (50, 5, 44, 1))[0],
        owner=chance.choices(OWNERS, (90, 8, 2))[0],
        request=replace(PLAIN.request, target_resolved=target, tags=tags),
        times=Times(submitted=submitted, ready=submitted),
    )
    if number < 3000 and chance.random() < 0.8:
        yield from _unsettled(chance, made)
    else:
        yield _indexed(_settled(chance, made))


def _settled(chance: random.Random, made: Job) -> Job:
    outcome = chance.choices(list(Outcome), (90, 7, 2, 1))[0]
    ended = min(NOW, made.times.submitted + 10 * timedelta(minutes=1))
    times = replace(made.times, settled=ended)
    return replace(made, state=State.SETTLED, times=times, end=End(outcome=outcome, kept_until=NOW + 30 * DAY))


def _unsettled(chance: random.Random, made: Job) -> Iterator[Row]:
    state = chance.choices(list(State)[:4], (20, 1, 70, 20))[0]
    yield _indexed(replace(made, state=state, due=NOW + (timedelta(minutes=1) if state is State.QUEUED else DAY)))
    if state is State.ACQUIRING:
        is_in_queue = chance.random() < 0.95
        yield lease(job=made.id, state=LeaseState.WAITING if is_in_queue else LeaseState.GRANTED)


def _indexed(made: Job) -> Job:
    return with_version(made, 1, exact_look(made))
