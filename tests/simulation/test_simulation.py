"""Some seeds keep every promise, tell the same story twice, and tell it whatever order sets have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation import runner
from simulation.__main__ import main
from simulation.engine import Engine
from simulation.runner import Run

ROOT = Path(__file__).parents[2]

HAPPENINGS = ("goes down", "is up", "forgets all", "leaves,", "is silent", "Refused: host", "is ended by its host")
"""What the simulation tells of hosts."""


@pytest.mark.parametrize("seed", range(5))
def test_a_seed_keeps_every_promise_and_tells_the_same_story_twice(seed: int) -> None:
    told = runner.twice(Run(seed))
    assert told.label is None, f"{told.says}\n{told.run.command()}"


def test_some_jobs_have_what_is_only_a_slot_in_the_commit_that_they_come_with() -> None:
    told = runner.once(Run(22))
    assert told.label is None
    assert [line for line in told.lines if "submit job" in line and "none -> ready" in line]


def test_a_story_does_not_depend_on_the_order_of_sets() -> None:
    """Or a seed could not be replayed in another process."""
    command = [sys.executable, "-m", "simulation", "--seed", "0"]
    paths = {"PYTHONPATH": f"{ROOT / 'functions'}:{ROOT}"}
    stories = {
        subprocess.run(
            command, cwd=ROOT, env=os.environ | paths | {"PYTHONHASHSEED": hash_}, capture_output=True, check=True
        ).stdout
        for hash_ in ("1", "2")
    }
    assert len(stories) == 1


def test_trouble_and_jobs_can_be_left_out() -> None:
    few = runner.once(Run(5, jobs=2, without=("people", "kill", "die", "lose")))
    assert few.label is None
    assert few.jobs <= 2
    assert not [line for line in few.lines if "(lost)" in line or " dies " in line]


def test_the_command_tells_of_one_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "5", "--jobs", "2", "--story"]) == 0
    told = capsys.readouterr().out
    assert "submit job 1" in told
    assert "every promise kept" in told


def test_the_command_tells_of_many_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "0:3", "--jobs", "2"]) == 0
    assert "every promise kept" in capsys.readouterr().out


def test_an_unknown_kind_of_trouble_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--without", "rain"])
    assert "there is no rain" in capsys.readouterr().err


@pytest.mark.e2e
def test_hosts_come_and_go_and_do_their_jobs() -> None:
    """Their machines go down, forget, are silent, leave, and are there twice.

    No seed is chosen for it: what happens to hosts in one of them changes with each request that anybody sends.
    """
    missing, clean = set(HAPPENINGS), 0
    for seed in (seed for seed in range(200) if Engine(seed).plan.shape.hosts):
        lines = runner.once(Run(seed)).lines
        missing -= {what for what in missing if any(what in line for line in lines)}
        clean += sum("host attic" in line and ": clean" in line for line in lines)
        if not missing and clean > 10:
            return
    raise AssertionError(f"no seed tells of {sorted(missing)}, or only {clean} workers were clean")
