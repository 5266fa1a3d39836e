"""Which effects of a function have mutants, and what those do."""

from __future__ import annotations

import ast

import pytest

from tests.mutate import effects, plant
from tests.mutate.effects import BEFORE
from tests.mutate.kinds import EFFECTS
from tests.mutate.sites import Mutant

ALL = list(EFFECTS.every())
SETTLE = "penstock.usecases.jobs.settle"


def _of(module: str, function: str) -> dict[tuple[str, str], Mutant]:
    return {(mutant.text, mutant.how): mutant for mutant in ALL if mutant.key[:2] == (module, function)}


def _now(mutant: Mutant) -> str:
    """A mutant's function, as it is written."""
    *inside, name = mutant.function.split(".")
    node: ast.AST = plant.tree_of(mutant)
    for each in (*inside, name):
        found = (one for one in ast.iter_child_nodes(node) if isinstance(one, ast.ClassDef | ast.FunctionDef))
        node = next(one for one in found if one.name == each)
    return ast.unparse(node)


def test_a_call_is_left_out() -> None:
    found = _of(SETTLE, "job_settled")
    mutant = found["notify_dependents(on, job.id)", "left out"]
    assert "notify_dependents" not in _now(mutant)
    assert "_unpin_dependencies(on, job)" in _now(mutant)


def test_a_change_of_a_commit_is_left_out_by_itself() -> None:
    found = _of(SETTLE, "_end_changes")
    now = _now(found["*left", "left out"])
    assert "[Replace(was, after), *released, *kept" in now
    assert {text for text, how in found if how == "left out"} >= {"Replace(was, after)", "*released", "*left"}


def test_a_field_of_a_row_is_not_replaced() -> None:
    found = _of("penstock.domain.jobs.jobs", "cancel")
    now = _now(found["due=min(job.due or limit, limit) in replace", "left out"])
    assert "return replace(job, cancellation=cancellation)" in now


def test_an_argument_that_has_a_default_is_left_out() -> None:
    found = _of("penstock.usecases.pools.scheduler", "_is_kept_for")
    assert "limit=WARM in on.store.find" in {text for text, _ in found}


def test_what_is_true_or_false_is_flipped() -> None:
    found = _of("penstock.domain.jobs.jobs", "step_on")
    assert "nudged=True" in _now(found["nudged=False in replace", "flipped"])


def test_reads_change_their_order() -> None:
    found = _of("penstock.usecases.workers.agents", "_report_changes")
    mutant = next(mutant for (_, how), mutant in found.items() if how.startswith(BEFORE))
    now = _now(mutant)
    assert now.index("unit = on.store.get(caller.unit.key") < now.index("job = on.store.get(caller.job.key")


def test_a_read_that_needs_another_stays_behind_it() -> None:
    found = _of("penstock.usecases.units.advance", "advance")
    assert not [how for text, how in found if "_advance" in text and how.startswith(BEFORE)]


@pytest.mark.parametrize("text", ["extra=", "reason=", "log.warning", "super()"])
def test_words_and_what_python_asks_for_have_no_mutants(text: str) -> None:
    assert not [mutant for mutant in ALL if mutant.text.startswith(text)]


def test_when_the_site_is_read_decides_nothing() -> None:
    assert not [mutant for mutant in ALL if mutant.how.startswith(BEFORE) and mutant.text.startswith("site = ")]


def test_names_of_mutants_are_their_own() -> None:
    assert len({mutant.key for mutant in ALL}) == len(ALL)
    assert all(effects.is_one(mutant) for mutant in ALL)
