"""Somebody else moves between what was read and the write that follows, or the function dies there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.kernel.rows import Change, Create, Key, Replace, Row
from penstock.testing.twin import Twin


class Died(BaseException):
    """The function ends here; no `except Exception` of ours sees it."""


def die(*_: object) -> None:
    """What is called in the place where a function is to end. Raises Died."""
    raise Died


def before_the_next_commit(twin: Twin, act: Callable[[], object]) -> None:
    """Let `act` run whole, once, just before the next commit."""
    commit = twin.store.commit

    def racing(changes: Sequence[Change]) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        act()
        return commit(changes)

    twin.store.commit = racing  # type: ignore[method-assign]


def after_the_next_commit(twin: Twin, act: Callable[[], object]) -> None:
    """Let `act` run whole, once, just after the next commit."""
    commit = twin.store.commit

    def racing(changes: Sequence[Change]) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        is_done = commit(changes)
        act()
        return is_done

    twin.store.commit = racing  # type: ignore[method-assign]


def before_the_next_write_of(
    twin: Twin, kind: type[Row], act: Callable[[], object], when: Callable[[Any], bool] = lambda _: True
) -> None:
    """Let `act` run whole, once, just before the next commit that writes a row of a kind, and such a one."""
    commit = twin.store.commit

    def racing(changes: Sequence[Change]) -> bool:
        if any(isinstance(row, kind) and when(row) for row in map(_written, changes)):
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


def before_the_next_get(twin: Twin, kind: type[Row], act: Callable[[], object]) -> None:
    """Let `act` run whole, once, just before the next read of a row of a kind."""
    get = twin.store.get

    def racing(key: Key, of_kind: type[Any]) -> Any:
        if of_kind is kind:
            twin.store.get = get  # type: ignore[method-assign]
            act()
        return get(key, of_kind)

    twin.store.get = racing  # type: ignore[method-assign]


def after_the_next_get(twin: Twin, act: Callable[[], object]) -> None:
    """Let `act` run whole, once, just after the next read of a row."""
    get = twin.store.get

    def racing(key: Key, of_kind: type[Any]) -> Any:
        found = get(key, of_kind)
        twin.store.get = get  # type: ignore[method-assign]
        act()
        return found

    twin.store.get = racing  # type: ignore[method-assign]


def _written(change: Change) -> Row:
    return change.row if isinstance(change, Create | Replace) else change.was
