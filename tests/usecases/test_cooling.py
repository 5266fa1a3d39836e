"""What a maker has none of now is not asked for again at once, by anybody; and whoever waits for it is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from penstock.domain import cooldowns as rules
from penstock.domain.cooldowns import CoolDown
from penstock.domain.jobs.jobs import Outcome, State
from penstock.domain.units.units import CleanProof, UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, RateLimited, Shortage, Unknown
from penstock.kernel.rows import Change, Create, Replace
from penstock.ports import NotYet, Order, Ready
from penstock.system import current_site
from penstock.testing.twin import ScriptedDriver, Twin
from penstock.usecases import cooldowns
from penstock.usecases.jobs import jobs
from penstock.usecases.site import apply
from penstock.usecases.units import quarantine
from tests.usecases.conftest import SITE
from tests.usecases.steps import (
    assert_all_is_put_back,
    finish,
    hello,
    job_of,
    run_to_end,
    submit,
    sweep,
    told,
    worker_of,
)

MAKER = "factory/hand"


class Cloud(ScriptedDriver):
    """A factory that tries one way after the other, and says of each what it lacks."""

    def __init__(self, ways: Iterable[str] = ("spot", "on-demand")) -> None:
        super().__init__()
        self.ways = list(ways)
        self.short: dict[str, bool] = {}
        self.asked: list[tuple[str, list[str]]] = []
        self.limit = 99
        self.has_time_for = 99
        self.shared: set[str] | None = None

    def has_alternative(self, order: Order) -> bool:
        return any(way not in order.avoid for way in self.ways)

    def shares_scope(self, scope: str) -> bool:
        return scope in (self.ways if self.shared is None else self.shared)

    def create(self, order: Order) -> Ready | NotYet:
        said = self._said()
        if said:
            return said
        all_left, found = [way for way in self.ways if way not in order.avoid], []
        tried = all_left[: self.has_time_for]
        self.asked.append((order.id, tried))
        for way in tried:
            is_full = len(self.made) >= self.limit
            if way not in self.short and not is_full:
                self.made[order.id] = order
                return Ready({"way": way}, found, [way])
            found.append(Shortage(way, f"no {way}", is_full or self.short.get(way, False)))
        raise NoCapacity("nothing anywhere", found, untried=tried != all_left)


@pytest.fixture
def cloud(twin: Twin) -> Cloud:
    made = Cloud()
    twin.drivers.hand = made
    apply.apply(twin.on, "admin", SITE.replace("limit = 2", "limit = 9"), "site.toml")
    twin.run()
    return made


def cool(twin: Twin) -> dict[str, CoolDown]:
    return {row.scope: row for row in cooldowns.cooldowns_of(twin.on, MAKER)}


def go_on(twin: Twin, minutes: int) -> None:
    """Messages come when they are due, without any sweep."""
    for _ in range(minutes * 6):
        twin.pass_time(10)
        twin.run()


def test_what_one_unit_met_another_avoids(twin: Twin, ada: User, cloud: Cloud) -> None:
    cloud.short["spot"] = False
    for _ in range(2):
        submit(twin, ada)
        twin.run()
    assert [tried for _, tried in cloud.asked] == [["spot", "on-demand"], ["on-demand"]]
    assert list(cool(twin)) == ["spot"], "a limit of one market stops no other"


def test_what_there_was_no_time_for_is_tried_at_once_behind_what_was_met(twin: Twin, ada: User, cloud: Cloud) -> None:
    """When the pauses end, the unit would begin with the same ones again, and never come to the others."""
    cloud.ways, cloud.has_time_for = ["spot", "spare", "on-demand"], 1
    cloud.short = {"spot": False, "spare": False}
    submit(twin, ada)
    go_on(twin, 1)
    assert [tried for _, tried in cloud.asked] == [["spot"], ["spare"], ["on-demand"]]
    assert len(cloud.made) == 1


def test_who_tried_all_of_the_rest_waits(twin: Twin, ada: User, cloud: Cloud) -> None:
    cloud.has_time_for, cloud.short = 1, {"spot": False, "on-demand": False}
    submit(twin, ada)
    go_on(twin, 2)
    assert [tried for _, tried in cloud.asked] == [["spot"], ["on-demand"]]


def test_a_driver_that_never_has_time_and_meets_nothing_new_waits(twin: Twin, ada: User, cloud: Cloud) -> None:
    """Or a driver that is wrong about itself would be called each second."""

    def refuse(order: Order) -> Ready | NotYet:
        cloud.asked.append((order.id, []))
        raise NoCapacity("nothing anywhere", [Shortage("spot", "no spot")], untried=True)

    cloud.create = refuse  # type: ignore[method-assign]
    submit(twin, ada)
    go_on(twin, 2)
    assert len(cloud.asked) == 2


def test_when_its_time_is_over_one_unit_probes_and_the_others_do_not(twin: Twin, ada: User, cloud: Cloud) -> None:
    cloud.short = {"spot": False, "on-demand": False}
    for _ in range(5):
        submit(twin, ada)
    twin.run()
    assert sum(bool(tried) for _, tried in cloud.asked) == 1
    cloud.asked.clear()
    go_on(twin, 5)
    probes = [(unit, tried) for unit, tried in cloud.asked if tried]
    assert sorted(way for _, tried in probes for way in tried) == ["on-demand", "spot"]
    assert {row.count for row in cool(twin).values()} == {2}
    assert {(row.until - row.since).total_seconds() > 500 for row in cool(twin).values()} == {True}


def test_a_probe_that_finds_some_ends_it_for_all(twin: Twin, ada: User, cloud: Cloud) -> None:
    cloud.short = {"spot": False, "on-demand": False}
    found = [submit(twin, ada) for _ in range(5)]
    twin.run()
    cloud.short = {}
    go_on(twin, 6)
    assert len(cloud.made) == 5
    assert "spot" not in cool(twin)
    for job in found:
        run_to_end(twin, job)
    assert {job_of(twin, job).end.outcome for job in found} == {Outcome.SUCCEEDED}
    assert not cloud.made


def test_only_what_was_asked_for_is_proved(twin: Twin, ada: User, cloud: Cloud) -> None:
    """The first way was there again; of the second, nothing was learned: its next probe is somebody else's."""
    cloud.short = {"spot": False, "on-demand": False}
    submit(twin, ada)
    twin.run()
    cloud.short = {"on-demand": False}
    go_on(twin, 5)
    assert list(cool(twin)) == ["on-demand"]
    assert cool(twin)["on-demand"].probe is None
    assert cool(twin)["on-demand"].count == 1


def test_two_that_come_at_once_do_not_both_probe(twin: Twin, ada: User, cloud: Cloud) -> None:
    """SLOT-1's rule for probes: the second one's write finds the first one's."""
    cloud.short = {"spot": False, "on-demand": False}
    first, second = submit(twin, ada), submit(twin, ada)
    twin.run()
    twin.pass_time(400)
    units = [worker_of(twin, job) for job in (first, second)]
    rows, commit = cool(twin), twin.store.commit
    leaves: list[cooldowns.Permission] = []

    def between(changes: list[Change]) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        leaves.append(cooldowns.request_create(twin.on, current_site(twin.on), units[1]))
        return commit(changes)

    twin.store.commit = between  # type: ignore[assignment]
    leaves.append(cooldowns.request_create(twin.on, current_site(twin.on), units[0]))
    assert [len(leave.probes) for leave in leaves] == [2, 0]
    assert leaves[1].avoid == set(rows)


def test_a_probe_that_dies_is_followed_by_another(twin: Twin, ada: User, cloud: Cloud) -> None:
    cloud.short = {"spot": False, "on-demand": False}
    job = submit(twin, ada)
    twin.run()
    for row in cool(twin).values():
        twin.store.commit([Replace(row, replace(rules.probe(row, "w-dead", row.until), until=row.until))])
    cloud.short = {}
    go_on(twin, 4)
    assert not cloud.made, "it may still find out"
    go_on(twin, 6)
    assert list(cloud.made) == [worker_of(twin, job).id]


def test_a_quota_comes_back_with_one_of_our_own(twin: Twin, ada: User, cloud: Cloud) -> None:
    """Arvados' W4 the other way: the job goes on as soon as there is room, not when the cool-down is over."""
    cloud.limit = 1
    first = submit(twin, ada)
    twin.run()
    second = submit(twin, ada)
    twin.run()
    assert {row.cause for row in cool(twin).values()} == {rules.Cause.QUOTA}
    hello(twin, first)
    finish(twin, first)
    twin.run()
    assert list(cloud.made) == [worker_of(twin, second).id]


TWO = (
    SITE
    + """
[factories.also]
driver = "hand"
[factories.elsewhere]
driver = "process"
[targets.other]
factory = "also"
"""
)


def full_at_both(twin: Twin, ada: User, cloud: Cloud) -> tuple[str, str]:
    """A job that has the one machine, of one factory, and one that waits for it, at another of the same account."""
    apply.apply(twin.on, "admin", TWO, "site.toml")
    cloud.limit = 1
    first = submit(twin, ada)
    twin.run()
    second = submit(twin, ada, target="other")
    twin.run()
    assert cool(twin) == {}
    assert {row.cause for row in cooldowns.cooldowns_of(twin.on, "factory/also")} == {rules.Cause.QUOTA}
    hello(twin, first)
    return first, second


def test_a_quota_comes_back_with_a_machine_of_another_factory_that_shares_it(
    twin: Twin, ada: User, cloud: Cloud
) -> None:
    """An account's limit knows nothing of factories: who waits at one goes on when another gives back."""
    first, second = full_at_both(twin, ada, cloud)
    finish(twin, first)
    twin.run()
    assert list(cloud.made) == [worker_of(twin, second).id]
    assert "spot" not in {row.scope for row in cooldowns.cooldowns_of(twin.on, "factory/also")}


def test_another_drivers_quota_is_another_and_one_factory_asks_once(twin: Twin, ada: User, cloud: Cloud) -> None:
    first, _ = full_at_both(twin, ada, cloud)
    (row, *_) = cooldowns.cooldowns_of(twin.on, "factory/also")
    assert twin.store.commit([Create(replace(row, maker="factory/elsewhere", version=0))])
    (theirs,) = cooldowns.cooldowns_of(twin.on, "factory/elsewhere")
    asked, find = [], twin.store.find

    def finds(pk: str, *given: Any, **more: Any) -> Any:
        asked.append(pk)
        return find(pk, *given, **more)

    twin.store.find = finds  # type: ignore[method-assign]
    cooldowns.unit_destroyed(twin.on, worker_of(twin, first), current_site(twin.on))
    assert asked == ["maker#factory/hand", "maker#factory/also"]
    assert twin.store.get(theirs.key, CoolDown) == theirs


def test_a_quota_that_is_not_shared_is_not_tried_for_a_machine_that_it_never_counted(
    twin: Twin, ada: User, cloud: Cloud
) -> None:
    first, _ = full_at_both(twin, ada, cloud)
    cloud.shared = {"spot"}
    before = {row.scope: row for row in cooldowns.cooldowns_of(twin.on, "factory/also")}
    cloud.limit = 0
    finish(twin, first)
    twin.run()
    after = {row.scope: row for row in cooldowns.cooldowns_of(twin.on, "factory/also")}
    assert after["on-demand"] == before["on-demand"]
    assert after["spot"].count == 2, "it was tried"


def test_what_an_operator_removed_by_hand_gives_its_quota_back_too(
    twin: Twin, ada: User, root: User, cloud: Cloud
) -> None:
    first, second = full_at_both(twin, ada, cloud)
    cloud.stuck = Misconfigured("no leave to end it")
    finish(twin, first)
    for _ in range(40):
        twin.pass_time(700)
        twin.run()
    cloud.made.clear()
    worker = worker_of(twin, first)
    assert worker.state is UnitState.QUARANTINED
    row = next(row for row in cooldowns.cooldowns_of(twin.on, "factory/also") if row.scope == "spot")
    twin.store.commit([Replace(row, replace(row, until=twin.world.now() + timedelta(hours=1)))])
    quarantine.confirm_removed(twin.on, root, UnitKind.WORKER, worker.id, "looked at the console")
    twin.run()
    assert list(cloud.made) == [worker_of(twin, second).id]


def test_a_shortage_does_not_come_back_with_one_of_our_own(twin: Twin, ada: User, cloud: Cloud) -> None:
    first = submit(twin, ada)
    twin.run()
    cloud.short = {"spot": False, "on-demand": False}
    submit(twin, ada)
    twin.run()
    before = cool(twin)
    hello(twin, first)
    finish(twin, first)
    assert cool(twin) == before


def test_a_rate_limit_stops_every_create_and_only_one_tries_after_it(twin: Twin, ada: User, cloud: Cloud) -> None:
    cloud.says = [RateLimited("slow down", 30, "RunInstances"), RateLimited("slow down", 30, "RunInstances")]
    for _ in range(4):
        submit(twin, ada)
    twin.run()
    assert (len(cloud.says), cloud.asked) == (1, []), "the first was told, and the others not let"
    twin.pass_time(62)
    twin.run()
    assert cloud.says == []
    assert cloud.asked == []
    assert cool(twin)["calls/RunInstances"].count == 2
    go_on(twin, 3)
    assert len(cloud.made) == 4
    assert cool(twin) == {}


def test_a_rate_limit_that_a_destroy_meets_is_known_to_creates(twin: Twin, ada: User) -> None:
    hand = twin.drivers.hand
    first = submit(twin, ada)
    twin.run()
    hello(twin, first)
    destroy, said = hand.destroy, [RateLimited("slow down", 40, "TerminateInstances")]

    def limited(unit: str, now: datetime) -> CleanProof | NotYet:
        if said:
            raise said.pop()
        return destroy(unit, now)

    hand.destroy = limited  # type: ignore[method-assign]
    finish(twin, first)
    second = submit(twin, ada)
    twin.run()
    assert worker_of(twin, second).id not in hand.made
    assert list(cool(twin)) == ["calls/TerminateInstances"]
    go_on(twin, 2)
    assert list(hand.made) == [worker_of(twin, second).id], "and the first was destroyed"


def test_one_types_shortage_stops_no_other(twin: Twin, ada: User, root: User) -> None:
    """A driver that has no names for what it lacks is taken at its word for one type only."""
    twin.store.commit([Create(root)])
    hand = twin.drivers.hand
    hand.says = [NoCapacity("none left")]
    first, same, other = submit(twin, ada), submit(twin, ada), submit(twin, root, target="lab")
    twin.run()
    assert list(hand.made) == [worker_of(twin, other).id]
    go_on(twin, 5)
    assert set(hand.made) == {worker_of(twin, job).id for job in (first, same, other)}


def test_what_is_being_made_already_is_still_asked_about(twin: Twin, ada: User) -> None:
    hand = twin.drivers.hand
    hand.says = [NotYet(5, "it is coming"), NoCapacity("none left")]
    first = submit(twin, ada)
    twin.run()
    submit(twin, ada)
    twin.run()
    twin.pass_time(6)
    twin.run()
    assert list(hand.made) == [worker_of(twin, first).id]


@pytest.mark.parametrize(
    "error",
    [
        Misconfigured("no such image"),
        QuotaReached("full"),
        NoCapacity("none"),
        RateLimited("slow"),
        Unknown("?", "Odd"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_waiting_job_shows_why_and_ends_at_the_queue_deadline(twin: Twin, ada: User, error: DriverError) -> None:
    """JOB-1: whatever the driver says, and however long."""
    twin.drivers.hand.says = [error] * 10_000
    job = submit(twin, ada)
    twin.run()
    for _ in range(4):
        sweep(twin, 3600)
        assert job_of(twin, job).state is State.ACQUIRING
        assert str(error) in jobs.explain(twin.on, job_of(twin, job)).summary
    asked = 10_000 - len(twin.drivers.hand.says)
    sweep(twin, 7 * 24 * 3600)
    settled = job_of(twin, job)
    assert settled.end.outcome is Outcome.ERRORED
    assert "queue deadline" in str(settled.end.reason)
    assert str(error) in str(settled.end.reason)
    assert asked <= 10
    twin.run()
    assert_all_is_put_back(twin)


def test_why_says_what_it_waits_for_until_when_and_how_often_that_was_tried(
    twin: Twin, ada: User, cloud: Cloud
) -> None:
    cloud.short = {"spot": False, "on-demand": False}
    job = submit(twin, ada)
    twin.run()
    why = jobs.explain(twin.on, job_of(twin, job))
    row = cool(twin)["spot"]
    assert f"factory hand: no capacity for spot until {row.until:%H:%M} UTC (tried once): no spot" in why.summary
    assert why.expected_start == row.until
    assert "asked again" in str(why.basis)
    cloud.short = {}
    go_on(twin, 5)
    assert "no capacity" not in jobs.explain(twin.on, job_of(twin, job)).summary, "it boots"
    assert any("no capacity" in line or "NoCapacity" in line for line in told(twin, job))


def test_errors_are_counted_by_code(twin: Twin, ada: User) -> None:
    twin.drivers.hand.says = [Unknown("odd", "Odd"), Unknown("odder", "Odd"), RateLimited("slow", 1)]
    job = submit(twin, ada)
    twin.run()
    go_on(twin, 5)
    assert worker_of(twin, job).creation.made
    found = {row.code: (row.count, row.message) for row in cooldowns.failures(twin.on, MAKER)}
    assert found == {"Unknown:Odd": (2, "odder"), "RateLimited": (1, "slow")}


def test_what_is_remembered_never_holds_a_unit_up(twin: Twin, ada: User, cloud: Cloud) -> None:
    """Somebody else is always first to write it; the unit goes on all the same."""
    cloud.short = {"spot": False}
    commit = twin.store.commit

    def beaten(changes: list[Change]) -> bool:
        if any(change.row.kind in ("cooldown", "failure") for change in changes if not hasattr(change, "was")):
            return False
        return commit(changes)

    twin.store.commit = beaten  # type: ignore[assignment]
    job = submit(twin, ada)
    twin.run()
    run_to_end(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert cool(twin) == {}


RATED = SITE.replace('driver = "hand"\n', 'driver = "hand"\nrate = 1\n').replace("limit = 2", "limit = 9")


def test_calls_that_change_something_keep_to_the_rate(twin: Twin, ada: User) -> None:
    apply.apply(twin.on, "admin", RATED, "site.toml")
    twin.run()
    hand, at = twin.drivers.hand, []
    create, destroy = hand.create, hand.destroy

    def creates(order: Order) -> Ready | NotYet:
        at.append(twin.world.now())
        return create(order)

    def destroys(unit: str, now: datetime) -> CleanProof | NotYet:
        at.append(twin.world.now())
        return destroy(unit, now)

    hand.create, hand.destroy = creates, destroys  # type: ignore[method-assign]
    found = [submit(twin, ada) for _ in range(6)]
    twin.run()
    assert len(at) == 1
    for _ in range(120):
        twin.pass_time(1)
        twin.run()
    assert len(hand.made) == 6
    for job in found:
        hello(twin, job)
        finish(twin, job)
    for _ in range(120):
        twin.pass_time(1)
        twin.run()
    assert not hand.made
    assert len(at) == 12
    assert min((after - before).total_seconds() for before, after in pairwise(at)) >= 0.9
    assert {worker_of(twin, job).state for job in found} == {UnitState.GONE}


def test_without_a_rate_nothing_is_written_for_one(twin: Twin, ada: User) -> None:
    run_to_end(twin, submit(twin, ada))
    assert not [row for row in twin.store.rows.values() if row.kind in ("budget", "cooldown", "failure")]


def test_what_is_short_is_remembered_however_much_else_is(twin: Twin) -> None:
    """Jobs may ask for a type with as many options as they like, and each of them is short for itself."""
    for number in range(1100):
        cooldowns.start_for(twin.on, MAKER, rules.Obstacle(f"a/{number}", rules.Cause.CAPACITY, "full"), "w-1")
    cooldowns.start_for(twin.on, MAKER, rules.Obstacle("type/linux", rules.Cause.CAPACITY, "full"), "w-1")
    assert "type/linux" in cool(twin)
