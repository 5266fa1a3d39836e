"""The model and the code name the same things."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

MODEL = Path(__file__).parents[2] / "model"
ACTIONS = tomllib.loads((MODEL / "actions.toml").read_text(encoding="utf-8"))
TEXT = {path.name: path.read_text(encoding="utf-8") for path in MODEL.glob("*.pml")}
ONE_LINE = re.compile(r"^inline (\w+)\([^)]*\) \{(.+)\}$", re.MULTILINE)
SOME_LINES = re.compile(r"^inline (\w+)\([^)]*\) \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
INLINES = {
    name: body for text in TEXT.values() for pattern in (ONE_LINE, SOME_LINES) for name, body in pattern.findall(text)
}
HELPERS = {
    "moved", "answer", "answer_run", "park", "begin", "go_on", "give_up", "claim_and_serve", "stands",
    "end_by_sweep", "check_slots", "check_settled", "check_alone", "begins", "ends", "crash", "lose",
}  # fmt: skip
"""Inlines that are the flow, a reply, the faults, or a part of an action."""

WRITTEN = {
    "lease": {"WAITING", "GRANTED", "READY", "RELEASING", "RELEASED"},
    "unit": {"CREATING", "UP", "DIRTY", "GONE"},
    "job": {"QUEUED", "ACQUIRING", "RUNNING", "SETTLED"},
    "report": {"DONE", "LOST"},
}
CALLED = {"UP": "ready"}


def body(name: str) -> str:
    """An inline with the inlines that it calls."""
    inner = INLINES[name]
    calls = {called for called in re.findall(r"(\w+)\(", inner) if called in INLINES and called != name}
    return inner + "".join(body(called) for called in sorted(calls))


def writes(name: str, row: str) -> set[str]:
    """The states that an inline writes into a kind of row."""
    found = set(re.findall(rf"\b{row}\[[^=]*\] = (\w+)", body(name)))
    return {CALLED.get(state, state.lower()) for state in found & WRITTEN[row]}


def moves(name: str, row: str) -> set[str]:
    """The states that an action's table moves a kind of row to."""
    given = [move.split(": ") for move in ACTIONS[name].get("must", []) + ACTIONS[name].get("may", [])]
    pairs = [move.split(" -> ") for kind, move in given if kind == row]
    return {after for before, after in pairs if before != after and after != "none"}


@pytest.mark.parametrize("name", list(ACTIONS))
def test_every_action_is_a_function_of_the_code(name: str) -> None:
    path, _, function = ACTIONS[name]["function"].rpartition(".")
    assert callable(getattr(importlib.import_module(path), function))


def test_every_inline_of_the_model_is_an_action() -> None:
    names = {name for text in TEXT.values() for name in re.findall(r"^inline (\w+)", text, re.MULTILINE)}
    assert names - HELPERS == set(ACTIONS)


@pytest.mark.parametrize("row", list(WRITTEN))
@pytest.mark.parametrize("name", [name for name, action in ACTIONS.items() if not action.get("message")])
def test_the_table_moves_rows_to_where_the_model_moves_them(name: str, row: str) -> None:
    assert moves(name, row) == writes(name, row)


def test_every_action_is_in_the_page() -> None:
    page = (MODEL.parent / "docs" / "model.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert set(ACTIONS) <= named
    for action in ACTIONS.values():
        assert action["function"].removeprefix("penstock.") in page
