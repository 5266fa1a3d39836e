"""What a driver says when it fails does not tell the secret that it was given. [SEC-1]"""

from __future__ import annotations

import traceback
from datetime import datetime
from subprocess import CalledProcessError
from typing import Any

import pytest

from penstock.domain.units.units import CleanProof
from penstock.domain.users.users import User
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, Shortage, Unknown, Unsatisfiable
from penstock.ports import NotYet, Order, Ready
from penstock.testing.twin import Twin
from penstock.usecases.logs import logs
from penstock.usecases.units import advance
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


@pytest.mark.parametrize("kind", [DriverError, Misconfigured, Unknown, Unsatisfiable])
def test_an_error_has_no_key(kind: Any) -> None:
    for what in (kind, lambda text: kind(ValueError(text))):  # of a driver that passes on what it was told itself
        with pytest.raises(kind) as told:
            advance.create_hiding_key(Telltale(what), Order("u", "t", "s", key=KEY))
        assert str(told.value) == "bad login: (its key)"


def _from_another(text: str) -> Exception:
    error = KeyError("login")
    error.__cause__ = ValueError(text)
    return error


@pytest.mark.parametrize(
    "what", [ValueError, lambda text: OSError(5, text), lambda text: CalledProcessError(1, [text]), _from_another]
)
def test_a_function_that_dies_of_its_driver_logs_no_key(what: Any) -> None:
    """The runtime logs the error with all that led to it; not every error's text is made of its arguments."""
    with pytest.raises(RuntimeError) as told:
        advance.create_hiding_key(Telltale(what), Order("u", "t", "s", key=KEY))
    logged = "".join(traceback.format_exception(told.value))
    assert KEY not in logged
    assert "bad login: (its key)" in logged
    assert f"{type(what('x')).__name__}: " in logged, "what it died of is still told"


def test_what_tells_no_key_is_raised_as_it_is() -> None:
    with pytest.raises(OSError, match="no such host"):
        advance.create_hiding_key(Telltale(lambda text: OSError(5, "no such host")), Order("u", "t", "s", key=KEY))


def test_a_shortage_has_no_key() -> None:
    with pytest.raises(NoCapacity) as told:
        advance.create_hiding_key(
            Telltale(lambda text: NoCapacity("none", [Shortage("all", text)])), Order("u", "t", "s", key=KEY)
        )
    assert told.value.shortages == (Shortage("all", "bad login: (its key)"),)


def test_a_reason_has_no_key_and_metadata_is_left_as_it_is() -> None:
    order = Order("u", "t", "s", key=KEY)
    assert advance.create_hiding_key(Telltale(lambda text: NotYet(3, text)), order) == NotYet(3, "bad login: (its key)")
    assert advance.create_hiding_key(Telltale(lambda text: NotYet(3)), order) == NotYet(3)
    assert advance.create_hiding_key(Telltale(lambda text: Ready({"a": text})), order) == Ready(
        {"a": f"bad login: {KEY}"}
    )


def test_without_a_key_nothing_is_taken_out() -> None:
    assert advance.create_hiding_key(Telltale(lambda text: NotYet(3, "ab")), Order("u", "t", "s")) == NotYet(3, "ab")


def test_why_a_job_cannot_be_has_no_key(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twin.drivers, "well", lambda *told: Telltale(Unsatisfiable))
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    assert "bad login: (its key)" in str(job_of(twin, job).end.reason)
    assert not [event for event in logs.read(twin.on, job, 0, 1000) if KEY in event.line.payload]
