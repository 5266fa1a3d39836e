"""How one function is made to run in the middle of another, or to die there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from penstock.domain.jobs.jobs import Job, Result, State
from penstock.domain.pools.pools import Claim, Slot, SlotState
from penstock.domain.units.units import Unit, UnitState
from penstock.kernel.rows import Change, Create, Replace
from penstock.testing.twin import Twin

Which = Callable[[Change], bool]


class Died(BaseException):
    """The function was killed; no `except Exception` of ours sees it."""


def claims(change: Change) -> bool:
    """A claim is written into its queue."""
    return isinstance(change, Create) and isinstance(change.row, Claim)


def grants(change: Change) -> bool:
    """A claim is granted."""
    return isinstance(change, Create) and isinstance(change.row, Unit)


def frees(change: Change) -> bool:
    """A slot comes back."""
    return isinstance(change, Create) and isinstance(change.row, Slot) and change.row.state is SlotState.FREE


def withdraws(change: Change) -> bool:
    """A free slot is withdrawn."""
    return isinstance(change, Create) and isinstance(change.row, Slot) and change.row.state is SlotState.OFF


def renews(change: Change) -> bool:
    """A worker is heard of."""
    return isinstance(change, Replace) and isinstance(change.was, Unit) and change.row.deadline != change.was.deadline


def starts(change: Change) -> bool:
    """A job begins to run."""
    return isinstance(change, Replace) and isinstance(change.row, Job) and change.row.state is State.RUNNING


def gives_up(change: Change) -> bool:
    """An attempt is reported lost."""
    row = change.row if isinstance(change, Replace) else None
    return isinstance(row, Job) and row.run.report is not None and row.run.report.result is Result.LOST


def ends(change: Change) -> bool:
    """The lease of a worker ends, because its attempt does."""
    return isinstance(change, Replace) and isinstance(change.row, Unit) and change.row.state is UnitState.DIRTY


@contextmanager
def just_before(twin: Twin, which: Which, other: Callable[[], Any]) -> Iterator[None]:
    """Once: another function runs whole between the reads of one and its commit of such a change."""
    came: list[bool] = []
    commit = twin.store.commit

    def racing(changes: Sequence[Change]) -> bool:
        if not came and any(map(which, changes)):
            came.append(True)
            other()
        return commit(changes)

    twin.store.commit = racing  # type: ignore[method-assign]
    yield
    twin.store.commit = commit  # type: ignore[method-assign]
    assert came, "it never came to that commit"


@contextmanager
def always_before(twin: Twin, which: Which, other: Callable[[], Any]) -> Iterator[None]:
    """Each time: another function runs whole before such a commit, in whose middle nothing more happens."""
    inside: list[bool] = []
    commit = twin.store.commit

    def racing(changes: Sequence[Change]) -> bool:
        if not inside and any(map(which, changes)):
            inside.append(True)
            other()
            inside.clear()
        return commit(changes)

    twin.store.commit = racing  # type: ignore[method-assign]
    yield
    twin.store.commit = commit  # type: ignore[method-assign]


@contextmanager
def dying(where: Any, name: str, *, after: bool = False) -> Iterator[None]:
    """The function that makes this call dies before it, or after it."""
    call = getattr(where, name)

    def dies(*given: Any, **named: Any) -> Any:
        if after:
            call(*given, **named)
        raise Died(name)

    setattr(where, name, dies)
    try:
        yield
    except Died:
        pass
    else:
        raise AssertionError(f"nobody called {name}")
    finally:
        setattr(where, name, call)


def restart(twin: Twin) -> None:
    """Every process ends, and what was only in memory or under way is gone. Flows and rows are not ours to lose."""
    twin.queues.messages.clear()
