"""How work is stopped, and that no process survives it."""

import signal
import time

import pytest

from tests.agent.conftest import accepted, is_alive
from tests.agent.control_plane import PATIENCE_SECONDS

RULES = ["/work/*.txt"]


def pid_in(job, name):
    return (job.root / "work" / name).read_text()


def cancelled(job):
    """Start a job, cancel it once it says `ready`, return the agent's exit code."""
    agent = job.start()
    job.plane.wait_for_line("ready")
    job.plane.cancel = True
    return agent.wait(25)


def test_cancel_lets_a_trap_clean_up_and_uploads_outputs(worker):
    trap = "trap 'echo evidence > e.txt; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
    job = worker(script=trap, output_rules=RULES, grace_seconds=20)
    assert cancelled(job) == 0
    assert job.outcome()["result"] == "cancelled"
    assert job.outcome()["reason"] == "the job was cancelled; it got SIGTERM"
    failure = job.outcome()["failure"]
    assert (failure["kind"], failure["lines"][0], failure["task_name"]) == ("cancelled", "ready", "build")
    assert job.plane.outputs() == {"/work/e.txt": b"evidence\n"}


def test_a_task_that_ignores_term_is_killed_after_the_grace(worker):
    script = "trap '' TERM; echo $$ > pid; echo out > e.txt; echo ready; while :; do sleep 0.1; done"
    job = worker(script=script, output_rules=RULES, grace_seconds=0.5)
    assert cancelled(job) == 0
    assert job.outcome()["reason"] == "the job was cancelled; it got SIGTERM, and SIGKILL after 0.5 s"
    assert job.plane.outputs() == {"/work/e.txt": b"out\n"}
    assert not is_alive(pid_in(job, "pid"))


def test_cancel_between_tasks_counts_only_if_it_stopped_work(worker):
    job = worker(script="echo ready; sleep 0.1", output_rules=["=/work/none"])
    job.plane.misbehave = lambda endpoint, count: 503 if endpoint == "finish" and count < 3 else None
    agent = job.start()
    job.plane.wait_for(lambda: "finish" in job.plane.calls)
    job.plane.cancel = True
    assert agent.wait(25) == 0
    assert job.outcome()["result"] == "failed"


def test_more_time_keeps_the_job_running(worker):
    job = worker(script="echo ready; sleep 3; echo done", timeout_seconds=2)
    job.plane.more = {"timeout_seconds": 60}
    assert job.finish()["result"] == "succeeded"


@pytest.mark.parametrize(("first", "told", "counts"), [(1, 3, 3), (2, 1, 2)])
def test_more_time_counts_from_the_same_start_and_is_never_less(worker, first, told, counts):
    job = worker(script="echo ready; sleep 1000", timeout_seconds=first)
    job.plane.more = {"timeout_seconds": told}
    assert job.finish()["reason"] == f"the job ran longer than its timeout of {counts}s; it got SIGTERM"


def test_timeout(worker):
    job = worker(script="echo waiting; echo out > e.txt; sleep 1000", output_rules=RULES, timeout_seconds=2)
    outcome = job.finish()
    assert outcome["result"] == "timed_out"
    assert outcome["reason"] == "the job ran longer than its timeout of 2s; it got SIGTERM"
    assert outcome["signal"] == signal.SIGTERM
    failure = accepted(outcome["failure"])
    assert (failure["kind"], failure["lines"]) == ("timed_out", ["waiting"])
    assert failure["evidence"] == {
        "bound": "timeout", "bound_seconds": 2, "signal": 15, "signal_name": "SIGTERM", "ended": "SIGTERM",
    }  # fmt: skip
    assert job.plane.outputs() == {"/work/e.txt": b"out\n"}


def test_leftover_processes_are_dead_after_the_job(worker):
    """UNIT-2: nothing of the job is left for the next one to find."""
    forked = "(env -i setsid bash -c 'echo $$ > bare; exec sleep 1000' &>/dev/null &)"
    named = "(setsid bash -c 'echo $$ > named; exec sleep 1000' &>/dev/null &)"
    settled = "until [ -s bare -a -s named -a -s background ]; do sleep 0.05; done"
    background = "bash -c 'echo $$ > background; exec sleep 1000' &>/dev/null &"
    script = f"{forked}; {named}; {background}\n{settled}"
    job = worker(script=script)
    assert job.finish()["result"] == "succeeded"
    assert [is_alive(pid_in(job, name)) for name in ("bare", "named", "background")] == [False] * 3
    assert any("left running" in line for line in job.plane.lines("worker"))


def test_a_leftover_process_that_holds_the_pipes_does_not_hold_the_job(worker):
    job = worker(script="setsid sleep 1000 & echo $! > pid; echo done")
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["done"]
    assert any("stayed open" in line for line in job.plane.lines("task"))
    assert not is_alive(pid_in(job, "pid"))


def test_a_lost_lease_stops_the_work_without_a_report(worker):
    """JOB-2: the work is dead before its lease is over."""

    def cut_off(endpoint, count):
        return "drop" if endpoint != "hello" and "ready" in job.plane.lines("stdout") else None

    script = "trap '' TERM; echo $$ > pid; echo ready; while :; do sleep 0.1; done"
    job = worker(cut_off, script=script, lease_seconds=1.5, grace_seconds=60)
    assert job.run() == 1
    assert job.plane.finishes == []
    assert not is_alive(pid_in(job, "pid"))
    assert "the lease could not be renewed" in job.log()


def test_a_lost_lease_still_uploads_what_it_can(worker):
    def no_renewal(endpoint, count):
        return 503 if endpoint in ("events", "heartbeat") else None

    job = worker(no_renewal, script="echo out > e.txt; sleep 1000", lease_seconds=1.5, output_rules=RULES)
    assert job.run() == 1
    assert job.plane.finishes == []
    assert job.plane.outputs() == {"/work/e.txt": b"out\n"}


def test_410_stops_everything_at_once(worker):
    """SEC-2: who is no longer wanted acts no more."""

    def gone(endpoint, count):
        return 410 if endpoint == "heartbeat" and "ready" in job.plane.lines("stdout") else None

    job = worker(gone, script="echo $$ > pid; echo ready; sleep 1000", output_rules=["/work/**"])
    assert job.run() == 0
    assert job.plane.finishes == []
    assert job.plane.uploads == {}
    assert not is_alive(pid_in(job, "pid"))


def test_sigterm_to_the_agent_ends_the_work(worker):
    job = worker(script="trap '' TERM; echo $$ > pid; echo ready; while :; do sleep 0.1; done", grace_seconds=60)
    agent = job.start()
    job.plane.wait_for_line("ready")
    agent.terminate()
    assert agent.wait(25) == 1
    assert job.plane.finishes == []
    assert not is_alive(pid_in(job, "pid"))


def terminated(worker, misbehave=lambda endpoint, count: None):
    """Run a job whose log nobody follows, and terminate its agent. Return the job, and how long that took."""
    script = "echo one; echo two; touch said; sleep 1000"
    long = {"heartbeat_seconds": 100, "lease_seconds": 300, "watched": False}
    job = worker(misbehave, script=script, output_rules=["/work/said"], **long)
    job.plane.more = {"watched": False}
    agent = job.start()
    until = time.monotonic() + PATIENCE_SECONDS
    while not (job.root / "work" / "said").exists() and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.3)  # the agent reads what the script wrote
    began = time.monotonic()
    agent.terminate()
    assert agent.wait(25) == 1
    return job, time.monotonic() - began


def test_sigterm_does_not_lose_the_lines_that_wait_for_the_next_heartbeat(worker):
    job, _ = terminated(worker)
    assert job.plane.lines("stdout") == ["one", "two"]
    assert any(line.startswith("process was killed") for line in job.plane.lines("task"))
    assert job.plane.finishes == []
    assert job.plane.uploads == {}


@pytest.mark.parametrize("fault", ["drop", 503, 410, 422])
def test_after_sigterm_the_rest_of_the_log_is_tried_once(worker, fault):
    """SEC-2: a refusal ends it, too."""
    job, seconds = terminated(worker, lambda endpoint, count: fault if endpoint == "events" else None)
    assert seconds < 9
    assert job.plane.calls.count("events") == 1
    assert "the rest of the log cannot be sent" in job.log()


def test_an_agent_that_was_killed_does_not_run_its_job_again(worker):
    """JOB-2: what was begun once is not begun again."""
    job = worker(script="echo $$ >> pid; echo ready; exec sleep 1000")
    agent = job.start()
    job.plane.wait_for_line("ready")
    agent.kill()
    agent.wait(25)
    assert job.run() == 1
    assert len(job.plane.hellos) == 1
    assert "will not run twice" in job.log()
    assert not is_alive(pid_in(job, "pid"))
