"""A driver that hangs, or ends the process, costs its own factory or well: all others are still compared. [UNIT-1]"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain import metrics
from penstock.domain.units.comparison import COMPARE_EVERY, NOTHING_CAME, Comparison, comparison_key
from penstock.kernel.errors import TimeLimit, Unknown
from penstock.ports import Order
from penstock.testing.site import site_toml
from penstock.testing.twin import ScriptedDriver, Twin
from penstock.usecases import account
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.site import apply
from penstock.usecases.units import reconcile
from penstock.usecases.units.drivers import CALL_SECONDS
from tests.usecases.strays import STRAY, compare_all

KILLED_AFTER = timedelta(seconds=120)
MOMENT = timedelta(milliseconds=1)
ENOUGH = COMPARE_EVERY.total_seconds()


class Killed(BaseException):
    """The function is killed, as Lambda does after its time; or its process ends."""


class Site:
    """A site with some factories, each with a driver of its own, and a sweep that begins each minute."""

    def __init__(self, *names: str) -> None:
        self.twin, self.asked = Twin(), list[str]()
        self.by = {name: Noting(self, name) for name in names}
        self.ends = self.killed = 0
        self.end = self.twin.world.time + KILLED_AFTER
        factory = self.twin.drivers.factory

        def named(driver: str, settings: Mapping[str, Any], name: str = "") -> Any:
            return self.by[name] if name in self.by else factory(driver, settings, name)

        self.twin.drivers.factory = named  # type: ignore[method-assign]
        targets = {name: {"factory": name, "limit": 1} for name in names}
        toml = site_toml(factories=dict.fromkeys(names, "hand"), targets=targets)
        apply.apply(self.twin.on, "admin", toml, "site.toml")
        self.twin.run()

    def wait(self, seconds: float) -> None:
        """A call that takes so long. The function is killed when its own time is over."""
        if self.twin.world.time + timedelta(seconds=seconds) >= self.end:
            self.twin.world.time = self.end
            raise Killed
        self.twin.world.time += timedelta(seconds=seconds)

    def hang(self) -> None:
        """A call that is broken off, as it takes too long."""
        self.wait(CALL_SECONDS)
        raise TimeLimit

    def die(self) -> None:
        """A call that no limit breaks off."""
        raise Killed

    def sweep(self, minutes: int) -> None:
        """A sweep each minute, whatever became of the one before."""
        begin = self.twin.world.time
        for minute in range(minutes):
            self.twin.world.time = begin + timedelta(minutes=minute)
            self.end = self.twin.world.time + KILLED_AFTER
            try:
                usecases_sweep.sweep(self.twin.on)
                self.ends += 1
            except Killed:
                self.killed += 1
            self.twin.queues.messages.clear()
        self.twin.world.time = begin + timedelta(minutes=minutes)

    def row(self, name: str) -> Comparison:
        row = self.twin.store.get(comparison_key(f"factory/{name}"), Comparison)
        assert row
        return row


class Noting(ScriptedDriver):
    """A driver that notes that it is listed, and then does what it is told."""

    def __init__(self, site: Site, name: str) -> None:
        super().__init__()
        self.site, self.name = site, name
        self.does: Callable[[], None] = lambda: None

    def list(self) -> list[str]:  # type: ignore[override]
        self.site.asked.append(self.name)
        self.does()
        return [*self.made]


def test_of_many_that_hang_none_keeps_the_others_from_being_compared() -> None:
    """Four take a minute each, and a sweep has two. It ends in time, and the fifth is compared again and again."""
    site = Site("a", "b", "c", "d", "z")
    for name in "abcd":
        site.by[name].does = site.hang
    site.by["z"].create(STRAY)
    site.sweep(30)
    assert (site.ends, site.killed) == (30, 0)
    assert not site.by["z"].made, "its stray costs money"
    assert site.asked.count("z") >= 5
    assert {name: site.row(name).failures >= 5 for name in "abcd"} == dict.fromkeys("abcd", True)


@pytest.mark.parametrize("dead", ["a", "z", "abcd", "wxyz"], ids=["first", "last", "first four", "last four"])
def test_a_driver_that_ends_the_process_costs_only_its_own(dead: str) -> None:
    names = sorted({*dead, "m", "n"})
    site = Site(*names)
    for name in dead:
        site.by[name].does = site.die
    for name in "mn":
        site.by[name].create(STRAY)
    site.sweep(30)
    assert not site.by["m"].made
    assert not site.by["n"].made
    assert min(site.asked.count(name) for name in "mn") >= 5
    for name in dead:
        assert (site.row(name).why, site.row(name).failures >= 3) == (NOTHING_CAME, True)
        assert site.row(name).at is None


def longest_without_an_end(site: Site, minutes: int) -> int:
    """How many minutes in a row no sweep ended, in some minutes."""
    longest = now = 0
    for _ in range(minutes):
        ends = site.ends
        site.sweep(1)
        now = 0 if site.ends > ends else now + 1
        longest = max(longest, now)
    return longest


def test_of_many_drivers_that_end_the_process_most_sweeps_end() -> None:
    """Each is tried less often the more often that happened, and those that can be listed as often as ever."""
    site = Site(*"abcdmn")
    for name in "abcd":
        site.by[name].does = site.die
    site.sweep(40)
    site.asked.clear()
    ends = site.ends
    assert longest_without_an_end(site, 60) < 5, "else the alarm SweepStopped is raised"
    assert site.ends - ends >= 45
    assert min(site.asked.count(name) for name in "mn") >= 15
    assert min(site.asked.count(name) for name in "abcd") >= 2
    for name in "abcd":
        site.by[name].does = lambda: None
    site.sweep(25)
    assert all(site.row(name).failures == 0 for name in "abcdmn")


def test_that_a_driver_ends_the_process_is_told() -> None:
    site = Site("a", "b")
    site.by["a"].does = site.die
    site.sweep(6)
    assert site.twin.metrics.last(metrics.UNLISTED, maker="factory/a") == 1
    site.by["a"].does = lambda: None
    site.sweep(4)
    assert (site.row("a").failures, site.row("a").why) == (0, None)
    assert site.twin.metrics.last(metrics.UNLISTED, maker="factory/a") == 0


def test_it_is_recorded_that_a_list_is_requested_before_it_is() -> None:
    site, rows = Site("a"), list[Comparison]()
    site.by["a"].does = lambda: rows.append(site.row("a"))
    compare_all(site.twin)
    (row,) = rows
    assert (row.tried, row.is_open, row.failures) == (site.twin.world.now(), True, 0)
    assert (site.row("a").is_open, site.row("a").at) == (False, row.tried)


def test_a_list_that_failed_is_not_open() -> None:
    site = Site("a")

    def fail() -> None:
        raise Unknown("no leave")

    site.by["a"].does = fail
    compare_all(site.twin)
    assert (site.row("a").is_open, site.row("a").failures, site.row("a").why) == (False, 1, "Unknown: no leave")


def test_two_sweeps_at_a_time_do_not_both_call_a_driver() -> None:
    site = Site("a")

    def meanwhile() -> None:
        assert compare_all(site.twin).asked == 0

    site.by["a"].does = meanwhile
    compare_all(site.twin)
    assert site.asked == ["a"]


@pytest.mark.parametrize("is_first", [True, False], ids=["never compared", "compared before"])
def test_a_maker_that_another_sweep_asks_meanwhile_is_left_to_it(is_first: bool) -> None:
    """Both found it due."""
    site = Site("a", "b")
    if not is_first:
        compare_all(site.twin)
        site.twin.pass_time(ENOUGH)
        site.asked.clear()

    def meanwhile() -> None:
        site.by["a"].does = lambda: None
        compare_all(site.twin)

    site.by["a"].does = meanwhile
    compare_all(site.twin)
    assert site.asked == ["a", "b"]


@pytest.mark.parametrize(
    ("early", "asked"), [(timedelta(0), ["a", "b"]), (MOMENT, ["a"])], ids=["enough", "too little"]
)
def test_no_call_begins_that_may_end_too_late(early: timedelta, asked: list[str]) -> None:
    site = Site("a", "b", "c")
    site.by["a"].does = lambda: site.twin.pass_time(10)
    site.by["b"].does = lambda: site.twin.pass_time(1)
    compare_all(site.twin, CALL_SECONDS + 10 - early.total_seconds())
    assert site.asked == asked
    assert all(site.row(name).at for name in asked), "and what was listed is compared"


def test_the_first_is_asked_however_late_it_is() -> None:
    """Of a sweep that is always busy until then, one each time."""
    site = Site("a", "b")
    assert [compare_all(site.twin, 0).asked for _ in range(3)] == [1, 1, 0]
    assert site.asked == ["a", "b"]


def test_who_was_asked_longest_ago_is_first() -> None:
    site = Site("a", "b", "c")
    compare_all(site.twin, 0)
    site.twin.pass_time(1)
    compare_all(site.twin)
    site.twin.pass_time(ENOUGH)
    site.by["b"].does = lambda: site.twin.pass_time(60)
    compare_all(site.twin)
    assert site.asked == ["a", "b", "c", "a", "b"]
    compare_all(site.twin)
    assert site.asked[5:] == ["c"]


def test_who_is_before_a_doubtful_one_is_compared_before_that_is_called() -> None:
    site = Site("a", "b", "c", "d")
    site.by["b"].does = site.die
    with pytest.raises(Killed):
        compare_all(site.twin)
    assert (site.row("a").at, site.row("b").is_open) == (None, True)
    site.twin.pass_time(ENOUGH)
    site.asked.clear()
    with pytest.raises(Killed):
        compare_all(site.twin)
    assert site.asked == ["c", "d", "a", "b"], "c and d, which were not asked, are first"
    assert all(site.row(name).at == site.twin.world.now() for name in "acd")


def test_a_stray_that_hangs_when_it_is_destroyed_keeps_no_other_there_for_long() -> None:
    """Each time, another is the first. What there is no time for is found again by the next comparison."""
    site = Site("a", "b", "c")
    for name in "ab":
        site.by[name].destroy = lambda unit, now: site.hang()  # type: ignore[method-assign,assignment,return-value]
    for name in "abc":
        site.by[name].create(Order(f"w-{name}", "linux", "1"))
    site.sweep(40)
    assert (site.killed, [*site.by["c"].made]) == (0, [])
    assert site.by["a"].made
    assert site.by["b"].made


@pytest.mark.parametrize(("early", "destroyed"), [(timedelta(0), 3), (MOMENT, 2)], ids=["enough", "too little"])
def test_strays_are_destroyed_while_there_is_time(early: timedelta, destroyed: int) -> None:
    site = Site("a")
    site.sweep(11)
    for number in range(4):
        site.by["a"].create(Order(f"w-{number}", "linux", "1"))
    site.sweep(4)
    site.twin.pass_time(120)
    destroy = site.by["a"].destroy
    site.by["a"].destroy = lambda unit, now: (site.twin.pass_time(20), destroy(unit, now))[1]  # type: ignore[method-assign]
    assert compare_all(site.twin, CALL_SECONDS + 40 - early.total_seconds()).strays == destroyed
    site.twin.pass_time(ENOUGH)
    assert compare_all(site.twin, 0).strays == 1, "one at least"
    site.twin.pass_time(ENOUGH)
    assert compare_all(site.twin).strays == 3 - destroyed


def test_a_sweep_begins_the_account_diff_and_tells_of_pools_before_it_calls_a_driver() -> None:
    site, known = Site("a"), list[tuple[int, float]]()
    site.twin.world.time = site.twin.world.time.replace(hour=3)
    site.by["a"].does = lambda: known.append(
        (len(account.latest(site.twin.on)), site.twin.metrics.last(metrics.POOL_LIMIT, pool="target/a"))
    )
    usecases_sweep.sweep(site.twin.on)
    assert known == [(1, 1)]


def test_a_sweep_has_the_time_that_its_function_has(monkeypatch: pytest.MonkeyPatch) -> None:
    site, bounds = Site("a"), list[object]()
    monkeypatch.setattr(reconcile, "reconcile", lambda on, until: (bounds.append(until), reconcile.Reconciled())[1])
    usecases_sweep.sweep(site.twin.on, timedelta(seconds=70))
    usecases_sweep.sweep(site.twin.on)
    now = site.twin.world.now()
    assert bounds == [now + timedelta(seconds=70), now + usecases_sweep.WHOLE]
