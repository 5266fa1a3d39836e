"""What a driver says when it fails does not tell the secret that it was given. [SEC-1]"""

from __future__ import annotations

import traceback
from datetime import datetime
from subprocess import CalledProcessError
from typing import Any

import pytest

from penstock.domain.units import prewarm
from penstock.domain.units.units import CleanProof, UnitKind
from penstock.domain.users.users import User
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, Shortage, Unknown, Unsatisfiable
from penstock.ports import NotYet, Order, Ready
from penstock.testing.twin import Twin
from penstock.usecases.logs import logs
from penstock.usecases.units import drivers
from tests.usecases.steps import job_of, submit

KEY = "k" * 40


class Telltale:
    """A driver that says its key in all that it says."""

    def __init__(self, what: Any) -> None:
        self.what = what

    def create(self, order: Order) -> Ready | NotYet:
        said = self.what(f"bad login: {order.key}")
        if isinstance(said, Exception):
            raise said
        assert isinstance(said, Ready | NotYet)
        return said

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        return CleanProof(by="telltale", time=now, checked=unit)

    def list(self) -> list[str]:
        return []


def create(driver: Telltale, key: str = KEY) -> Ready | NotYet:
    twin = Twin()
    unit = prewarm.new_unit("u", UnitKind.RESOURCE, "locks", "bench", twin.world.now())
    return drivers.create(twin.on, unit, driver, Order("u", "t", "s", key=key))


@pytest.mark.parametrize("kind", [DriverError, Misconfigured, Unknown, Unsatisfiable])
def test_an_error_has_no_key(kind: Any) -> None:
    for what in (kind, lambda text: kind(ValueError(text))):  # of a driver that passes on what it was told itself
        with pytest.raises(kind) as told:
            create(Telltale(what))
        assert str(told.value) == "bad login: (its key)"


def _from_another(text: str) -> Exception:
    error = KeyError("login")
    error.__cause__ = ValueError(text)
    return error


@pytest.mark.parametrize(
    "what", [ValueError, lambda text: OSError(5, text), lambda text: CalledProcessError(1, [text]), _from_another]
)
def test_an_error_that_is_none_of_ours_is_logged_without_the_key(what: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log has all that led to it; not every error's text is made of its arguments."""
    logged: list[str] = []
    monkeypatch.setattr(drivers.log, "error", lambda *_, extra: logged.append(extra["trace"]))
    with pytest.raises(Unknown) as told:
        create(Telltale(what))
    assert KEY not in "".join(traceback.format_exception(told.value)) + logged[0]
    assert "bad login: (its key)" in logged[0]
    assert f"{type(what('x')).__name__}: " in logged[0], "what it died of is still told"
    assert told.value.code == type(what("x")).__name__


def test_a_shortage_has_no_key() -> None:
    with pytest.raises(NoCapacity) as told:
        create(Telltale(lambda text: NoCapacity("none", [Shortage("all", text)])))
    assert told.value.shortages == (Shortage("all", "bad login: (its key)"),)


def test_a_reason_has_no_key_and_metadata_is_left_as_it_is() -> None:
    assert create(Telltale(lambda text: NotYet(3, text))) == NotYet(3, "bad login: (its key)")
    assert create(Telltale(lambda text: NotYet(3))) == NotYet(3)
    assert create(Telltale(lambda text: Ready({"a": text}))) == Ready({"a": f"bad login: {KEY}"})


def test_without_a_key_nothing_is_taken_out() -> None:
    assert create(Telltale(lambda text: NotYet(3, "ab")), key="") == NotYet(3, "ab")


def test_why_a_job_cannot_be_has_no_key(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twin.drivers, "well", lambda *told: Telltale(Unsatisfiable))
    monkeypatch.setattr(twin.drivers, "makes_nothing", lambda driver: False)
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    assert "bad login: (its key)" in str(job_of(twin, job).end.reason)
    assert not [event for event in logs.read(twin.on, job, 0, 1000) if KEY in event.line.payload]
