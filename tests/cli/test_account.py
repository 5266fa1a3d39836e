"""penstock account."""

from __future__ import annotations

import json

import pytest

from penstock.cli.commands import account as command
from tests.cli.account import CLEAN, DIFF, WHOLE
from tests.cli.conftest import Run
from tests.cli.service import Service


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "EACH", 0)


def test_what_was_left_behind_is_a_line_each(penstock: Run) -> None:
    run = penstock("account", "diff")
    lines = [line.split() for line in run.stdout.splitlines()]
    assert lines[0][:4] == ["MADE", "BY", "KIND", "ID"]
    assert [(line[2], line[3], line[4]) for line in lines[1:]] == [
        ("vol-2", "unknown", "unknown"),
        ("vol-1", "2h", "ada"),
    ]
    assert "well/pg could not be listed: Unknown: refused" in run.stderr
    assert "left over: 2 of 9 things; diff of 2026-01-01T03:00:09" in run.stderr


def test_nothing_left_behind_is_a_zero(penstock: Run, service: Service) -> None:
    service.account.newest = dict(CLEAN)
    run = penstock("account", "diff")
    assert run.stdout == ""
    assert run.stderr.startswith("left over: 0 of 9 things; diff of 2026")


def test_of_very_many_it_is_said_that_these_are_some(penstock: Run, service: Service) -> None:
    service.account.newest |= {"left": 12_000}
    assert "left over: 12000 of 9 things (2 shown)" in penstock("account", "diff").stderr


def test_all_of_it_as_json_and_the_leftovers_as_csv(penstock: Run) -> None:
    assert json.loads(penstock("account", "diff", "--json").stdout) == WHOLE
    assert penstock("account", "diff", "--format", "csv").stdout.splitlines()[2].startswith("factory/aws,volume,vol-1")


def test_the_history_is_listed(penstock: Run, service: Service) -> None:
    run = penstock("account", "diff", "--history")
    assert run.stdout.splitlines()[1].split()[0] == DIFF["id"]
    assert json.loads(penstock("account", "diff", "--history", "--json").stdout) == [DIFF]
    penstock("account", "diff", "--id", "20260101T030000")
    assert service.account.asked[-1] == "GET diff 20260101T030000"


def test_a_new_one_is_asked_for_and_waited_for(penstock: Run, service: Service) -> None:
    run = penstock("account", "diff", "--now", "--json")
    assert json.loads(run.stdout)["id"] == "20260101T120000"
    assert service.account.asked == ["POST diff", *["GET diff 20260101T120000"] * 2]


def test_one_that_takes_too_long_says_where_to_look(
    penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "MOST", -1)
    run = penstock("account", "diff", "--now")
    assert run.exit_code == 4
    assert "penstock account diff --id 20260101T120000" in run.stderr


@pytest.mark.parametrize("more", [["--history", "--now"], ["--now", "--id", "x"], ["--history", "--id", "x"]])
def test_one_thing_at_a_time(penstock: Run, more: list[str]) -> None:
    run = penstock("account", "diff", *more)
    assert (run.exit_code, "exclude each other" in run.stderr) == (2, True)
