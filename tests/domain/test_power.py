"""Hosts that are switched on and off: when somebody is asked, how often, and when an agent may come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from penstock.domain.pools.choices import Choice
from penstock.domain.pools.grants import Stock
from penstock.domain.pools.pools import Claim, Pool
from penstock.domain.site.site import Maker
from penstock.domain.units import power
from penstock.domain.units.power import Power, PowerOrder
from penstock.domain.units.units import CLEAN_WITHIN, STEP_WITHIN
from penstock.kernel.rows import Key
from tests.domain.helpers import MINUTE, NOW

BOOT = 10 * MINUTE
ON = power.switch_on(None, "bench-7", NOW, BOOT)
ASKED = power.begin(ON, NOW)
DONE = power.confirm(ASKED, NOW, BOOT)
THERE = power.arrive(DONE, NOW + MINUTE)
OFF = power.switch_off(THERE, NOW + 5 * MINUTE)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, None),
        ({"power": True}, None),
        ({"url": "u"}, None),
        ({"url": "u", "power": False}, None),
        ({"url": "u", "power": True}, Power()),
        ({"url": "u", "power": {}}, Power()),
        ({"url": "u", "power": {"idle": "30m"}}, Power(30 * MINUTE)),
        ({"url": "u", "power": {"idle": 90}}, Power(1.5 * MINUTE)),
        ({"url": "u", "power": {"idle": "soon"}}, Power()),
    ],
)
def test_what_a_factorys_settings_say(settings: Mapping[str, Any], said: Power | None) -> None:
    assert power.power_of(Maker("lab", "hosts", settings)) == said


def test_a_first_order_is_due_until_its_message_is_taken() -> None:
    assert PowerOrder(
        host="bench-7", is_on=True, serial=1, since=NOW, due=NOW + STEP_WITHIN, until=NOW + BOOT
    ) == ON  # fmt: skip
    assert ON.key == Key("host#bench-7", "power")
    assert ON.deadline == NOW + STEP_WITHIN
    assert ON.is_coming
    assert not ON.is_shut


def test_a_new_order_has_nothing_of_the_one_before() -> None:
    later = NOW + 20 * MINUTE
    slow = power.wait(power.begin(power.fail(ASKED, "no", NOW), NOW), "soon", 5, NOW)
    again = power.switch_on(power.fail(power.confirm(slow, NOW, BOOT), "no", NOW), "bench-7", later, BOOT)
    assert again == replace(ON, serial=2, since=later, due=later + STEP_WITHIN, until=later + BOOT, tries=1)
    off = power.switch_off(power.fail(DONE, "no", NOW), later)
    assert off == PowerOrder(
        host="bench-7", is_on=False, serial=2, since=later, due=later + STEP_WITHIN, is_shut=True
    )  # fmt: skip


def test_what_is_confirmed_has_failed_no_more() -> None:
    failed = power.fail(power.begin(power.switch_off(THERE, NOW), NOW), "no", NOW)
    again = power.switch_on(failed, "bench-7", NOW, BOOT)
    shut = power.fail(again, "no", NOW)
    done = power.confirm(shut, NOW + MINUTE, BOOT)
    assert (done.tries, done.again, done.why, done.due, done.until) == (0, None, None, NOW + BOOT + MINUTE, done.due)
    slow = power.wait(shut, "soon", 5, NOW)
    assert (slow.again, slow.is_coming, shut.is_coming) == (None, True, False)


def test_serials_only_grow() -> None:
    again = power.switch_on(OFF, "bench-7", NOW + 6 * MINUTE, BOOT)
    assert [each.serial for each in (ON, ASKED, DONE, THERE, OFF, again)] == [1, 1, 1, 1, 2, 3]


def test_a_host_is_shut_from_the_order_to_switch_it_off_until_an_order_is_confirmed() -> None:
    """JOB-2"""
    assert OFF.is_shut
    assert OFF.until is None
    assert not OFF.is_coming
    later = NOW + 6 * MINUTE
    with pytest.raises(ValueError, match="bench-7 may still lose its power"):
        power.arrive(OFF, later)
    again = power.switch_on(OFF, "bench-7", later, BOOT)
    assert again.is_shut
    assert power.begin(again, later).is_shut
    assert power.fail(again, "no", later).is_shut
    assert power.wait(again, "soon", 5, later).is_shut
    assert not power.confirm(again, later, BOOT).is_shut
    off = power.confirm(OFF, later, BOOT)
    assert (off.is_shut, off.due, off.until, off.done) == (False, None, None, later)
    assert not power.settle(OFF).is_shut


def test_a_host_that_comes_is_at_rest_whatever_was_asked_for() -> None:
    assert (THERE.due, THERE.until, THERE.again, THERE.is_coming) == (None, None, None, False)
    assert power.arrive(THERE, NOW + MINUTE) == THERE
    by_hand = power.arrive(power.confirm(OFF, NOW, BOOT), NOW + 9 * MINUTE)
    assert (by_hand.is_on, by_hand.since) == (True, NOW + 9 * MINUTE)
    assert power.arrive(DONE, NOW).until is None
    late = power.arrive(power.miss(power.fail(ASKED, "no", NOW), NOW), NOW)
    assert (late.missed, late.tries, late.why, late.again) == (0, 0, None, None)


@pytest.mark.parametrize(
    ("order", "minutes", "is_next"),
    [(ON, 0, True), (ASKED, 0, False), (ASKED, 2.9, False), (ASKED, 3, True), (DONE, 9.9, False), (DONE, 10, True),
     (THERE, 99, False), (ASKED, 3 - 2 / 60, True), (ASKED, 3 - 2.01 / 60, False)],
)  # fmt: skip
def test_when_the_next_step_is(order: PowerOrder, minutes: float, is_next: bool) -> None:
    assert power.is_next(order, NOW + minutes * MINUTE) is is_next


def test_a_call_is_over_before_another_begins() -> None:
    assert ASKED.due == NOW + CLEAN_WITHIN


@pytest.mark.parametrize(
    ("order", "minutes", "is_missed"),
    [
        (DONE, 9.9, False),
        (DONE, 10, True),
        (DONE, 10 - 2 / 60, True),
        (DONE, 10 - 2.01 / 60, False),
        (ASKED, 10, True),
        (ON, 10, False),
        (OFF, 99, False),
        (replace(power.begin(OFF, NOW), is_on=True, until=NOW + BOOT), 99, False),
    ],
)
def test_a_host_that_does_not_come_is_missed(order: PowerOrder, minutes: float, is_missed: bool) -> None:
    """Not before somebody was asked; and not while it is shut: then it could not come."""
    assert power.is_missed(order, NOW + minutes * MINUTE) is is_missed


def test_a_host_that_does_not_come_is_left_alone_for_a_while() -> None:
    missed = power.miss(DONE, NOW + BOOT)
    assert (missed.missed, missed.due, missed.again) == (1, None, NOW + BOOT + MINUTE)
    assert missed.why == "it was switched on at 2026-01-02 03:04:05Z, and no agent came"
    slow = power.miss(power.wait(ASKED, "the fuse is cold", 5, NOW), NOW + BOOT)
    assert slow.why == "it was not switched on in time, and no agent came: the fuse is cold"
    assert not missed.is_shut
    anew = power.switch_on(missed, "bench-7", NOW + 12 * MINUTE, BOOT)
    assert anew.is_shut, "its controller may switch it off first"
    assert (anew.missed, anew.serial, anew.again) == (1, 2, None)
    assert power.switch_off(missed, NOW).missed == 1
    assert power.switch_on(replace(power.switch_off(missed, NOW), tries=3), "bench-7", NOW, BOOT).tries == 0


@pytest.mark.parametrize(("failures", "minutes"), [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (99, 60)])
def test_pauses_grow(failures: int, minutes: int) -> None:
    assert power.pause(failures) == minutes * MINUTE


def test_a_host_counts_as_coming_only_until_it_was_to_come() -> None:
    """QUEUE-1: one that is shut is asked for until that is confirmed, however long its controller takes."""
    shut = power.begin(power.switch_on(OFF, "bench-7", NOW, BOOT), NOW)
    early = power.wait(shut, "soon", 30, NOW + BOOT - MINUTE)
    late = power.wait(early, "soon", 30, NOW + BOOT)
    assert (early.is_coming, late.is_coming, late.due) == (True, False, NOW + BOOT + timedelta(seconds=30))
    assert not power.may_be_switched_on(late, NOW + 2 * BOOT), "it is asked for already"
    assert power.wait(replace(late, is_on=False, until=None), "soon", 30, NOW + BOOT).again is None


def test_what_failed_is_asked_for_again_if_somebody_waits_or_by_itself_while_it_is_shut() -> None:
    failed = power.fail(ASKED, "no answer", NOW)
    assert (failed.tries, failed.due, failed.again, failed.why) == (1, None, NOW + MINUTE, "no answer")
    assert power.fail(failed, "no", NOW).again == NOW + 2 * MINUTE
    off = power.fail(power.begin(OFF, NOW), "no answer", NOW)
    assert (off.due, off.again) == (NOW + MINUTE, NOW + MINUTE)


@pytest.mark.parametrize(("named", "minutes"), [(None, 1), (30, 1), (300, 5)])
def test_a_longer_pause_that_the_controller_names_is_kept(named: int | None, minutes: int) -> None:
    after = timedelta(seconds=named) if named else None
    assert power.fail(ASKED, "slow down", NOW, after).again == NOW + minutes * MINUTE


def test_what_takes_a_while_is_asked_for_when_the_controller_says() -> None:
    waits = power.wait(ASKED, "x" * 999, 90, NOW)
    assert (waits.due, waits.why, waits.is_coming) == (NOW + timedelta(seconds=90), "x" * 300, True)
    assert power.wait(ASKED, None, 90, NOW).why is None


def test_what_nobody_carries_out_any_more_rests() -> None:
    rests = power.settle(power.fail(OFF, "no answer", NOW))
    assert (rests.due, rests.again, rests.is_shut, rests.serial) == (None, None, False, 2)
    assert power.settle(DONE).until is None


def claim(labels: str = "") -> Claim:
    choices = (Choice(labels),) if labels else ()
    return Claim(
        pool="p", job="J", attempt=1, step=0, count=1, pools=("p",), priority=0, since=NOW, takes=({"p": 1},),
        choices=choices,
    )  # fmt: skip


RACKS: dict[str, dict[str, str]] = {"a": {"rack": "3"}, "b": {"rack": "3", "gpu": "1"}, "c": {"rack": "4"}}
POOL = Pool(name="p", names=("a", "b", "c"), labels=RACKS, hosts=True, limit=3)


FAILED = power.fail(ASKED, "no", NOW)
SHUT = power.begin(power.switch_on(power.miss(DONE, NOW), "a", NOW, BOOT), NOW)


@pytest.mark.parametrize(
    ("orders", "wanted", "at", "chosen"),
    [
        ({}, 0, NOW, []),
        ({}, 2, NOW, ["a", "b"]),
        ({}, 9, NOW, ["a", "b", "c"]),
        ({"a": ON}, 1, NOW, []),
        ({"b": ON}, 2, NOW, ["a"]),
        ({"a": ON, "b": ASKED, "c": DONE}, 9, NOW, []),
        ({"a": FAILED}, 1, NOW, ["b"]),
        ({"a": FAILED}, 9, NOW, ["b", "c"]),
        ({"a": FAILED}, 9, NOW + MINUTE, ["b", "c", "a"]),
        ({"a": SHUT}, 1, NOW, []),
        ({"a": power.fail(SHUT, "no", NOW)}, 1, NOW + 9 * MINUTE, ["b"]),
        ({"a": power.wait(power.fail(SHUT, "no", NOW), "soon", 5, NOW)}, 1, NOW, []),
        ({"a": power.confirm(power.fail(SHUT, "no", NOW), NOW, BOOT)}, 1, NOW, []),
        ({"a": power.miss(DONE, NOW), "b": power.fail(FAILED, "no", NOW)}, 2, NOW + 5 * MINUTE, ["c", "a"]),
        ({"a": OFF}, 1, NOW, ["a"]),
        ({"a": power.fail(OFF, "no", NOW)}, 3, NOW, ["b", "c", "a"]),
        ({"a": THERE}, 1, NOW, ["a"]),
    ],
)
def test_which_hosts_are_switched_on(orders: dict[str, PowerOrder], wanted: int, at: Any, chosen: list[str]) -> None:
    assert power.chosen([claim()] * wanted, Stock(POOL, ()), [], ["c", "a", "b"], orders, at) == chosen


@pytest.mark.parametrize(
    ("labels", "there", "away", "orders", "chosen"),
    [
        ([""], ["a"], "bc", {}, []),
        (["", ""], ["a"], "bc", {}, ["b"]),
        (["rack == 4"], [], "abc", {}, ["c"]),
        (["rack == 4"], ["a"], "bc", {}, ["c"]),
        (["rack == 4"], ["c"], "ab", {}, []),
        (["rack == 4", "rack == 4"], [], "abc", {}, ["c"]),
        (["rack == 4"], [], "abc", {"c": FAILED}, []),
        (["rack == 3"], [], "abc", {"a": FAILED}, ["b"]),
        (["gpu", ""], [], "abc", {}, ["b", "a"]),
        (["rack == 3", "gpu"], ["b"], "ac", {}, ["a"]),
        (["rack == 3", "rack == 3"], [], "abc", {"b": ON}, ["a"]),
        (["rack == 4", ""], [], "abc", {"c": FAILED}, ["a"]),
        (["rack == 5"], [], "abc", {}, []),
    ],
)
def test_who_chooses_gets_a_host_that_fits_switched_on(
    labels: list[str], there: list[str], away: str, orders: dict[str, PowerOrder], chosen: list[str]
) -> None:
    """A host that is there goes to who can use it, and another is switched on for the rest."""
    assert power.chosen([claim(each) for each in labels], Stock(POOL, ()), there, list(away), orders, NOW) == chosen


IDLE = power.rest(None, "bench-7", 4, 2 * MINUTE, NOW)
assert IDLE


def test_since_when_a_host_is_idle() -> None:
    assert (IDLE.is_on, IDLE.serial, IDLE.idle, IDLE.fence, IDLE.due) == (True, 0, NOW, 4, None)
    later = NOW + MINUTE
    assert power.rest(THERE, "bench-7", 5, 2 * MINUTE, later) == replace(THERE, idle=later, fence=5)
    assert power.rest(THERE, "bench-7", 0, 2 * MINUTE, later) == replace(THERE, idle=later)
    assert power.arrive(IDLE, NOW).idle is None


def test_a_host_is_switched_off_when_it_was_idle_for_long_enough() -> None:
    assert power.rest(IDLE, "bench-7", 4, 2 * MINUTE, NOW + 1.9 * MINUTE) is None
    end = NOW + 2 * MINUTE
    assert power.rest(IDLE, "bench-7", 4, 2 * MINUTE, end) == power.switch_off(IDLE, end)
    assert power.rest(IDLE, "bench-7", 5, 2 * MINUTE, end) == replace(IDLE, idle=end, fence=5), "it had a job"
    assert power.switch_off(IDLE, end).idle is None


@pytest.mark.parametrize(
    ("order", "away", "minutes", "is_left_on"),
    [
        (THERE, None, 1.9, False),
        (THERE, None, 2, True),
        (THERE, NOW - MINUTE, 2, True),
        (THERE, NOW + MINUTE, 2.9, False),
        (THERE, NOW + MINUTE, 3, True),
        (DONE, None, 60, False),
        (power.miss(DONE, NOW), None, 60, True),
        (IDLE, NOW, 60, False),
        (FAILED, None, 1.9, False),
        (FAILED, None, 2, True),
        (power.miss(ASKED, NOW), None, 60, True),
        (power.confirm(OFF, NOW, BOOT), None, 60, False),
    ],
)
def test_a_host_that_was_switched_on_and_is_away_for_so_long_is_left_on(
    order: PowerOrder, away: datetime | None, minutes: float, is_left_on: bool
) -> None:
    """Also if its controller never said so. Not one that is awaited still, or that somebody else switched on."""
    assert power.is_left_on(order, away, 2 * MINUTE, NOW + minutes * MINUTE) is is_left_on


@pytest.mark.parametrize(
    ("order", "minutes", "is_left_on"),
    [
        (ON, 2.9, False),
        (ON, 3, True),
        (ASKED, 60, True),
        (FAILED, 2, True),
        (IDLE, 60, False),
        (power.confirm(power.begin(OFF, NOW), NOW, BOOT), 60, False),
    ],
)
def test_a_host_that_came_is_left_on_if_an_order_switched_it_on(
    order: PowerOrder, minutes: float, is_left_on: bool
) -> None:
    """Nobody ordered the one that is only idle, and somebody else switched on the one that was off."""
    came = power.arrive(order, NOW + MINUTE)
    assert power.is_left_on(came, None, 2 * MINUTE, NOW + minutes * MINUTE) is is_left_on


@pytest.mark.parametrize(
    ("order", "minutes", "is_left_on"),
    [
        (ON, 60, False),
        (ASKED, 1.9, False),
        (ASKED, 2, True),
        (OFF, 6.9, False),
        (OFF, 7, True),
        (power.confirm(OFF, NOW, BOOT), 60, False),
    ],
)
def test_of_a_settled_order_a_host_is_left_on_unless_it_was_never_asked_for_or_is_off(
    order: PowerOrder, minutes: float, is_left_on: bool
) -> None:
    rests = power.settle(order)
    assert power.is_left_on(rests, None, 2 * MINUTE, NOW + minutes * MINUTE) is is_left_on


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (THERE, None),
        (IDLE, None),
        (ON, "being switched on since 2026-01-02 03:04:05Z"),
        (power.wait(ASKED, "cold", 5, NOW), "being switched on since 2026-01-02 03:04:05Z: cold"),
        (DONE, "switched on at 2026-01-02 03:04:05Z, and expected by 2026-01-02 03:14:05Z"),
        (
            FAILED,
            "to be switched on since 2026-01-02 03:04:05Z, which failed: no; asked again from 2026-01-02 03:05:05Z",
        ),
        (OFF, "being switched off since 2026-01-02 03:09:05Z"),
        (power.confirm(OFF, NOW + 6 * MINUTE, BOOT), "switched off since 2026-01-02 03:10:05Z"),
    ],
)
def test_an_order_for_people(order: PowerOrder, said: str | None) -> None:
    assert power.describe(order) == said


@pytest.mark.parametrize(
    ("order", "is_given_up"),
    [
        (None, False),
        (ON, False),
        (OFF, False),
        (replace(ON, missed=1), True),
        (replace(ON, again=NOW + MINUTE), True),
        (replace(ON, again=NOW), False),
    ],
)
def test_who_did_not_come_is_given_up_and_so_is_who_is_left_alone_for_now(
    order: PowerOrder | None, is_given_up: bool
) -> None:
    assert power.is_given_up(order, NOW) is is_given_up
