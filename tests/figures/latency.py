"""From a submit to the agent's start of the script, request by request: `python -m tests.figures.latency`.

Real use cases on the twin. A hop is a call of a function; its requests come one after the other. On the way to the
script are those that a hop makes until it hands on: until the message, the flow or the answer is sent that the next hop
waits for. What it does after that delays nobody. What AWS takes is stated in MS; what functions compute, a machine's
boot, the two reads that know a user by a token, and the network are left out. Fails above MOST_MS or MOST_HOPS.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from penstock.domain.commands import Hello, SubmitJob
from penstock.domain.replies import Assignment
from penstock.domain.units.units import Unit
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Key, Row, key_of
from penstock.testing.site import site_toml
from penstock.testing.store import MemoryStore
from penstock.testing.twin import START, MemoryFlows, MemoryObjects, MemoryQueues, Twin
from penstock.usecases.jobs import submit
from penstock.usecases.site import apply
from penstock.usecases.workers import agents
from tests.figures.report import Budgets, table

MS: Mapping[str, float] = {
    "API Gateway": 10,
    "invoke": 10,
    "state": 50,
    "message": 15,
    "read": 5,
    "write": 5,
    "transaction": 10,
    "send": 8,
    "start flow": 20,
    "answer flow": 15,
    "put object": 20,
}
"""Milliseconds of each: `message` from sending until its function is called; `state` until a flow has entered it."""

MOST_HOPS = 3
NEW, IDLE = "a new worker, without its boot", "an idle worker"
MOST_MS = {NEW: 168, IDLE: 193}

SITE = site_toml(targets={"default": {"limit": 4, "warm": {"max": 1, "idle": "1h"}}})
USER = User(name="ada", created=START, version=1)
TOKEN, NEXT = "t" * 43, "n" * 43

R = TypeVar("R", bound=Row)


@dataclass
class Hop:
    """A call of a function: how it is reached, and its requests until it hands on, and after."""

    name: str
    ways: Sequence[str]
    requests: list[tuple[str, str]] = field(default_factory=list)
    after: list[tuple[str, str]] = field(default_factory=list)
    handed_on: bool = False

    def add(self, kind: str, what: str, *, last: bool = False) -> None:
        """One request; the last one hands on."""
        (self.after if self.handed_on else self.requests).append((kind, what))
        self.handed_on |= last

    @property
    def shown(self) -> str:
        """The requests on the way, in order."""
        return "; ".join(f"{kind} {what}" for kind, what in self.requests)

    @property
    def ms(self) -> float:
        """What the hop adds to the way."""
        return sum(MS[kind] for kind in (*self.ways, *(kind for kind, _ in self.requests)))


class Trace:
    """The hops so far."""

    def __init__(self) -> None:
        self.hops: list[Hop] = []

    def begin(self, name: str, *ways: str) -> None:
        """A function is called."""
        self.hops.append(Hop(name, ways))

    def add(self, kind: str, what: str, *, last: bool = False) -> None:
        """It makes a request."""
        if self.hops:
            self.hops[-1].add(kind, what, last=last)


class TracedStore(MemoryStore):
    """The twin's store, which notes requests."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(knows_kinds=True)
        self.trace = trace

    def get(self, key: Key, kind: type[R]) -> R | None:
        self.trace.add("read", kind.kind)
        return super().get(key, kind)

    def find(self, pk: str, prefix: str, kind: type[R], **how: Any) -> list[R]:
        self.trace.add("read", f"{kind.kind or 'rows'} of {pk.partition('#')[0]}")
        return super().find(pk, prefix, kind, **how)

    def commit(self, changes: Sequence[Change]) -> bool:
        rows = dict.fromkeys(key_of(change).sk.partition("#")[0] for change in changes)
        self.trace.add("transaction" if len(changes) > 1 else "write", ", ".join(rows))
        return super().commit(changes)


class TracedFlows(MemoryFlows):
    """The twin's flows: to start one hands on."""

    def __init__(self, queues: MemoryQueues, trace: Trace) -> None:
        super().__init__(queues)
        self.trace = trace

    def start(self, job: str, attempt: int, steps: Sequence[int]) -> None:
        self.trace.add("start flow", "the attempt", last=True)
        super().start(job, attempt, steps)

    def succeed(self, token: str) -> bool:
        self.trace.add("answer flow", "the step is done")
        return super().succeed(token)


class TracedQueues(MemoryQueues):
    """The twin's queues: to send a worker's message hands on."""

    trace: Trace

    def advance(self, unit: str, is_worker: bool, after: int = 0, maker: str = "") -> None:
        self.trace.add("send", "the unit's next step", last=True)
        super().advance(unit, is_worker, after, maker)


class TracedObjects(MemoryObjects):
    """The twin's objects: a bell hands on."""

    trace: Trace

    def store(self, name: str, content: bytes) -> None:
        self.trace.add("put object", name.partition("/")[0], last=True)
        super().store(name, content)


class TracedTwin(Twin):
    """The twin, whose calls are hops."""

    def __init__(self) -> None:
        super().__init__()
        self.trace = Trace()
        self.store = TracedStore(self.trace)
        self.queues = TracedQueues(self.world)
        self.objects = TracedObjects()
        self.queues.trace = self.objects.trace = self.trace
        self.flows = TracedFlows(self.queues, self.trace)
        self.on = replace(self.on, store=self.store, queues=self.queues, flows=self.flows, objects=self.objects)
        apply.apply(self.on, "root", SITE, "site.toml")
        self.run()
        self.trace.hops.clear()

    def take(self, queue: str, message: dict[str, Any]) -> None:
        """A flow sends its message when it has entered its states; any other message comes by itself."""
        states = ("state", "state") if message.get("do") == "acquire" else ()
        self.trace.begin(queue, *states, "message", "invoke")
        super().take(queue, message)


def run(*, warm: bool) -> list[Hop]:
    """The hops of one job, on a new worker or on one that had a job."""
    twin = TracedTwin()
    if warm:
        _job(twin, previous="", token=TOKEN, end=True)
        twin.trace.hops.clear()
    return _job(twin, previous=TOKEN if warm else "", token=NEXT if warm else TOKEN, end=False)


def _job(twin: TracedTwin, *, previous: str, token: str, end: bool) -> list[Hop]:
    twin.trace.begin("api", "API Gateway", "invoke")
    submit.submit(twin.on, USER, SubmitJob("#!/bin/bash\necho hello\n"), None)
    twin.run()
    (worker,) = (row for row in twin.store.rows.values() if isinstance(row, Unit))
    twin.trace.begin("agent_api", "API Gateway", "invoke")
    key = "" if previous else twin.drivers.hand.made[worker.id].key
    ask = Hello(worker.id, key, token, previous=previous, cleaned="nothing is left")
    told = agents.hello(twin.on, ask)
    assert isinstance(told, Assignment)
    hops = list(twin.trace.hops)
    if end:
        twin.run()
        caller = agents.authenticate(twin.on, told.job, token)
        agents.report_finished(twin.on, caller, agents.Result.SUCCEEDED, "it ended", 0)
        twin.run()
        agents.hello(twin.on, replace(ask, token=NEXT, previous=token))
        twin.run()
    return hops


def tell(title: str, hops: Sequence[Hop]) -> float:
    """Print the hops; the milliseconds of all."""
    rows = [(hop.name, f"{hop.ms:g}", ", ".join(hop.ways), hop.shown, len(hop.after)) for hop in hops]
    table(title, ("function", "ms", "reached by", "requests until it hands on", "after"), rows)
    return sum(hop.ms for hop in hops)


def main() -> int:
    """Print the ways to the script on a new and on an idle worker; 1 when one is over its budget."""
    argparse.ArgumentParser(prog="python -m tests.figures.latency", description=__doc__).parse_args()
    budgets, kept = Budgets(), True
    for title, most in MOST_MS.items():
        hops = run(warm=title == IDLE)
        total = tell(f"From submit to the script on {title}", hops)
        print(f"{len(hops)} hops, {total:g} ms.")
        kept &= len(hops) <= MOST_HOPS and total <= most
    print(budgets.verdict(kept, f"{MOST_HOPS} hops, {' and '.join(map(str, MOST_MS.values()))} ms"))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
