"""The record of mutation is complete for the code as it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.mutate import plant, record, sites
from tests.mutate.hunt import ENDLESS
from tests.mutate.record import Record, gaps
from tests.mutate.scope import ROOT, WHOLE, modules, source
from tests.mutate.sites import Mutant

ALL = list(sites.every())


def test_every_named_condition_has_a_test_that_notices_its_loss() -> None:
    assert gaps(Record.load(), ALL) == [], "run `make mutate`"


def test_no_named_condition_changed_since_it_was_mutated() -> None:
    known = Record.load().digests
    changed = [key for module in modules() for key in _changed(module, known)]
    assert changed == [], "run `make mutate`"


def _changed(module: str, known: dict[tuple[str, str], str]) -> Iterator[str]:
    with_conditions = {mutant.function for mutant in ALL if mutant.module == module}
    for function, digest in sites.digests(module).items():
        if function in with_conditions and known.get((module, function)) != digest:
            yield f"{module}:{function}"


def test_the_tests_that_notice_exist() -> None:
    for test in set(Record.load().killers.values()):
        path, _, name = test.removeprefix(ENDLESS).partition("::")
        case, _, function = (re.escape(part) for part in name.partition("[")[0].rpartition("::"))
        wanted = rf"^{case} = .*\.TestCase$" if function == "runTest" else rf"def {function}\("  # a state machine's
        assert re.search(wanted, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), test


def test_what_is_equivalent_says_why() -> None:
    assert all(len(why) > 20 for why in record.equivalents().values())


def test_what_ends_processes_is_never_mutated() -> None:
    """Or a mutant of it would end those of this machine."""
    for module in {mutant.module for mutant in ALL}:
        assert not re.search(r"os\.kill|\bsignal\b|\bsubprocess\b|/proc\b", source(module)), module
    unsafe = Mutant("penstock.agent.processes", "JobProcesses.all_of_job", "", "true", 0, 0, None)
    with pytest.raises(ValueError, match="never mutated"):
        plant.plant(unsafe)


def test_whole_modules_are_there() -> None:
    assert set(WHOLE) <= set(modules())
    assert set(WHOLE) <= {mutant.module for mutant in ALL}


def _hows(module: str, function: str, text: str) -> set[str]:
    return {mutant.how for mutant in ALL if mutant.key[:2] == (module, function) and mutant.text == text}


def test_conditions_are_dropped_and_weakened() -> None:
    rows, table, users = "penstock.domain.rows", "penstock.store.table", "penstock.usecases.acquiring"
    assert _hows(rows, "holds", "stored is None") == {"true", "false"}
    both = "stored is not None and stored.version == change.was.version"
    assert _hows(rows, "holds", both) == {
        "true", "false", "without stored is not None", "without stored.version == change.was.version",
    }  # fmt: skip
    assert _hows(table, "still", "Item.row_version == was.version") == {"always met", "met by any row"}
    assert _hows(table, "Table._write", "absent()") == {"always met"}
    assert _hows(users, "_grant", "Delete(row)") == {"unconditional"}
    assert _hows("penstock.domain.pools", "take_amount", "pool.used + count > pool.limit") == {
        "true",
        "false",
        "> is >=",
    }


@pytest.mark.parametrize("mutant", ALL[::25], ids=lambda mutant: f"{mutant.module}-{mutant.function}-{mutant.at}")
def test_a_mutant_is_another_program(mutant: Mutant) -> None:
    tree = plant.tree_of(mutant)
    compile(tree, mutant.module, "exec")
    assert ast.dump(tree) != ast.dump(ast.parse(source(mutant.module)))
