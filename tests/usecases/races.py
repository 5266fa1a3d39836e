"""Somebody else moves between what was read and the write that follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.kernel.rows import Change, Create, Replace, Row
from penstock.testing.twin import Twin


def before_the_next_commit(twin: Twin, act: Callable[[], object]) -> None:
    """Let `act` run whole, once, just before the next commit."""
    commit = twin.store.commit

    def racing(changes: Sequence[Change]) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        act()
        return commit(changes)

    twin.store.commit = racing  # type: ignore[method-assign]


def before_the_next_write_of(twin: Twin, kind: type[Row], act: Callable[[], object]) -> None:
    """Let `act` run whole, once, just before the next commit that writes a row of a kind."""
    commit = twin.store.commit

    def racing(changes: Sequence[Change]) -> bool:
        if any(isinstance(_written(change), kind) for change in changes):
            twin.store.commit = commit  # type: ignore[method-assign]
            act()
        return commit(changes)

    twin.store.commit = racing  # type: ignore[method-assign]


def before_the_next_read(twin: Twin, prefix: str, act: Callable[[], object]) -> None:
    """Let `act` run whole, once, just before the next look at rows of a collection that begin like this."""
    find = twin.store.find

    def racing(pk: str, begins: str, *more: object, **how: object) -> object:
        if begins == prefix:
            twin.store.find = find  # type: ignore[method-assign]
            act()
        return find(pk, begins, *more, **how)  # type: ignore[arg-type]

    twin.store.find = racing  # type: ignore[assignment]


def _written(change: Change) -> Row:
    return change.row if isinstance(change, Create | Replace) else change.was
