"""Workers and resources in an operator's hands."""

from __future__ import annotations

import json

import pytest

from penstock.cli.commands import unit
from tests.cli.conftest import Run
from tests.cli.service import SETTLED, STARTED, SUBMITTED, Service


def bodies(service: Service) -> list[object]:
    return [body for method, _, _, body in service.asked if method == "POST"]


def test_a_worker_is_held_and_shown_as_held(penstock: Run, service: Service) -> None:
    held = penstock("worker", "hold", "w1", "--reason", "a look", "--for", "2h")
    assert held.stdout == f"worker w1 is held until {SETTLED}\n"
    assert bodies(service) == [{"reason": "a look", "for": 7200}]
    header, row = penstock("worker", "list").stdout.splitlines()
    assert header.index("HELD") == row.index(f"by alice until {SETTLED}: a look")
    assert "its job ends" in row
    shown = penstock("worker", "show", "w1").stdout
    assert f"hold       by=alice reason=a look since={STARTED} until={SETTLED}" in shown
    assert "next_step  its job ends" in shown
    assert json.loads(penstock("worker", "show", "w1", "--json").stdout)["hold"]["by"] == "alice"
    assert penstock("worker", "release", "w1").stdout == "worker w1 is no longer held\n"


def test_release_of_a_removed_unit_needs_a_proof(penstock: Run, service: Service) -> None:
    said = penstock("worker", "release", "w1", "--proof", "sold; disk shredded").stdout
    assert said == "worker w1 is gone, and its slot given back\n"
    assert bodies(service) == [{"proof": "sold; disk shredded"}]
    penstock("worker", "release", "w1")
    assert bodies(service)[-1] == {}


def test_a_worker_in_quarantine_says_since_when_and_why() -> None:
    apart = {"since": SETTLED, "reason": "its disk is gone", "reminders": 2}
    assert unit._held({"quarantine": apart}) == f"in quarantine since {SETTLED}: its disk is gone"
    assert unit._held({"quarantine": None, "hold": None, "drain": None}) is None


def test_without_a_time_the_service_chooses(penstock: Run, service: Service) -> None:
    penstock("worker", "hold", "w1", "--reason", "a look")
    assert bodies(service) == [{"reason": "a look"}]


@pytest.mark.parametrize("words", [("--for", "2h"), ("--reason", "x", "--for", "soon")])
def test_hold_requires_a_reason_and_a_valid_time(penstock: Run, service: Service, words: tuple[str, ...]) -> None:
    assert penstock("worker", "hold", "w1", *words).exit_code == 2
    assert service.asked == []


def test_drain_and_recycle_say_why(penstock: Run, service: Service) -> None:
    assert penstock("worker", "drain", "w1", "--reason", "old").stdout == "worker w1 is lent to no other job\n"
    assert penstock("worker", "recycle", "w1").stdout == "worker w1 is being destroyed\n"
    assert bodies(service) == [{"reason": "old"}, {"reason": ""}]


def test_recycling_a_held_worker_is_refused(penstock: Run) -> None:
    penstock("worker", "hold", "w1", "--reason", "a look")
    result = penstock("worker", "recycle", "w1")
    assert (result.exit_code, result.stderr) == (2, "error: worker w1 is held by alice: release it first\n")


def test_worker_tail_shows_all_events(penstock: Run) -> None:
    lines = penstock("worker", "tail", "w1").stdout.splitlines()
    assert lines[0] == f"{SUBMITTED}  ordered from here for job j9, attempt 1"
    assert json.loads(penstock("worker", "tail", "w1", "--json", "--after", "2").stdout)["payload"] == "destroyed"


def test_tail_follows_until_the_unit_is_gone(penstock: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit, "EACH", 0.01)
    lines = penstock("worker", "tail", "-f", "w1").stdout.splitlines()
    assert [line.rpartition("  ")[2] for line in lines] == [
        "ordered from here for job j9, attempt 1",
        "its agent said hello",
        "destroyed",
    ]


SAID = f"{STARTED}  console output, asked for by alice\n    i-1 is running; end of its console:\n    [31mlogin:\n"


def test_the_console_output_of_a_worker_is_shown_when_it_comes(penstock: Run) -> None:
    assert penstock("worker", "console", "w1").stdout == SAID
    again = json.loads(penstock("worker", "console", "w1", "--json").stdout)
    assert (again["seq"], again["payload"].splitlines()[-1]) == (91, "\x1b[31mlogin:")
    assert SAID in penstock("worker", "tail", "w1").stdout


def test_output_of_a_moment_ago_is_shown_where_no_other_comes(
    penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit, "CONSOLE_WITHIN", 0.01)
    monkeypatch.setattr(unit, "EACH", 0.02)
    service.most_consoles = 1
    first, second = (penstock("worker", "console", "w1") for _ in range(2))
    assert (first.stdout, second.stdout) == (SAID, SAID)
    assert "nothing newer came within" in second.stderr
    service.consoles, service.most_consoles = [], 0
    nothing = penstock("worker", "console", "w1")
    assert (nothing.exit_code, nothing.stdout) == (4, "")
    assert "wrote nothing" in nothing.stderr


def test_a_resource_has_no_console(penstock: Run) -> None:
    assert penstock("resource", "console", "r1").exit_code == 2
