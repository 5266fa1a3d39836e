"""Several jobs watched together: their logs, the table on a terminal, and how much the service is asked."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.cli import boards, joined
from penstock.cli.boards import JobTable, labels, shortened
from penstock.cli.joined import Watched, worst
from tests.cli.conftest import Run, plain
from tests.cli.jobsets import write_job
from tests.cli.screens import run_on_terminal
from tests.cli.service import LOG, TOKEN, Service


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    """Shorter pauses between looks; the service for commands on a terminal."""
    monkeypatch.setattr(joined, "PAGE_SECONDS", 0.01)
    monkeypatch.setattr(joined, "ONE_SECONDS", 0.01)
    monkeypatch.setenv("PENSTOCK_URL", service.url)
    monkeypatch.setenv("PENSTOCK_TOKEN", TOKEN)


def walking(service: Service, count: int, waits: Callable[[int], int], **ends: str) -> None:
    """Jobs of the set s1 that wait for some looks at them, then run, then settle."""
    for number in range(1, count + 1):
        job = service.add(ends.get(f"j{number}", "succeeded"), name=f"build {number}", tags={"set": "s1"})
        service.jobs[job].looks, service.jobs[job].waits = 0, waits(number)


def asked(service: Service) -> Counter[str]:
    """How often the list, single jobs, logs and reasons were asked for."""
    paths = [path.partition("?")[0].split("/") for path in service.paths("GET")]
    return Counter("list" if len(path) == 3 else path[4] if len(path) > 4 else "job" for path in paths)


def test_the_logs_of_a_set_in_a_pipe(penstock: Run, service: Service) -> None:
    walking(service, 3, lambda number: number, j2="failed")
    result = penstock("job", "join", "--set", "s1")
    assert result.exit_code == 1
    assert sorted(result.stdout.splitlines()) == [f"build {number} | building" for number in (1, 2, 3)]
    lines = result.stderr.splitlines()
    for said in ("build 1 | |=| attempt 1 begins", "build 3 | a warning", "build 1: succeeded"):
        assert lines.count(said) == 1, result.stderr
    assert lines.count("build 2: failed: the script ended with status 3") == 1
    assert lines[-1] == "3 jobs: 1 failed, 2 succeeded"
    assert "\x1b" not in result.stderr + result.stdout


def test_a_job_is_called_ended_after_the_last_line_of_its_log(penstock: Run, service: Service) -> None:
    walking(service, 2, lambda number: 0)
    lines = penstock("job", "join", "--set", "s1").stderr.splitlines()
    for number in (1, 2):
        last = f"build {number} | |T| task 0 is done"
        assert lines.index(f"build {number}: succeeded") > lines.index(last)


def test_states_of_a_set_come_from_its_list_and_logs_from_jobs_that_run(penstock: Run, service: Service) -> None:
    walking(service, 500, lambda number: 2 if number <= 20 else 10**6)
    for job in list(service.jobs.values())[20:]:
        job.end = "never"
    result = penstock("job", "join", "--set", "s1", "--timeout", "5")  # 20 logs are opened by then
    assert result.exit_code == 124
    count = asked(service)
    read = {path.split("/")[3] for path in service.paths("GET") if "/events" in path}
    assert read == {f"j{number}" for number in range(1, 21)}
    assert (count["job"], count["list"] % 5) == (0, 0)
    assert all("tag=set%3Ds1" in path for path in service.paths("GET") if path.startswith("/v1/jobs?"))


def test_looks_are_as_far_apart_as_they_take_requests(monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    monkeypatch.setattr(joined, "PAGE_SECONDS", 0.5)
    walking(service, 450, lambda number: 10**6)
    begun = time.monotonic()
    assert plain("job", "join", "--set", "s1", "--timeout", "4").exit_code == 124
    spent = time.monotonic() - begun
    looks = asked(service)["list"] / 5 - 1  # one was to find the jobs
    assert 1 <= looks <= spent / 2.5 + 1


def test_jobs_that_are_not_listed_are_looked_at_one_by_one(penstock: Run, service: Service) -> None:
    """As those of a set that the list leaves out: they settle all the same."""
    walking(service, 2, lambda number: 1)
    assert penstock("job", "join", "j1", "j2").exit_code == 0
    assert asked(service)["list"] == 0
    assert 4 <= asked(service)["job"] <= 12


def test_only_a_few_of_many_jobs_without_a_list_are_looked_at_at_once(
    penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined, "ONE_SECONDS", 0.02)
    walking(service, 30, lambda number: 1)
    begun = time.monotonic()
    result = penstock("job", "wait", *service.jobs)
    assert result.exit_code == 0
    assert asked(service)["job"] - 30 <= joined.ONE_BY_ONE * ((time.monotonic() - begun) / 0.2 + 1)


def test_a_pipe_is_told_where_the_jobs_are_when_nothing_happens(
    penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "SILENCE", 0.2)
    walking(service, 2, lambda number: 10**6)
    result = penstock("job", "join", "--set", "s1", "--timeout", "2")
    said = "|=| 2 queued; build 1: the job waits for bench: held are bench-1 by j9; position 2 in the queue"
    lines = result.stderr.splitlines()
    assert said in lines
    assert len(lines) < 15
    assert asked(service)["why"] == 1


def test_a_set_on_a_terminal(service: Service, tmp_path: Path) -> None:
    """Lines in colours, a table below while jobs run, and the table of how they ended."""
    folder = tmp_path / "ci"
    folder.mkdir()
    for name in ("build", "test"):
        write_job(folder, name, 'dependencies.build = { job = "build" }' if name == "test" else "")
    service.walks = True
    seen = run_on_terminal(["job", "run", str(folder), "--set", "s1"])
    assert seen.code == 0
    assert [line for line in seen.last if "│" in line and "building" in line] == [
        "build │ building",
        "test  │ building",
    ]
    assert seen.last[-1] == "2 jobs: 2 succeeded"
    assert not any("more;" in line or "running" in line for line in seen.last), "the live table is gone"
    assert "\x1b[36mbuild" in seen.written
    assert "\x1b[35mtest" in seen.written
    assert seen.written.rstrip().count("\x1b[?25h") >= 1, "the cursor is shown again"


def test_the_table_of_five_hundred_jobs_is_small(service: Service) -> None:
    walking(service, 500, lambda number: 10**6, j3="failed")
    for number in range(1, 8):
        service.jobs[f"j{number}"].waits = 19 + 5 * (number % 3)  # each page of the list is a look at all
    seen = run_on_terminal(["job", "join", "--set", "s1", "--timeout", "5"], lines=24, columns=70)
    assert seen.code == 124
    tables = [
        [line for line in screen if " jobs: " in line or (line.startswith("build") and "│" not in line)]
        for screen in seen.screens
    ]
    full = [table for table in tables if table and " jobs: " in table[-1]]
    assert full
    assert max(map(len, full)) <= 24 // 3 + 1
    assert all(len(line) <= 70 for table in full for line in table)
    heads = "\n".join(table[-1] for table in full)
    assert "492 more; 500 jobs: 500 queued" in heads
    assert "492 more; 500 jobs: 1 failed, 6 succeeded, 493 queued" in heads
    assert any("running" in line for table in full for line in table), "those that changed are shown"
    assert any("the job waits for bench" in line for table in full for line in table)


def some(count: int, *names: str) -> list[Watched]:
    return [Watched(f"id{number:04}", name) for number, name in enumerate(names or map(str, range(count)))]


def test_the_table_shows_those_that_changed_last() -> None:
    jobs = some(20)
    for job in jobs:
        job.found = {"state": "queued"}
    jobs[15].changed, jobs[7].changed = 5, 9
    jobs[3].changed, jobs[3].found = 20, {"state": "settled", "outcome": "failed"}
    table = JobTable(jobs, {}, {})
    assert [job.name for job in table.shown(3)] == ["0", "7", "15"]
    for job in jobs[4:]:
        job.found = {"state": "settled", "outcome": "succeeded"}
    assert [job.name for job in table.shown(6)] == ["0", "1", "2", "3", "7", "15"]


def test_short_names_are_distinct() -> None:
    assert shortened("x" * 24, 24) == "x" * 24
    long = [f"test of the firmware (ubuntu-24.04, board-{number})" for number in range(300)]
    found = labels(some(0, *long, long[0], "short", "short"))
    assert len(set(found.values())) == 303
    assert max(map(len, found.values())) <= boards.LABEL
    assert found["id0300"].endswith(" 0300")
    assert found["id0301"] == "short"


def test_the_worst_end() -> None:
    def ended(*outcomes: str) -> int:
        jobs = some(len(outcomes))
        for job, outcome in zip(jobs, outcomes, strict=True):
            job.found = {"state": "settled", "outcome": outcome}
        return worst(jobs)

    assert ended("succeeded", "succeeded") == 0
    assert ended("succeeded", "cancelled") == 3
    assert ended("cancelled", "failed", "succeeded") == 1
    assert ended("failed", "errored", "cancelled") == 4
    assert ended("succeeded", "something new") == 4


def test_json_keeps_stdout_for_the_settled_jobs(penstock: Run, service: Service) -> None:
    walking(service, 2, lambda number: 1)
    result = penstock("job", "join", "--set", "s1", "--json")
    assert [job["id"] for job in json.loads(result.stdout)] == ["j1", "j2"]
    assert "build 1 | building" in result.stderr


def test_any_ends_with_the_first(penstock: Run, service: Service) -> None:
    walking(service, 3, lambda number: 10**6 if number != 2 else 1, j2="failed")
    result = penstock("job", "join", "--set", "s1", "--any")
    assert (result.exit_code, result.stdout) == (1, "build 2 | building\n")
    assert result.stderr.splitlines()[-1] == "1 job: 1 failed"


def test_the_log_of_a_job_is_shown_once(penstock: Run, service: Service) -> None:
    walking(service, 4, lambda number: number % 3)
    result = penstock("job", "join", "--set", "s1", "--json")
    assert Counter(result.stderr.splitlines())["build 1 | a warning"] == 1
    assert len([line for line in result.stderr.splitlines() if " | " in line]) == 4 * len(LOG)


def test_submitting_many_is_one_line(penstock: Run, service: Service, tmp_path: Path) -> None:
    folder = tmp_path / "ci"
    folder.mkdir()
    for number in range(12):
        write_job(folder, f"job{number}")
    quiet = penstock("job", "run", str(folder), "--no-wait", "--set", "s1")
    assert quiet.stderr.splitlines() == ["set s1: 12 jobs"]
    assert penstock("job", "run", str(folder), "-W", "--set", "s1", "-v").stderr.count("submitted (") == 12
