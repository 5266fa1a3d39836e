"""What exists outside against the rows: what is a leftover, when a diff is due, what a diff adds up to. UNIT-1"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest

from penstock.domain import leftovers as decides
from penstock.domain.account import KEPT, AccountDiff, Checked, Leftover, Thing
from penstock.domain.leftovers import AGAIN_AFTER, LEFT_AFTER, MOST
from penstock.domain.units.comparison import COMPARE_EVERY, GRACE, STRAY_AFTER
from penstock.domain.units.units import Unit, UnitKind, UnitLease, UnitState
from penstock.kernel import rows

NOW = datetime(2026, 3, 7, 3, 1, tzinfo=UTC)
OLD, YOUNG = NOW - LEFT_AFTER, NOW - LEFT_AFTER + timedelta(seconds=1)
HOUR = timedelta(hours=1)


def id_of(time: datetime) -> str:
    return f"w-{rows.ulid(time, bytes(10))}"


WORKER = id_of(NOW - 5 * HOUR)


def unit(state: UnitState, since: datetime) -> Unit:
    lease = UnitLease("j", 0, 0, "target/linux", "1", 1)
    return Unit(
        id=WORKER, is_a=UnitKind.WORKER, maker="aws", type="linux", state=state, since=since, due=None, lease=lease
    )


def found(things: list[Thing], units: dict[str, Unit] | None = None) -> tuple[Checked, list[Leftover]]:
    return decides.find_leftovers("factory/aws", things, units or {}, {"aws", "gce"}, NOW)


def left(thing: Thing, unit: Unit | None = None) -> Leftover | None:
    checked, others = found([thing], {WORKER: unit} if unit else {})
    assert checked == Checked(1, len(others))
    return others[0] if others else None


@pytest.mark.parametrize("state", [each for each in UnitState if each is not UnitState.GONE])
def test_a_thing_whose_unit_is_not_gone_is_no_leftover(state: UnitState) -> None:
    assert left(Thing("volume", "vol-1", WORKER, NOW - 9 * HOUR), unit(state, NOW - 9 * HOUR)) is None


def test_a_thing_without_a_row_is_a_leftover_after_an_hour() -> None:
    assert left(Thing("volume", "vol-1", WORKER, YOUNG)) is None
    assert left(Thing("volume", "vol-1", WORKER, OLD)) == Leftover(
        "factory/aws", "volume", "vol-1", WORKER, OLD, "there is no row of its unit"
    )


def test_a_thing_of_a_unit_that_is_gone_has_an_hour_from_then_on() -> None:
    thing = Thing("volume", "vol-1", WORKER, NOW - 5 * HOUR)
    assert left(thing, unit(UnitState.GONE, YOUNG)) is None
    assert left(thing, unit(UnitState.GONE, OLD)).why == "its unit is gone"  # type: ignore[union-attr]


def test_what_is_made_late_for_a_unit_that_is_gone_has_its_own_hour() -> None:
    gone = unit(UnitState.GONE, NOW - 4 * HOUR)
    assert left(Thing("volume", "vol-1", WORKER, YOUNG), gone) is None


def test_a_thing_may_outlive_its_unit_until_it_says_so() -> None:
    thing = Thing("role policy", "lent/penstock", WORKER, NOW - 5 * HOUR, until=YOUNG)
    assert left(thing) is None
    assert left(replace(thing, until=OLD))


@pytest.mark.parametrize(("born", "is_left"), [(OLD, True), (YOUNG, False)])
def test_a_thing_that_does_not_say_its_age_is_as_old_as_its_units_id_at_most(born: datetime, is_left: bool) -> None:
    (checked, others) = found([Thing("network interface", "eni-1", id_of(born))])
    assert checked.left == is_left
    assert [each.made for each in others] == ([born] if is_left else [])


@pytest.mark.parametrize(("unit", "why"), [("", "its tags name no unit"), ("mine", "there is no row of its unit")])
def test_a_thing_of_unknown_age_is_a_leftover_at_once(unit: str, why: str) -> None:
    assert left(Thing("volume", "vol-1", unit)) == Leftover("factory/aws", "volume", "vol-1", unit, None, why)


def test_each_factory_of_the_site_says_itself_what_it_made_and_those_that_are_gone_are_said_by_any() -> None:
    mine, others, gone = (Thing("volume", maker, WORKER, OLD, maker=maker) for maker in ("aws", "gce", "older"))
    checked, leftovers = found([mine, others, gone])
    assert checked == Checked(2, 2)
    assert {(each.maker, each.id) for each in leftovers} == {("factory/aws", "aws"), ("factory/older", "older")}


def test_a_maker_of_which_only_a_digest_is_known_is_found_among_those_that_the_site_has() -> None:
    mine, other = (f"sha256:{sha256(name.encode()).hexdigest()[:8]}" for name in ("aws", "gce"))
    gone = "sha256:00000000"
    of = [Thing("disk", maker, WORKER, OLD, maker=maker) for maker in (mine, other, gone)]
    checked, leftovers = found(of)
    assert checked == Checked(2, 2)
    assert {(each.maker, each.id) for each in leftovers} == {("factory/aws", mine), (f"factory/{gone}", gone)}


def test_a_maker_that_is_named_is_not_taken_for_a_digest() -> None:
    named = sha256(b"aws").hexdigest()[:8]
    assert left(Thing("disk", "d", WORKER, OLD, maker=named)).maker == f"factory/{named}"  # type: ignore[union-attr]


def test_the_oldest_come_first_and_before_them_those_of_unknown_age() -> None:
    things = [Thing("volume", str(at), WORKER, NOW - at * HOUR) for at in (2, 4, 3)]
    assert [each.id for each in found([*things, Thing("volume", "?", "x")])[1]] == ["?", "4", "3", "2"]


def test_what_a_provider_calls_a_thing_is_cut() -> None:
    kept = left(Thing("k" * 999, "i" * 999, "u" * 999))
    assert kept
    assert {len(kept.kind), len(kept.id), len(kept.unit)} == {decides.TEXT_CHARS}


def test_the_bound_of_strays_is_within_the_hour() -> None:
    assert GRACE + STRAY_AFTER + 2 * COMPARE_EVERY < LEFT_AFTER


@pytest.mark.parametrize(
    ("now", "night"),
    [
        (datetime(2026, 3, 7, 2, 59, 59, tzinfo=UTC), datetime(2026, 3, 6, 3, tzinfo=UTC)),
        (datetime(2026, 3, 7, 3, tzinfo=UTC), datetime(2026, 3, 7, 3, tzinfo=UTC)),
        (datetime(2026, 3, 7, 23, 59, tzinfo=UTC), datetime(2026, 3, 7, 3, tzinfo=UTC)),
    ],
)
def test_a_night_begins_at_three(now: datetime, night: datetime) -> None:
    assert decides.night_of(now) == night


def test_the_first_diff_waits_for_the_first_hour_of_a_night() -> None:
    night = datetime(2026, 3, 7, 3, tzinfo=UTC)
    times = [night - timedelta(seconds=1), night, night + timedelta(minutes=59), night + HOUR]
    assert [decides.is_due(None, time) for time in times] == [False, True, True, False]


def test_a_diff_is_due_each_night_once_however_late_and_not_while_one_goes_on() -> None:
    first = decides.begin(None, NOW)
    done = decides.finish(first, NOW)
    next_night = decides.night_of(NOW) + decides.PERIOD
    assert not decides.is_due(replace(done, began=next_night), next_night + HOUR)
    assert not decides.is_due(done, NOW + 20 * HOUR)
    assert decides.is_due(done, next_night)
    assert decides.is_due(done, next_night + 20 * HOUR)
    assert not decides.is_due(first, next_night)


def test_a_night_has_one_diff_and_those_that_are_asked_for_have_their_own() -> None:
    assert decides.begin(None, NOW).key == decides.begin(None, NOW + 9 * HOUR).key
    asked = decides.ask(None, NOW, "root")
    assert asked.key.sk == "diff#20260307T030100" > decides.begin(None, NOW).key.sk == "diff#20260307T030000"
    assert (asked.by, asked.began, asked.expiry) == ("root", NOW, NOW + KEPT)


def test_a_diff_whose_message_was_lost_is_sent_again() -> None:
    begun = decides.begin(None, NOW)
    assert decides.is_silent(begun, NOW)
    out = decides.sent(begun, NOW)
    assert out.tries == 1
    assert not decides.is_silent(out, NOW + AGAIN_AFTER - timedelta(seconds=1))
    assert decides.is_silent(out, NOW + AGAIN_AFTER)
    assert not decides.is_silent(decides.finish(out, NOW), NOW + AGAIN_AFTER)


def leftover(number: int, made: datetime | None = OLD, **more: Any) -> Leftover:
    return Leftover(
        **({"maker": "factory/aws", "kind": "volume", "id": f"vol-{number:05}"} | more), unit="", made=made, why=""
    )


def with_maker(diff: AccountDiff, maker: str, things: int, others: list[Leftover]) -> AccountDiff:
    return decides.with_maker(diff, maker, Checked(things, len(others)), others, NOW)


def test_a_diff_adds_up_and_keeps_the_oldest() -> None:
    out = decides.sent(decides.begin(None, NOW), NOW - HOUR)
    many = [leftover(number) for number in range(3 * MOST)]
    older = leftover(99999, OLD - HOUR)
    diff = with_maker(with_maker(out, "factory/aws", 500, many), "well/s3", 7, [older])
    assert (diff.things, diff.left, diff.unlisted) == (507, 3 * MOST + 1, 0)
    assert diff.leftovers == (older, *many[: MOST - 1])
    assert (diff.tries, diff.again) == (0, NOW + AGAIN_AFTER)


def test_a_thing_that_two_list_is_counted_once() -> None:
    diff = with_maker(decides.begin(None, NOW), "factory/a", 1, [leftover(1)])
    both = with_maker(diff, "factory/b", 2, [leftover(1), leftover(1, kind="spot request"), leftover(2)])
    assert (both.things, both.left, len(both.leftovers)) == (3, 3, 3)


def test_a_list_that_cannot_be_had_is_no_zero() -> None:
    diff = decides.with_maker(decides.begin(None, NOW), "well/pg", decides.unlisted("x" * 9999), [], NOW)
    assert diff.unlisted == 1
    assert len(diff.makers["well/pg"].why or "") == 500


def test_a_diff_knows_when_everything_was_listed_last() -> None:
    first = decides.begin(None, NOW)
    failed = decides.finish(decides.with_maker(first, "well/pg", decides.unlisted("no"), [], NOW), NOW)
    assert failed.whole == NOW
    second = decides.ask(failed, NOW + HOUR, "root")
    assert second.whole == decides.begin(failed, NOW + HOUR).whole == NOW
    assert decides.finish(second, NOW + 2 * HOUR).whole == NOW + HOUR
    assert decides.ask(None, NOW + HOUR, "root").whole == NOW + HOUR
