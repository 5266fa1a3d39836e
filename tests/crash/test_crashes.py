"""Whatever goes wrong at any AWS call of any handler, every promise holds and every job settles.

Here the scenarios of QUICK are swept; `python -m tests.crash.sweep` sweeps all (docs/internals/crash-sweep.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from penstock.aws import dynamodb
from penstock.domain.units.units import Unit
from penstock.kernel.rows import Change, Check
from penstock.system import System
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.github import client
from penstock.usecases.jobs import submit
from penstock.usecases.pools import scheduler
from penstock.usecases.units import release
from tests.crash.faults import Mode
from tests.crash.scenarios import SCENARIOS
from tests.crash.sweep import Sweep, report

pytestmark = pytest.mark.e2e  # the whole code, on an emulated account

NO_HINT = (Mode.DIES_AFTER, Mode.LOST)
QUICK = [pytest.param("submit", mode, marks=() if mode in NO_HINT else pytest.mark.long) for mode in Mode]
"""`make e2e` tries the modes that leave rows that no message announces."""
EACH = 3
CALM = [
    pytest.param(scenario, marks=() if number % EACH == 0 else pytest.mark.long)
    for number, scenario in enumerate(SCENARIOS)
]
"""`make e2e` runs every third scenario without faults, `make prove` all."""
FUNCTIONS = Path(__file__).parents[2] / "functions"
FRONT = ("github_webhook", "github_work")
"""The functions of the front end for GitHub."""


@pytest.fixture(scope="module")
def sweep() -> Iterator[Sweep]:
    """One emulated account for all runs of a process."""
    with pytest.MonkeyPatch.context() as patch, closing(Sweep(patch)) as made:
        yield made


@pytest.mark.parametrize(("scenario", "mode"), QUICK)
def test_nothing_is_broken(
    sweep: Sweep, scenario: str, mode: Mode, record_property: Callable[[str, object], None]
) -> None:
    tally = sweep.sweep(scenario, [mode])
    record_property("told", report(f"{scenario}, {mode}", tally))
    assert tally.points
    assert not tally.found, "\n".join(map(str, tally.found))


@pytest.mark.long
@pytest.mark.parametrize("mode", [Mode.TWICE, Mode.OVERTAKEN])
def test_whatever_happens_in_between_of_what_grants(sweep: Sweep, mode: Mode) -> None:
    """Of a job that is granted a resource: one without is granted its worker in the commit that it comes with."""
    tally = sweep.sweep("acquire", [mode], ["schedule"])
    assert tally.points
    assert not tally.found, "\n".join(map(str, tally.found))


@pytest.mark.long
@pytest.mark.parametrize("mode", [Mode.DIES_AFTER, Mode.ANSWER_LOST])
def test_what_github_shows_is_so_whatever_goes_wrong(sweep: Sweep, mode: Mode) -> None:
    tally = sweep.sweep("github-token", [mode], FRONT)
    assert tally.points
    assert not tally.found, "\n".join(map(str, tally.found))


def test_a_sweep_that_dies_leaves_no_flow_parked(sweep: Sweep) -> None:
    tally = sweep.sweep("queue-deadline", [Mode.DIES_AFTER])
    assert not tally.found, "\n".join(map(str, tally.found))


@pytest.fixture(scope="module")
def calm(sweep: Sweep) -> Callable[[str], tuple[int, set[str]]]:
    """How many minutes a scenario takes when nothing goes wrong, and which handlers it wakes; each is run once."""

    @cache
    def run(scenario: str) -> tuple[int, set[str]]:
        life = sweep.run(scenario)
        return life.minutes, {call.handler for call in life.runtime.seam.calls}

    return run


@pytest.mark.xdist_group("calm")
@pytest.mark.parametrize("scenario", CALM)
def test_without_a_fault_no_hint_is_missing(calm: Callable[[str], tuple[int, set[str]]], scenario: str) -> None:
    assert calm(scenario)[0] == SCENARIOS[scenario].minutes


def test_what_was_told_for_a_lease_is_told_anew(sweep: Sweep) -> None:
    life = sweep.run("renew")
    assert max(life.site.drivers.hands["well"].asked.values()) == 2


@pytest.mark.parametrize("scenario", ["reuse", "clean"])
def test_what_is_kept_is_handed_to_the_next_job(sweep: Sweep, scenario: str) -> None:
    assert max(unit.lease.leases for unit in sweep.run(scenario).units()) == 2


@pytest.mark.long
@pytest.mark.xdist_group("calm")
def test_every_handler_is_in_a_scenario(calm: Callable[[str], tuple[int, set[str]]]) -> None:
    missing = {path.stem for path in FUNCTIONS.glob("*.py")}
    for scenario in SCENARIOS:
        missing -= calm(scenario)[1]
        if not missing:
            return
    pytest.fail(f"no scenario wakes {missing}")


def test_it_finds_a_slot_that_is_not_handed_over(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = release.slot_freed

    def without_serving(on: System, unit: Unit) -> None:
        with pytest.MonkeyPatch.context() as planted:
            planted.setattr(scheduler, "freed", lambda *_: [])
            go_on(on, unit)

    monkeypatch.setattr(release, "slot_freed", without_serving)
    with pytest.raises(AssertionError, match="took 1 minutes, not 0"):
        sweep.sweep("hand-over")


def test_it_finds_a_transaction_that_is_none(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_by_one(self: dynamodb.Table, changes: Sequence[Change]) -> None:
        for change in changes:
            if not isinstance(change, Check):
                self._write(change)

    monkeypatch.setattr(dynamodb.Table, "_transact", one_by_one)
    assert sweep.sweep("submit", [Mode.DIES_AFTER], first=True).found


@pytest.mark.long
def test_it_finds_a_check_run_that_is_made_twice(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "find_check_run", lambda *_: None)
    assert sweep.sweep("github-push", [Mode.DIES_AFTER], FRONT, first=True).found


def test_it_finds_a_row_that_nobody_nudges(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: Any) -> None:
        return None

    monkeypatch.setattr(usecases_sweep, "_nudge_job", nobody)
    monkeypatch.setattr(submit, "CLAIM_TRIES", 0)  # or the job has no flow that could be lost
    assert sweep.sweep("submit", [Mode.THROTTLED], first=True).found
