"""The record of mutation is complete for the code as it is."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.mutate import plant, record, sites
from tests.mutate.kinds import CONDITIONS, EFFECTS, KINDS, Kind
from tests.mutate.record import ENDLESS, Entry, Record, gaps
from tests.mutate.scope import WHOLE, modules, source
from tests.mutate.sites import Mutant

ALL = list(CONDITIONS.every())
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))


@each_kind
def test_every_mutant_has_a_test_that_notices_it(kind: Kind) -> None:
    assert gaps(Record.load(kind=kind)) == [], "run `make mutate`"


@each_kind
def test_a_function_that_changed_has_to_be_mutated_again(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Record.load(kind=kind)
    mutant = next(each for each in kind.every() if kept.is_noticed(each))
    assert kept.is_noticed(mutant)
    monkeypatch.setattr(record, "digest", lambda module, function, kind: "another")
    assert not kept.is_known(mutant)
    assert f"{mutant.module}:{mutant.function} changed since it was mutated" in gaps(kept)


def test_a_function_whose_exceptions_have_old_names_has_to_be_mutated_again() -> None:
    """Names in its conditions changed, and the digest knows nothing of that."""
    for exceptions in ("open", "endless"):
        kept = Record.load()
        mutant = next(each for each in ALL if kept.is_noticed(each))
        getattr(kept.entries[mutant.key[:2]], exceptions).add("a condition of old names :: true")
        assert f"{mutant.module}:{mutant.function} changed since it was mutated" in gaps(kept)


@each_kind
def test_what_is_written_is_read_again(kind: Kind, tmp_path: Path) -> None:
    kept = Record.load(kind=kind)
    kept.save(tmp_path / "again")
    assert (tmp_path / "again").read_text(encoding="utf-8") == kind.record.read_text(encoding="utf-8")


def test_a_function_that_moved_keeps_its_entry(tmp_path: Path) -> None:
    text = CONDITIONS.record.read_text(encoding="utf-8")
    (tmp_path / "record").write_text(text.replace("\npenstock.domain.pools.pools\n", "\npenstock.domain.lakes\n"))
    moved, kept = Record.load(tmp_path / "record"), Record.load()
    assert moved.entries == kept.entries
    assert moved.is_noticed(next(each for each in ALL if each.module == "penstock.domain.pools.pools"))


def test_a_function_that_moved_and_changed_gets_hints(tmp_path: Path) -> None:
    (tmp_path / "record").write_text("penstock.domain.lakes\n  take 12345678\n    test_x\n")
    moved = Record.load(tmp_path / "record")
    take = next(each for each in ALL if each.key[:2] == ("penstock.domain.pools.pools", "take"))
    assert not moved.is_known(take)
    assert moved.candidates(take) == ["test_x"]
    assert "('penstock.domain.lakes', 'take') is in the record, and not in the code" in gaps(moved)


def test_a_function_is_known_when_all_its_mutants_were_tried(tmp_path: Path) -> None:
    function, some = max(record.mutated().items(), key=lambda item: len(item[1]))
    some = [each for each in some if each.key not in record.equivalents()]
    made = Record()
    made.begin(some)
    for at, mutant in enumerate(some):
        made.save(tmp_path / "record")
        assert not Record.load(tmp_path / "record").is_known(mutant)
        made.tried(mutant, None if at == 0 else f"{ENDLESS * (at == 1)}tests/test_x.py::test_y[z]")
    made.save(tmp_path / "record")
    again = Record.load(tmp_path / "record")
    assert again.entries[function] == Entry(record.digest(*function), {"test_y"}, {some[1].name}, {some[0].name})
    assert again.is_open(some[0])
    assert again.is_noticed(some[2])


@each_kind
def test_the_tests_that_notice_exist(kind: Kind) -> None:
    named = {test for entry in Record.load(kind=kind).entries.values() for test in entry.tests}
    assert sorted(named - record.defined().keys()) == [], f"renamed? then rename it in {kind.record.name} as well"


@each_kind
def test_what_is_equivalent_is_owed_no_test(kind: Kind, tmp_path: Path) -> None:
    """Also if it was tried before somebody said why none can notice it."""
    module, function, name = next(iter(record.equivalents(kind)))
    kept = Record.load(kind=kind)
    kept.entries[module, function].open.add(name)
    kept.save(tmp_path / "record")
    assert name not in Record.load(tmp_path / "record", kind).entries[module, function].open
    assert not record.owed(kind).keys() & record.equivalents(kind).keys()


@each_kind
def test_what_is_equivalent_says_why(kind: Kind) -> None:
    assert all(len(why) > 20 for why in record.equivalents(kind).values())


def test_what_ends_processes_is_never_mutated() -> None:
    """Or a mutant of it would end those of this machine."""
    for module in {mutant.module for mutant in ALL}:
        assert not re.search(r"os\.kill|\bsignal\b|\bsubprocess\b|/proc\b", source(module)), module
    unsafe = Mutant("penstock.agent.machine", "JobProcesses.all_of_job", "", "true", 0, 0, None)
    with pytest.raises(ValueError, match="never mutated"):
        plant.plant(unsafe)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("def f(a):\n    return a", 'def f(\n    a\n):\n    """Some words."""\n    # more\n    return a'),
        ('def f(a):\n    say(f"a {a}", 1)', "def f(a):\n    say(f'other {b} words', 1)"),
        ("import m\ndef f(a):\n    return a.m.g(m.g(a))", "from n import g\ndef f(a):\n    return a.m.g(g(a))"),
        ('def f(a):\n    raise Refused(1, "some words")', 'def f(a):\n    raise Refused(1, "some " "other words")'),
    ],
)
def test_words_and_modules_do_not_change_a_functions_text(text: str, other: str) -> None:
    texts = []
    for each in (text, other):
        tree = ast.parse(each)
        function = tree.body[-1]
        assert isinstance(function, ast.FunctionDef)
        texts.append(sites.bare(each, function, tree))
    assert texts[0] == texts[1]


def test_whole_modules_are_there() -> None:
    assert set(WHOLE) <= set(modules())
    assert set(WHOLE) <= {mutant.module for mutant in ALL}


def _hows(module: str, function: str, text: str) -> set[str]:
    return {mutant.how for mutant in ALL if mutant.key[:2] == (module, function) and mutant.text == text}


def test_conditions_are_dropped_and_weakened() -> None:
    rows, table, serving = "penstock.kernel.rows", "penstock.aws.dynamodb", "penstock.usecases.pools.serving"
    assert _hows(rows, "holds", "stored is None") == {"true", "false"}
    both = "stored is not None and stored.version == change.was.version"
    assert _hows(rows, "holds", both) == {
        "true", "false", "without stored is not None", "without stored.version == change.was.version",
    }  # fmt: skip
    assert _hows(table, "unchanged", "Item.row_version == was.version") == {"always met", "met by any row"}
    assert _hows(table, "Table._write", "absent()") == {"always met"}
    assert _hows(serving, "_dropped", "Delete(row)") == {"unconditional"}
    assert _hows("penstock.domain.pools.pools", "take_amount", "pool.used + count > pool.limit") == {
        "true",
        "false",
        "> is >=",
    }


@cache
def _dumped(module: str) -> str:
    return ast.dump(ast.parse(source(module)))


@pytest.mark.parametrize(
    "mutant",
    [*ALL[::100], *list(EFFECTS.every())[::40]],
    ids=lambda mutant: f"{mutant.module}-{mutant.function}-{mutant.at}-{mutant.how.split()[0]}",
)
def test_a_mutant_is_another_program(mutant: Mutant) -> None:
    tree = plant.tree_of(mutant)
    compile(tree, mutant.module, "exec")
    assert ast.dump(tree) != _dumped(mutant.module)
