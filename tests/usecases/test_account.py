"""The account diff: each night, everything outside that has our tags against the rows. UNIT-1"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from penstock.domain import leftovers as domain
from penstock.domain import metrics
from penstock.domain.account import AccountDiff, Checked, Thing
from penstock.domain.leftovers import AGAIN_AFTER, LEFT_AFTER, MOST, TRIES
from penstock.domain.site.site import SITE_KEY, SiteText
from penstock.domain.units.units import Unit, UnitState, unit_key
from penstock.domain.users.audit import LISTING, Entry
from penstock.domain.users.users import User
from penstock.kernel import limits, rows
from penstock.kernel.errors import Misconfigured, Refused
from penstock.kernel.rows import Replace
from penstock.ports import Order
from penstock.testing.twin import START, Twin
from penstock.usecases import account
from penstock.usecases.site import apply
from tests.usecases.races import Died, before_the_next_commit
from tests.usecases.steps import live, submit, sweep
from tests.usecases.strays import WELL

NIGHT = START + domain.NIGHT
OLD = NIGHT - timedelta(hours=2)


@pytest.fixture
def night(twin: Twin) -> Twin:
    """A site at the beginning of its first night, with a factory and a well that list more than units."""
    apply.apply(twin.on, "admin", WELL, "site.toml")
    twin.run()
    twin.world.time = NIGHT
    return twin


def plant(twin: Twin, *things: Thing, of: str = "hand") -> None:
    getattr(twin.drivers, of).things = lambda: things


def tonight(twin: Twin) -> AccountDiff:
    """The diff of a sweep and all its messages."""
    sweep(twin, 0)
    twin.run()
    diff = account.find(twin.on)
    assert diff.finished
    return diff


KINDS = [
    Thing("instance", "i-1", "w-1", OLD),
    Thing("volume", "vol-1", "w-1", OLD),
    Thing("network interface", "eni-1", f"w-{rows.ulid(OLD, bytes(10))}"),
    Thing("spot request", "sir-1", "", OLD),
]


def test_nothing_left_behind_is_a_zero(night: Twin) -> None:
    diff = tonight(night)
    assert (diff.things, diff.left, diff.unlisted, diff.leftovers) == (0, 0, 0, ())
    assert diff.makers == {"factory/hand": Checked(), "well/hand": Checked()}


def test_a_leftover_of_each_kind_is_a_line_and_nothing_is_destroyed(night: Twin) -> None:
    plant(night, *KINDS)
    plant(night, Thing("database", "db-1", "r-1", OLD), of="basin")
    diff = tonight(night)
    assert {(each.maker, each.kind, each.id) for each in diff.leftovers} == {
        *(("factory/hand", each.kind, each.id) for each in KINDS),
        ("well/hand", "database", "db-1"),
    }
    assert {name: each.left for name, each in diff.makers.items()} == {"factory/hand": 4, "well/hand": 1}
    assert night.metrics.of(metrics.DRIVER_CALLS, operation="destroy") == []


def test_what_a_running_job_has_is_no_leftover_and_what_it_left_behind_is_with_its_owner(
    night: Twin, ada: User
) -> None:
    job = submit(night, ada, target="default")
    night.run()
    (worker,) = live(night, job)
    plant(night, Thing("volume", "vol-1", worker.id, OLD))
    assert (tonight(night).left, account.find(night.on).unlisted) == (0, 0)
    night.store.commit([Replace(worker, replace(worker, state=UnitState.GONE, due=None))])
    night.world.time += timedelta(days=1)
    (left,) = tonight(night).leftovers
    assert (left.id, left.unit, left.owner, left.why) == ("vol-1", worker.id, "ada", "its unit is gone")


def test_a_driver_with_one_kind_of_thing_lists_its_units(night: Twin) -> None:
    id = f"w-{rows.ulid(OLD, bytes(10))}"
    night.drivers.hand.create(Order(id, "linux", "1"))
    (left,) = tonight(night).leftovers
    assert (left.kind, left.id, left.unit, left.made) == ("worker", id, id, OLD)


def test_what_the_sweep_may_still_destroy_is_no_leftover(night: Twin) -> None:
    plant(night, Thing("volume", "vol-1", "", NIGHT - LEFT_AFTER + timedelta(minutes=1)))
    assert tonight(night).left == 0


def fails() -> Iterable[Thing]:
    raise Misconfigured("access denied")


@pytest.mark.parametrize(
    ("things", "why"),
    [
        (fails, "Misconfigured: access denied"),
        (lambda: 7, "returned int instead of a list of things"),
        (lambda: "abc", "returned str instead of a list of things"),
        (lambda: {"a": 1}, "returned dict instead of a list of things"),
        (lambda: ["w-1"], "listed something that is no Thing"),
        (lambda: [Thing("volume", 7, "w-1")], "has a field of another type"),  # type: ignore[arg-type]
        (lambda: [Thing("volume", "7", "w-1", datetime(2026, 1, 1))], "has a field of another type"),
        (lambda: [Thing("volume", "7", "w-1", until="soon")], "has a field of another type"),  # type: ignore[arg-type]
    ],
)
def test_a_list_that_cannot_be_had_is_said_and_costs_only_itself(
    night: Twin, things: Callable[[], Any], why: str
) -> None:
    night.drivers.hand.things = things  # type: ignore[attr-defined]
    plant(night, Thing("database", "db-1", "", OLD), of="basin")
    diff = tonight(night)
    assert why in (diff.makers["factory/hand"].why or "")
    assert (diff.unlisted, diff.left) == (1, 1)


def test_a_driver_that_ends_its_process_is_not_asked_for_ever(night: Twin) -> None:
    def dies() -> list[Thing]:
        raise Died

    night.drivers.hand.things = dies  # type: ignore[attr-defined]
    for _ in range(TRIES):
        account.remind(night.on)
        with pytest.raises(Died):
            night.run()
        night.queues.messages.clear()
        night.world.time += AGAIN_AFTER
    diff = tonight(night)
    assert diff.makers["factory/hand"].why == "its list was begun 3 times, and never ended"
    assert diff.makers["well/hand"] == Checked()


def test_a_factory_that_the_site_does_not_have_any_more_is_said(night: Twin, ada: User) -> None:
    job = submit(night, ada, target="default")
    night.run()
    (worker,) = live(night, job)
    night.store.commit([Replace(worker, replace(worker, maker="older"))])
    diff = tonight(night)
    assert "the site does not have it any more" in (diff.makers["factory/older"].why or "")
    assert "1 units of it have rows" in (diff.makers["factory/older"].why or "")
    assert set(diff.makers) == {"factory/hand", "factory/older", "well/hand"}
    assert diff.unlisted == 1


def test_a_huge_number_is_counted_whole_and_kept_in_part(night: Twin) -> None:
    plant(night, *(Thing("volume", f"vol-{number}", f"w-{number}", OLD) for number in range(12_000)))
    diff = tonight(night)
    assert (diff.things, diff.left, len(diff.leftovers)) == (12_000, 12_000, MOST)


def test_one_diff_a_night_and_the_history_is_kept(night: Twin) -> None:
    first = tonight(night)
    for _ in range(5):
        sweep(night)
    night.run()
    assert [diff.id for diff in account.latest(night.on, 9)] == [first.id]
    night.world.time = NIGHT + timedelta(days=1, hours=5)
    second = tonight(night)
    assert (
        [diff.id for diff in account.latest(night.on, 9)]
        == [second.id, first.id]
        == [
            "20260102T030000",
            "20260101T030000",
        ]
    )
    assert second.began == NIGHT + timedelta(days=1, hours=5)


def test_a_message_that_is_lost_is_sent_again_and_one_that_comes_twice_changes_nothing(night: Twin) -> None:
    plant(night, *KINDS)
    account.remind(night.on)
    night.queues.messages.clear()
    night.world.time += AGAIN_AFTER - timedelta(seconds=1)
    account.remind(night.on)
    assert not night.queues.messages
    night.world.time += timedelta(seconds=1)
    diff = tonight(night)
    account.go_on(night.on, diff.id, night.world.now())
    assert account.find(night.on) == diff
    assert diff.left == 4


def test_another_call_that_was_first_goes_on_by_itself(night: Twin) -> None:
    account.remind(night.on)
    night.queues.messages.clear()
    asked: list[Any] = []

    def things() -> list[Thing]:
        if not asked:
            asked.append(1)
            account.go_on(night.on, domain.begin(None, NIGHT).id, night.world.now() + timedelta(hours=1))
            asked.append(account.find(night.on))
            night.world.time += timedelta(seconds=9)
        return list(KINDS)

    night.drivers.hand.things = things  # type: ignore[attr-defined]
    account.go_on(night.on, domain.begin(None, NIGHT).id, night.world.now() + timedelta(hours=1))
    diff = account.find(night.on)
    assert diff.left == 4
    assert diff == asked[1]
    assert not night.queues.messages


@pytest.mark.parametrize(
    ("time", "messages"), [(account.STEP, 0), (account.STEP - timedelta(milliseconds=1), 2), (-account.STEP, 2)]
)
def test_a_call_takes_as_many_factories_and_wells_as_it_has_time_for(
    night: Twin, time: timedelta, messages: int
) -> None:
    account.remind(night.on)
    night.queues.messages.clear()
    sent = 0
    while not account.find(night.on).finished:
        account.go_on(night.on, account.find(night.on).id, night.world.now() + time)
        sent += len(night.queues.messages)
        night.queues.messages.clear()
    assert sent == messages
    assert len(account.find(night.on).makers) == 2


def test_two_sweeps_at_once_begin_one_diff_and_send_it_once(night: Twin) -> None:
    before_the_next_commit(night, lambda: account.remind(night.on))
    account.remind(night.on)
    assert len(account.latest(night.on)) == len(night.queues.messages) == 1
    night.world.time += AGAIN_AFTER
    night.queues.messages.clear()
    before_the_next_commit(night, lambda: account.remind(night.on))
    account.remind(night.on)
    assert len(night.queues.messages) == 1
    assert account.find(night.on).tries == 2


def test_a_unit_that_a_batch_cannot_read_is_read_by_itself_and_no_other(night: Twin, ada: User) -> None:
    job = submit(night, ada, target="default")
    night.run()
    (worker,) = live(night, job)
    plant(night, Thing("volume", "vol-1", worker.id, OLD), Thing("volume", "vol-2", "w-2", OLD))
    rows_at, get, read = night.store.rows_at, night.store.get, []

    def counted(key: Any, kind: Any) -> Any:
        read.extend([key] if kind is Unit else [])
        return get(key, kind)

    night.store.get = counted  # type: ignore[method-assign]
    assert [each.id for each in tonight(night).leftovers] == ["vol-2"]
    assert [key for key in read if key == unit_key(worker.id)] == []
    another = get(SITE_KEY, SiteText)
    night.store.rows_at = lambda keys: {unit_key("w-2"): another}  # type: ignore[dict-item, method-assign]
    night.world.time += timedelta(days=1)
    account.remind(night.on)
    account.go_on(night.on, account.latest(night.on)[0].id, night.world.now() + timedelta(hours=1))
    night.store.rows_at = rows_at  # type: ignore[method-assign]
    assert unit_key(worker.id) in read
    assert [each.id for each in account.find(night.on).leftovers] == ["vol-2"]


def test_the_metrics_say_how_the_last_finished_diff_stands(night: Twin, root: User) -> None:
    plant(night, *KINDS)
    tonight(night)
    sweep(night, 600)
    assert night.metrics.of(metrics.LEFTOVERS)[-1] == 4
    assert night.metrics.of(metrics.DIFF_AGE)[-1] >= 600
    night.drivers.hand.things = fails  # type: ignore[attr-defined]
    night.world.time = NIGHT + timedelta(days=1)
    tonight(night)
    sweep(night, 600)
    assert night.metrics.last(metrics.LEFTOVERS) == 0
    assert night.metrics.of(metrics.DIFF_AGE)[-1] >= 24 * 3600 + 600
    plant(night, *KINDS)
    night.world.time = NIGHT + timedelta(days=2)
    tonight(night)
    night.world.time += timedelta(seconds=1)
    account.ask(night.on, root)
    account.remind(night.on)
    assert night.metrics.last(metrics.LEFTOVERS) == 4
    assert account.latest(night.on)[0].finished is None
    assert account.latest(night.on)[0].whole == account.latest(night.on)[1].whole == NIGHT + timedelta(days=2)


def test_who_asks_while_somebody_else_does_gets_the_same(twin: Twin, root: User) -> None:
    before_the_next_commit(twin, lambda: account.ask(twin.on, root))
    asked = account.ask(twin.on, root)
    assert [each.id for each in account.latest(twin.on)] == [asked.id]
    assert len(twin.store.listed(LISTING, Entry, newest=True)) == 1 + len(
        [each for each in twin.store.listed(LISTING, Entry) if each.did != "account diff"]
    )


def test_a_diff_of_the_history_is_found_by_its_id(night: Twin) -> None:
    first = tonight(night)
    night.world.time = NIGHT + timedelta(days=1)
    second = tonight(night)
    assert account.find(night.on, first.id) == first
    assert account.find(night.on) == second
    assert account.history(night.on) == [second, first]
    assert account.latest(night.on, 1) == [second]


@pytest.mark.parametrize(("length", "is_read"), [(limits.NAME_CHARS, True), (limits.NAME_CHARS + 1, False)])
def test_an_id_that_is_too_long_for_a_key_is_not_read(twin: Twin, length: int, is_read: bool) -> None:
    read = []
    twin.store.get = lambda key, kind: read.append(key)  # type: ignore[method-assign, func-returns-value]
    with pytest.raises(Refused):
        account.find(twin.on, "x" * length)
    assert bool(read) == is_read


def test_an_operator_has_one_made_now_and_it_is_recorded(twin: Twin, root: User) -> None:
    asked = account.ask(twin.on, root)
    assert (asked.by, asked.finished) == ("root", None)
    assert account.ask(twin.on, root).id == asked.id
    (entry,) = twin.store.listed(LISTING, Entry, newest=True)[:1]
    assert (entry.by, entry.did) == ("root", "account diff")
    assert account.find(twin.on).id == asked.id
    sweep(twin, 1)
    twin.run()
    assert account.find(twin.on, asked.id).finished
    twin.world.time += timedelta(seconds=5)
    assert account.ask(twin.on, root).id != asked.id
    assert account.find(twin.on).id == asked.id


@pytest.mark.parametrize("id", ["", "20260101T000000", "x" * 5000])
def test_a_diff_that_does_not_exist_is_not_found(twin: Twin, id: str) -> None:
    with pytest.raises(Refused) as refused:
        account.find(twin.on, id)
    assert refused.value.status == 404


def test_a_message_of_a_diff_that_does_not_exist_any_more_is_taken(twin: Twin) -> None:
    twin.on.queues.sweep({"diff": "20250101T000000"})
    twin.run()
    assert account.latest(twin.on) == []
