"""Calls of a unit's driver: retries, errors without secrets, what a driver knows of a silent machine, and visibility
checks.

Used by whatever takes a step of a unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.cooldowns import maker_of
from penstock.domain.units import retries, units, visibility
from penstock.domain.units.units import (
    CLEAN_WITHIN,
    JOURNAL_CHARS,
    Unit,
    UnitKind,
    UnitState,
    format_time,
    unit_key,
)
from penstock.domain.units.visibility import SearchResult
from penstock.kernel import limits
from penstock.kernel.errors import DriverError, Unknown
from penstock.kernel.rows import Change, Replace
from penstock.system import System, current_site, transact
from penstock.usecases import cooldowns
from penstock.usecases.logs import logs
from penstock.usecases.units import drivers

HEAD_CHARS = 150
"""How many characters of the beginning remain when evidence is shortened: the machine's id and state."""


_DOING = {UnitState.DIRTY: "put back", UnitState.CLEANING: "clean", UnitState.READY: "renew"}
"""What a driver cannot do yet, by the state of its unit."""


def retry_later(on: System, unit: Unit, reason: str | None, after: int | None = None) -> None:
    """Take the same step again later: by a message, and by the row's due time if that message is lost.

    A new reason is written to the job's log.
    """
    reason = reason[: limits.DRIVER_TEXT_CHARS] if reason else reason
    pause = timedelta(seconds=min(after, retries.MAX_MESSAGE_SECONDS)) if after is not None else None
    later = retries.retry_by_message(unit, reason, on.world.now(), pause)
    next_try = replace(later, step=replace(later.step, busy=None))
    if next_try == unit or not on.store.commit([Replace(unit, next_try)]):
        return
    if reason and reason != unit.step.reason:
        doing = _DOING.get(unit.state, "give")
        logs.append(
            on, unit.lease.job, unit.lease.attempt, f"{unit.maker} cannot {doing} {unit.type} yet: {reason}", "worker"
        )
    if next_try.due and next_try.step.next_look != unit.step.next_look:
        seconds = int((next_try.due - on.world.now()).total_seconds())
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER, max(1, seconds), unit.maker)


def lock(on: System, unit: Unit, *, is_to_clean: bool = False) -> Unit | None:
    """A unit that only the caller may call the well for, until it writes that it is done; None if another process may.

    So no call for one lease reaches the unit when it is idle, or leased again. A function that dies cannot have made a
    call after `busy` is over, because no function lives that long: a call whose answer is missing then is a failure.
    """
    now = on.world.now()
    if unit.step.busy and unit.step.busy > now:
        return None
    begun = retries.unanswered(unit, now)
    if begun:
        note_unanswered(on, unit, begun)
        return None
    marked = units.begin_end(unit, now) if is_to_clean else unit
    busy = replace(marked, step=replace(marked.step, busy=now + CLEAN_WITHIN), due=now + CLEAN_WITHIN)
    if not on.store.commit([Replace(unit, busy)]):
        return None
    fresh = on.store.get(unit.key, Unit)
    if fresh is None or fresh.step.busy != busy.step.busy:
        return None
    if fresh.version != unit.version + 1:  # somebody else wrote it meanwhile: its lease may be over
        drivers.unlock(on, fresh)
        return None
    return fresh


def note_unanswered(on: System, unit: Unit, begun: datetime) -> None:
    """A call of the driver left no answer: count it as a failure of its maker, and take the step again later."""
    why = f"a call of its driver at {format_time(begun)} left no answer: it hung, or ended its process"
    error = Unknown(why, drivers.NO_ANSWER)
    cooldowns.count_failure(on, maker_of(unit.is_a, unit.maker), error)
    retry_later(on, unit, f"{type(error).__name__}: {error}")


def log_evidence(on: System, unit: Unit, hide: str) -> None:
    """Write what the driver knows of the unit's machine into the job's log, if the driver can tell.

    Not of a host: jobs of others had it before, and what these printed is not this job's owner's to read. [SEC-2]
    """
    factory = current_site(on).factories.get(unit.maker)
    if factory and on.drivers.hosts(factory.driver):
        return
    text = evidence(on, unit, hide)
    if text:
        logs.append(on, unit.lease.job, unit.lease.attempt, text, "worker")


def evidence(on: System, unit: Unit, hide: str) -> str | None:
    """What a unit's driver knows of its machine, if it can tell, without the text to hide. [SEC-1]

    If the driver cannot be asked, that is the evidence.
    """
    try:
        driver = drivers.driver_of(on, current_site(on), unit)
        text = drivers.evidence(on, unit, driver)
    except DriverError as error:
        text = f"{unit.maker} cannot tell what became of {unit.id}: {error}"
    return text.replace(hide, "(its key)") if text else None


def shorten(text: str) -> str:
    """As much as fits into a journal entry: the beginning, and the end, which was printed last."""
    if len(text) <= JOURNAL_CHARS:
        return text
    return f"{text[:HEAD_CHARS]} … {text[-(JOURNAL_CHARS - HEAD_CHARS - 3) :]}"


def check_visibility(on: System, unit_id: str) -> None:
    """Check whether the driver lists a unit, if that is due; record it, and schedule the next check.

    Only functions that may call the provider do this.
    """
    unit = on.store.get(unit_key(unit_id), Unit)
    if unit is None or not visibility.is_search_due(unit, on.world.now()):
        return
    phase, sight = visibility.expected(unit), _list_unit(on, unit)

    def decide() -> tuple[Sequence[Change], Unit | None]:
        fresh = on.store.get(unit_key(unit_id), Unit)
        if fresh is None or visibility.expected(fresh) != phase:
            return [], None
        updated = visibility.record_search(fresh, sight, on.world.now())
        return [Replace(fresh, updated)], updated

    updated = transact(on, decide)
    if updated and visibility.expected(updated):
        on.queues.advance(unit_id, is_worker=True, after=visibility.SEARCH_SECONDS)


def _list_unit(on: System, unit: Unit) -> SearchResult:
    try:
        driver = drivers.driver_of(on, current_site(on), unit)
        return SearchResult(listed=unit.id in drivers.list_ids(on, maker_of(unit.is_a, unit.maker), driver))
    except DriverError as error:
        cooldowns.count_failure(on, maker_of(unit.is_a, unit.maker), error)
        return SearchResult(failure=f"{type(error).__name__}: {error}")


def resume_visibility(on: System, unit: Unit) -> None:
    """Request a visibility check whose message was lost."""
    if visibility.is_search_lost(unit, on.world.now()):
        on.queues.advance(unit.id, is_worker=True)
