"""The wait-for graph: who waits for what, who has it, and that nobody waits in a circle. [QUEUE-3]"""

import pytest

from penstock.domain.pools.choices import Choice
from penstock.domain.pools.forecast import Queue
from penstock.domain.pools.graph import Edge, EdgeKind, Graph, Node, graph
from penstock.domain.pools.pools import Pool, SlotState
from tests.domain.helpers import NOW, claim, slot

Held = tuple[str, int]


def queue(name: str, holders: list[Held], waiting: list[Held], **changes: object) -> Queue:
    slots = [
        slot(str(number), SlotState.HELD, pool=name, job=job, attempt=attempt, since=NOW)
        for number, (job, attempt) in enumerate(holders)
    ]
    claims = [claim(job, attempt=attempt, pool=name) for job, attempt in waiting]
    return Queue(Pool(name=name, limit=2, **changes), slots, claims)  # type: ignore[arg-type]


def test_edges_lead_from_who_waits_to_who_has_it() -> None:
    found = graph([queue("b", [], []), queue("a", [("X", 1), ("X", 1)], [("Y", 1)], paused=True)])
    assert found == Graph(
        nodes=(
            Node("a", "pool", "a: 2 of 2 held, paused"),
            Node("b", "pool", "b: 0 of 2 held"),
            Node("X", "job", "job X"),
            Node("Y", "job", "job Y"),
        ),
        edges=(Edge("a", "X", EdgeKind.HOLDS), Edge("Y", "a", EdgeKind.WAITS)),
    )


def test_an_amount_is_told_by_what_is_used() -> None:
    found = graph([queue("q", [], [], is_amount=True, used=1)])
    assert found.nodes[0].label == "q: 1 of 2 held"


def test_a_slot_of_nobody_is_held_by_nobody() -> None:
    assert graph([Queue(Pool(name="a", limit=1), [slot("1", SlotState.HELD)], [])]).edges == ()


def test_what_is_too_much_is_left_out_and_counted() -> None:
    found = graph([queue("a", [("X", 1)], [("Y", 1)]), queue("b", [], [])], most=3)
    assert [node.id for node in found.nodes] == ["a", "b", "X"]
    assert found.edges == (Edge("a", "X", EdgeKind.HOLDS),)
    assert found.left_out == 1


@pytest.mark.parametrize("busy", [queue("z", [("X", 1)], []), queue("z", [], [("X", 1)])])
def test_pools_in_which_something_happens_come_first(busy: Queue) -> None:
    assert [node.id for node in graph([queue("a", [], []), busy]).nodes] == ["z", "a", "X"]


def test_no_edge_ends_at_what_is_left_out() -> None:
    found = graph([queue("a", [("X", 1)], []), queue("b", [("Y", 1)], [])], most=3)
    assert [node.id for node in found.nodes] == ["a", "b", "X"]
    assert found.edges == (Edge("a", "X", EdgeKind.HOLDS),)


@pytest.mark.parametrize(
    ("pools", "cycle"),
    [
        ([], ()),
        ([queue("a", [("X", 1)], [("Y", 1)]), queue("b", [("Y", 1)], [("Z", 1)])], ()),
        ([queue("a", [("X", 1)], [("Y", 1)]), queue("b", [("Y", 1)], [("X", 1)])], ("X", "b", "Y", "a")),
        ([queue("a", [("X", 1)], [("X", 2)])], ()),  # its attempt before is put back by itself
        ([queue("a", [("X", 2)], [("X", 2)])], ("X", "a")),
        (
            [queue("a", [("X", 1)], [("Y", 1), ("A", 1)]), queue("b", [("Y", 1)], [("X", 1)])],
            ("a", "X", "b", "Y"),
        ),
    ],
)
def test_a_circle_is_found(pools: list[Queue], cycle: tuple[str, ...]) -> None:
    assert graph(pools).cycle == cycle


def test_who_chooses_waits_for_those_who_have_what_fits() -> None:
    """Each of two jobs has a bench; one waits for that of the other, and the other for a third one."""
    labels = {name: {"rack": name} for name in ("1", "2", "3")}
    row = Pool(name="resource/bench", limit=3, names=tuple(labels), labels=labels)
    held = [slot(name, SlotState.HELD, job=job, attempt=1, since=NOW) for name, job in zip("123", "ABC", strict=True)]
    held.append(slot("4", SlotState.HELD))

    def found(of_a: str, of_b: str) -> Graph:
        wants = (("A", of_a), ("B", of_b))
        takes = ({"resource/bench": 1},)
        return graph([Queue(row, held, [claim(job, takes=takes, choices=(Choice(text),)) for job, text in wants])])

    alone = found("rack == 2", "rack == 3")
    assert alone.cycle == ()
    assert [edge.choice for edge in alone.edges if edge.tie is EdgeKind.WAITS] == ["rack == 2", "rack == 3"]
    assert set(found("rack == 2", "rack == 1").cycle) == {"A", "B"}
