"""The hours of a pool: what is written of what the sweep counts, and what is read of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.pools import series
from penstock.domain.pools.series import HOUR, Counts, Hour, hour_key, hour_of

NINE = datetime(2026, 1, 31, 9, tzinfo=UTC)
NONE, ONE, TWO = Counts(), Counts(1, 2, 3), Counts(4, 0, 1)


def at(minute: float) -> datetime:
    return NINE + timedelta(minutes=minute)


def noted(row: Hour | None, found: Counts, minute: float, limit: int = 5) -> Hour | None:
    return series.note(row, "target/linux", limit, found, at(minute))


def hour(*counts: tuple[float, Counts]) -> Hour:
    row = None
    for minute, found in counts:
        row = noted(row, found, minute) or row
    assert row
    return row


def test_an_hour_begins_with_what_is_counted_first() -> None:
    row = hour((1, ONE))
    assert (row.start, row.since, row.at, row.now, row.most, row.sums) == (NINE, at(1), at(1), ONE, ONE, NONE)
    assert row.key == hour_key("target/linux", NINE) == ("series#target/linux", "hour#20260131T09")
    assert row.expiry == NINE + timedelta(days=32)


def test_the_same_again_writes_nothing() -> None:
    assert noted(hour((1, ONE)), ONE, 2) is None


def test_another_limit_is_written() -> None:
    row = noted(hour((1, ONE)), ONE, 2, limit=6)
    assert row
    assert (row.limit, row.now, row.at) == (6, ONE, at(2))


@pytest.mark.parametrize("minute", [0, 1])
def test_who_counted_before_the_last_one_changes_nothing(minute: float) -> None:
    assert noted(hour((1, ONE)), TWO, minute) is None


def test_means_weigh_counts_by_their_time_and_peaks_are_by_themselves() -> None:
    row = hour((0, ONE), (15, TWO), (45, NONE))
    assert series.means(row, at(600)) == (3600, Counts((15 + 4 * 30) / 60, 30 / 60, (3 * 15 + 30) / 60))
    assert row.most == Counts(4, 2, 3)


def test_an_hour_that_is_not_over_is_counted_up_to_now() -> None:
    row = hour((0, ONE), (15, TWO))
    assert series.means(row, at(30)) == (1800, Counts(2.5, 1, 2))


def test_of_a_moment_the_mean_is_what_was_counted() -> None:
    assert series.means(hour((1, ONE)), at(1)) == (0, ONE)


def test_a_clock_that_is_behind_counts_no_time_twice() -> None:
    assert series.means(hour((0, ONE), (15, TWO)), at(10)) == (900, ONE)


def test_hours_are_those_of_utc() -> None:
    there = timezone(timedelta(hours=5, minutes=30))
    assert hour_of(datetime(2026, 1, 31, 14, 59, 7, 5, tzinfo=there)) == NINE


COUNTS = st.builds(Counts, *[st.integers(0, 5)] * 3)


@given(st.lists(st.tuples(st.integers(0, 3599), COUNTS), min_size=1, max_size=30))
def test_however_often_and_late_it_is_counted_means_are_those_of_what_stood(counted: list[tuple[int, Counts]]) -> None:
    """Sweeps that run twice, out of order or late: each count stands from its time on to the next one's."""
    row, stands = None, [counted[0]]
    for second, found in counted:
        row = series.note(row, "p", 1, found, NINE + timedelta(seconds=second)) or row
        stands += [(second, found)] if second > stands[-1][0] and found != stands[-1][1] else []
    assert row
    seconds, mean = series.means(row, NINE + 2 * HOUR)
    ends = [*[second for second, _ in stands[1:]], 3600]
    total = sum(found.held * (end - second) for (second, found), end in zip(stands, ends, strict=True))
    assert seconds == 3600 - counted[0][0]
    assert mean.held == pytest.approx(total / seconds)
    assert row.most.waiting == max(found.waiting for _, found in stands)
