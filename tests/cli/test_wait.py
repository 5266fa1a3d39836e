"""Waiting for jobs in silence: `job wait`."""

from __future__ import annotations

import json

import pytest

from penstock.cli import joined
from tests.cli.conftest import Run
from tests.cli.screens import run_on_terminal
from tests.cli.service import TOKEN, Service


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter pauses between looks."""
    monkeypatch.setattr(joined, "PAGE_SECONDS", 0.01)
    monkeypatch.setattr(joined, "ONE_SECONDS", 0.01)


def jobs(service: Service, **ends: str) -> list[str]:
    """Jobs by name, each of which settles after a few looks at it."""
    made = [service.add(end, name=name, tags={"set": "s1"}) for name, end in ends.items()]
    for number, job in enumerate(made):
        service.jobs[job].looks, service.jobs[job].waits = 0, number
    return made


@pytest.mark.parametrize("by_set", [True, False])
def test_nothing_is_said_when_all_succeed(penstock: Run, service: Service, by_set: bool) -> None:
    made = jobs(service, a="succeeded", b="succeeded")
    result = penstock("job", "wait", *(["--set", "s1"] if by_set else made))
    assert (result.exit_code, result.output) == (0, "")
    assert not any("/events" in path or "/why" in path for path in service.paths("GET"))


@pytest.mark.parametrize(
    ("ends", "code"),
    [
        ({"a": "succeeded", "b": "cancelled"}, 3),
        ({"a": "failed", "b": "cancelled"}, 1),
        ({"a": "failed", "b": "errored", "c": "succeeded"}, 4),
    ],
)
def test_the_exit_code_is_that_of_the_worst(penstock: Run, service: Service, ends: dict[str, str], code: int) -> None:
    result = penstock("job", "wait", *jobs(service, **ends))
    assert (result.exit_code, result.stdout) == (code, "")
    bad = [f"{name}: {end}: " for name, end in ends.items() if end != "succeeded"]
    said = result.stderr.splitlines()
    assert len(said) == len(bad)
    assert all(line.startswith(start) for line, start in zip(said, bad, strict=True))


def test_one_job(penstock: Run, service: Service) -> None:
    assert penstock("job", "wait", *jobs(service, a="failed")).exit_code == 1
    assert penstock("job", "wait", "j404").exit_code == 2
    assert penstock("job", "wait").exit_code == 2


def test_a_timeout_has_an_exit_code_of_its_own(penstock: Run, service: Service) -> None:
    made = jobs(service, a="never", b="succeeded")
    result = penstock("job", "wait", *made, "--timeout", "1")
    assert (result.exit_code, result.stdout) == (124, "")
    assert "the time is over: 1 of 2 jobs have not settled" in result.stderr
    assert "`penstock job join j1 j2` shows them again" in result.stderr
    assert penstock("job", "wait", *made, "--timeout", "0").exit_code == 124


def test_any_names_the_first_that_settled(penstock: Run, service: Service) -> None:
    made = jobs(service, a="never", b="failed", c="succeeded")
    result = penstock("job", "wait", "--any", *made)
    assert (result.exit_code, result.stdout) == (1, "j2\n")
    result = penstock("job", "wait", "--any", *made, "--json")
    assert [job["id"] for job in json.loads(result.stdout)] == ["j2"]


def test_json_is_the_settled_jobs(penstock: Run, service: Service) -> None:
    found = json.loads(penstock("job", "wait", *jobs(service, a="succeeded", b="failed"), "--json").stdout)
    assert [(job["id"], job["outcome"]) for job in found] == [("j1", "succeeded"), ("j2", "failed")]


def test_an_owner_is_named_in_the_list_of_a_set(penstock: Run, service: Service) -> None:
    jobs(service, a="succeeded")
    penstock("job", "wait", "--set", "s1", "--owner", "oxide:hubris")
    assert all("owner=oxide%3Ahubris" in path for path in service.paths("GET"))


def test_a_terminal_shows_the_jobs_meanwhile_and_keeps_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", service.url)
    monkeypatch.setenv("PENSTOCK_TOKEN", TOKEN)
    seen = run_on_terminal(["job", "wait", *jobs(service, a="succeeded", b="succeeded")], pace=0.5)
    assert (seen.code, seen.last) == (0, [])
    assert any("2 jobs: " in line for screen in seen.screens for line in screen)
