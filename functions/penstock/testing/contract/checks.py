"""What every driver promises, one check each. A check raises Broken, with a sentence that its author can act upon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from threading import Barrier, Thread
from typing import Any

from penstock.kernel.errors import DriverError
from penstock.ports import NotYet
from penstock.testing.contract import halfway
from penstock.testing.contract.rig import KNOWN, Broken, Rig

Check = Callable[[Rig], None]
CHECKS: dict[str, Check] = {}


def check(says: str) -> Callable[[Check], Check]:
    """Add a check, by what it says of a driver."""

    def added(function: Check) -> Check:
        CHECKS[says] = function
        return function

    return added


@check("nothing made is nothing listed")
def _nothing(rig: Rig) -> None:
    rig.unit()
    rig.expect()


@check("what is made is listed, for everybody, until it is destroyed")
def _listed(rig: Rig) -> None:
    one, two = rig.unit(), rig.unit()
    rig.create(one)
    rig.create(two)
    rig.expect(one, two)
    rig.destroy(one)
    rig.expect(two)


@check("made twice, it is one, and the answers are the same")
def _twice(rig: Rig) -> None:
    unit = rig.unit()
    first, *others = [rig.create(unit) for _ in range(3)]
    rig.expect(unit)
    if rig.kind == "well" and any(other.metadata != first.metadata for other in others if other.expires is None):
        raise Broken("asked twice for one lease, a well must say the same: which answer the job gets is not known")
    rig.destroy(unit)
    rig.expect()


@check("made by two at once, it is one, and is gone when it is destroyed")
def _at_once(rig: Rig) -> None:
    if not rig.is_threadsafe:
        return
    unit, start, odd = rig.unit(), Barrier(2), list[BaseException]()

    def make() -> None:
        driver = rig.driver(unit)
        start.wait()
        try:
            driver.create(rig.order(unit))
        except KNOWN:
            pass  # one of them may be told to come again
        except BaseException as error:
            odd.append(error)

    threads = [Thread(target=make, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if odd:
        raise Broken(f"`create` raised {type(odd[0]).__name__}, which the core does not know: {odd[0]}")
    rig.create(unit)
    rig.expect(unit)
    rig.destroy(unit)
    rig.expect()


@check("destroying what is gone, or never was, is a success")
def _gone(rig: Rig) -> None:
    never, made = rig.unit(), rig.unit()
    rig.create(made)
    for unit in (never, made, made, never):
        rig.destroy(unit)
    rig.expect()


@check("a proof has the time that it was asked at")
def _time(rig: Rig) -> None:
    unit = rig.unit()
    rig.create(unit)
    before = rig.now()
    proof = rig.destroy(unit)
    if not before <= proof.time <= rig.now():
        raise Broken(f"the proof is of {proof.time}, and not of when it was asked for")


@check("a create that died at any line is made good by the next")
def _create_again(rig: Rig) -> None:
    for at in _points(rig):
        unit = rig.unit()
        _die(rig, at, lambda unit=unit: rig.driver(unit).create(rig.order(unit)))  # type: ignore[misc]
        rig.create(unit)
        rig.expect(unit)
        rig.destroy(unit)
        rig.expect()


@check("what a create made that died is gone when it is destroyed")
def _create_lost(rig: Rig) -> None:
    for at in _points(rig):
        unit = rig.unit()
        _die(rig, at, lambda unit=unit: rig.driver(unit).create(rig.order(unit)))  # type: ignore[misc]
        rig.destroy(unit)
        rig.expect()


@check("a destroy that died at any line is made good by the next")
def _destroy_again(rig: Rig) -> None:
    unit = rig.unit()
    rig.create(unit)
    count = halfway.lines(lambda: _quiet(lambda: rig.driver(unit).destroy(unit, rig.now())), _own(rig))
    for at in halfway.points(count, rig.points):
        unit = rig.unit()
        rig.create(unit)
        _die(rig, at, lambda unit=unit: rig.driver(unit).destroy(unit, rig.now()))  # type: ignore[misc]
        rig.destroy(unit)
    for each in rig.used:
        rig.destroy(each)
    rig.expect()


@check("what it keeps is cleaned, and made ready for the next")
def _kept(rig: Rig) -> None:
    if not getattr(type(rig.make()), "reusable", False) or rig.kind == "factory":
        return
    unit = rig.unit()
    rig.create(unit)
    for _ in range(2):
        rig.clean(unit)
    rig.expect(unit)
    rig.create(unit)
    rig.expect(unit)
    rig.destroy(unit)
    rig.expect()


@check("what makes nothing answers at once")
def _only_a_slot(rig: Rig) -> None:
    if not getattr(type(rig.make()), "makes_nothing", False):
        return
    if rig.kind == "factory":
        raise Broken("it says `makes_nothing = True`, and is a factory: a worker is always made")
    unit = rig.unit()
    if isinstance(rig.driver(unit).create(replace(rig.order(unit), key="")), NotYet) or rig.listed():
        rig.destroy(unit)
        raise Broken("it says `makes_nothing = True`, and makes something, or is not done at once")
    if isinstance(rig.driver(unit).destroy(unit, rig.now()), NotYet):
        raise Broken("it says `makes_nothing = True`, and does not put it back at once")


def settings_are_checked(kind: Any, settings: Mapping[str, Any]) -> None:
    """Of the class, and not of what it makes: `config check` asks it so. Raises Broken."""
    found = list(kind.complaints(settings))
    if found:
        raise Broken(f"it complains of the settings that it is tested with: {found[0]}")
    odd = list(kind.complaints({**settings, "no_such_setting": 1}))
    if not any("no_such_setting" in each for each in odd):
        raise Broken("a setting that there is not is no complaint, or the complaint does not name it")


def _points(rig: Rig) -> list[int]:
    """Lines of a create to die at."""
    unit = rig.unit()
    count = halfway.lines(lambda: _quiet(lambda: rig.driver(unit).create(rig.order(unit))), _own(rig))
    rig.create(unit)
    rig.destroy(unit)
    return halfway.points(count, rig.points)


def _die(rig: Rig, at: int, call: Callable[[], Any]) -> None:
    halfway.cut(lambda: _quiet(call), _own(rig), at)


def _own(rig: Rig) -> str:
    return rig.own or halfway.sources(type(rig.make()))


def _quiet(call: Callable[[], Any]) -> None:
    with suppress(DriverError):
        call()
