"""The chaos test, small, and the bugs that it must find, for `make e2e`. In full: docs/internals/chaos.md.

SLOT-1, SLOT-2, JOB-1, JOB-2, UNIT-1, UNIT-2, UNIT-3 and SEC-2, beside all that the simulation checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from penstock.domain.units.units import CleanProof
from penstock.ports import NotYet, Order, Ready
from penstock.testing.fake import FakeDriver
from simulation.chaos import runner
from simulation.chaos.__main__ import main
from simulation.chaos.checks import ALWAYS, DEADLINE, HARDER
from simulation.chaos.scenario import How
from tests.simulation.plants import Plant, release_without_fence, start_at_once
from tests.simulation.plants_holds import the_sweep_forgets_holds
from tests.simulation.plants_hosts import free_once_its_agent_ended
from tests.simulation.plants_shares import all_parts_are_free_at_once, owners_are_not_asked, parts_of_two_hosts

SMALL = How(60, is_hard=True)
SEEDS = (0, 6, 1, 5, 7, 9)
FIRST = {"the_sweep_forgets_holds": (2,)}
"""Where to begin to look for what other seeds find late."""


@pytest.mark.e2e
def test_jobs_with_the_figures_of_arvados() -> None:
    """All its faults at once, and every job settles."""
    ran = runner.once(0, How(20))
    assert ran.label is None, f"{ran.says}\n{ran.command()}"
    assert sum(ran.figures.counts.get(f"settled: {how}", 0) for how in ("succeeded", "failed", "errored")) == 20


@pytest.mark.long
def test_two_hundred_jobs_with_the_figures_of_arvados() -> None:
    """All its faults at once, and each of them really happened."""
    ran = runner.once(0, How(200))
    assert ran.label is None, f"{ran.says}\n{ran.command()}"
    assert ran.missing == []
    found = ran.figures
    assert sum(found.counts.get(f"settled: {how}", 0) for how in ("succeeded", "failed", "errored")) == 200
    assert found.counts["settled at the queue deadline"] == 5  # those that only a type will do of which there is none
    assert found.most == 10
    assert found.unknown == 0


@pytest.mark.long
def test_harder_figures_and_nothing_is_left_out() -> None:
    """Restarts, partitions, storms, leaps, holds: what one small run may miss, another does not."""
    met: Counter[str] = Counter()
    for seed in SEEDS:
        ran = runner.once(seed, How(90, is_hard=True))
        assert ran.label is None, f"{ran.says}\n{ran.command()}"
        met.update(ran.figures.met | ran.figures.counts)
    assert {what for what in HARDER if not met[what]} <= {"settled: errored"}  # a longer run has some
    assert {*ALWAYS} - {DEADLINE} < {*HARDER}


def test_the_same_seed_tells_the_same_story() -> None:
    few = replace(SMALL, jobs=10)
    assert runner.once(1, few).digest == runner.once(1, few).digest


def a_proof_before_it_is_gone(patch: pytest.MonkeyPatch) -> None:
    """A driver says that a machine is gone as soon as it was told to go."""
    destroy = FakeDriver.destroy

    def hasty(driver: FakeDriver, unit: str, now: datetime) -> CleanProof | NotYet:
        destroy(driver, unit, now)
        return CleanProof(by="hasty", time=now, checked=unit)

    patch.setattr(FakeDriver, "destroy", hasty)


def tagged_with_another_name(patch: pytest.MonkeyPatch) -> None:
    """A driver tags what it makes with a name of its own."""
    create = FakeDriver.create

    def careless(driver: FakeDriver, order: Order) -> Ready | NotYet:
        return create(driver, replace(order, id=f"{order.id}-mine"))

    patch.setattr(FakeDriver, "create", careless)


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("plant", "labels", "blind"),
    [
        (a_proof_before_it_is_gone, {"UNIT-2"}, ()),
        (a_proof_before_it_is_gone, {"SLOT-1", "JOB-2"}, ("UNIT-2",)),
        (tagged_with_another_name, {"UNIT-1"}, ()),
        (start_at_once, {"JOB-2"}, ()),
        (the_sweep_forgets_holds, {"UNIT-3"}, ()),
        (release_without_fence, {"SLOT-1", "UNIT-2", "SLOT-3"}, ()),
        (owners_are_not_asked, {"SEC-2"}, ()),
        (parts_of_two_hosts, {"SLOT-2"}, ()),
        (all_parts_are_free_at_once, {"UNIT-2"}, ()),
        (free_once_its_agent_ended, {"UNIT-2"}, ()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_bug_is_found(
    plant: Plant, labels: set[str], blind: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    first = FIRST.get(getattr(plant, "__name__", ""), ())
    found = runner.find([*first, *SEEDS], replace(SMALL, blind=blind))
    assert found is not None, "no seed found it"
    assert found.label in labels, found.says


def test_a_failing_seed_tells_its_story_and_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tagged_with_another_name(monkeypatch)
    assert main(["--jobs", "20", "--figures", "harder", "--seeds", "0:3", "--without", "storm,lose"]) == 1
    told = capsys.readouterr().out
    assert "[UNIT-1]" in told
    assert "python -m simulation.chaos --jobs 20 --figures harder --seed 0 --without storm,lose --story" in told


def test_what_happened_in_none_of_the_runs_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Or a fault that is never drawn would go unnoticed."""
    monkeypatch.setattr(runner, "MEANT", (2, 2))
    assert main(["--jobs", "2", "--seeds", "0:2"]) == 1
    told = capsys.readouterr().out
    assert "every promise kept" in told
    assert "In none of these runs, though it is meant to happen: " in told


def test_what_one_small_run_misses_another_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MEANT", (2, 2))
    small = runner.once(0, How(2))
    one, other = (replace(small, missing=missing) for missing in (["a", "b"], ["b", "c"]))
    assert runner.never([one, other]) == ["b"]
    assert runner.never([one, replace(other, missing=[])]) == []
    assert runner.never([replace(one, how=How(1))]) == []
    assert runner.never([replace(one, how=How(2, without=("storm",)))]) == []


def test_kinds_of_trouble_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    given: Sequence[str] = ("--jobs", "20", "--figures", "harder", "--seed", "1", "--without", "restart,operate,leap")
    assert main([*given]) == 0
    told: Any = capsys.readouterr().out
    assert "every promise kept" in told
    assert "everything was restarted" not in told
    with pytest.raises(SystemExit):
        main(["--without", "rain"])
    assert "there is no rain" in capsys.readouterr().err
