"""Decide and commit, again while somebody else moves first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from penstock.kernel.errors import Moved
from penstock.kernel.rows import Change, Row
from penstock.system import System

TRIES = 12
"""How often a lost race is run again before the step is left to a redelivery or the sweep."""

T = TypeVar("T")


class StaleRead(Exception):
    """The rows that were read are not of one moment: what they say together was never so."""


def run(on: System, decide: Callable[[], tuple[Sequence[Change], T]]) -> T:
    """Commit what `decide` decides and return its answer; no changes mean that there is nothing to commit.

    `decide` reads what it needs itself, so that every try sees the world anew. A commit holds only when all rows are
    as they were read; who refuses without one sees to that by `stands`. Raises Moved after TRIES.
    """
    for tries in range(TRIES):
        with suppress(StaleRead):
            changes, answer = decide()
            if not changes or on.store.commit(changes):
                return answer
        on.world.pause(tries)
    raise Moved()


def check_unchanged(on: System, row: Row) -> None:
    """Make sure that a row is still as it was read before the others. Raises Torn, which `run` decides again for."""
    if on.store.get(row.key, type(row)) != row:
        raise StaleRead
