"""The same step of a unit, later: by a message that is sent for then, and by its due time if that is lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from penstock.domain.units import retries
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.kernel.rows import Replace
from penstock.system import System
from penstock.usecases import logs


def again(on: System, unit: Unit, reason: str | None, after: int | None = None) -> None:
    """The same step again, later. What stays wrong past the boot deadline is told to the job's log by its reason."""
    pause = timedelta(seconds=min(after, retries.MESSAGE_MOST)) if after is not None else None
    next_try = replace(retries.look_again(unit, reason, on.world.now(), pause), busy=None)
    if next_try == unit or not on.store.commit([Replace(unit, next_try)]):
        return
    if reason and reason != unit.reason:
        doing = {UnitState.DIRTY: "put back", UnitState.READY: "renew"}.get(unit.state, "give")
        logs.say(on, unit.job, unit.attempt, f"{unit.maker} cannot {doing} {unit.type} yet: {reason}", "worker")
    if next_try.due and next_try.next_look != unit.next_look:
        seconds = int((next_try.due - on.world.now()).total_seconds())
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER, max(1, seconds))
