"""The ports, in memory. At every call another handler may run, or this one may die."""

from __future__ import annotations

import json
import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Literal, Protocol, TypeVar

from sortedcontainers import SortedDict

from penstock.domain.pools.pools import BEFORE_ITS_ROW, WAITING, Slot, SlotState, collection
from penstock.domain.site.site import SITE_KEY, SiteText
from penstock.kernel.errors import PenstockError, Throttled, Unreached
from penstock.kernel.rows import Change, Check, Delete, Due, Key, Listed, Look, Place, Row, key_of
from penstock.testing.store import LAST, MemoryStore, as_stored
from penstock.testing.twin import ManualClock, MemoryFlows, MemoryQueues
from simulation.faults import Weather
from simulation.tasks import Task

R = TypeVar("R", bound=Row)
T = TypeVar("T")
A = TypeVar("A", bound=bool | None)

Message = tuple[datetime, str, dict[str, Any]]

Service = Literal["the table", "SQS", "Step Functions"]


class Host(Protocol):
    """What ports need from the engine."""

    dice: random.Random
    weather: Weather

    @property
    def task(self) -> Task | None:
        """Who calls; None for the engine itself."""

    def at(self, what: str, call: Callable[[], T], *, effect: bool = False) -> T:
        """Make a port call: another handler may run first, and the caller may die before or after the call."""

    def tell(self, what: str) -> None:
        """Add to the story."""

    def refuses(self, service: Service) -> bool:
        """Whether a service refuses the request of a handler now."""

    def chance(self, kind: str) -> bool:
        """Whether a kind of fault happens now."""

    def harm(self) -> None:
        """Note that a hint was lost: only the sweep makes up for it."""

    def committed(self, changes: Sequence[Change], before: Mapping[Key, Row | None]) -> None:
        """Check every promise after a commit."""

    def failed(self, cause: str) -> None:
        """Check that a step fails for a reason that is so."""


REFUSALS: Mapping[Service, type[PenstockError]] = {
    "the table": Throttled, "SQS": Unreached, "Step Functions": Unreached
}  # fmt: skip
"""What a refused request raises, by service."""


def ask(host: Host, service: Service, what: str, answer: Callable[[], T], *, effect: bool = False) -> T:
    """A request, which its service may refuse however often it is repeated. Raises what REFUSALS says."""

    def answer_or_refuse() -> T:
        if host.refuses(service):
            raise REFUSALS[service](f"{service} refuses to {what}")
        return answer()

    return host.at(what, answer_or_refuse, effect=effect)


class SimulatedWorld(ManualClock):
    """The clock and the source of ids. A handler that pauses after a lost race lets others run."""

    host: Host

    def draw(self, count: int) -> int:
        return self.host.dice.randrange(count)

    def pause(self, tries: int) -> None:
        self.host.at("pause", lambda: None)


class Clock:
    """The world as handlers have it: the clock of each one's process is its own."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self.ulid, self.secret, self.draw = world.ulid, world.secret, world.draw
        self.pause, self.limit = world.pause, world.limit

    def now(self) -> datetime:
        """The time by the clock of the process of whoever asks."""
        task = self._world.host.task
        return self._world.now() + task.apart if task else self._world.now()


class SimulatedStore(MemoryStore):
    """The store in memory, with its rows by collection, and indexes that may lag."""

    def __init__(self, host: Host) -> None:
        super().__init__()
        self.rows = {}  # in order of creation: seeds are known by what they find, and people pick from it
        self._host = host
        self._by_pk: dict[str, SortedDict] = defaultdict(SortedDict)
        self._due: dict[str, dict[Key, Look]] = defaultdict(dict)
        self._places: dict[str, dict[Key, Place]] = defaultdict(dict)
        self._late: deque[tuple[Key, Row | None]] = deque()
        self.is_pools_news = True

    def _ask(self, what: str, answer: Callable[[], T], *, effect: bool = False) -> T:
        return ask(self._host, "the table", what, answer, effect=effect)

    def get(self, key: Key, kind: type[R]) -> R | None:
        def read() -> R | None:
            row = MemoryStore.get(self, key, kind)
            if key == SITE_KEY and self._host.task:
                self._host.task.sites.append(row if isinstance(row, SiteText) else None)
            return row

        return self._ask("get", read)

    def find(self, pk: str, prefix: str, kind: type[R], **how: Any) -> list[R]:
        task = self._host.task

        def read() -> list[R]:
            if task and ((prefix == WAITING and not how.get("after")) or how.get("after") == BEFORE_ITS_ROW):
                task.looked[pk] = self.commits
            return self.scan(pk, prefix, kind, **how)

        return self._ask("find", read)

    def scan(
        self,
        pk: str,
        prefix: str,
        kind: type[R],
        *,
        limit: int | None = 1000,
        last: bool = False,
        after: str = "",
        upto: str = "",
        readable: bool = False,
    ) -> list[R]:
        """`find` for the checks: no other handler runs in between."""
        del readable  # which all are
        rows = self._by_pk.get(pk)
        if not rows:
            return []
        first, end = max(prefix, after), min(prefix + LAST, upto or LAST)
        keys = rows.irange(first, end, inclusive=(after < prefix or not after, True), reverse=last)
        return [row for row in map(rows.__getitem__, islice(keys, limit)) if isinstance(row, kind)]

    def commit(self, changes: Sequence[Change]) -> bool:
        return self._ask("commit", lambda: self._commit(changes), effect=True)

    def _commit(self, changes: Sequence[Change]) -> bool:
        if self._host.chance("conflict"):
            self._host.tell("commit: conflict, out of nowhere")
            return False
        before = {key_of(change): self.rows.get(key_of(change)) for change in changes}
        if not super().commit(changes):
            self._host.tell("commit: somebody else moved first")
            return False
        task = self._host.task
        if task:
            task.commits += 1
        self._host.committed(changes, before)
        return True

    def _write(self, change: Change) -> None:
        """Without the codec, which the contracts of stores are about."""
        key = key_of(change)
        if isinstance(change, Check):
            return
        self.is_pools_news = self.is_pools_news or key.pk.startswith(collection(""))
        if isinstance(change, Delete):
            del self.rows[key], self._by_pk[key.pk][key.sk]
            self._late.append((key, None))
            return
        self._put(as_stored(change))

    def _put(self, row: Row) -> None:
        self.rows[row.key] = self._by_pk[row.key.pk][row.key.sk] = row
        self._late.append((row.key, row))

    def overdue(self, shard: str, now: datetime, *, page: int = 100) -> Iterable[Due]:
        del page
        return self._ask("overdue", lambda: self._overdue(shard, now))

    def _overdue(self, shard: str, now: datetime) -> Sequence[Due]:
        self._catch_up()
        found = [Due(look, key) for key, look in self._due[shard].items() if look.at <= now]
        return sorted(found, key=lambda due: (due.look.at, due.look.nudges, due.key))

    def rows_at(self, keys: Sequence[Key]) -> Mapping[Key, Row]:
        return self._ask("rows", lambda: MemoryStore.rows_at(self, keys))

    def look_later(self, due: Due, look: Look, was: Row | None) -> bool:
        return self._ask("look later", lambda: self._look_later(due, look, was), effect=True)

    def _look_later(self, due: Due, look: Look, was: Row | None) -> bool:
        if self._host.chance("conflict"):
            self._host.tell("look later: conflict, out of nowhere")
            return False
        if not MemoryStore.look_later(self, due, look, was):
            return False
        self._put(self.rows[due.key])
        return True

    def listed(self, name: str, kind: type[R], *, limit: int = 100, after: str = "", newest: bool = False) -> list[R]:
        def read() -> list[R]:
            self._catch_up()
            places = sorted((place.sort, key) for key, place in self._places[name].items())
            edge = [each for each in places if not after or (each[0] < after if newest else each[0] > after)]
            found = (self.rows.get(key) for _, key in (edge[::-1] if newest else edge))
            return list(islice((row for row in found if isinstance(row, kind) and _is_in(row, name)), limit))

        return self._ask("listed", read)

    def entries(self, name: str, *, after: str = "", newest: bool = False, page: int = 100) -> Iterator[Listed]:
        del page
        for row in self.listed(name, Row, limit=len(self.rows), after=after, newest=newest):
            yield Listed(row.place.sort if row.place else "", row.key)

    def _catch_up(self) -> None:
        """Bring the indexes up to date, but for the late writes if they lag."""
        for key, row in self._arrived():
            for looks in self._due.values():
                looks.pop(key, None)
            for places in self._places.values():
                places.pop(key, None)
            if row and row.indexed:
                self._due[row.indexed.shard][key] = row.indexed
            if row and row.place:
                self._places[row.place.name][key] = row.place

    def _arrived(self) -> list[tuple[Key, Row | None]]:
        """The writes that the indexes learn of now. If they lag, most of the latest writes are not among them.

        What is written to one row arrives in its order; what is written to different rows arrives in any order.
        """
        dice, writes = self._host.dice, list(self._late)
        recent = len(writes) - (dice.randrange(20) if self._host.chance("lag") else 0)
        late = {key for key in dict.fromkeys(key for key, _ in writes[max(0, recent) :]) if dice.random() < 0.7}
        self._late = deque(write for place, write in enumerate(writes) if place >= recent and write[0] in late)
        return [write for place, write in enumerate(writes) if place < recent or write[0] not in late]


class SimulatedQueues(MemoryQueues):
    """Messages that may be lost, late or doubled, and are delivered in any order."""

    host: Host

    def schedule(self, message: Mapping[str, Any]) -> None:
        self._request("schedule", json.loads(json.dumps(message)), 0)

    def serve(self, names: Sequence[str], group: str) -> None:
        """Two calls may serve a group at once, although SQS avoids that: nothing is safe only because they do not."""
        self.schedule({"do": "serve", "pools": names, "group": group})

    def advance(self, unit: str, is_worker: bool, after: int = 0, maker: str = "") -> None:
        assert 0 <= after <= 900, f"SQS delays a message by 900 s at most, not by {after}"
        queue = "factory" if is_worker else "well"
        self._request(queue, {"unit": unit}, after)

    def power(self, host: str, after: int = 0, maker: str = "") -> None:
        assert 0 <= after <= 900, f"SQS delays a message by 900 s at most, not by {after}"
        self._request("factory", {"do": "power", "host": host}, after)

    def sweep(self, message: Mapping[str, Any]) -> None:
        self._request("sweep", json.loads(json.dumps(message)), 0)

    def _request(self, queue: str, body: dict[str, Any], after: int) -> None:
        ask(self.host, "SQS", "send", lambda: self._send(queue, body, after), effect=True)

    def _send(self, queue: str, body: dict[str, Any], after: int) -> None:
        host, said = self.host, " ".join(str(value) for key, value in body.items() if key != "token")
        if host.chance("lose"):
            host.harm()
            host.tell(f"send to {queue}: {said} (lost)")
            return
        after += host.dice.randint(60, 600) if host.chance("late") else 0
        self.put(queue, body, after)
        host.tell(f"send to {queue}: {said}" + (f" (in {after} s)" if after else ""))
        if host.chance("double"):
            self.put(queue, body, after + host.dice.choice((0, 5, 300, 3000)))

    def put(self, queue: str, body: dict[str, Any], after: float) -> None:
        """Place a message so that it is delivered after some seconds."""
        self.messages.append((self.world.now() + timedelta(seconds=after), queue, body))


class SimulatedFlows(MemoryFlows):
    """Flows whose answers may be lost, and that may end from outside, which EventBridge reports."""

    def __init__(self, queues: SimulatedQueues) -> None:
        super().__init__(queues)
        self._host = queues.host
        self.events: deque[tuple[str, int, str]] = deque()
        self.badly: list[tuple[str, int, str]] = []

    def start(self, job: str, attempt: int, steps: Sequence[int]) -> None:
        self._ask("start", lambda: self._start(job, attempt, steps), effect=True)

    def _ask(self, what: str, answer: Callable[[], T], *, effect: bool = False) -> T:
        return ask(self._host, "Step Functions", what, answer, effect=effect)

    def _start(self, job: str, attempt: int, steps: Sequence[int]) -> None:
        is_new = (job, attempt) not in self.executions
        MemoryFlows.start(self, job, attempt, steps)
        self._host.tell(f"start the flow of {job}/{attempt}{'' if is_new else ' (it was started before)'}")

    def stop(self, job: str, attempt: int) -> None:
        self._ask("stop", lambda: self.end(job, attempt, "ABORTED"), effect=True)

    def end(self, job: str, attempt: int, status: str) -> None:
        """End a flow from outside, if it is not over."""
        flow = self.executions.get((job, attempt))
        if flow and not flow.ended:
            MemoryFlows.stop(self, job, attempt)
            self.settling = deque(given for given in self.settling if given[:2] != (job, attempt))
            self._host.tell(f"the flow of {job}/{attempt} ends: {status}")
            self.badly.append((job, attempt, status))
            if self._host.chance("lose"):
                self._host.harm()
            else:
                self.events.append((job, attempt, status))

    def fail_to_settle(self, job: str, attempt: int) -> None:
        """The last step of a flow failed for good."""
        self.badly.append((job, attempt, "FAILED"))
        self.events.append((job, attempt, "FAILED"))

    def succeed(self, token: str) -> bool:
        return self._answer("succeed", token, lambda: MemoryFlows.succeed(self, token))

    def fail(self, token: str, error: str, cause: str) -> None:
        self._host.failed(cause)
        self._answer(f"fail with {error}", token, lambda: MemoryFlows.fail(self, token, error, cause))

    def _answer(self, how: str, token: str, answer: Callable[[], A]) -> A | Literal[True]:
        def send() -> A | Literal[True]:
            if self._host.chance("lose"):
                self._host.harm()
                self._host.tell(f"{how} {token} (lost)")
                return True
            self._host.tell(f"{how} {token}")
            return answer()

        return self._ask("answer", send, effect=True)

    def ended(self) -> Iterable[tuple[str, int, str]]:
        return self._ask("ended", lambda: list(self.badly[-100:]))


def _is_in(row: Row, listing: str) -> bool:
    return row.place is not None and row.place.name == listing


def slots_of(store: SimulatedStore, pool: str) -> list[Slot]:
    """All slots of a pool; no other handler runs in between."""
    return [slot for state in SlotState for slot in store.scan(f"pool#{pool}", f"{state}#", Slot)]
