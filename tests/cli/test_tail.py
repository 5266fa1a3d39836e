"""Which lines of a log `job tail` shows: by time, task, stream and pattern; its timestamps; and several jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import times
from tests.cli.conftest import Run
from tests.cli.screens import run_on_terminal
from tests.cli.service import TOKEN, Service

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def line(payload: str, stream: str = "stdout", task: int | None = None, minute: float = 0) -> dict[str, Any]:
    """An event some minutes after noon."""
    moment = (NOON + timedelta(minutes=minute)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"time": moment, "stream": stream, "task": task, "payload": payload}


LINES = [
    line("running on w1", "control"),
    line('starting task 0: "setup"', "detail", 0, 1),
    line("fetching", task=0, minute=2),
    line('starting task 1: "build "all""', "detail", 1, 30),
    line("\x1b[31merr\x1b[0mor: no such file", "stderr", 1, 31),
    line('starting task 0: "fake"', task=1, minute=32),
    line("compiled", task=1, minute=33),
    line("listening", "bg.db.stdout", minute=34),
    line("settled: succeeded: it took 35 min", "control", minute=35),
]


def logged(service: Service, events: list[dict[str, Any]], end: str = "succeeded", **body: Any) -> str:
    """A settled job with a log of its own."""
    job = service.add(end, **body)
    service.jobs[job].log, service.jobs[job].looks = events, 10
    return job


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ([], 'fetching|starting task 0: "fake"|compiled'),
        (["--task", "setup"], "fetching"),
        (["--task", "0"], "fetching"),
        (["--task", 'build "all"'], 'starting task 0: "fake"|compiled'),
        (["--task", "1", "--last", "3"], "compiled"),
        (["--task", 'build "all"', "--last", "3"], "compiled"),
        (["--grep", "^comp|^fetch"], "fetching|compiled"),
        (["--grep", "^comp", "--from", "8"], ""),
        (["--since", "2026-03-01T12:31:30Z"], 'starting task 0: "fake"|compiled'),
        (["--since", "2026-03-01T13:02:30+00:30"], "compiled"),
        (["--since", "2026-03-01T12:32:30Z", "--task", "setup"], ""),
        (["--stream", "stderr", "--stream", "bg.db.stdout"], ""),
        (["--stream", "stdout"], 'fetching|starting task 0: "fake"|compiled'),
    ],
)
@pytest.mark.parametrize("follow", ["--follow", "--no-follow"])
def test_lines_that_are_chosen(penstock: Run, service: Service, options: list[str], shown: str, follow: str) -> None:
    result = penstock("job", "tail", logged(service, LINES), follow, *options)
    assert (result.exit_code, result.stdout.splitlines()) == (0, shown.split("|") if shown else []), result.stderr


def test_a_pattern_is_looked_for_in_what_is_read_not_in_colours(penstock: Run, service: Service) -> None:
    assert "no such file" in penstock("job", "tail", logged(service, LINES), "--grep", "^error: no").stderr
    assert "no such file" not in penstock("job", "tail", "j1", "--grep", r"\[31m").stderr


def test_a_stream_that_is_named_is_shown_without_verbose(penstock: Run, service: Service) -> None:
    result = penstock("job", "tail", logged(service, LINES), "--stream", "detail", "--no-follow")
    assert result.stderr.splitlines() == ['|=| starting task 0: "setup"', '|=| starting task 1: "build "all""']


def test_choosing_works_for_json_too(penstock: Run, service: Service) -> None:
    result = penstock("job", "tail", logged(service, LINES), "--json", "--task", "setup", "--timestamps")
    assert [json.loads(each)["seq"] for each in result.stdout.splitlines()] == [2, 3]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--grep", "(a"], "`(a` is not a regular expression: missing ), unterminated subpattern at position 0"),
        (["--grep", "*"], "`*` is not a regular expression: nothing to repeat at position 0"),
        (["--since", "noon"], "`noon` is no duration (10m, 2h) and no time (2026-11-27T10:00:00Z)"),
        (["--since", "2026-02-30T10:00:00Z"], "is no duration"),
        (["--since", "9" * 30], "is no duration"),
        (["--task", "deploy"], "the job has no task `deploy`"),
    ],
)
def test_a_wrong_choice_says_what_is_wrong(penstock: Run, service: Service, options: list[str], said: str) -> None:
    result = penstock("job", "tail", logged(service, LINES), *options)
    assert (result.exit_code, said in " ".join(result.stderr.split())) == (2, True), result.stderr


def test_the_tasks_are_named_if_there_is_no_such_one(penstock: Run, service: Service) -> None:
    result = penstock("job", "tail", logged(service, LINES), "--task", "deploy")
    assert result.stderr.splitlines()[-3:-1] == ['  0 "setup"', '  1 "build "all""']


def test_since_reads_little_of_a_long_log(penstock: Run, service: Service) -> None:
    events = [line(f"line {number}", minute=number / 10) for number in range(6000)]
    job = logged(service, events)
    result = penstock("job", "tail", job, "--since", events[5900]["time"])
    assert result.stdout.splitlines() == [f"line {number}" for number in range(5900, 6000)]
    assert len(service.paths("GET")) < 25
    assert sum("limit=1" not in path for path in service.paths("GET") if "/events" in path) <= 4


def test_lines_whose_clocks_differ_are_not_missed(penstock: Run, service: Service) -> None:
    events = [line(f"{number}", minute=number * 0.1 + (5 if number % 2 else -5)) for number in range(1000)]
    since = events[600]["time"]
    shown = penstock("job", "tail", logged(service, events), "--since", since).stdout.split()
    assert shown == [each["payload"] for each in events if each["time"] >= since]


def test_since_a_duration_ago(penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "now", lambda: NOON + timedelta(minutes=34))
    assert penstock("job", "tail", logged(service, LINES), "--since", "90s").stdout == "compiled\n"


def test_timestamps_in_a_pipe_are_rfc_3339_in_utc(penstock: Run, service: Service) -> None:
    result = penstock("job", "tail", logged(service, LINES), "--timestamps", "--task", "1")
    assert result.stdout.splitlines()[1] == "2026-03-01T12:33:00.000Z compiled"
    assert result.stderr.splitlines()[0] == "2026-03-01T12:31:00.000Z \x1b[31merr\x1b[0mor: no such file"


def test_timestamps_on_a_terminal_are_local(penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    seen = run_on_terminal(["job", "tail", logged(service, LINES), "--timestamps", "--stream", "control"])
    assert "2026-03-01 17:30:00 |=| running on w1" in seen.last
    assert seen.code == 0


def test_several_jobs_are_shown_under_their_names(penstock: Run, service: Service) -> None:
    usual = ["job 01M8 accepted: it waits for bench", "the job waits for bench: held", "running on w1"]
    events = [*(line(text, "control") for text in usual), line("one"), line("the machine was lost", "control")]
    logged(service, [*events, line("careful", "stderr"), line("more", "detail")], name="a")
    logged(service, [line("two"), line("settled: failed", "control")], "failed", name="b")
    result = penstock("job", "tail", "j1", "j2")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == ["a | one", "b | two"]
    head = result.stderr.splitlines()
    assert head[:2] == ["a | |=| the machine was lost", "a | careful"]
    assert head[2:4] == ["a: succeeded", "b: failed: the script ended with status 3"]
    assert head[-1] == "2 jobs: 1 failed, 1 succeeded"
    verbose = penstock("job", "tail", "j1", "j2", "--verbose").stderr.splitlines()
    assert [text for text in (*usual, "more") if f"a | |=| {text}" not in verbose] == []
    assert [text for text in usual if f"|=| {text}" not in penstock("job", "tail", "j1").stderr.splitlines()] == []


def test_what_several_jobs_have_so_far(penstock: Run, service: Service) -> None:
    for name in ("a", "b"):
        service.jobs[logged(service, [line("1"), line("2")], "never", name=name)].looks = 0
    result = penstock("job", "tail", "j1", "j2", "--no-follow", "--last", "1")
    assert (result.exit_code, result.stdout) == (0, "a | 2\nb | 2\n")


def test_json_of_several_jobs_names_the_job_of_each_event(penstock: Run, service: Service) -> None:
    for name in ("a", "b"):
        logged(service, [line(name)], name=name, tags={"set": "s1"})
    for words in (("j1", "j2"), ("--set", "s1")):
        result = penstock("job", "tail", *words, "--json")
        found = [json.loads(each) for each in result.stdout.splitlines()]
        assert [(each["job"], each["payload"]) for each in found] == [("j1", "a"), ("j2", "b")]


def test_each_of_several_jobs_has_tasks_of_its_own(penstock: Run, service: Service) -> None:
    logged(service, [line('starting task 0: "x"', "detail", 0), line("of x", task=0)], name="a")
    logged(service, [line('starting task 0: "y"', "detail", 0), line("of y", task=0)], name="b")
    assert penstock("job", "tail", "j1", "j2", "--task", "x").stdout == "a | of x\n"


def test_a_log_that_is_gone_does_not_hide_the_others(penstock: Run, service: Service) -> None:
    logged(service, [line("one")], name="a", tags={"set": "s1"})
    logged(service, [line("two")], name="b", tags={"set": "s1"})
    service.jobs["j1"].log_gone = True
    result = penstock("job", "tail", "--set", "s1")
    assert (result.exit_code, result.stdout) == (0, "b | two\n")
    assert "a: the log of this job is gone" in result.stderr
    assert penstock("job", "tail", "j1").exit_code == 2


@pytest.mark.parametrize("words", [[], ["j1", "--set", "s1"], ["--set", "nowhere"], ["j1", "j404"]])
def test_jobs_that_are_not_there(penstock: Run, service: Service, words: list[str]) -> None:
    logged(service, LINES)
    result = penstock("job", "tail", *words)
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_line_is_shown_while_the_job_runs(service: Service, home: Path) -> None:
    """In a pipe, too, lines come when they are printed."""
    job = logged(service, [line("early")], "never")
    service.jobs[job].looks = 2
    command = [sys.executable, "-m", "penstock.cli", "job", "tail", job, "-f"]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {**os.environ, "PYTHONPATH": path, "PENSTOCK_URL": service.url, "PENSTOCK_TOKEN": TOKEN}
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "early\n"
        service.jobs[job].log = [line("early"), line("late")]
        assert running.stdout.readline() == "late\n"
        assert running.poll() is None
    finally:
        running.kill()
        running.communicate()
