"""How late a sweep is when very much is overdue: `python -m tests.figures.sweeping --rows 100000`.

The sweep is the real one, its messages too; the ports take virtual time. On a site with very many pools, most rows are
overdue for good: a cloud is down, and no function that a nudge wakes ever does anything. Now and then something else
becomes overdue, of every kind. What is told is how long after its time that was moved on.
"""

from __future__ import annotations

import argparse
import heapq
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from unittest import mock

from sortedcontainers import SortedDict

from penstock.aws import dynamodb
from penstock.domain.artifacts.artifacts import Artifact, id_of, stray
from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Job, State, job_key
from penstock.domain.pools.pools import Claim, Pool
from penstock.domain.units.hosts import Host
from penstock.domain.units.units import Unit, UnitKind, UnitLease, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Unknown
from penstock.kernel.rows import Change, Check, Create, Delete, Due, Key, Look, Row, key_of
from penstock.testing.site import site_toml
from penstock.testing.store import MemoryStore, as_stored
from penstock.testing.twin import START, ManualClock, MemoryQueues, Twin
from penstock.usecases import sweep
from penstock.usecases.artifacts import expire
from penstock.usecases.jobs import submit
from penstock.usecases.site import apply
from tests.figures.report import Budgets, table

READ, WRITE, SEND, CALL = (timedelta(milliseconds=each) for each in (5, 10, 10, 30))
"""What a read, a write, a message, and a call of another service take."""

KILLED_AFTER = timedelta(seconds=120)
"""The function's timeout."""

MINUTE, MOST = timedelta(minutes=1), timedelta(minutes=2)
ADA = User(name="ada", created=START, version=1)
SITE = site_toml(targets={"default": {"limit": 40}}, wells={"locks": "lock"})


class TimedStore(MemoryStore):
    """The twin's store, whose calls take time, and whose indexes are in order: there are a hundred thousand rows."""

    def __init__(self, world: ManualClock) -> None:
        super().__init__()
        self._world = world
        self._due: dict[str, SortedDict] = defaultdict(SortedDict)
        self._lists: dict[str, SortedDict] = defaultdict(SortedDict)

    def _take(self, time: timedelta) -> None:
        self._world.time += time

    def get(self, key: Key, kind: type[Any]) -> Any:
        self._take(READ)
        return super().get(key, kind)

    def find(self, pk: str, prefix: str, kind: type[Any], **how: Any) -> list[Any]:
        self._take(READ)
        return super().find(pk, prefix, kind, **how)

    def commit(self, changes: Sequence[Change]) -> bool:
        self._take(WRITE * (1 if len(changes) == 1 else 2))
        return super().commit(changes)

    def _write(self, change: Change) -> None:
        if isinstance(change, Check):
            return
        self._drop(key_of(change))
        if not isinstance(change, Delete):
            self._put(as_stored(change))

    def _drop(self, key: Key) -> None:
        row = self.rows.pop(key, None)
        if row and row.indexed:
            del self._due[row.indexed.shard][dynamodb.look_text(row.indexed), key]
        if row and row.place:
            del self._lists[row.place.name][row.place.sort]

    def _put(self, row: Row) -> None:
        self.rows[row.key] = row
        if row.indexed:
            self._due[row.indexed.shard][dynamodb.look_text(row.indexed), row.key] = row.indexed
        if row.place:
            self._lists[row.place.name][row.place.sort] = row.key

    def overdue(self, shard: str, now: datetime, *, page: int = dynamodb.PAGE) -> Iterator[Due]:
        del page
        upto = (dynamodb.look_text(Look(now)) + "~",)
        page = list(islice(self._due[shard].irange(None, upto), dynamodb.PAGE))
        while True:
            self._take(READ)
            yield from (Due(dynamodb.look_of(text, shard), key) for text, key in page)
            if len(page) < dynamodb.PAGE:
                return
            page = list(islice(self._due[shard].irange(page[-1], upto, inclusive=(False, True)), dynamodb.PAGE))

    def rows_at(self, keys: Sequence[Key]) -> Mapping[Key, Row]:
        self._take(READ * 2 * bool(keys))
        return super().rows_at(keys)

    def look_later(self, due: Due, look: Look, was: Row | None) -> bool:
        self._take(WRITE)
        row = self.rows.get(due.key)
        done = super().look_later(due, look, was)
        if done and row:
            after = self.rows[due.key]
            self.rows[due.key] = row
            self._drop(due.key)
            self._put(after)
        return done

    def listed(
        self, name: str, kind: type[Any], *, limit: int = 100, after: str = "", newest: bool = False
    ) -> list[Any]:
        self._take(READ * 3)
        found = self._lists[name].irange(after or None, None, inclusive=(False, True), reverse=newest)
        return [self.rows[self._lists[name][sort]] for sort in islice(found, limit)]


class LostQueues(MemoryQueues):
    """Queues whose functions all fail: what is sent is as good as lost. Only the sweep's own messages arrive."""

    def schedule(self, message: Mapping[str, Any]) -> None:
        del message
        self.world.time += SEND

    def advance(self, unit: str, is_worker: bool, after: int = 0) -> None:
        del unit, is_worker, after
        self.world.time += SEND

    def sweep(self, message: Mapping[str, Any]) -> None:
        self.world.time += SEND
        super().sweep(message)


@dataclass
class Swept:
    """What was seen: when each row was first nudged and each pool first served, and how long the sweeps took."""

    nudged: dict[Key, datetime] = field(default_factory=dict)
    served: dict[str, datetime] = field(default_factory=dict)
    nudges: int = 0
    longest: timedelta = timedelta()
    calls: int = 0
    most_calls: int = 0


class Flooded(Twin):
    """A site on which so many rows are overdue for good, and that has so many pools."""

    def __init__(self, rows: int, pools: int) -> None:
        super().__init__()
        self.store = TimedStore(self.world)
        self.on = replace(self.on, store=self.store)
        apply.apply(self.on, "root", SITE, "site.toml")
        self.run()
        apply.go_on(self.on)  # its rollout would take the other pools for such that the site has no more
        self.seen = Swept()
        self._template = self._submitted()
        self._fill([Pool(name=f"quota/q{number:05d}", limit=1) for number in range(pools)])
        self.queues = LostQueues(self.world)
        self.on = replace(self.on, queues=self.queues)
        self.drivers.hand.list = self._is_down  # type: ignore[method-assign]
        self.objects.delete = self._is_down  # type: ignore[method-assign]
        now = self.world.now()
        share = rows // 5
        self._fill([self._unit(f"w-lost{number}", "cloud", now) for number in range(3 * share)])
        self._fill([self._job(f"01STUCK{number:019d}", now) for number in range(share)])
        self._fill([_doomed(f"stuck{number}", now) for number in range(share)])
        self.flood = {key for key, row in self.store.rows.items() if row.indexed and row.indexed.at <= now}

    def _is_down(self, *given: object) -> Any:
        del given
        self.world.time += CALL
        raise Unknown("the cloud is down")

    def _fill(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.store._put(as_stored(Create(row)))

    def _submitted(self) -> Job:
        row = self.store.rows[job_key(submit.submit(self.on, ADA, SubmitJob("#!/bin/sh\n", retries=0), None))]
        self.queues.messages.clear()
        assert isinstance(row, Job)
        return row

    def _job(self, id: str, due: datetime, **how: Any) -> Job:
        return replace(self._template, id=id, due=due, version=0, indexed=None, **how)

    @staticmethod
    def _unit(id: str, maker: str, due: datetime) -> Unit:
        lease = UnitLease(job="", attempt=1, order=0, pool="target/default", slot=id, fence=1)
        return Unit(
            id=id,
            is_a=UnitKind.WORKER,
            maker=maker,
            type="default",
            state=UnitState.DIRTY,
            since=due,
            due=due,
            lease=lease,
        )

    def something_else(self, name: str) -> dict[str, Row]:
        """One more row of each kind that becomes overdue now: somebody can move it on."""
        now = self.world.now()
        job = self._job(f"01ZCANCELLED{name:>014}", now, state=State.RUNNING)
        free = id_of(f"01FREE{name:>020}", "0" * 26)
        file = Artifact(id=free, path="/x", size=1, sha256="", by="ada", time=now, due=now)
        claim = Claim(
            pool=f"target/z{name}", job=f"01CLAIM{name:>019}", attempt=1, step=0, count=1, pools=(f"target/z{name}",),
            priority=0, since=now,
        )  # fmt: skip
        self._fill([Pool(name=claim.pool, limit=1)])
        more: dict[str, Row] = {
            "a job that was cancelled": replace(job, cancellation=replace(job.cancellation, cancelled_by="ada")),
            "a job whose first message was lost": self._job(f"01ZWAITING{name:>016}", now),
            "a worker whose message was lost": self._unit(f"w-well{name}", "other", now),
            "a pool whose limit was changed": Pool(name=f"resource/r{name}", limit=2, due=now),
            "a host that fell silent": Host(name=f"h{name}", pool="p", session="s", since=now, due=now),
            "an artifact that nobody owns": file,
            "bytes to be deleted": _doomed(f"v{name}", now),
            "a claim whose wake-up was lost": claim,
        }
        self._fill(list(more.values()))
        return more

    def minute(self) -> None:
        """One sweep, and the calls that take what it leaves, so many at a time."""
        start = self.world.now()
        with self._watched():
            sweep.sweep(self.on)
            self.seen.longest = max(self.seen.longest, self.world.now() - start)
            free = [start] * sweep.CALLS
            calls = len(self.queues.messages)
            for sent, _, message in list(self.queues.messages):
                self.world.time = max(sent, heapq.heappop(free)) + CALL
                sweep.go_on(self.on, message, self.world.now() + KILLED_AFTER)
                heapq.heappush(free, self.world.now())
        self.seen.calls += calls
        self.seen.most_calls = max(self.seen.most_calls, calls)
        self.queues.messages.clear()
        self.world.time = start + MINUTE

    @contextmanager
    def _watched(self) -> Iterator[None]:
        nudge, expiring, serve = sweep.nudge, expire.nudge, sweep.serving.serve

        def nudged(on: Any, kind: str, key: Key) -> None:
            if kind not in expire.NUDGES:
                self._note(key)
            nudge(on, kind, key)

        def expired(on: Any, kind: str, key: Key) -> None:
            self._note(key)
            expiring(on, kind, key)

        def served(on: Any, names: Sequence[str]) -> None:
            for pool in names:
                self.seen.served.setdefault(pool, self.world.now())
            serve(on, names)

        with (
            mock.patch.object(sweep, "nudge", nudged),
            mock.patch.object(expire, "nudge", expired),
            mock.patch.object(sweep.serving, "serve", served),
        ):
            yield

    def _note(self, key: Key) -> None:
        self.seen.nudges += 1
        self.seen.nudged.setdefault(key, self.world.now())

    def late(self, row: Row, since: datetime) -> float | None:
        """How many seconds after its time a row was moved on; None if it was not."""
        at = self.seen.served.get(row.pool) if isinstance(row, Claim) else self.seen.nudged.get(row.key)
        return (at - since).total_seconds() if at else None


def _doomed(job: str, due: datetime) -> Artifact:
    return stray(id_of(job, "A"), 0, due)


@dataclass
class Lateness:
    """What a run showed: how many seconds late what was moved on at most, and how many rows never were.

    `flood` is how late the last of those rows had its first nudge. Of the last minute, `again` is how many had another.
    """

    kinds: dict[str, float]
    flood: float
    missed: int
    nudges: int
    calls: int
    longest: float


def run(rows: int, pools: int, minutes: int) -> Lateness:
    """So many minutes with so many rows that nobody can move on; in each of them something else becomes overdue."""
    site = Flooded(rows, pools)
    start, waiting = site.world.now(), list[tuple[str, Row, datetime]]()
    for minute in range(minutes + 2):
        if minute < minutes:
            now = site.world.now()
            waiting += [(what, row, now) for what, row in site.something_else(str(minute)).items()]
        site.minute()
    late = [(what, site.late(row, since)) for what, row, since in waiting]
    kinds = {what: max(each or 0.0 for name, each in late if name == what) for what, _ in late}
    first = [site.seen.nudged.get(key) for key in site.flood]
    missed = first.count(None) + sum(each is None for _, each in late)
    flood = max(((each - start).total_seconds() for each in first if each), default=0.0)
    seen = site.seen
    return Lateness(kinds, flood, missed, seen.nudges, seen.most_calls, seen.longest.total_seconds())


def tell(budgets: Budgets, rows: int, pools: int, minutes: int) -> None:
    """The table, and whether everything else was moved on in time."""
    found = run(rows, pools, minutes)
    title = f"{rows:,} rows that nobody can move on, {pools:,} pools: what else becomes overdue, for {minutes} minutes"
    table(title, ("moved on", "at most so many seconds late"), list(found.kinds.items()))
    print(
        f"The last of the {rows:,} had its first nudge after {found.flood:.0f} s; in all there were {found.nudges:,} "
        f"nudges. A sweep took {found.longest:.1f} s at most, and left its work to {found.calls} messages at most."
    )
    kept = not found.missed and max(found.kinds.values()) <= MOST.total_seconds()
    print(budgets.verdict(kept, f"everything else within {MOST.total_seconds():.0f} s of its time"))


def main() -> int:
    """0 when everything else was moved on within two minutes of its time."""
    parser = argparse.ArgumentParser(prog="python -m tests.figures.sweeping", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows that are overdue for good")
    parser.add_argument("--pools", type=int, default=10_000)
    parser.add_argument("--minutes", type=int, default=10, help="for how long something else becomes overdue")
    given = parser.parse_args()
    budgets = Budgets()
    tell(budgets, given.rows, given.pools, given.minutes)
    return 0 if budgets.kept else 1


if __name__ == "__main__":
    sys.exit(main())
