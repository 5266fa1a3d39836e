"""The same step of a unit, later: by a message that is sent for then, and by its due time if that is lost.

What a well says of a resource is for the job that leases it: sealed in its row, for this lease alone. [SEC-1]

What a driver says when it fails is told to people: without the secret that it was given. [SEC-1]

What is known of a machine that never said hello: nobody else could say what went wrong.

It goes into its job's log. Of one that has no job yet, the end of it is kept where operators look: see `ahead`.

One look for a unit in what its driver lists: by those functions only that may ask the provider.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from penstock import transaction
from penstock.domain import metrics
from penstock.domain.units import retries, visibility
from penstock.domain.units.units import JOURNAL_CHARS, Unit, UnitKind, UnitState, unit_key
from penstock.domain.units.visibility import SearchResult
from penstock.kernel.errors import DriverError, Short
from penstock.kernel.rows import Change, Replace
from penstock.ports import Driver, EvidenceDriver, NotYet, Order, Ready
from penstock.system import System
from penstock.usecases.logs import logs
from penstock.usecases.site import configuration
from penstock.usecases.telemetry import counters


def retry_later(on: System, unit: Unit, reason: str | None, after: int | None = None) -> None:
    """The same step again, later. What stays wrong past the boot deadline is told to the job's log by its reason."""
    pause = timedelta(seconds=min(after, retries.MAX_MESSAGE_SECONDS)) if after is not None else None
    next_try = replace(retries.retry_by_message(unit, reason, on.world.now(), pause), busy=None)
    if next_try == unit or not on.store.commit([Replace(unit, next_try)]):
        return
    if reason and reason != unit.reason:
        doing = {UnitState.DIRTY: "put back", UnitState.READY: "renew"}.get(unit.state, "give")
        logs.append(on, unit.job, unit.attempt, f"{unit.maker} cannot {doing} {unit.type} yet: {reason}", "worker")
    if next_try.due and next_try.next_look != unit.next_look:
        seconds = int((next_try.due - on.world.now()).total_seconds())
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER, max(1, seconds))


REDACTED = "(its key)"


def create(driver: Driver, order: Order) -> Ready | NotYet:
    """Have a unit made. What is raised or said of it stands in rows, logs and answers, so the key is taken out."""
    try:
        done = driver.create(order)
    except DriverError as error:
        _redact_error(error, order.key)
        raise
    except Exception as error:  # it ends the function, which logs it with all that led to it, in whatever words it has
        told = "".join(traceback.format_exception(error))
        if _redact(told, order.key) != told:
            raise RuntimeError(_redact(told, order.key)) from None
        raise
    if isinstance(done, NotYet) and done.reason:
        return replace(done, reason=_redact(done.reason, order.key))
    return done


def _redact_error(error: DriverError, key: str) -> None:
    error.args = tuple(_redact(str(part), key) for part in error.args)
    if isinstance(error, Short):
        error.shortages = tuple(replace(each, why=_redact(each.why, key)) for each in error.shortages)


def _redact(text: str, key: str) -> str:
    return text.replace(key, REDACTED) if key else text


HEAD_CHARS = 150
"""How many characters of the beginning stay of what is too long: which machine it was, and its state."""


def log_evidence(on: System, unit: Unit, hide: str) -> None:
    """Tell the job's log what the unit's driver knows, if it is one that can."""
    told = evidence(on, unit, hide)
    if told:
        logs.append(on, unit.job, unit.attempt, told, "worker")


def evidence(on: System, unit: Unit, hide: str) -> str | None:
    """What a unit's driver knows of it, if it is one that can tell; never with what is to be hidden. [SEC-1]

    That it cannot be had is told as well, and stops nothing.
    """
    try:
        driver = configuration.driver(on, configuration.current(on), unit.is_a, unit.maker)
        told = driver.evidence(unit.id) if isinstance(driver, EvidenceDriver) else None
    except DriverError as error:
        told = f"{unit.maker} cannot tell what became of {unit.id}: {error}"
    return told.replace(hide, "(its key)") if told else None


def shorten(told: str) -> str:
    """As much as an entry of a journal holds: the beginning, and the end, which is what was printed last."""
    if len(told) <= JOURNAL_CHARS:
        return told
    return f"{told[:HEAD_CHARS]} … {told[-(JOURNAL_CHARS - HEAD_CHARS - 3) :]}"


def check_visibility(on: System, unit_id: str) -> None:
    """Look for a unit where it is time to, note what was seen, and ask for the next look if one must follow."""
    unit = on.store.get(unit_key(unit_id), Unit)
    if unit is None or not visibility.is_search_due(unit, on.world.now()):
        return
    phase, sight = visibility.expected(unit), _list_unit(on, unit)

    def decide() -> tuple[Sequence[Change], Unit | None]:
        fresh = on.store.get(unit_key(unit_id), Unit)
        if fresh is None or visibility.expected(fresh) != phase:
            return [], None
        told = visibility.record_search(fresh, sight, on.world.now())
        return [Replace(fresh, told)], told

    told = transaction.run(on, decide)
    if told and visibility.expected(told):
        on.queues.advance(unit_id, told.is_a is UnitKind.WORKER, visibility.SEARCH_SECONDS)


def _list_unit(on: System, unit: Unit) -> SearchResult:
    try:
        driver = configuration.driver_of(on, configuration.current(on), unit)
        return SearchResult(
            listed=unit.id in counters.count_unit_call(on, unit, metrics.LIST, lambda: set(driver.list()))
        )
    except DriverError as error:
        return SearchResult(failure=f"{type(error).__name__}: {error}")


def resume_visibility(on: System, unit: Unit) -> None:
    """Ask for a look whose message was lost."""
    if visibility.is_search_lost(unit, on.world.now()):
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER)
