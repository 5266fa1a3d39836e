"""Decide and commit, again while somebody else moves first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from penstock.domain.errors import Moved
from penstock.domain.rows import Change
from penstock.system import System

TRIES = 12
"""How often a lost race is run again before the step is left to a redelivery or the sweep."""

T = TypeVar("T")


def run(on: System, decide: Callable[[], tuple[Sequence[Change], T]]) -> T:
    """Commit what `decide` decides and return its answer; no changes mean that there is nothing to commit.

    `decide` reads what it needs itself, so that every try sees the world anew. Raises Moved after TRIES.
    """
    for tries in range(TRIES):
        changes, answer = decide()
        if not changes or on.store.commit(changes):
            return answer
        on.world.pause(tries)
    raise Moved()
