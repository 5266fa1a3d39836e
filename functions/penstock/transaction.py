"""Transactions: decide and commit, repeated while other processes commit first. Used by every use case that writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from penstock.kernel.errors import Moved
from penstock.kernel.rows import Change, Row
from penstock.system import System

TRIES = 12
"""How often a lost race is repeated before the step is left to a redelivery or the sweep."""

T = TypeVar("T")


class StaleRead(Exception):
    """The rows that were read were never so at one moment."""


def run(on: System, decide: Callable[[], tuple[Sequence[Change], T]]) -> T:
    """Commit what `decide` decides and return its answer. Without changes there is nothing to commit.

    `decide` reads what it needs itself, so every try sees the rows anew. A commit holds only if all its rows are as
    they were read; a refusal without a commit uses `check_unchanged`. Raises Moved after TRIES.
    """
    for tries in range(TRIES):
        with suppress(StaleRead):
            changes, answer = decide()
            if not changes or on.store.commit(changes):
                return answer
        on.world.pause(tries)
    raise Moved()


def check_unchanged(on: System, row: Row) -> None:
    """Make sure that a row is still as it was read before the others. Raises StaleRead, for which `run` repeats."""
    if on.store.get(row.key, type(row)) != row:
        raise StaleRead
