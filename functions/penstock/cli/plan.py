"""A plan as a person reads it: what is acquired and in which order, and what would be waited for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.cli import times
from penstock.cli.output import Column, Output

STEPS = (Column("STEP", "step"), Column("POOL", "pool"), Column("TYPE", "type"), Column("COUNT", "count"))


def _expected(wait: Mapping[str, Any]) -> str | None:
    seconds = wait.get("expected_seconds")
    return None if seconds is None else times.duration(seconds)


WAITS = (
    Column("POOL", "pool"),
    Column("POSITION", "position"),
    Column("EXPECTED", _expected),
    Column("BASIS", "basis"),
)


def show_plan(out: Output, plan: Mapping[str, Any]) -> None:
    """Sentences first, then the steps and the waits as tables."""
    for sentence in plan["sentences"]:
        out.line(sentence)
    out.line()
    out.rows([{"step": step["step"], **one} for step in plan["steps"] for one in step["acquires"]], STEPS)
    if plan["waits_for"]:
        out.line()
        out.line("it would wait for", "dim")
        out.rows(plan["waits_for"], WAITS)
    if plan["privileges"]:
        out.line()
        out.details([("privileges", plan["privileges"])])
