"""What can happen to machines: full disks, changed clocks, network outages, endless output, closed files."""

import os
import time
from pathlib import Path

import pytest

from penstock import agent as package
from tests.agent.conftest import Worker, is_alive
from tests.agent.machine import small_disk

STEPPED = """
import datetime, itertools, runpy, sys, time
real, steps = time.time, itertools.cycle([0, -86400, 172800])
def stepped():  # set anew whenever somebody looks: a day back, two days on
    return real() + next(steps)
class Stepped(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(stepped(), tz)
time.time, time.time_ns, datetime.datetime = stepped, lambda: int(stepped() * 10**9), Stepped
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.e2e
def test_setting_the_clock_moves_no_deadline(worker, tmp_path):
    """JOB-2: neither the lease nor the timeout is over for it, nor any the longer."""
    job = worker(script="for i in $(seq 10); do echo $i; done; sleep 60", lease_seconds=30, timeout_seconds=8)
    real, job.agent = job.agent, tmp_path / "stepped.py"
    job.agent.write_text(STEPPED.replace("sys.argv = sys.argv[1:]", f"sys.argv[0] = {str(real)!r}"))
    started = time.monotonic()
    assert job.start().wait(100) == 0, job.log()
    assert job.outcome()["result"] == "timed_out"
    assert time.monotonic() - started >= 8
    assert job.plane.lines("stdout") == [str(i) for i in range(1, 11)]
    days = {event["time"][:10] for event in job.plane.events.values()}
    assert len(days) == 3, "people are shown what the wall says"


def test_only_the_machine_module_reads_the_clock():
    for path in Path(package.__file__).parent.rglob("*.py"):
        text = path.read_text()
        if path.name != "machine.py":
            assert not [word for word in ("time.time(", "datetime", "time.monotonic(") if word in text], path


@pytest.mark.e2e
def test_a_full_disk_under_the_agent_itself_stops_nothing(worker):
    """The agent's own files and its log are on the disk that the job fills."""
    job = worker()
    with small_disk(job.folder / "small", "3m"):
        job.plane.reply["tasks"][0]["script"] = "echo kept > kept; cat /dev/zero > fill 2>/dev/null; exit 1"
        job.plane.reply["output_rules"] = ["=/work/kept"]
        cramped = Worker(job.agent, job.folder / "small", job.plane)
        assert cramped.run() == 0
        assert cramped.outcome()["failure"]["kind"] == "disk_full"
        assert job.plane.outputs() == {"/work/kept": b"kept\n"}
        calls = len(job.plane.calls)
        assert cramped.run() in (0, 1)
        assert len(job.plane.calls) == calls, "what was begun is not begun again"


@pytest.mark.e2e
def test_a_job_that_fills_its_disk_and_cleans_up_succeeds(worker):
    script = "cat /dev/zero > fill 2>/dev/null; echo on it goes; rm fill; echo done > done"
    job = worker(script=script, output_rules=["=/work/done"])
    with small_disk(job.root, "2m"):
        assert job.finish()["result"] == "succeeded"
        assert job.plane.outputs() == {"/work/done": b"done\n"}


@pytest.mark.e2e
@pytest.mark.parametrize("fault", ["drop", "forget", 503, 429])
def test_a_network_outage_shorter_than_a_lease_changes_nothing(worker, fault):
    away = []

    def cut(endpoint, count):
        if "10" in job.plane.lines("stdout") and not away:
            away.append(time.monotonic() + 3)
        return fault if endpoint != "hello" and away and time.monotonic() < away[0] else None

    script = "for i in $(seq 60); do echo $i; sleep 0.05; done; echo out > out"
    job = worker(cut, script=script, output_rules=["=/work/out"], lease_seconds=20)
    assert job.finish()["result"] == "succeeded"
    assert away
    assert job.plane.lines("stdout") == [str(i) for i in range(1, 61)]
    assert job.plane.outputs() == {"/work/out": b"out\n"}


@pytest.mark.e2e
def test_the_timeout_ends_a_job_with_endless_output(worker):
    job = worker(script="yes 'all work and no play'", timeout_seconds=2)
    assert job.finish()["result"] == "timed_out"
    lines = job.plane.lines("stdout")
    assert len(lines) > 1000
    assert set(lines[:-1]) == {"all work and no play"}


@pytest.mark.e2e
@pytest.mark.parametrize("closed", [(0,), (0, 1), (0, 1, 2)])
def test_an_agent_with_closed_standard_files_runs_its_job(worker, closed):
    def close():
        for number in closed:
            os.close(number)

    job = worker(script="cat; echo out; echo err >&2; echo x > x", output_rules=["=/work/x"])
    assert job.start(before=close).wait(25) == 0, job.log()
    assert job.outcome()["result"] == "succeeded"
    assert (job.plane.lines("stdout"), job.plane.lines("stderr")) == (["out"], ["err"])
    assert job.plane.outputs() == {"/work/x": b"x\n"}


@pytest.mark.e2e
def test_the_agent_waits_for_a_task_that_closes_its_files(worker):
    job = worker(script="exec <&- >&- 2>&-; sleep 0.5; : > ended", output_rules=["=/work/ended"])
    assert job.finish()["result"] == "succeeded"


@pytest.mark.e2e
def test_children_that_fork_twice_and_ignore_term_are_dead_afterwards(worker):
    """UNIT-2: neither a new session, nor an empty environment, nor a parent that is gone hides them."""
    deaf = "trap '' TERM HUP; echo \\$\\$ > deaf; while :; do sleep 0.1; done"
    settled = "until [ -s deaf ]; do sleep 0.05; done"
    script = f'(env -i setsid bash -c "{deaf}" &>/dev/null &) ; {settled}'
    job = worker(script=script)
    assert job.finish()["result"] == "succeeded"
    assert not is_alive((job.root / "work" / "deaf").read_text())
    assert any("SIGKILL" in line for line in job.plane.lines("worker", "task"))


@pytest.mark.e2e
def test_ten_thousand_files(worker):
    script = "mkdir d; cd d; seq 10000 | xargs touch"
    job = worker(script=script, output_rules=["/work/**"], limits={"outputs": 20})
    assert job.start().wait(120) == 0
    assert job.outcome()["failure"]["evidence"] == {"files": 10000, "limit_files": 20}
    assert len(job.plane.outputs()) == 20


@pytest.mark.e2e
@pytest.mark.parametrize("status", [400, 404, 409, 418, 422])
@pytest.mark.parametrize("endpoint", ["hello", "events", "heartbeat", "inputs", "outputs", "store", "commit", "finish"])
def test_no_refused_call_is_repeated_for_ever(worker, endpoint, status):
    misbehave = lambda called, count: status if called == endpoint else None  # noqa: E731
    more = {"health": {"after": "true", "timeout_seconds": 5}} if endpoint == "commit" else {}
    script = "echo a > a; sleep 0.5"
    job = worker(misbehave, script=script, output_rules=["/work/a"], inputs=True, lease_seconds=4, **more)
    assert job.run() in (0, 1)
    assert 1 <= job.plane.calls.count(endpoint) <= 12, job.plane.calls


@pytest.mark.e2e
def test_the_agent_starts_without_a_home(worker, monkeypatch):
    for name in ("HOME", "PATH", "LANG", "USER"):
        monkeypatch.delenv(name, raising=False)
    assert worker(script="true").finish()["result"] == "succeeded"
