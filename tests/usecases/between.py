"""Somebody else moves between what was read and the write that follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.domain.rows import Change
from tests.twin.world import Twin


def before_the_next_commit(twin: Twin, act: Callable[[], object]) -> None:
    """Let `act` run whole, once, just before the next commit."""
    commit = twin.store.commit

    def racing(changes: Sequence[Change]) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        act()
        return commit(changes)

    twin.store.commit = racing  # type: ignore[method-assign]
