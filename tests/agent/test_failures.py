"""Why a job did not succeed, as its agent reports it. Each cause is brought about for real. [JOB-1]"""

import os
import re
from pathlib import Path

import pytest

from penstock.agent import machine
from penstock.agent.client import Control
from penstock.agent.downloads import NotFetched, download
from penstock.agent.inputs import input_failure
from penstock.agent.machine import OomCounter, OomKills, count_oom_kills, oom_kills_since
from penstock.domain.jobs import failures
from penstock.domain.jobs.failures import Kind
from tests.agent.conftest import accepted
from tests.agent.control_plane import ControlPlane, order
from tests.agent.machine import little_memory, small_disk


def failure_of(job):
    """The failure that the job's agent reported, which the service takes whole."""
    return accepted(job.finish()["failure"])


def test_a_failure_has_the_exit_code_the_task_and_its_last_lines(worker):
    script = "seq 100; echo about to fail >&2; exit 3"
    told = failure_of(worker(tasks=[{"name": "a", "script": "true"}, {"name": "build", "script": script}]))
    assert (told["kind"], told["evidence"], told["task"], told["task_name"]) == ("exited", {"exit_code": 3}, 1, "build")
    assert len(told["lines"]) == failures.MAX_LINES
    assert {"about to fail", "100"} <= set(told["lines"])


def test_a_job_that_succeeds_has_no_failure(worker):
    assert worker(script="echo all is well").finish()["failure"] is None


def test_exit_code_137_alone_proves_nothing(worker):
    told = failure_of(worker(script="exit 137"))
    assert (told["kind"], told["evidence"]["exit_code"]) == ("exited", 137)
    assert told["evidence"]["perhaps"].startswith("killed, perhaps")


def test_an_exit_code_without_a_signal_names_none(worker):
    assert failure_of(worker(script="exit 255"))["evidence"] == {"exit_code": 255}


@pytest.mark.parametrize(("number", "name"), [(6, "SIGABRT"), (9, "SIGKILL"), (11, "SIGSEGV")])
def test_the_evidence_names_the_signal(worker, number, name):
    told = failure_of(worker(script=f"kill -{number} $$"))
    assert told["kind"] == "killed"
    assert (told["evidence"]["signal"], told["evidence"]["signal_name"]) == (number, name)
    assert ("perhaps" in told["evidence"]) == (number == 9)


def test_a_command_that_crashes_below_the_shell(worker):
    told = failure_of(worker(script="bash -c 'kill -11 $$'"))
    assert (told["kind"], told["evidence"]["exit_code"]) == ("exited", 139)
    assert "SIGSEGV" in told["evidence"]["perhaps"]


@pytest.mark.parametrize("script", ["exec {eat}", "{eat}; exit 1"], ids=["killed", "its shell goes on"])
def test_the_kernel_proves_lack_of_memory(worker, script):
    """There is room for several agents, of up to 50 MB: the kernel kills what has most."""
    eat = """python3 -c "x = [bytes(range(256)) * 4096 for _ in range(400)]" """
    with little_memory(256 << 20) as processes:
        job = worker(script=script.format(eat=eat))
        agent = job.start(before=lambda: processes.write_text(str(os.getpid())))
        assert agent.wait(60) == 0, job.log()
        told = job.outcome()["failure"]
    assert told["kind"] == "out_of_memory", job.outcome()
    assert told["evidence"]["oom_kills"] >= 1
    assert told["evidence"]["memory_limit_bytes"] == 256 << 20
    assert "of its control group" in told["evidence"]["source"]
    assert "out of memory" in job.outcome()["reason"]


def test_the_kernel_kills_a_job_before_an_agent_that_is_larger(worker):
    """Each process of the job has a third of what the agent has."""
    small = """python3 -c "x = bytes(range(256)) * 16384; __import__('time').sleep(600)" """
    with little_memory(160 << 20) as processes:
        job = worker(script=f"for _ in $(seq 30); do {small} & done; wait -n; exit 1")
        agent = job.start(before=lambda: processes.write_text(str(os.getpid())))
        assert agent.wait(60) == 0, job.log()
        assert job.outcome()["failure"]["kind"] == "out_of_memory", job.outcome()


AWAITS = "until [ $(cat /proc/$$/oom_score_adj) != $(cat /proc/$PPID/oom_score_adj) ]; do sleep 0.05; done"
SCORE = f"{AWAITS}; cat /proc/$$/oom_score_adj"


@pytest.mark.parametrize("added", [0, 600])
def test_the_kernel_is_told_of_all_that_an_agent_starts(worker, added):
    own = int(Path("/proc/self/oom_score_adj").read_text())
    job = worker(
        script=f"{SCORE}; bmat process start beside bash -c '{SCORE}; touch $PENSTOCK_WORK/up'\n"
        "until [ -e $PENSTOCK_WORK/up ]; do sleep 0.05; done",
        health={"before": SCORE, "after": "true", "timeout_seconds": 20},
    )
    agent = job.start(before=lambda: Path("/proc/self/oom_score_adj").write_text(str(min(own + added, 1000))))
    assert agent.wait(60) == 0, job.log()
    said = [job.plane.lines(stream) for stream in ("health", "stdout", "bg.beside.stdout")]
    assert said == [[str(min(own + added + 500, 1000))]] * 3


def test_the_machines_count_proves_nothing_about_a_task_that_was_not_killed(tmp_path, monkeypatch):
    record = OomCounter("oom_kill of the whole machine", tmp_path / "vmstat")
    record.path.write_text("pgfault 12\noom_kill 3\n")
    monkeypatch.setattr(machine, "_oom_counters", lambda: [record])
    before = count_oom_kills()
    assert before == {record: 3}
    record.path.write_text("oom_kill 4\n")
    assert oom_kills_since(before, was_killed=False) is None
    assert oom_kills_since(before, was_killed=True) == OomKills(1, record.source, None)
    assert oom_kills_since(count_oom_kills(), was_killed=True) is None


def test_a_full_disk_is_measured_and_outputs_are_uploaded(worker):
    script = "echo kept > ../work/kept.txt; dd if=/dev/zero of=fill bs=64k 2>/dev/null; exit 1"
    job = worker(script=script, output_rules=["=/work/kept.txt"])
    with small_disk(job.root, "2m"):
        told = failure_of(job)
        assert job.plane.outputs() == {"/work/kept.txt": b"kept\n"}
    assert told["kind"] == "disk_full"
    assert told["evidence"]["path"] == "/work"
    assert told["evidence"]["free_bytes"] < 32 << 10
    assert told["evidence"]["total_bytes"] == 2 << 20
    assert re.search(r"exited with code 1: the disk of /work is full: .* of 2.0 MiB are free", job.outcome()["reason"])


def test_a_disk_without_room_for_another_file_is_full(worker):
    job = worker(script="for i in $(seq 500); do : > f$i || exit 4; done 2>/dev/null")
    with small_disk(job.root, "8m,nr_inodes=100"):
        told = failure_of(job)
    assert (told["kind"], told["evidence"]["free_files"], told["evidence"]["exit_code"]) == ("disk_full", 0, 4)


def test_a_task_that_reports_a_full_disk_and_cleans_up_is_believed(worker):
    told = failure_of(worker(script="echo >&2 'cc1: error: writing: No space left on device'; exit 1"))
    assert told["kind"] == "disk_full"
    assert told["evidence"]["error"] == "cc1: error: writing: No space left on device"


def test_a_disk_that_was_full_before_the_job_makes_the_machine_broken(worker):
    job = worker()
    with small_disk(job.root, "64k,nr_inodes=1"):
        assert job.run() == 1
    told = job.outcome()
    assert told["result"] == "broken"
    assert (told["failure"]["kind"], told["failure"]["evidence"]["source"]) == ("disk_full", "the agent's own writing")


def test_a_full_disk_keeps_a_task_from_starting(worker):
    fill = "cat /dev/zero > fill 2>/dev/null; true"
    long = "#" * 8192
    job = worker(tasks=[{"name": "a", "script": fill}, {"name": "b", "script": long}])
    with small_disk(job.root, "2m"):
        told = failure_of(job)
    assert (told["kind"], told["task"]) == ("disk_full", 1)


def test_inputs_that_do_not_fit(worker):
    job = worker(inputs=True)
    job.plane.keep("/input/big", b"x" * (3 << 20))
    with small_disk(job.root, "2m"):
        told = failure_of(job)
    assert (told["kind"], told["evidence"]["path"]) == ("disk_full", "/input/big")


def test_a_task_that_cannot_start(worker):
    told = failure_of(worker(tasks=[{"name": "a", "script": "", "env": {"BAD": "a\0b"}}]))
    assert (told["kind"], told["task_name"]) == ("not_started", "a")
    assert told["evidence"]["error"]


@pytest.mark.parametrize(
    ("script", "rules", "kind", "evidence"),
    [
        ("true", ["=/work/report"], "output_missing", {"rule": "=/work/report"}),
        (
            "truncate -s 2M big",
            ["/work/big"],
            "output_too_large",
            {"path": "/work/big", "size_bytes": 2 << 20, "limit_bytes": 1 << 20},
        ),
        ("touch $(seq 30)", ["/work/*"], "too_many_outputs", {"files": 30, "limit_files": 20}),
    ],
)
def test_each_fault_of_an_output_has_its_kind(worker, script, rules, kind, evidence):
    told = failure_of(worker(script=script, output_rules=rules))
    assert (told["kind"], told["evidence"]) == (kind, evidence)


@pytest.mark.parametrize(("data", "kind"), [(b"all of it", "input_truncated"), (b"", "input_failed")])
def test_a_truncated_input(tmp_path, data, kind):
    with ControlPlane(order()) as plane:
        plane.keep("/input/a", data, size=12)
        with pytest.raises(NotFetched) as why:
            download(Control(), plane.inputs[0], str(tmp_path / "a"), tries=2)
    told = input_failure("/input/a", 12, why.value)
    assert (told.kind, told.evidence.get("found_bytes")) == (kind, len(data) or None)


def test_a_failure_contains_no_secret(worker):
    resources = {"db": {"type": "db", "metadata": {"password": "hunter2hunter2"}, "public": []}}
    script = "echo 'the password is hunter2hunter2'; exit 1"
    job = worker(tasks=[{"name": "with hunter2hunter2", "script": script}], resources=resources)
    assert "hunter2" not in str(failure_of(job))


def test_the_service_knows_every_kind_that_an_agent_reports():
    told = {kind.value for kind in Kind if failures.MEANINGS[kind].is_told}
    assert told >= {"exited", "killed", "out_of_memory", "disk_full", "timed_out", "output_missing"}
