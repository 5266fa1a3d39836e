"""Functions that run side by side in virtual time, over a table that takes its time, refuses and throttles as DynamoDB.

What is assumed of AWS is stated here, and nowhere else. Each call of a port costs CPU_MS of its function, and then
takes as long as the service does. A transaction refuses every other one, and every single write, that comes to one of
its rows while it is under way. A partition takes 1,000 write units and 3,000 read units a second; a throttled request
is sent again as our adapters do, and after that its message comes again.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from heapq import heappop, heappush
from itertools import count
from math import ceil
from typing import Any, TypeVar

import greenlet

from penstock.aws import dynamodb
from penstock.aws.dynamodb import THROTTLED_TRIES
from penstock.kernel.errors import Throttled
from penstock.kernel.rows import Change, Key, Row, key_of
from penstock.testing.store import MemoryStore
from penstock.testing.twin import START, ManualClock
from tests.figures.scale import PlainStore

R = TypeVar("R", bound=Row)

CPU_MS = 3.5
ROW_MS = 0.35
"""What each row of a batch takes besides, of CPU."""
READ_MS = (5.0, 6.0)
WRITE_MS = (5.0, 6.0)
TRANSACTION_MS = (10.0, 20.0)
MESSAGE_MS = (5.0, 6.0)
WRITE_UNITS, READ_UNITS = 1000, 3000
READ_TRIES = 4
"""How often the SDK sends a throttled read."""
AGAIN_S = 360
"""After how long a message comes again whose function failed."""
BATCH = 10
"""How many messages of a FIFO queue a call gets at most."""
BLOCKED_S = 60
"""For how long a group of messages waits whose call failed."""
RECEIVES = 5
"""How often a message comes at most; then it is a dead letter."""
RAMP_FIRST, RAMP_PER_S = 5, 5
"""Lambda starts to poll a queue with five functions, and adds 300 a minute while messages are left."""


class Engine:
    """Virtual time: who waits for when."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.time = 0.0
        self._heap: list[tuple[float, int, Callable[[], Any]]] = []
        self._number = count()
        self._home = greenlet.getcurrent()

    def at(self, time: float, call: Callable[[], Any]) -> None:
        """Call something at a time, in seconds."""
        heappush(self._heap, (max(time, self.time), next(self._number), call))

    def spawn(self, call: Callable[[], Any]) -> None:
        """Run something that may sleep."""
        self.at(self.time, greenlet.greenlet(call, self._home).switch)

    def sleep(self, seconds: float) -> None:
        """Let others run until this much time has passed. Outside of what runs, no time passes."""
        me = greenlet.getcurrent()
        if me is not self._home:
            self.at(self.time + seconds, me.switch)
            self._home.switch()

    def between(self, bounds: tuple[float, float]) -> None:
        """Sleep for between so many and so many milliseconds."""
        self.sleep(self.dice.uniform(*bounds) / 1000)

    def run(self, until: float) -> None:
        """Let everything happen until nothing is left to happen, or until a time."""
        while self._heap and self._heap[0][0] <= until:
            self.time, _, call = heappop(self._heap)
            call()


class VirtualWorld(ManualClock):
    """The engine's clock."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine = engine

    def now(self) -> Any:
        return START + timedelta(seconds=self.engine.time)

    def ulid(self) -> str:
        self.time = max(self.time, self.now())
        return super().ulid()

    def draw(self, count: int) -> int:
        return self.engine.dice.randrange(count)

    def pause(self, tries: int) -> None:
        """As the real one."""
        self.engine.sleep(self.engine.dice.uniform(0, min(0.5, 0.01 * 2**tries)))


class Partition:
    """What a partition still has of its units of this second."""

    def __init__(self, engine: Engine, per_second: float) -> None:
        self._engine, self._per_second = engine, per_second
        self._left, self._at = per_second, 0.0

    def take(self, units: float) -> bool:
        """Whether it had so many; as many as a second has may be used at once."""
        now = self._engine.time
        self._left = min(self._per_second, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < units:
            return False
        self._left -= units
        return True


class VirtualStore(PlainStore):
    """The table."""

    def __init__(self, engine: Engine, *, is_throttled: bool) -> None:
        super().__init__()
        self.engine, self.is_throttled = engine, is_throttled
        self.counts: Counter[str] = Counter()
        self._locked: set[Key] = set()
        self._writes: dict[str, Partition] = defaultdict(lambda: Partition(engine, WRITE_UNITS))
        self._reads: dict[str, Partition] = defaultdict(lambda: Partition(engine, READ_UNITS))
        self._bytes: dict[tuple[Key, int], int] = {}

    def get(self, key: Key, kind: type[R]) -> R | None:
        return self._read(key.pk, lambda: MemoryStore.get(self, key, kind), lambda row: [row] if row else [])

    def find(self, pk: str, prefix: str, kind: type[R], **how: Any) -> list[R]:
        return self._read(pk, lambda: MemoryStore.find(self, pk, prefix, kind, **how), lambda rows: rows)

    def rows_at(self, keys: Sequence[Key]) -> Mapping[Key, Row]:
        """The rows of jobs, each in a partition of its own, whose limits nobody reaches."""
        found = MemoryStore.rows_at(self, keys)
        self.counts["reads"] += 1
        self.engine.sleep((CPU_MS + ROW_MS * len(found)) / 1000)
        self.engine.between(READ_MS)
        return found

    def count(self, pk: str, prefix: str, **how: Any) -> int:
        found: list[Row] = []
        self._read(
            pk,
            lambda: found.extend(MemoryStore.find(self, pk, prefix, Row, limit=len(self.rows), **how)),
            lambda _: found,
        )
        return len(found)

    def _read(self, pk: str, read: Callable[[], Any], rows: Callable[[Any], Sequence[Row]]) -> Any:
        self.counts["reads"] += 1
        for tries in range(READ_TRIES):
            self.engine.sleep(CPU_MS / 1000)
            self.engine.between(READ_MS)
            found = read()
            units = max(1, ceil(sum(map(self._size, rows(found))) / 4096))
            if self._has(self._reads, pk, units):
                return found
            self.counts["throttled"] += 1
            self.engine.sleep(self.engine.dice.uniform(0, 0.05 * 2**tries))
        raise Throttled("a read")

    def _has(self, of: Mapping[str, Partition], pk: str, units: float) -> bool:
        if not pk.startswith("pool#"):
            return True
        self.counts["read units" if of is self._reads else "write units"] += int(units)
        return not self.is_throttled or of[pk].take(units)

    def _size(self, row: Row) -> int:
        known = self._bytes.get((row.key, row.version))
        if known is None:
            known = self._bytes[row.key, row.version] = dynamodb.stored_bytes(row)
        return known

    def commit(self, changes: Sequence[Change]) -> bool:
        for tries in range(THROTTLED_TRIES):
            self.counts["commits"] += 1
            self.engine.sleep(CPU_MS / 1000)
            done = self._try(changes)
            if done is not None:
                self.counts["lost"] += not done
                return done
            self.counts["throttled"] += 1
            self.engine.sleep(min(1, 0.1 * 2**tries) * self.engine.dice.uniform(0.5, 1))
        raise Throttled("a commit")

    def _try(self, changes: Sequence[Change]) -> bool | None:
        """Its first half the request is on its way and in the queue, its second half it is under way."""
        took = self.engine.dice.uniform(*(WRITE_MS if len(changes) == 1 else TRANSACTION_MS)) / 2000
        self.engine.sleep(took)
        keys = {key_of(change) for change in changes}
        units: Counter[str] = Counter()
        for change in changes:
            units[key_of(change).pk] += self._units(change) * (1 if len(changes) == 1 else 2)
        if not all(self._has(self._writes, pk, number) for pk, number in units.items()):
            return None
        if keys & self._locked:
            return False
        self._locked |= keys
        self.engine.sleep(took if len(changes) > 1 else 0)
        self._locked -= keys
        done = super().commit(changes)
        self.engine.sleep(0 if len(changes) > 1 else took)
        return done

    def _units(self, change: Change) -> int:
        stored = self.rows.get(key_of(change))
        made = None if not hasattr(change, "row") else change.row
        most = max((self._size(row) for row in (stored, made) if row), default=1)
        return max(1, ceil(most / 1024))


class VirtualQueue:
    """A queue of messages, and the functions that take them."""

    def __init__(self, engine: Engine, take: Callable[[Any], None], functions: int | None) -> None:
        self._engine, self._take = engine, take
        self._waiting: deque[tuple[Any, int]] = deque()
        self._busy = 0
        self._functions = functions
        self.failed = self.dead = 0
        self.open = 0
        """How many messages are not done."""

    def send(self, message: Any, after: float = 0) -> None:
        """A message that comes after some seconds."""
        self.open += 1
        self._engine.at(self._engine.time + after, lambda: self._come(message, 1))

    def _come(self, message: Any, receives: int) -> None:
        self._waiting.append((message, receives))
        self._next()

    def _next(self) -> None:
        while self._waiting and self._busy < self._most():
            self._busy += 1
            self._engine.spawn(self._work)
        if self._waiting and self._functions is None:
            self._engine.at(self._engine.time + 0.2, self._next)

    def _most(self) -> float:
        return RAMP_FIRST + int(self._engine.time * RAMP_PER_S) if self._functions is None else self._functions

    def _work(self) -> None:
        while self._waiting:
            message, receives = self._waiting.popleft()
            try:
                self._take(message)
                self.open -= 1
            except Exception:
                self.failed += 1
                if receives < RECEIVES:
                    again = (message, receives + 1)
                    self._engine.at(self._engine.time + AGAIN_S, lambda again=again: self._come(*again))
                else:
                    self.dead += 1
                    self.open -= 1
        self._busy -= 1


class VirtualGroups:
    """A FIFO queue: of each group, one call at a time has messages, up to ten of them."""

    def __init__(self, engine: Engine, take: Callable[[Any], None]) -> None:
        self._engine, self._take = engine, take
        self._waiting: dict[str, deque[Any]] = defaultdict(deque)
        self._busy: set[str] = set()
        self.failed = 0

    def send(self, message: Any, group: str) -> None:
        """A message of a group."""
        self._waiting[group].append(message)
        self._next(group)

    def _next(self, group: str) -> None:
        if group not in self._busy and self._waiting[group]:
            self._busy.add(group)
            self._engine.spawn(lambda: self._work(group))

    def _work(self, group: str) -> None:
        waiting = self._waiting[group]
        batch = [waiting.popleft() for _ in range(min(BATCH, len(waiting)))]
        failed = []
        for message in unique(batch):
            try:
                self._take(message)
            except Exception:
                self.failed += 1
                failed.append(message)
        self._engine.at(self._engine.time + (BLOCKED_S if failed else 0), lambda: self._free(group, failed))

    def _free(self, group: str, again: Sequence[Any]) -> None:
        """What failed comes again when nobody works on it any more; until then its group waits."""
        self._waiting[group].extendleft(again)
        self._busy.remove(group)
        self._next(group)


def unique(batch: Sequence[Any]) -> list[Any]:
    """The messages of a batch, each once: bootstrap.each does so."""
    return [message for place, message in enumerate(batch) if message not in batch[:place]]
