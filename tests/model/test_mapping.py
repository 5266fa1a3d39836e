"""The model and the code name the same things."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

MODEL = Path(__file__).parents[2] / "model"
ACTIONS = tomllib.loads((MODEL / "actions.toml").read_text(encoding="utf-8"))
ONE_LINE = re.compile(r"^inline (\w+)\([^)]*\) \{(.+)\}$", re.MULTILINE)
SOME_LINES = re.compile(r"^inline (\w+)\([^)]*\) \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)


def read(model: Path) -> dict[str, str]:
    """The inlines of a model by name. Of two with one name, the last is the protocol, the first a negative control."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(model.glob("*.pml"))]
    return {name: text for file in texts for each in (ONE_LINE, SOME_LINES) for name, text in each.findall(file)}


INLINES = read(MODEL)
IN_POOLS = read(MODEL / "pools")
HELPERS = {
    "moved", "answer", "end_by_report", "park", "begin", "go_on", "give_up", "claim_and_serve", "stands",
    "end_by_sweep", "check_slots", "check_settled", "check_alone", "begins", "ends", "crash", "lose",
    "wrote_claim", "wrote_slot", "wrote_pool", "come_again", "look_on", "forget", "forget_slots", "still", "pass",
    "serve_pools_of", "read_waiting", "look_further", "stop_looking", "check_pools", "check_served", "check_waits",
    "start_matching", "give_room", "harm_by_grant", "take_one", "take_slots", "check_kept",
    "start_packing", "next_parts", "forget_parts", "name_parts", "wrote_part", "look_beside",
}  # fmt: skip
"""Inlines that are the flow, a reply, the faults, or a part of an action."""

COMMITS = [name for name, action in ACTIONS.items() if not action.get("message")]
WRITTEN = {
    "lease": {"WAITING", "GRANTED", "READY", "RELEASING", "RELEASED"},
    "unit": {"CREATING", "UP", "DIRTY", "GONE"},
    "job": {"QUEUED", "ACQUIRING", "RUNNING", "SETTLED"},
    "report": {"DONE", "LOST"},
}
CALLED = {"UP": "ready"}

IN_WORDS = {
    "lease: waiting": r"lease\[\w+\] = WAITING", "lease: granted": r"lease\[\w+\] = GRANTED",
    "lease: releasing": r"lease\[\w+\] = RELEASING", "lease: released": r"lease\[\w+\] = RELEASED",
    "claim: waiting": r"queue\[\w+\] = queue\[\w+\] \| BIT", "claim: none": r"queue\[\w+\] = queue\[\w+\] & ~BIT",
    "overtaken: more": r"overtaken\[.*\]\+\+",
    "slot: held": r"slot\[\w+\] = HELD_BY|withdrawn\[\w+\] = 0", "slot: withdrawn": r"withdrawn\[\w+\] = 1",
    "slot: free": r"[^_]slot\[\w+\] = FREE", "slot: off": r"[^_]slot\[\w+\] = OFF",
    "used: more": r"used = used \+", "used: less": r"used = used -",
    "limit: set": r"limit\[\w+\] = to", "due: set": r"due\[\w+\] = 1", "due: cleared": r"due\[\w+\] = 0",
    "over: yes": r"[^_]over\[\w+\] = [1n]", "over: no": r"[^_]over\[\w+\] = [0n]",
    "paused: yes": r"paused\[\w+\] = 1", "paused: no": r"paused\[\w+\] = 0",
}  # fmt: skip
"""How the model of pools writes what a move of actions.toml leads to."""


def body(name: str, inlines: Mapping[str, str] = INLINES) -> str:
    """An inline with the inlines that it calls."""
    inner = inlines[name]
    calls = {called for called in re.findall(r"(\w+)\(", inner) if called in inlines and called != name}
    return inner + "".join(body(called, inlines) for called in sorted(calls))


def ends(name: str) -> set[str]:
    """What an action's moves lead to, in the words of the model of pools: of an amount it has no slots."""
    given = {
        move.replace("limit: more", "limit: set").replace("limit: less", "limit: set") for move in every_move(name)
    }
    led = {f"{move.split(': ')[0]}: {move.split(' -> ')[1]}" if " -> " in move else move for move in given}
    return led & set(IN_WORDS)


def writes(name: str, row: str) -> set[str]:
    """The states that an inline writes into a kind of row."""
    found = set(re.findall(rf"\b{row}\[[^=]*\] = (\w+)", body(name)))
    return {CALLED.get(state, state.lower()) for state in found & WRITTEN[row]}


def every_move(name: str) -> list[str]:
    """All that an action may move."""
    return [*ACTIONS[name].get("must", []), *ACTIONS[name].get("may", [])]


def moves(name: str, row: str) -> set[str]:
    """The states that an action's table moves a kind of row to."""
    given = [move.split(": ") for move in every_move(name)]
    pairs = [move.split(" -> ") for kind, move in given if kind == row]
    return {after for before, after in pairs if before != after and after != "none"}


@pytest.mark.parametrize("name", list(ACTIONS))
def test_every_action_is_a_function_of_the_code(name: str) -> None:
    path, _, function = ACTIONS[name]["function"].rpartition(".")
    assert callable(getattr(importlib.import_module(path), function))


def test_every_inline_of_the_model_is_an_action() -> None:
    assert (INLINES.keys() | IN_POOLS.keys()) - HELPERS == set(ACTIONS)
    texts = "".join(path.read_text(encoding="utf-8") for path in MODEL.rglob("*.pml"))
    assert set(re.findall(r"^inline (\w+)", texts, re.MULTILINE)) == INLINES.keys() | IN_POOLS.keys()


@pytest.mark.parametrize("row", list(WRITTEN))
@pytest.mark.parametrize("name", [name for name in COMMITS if name in INLINES])
def test_the_table_moves_rows_to_where_the_model_moves_them(name: str, row: str) -> None:
    assert moves(name, row) == writes(name, row)


@pytest.mark.parametrize("name", [name for name in COMMITS if name in IN_POOLS])
def test_the_table_moves_pools_to_where_their_model_moves_them(name: str) -> None:
    written = body(name, IN_POOLS)
    assert ends(name) == {words for words, pattern in IN_WORDS.items() if re.search(pattern, written)}


def test_every_commit_is_in_a_model() -> None:
    assert set(COMMITS) <= INLINES.keys() | IN_POOLS.keys()


def test_every_action_is_in_the_page() -> None:
    page = (MODEL.parent / "docs" / "internals" / "model.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert set(ACTIONS) <= named
    for action in ACTIONS.values():
        assert action["function"].removeprefix("penstock.") in page
