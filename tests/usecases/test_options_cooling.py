"""What the options of one job meet stops nobody who asks for the same type with others."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.cooldowns import type_scope
from penstock.domain.units.units import Unit, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached
from penstock.ports import NotYet, Order, Ready
from penstock.testing.site import site_toml
from penstock.testing.twin import ScriptedDriver, Twin
from penstock.usecases import cooldowns
from penstock.usecases.jobs import cancel, jobs
from penstock.usecases.site import apply
from tests.usecases.steps import job_of, live, submit

SITE = site_toml(
    targets={"default": {"limit": 9}},
    wells={"spring": "hand"},
    resources={"db": {"well": "spring", "limit": 9}, "bench": {"well": "spring", "limit": 9}},
)
WELL = "well/spring"
BAD, GOOD = {"size": "huge"}, {"size": "small"}


class Picky(ScriptedDriver):
    """A well that answers some options with an error."""

    def __init__(self, error: DriverError, bad: Any = BAD) -> None:
        super().__init__()
        self.error, self.bad, self.asked = error, bad, list[str]()

    def create(self, order: Order) -> Ready | NotYet:
        self.asked.append(order.job)
        if order.options == self.bad and order.type == "db":
            raise self.error
        return super().create(order)


@pytest.fixture
def site(twin: Twin) -> Twin:
    apply.apply(twin.on, "root", SITE, "site.toml")
    twin.run()
    return twin


def ask(twin: Twin, ada: User, options: Any, type: str = "db") -> str:
    job = submit(twin, ada, resources={"x": {"type": type, "options": options} if options else {"type": type}})
    twin.run()
    return job


def resource_of(twin: Twin, job: str) -> Unit:
    (unit,) = [unit for unit in live(twin, job) if unit.lease.order]
    return unit


@pytest.mark.parametrize("error", [Misconfigured("nonsense"), NoCapacity("none"), QuotaReached("none")])
def test_options_that_fail_stop_no_other_job_of_their_type(site: Twin, ada: User, error: DriverError) -> None:
    site.drivers.basin = Picky(error)
    bad = ask(site, ada, BAD)
    assert [row.scope for row in cooldowns.cooldowns_of(site.on, WELL)] == [type_scope("db", BAD)]
    for options in (GOOD, None):
        job = ask(site, ada, options)
        assert resource_of(site, job).state is UnitState.READY
        assert str(error) not in jobs.explain(site.on, job_of(site, job)).summary
    assert str(error) in jobs.explain(site.on, job_of(site, bad)).summary


def test_the_same_options_are_not_asked_for_again_at_once(site: Twin, ada: User) -> None:
    """As if the whole type were short: one unit tries, and the others wait for its answer."""
    site.drivers.basin = picky = Picky(Misconfigured("nonsense"))
    first, second = ask(site, ada, BAD), ask(site, ada, BAD)
    assert picky.asked == [first]
    assert "nonsense" in jobs.explain(site.on, job_of(site, second)).summary
    picky.bad = None
    for _ in range(10):
        site.pass_time(60)
        site.run()
    assert {resource_of(site, job).state for job in (first, second)} == {UnitState.READY}
    assert cooldowns.cooldowns_of(site.on, WELL) == []


def test_a_job_without_options_stops_its_whole_type(site: Twin, ada: User) -> None:
    """It is the site's settings that are wrong, and no other call would be answered otherwise."""
    site.drivers.basin = picky = Picky(Misconfigured("no credentials"), {})
    ask(site, ada, None)
    waiting, other = ask(site, ada, GOOD), ask(site, ada, None, "bench")
    assert waiting not in picky.asked
    assert resource_of(site, waiting).state is UnitState.CREATING
    assert "no credentials" in jobs.explain(site.on, job_of(site, waiting)).summary
    assert resource_of(site, other).state is UnitState.READY


def test_what_a_cancelled_job_met_is_told_to_nobody(site: Twin, ada: User) -> None:
    site.drivers.basin = Picky(Misconfigured("nonsense"))
    cancel.cancel(site.on, ada, ask(site, ada, BAD))
    site.run()
    job = ask(site, ada, GOOD)
    assert resource_of(site, job).state is UnitState.READY
    assert "nonsense" not in jobs.explain(site.on, job_of(site, job)).summary


def test_a_unit_whose_job_is_no_more_has_no_options(site: Twin, ada: User) -> None:
    site.drivers.basin = Picky(Misconfigured("nonsense"))
    unit = resource_of(site, ask(site, ada, BAD))
    assert cooldowns.blocking(site.on, unit)
    del site.store.rows[job_of(site, unit.lease.job).key]
    assert cooldowns.blocking(site.on, unit) == []
