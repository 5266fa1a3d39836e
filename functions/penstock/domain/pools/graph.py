"""Who waits for what, and who has it: the wait-for graph of a whole site.

Edges can be walked: from a job to the pool that it waits for, and from a pool to the jobs that hold it, which are what
the first job waits for. Such a walk ends at a job that waits for nothing, always. [QUEUE-3]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from penstock.domain.pools.forecast import Queue
from penstock.domain.pools.pools import Slot

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
    """A tie between two nodes."""

    start: str
    end: str
    tie: EdgeKind


@dataclass(frozen=True)
class Graph:
    """The graph. `cycle` are nodes that wait for each other, of which there must be none.

    `left_out` is how many nodes there are beyond those shown.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    cycle: tuple[str, ...] = ()
    left_out: int = 0


def graph(queues: Sequence[Queue], most: int = MAX_NODES) -> Graph:
    """The graph of some pools, those first that something happens in."""
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
    paused = ", paused" if pool.paused else ""
    return Node(pool.name, "pool", f"{pool.name}: {used} of {pool.limit} held{paused}")


def _edges(queue: Queue) -> Iterable[Edge]:
    for slot in queue.held:
        if slot.job:
            yield Edge(queue.pool.name, slot.job, EdgeKind.HOLDS)
    for claim in queue.claims:
        yield Edge(claim.job, queue.pool.name, EdgeKind.WAITS)


def _waiting(queues: Sequence[Queue]) -> dict[str, set[str]]:
    """Where one gets from each node by waiting.

    What an attempt before the present one holds is on its way back by itself: its job does not wait with it.
    """
    present = {claim.job: claim.attempt for queue in queues for claim in queue.claims}
    ways: dict[str, set[str]] = {}
    for queue in queues:
        ways[queue.pool.name] = {slot.job for slot in queue.held if slot.job and _is_present(slot, present)}
        for claim in queue.claims:
            ways.setdefault(claim.job, set()).add(queue.pool.name)
    return ways


def _is_present(slot: Slot, present: Mapping[str, int]) -> bool:
    return present.get(slot.job or "") in (None, slot.attempt)


def _cycle(ways: Mapping[str, set[str]]) -> tuple[str, ...]:
    """Some nodes that can be walked in a circle; none if there is no circle.

    Nodes from which there is no way on are taken out until none is left; what remains leads to a circle.
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
