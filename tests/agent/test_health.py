"""The site's health checks, before and after a job, and their consequences. [JOB-1] [UNIT-2]"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.conftest import is_alive
from tests.agent.control_plane import PATIENCE_SECONDS

FUNCTIONS = Path(__file__).parents[2] / "functions"


def health(before="", after="", timeout=20):
    return {"before": before, "after": after, "timeout_seconds": timeout}


def test_a_healthy_machine_runs_the_job_between_both_checks(worker):
    job = worker(script="echo the job", health=health("echo before; echo oh >&2", "echo after"))
    assert job.finish()["broken"] is None
    said = [(event["stream"], event["payload"]) for _, event in sorted(job.plane.events.items())]
    checks = [(stream, payload) for stream, payload in said if stream == "health" or payload.startswith("checking")]
    assert checks == [
        ("detail", "checking the machine before the job"), ("health", "before"), ("health", "oh"),
        ("detail", "checking the machine after the job"), ("health", "after"),
    ]  # fmt: skip
    assert said.index(("health", "oh")) < said.index(("stdout", "the job")) < said.index(("health", "after"))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo no disk; exit 3", "exited with code 3: no disk"),
        ("exit 1", "exited with code 1"),
        ("kill -9 $$", "was killed by signal 9 (SIGKILL)"),
        ("echo hm; sleep 300", "took longer than 3s: hm"),
    ],
)
def test_on_a_broken_machine_no_task_begins(worker, script, said):
    job = worker(
        script='touch "$PENSTOCK_WORK/began"; echo began',
        health=health(script, "echo after", timeout=3 if "sleep" in script else 20),
    )
    assert job.run() == 1
    told = job.outcome()
    assert (told["result"], told["exit_code"]) == ("broken", None)
    assert told["broken"] == told["reason"] == f"its health check before the job {said}"
    assert not (job.root / "work/began").exists()
    assert job.plane.lines("stdout") == []
    assert "after" not in job.plane.lines("health")


def test_a_failed_check_after_the_job_does_not_change_its_result(worker):
    job = worker(script="exit 7", health=health(after="echo hot; exit 2"), reuse=True)
    assert job.run() == 1
    told = job.outcome()
    assert (told["result"], told["exit_code"]) == ("failed", 7)
    assert told["broken"] == "its health check after the job exited with code 2: hot"
    assert len(job.plane.hellos) == 1, "it does not come for another job"


def test_outputs_are_uploaded_before_the_check_after_the_job(worker):
    job = worker(
        script='echo x > "$PENSTOCK_WORK/out"', health=health(after='rm -r "$PENSTOCK_WORK"; exit 1'),
        output_rules=["/work/out"],
    )  # fmt: skip
    job.run()
    assert job.plane.outputs() == {"/work/out": b"x\n"}


def test_a_check_sees_nothing_of_the_job_and_leaves_nothing(worker):
    before = "env | sort; sleep 300 & echo $! > $PENSTOCK_WORK/pid"
    job = worker(script="cat $PENSTOCK_WORK/pid", env={"SECRET": "of the job"}, health=health(before))
    job.finish()
    seen = {line.partition("=")[0] for line in job.plane.lines("health") if "=" in line}
    own = {"PWD", "SHLVL", "_", "OLDPWD"}
    assert seen - own == {
        "PATH", "HOME", "LANG", "PENSTOCK_WORKER_ID", "PENSTOCK_TARGET", "PENSTOCK_ROOT", "PENSTOCK_WORK",
    }  # fmt: skip
    assert not is_alive(job.plane.lines("stdout")[0])
    assert list(job.folder.glob("health-*")) == []


def test_a_job_cancelled_during_the_check_is_cancelled_and_the_machine_is_not_broken(worker):
    job = worker(script="echo began", health=health("echo checking; sleep 300"))
    agent = job.start()
    job.plane.wait_for(lambda: "checking" in job.plane.lines("health"))
    job.plane.cancel = True
    assert agent.wait(PATIENCE_SECONDS) == 0
    assert (job.outcome()["result"], job.outcome()["broken"]) == ("cancelled", None)
    assert job.plane.lines("stdout") == []


def test_the_machine_is_checked_after_a_cancelled_job(worker):
    job = worker(script="echo began; sleep 300", health=health(after="exit 1"))
    agent = job.start()
    job.plane.wait_for_line("began")
    job.plane.cancel = True
    assert agent.wait(PATIENCE_SECONDS) == 1
    assert job.outcome()["result"] == "cancelled"
    assert job.outcome()["broken"] == "its health check after the job exited with code 1"


def test_an_agent_that_cannot_clean_reports_a_broken_machine(worker):
    """UNIT-2: it does not leave it to the silence that follows."""
    job = worker(reuse=True)
    job.plane.answer_next_hellos(410)
    code = (
        "import sys, pathlib; from penstock.agent import worker\n"
        "def clean(job): raise OSError('/work/x: device busy')\n"
        "worker.clean_machine = clean; sys.exit(worker.run_worker(pathlib.Path(sys.argv[1])))"
    )
    environment = {**os.environ, "PYTHONPATH": str(FUNCTIONS)}
    command = [sys.executable, "-c", code, str(job.folder / "agent.json")]
    ended = subprocess.run(command, env=environment, capture_output=True, timeout=PATIENCE_SECONDS, check=False)
    assert ended.returncode == 1, ended.stderr
    first, last = job.plane.hellos
    assert (last["broken"], last["previous"]) == ("/work/x: device busy", first["token"])
    assert "cleaned" not in last
