"""Whole jobs over the `http` well whose service goes wrong: nothing leaks, nothing is leased dirty, and it is told."""

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
from penstock.usecases.units import maintenance
from tests.usecases.steps import finish, hello, job_of, slots, submit, told
from tests.wells.books import resource_of
from tests.wells.rack import Asked, Rack
from tests.wells.service import well

SITE = site_toml(
    targets={"default": {}},
    wells={"rack": "hand"},
    resources={"project": {"well": "rack", "limit": 1}},
)
WARM = SITE + "warm = { max = 1 }\n"
POOL = "resource/project"
ADA = User(name="ada", created=START, version=1)


def site(rack: Rack, text: str = SITE, **settings: str) -> Twin:
    """A system with this well, which asks the real service over the loopback."""
    made = Twin()
    made.drivers.basin = well(rack.url, **settings)  # type: ignore[assignment]
    apply.apply(made.on, "root", text, "site.toml")
    made.run()
    return made


def leased(twin: Twin) -> str:
    job = submit(twin, ADA, resources=["project"])
    twin.run()
    return job


def after(twin: Twin, seconds: int, times: int = 1) -> None:
    for _ in range(times):
        twin.pass_time(seconds)
        twin.run()


def down(asked: Asked) -> bool:
    return asked.raw(500, b"<html>")


def lost(asked: Asked) -> bool:
    asked.act()
    return True


def test_a_job_has_what_the_service_made_and_leaves_nothing(rack: Rack) -> None:
    twin = site(rack)
    job = leased(twin)
    assert [unit["state"] for unit in rack.units.values()] == ["ready"]
    hello(twin, job)
    finish(twin, job)
    assert not rack.units
    assert slots(twin, POOL, SlotState.FREE) == ["1"]
    proof = resource_of(twin).cleaning.proof
    assert proof
    assert "not listed" in proof.checked


def test_who_waits_for_a_service_that_is_down_is_told_and_goes_on_when_it_is_back(rack: Rack) -> None:
    twin = site(rack)
    rack.on("PUT", down, times=3)
    job = leased(twin)
    assert not rack.units
    assert "answered 500" in str(resource_of(twin).step.reason)
    assert any("rack cannot give project yet: Unknown: 127.0.0.1 answered 500" in line for line in told(twin, job))
    after(twin, 61, times=3)
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert not rack.units


@pytest.mark.parametrize("times", [1, 2])
def test_what_was_made_before_the_answer_was_lost_does_not_leak(rack: Rack, times: int) -> None:
    """UNIT-1: neither when it is asked for again, nor when nobody wants it any more."""
    twin = site(rack)
    rack.on("PUT", lost, times=times)
    job = leased(twin)
    assert len(rack.units) == 1
    if times == 1:
        after(twin, 20)
        assert len(rack.units) == 1
    cancel.cancel(twin.on, ADA, job)
    twin.run()
    assert not rack.units
    assert slots(twin, POOL, SlotState.FREE) == ["1"]


def acts_and_hangs(asked: Asked) -> bool:
    asked.act()
    return asked.rack.let_go.wait(60)


def test_a_service_that_hangs_holds_up_nothing_but_its_own_step(rack: Rack) -> None:
    """Each call is given up after its time, and made again; what was asked for was done meanwhile."""
    twin = site(rack, timeout="1s")
    for method in ("PUT", "DELETE"):
        rack.on(method, acts_and_hangs, times=1)
    job = leased(twin)
    assert "no answer" in str(resource_of(twin).step.reason)
    after(twin, 61, times=3)
    assert len(rack.units) == 1
    hello(twin, job)
    finish(twin, job)
    assert slots(twin, POOL, SlotState.HELD) == ["1"]
    after(twin, 61, times=3)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert not rack.units
    assert slots(twin, POOL, SlotState.FREE) == ["1"]


FAILS: dict[str, Callable[[Asked], bool]] = {
    "is down": down,
    "is a gateway that has nobody": lambda asked: asked.raw(404, b"<html>"),
    "ends": lambda asked: True,
    "answers in garbage": lambda asked: asked.say(200, b"\xff"),
    "refuses": lambda asked: asked.say(403, {"code": "misconfigured"}),
}


@pytest.mark.parametrize("fails", FAILS)
@pytest.mark.parametrize("method", ["DELETE", "GET", "LIST"])
def test_a_slot_stays_taken_until_it_is_proved_that_nothing_is_left(rack: Rack, method: str, fails: str) -> None:
    """UNIT-2: and the next in line gets none of it before."""
    twin = site(rack)
    job = leased(twin)
    rack.on(method, FAILS[fails])
    cancel.cancel(twin.on, ADA, job)
    twin.run()
    waits = leased(twin)
    after(twin, 601, times=3)
    unit = resource_of(twin)
    assert unit.state is UnitState.DIRTY
    assert "cleaning failed" in str(unit.step.reason)
    assert slots(twin, POOL, SlotState.HELD) == ["1"]
    assert not any("got slot" in line and POOL in line for line in told(twin, waits))
    rack.faults.clear()
    after(twin, 601)
    assert any("got slot" in line and POOL in line for line in told(twin, waits))


def test_a_resource_is_quarantined_if_the_service_wrongly_reports_its_destruction(rack: Rack) -> None:
    """UNIT-1: and its operator sees why; when that is put right, the slot is free again."""
    twin = site(rack)
    job = leased(twin)
    rack.on("DELETE", lambda asked: asked.say(200, {"proof": {"checked": "trust me"}}))
    cancel.cancel(twin.on, ADA, job)
    twin.run()
    after(twin, 61, times=2)
    unit = resource_of(twin)
    assert unit.state is UnitState.QUARANTINED
    assert "answered that" in str(unit.step.reason)
    assert "its status is ready" in str(unit.step.reason)
    assert not slots(twin, POOL, SlotState.FREE)
    rack.faults.clear()
    maintenance.release(twin.on, User(name="root", privileges=("admin",), created=START), UnitKind.RESOURCE, unit.id)
    twin.run()
    assert not rack.units
    assert slots(twin, POOL, SlotState.FREE) == ["1"]


def test_a_kept_resource_is_cleaned_and_has_another_token_for_the_next_lease(rack: Rack) -> None:
    """UNIT-2, SEC-1"""
    twin = site(rack, WARM)
    tokens = []
    for _ in range(2):
        job = leased(twin)
        tokens.append(next(iter(rack.units.values()))["metadata"]["token"])
        hello(twin, job)
        finish(twin, job)
        assert [unit["state"] for unit in rack.units.values()] == ["clean"]
        assert slots(twin, POOL, SlotState.FREE) == ["1"]
    assert len(set(tokens)) == 2
    assert len({unit for _, path in rack.asked for unit in path.split("/") if unit.startswith("r-")}) <= 1


def test_what_a_service_lies_about_is_leased_to_nobody(rack: Rack) -> None:
    """UNIT-2: it is destroyed instead, and the next gets another."""
    twin = site(rack, WARM)
    job = leased(twin)
    hello(twin, job)
    first = resource_of(twin).id
    rack.on("POST", lambda asked: asked.say(200, _clean(rack, first)))
    finish(twin, job)
    after(twin, 61, times=3)
    unit = resource_of(twin)
    assert (unit.id, unit.state) == (first, UnitState.GONE)
    assert any("could not be cleaned" in entry.what for entry in unit.journal.entries)
    assert not rack.units
    leased(twin)
    assert resource_of(twin).id != first


def _clean(rack: Rack, unit: str) -> dict[str, object]:
    """What it says of one that it did nothing to."""
    said = rack.service.status(unit)
    return {**said, "state": "clean", "proof": {"checked": "all of it", "digest": "abc"}}
