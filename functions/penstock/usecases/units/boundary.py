"""The boundary to drivers: whatever a driver does, its caller gets an answer of the right type, or a DriverError.

A driver may come from anybody. It may raise anything, return nothing or something else, or not return: each of these is
a failure of its maker like any other. It is counted, its reason reaches the unit's row, and only that unit waits. What
a driver says reaches rows, logs and people, so the key that it was given is removed. [SEC-1]

A driver that ends the process of its function, or cannot be broken off, leaves no answer: `retries.unanswered` sees it.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from aws_lambda_powertools import Logger

from penstock.domain import metrics
from penstock.domain.cooldowns import maker_of
from penstock.domain.site.site import Site
from penstock.domain.units.units import CleanProof, Unit, UnitKind
from penstock.kernel.errors import DriverError, Short, TimeLimit, Unknown
from penstock.ports import (
    CleaningDriver,
    Driver,
    EventDriver,
    EvidenceDriver,
    IdentityDriver,
    MachineNotice,
    NotYet,
    Order,
    PlacementDriver,
    Ready,
)
from penstock.system import System
from penstock.usecases.site import configuration
from penstock.usecases.telemetry import counters
from penstock.usecases.units import answers

T = TypeVar("T")

CALL_SECONDS = 60
"""How long one call of a driver may take. Drivers do not wait, and no call of ours to a provider may take longer."""

NO_ANSWER = "NoAnswer"
"""The code under which it is counted that a driver did not answer in time, or not at all."""

REDACTED = "(its key)"

_RAISED = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)

log = Logger(child=True)


def driver_named(on: System, site: Site, is_a: UnitKind, maker: str) -> Driver:
    """The driver of a factory or well. Raises DriverError."""
    return ask(on, maker_of(is_a, maker), lambda: configuration.driver(on, site, is_a, maker))


def driver_of(on: System, site: Site, unit: Unit) -> Driver:
    """The driver of a unit, for one call. Raises DriverError."""
    return ask(on, maker_of(unit.is_a, unit.maker), lambda: configuration.driver_of(on, site, unit))


def create(on: System, unit: Unit, driver: Driver, order: Order) -> Ready | NotYet:
    """Have a unit made. Raises DriverError."""
    maker = maker_of(unit.is_a, unit.maker)
    done = call(on, maker, metrics.CREATE, lambda: answers.creation(driver.create(order)), order.key)
    return replace(done, reason=_redact(done.reason, order.key)) if isinstance(done, NotYet) and done.reason else done


def destroy(on: System, maker: str, driver: Driver, unit: str) -> CleanProof | NotYet:
    """Have a unit destroyed. Raises DriverError."""
    return call(on, maker, metrics.DESTROY, lambda: answers.ending(driver.destroy(unit, on.world.now())))


def clean(on: System, unit: Unit, driver: CleaningDriver) -> CleanProof | NotYet:
    """Have a unit cleaned. Raises DriverError."""
    maker = maker_of(unit.is_a, unit.maker)
    return call(on, maker, metrics.CLEAN, lambda: answers.ending(driver.clean(unit.id, on.world.now())))


def list_ids(on: System, maker: str, driver: Driver) -> frozenset[str]:
    """The ids that a driver lists. Raises DriverError."""
    return call(on, maker, metrics.LIST, lambda: answers.ids(driver.list()))


def is_blind(on: System, unit: Unit, driver: Driver, order: Order) -> bool:
    """Whether a driver has no alternative left to try. Raises DriverError."""
    if not isinstance(driver, PlacementDriver):
        return False
    return not ask(on, maker_of(unit.is_a, unit.maker), lambda: driver.has_alternative(order), order.key)


def is_shared(on: System, unit: Unit, driver: PlacementDriver, scope: str) -> bool:
    """Whether the units of a driver count towards a scope. Raises DriverError."""
    return bool(ask(on, maker_of(unit.is_a, unit.maker), lambda: driver.shares_scope(scope)))


def evidence(on: System, unit: Unit, driver: Driver) -> str | None:
    """What a driver knows of a unit's machine, if it can tell. Raises DriverError."""
    if not isinstance(driver, EvidenceDriver):
        return None
    return ask(on, maker_of(unit.is_a, unit.maker), lambda: answers.text(driver.evidence(unit.id)))


def identity_mismatch(on: System, unit: Unit, driver: IdentityDriver, shown: Mapping[str, str]) -> str | None:
    """Why an identity document is not that of a unit's machine; None if it is. Raises DriverError. [SEC-2]"""
    made = unit.creation.metadata
    return ask(on, maker_of(unit.is_a, unit.maker), lambda: answers.text(driver.identity_mismatch(shown, made)))


def read_event(on: System, factory: str, driver: Driver, event: Mapping[str, Any]) -> MachineNotice | None:
    """What a factory makes of an event. Raises DriverError."""
    if not isinstance(driver, EventDriver):
        return None
    return ask(on, maker_of(UnitKind.WORKER, factory), lambda: answers.notice(driver.read_event(event)))


def call(on: System, maker: str, operation: str, do: Callable[[], T], hide: str = "") -> T:
    """One call of a driver, counted with its result. Raises DriverError."""
    return counters.count_call(on, maker, operation, lambda: ask(on, maker, do, hide))


def ask(on: System, maker: str, do: Callable[[], T], hide: str = "") -> T:
    """Ask a driver anything. Raises DriverError, whatever the driver raises, and if it does not answer in time."""
    try:
        with on.world.limit(CALL_SECONDS):
            return do()
    except DriverError as error:
        raise _sound(error, hide) from None
    except TimeLimit:
        log.error("a driver did not answer in time", extra={"maker": maker, "seconds": CALL_SECONDS})
        raise Unknown(f"the driver did not answer within {CALL_SECONDS} s", NO_ANSWER) from None
    except _RAISED as error:
        trace = _redact("".join(traceback.format_exception(error)), hide)
        log.error("a driver raised what is no DriverError", extra={"maker": maker, "trace": trace})
        raise Unknown(f"the driver raised {_redact(_describe(error), hide)}", type(error).__name__) from None


def _describe(error: BaseException) -> str:
    """An error as text. Even that its driver may get wrong."""
    try:
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    except Exception:
        return type(error).__name__


def _redact(text: str, hide: str) -> str:
    return text.replace(hide, REDACTED) if hide else text


def _sound(error: DriverError, hide: str) -> DriverError:
    """A driver's error without the text to hide; a WrongAnswer for one whose fields are not what they should be."""
    wrong = answers.wrong_fields(error)
    if wrong:
        return wrong
    error.args = tuple(_redact(str(part), hide) for part in error.args)
    if isinstance(error, Short):
        error.shortages = tuple(replace(each, why=_redact(each.why, hide)) for each in error.shortages)
    return error
