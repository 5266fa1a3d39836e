"""Submitting a job, following it, and exiting as it did."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from penstock.agent.joblog import WATCHED_SECONDS
from penstock.cli import client, follow, transfer
from penstock.domain.artifacts.volumes import PART_BYTES
from tests.cli.conftest import Run, plain
from tests.cli.service import Service

CODES = {"succeeded": 0, "failed": 1, "cancelled": 3, "errored": 4}


@pytest.mark.parametrize("end", CODES)
def test_exits_as_the_job_did(penstock: Run, good: str, end: str) -> None:
    result = penstock("job", "run", good, "-T", f"end={end}")
    assert result.exit_code == CODES[end]
    assert f" {end}" in result.stderr
    assert "2m 30s, of which it ran 1m 30s" in result.stderr
    assert "/work/out/log.txt" in result.stderr


@pytest.mark.parametrize("end", CODES)
def test_tail_exits_as_the_job_did(penstock: Run, service: Service, end: str) -> None:
    assert penstock("job", "tail", service.add(end)).exit_code == CODES[end]


def test_reason_is_shown(penstock: Run, service: Service) -> None:
    assert "failed: the script ended with status 3" in penstock("job", "tail", service.add("failed")).stderr


def test_only_the_jobs_stdout_is_on_stdout(penstock: Run, good: str) -> None:
    result = penstock("job", "run", good)
    assert result.stdout == "building\n"
    lines = result.stderr.splitlines()
    for line in ("|=| attempt 1 begins", "|W| hello from host", "a warning", "|T| task 0 is done"):
        assert line in lines


def test_everything_is_sent(penstock: Run, service: Service, good: str) -> None:
    options = "-t lab --host rack==4 -r bench -r db -O /work/* -T a=1 -e B=2=3"
    numbers = "--name n --priority 5 --timeout 30m --retries 2"
    assert penstock("job", "run", good, "--no-wait", *options.split(), *numbers.split()).exit_code == 0
    assert service.jobs["j1"].body == {
        "script": Path(good).read_text(),
        "path": "hello.sh",
        "target": "lab",
        "host": {"labels": "rack==4"},
        "resources": ["bench", "db"],
        "output_rules": ["/work/*"],
        "tags": {"a": "1"},
        "env": {"B": "2=3"},
        "name": "n",
        "priority": 5,
        "timeout": 1800,
        "retries": 2,
    }


def test_plan(penstock: Run, service: Service, good: str) -> None:
    result = penstock("job", "run", good, "--plan", "-r", "bench")
    assert result.exit_code == 0
    for part in ("it could start in about 4 min", "resource/bench", "ubuntu-24.04", "4m", "a guess", "resource.bench"):
        assert part in result.stdout
    assert not service.jobs
    assert service.asked[0][3]["resources"] == ["bench"]
    assert json.loads(penstock("job", "run", good, "--plan", "--json").stdout)["would_wait"]


def test_plan_that_is_refused(penstock: Run, service: Service, bad: str) -> None:
    assert penstock("job", "run", bad, "--plan").exit_code == 2
    assert not service.asked


def test_options_of_zero_are_sent(penstock: Run, service: Service, good: str) -> None:
    penstock("job", "run", good, "-W", "--priority", "0", "--retries", "0")
    assert service.jobs["j1"].body["priority"] == 0
    assert service.jobs["j1"].body["retries"] == 0


def test_no_wait_prints_the_id(penstock: Run, good: str) -> None:
    assert penstock("job", "run", good, "--no-wait").stdout == "j1\n"
    assert json.loads(penstock("job", "run", good, "--no-wait", "--json").stdout) == {"id": "j2"}


def test_json_keeps_stdout_for_the_job(penstock: Run, good: str) -> None:
    result = penstock("--json", "job", "run", good, "-T", "end=failed")
    assert json.loads(result.stdout)["outcome"] == "failed"
    assert "building" in result.stderr
    assert result.exit_code == 1


def test_tail_json_is_an_event_a_line(penstock: Run, service: Service) -> None:
    result = penstock("job", "tail", service.add(), "--json")
    assert [json.loads(line)["seq"] for line in result.stdout.splitlines()] == [1, 2, 3, 4, 5]


def test_tail_after_and_no_follow(penstock: Run, service: Service) -> None:
    job = service.add("never")
    result = penstock("job", "tail", job, "--no-follow")
    assert (result.exit_code, result.stderr) == (0, "|=| attempt 1 begins\n")
    assert penstock("job", "tail", service.add(), "--after", "3").stdout == ""


@pytest.mark.parametrize("follow", ["--follow", "--no-follow"])
def test_tail_from_a_number_on_or_the_last_ones(penstock: Run, service: Service, follow: str) -> None:
    def shown(*options: str) -> list[int]:
        result = penstock("job", "tail", service.add(), "--json", follow, *options)
        return [json.loads(line)["seq"] for line in result.stdout.splitlines()]

    assert shown("--from", "1") == [1, 2, 3, 4, 5]
    assert shown("--from", "4") == [4, 5]
    assert shown("--last", "2") == [4, 5]
    assert shown("--last", "99") == [1, 2, 3, 4, 5]
    assert shown("--last", "4", "--from", "4") == [4, 5]


def test_script_from_stdin(penstock: Run, service: Service) -> None:
    assert plain("job", "run", "-", "-W", input="#!/bin/sh\ntrue\n").exit_code == 0
    assert service.jobs["j1"].body["path"] == "stdin"


def test_problems_are_found_before_the_service_is_asked(penstock: Run, service: Service, bad: str) -> None:
    result = penstock("job", "run", bad)
    assert result.exit_code == 2
    assert "error: bad.sh is not a good job file: 2 problems" in result.stderr
    assert "bad.sh:4:4: " in result.stderr
    assert "bad.sh:5:" in result.stderr
    assert service.asked == []


def test_refusals_show_every_detail(penstock: Run, good: str) -> None:
    result = penstock("job", "run", good, "-t", "nowhere")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "error: there is no target nowhere",
        "hello.sh:2:4: no such target (try default)",
        "no file",
    ]


def test_dependencies_are_sent(penstock: Run, service: Service, good: str) -> None:
    depends = ["-d", "first=j1", "-d", "last=j2,on=failure,copy_outputs=false"]
    assert penstock("job", "run", good, *depends, "--no-wait").exit_code == 0
    assert service.asked[0][3]["dependencies"] == {
        "first": {"job": "j1"},
        "last": {"job": "j2", "on": "failure", "copy_outputs": False},
    }


def test_inputs_are_sent_after_the_job_that_waits_for_them(
    penstock: Run, service: Service, good: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "PAUSE_SECONDS", 0.0)
    (tmp_path / "a.txt").write_bytes(b"a" * 600_000)
    (tmp_path / "c.txt").write_bytes(b"")
    service.refuse_puts = 2
    given = ["-i", str(tmp_path / "a.txt"), "-i", f"b={tmp_path / 'c.txt'}"]
    result = penstock("job", "run", good, *given, "--no-wait")
    assert (result.exit_code, result.stdout) == (0, "j1\n"), result.stderr
    assert service.asked[0][3]["inputs"] == ["a.txt", "b"]
    digests = {"a.txt": hashlib.sha256(b"a" * 600_000).hexdigest(), "b": hashlib.sha256(b"").hexdigest()}
    assert service.sent == digests
    asked = [body for _, path, _, body in service.asked if path == "/v1/jobs/j1/inputs"]
    assert asked[-1] == {"name": "b", "size": 0, "sha256": digests["b"]}
    assert "sending a.txt broke off (403 Forbidden): once more" in result.stderr
    assert service.paths("POST").count("/v1/jobs/j1/inputs/commit") == 2


def test_uploading_inputs_gives_up_after_some_tries(
    penstock: Run, service: Service, good: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "PAUSE_SECONDS", 0.0)
    service.refuse_puts = 100
    (tmp_path / "a.txt").write_text("a")
    result = penstock("job", "run", good, "-i", str(tmp_path / "a.txt"))
    assert result.exit_code == 4
    assert "sending a.txt broke off: 403 Forbidden" in result.stderr
    again = f"`penstock job send j1 a.txt={tmp_path / 'a.txt'}` continues, `penstock job cancel j1` ends it"
    assert again in " ".join(result.stderr.split())
    assert penstock("job", "send", "j1", str(tmp_path / "a.txt")).exit_code == 4
    service.refuse_puts = 0
    result = penstock("job", "send", "j1", str(tmp_path / "a.txt"))
    assert (result.exit_code, result.stdout) == (0, "job j1 has all of its inputs\n")


def test_send_names_the_inputs_that_are_missing(penstock: Run, service: Service, tmp_path: Path) -> None:
    service.add(inputs=["a.txt", "b", "c"])
    (tmp_path / "a.txt").write_text("a")
    result = penstock("job", "send", "j1", str(tmp_path / "a.txt"))
    assert (result.exit_code, result.stdout) == (0, "job j1 waits for b, c\n")
    result = penstock("job", "send", "j1", str(tmp_path / "a.txt"), "--json")
    assert json.loads(result.stdout) == {"id": "j1", "waits_for": ["b", "c"]}


def test_a_big_input_is_uploaded_in_parts_each_once(
    penstock: Run, service: Service, good: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "PAUSE_SECONDS", 0.0)
    with (tmp_path / "big").open("wb") as file:
        file.truncate(2 * PART_BYTES)
        file.seek(2 * PART_BYTES)
        file.write(b"tail")
    service.refuse_puts = 1
    result = penstock("job", "run", good, "-i", str(tmp_path / "big"), "--no-wait")
    assert (result.exit_code, result.stdout) == (0, "j1\n"), result.stderr
    zeros = hashlib.sha256(bytes(PART_BYTES)).hexdigest()
    assert service.sent == {"big.1": zeros, "big.2": zeros, "big.3": hashlib.sha256(b"tail").hexdigest()}
    assert service.puts == 4
    assert "sending big broke off (403 Forbidden): once more" in result.stderr


def test_inputs_that_cannot_be_read_are_refused_before_submitting(
    penstock: Run, service: Service, good: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("a")
    for words, said in (
        (["-i", str(tmp_path / "none")], "is not there"),
        (["-i", str(tmp_path)], "is a folder"),
        (["-i", str(tmp_path / "a"), "-i", f"a={good}"], "two inputs are called `a`"),
    ):
        result = penstock("job", "run", good, *words)
        assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
    assert service.asked == []


def test_lost_reply_makes_one_job(penstock: Run, service: Service, good: str) -> None:
    service.lose_replies = 2
    result = penstock("job", "run", good, "--no-wait")
    assert (result.exit_code, result.stdout) == (0, "j1\n")
    keys = {headers["Idempotency-Key"] for method, _, headers, _ in service.asked if method == "POST"}
    assert (service.paths("POST"), len(keys), len(service.jobs)) == (["/v1/jobs"] * 3, 1, 1)


def test_each_submit_is_a_job(penstock: Run, service: Service, good: str) -> None:
    penstock("job", "run", good, "--no-wait")
    penstock("job", "run", good, "--no-wait")
    assert len(service.jobs) == 2


def test_tail_shows_what_the_job_waits_for(penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "WHY_FIRST", 0.0)
    job = service.add()
    service.jobs[job].waits = 3
    result = penstock("job", "tail", job)
    assert "|=| queued: the job waits for bench: held are bench-1 by j9; position 2 in the queue" in result.stderr


def test_service_that_is_away_for_a_while(penstock: Run, service: Service, good: str) -> None:
    service.away = 3
    assert penstock("job", "run", good).exit_code == 0


def test_service_that_is_lost_while_following(
    penstock: Run, service: Service, good: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "PATIENCE_SECONDS", 0.2)
    service.away = 10**6
    assert penstock("job", "tail", "j1").exit_code == 4
    monkeypatch.setenv("PENSTOCK_URL", "http://127.0.0.1:9")
    result = penstock("job", "tail", "j1")
    assert result.exit_code == 5
    assert "trying again" in result.stderr


def test_rate_limit_is_obeyed(penstock: Run, service: Service) -> None:
    service.limited = 1
    begun = time.monotonic()
    assert penstock("whoami").exit_code == 0
    assert time.monotonic() - begun >= 1


def test_rate_limit_without_end(penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "Patience", partial(client.Patience, limited=0.5))
    service.limited = 10**6
    result = penstock("whoami")
    assert (result.exit_code, "slow down" in result.stderr) == (2, True)


def test_ctrl_c_leaves_the_job(penstock: Run, service: Service, good: str) -> None:
    command = [sys.executable, "-m", "penstock.cli", "job", "run", good, "-T", "end=never"]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    while sum("/events" in path for path in service.paths("GET")) < 2:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "job j1 continues" in stderr
    assert "penstock job cancel j1" in stderr
    assert "Traceback" not in stderr
    assert not service.jobs["j1"].cancelled


def test_a_line_is_shown_within_two_seconds() -> None:
    """While somebody looks: the agent's wait and the CLI's, at their longest."""
    assert WATCHED_SECONDS + follow.SLOW < 2
