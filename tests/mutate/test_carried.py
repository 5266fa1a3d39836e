"""What was known of functions is carried over to new names, and what is not known is owed."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutate import carried, record
from tests.mutate.__main__ import main
from tests.mutate.carried import carry, renamed, shape
from tests.mutate.kinds import EFFECTS, Kind
from tests.mutate.owe import owe
from tests.mutate.record import Entry, Record, digest, gaps, mutated


@pytest.fixture
def kind(tmp_path: Path) -> Kind:
    """The kind of effects, with files of its own."""
    (tmp_path / "same").write_text("", encoding="utf-8")
    return replace(EFFECTS, record=tmp_path / "record", equivalent=tmp_path / "same", owed=tmp_path / "owed")


def test_a_name_for_a_name_leaves_the_shape() -> None:
    assert shape("return granting . pick ( granting )") == shape("return grants . take ( grants )")


@pytest.mark.parametrize(
    "other",
    ["return a . b ( c )", "return a . a ( a )", "return len ( a )", "yield a . b ( a )", "return a . b ( a , 'x' )"],
)
def test_whatever_else_differs_changes_the_shape(other: str) -> None:
    assert shape("return a . b ( a )") != shape(other)


def test_texts_in_quotes_are_no_names() -> None:
    assert shape("f ( 'free#' )") != shape("f ( 'held#' )")
    assert renamed("f ( 'f' )", {"f": "g"}) == "g ( 'f' )"


def test_a_function_keeps_its_entry_under_other_names(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    function, some = next(
        (function, some) for function, some in mutated(kind).items() if some[0].text.startswith("on.queues.advance(")
    )
    text = record.sites.texts(function[0])[function[1]]
    names = {"queues": "lines", "on": "with_"}
    open_ = f"not noticed: {renamed(some[0].name, names)}"
    old = f"an.old.module\n  old 12345678\n    test_one\n    test_that_is_gone\n    {open_}\n"
    earlier = renamed(text, names)
    monkeypatch.setattr(carried, "_git", lambda *words: old)
    monkeypatch.setattr(carried, "_texts", lambda revision: iter([(("an.old.module", "old"), earlier)]))
    monkeypatch.setattr(carried, "defined", lambda: {"test_one": ["tests/test_x.py"]})
    monkeypatch.setattr(carried, "ROOT", kind.record.parent)
    kept = Record.load(kind=kind)
    count, changed = carry(kept, "HEAD")
    assert kept.entries[function] == Entry(digest(*function, kind), {"test_one"}, set(), {some[0].name})
    assert kept.is_open(some[0])
    assert count == 1
    assert changed["lines is queues"] == 1


def test_what_is_not_known_is_owed_and_nothing_else_is(kind: Kind) -> None:
    first, second = list(mutated(kind))[:2]
    kept = Record(kind=kind, entries={first: Entry(digest(*first, kind), {"test_x"})})
    count = owe(kept)
    again = Record.load(kind=kind)
    assert gaps(again) == []
    assert all(again.is_noticed(mutant) for mutant in mutated(kind)[first])
    assert all(again.is_open(mutant) for mutant in mutated(kind)[second])
    listed = tomllib.loads(kind.owed.read_text(encoding="utf-8"))["owed"]
    assert sum(len(entry["how"]) for entry in listed) == count
    assert count == sum(len(some) for some in mutated(kind).values()) - len(mutated(kind)[first])


def test_a_list_that_is_written_again_is_the_same(kind: Kind) -> None:
    owe(Record(kind=kind))
    text = kind.owed.read_text(encoding="utf-8")
    owe(Record.load(kind=kind))
    assert kind.owed.read_text(encoding="utf-8") == text


def test_owing_is_asked_for_by_its_option(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutate.__main__.KINDS", {"effects": kind})
    assert main(["--of", "effects", "--owe"]) == 0
    assert kind.owed.exists()
    assert kind.record.exists()
