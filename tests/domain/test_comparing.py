"""What follows from a list and our rows: at once, nothing. UNIT-1"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from penstock.aws.dynamodb import item_bytes
from penstock.domain.units import comparison
from penstock.domain.units.comparison import GRACE, OUTAGE, STRAY_AFTER, Comparison, LastSweep, Verdict
from penstock.domain.units.units import Creation, Unit, UnitKind, UnitLease, UnitState
from penstock.kernel import limits
from tests.rows import changed

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
LEASE = timedelta(minutes=2)
MINUTE = timedelta(minutes=1)
UNIT = Unit(
    id="w-1",
    is_a=UnitKind.WORKER,
    maker="aws",
    type="linux",
    state=UnitState.READY,
    lease=UnitLease(job="j", attempt=1, order=0, pool="target/linux", slot="1", fence=1),
    since=NOW,
    creation=Creation(made=NOW),
    due=NOW,
)


def compare(row: Comparison | None, listed: list[str], *units: Unit, at: float = 0, is_quiet: bool = False) -> Verdict:
    rows = {unit.id: unit for unit in units}
    start = NOW + timedelta(minutes=at)
    return comparison.compare(row, "factory/aws", frozenset(listed), rows, start, LEASE, is_quiet=is_quiet)


def test_a_stray_is_destroyed_when_it_is_listed_for_long_enough() -> None:
    first = compare(None, ["w-9", "w-9"])
    assert (first.destroy, dict(first.row.strays)) == ((), {"w-9": NOW})
    assert compare(first.row, ["w-9"], at=4).destroy == ()
    assert compare(first.row, ["w-9"], at=5).destroy == ("w-9",)


def test_a_stray_that_got_its_row_or_vanished_is_none() -> None:
    first = compare(None, ["w-1", "w-9"])
    second = compare(first.row, ["w-1"], UNIT, at=9)
    assert (second.destroy, dict(second.row.strays)) == ((), {})


def test_what_a_row_says_is_gone_is_a_stray_at_once() -> None:
    assert compare(None, ["w-1"], replace(UNIT, state=UnitState.GONE)).destroy == ("w-1",)


def test_after_an_outage_things_are_noted_and_nothing_follows() -> None:
    seen = compare(None, ["w-1", "w-9"], UNIT).row
    for at in (10, 20, 30, 40):
        told = compare(seen, ["w-9"], UNIT, at=at, is_quiet=True)
        assert (told.destroy, told.lost) == ((), ())
        seen = told.row
    told = compare(seen, ["w-9"], UNIT, at=41)
    assert (told.destroy, told.lost) == (("w-9",), (UNIT,))


@pytest.mark.parametrize("state", [UnitState.READY, UnitState.IDLE, UnitState.CREATING])
def test_a_unit_is_lost_when_several_lists_in_a_row_do_not_have_it(state: UnitState) -> None:
    unit = replace(UNIT, state=state)
    row = compare(None, ["w-1"], unit).row
    found = []
    for at in (3, 6, 9):
        told = compare(row, [], unit, at=at)
        found.append(told.lost)
        row = told.row
    assert found == [(), (), (unit,)]


def test_several_lists_within_a_short_time_are_not_enough() -> None:
    row = compare(None, ["w-1"], UNIT).row
    for at in (0.1, 0.2, 0.3, 0.4):
        told = compare(row, [], UNIT, at=at)
        assert told.lost == ()
        row = told.row


def test_once_listed_again_it_begins_anew() -> None:
    row = compare(None, ["w-1"], UNIT).row
    for at, listed in ((3, []), (6, []), (9, ["w-1"]), (12, []), (15, [])):
        told = compare(row, listed, UNIT, at=at)
        assert told.lost == ()
        row = told.row
    assert compare(row, [], UNIT, at=18).lost


def test_a_heartbeat_that_is_newer_than_the_list_beats_it() -> None:
    row = compare(None, ["w-1"], UNIT).row
    for at in (3, 6, 9, 12):
        heard = replace(UNIT, due=NOW + timedelta(minutes=at) + LEASE)
        told = compare(row, [], heard, at=at)
        assert (told.lost, told.row.seen, dict(told.row.missing)) == ((), ("w-1",), {})
        row = told.row


@pytest.mark.parametrize(
    "unit",
    [
        replace(UNIT, state=UnitState.CREATING, creation=replace(UNIT.creation, made=None)),
        replace(UNIT, state=UnitState.DIRTY),
        replace(UNIT, state=UnitState.CLEANING),
        replace(UNIT, state=UnitState.GONE),
    ],
)
def test_what_is_not_there_yet_or_going_is_not_missed(unit: Unit) -> None:
    row = compare(None, ["w-1"], UNIT).row
    for at in (3, 6, 9, 12):
        told = compare(row, [], unit, at=at)
        assert (told.lost, dict(told.row.missing)) == ((), {})
        row = told.row


def test_what_was_never_listed_is_not_missed() -> None:
    """A lock exists nowhere outside; its well lists nothing, ever."""
    resource = replace(UNIT, id="r-1", is_a=UnitKind.RESOURCE, due=None)
    row = None
    for at in (0, 3, 6, 9, 12):
        told = compare(row, [], resource, at=at)
        assert (told.lost, dict(told.row.missing)) == ((), {})
        row = told.row


def test_a_list_that_could_not_be_had_changes_nothing() -> None:
    good = compare(None, ["w-1", "w-9"], UNIT).row
    bad = comparison.listing_failed(good, "factory/aws", "no leave", NOW + MINUTE)
    assert replace(bad, tried=NOW, failures=0, why=None) == good
    assert (bad.failures, bad.why, bad.at) == (1, "no leave", NOW)
    assert comparison.listing_failed(None, "factory/aws", "no leave", NOW).at is None
    assert compare(bad, ["w-1"], UNIT, at=3).row.failures == 0


def test_of_a_list_that_began_and_of_which_nothing_came_the_next_knows() -> None:
    """UNIT-1: its driver may have ended the process."""
    good = compare(None, ["w-1", "w-9"], UNIT).row
    first = comparison.listing_began(good, "factory/aws", NOW + MINUTE)
    assert first == replace(good, tried=NOW + MINUTE, is_open=True)
    again = comparison.listing_began(first, "factory/aws", NOW + 4 * MINUTE)
    assert again == replace(first, tried=NOW + 4 * MINUTE, failures=1, why=comparison.NOTHING_CAME)
    failed = comparison.listing_failed(again, "factory/aws", "no leave", NOW + 4 * MINUTE)
    assert (failed.failures, failed.why, failed.is_open) == (2, "no leave", False)
    done = compare(again, ["w-1"], UNIT, at=4).row
    assert (done.failures, done.why, done.is_open) == (0, None, False)
    fresh = comparison.listing_began(None, "factory/aws", NOW)
    assert (fresh.tried, fresh.at, fresh.failures, fresh.is_open) == (NOW, None, 0, True)
    assert [comparison.is_doubtful(row) for row in (None, good, done, fresh, failed)] == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_it_is_made_every_few_minutes() -> None:
    row = compare(None, []).row
    assert comparison.is_due(None, NOW)
    assert not comparison.is_due(row, NOW + 2 * MINUTE)
    assert comparison.is_due(row, NOW + 3 * MINUTE)
    assert not comparison.is_due(compare(row, [], at=3).row, NOW + 5 * MINUTE), "counted from the last one"
    assert row.key == comparison.comparison_key("factory/aws")


def test_lists_of_which_nothing_comes_are_requested_less_and_less_often() -> None:
    row, pauses = compare(None, []).row, list[int]()
    for _ in range(6):
        row = comparison.listing_began(row, "factory/aws", NOW)
        pauses.append(next(m for m in range(99) if comparison.is_due(row, NOW + m * MINUTE)))
    assert pauses == [3, 6, 12, 24, 24, 24]
    failed = comparison.listing_failed(row, "factory/aws", "no leave", NOW)
    assert comparison.is_due(failed, NOW + 3 * MINUTE), "it answered"
    assert comparison.is_due(comparison.listing_began(failed, "factory/aws", NOW), NOW + 3 * MINUTE)


def test_a_sweep_knows_when_there_was_none_for_long() -> None:
    first = comparison.begin_sweep(None, NOW)
    assert first == LastSweep(at=NOW, resumed=NOW)
    second = comparison.begin_sweep(first, NOW + MINUTE)
    assert second == LastSweep(at=NOW + MINUTE, resumed=NOW)
    late = NOW + MINUTE + OUTAGE + MINUTE
    assert comparison.begin_sweep(second, late).resumed == late
    assert first.key == comparison.SWEEP_KEY
    assert GRACE > STRAY_AFTER


@pytest.mark.parametrize(
    ("changes", "was_heard"),
    [
        ({}, True),
        ({"state": UnitState.IDLE, "until": NOW}, True),
        ({"state": UnitState.IDLE}, False),
        ({"due": NOW + LEASE - timedelta(seconds=1)}, False),
        ({"due": None}, False),
        ({"is_a": UnitKind.RESOURCE}, False),
        ({"state": UnitState.CREATING}, False),
    ],
)
def test_only_a_worker_with_an_agent_is_heard(changes: dict[str, object], was_heard: bool) -> None:
    unit = changed(UNIT, **{"due": NOW + LEASE, **changes})  # type: ignore[arg-type]
    assert comparison.was_in_contact(unit, NOW, LEASE) is was_heard


def test_of_what_is_absent_only_what_was_heard_still_counts_as_seen() -> None:
    other = replace(UNIT, id="w-2", due=NOW + MINUTE * 3 + LEASE)
    row = compare(None, ["w-1", "w-2"], UNIT, other).row
    told = compare(row, [], UNIT, other, at=3)
    assert (told.row.seen, list(told.row.missing)) == (("w-2",), ["w-1"])


def test_what_is_gone_and_listed_is_not_seen() -> None:
    assert compare(None, ["w-1"], replace(UNIT, state=UnitState.GONE)).row.seen == ()


@pytest.mark.parametrize(("times", "lost"), [((0, 5), ()), ((0, 1, 5), (UNIT,)), ((0, 1, 4.9), ())])
def test_a_unit_is_lost_after_so_many_lists_over_so_long(times: tuple[float, ...], lost: tuple[Unit, ...]) -> None:
    row, told = compare(None, ["w-1"], UNIT).row, None
    for at in times:
        told = compare(row, [], UNIT, at=at)
        row = told.row
    assert told
    assert told.lost == lost


@pytest.mark.parametrize(("passed", "resumes"), [(OUTAGE, False), (OUTAGE + timedelta(seconds=1), True)])
def test_a_pause_of_just_an_outage_is_none_yet(passed: timedelta, resumes: bool) -> None:
    row = comparison.begin_sweep(LastSweep(at=NOW, resumed=NOW), NOW + passed)
    assert (row.resumed == NOW + passed) is resumes


def crowd(count: int) -> list[Unit]:
    return [changed(UNIT, id=f"w-{number:026d}") for number in range(count)]


@pytest.mark.parametrize("count", [5_000, 20_000])
def test_a_makers_row_fits_into_an_item_however_many_units_differ(count: int) -> None:
    """P9: a row with 5,000 missing ids was over 400 KB."""
    units = crowd(count)
    row = compare(None, [f"w-x{number:026d}" for number in range(count)] + [unit.id for unit in units], *units).row
    row = compare(row, [f"w-x{number:026d}" for number in range(count)], *units, at=9).row
    assert len(row.missing) + row.more_missing > 4_000
    assert len(row.strays) + row.more_strays == count
    assert min(len(row.strays), len(row.missing)) > 1_000
    size = item_bytes(row)
    assert 250_000 < size < limits.ITEM_BYTES - 20_000


def test_ids_that_are_long_or_strange_take_the_room_of_many() -> None:
    row = compare(None, [f"\0{number:01000d}" for number in range(1000)]).row
    assert len(row.strays) + row.more_strays == 1000
    assert item_bytes(row) < limits.ITEM_BYTES


@pytest.mark.parametrize(("less", "kept"), [(0, ["w-1", "w-2"]), (1, ["w-1"])])
def test_a_row_is_filled_up_to_its_last_byte(monkeypatch: pytest.MonkeyPatch, less: int, kept: list[str]) -> None:
    room = sum(len(f'"{id}"') + comparison.STRAY_EXTRA for id in ("w-1", "w-2"))
    monkeypatch.setattr(comparison, "STRAYS_BYTES", room - less)
    row = compare(None, ["w-1", "w-2"]).row
    assert (list(row.strays), row.more_strays) == (kept, 2 - len(kept))


def test_what_does_not_fit_is_dealt_with_later_and_not_forgotten() -> None:
    """Of 4,000 units that vanished at once, each is lost in the end; and those that were noticed first go first."""
    units = {unit.id: unit for unit in crowd(4_000)}
    row, at, lost = compare(None, [*units], *units.values()).row, 0, 0
    while units and at < 100:
        at += 3
        told = compare(row, [], *units.values(), at=at)
        row = told.row
        assert len(row.missing) + row.more_missing == len(units)
        for unit in told.lost:
            del units[unit.id]
        lost += len(told.lost)
    assert (lost, len(units)) == (4_000, 0)


def test_strays_that_do_not_fit_are_destroyed_later() -> None:
    strays = {f"w-{number:026d}" for number in range(3_000)}
    row = None
    for at in range(0, 60, 3):
        told = compare(row, sorted(strays), at=at)
        row = told.row
        assert len(row.strays) + row.more_strays == len(strays)
        strays -= set(told.destroy)
    assert strays == set()
