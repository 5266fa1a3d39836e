"""What a well says of a resource may end by itself: it is said anew while the lease lasts, and not after. [SEC-1]"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest

from penstock.domain.cooldowns import Cause, Obstacle
from penstock.domain.replies import ResourceAccess, ResourceList
from penstock.domain.units.retries import BACK_OFF
from penstock.domain.units.units import CLEAN_WITHIN, STEP_WITHIN, CleanProof, Unit, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import (
    DriverError,
    Misconfigured,
    NoCapacity,
    QuotaReached,
    RateLimited,
    Refused,
    Unknown,
    Unsatisfiable,
)
from penstock.kernel.rows import Replace
from penstock.ports import NotYet, Order, Ready
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases import cooldowns
from penstock.usecases.units import advance, drivers, maintenance
from penstock.usecases.workers import agents
from tests.usecases.exact import put, sent, site, unit_of
from tests.usecases.races import Died
from tests.usecases.steps import TOKEN, finish, hello, job_of, submit, sweep, told

SITE = site_toml(
    targets={"default": {"limit": 1}},
    wells={"spring": "hand"},
    resources={"key": {"well": "spring", "limit": 1}},
)
HOUR = timedelta(hours=1)


class Spring:
    """A well whose answers are worth something for an hour; or that says what it is told to."""

    def __init__(self, twin: Twin) -> None:
        self.orders: list[Order] = []
        self.avoided: list[Collection[str]] = []
        self.says: list[DriverError | NotYet] = []
        self.before: Callable[[], None] = lambda: None
        self._twin = twin
        twin.drivers.well = lambda *given: self  # type: ignore[method-assign]

    def create(self, order: Order) -> Ready | NotYet:
        self.before()
        self.orders.append(order)
        self.avoided.append(order.avoid)
        said = self.says.pop(0) if self.says else None
        if isinstance(said, Exception):
            raise said
        return said or Ready({"key": f"k{len(self.orders)}"}, expires=self._twin.world.now() + HOUR)

    def destroy(self, unit: str, now: datetime) -> CleanProof:
        return CleanProof(by="spring", time=now, checked=unit)

    def list(self) -> Iterable[str]:
        return ()


@pytest.fixture
def twin() -> Twin:
    return site(SITE)


@pytest.fixture
def spring(twin: Twin) -> Spring:
    return Spring(twin)


@pytest.fixture
def spring_for_two() -> tuple[Twin, Spring]:
    twin = site(SITE.replace("limit = 1", "limit = 2"))
    return twin, Spring(twin)


def running(twin: Twin, ada: User) -> str:
    job = submit(twin, ada, resources=["key"])
    twin.run()
    hello(twin, job)
    return job


def key_of(twin: Twin, job: str) -> Unit:
    return unit_of(twin, job, 1)


def asked(twin: Twin, job: str) -> ResourceAccess:
    """What the agent is told when it asks."""
    return agents.resources(twin.on, agents.authenticate(twin.on, job, TOKEN)).resources["key"]


def beating(twin: Twin, job: str, seconds: int) -> None:
    """Time passes, a minute at a time, with a live agent and a sweep."""
    for _ in range(0, seconds, 60):
        agents.heartbeat(twin.on, agents.authenticate(twin.on, job, TOKEN))
        sweep(twin, 60)


def test_at_half_its_time_it_is_said_anew_for_the_same_lease(twin: Twin, spring: Spring, ada: User) -> None:
    job = running(twin, ada)
    before = key_of(twin, job)
    assert asked(twin, job).metadata == {"key": "k1"}
    assert 1795 <= asked(twin, job).fresh_seconds <= 1800
    beating(twin, job, 28 * 60)
    assert asked(twin, job).metadata == {"key": "k1"}
    beating(twin, job, 3 * 60)
    after = key_of(twin, job)
    assert asked(twin, job).metadata == {"key": "k2"}
    assert (after.id, after.lease.fence, after.state) == (before.id, before.lease.fence, UnitState.READY)
    first, second = spring.orders
    assert (first.id, first.key, first.job) == (second.id, second.key, second.job)
    beating(twin, job, 180 * 60)
    assert len(spring.orders) == 8, "every half hour, not oftener"
    finish(twin, job)
    assert not [line for line in told(twin, job) if "k1" in line or "k2" in line]


def test_the_answer_to_hello_is_the_freshest(twin: Twin, spring: Spring, ada: User) -> None:
    """A job may have waited for its worker for longer than what its well said is worth something."""
    other = submit(twin, ada)
    twin.run()
    hello(twin, other)
    job = submit(twin, ada, resources=["key"])
    twin.run()
    beating(twin, other, 90 * 60)
    finish(twin, other)
    hello(twin, job)
    assert asked(twin, job).metadata == {"key": f"k{len(spring.orders)}"}
    assert len(spring.orders) > 2


def test_what_never_ends_is_asked_for_once(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    assert asked(twin, job).fresh_seconds is None
    before = key_of(twin, job)
    assert before.due is None
    twin.take("well", {"unit": before.id})
    assert key_of(twin, job) == before, "also when its message comes again"


def test_the_well_is_told_whose_lease_it_is_and_how_long_it_may_last(twin: Twin, spring: Spring, ada: User) -> None:
    job = submit(twin, ada, resources=["key"], timeout="90m")
    twin.run()
    hello(twin, job)
    beating(twin, job, 31 * 60)
    first, second = spring.orders
    assert first.job == second.job == job
    row = job_of(twin, job)
    assert first.lasts == 7 * 86400 + 90 * 60 + row.limits.grace + 120 - 1, "a millisecond has passed"
    assert second.lasts is not None
    assert 58 * 60 <= second.lasts <= 63 * 60


@pytest.mark.parametrize(
    "error", [Unknown("down"), Misconfigured("no"), Unsatisfiable("never"), RateLimited("slow", 20)]
)
def test_a_failed_renewal_is_repeated_and_the_job_continues(
    twin: Twin, spring: Spring, ada: User, error: DriverError
) -> None:
    job = running(twin, ada)
    spring.says = [error]
    beating(twin, job, 30 * 60)
    assert asked(twin, job).metadata == {"key": "k1"}
    assert asked(twin, job).fresh_seconds == 0
    assert any(f"spring cannot renew key yet: {type(error).__name__}" in line for line in told(twin, job))
    beating(twin, job, 12 * 60)
    assert asked(twin, job).metadata == {"key": "k3"}
    assert (key_of(twin, job).step.reason, key_of(twin, job).step.tries) == (None, 0)
    finish(twin, job)


def test_a_renewal_respects_throttling(twin: Twin, spring: Spring, ada: User) -> None:
    job = running(twin, ada)
    spring.says = [RateLimited("slow down", 600, "AssumeRole")]
    beating(twin, job, 31 * 60)
    count = len(spring.orders)
    beating(twin, job, 5 * 60)
    assert len(spring.orders) == count, "nobody calls it meanwhile"
    assert any("spring cannot renew key yet: RateLimited: slow down" in line for line in told(twin, job))
    beating(twin, job, 8 * 60)
    assert len(spring.orders) == count + 1


REFUSALS = [QuotaReached("full"), NoCapacity("none left"), Misconfigured("no such role")]
"""What a well says of a create, and what stops further creates of the type."""


def refuse_others(spring: Spring, unit: str, error: DriverError) -> None:
    """The well refuses to make anything but one unit."""
    create = spring.create

    def choosy(order: Order) -> Ready | NotYet:
        if order.id != unit:
            raise error
        return create(order)

    spring.create = choosy  # type: ignore[method-assign]


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: type(error).__name__)
def test_what_is_short_for_others_keeps_no_running_job_from_its_renewals(
    spring_for_two: tuple[Twin, Spring], ada: User, error: DriverError
) -> None:
    """A renewal makes nothing. Otherwise the job's credentials end while a job that came later waits for its own."""
    twin, spring = spring_for_two
    job = running(twin, ada)
    refuse_others(spring, key_of(twin, job).id, error)
    submit(twin, ada, resources=["key"])
    twin.run()
    for _ in range(6):
        beating(twin, job, 30 * 60)
        assert asked(twin, job).fresh_seconds, "it has time left"
    assert len(spring.orders) >= 6, "every half hour"
    (row,) = cooldowns.cooldowns_of(twin.on, "well/spring")
    assert row.scope == "type/key"
    assert row.count > 2, "it says nothing of what is short: that was refused again and again"


def test_a_renewal_probes_no_shortage(twin: Twin, spring: Spring, ada: User) -> None:
    """Who waits for what was short probes it when the time is over, whoever is renewed meanwhile."""
    job = running(twin, ada)
    cooldowns.start_for(twin.on, "well/spring", Obstacle("type/key", Cause.QUOTA, "full"), "r-other")
    cooldowns.start_for(twin.on, "well/spring", Obstacle("pond", Cause.CAPACITY, "dry"), "r-other")
    before = cooldowns.cooldowns_of(twin.on, "well/spring")
    beating(twin, job, 31 * 60)
    assert asked(twin, job).metadata == {"key": "k2"}
    assert spring.avoided[-1] == ()
    assert cooldowns.cooldowns_of(twin.on, "well/spring") == before


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: type(error).__name__)
def test_what_refuses_a_renewal_stops_nobody_else(
    spring_for_two: tuple[Twin, Spring], ada: User, error: DriverError
) -> None:
    """It is counted, and tried again after a pause of the unit's own."""
    twin, spring = spring_for_two
    job = running(twin, ada)
    spring.says = [error]
    put(twin, key_of(twin, job), renews=twin.world.now(), due=twin.world.now())
    advance.advance(twin.on, key_of(twin, job).id)
    assert key_of(twin, job).due == twin.world.now() + BACK_OFF
    assert [row.code for row in cooldowns.failures(twin.on, "well/spring")] == [type(error).__name__]
    other = running(twin, ada)
    assert asked(twin, other).metadata == {"key": "k3"}


@pytest.mark.parametrize(("error", "is_over"), [(Misconfigured("no"), True), (Unknown("down"), False)])
def test_a_refused_renewal_shows_that_a_well_may_be_called_if_the_provider_said_so(
    twin: Twin, spring: Spring, ada: User, error: DriverError, is_over: bool
) -> None:
    """It was let through when the time to slow down was over; else the next one is let through at once."""
    job = running(twin, ada)
    cooldowns.start_for(twin.on, "well/spring", Obstacle("calls", Cause.RATE, "slow down"), "r-other")
    twin.pass_time(31)
    spring.says = [error]
    put(twin, key_of(twin, job), renews=twin.world.now(), due=twin.world.now())
    advance.advance(twin.on, key_of(twin, job).id)
    assert [row.probe for row in cooldowns.cooldowns_of(twin.on, "well/spring")] == ([] if is_over else [None])


def test_nobody_renews_while_another_was_told_to_wait(spring_for_two: tuple[Twin, Spring], ada: User) -> None:
    """What is remembered of a well is remembered for all that are leased from it."""
    twin, spring = spring_for_two
    first, second = running(twin, ada), running(twin, ada)
    spring.says = [RateLimited("slow down", 600, "AssumeRole")]
    for job in (first, second):
        put(twin, key_of(twin, job), renews=twin.world.now(), due=twin.world.now())
        advance.advance(twin.on, key_of(twin, job).id)
    assert len(spring.orders) == 3, "two were made, and the first was to be renewed"
    assert "the provider asks to slow down (calls/AssumeRole)" in str(key_of(twin, second).step.reason)
    due = key_of(twin, second).due
    assert due
    assert due > twin.world.now() + timedelta(seconds=590)


def test_a_handler_that_died_while_it_renewed_is_followed_at_once(twin: Twin, spring: Spring, ada: User) -> None:
    """A resource that is made anew for each lease: a second call tells its job what the first would have."""
    job = running(twin, ada)
    put(twin, key_of(twin, job), renews=twin.world.now(), due=twin.world.now())

    def die() -> None:
        spring.before = lambda: None
        raise Died

    spring.before = die
    with pytest.raises(Died):
        advance.advance(twin.on, key_of(twin, job).id)
    advance.advance(twin.on, key_of(twin, job).id)
    assert asked(twin, job).metadata == {"key": "k2"}


def test_a_well_that_is_not_done_names_its_pause(twin: Twin, spring: Spring, ada: User) -> None:
    job = running(twin, ada)
    spring.says = [NotYet(100, "a moment")]
    beating(twin, job, 30 * 60)
    count = len(spring.orders)
    twin.pass_time(90)
    advance.advance(twin.on, key_of(twin, job).id)
    assert len(spring.orders) == count, "no sooner, whoever asks"
    twin.pass_time(10)
    advance.advance(twin.on, key_of(twin, job).id)
    assert len(spring.orders) == count + 1


def test_what_comes_after_the_end_of_the_lease_is_sealed_for_nobody(twin: Twin, spring: Spring, ada: User) -> None:
    """SLOT-3: while the well was asked anew, the lease ended."""
    job = running(twin, ada)
    unit = key_of(twin, job)
    put(twin, unit, renews=twin.world.now(), due=twin.world.now())
    spring.before = lambda: finish(twin, job)
    advance.advance(twin.on, unit.id)
    found = twin.store.get(unit.key, Unit)
    assert found is not None
    assert found.state is UnitState.GONE
    assert found.access.sealed == ""


def test_an_agent_gets_metadata_only_of_its_own_job_and_not_after_it(twin: Twin, spring: Spring, ada: User) -> None:
    """SEC-1, SEC-2"""
    job = running(twin, ada)
    caller = agents.authenticate(twin.on, job, TOKEN)
    put(twin, key_of(twin, job), fence=99)
    assert agents.resources(twin.on, caller) == ResourceList({})
    finish(twin, job)
    with pytest.raises(Refused):
        agents.authenticate(twin.on, job, TOKEN)


def test_a_resource_that_is_held_while_its_job_runs_is_renewed(twin: Twin, spring: Spring, ada: User) -> None:
    job = running(twin, ada)
    unit = key_of(twin, job)
    maintenance.hold(twin.on, ada, unit.is_a, unit.id, "to look at", 40 * 60)
    beating(twin, job, 32 * 60)
    assert asked(twin, job).metadata == {"key": "k2"}
    beating(twin, job, 32 * 60)
    assert asked(twin, job).metadata == {"key": "k3"}, "also when the hold has run out"
    assert key_of(twin, job).hold is None


def test_what_is_sealed_anew_is_sealed_for_its_lease(twin: Twin, spring: Spring, ada: User) -> None:
    job = running(twin, ada)
    beating(twin, job, 32 * 60)
    unit = key_of(twin, job)
    assert drivers.unseal(twin.on, unit) == {"key": "k2"}
    put(twin, unit, fence=unit.lease.fence + 1)
    with pytest.raises(ValueError, match="not sealed for this use"):
        drivers.unseal(twin.on, key_of(twin, job))


def test_no_renewal_runs_while_a_resource_is_cleaned_for_reuse(ada: User) -> None:
    """UNIT-2: a late call for the last lease never meets the next one's."""
    twin = site(SITE + "warm = { max = 1 }\n")
    spring = Spring(twin)
    job = running(twin, ada)
    unit = key_of(twin, job)
    put(twin, unit, renews=twin.world.now(), due=twin.world.now())
    seen: list[Any] = []
    spring.before = lambda: seen.append(key_of(twin, job).step.busy)
    advance.advance(twin.on, unit.id)
    assert seen == [twin.world.now() + CLEAN_WITHIN]
    assert key_of(twin, job).step.busy is None
    put(twin, key_of(twin, job), renews=twin.world.now(), due=twin.world.now(), busy=twin.world.now() + HOUR)
    advance.advance(twin.on, unit.id)
    assert len(seen) == 1, "another is at it"


def test_a_late_renewal_whose_answer_lost_a_race_is_made_again_at_once(twin: Twin, spring: Spring, ada: User) -> None:
    job = running(twin, ada)
    put(twin, key_of(twin, job), renews=twin.world.now() - STEP_WITHIN, next_look=None, due=twin.world.now())
    sent(twin)
    locked: list[bool] = []

    def written_meanwhile() -> None:
        locked.append(bool(key_of(twin, job).step.busy))
        assert twin.store.commit([Replace(key_of(twin, job), key_of(twin, job))])

    spring.before = written_meanwhile
    twin.pass_time(STEP_WITHIN.total_seconds())
    advance.advance(twin.on, key_of(twin, job).id)
    assert locked == [True]
    assert key_of(twin, job).step.busy is None
    assert sent(twin) == [("well", {"unit": key_of(twin, job).id})]


@pytest.mark.parametrize("said", [NotYet(5, "a moment"), None], ids=["it is not done", "it is done"])
def test_a_renewal_that_the_provider_answers_lets_the_others_call_again(
    twin: Twin, spring: Spring, ada: User, said: NotYet | None
) -> None:
    """It was the one that was let through when the time to slow down was over."""
    job = running(twin, ada)
    spring.says = [RateLimited("slow down", 600, "AssumeRole")]
    put(twin, key_of(twin, job), renews=twin.world.now(), due=twin.world.now())
    advance.advance(twin.on, key_of(twin, job).id)
    assert cooldowns.cooldowns_of(twin.on, "well/spring")
    spring.says = [said] if said else []
    twin.pass_time(601)
    advance.advance(twin.on, key_of(twin, job).id)
    assert not cooldowns.cooldowns_of(twin.on, "well/spring")
