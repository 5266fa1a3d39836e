"""A person sees in one screen why a job did not succeed, and what to do."""

from __future__ import annotations

import json

from tests.cli.conftest import Run
from tests.cli.service import FAILURE, Service


def ended(service: Service, end: str) -> str:
    job = service.add(end)
    service.jobs[job].read = 1000
    return job


def test_show_tells_what_happened_and_what_to_do(penstock: Run, service: Service) -> None:
    shown = penstock("job", "show", ended(service, "failed")).stdout
    for line in (
        "disk_full: a disk was full",
        '  task: 0 "build"',
        "  exit code: 3",
        "  path: /work",
        "  free: 0 B",
        "  bound of: 1m 30s",
        "what to do: keep less",
        "the last lines that it said",
        "  No space left on device",
    ):
        assert line in shown.splitlines(), line
    assert "\x1b" not in shown


def test_a_failure_says_that_lines_come_from_the_console(penstock: Run, service: Service, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setitem(FAILURE, "lines_of", "console")
    monkeypatch.setitem(FAILURE, "task", {"index": 1, "name": ""})
    shown = penstock("job", "show", ended(service, "failed")).stdout.splitlines()
    assert "the last lines of its machine's console" in shown
    assert "  task: 1" in shown


def test_job_run_shows_the_failure_without_its_lines_again(penstock: Run, good: str) -> None:
    result = penstock("job", "run", good, "-T", "end=failed")
    assert "disk_full: a disk was full" in result.stderr
    assert "what to do: keep less" in result.stderr
    assert "No space left on device" not in result.stderr, "it has just been streamed"
    assert "what to do" not in penstock("job", "run", good).stderr


def test_json_shows_the_failure_unchanged(penstock: Run, service: Service) -> None:
    assert json.loads(penstock("job", "show", ended(service, "failed"), "--json").stdout)["failure"] == FAILURE
    assert json.loads(penstock("job", "show", ended(service, "succeeded"), "--json").stdout)["failure"] is None
