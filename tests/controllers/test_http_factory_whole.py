"""Whole jobs over the `http` factory whose controller goes wrong: no machine is left, and others do not notice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.domain.jobs.jobs import Outcome
from penstock.domain.pools.pools import SlotState
from penstock.domain.units.units import UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel
from penstock.usecases.site import apply
from penstock.usecases.units import console, maintenance
from penstock.usecases.units.drivers import bootstrap_key
from tests.controllers.lab import FaultyLab, factory
from tests.usecases.steps import finish, hello, job_of, slots, submit, told, worker_of
from tests.usecases.strays import regular
from tests.wells.faulty import ANYBODY, Asked

SITE = site_toml(
    factories={"lab": "hand"},
    targets={"default": {"factory": "lab", "limit": 1}},
)
POOL = "target/default"
ADA = User(name="ada", created=START, version=1)
ROOT = User(name="root", privileges=("admin",), created=START)


def site(lab: FaultyLab, **settings: str) -> Twin:
    """A system with this factory, which asks the controller over the loopback."""
    made = Twin()
    made.drivers.hand = factory(lab.url, **settings)  # type: ignore[assignment]
    apply.apply(made.on, "root", SITE, "site.toml")
    made.run()
    return made


def begun(twin: Twin) -> str:
    job = submit(twin, ADA)
    twin.run()
    return job


def after(twin: Twin, seconds: int, times: int = 1) -> None:
    for _ in range(times):
        twin.pass_time(seconds)
        twin.run()


def lost(asked: Asked) -> bool:
    asked.act()
    return True


def test_a_job_runs_on_what_the_controller_made_and_leaves_nothing(lab: FaultyLab) -> None:
    twin = site(lab)
    job = begun(twin)
    assert lab.machines == [worker_of(twin, job).id]
    assert worker_of(twin, job).creation.metadata == {"folder": str(lab.folder / "machines" / lab.machines[0])}
    hello(twin, job)
    finish(twin, job)
    after(twin, 61)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert not lab.machines
    assert slots(twin, POOL, SlotState.FREE) == ["1"]
    assert "not listed" in str(worker_of(twin, job).cleaning.proof)


@pytest.mark.parametrize("times", [1, 2])
def test_what_was_made_before_the_answer_was_lost_does_not_leak(lab: FaultyLab, times: int) -> None:
    """JOB-2, UNIT-1"""
    twin = site(lab)
    lab.on("PUT", lost, times=times)
    job = begun(twin)
    assert len(lab.machines) == 1
    after(twin, 20)
    assert len(lab.machines) == 1
    cancel.cancel(twin.on, ADA, job)
    after(twin, 61, times=2)
    assert not lab.machines
    assert slots(twin, POOL, SlotState.FREE) == ["1"]


@pytest.mark.parametrize("odd", ANYBODY)
def test_whatever_the_controller_does_its_own_job_waits_and_goes_on_when_it_is_good_again(
    lab: FaultyLab, odd: str
) -> None:
    """Its step is repeated until it is done, and the job says why it waits."""
    twin = site(lab, timeout="1s")
    lab.on("PUT", ANYBODY[odd][0])
    job = begun(twin)
    lab.let_go.set()
    assert not lab.machines
    assert any("lab cannot give default yet" in line for line in told(twin, job)), told(twin, job)
    lab.faults.clear()
    after(twin, 601, times=3)
    assert len(lab.machines) == 1
    hello(twin, job)
    finish(twin, job)
    after(twin, 61)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert not lab.machines


FAILS: dict[str, Callable[[Asked], bool]] = {
    "is down": lambda asked: asked.raw(500, b"<html>"),
    "is a gateway that has nobody": lambda asked: asked.raw(404, b"<html>"),
    "ends": lambda asked: True,
    "answers in garbage": lambda asked: asked.say(200, b"\xff"),
    "refuses": lambda asked: asked.say(403, {"code": "misconfigured"}),
}


@pytest.mark.parametrize("fails", FAILS)
@pytest.mark.parametrize("method", ["DELETE", "GET", "LIST"])
def test_a_slot_stays_taken_until_it_is_proved_that_the_machine_is_gone(
    lab: FaultyLab, method: str, fails: str
) -> None:
    """UNIT-2"""
    twin = site(lab)
    job = begun(twin)
    hello(twin, job)
    lab.on(method, FAILS[fails])
    finish(twin, job)
    after(twin, 601, times=3)
    assert worker_of(twin, job).state is UnitState.DIRTY
    assert not slots(twin, POOL, SlotState.FREE)
    lab.faults.clear()
    after(twin, 601)
    assert not lab.machines
    assert slots(twin, POOL, SlotState.FREE) == ["1"]


def test_a_worker_is_quarantined_if_the_controller_wrongly_says_that_it_is_gone(lab: FaultyLab) -> None:
    """UNIT-1, UNIT-2: its operator sees why; when that is put right, the slot is free again."""
    twin = site(lab)
    job = begun(twin)
    lab.on("DELETE", lambda asked: asked.say(200, {"proof": {"checked": "trust me"}}))
    cancel.cancel(twin.on, ADA, job)
    twin.run()
    after(twin, 61, times=3)
    unit = worker_of(twin, job)
    assert unit.state is UnitState.QUARANTINED
    assert "its status is ready" in str(unit.step.reason)
    assert not slots(twin, POOL, SlotState.FREE)
    lab.faults.clear()
    maintenance.release(twin.on, ROOT, UnitKind.WORKER, unit.id)
    after(twin, 61)
    assert not lab.machines
    assert slots(twin, POOL, SlotState.FREE) == ["1"]


def test_a_stray_of_the_controller_is_found_and_destroyed(lab: FaultyLab) -> None:
    """UNIT-1: a machine that no row knows, of this factory; that of another is left alone."""
    twin = site(lab)
    ours, theirs = "w-01KEV0000000000000000STRAY", "w-01KEV00000000000000THEIRS0"
    for unit, owner in ((ours, "Penstock.eu-west-1/lab"), (theirs, "Penstock.eu-west-1/another")):
        lab.service.create(unit, {"owner": owner, "agent": {}})
    assert regular(twin, 30)
    assert lab.machines == [theirs]


def test_an_operator_reads_the_console_of_a_machine(lab: FaultyLab) -> None:
    """SEC-1: and the worker's key is not in it."""
    twin = site(lab)
    job = begun(twin)
    unit = worker_of(twin, job).id
    key = bootstrap_key(twin.on.signing_key(), unit)
    (lab.folder / "machines" / unit / "console").write_text(f"no route to penstock, {key}")
    console.read(twin.on, unit, "root")
    entry = str(worker_of(twin, job).journal.entries[-1])
    assert "no route to penstock" in entry
    assert key not in entry
