"""What a worker's journal keeps of console output."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.domain.units.maintenance import (
    CONSOLE,
    CONSOLE_AGAIN,
    CONSOLE_CHARS,
    is_console_fresh,
    may_have_console,
    with_console,
)
from penstock.domain.units.units import JOURNAL_CHARS, JOURNAL_ENTRIES, UnitState, add_entry
from penstock.kernel.errors import Refused
from tests.domain.helpers import MINUTE, NOW, unit


def test_only_the_newest_output_is_kept_whole_and_other_entries_as_they_are() -> None:
    row = with_console(add_entry(unit(), NOW, "ordered\nfrom here"), "ada", "one\ntwo", NOW)
    row = with_console(add_entry(row, NOW, "its agent said hello"), "bob", "three", NOW + MINUTE)
    assert [entry.what for entry in row.journal.entries] == [
        "ordered\nfrom here",
        f"{CONSOLE}ada",
        "its agent said hello",
        f"{CONSOLE}bob\nthree",
    ]
    assert row.journal.entries[-1].time == NOW + MINUTE


def test_the_journal_stays_bounded_and_its_entries_keep_their_numbers() -> None:
    row = unit()
    for at in range(2 * JOURNAL_ENTRIES):
        row = with_console(row, "ada", "x" * 9000, NOW + at * MINUTE)
    assert sum(len(entry.what) for entry in row.journal.entries) < JOURNAL_ENTRIES * 100 + CONSOLE_CHARS
    assert [seq for seq, _ in row.journal.after(0)] == [*range(JOURNAL_ENTRIES + 1, 2 * JOURNAL_ENTRIES + 1)]
    assert len(with_console(unit(), "a" * 900, "x" * 9000, NOW).journal.entries[0].what) == (
        JOURNAL_CHARS + 1 + CONSOLE_CHARS
    )


def test_output_is_fresh_for_some_seconds() -> None:
    assert not is_console_fresh(add_entry(unit(), NOW, "ordered"), NOW)
    row = with_console(unit(), "ada", "one", NOW)
    assert is_console_fresh(row, NOW + CONSOLE_AGAIN)
    assert not is_console_fresh(row, NOW + CONSOLE_AGAIN + timedelta(milliseconds=1))


def test_a_worker_that_is_gone_has_no_console() -> None:
    may_have_console(unit(state=UnitState.DIRTY))
    with pytest.raises(Refused, match="is gone since"):
        may_have_console(unit(state=UnitState.GONE))
