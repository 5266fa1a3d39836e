"""A worker that was made and never said hello leaves what its driver knows in the job's log. [JOB-1] [SEC-1]"""

from __future__ import annotations

import pytest

from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.logs import logs
from penstock.usecases.site import apply
from penstock.usecases.units import drivers
from tests.usecases.steps import submit, sweep, worker_of
from tests.usecases.talkative import Talkative


def log_of(twin: Twin, job: str) -> list[str]:
    return [event.line.payload for event in logs.read(twin.on, job, 0, 1000)]


def oversleep(twin: Twin, ada: User, hand: Talkative) -> str:
    """A job whose worker does not say hello before its deadline; and the flow is not told, so it stays overdue."""
    twin.drivers.hand = hand
    job = submit(twin, ada)
    twin.run()
    if hand.tells == "config: KEY!":
        hand.tells = f"config: {drivers.bootstrap_key(twin.on.signing_key(), worker_of(twin, job).id)}!"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.flows, "fail", lambda *given: None)
        for _ in range(3):
            sweep(twin, 700)
    return job


@pytest.mark.usefixtures("by_flow")
def test_what_it_printed_is_in_the_log_once_and_line_by_line(twin: Twin, ada: User) -> None:
    hand = Talkative("i-1 is terminated; end of its console:\nkernel panic\n")
    log = log_of(twin, oversleep(twin, ada, hand))
    assert log.count("kernel panic") == 1
    assert log.count("i-1 is terminated; end of its console:") == 1
    assert hand.asked == 1


def test_its_key_is_not(twin: Twin, ada: User) -> None:
    job = oversleep(twin, ada, Talkative("config: KEY!"))
    assert "config: (its key)!" in log_of(twin, job)


@pytest.mark.usefixtures("by_flow")
def test_a_driver_that_cannot_tell_stops_nothing(twin: Twin, ada: User) -> None:
    job = oversleep(twin, ada, Talkative(Misconfigured("no leave to read consoles")))
    assert any("cannot tell" in line and "no leave to read consoles" in line for line in log_of(twin, job))
    first = worker_of(twin, job).id
    sweep(twin, 700)
    assert worker_of(twin, job).id != first, "the next attempt follows all the same"


def test_a_driver_that_is_no_witness_is_not_asked(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    sweep(twin, 700)
    assert not any("cannot tell" in line for line in log_of(twin, job))


def test_a_factory_that_is_gone_cannot_tell(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    other = site_toml(factories={"other": "hand"}, targets={"default": {"factory": "other"}})
    apply.apply(twin.on, "root", other, "site.toml")
    sweep(twin, 700)
    assert any("cannot tell" in line and "no factory" in line for line in log_of(twin, job))
