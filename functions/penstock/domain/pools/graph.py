"""The wait-for graph of a site: which job waits for which pool, and which job holds it.

Following the edges leads from a job to the pool that it waits for, and from the pool to the jobs that hold it, for
which the first job waits. Every such path ends at a job that waits for nothing. [QUEUE-3]

A job that chooses among a pool's things waits only for those who hold some that fit. The edge to the pool says what.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Literal

from penstock.domain.pools.forecast import Queue
from penstock.domain.pools.matching import Chosen
from penstock.domain.pools.pools import Slot
from penstock.kernel.frozen import dataclass

MAX_NODES = 2000
"""How many nodes are shown."""


class EdgeKind(StrEnum):
    """What an edge means."""

    WAITS = "waits"  # from a job to a pool
    HOLDS = "holds"  # from a pool to a job that holds some of it


@dataclass(frozen=True)
class Node:
    """A job or a pool. `kind` says which."""

    id: str
    kind: Literal["job", "pool"]
    label: str


@dataclass(frozen=True)
class Edge:
    """A relation between two nodes. `choice`: which of the pool's things the job waits for, "" for any."""

    start: str
    end: str
    tie: EdgeKind
    choice: str = ""


@dataclass(frozen=True)
class Graph:
    """The graph. `cycle`: nodes that wait for each other, which must never happen.

    `left_out`: how many nodes are not shown.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    cycle: tuple[str, ...] = ()
    left_out: int = 0


def graph(queues: Sequence[Queue], most: int = MAX_NODES) -> Graph:
    """The graph of some pools, busy ones first."""
    busy = sorted(queues, key=lambda queue: (not (queue.claims or queue.held), queue.pool.name))
    nodes = {queue.pool.name: _pool(queue) for queue in busy}
    edges = list(dict.fromkeys(edge for queue in busy for edge in _edges(queue)))
    for edge in edges:
        for end in (edge.start, edge.end):
            nodes.setdefault(end, Node(end, "job", f"job {end}"))
    shown = dict(list(nodes.items())[:most])
    kept = tuple(edge for edge in edges if edge.start in shown and edge.end in shown)
    return Graph(tuple(shown.values()), kept, _cycle(_waiting(queues)), len(nodes) - len(shown))


def _pool(queue: Queue) -> Node:
    pool = queue.pool
    used = pool.used if pool.is_amount else len(queue.held)
    paused = ", paused" if pool.is_paused else ""
    return Node(pool.name, "pool", f"{pool.name}: {used} of {pool.limit} held{paused}")


def _edges(queue: Queue) -> Iterable[Edge]:
    for slot in queue.held:
        if slot.job:
            yield Edge(queue.pool.name, slot.job, EdgeKind.HOLDS)
    for claim in queue.claims:
        yield Edge(claim.job, queue.pool.name, EdgeKind.WAITS, Chosen.of(queue.pool, claim).said)


def _waiting(queues: Sequence[Queue]) -> dict[str, set[str]]:
    """Which nodes each node waits for.

    An earlier attempt's slots come back by themselves: its job does not wait with them.
    """
    present = {claim.job: claim.attempt for queue in queues for claim in queue.claims}
    ways: dict[str, set[str]] = {}
    for queue in queues:
        held = [slot for slot in queue.held if slot.job and _is_present(slot, present)]
        ways[queue.pool.name] = {str(slot.job) for slot in held}
        for claim in queue.claims:
            chosen = Chosen.of(queue.pool, claim)
            whom = {queue.pool.name} if chosen.things is None else {str(slot.job) for slot in held if chosen.has(slot)}
            ways.setdefault(claim.job, set()).update(whom)
    return ways


def _is_present(slot: Slot, present: Mapping[str, int]) -> bool:
    return present.get(slot.job or "") in (None, slot.attempt)


def _cycle(ways: Mapping[str, set[str]]) -> tuple[str, ...]:
    """Some nodes that form a circle; empty if there is none.

    Nodes that lead nowhere are removed until none is left; what remains leads to a circle.
    """
    left = {node: set(ends) & ways.keys() for node, ends in ways.items()}
    while ended := [node for node, ends in left.items() if not ends]:
        for last in ended:
            del left[last]
        for ends in left.values():
            ends.difference_update(ended)
    walked: list[str] = []
    node = min(left, default=None)
    while node is not None and node not in walked:
        walked.append(node)
        node = min(left[node])
    return tuple(walked[walked.index(node) :]) if node is not None else ()
