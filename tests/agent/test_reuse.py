"""A reused worker goes on from job to job, and leaves nothing of one to the next. [UNIT-2] [SEC-2]"""

import errno
import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.agent import client, health
from penstock.agent.health import _empty_folder, clean_machine
from penstock.agent.machine import Machine
from tests.agent.conftest import is_alive
from tests.agent.control_plane import IDLE, KEY, order

DIRTY = """
echo secret > /dev/null; mkdir -p "$PENSTOCK_WORK/deep/closed"; echo x > "$PENSTOCK_WORK/deep/closed/file"
chmod 000 "$PENSTOCK_WORK/deep/closed"; ln -s /etc/passwd "$PENSTOCK_WORK/link"
echo x > "$HOME/.profile"; mkdir -p "$PENSTOCK_ROOT/elsewhere"; touch "$PENSTOCK_ROOT/.hidden"
setsid sleep 300 & echo $!
"""


def test_a_second_job_finds_nothing_of_the_first(worker):
    job = worker(script=DIRTY, reuse=True)
    look = 'find "$PENSTOCK_ROOT" -mindepth 1 -not -name bmat | sed "s#$PENSTOCK_ROOT##" | sort; echo done'
    job.plane.answer_next_hellos(IDLE, IDLE, order(job="job-2", script=look, reuse=True), 410)
    agent = job.start()
    (orphan,) = job.plane.wait_for(lambda: job.plane.lines("stdout"))
    assert agent.wait(25) == 0, job.log()
    left = job.plane.lines("stdout")
    assert [line for line in left if "file" in line or "link" in line or "hidden" in line or "elsewhere" in line] == []
    assert not is_alive(orphan)
    assert [told["result"] for told in job.plane.finishes] == ["succeeded", "succeeded"]


def test_each_job_has_its_own_token_and_gets_it_for_the_last_one(worker):
    job = worker(reuse=True)
    job.plane.answer_next_hellos(IDLE, order(job="job-2", reuse=True), 410)
    assert job.run() == 0, job.log()
    first, *asked, last = job.plane.hellos
    assert (first["key"], "previous" in first) == (KEY, False)
    assert {ask["previous"] for ask in asked} == {first["token"]}
    assert len({ask["token"] for ask in asked}) == 1
    assert last["previous"] == asked[0]["token"]
    assert len({first["token"], asked[0]["token"], last["token"]}) == 3
    assert "no process of job job-1 is left" in asked[0]["cleaned"]


@pytest.mark.parametrize(("first", "counts"), [("GONE", "DONE"), ("REFUSED", "REFUSED"), ("TERMINATED", "TERMINATED")])
def test_a_heartbeat_that_is_answered_between_the_report_and_its_answer_ends_nothing(first, counts):
    """JOB-1: the report was accepted, so that heartbeat is told that the job needs its worker no more."""
    control = client.Control()
    control.abandon(client.Abandon[first])
    control.abandon(client.Abandon.DONE)
    assert control.abandoned is client.Abandon[counts]


@pytest.mark.parametrize("status", [410, 401])
def test_an_agent_that_is_no_longer_wanted_ends(worker, status):
    job = worker(reuse=True)
    job.plane.answer_next_hellos(status)
    assert job.run() == (0 if status == 410 else 1)


def test_an_agent_that_is_not_reused_ends_after_its_job(worker):
    job = worker()
    assert job.run() == 0
    assert len(job.plane.hellos) == 1


def test_an_idle_agent_obeys_sigterm(worker):
    job = worker(reuse=True)
    job.plane.answer_next_hellos({**IDLE, "seconds": 60})
    agent = job.start()
    job.plane.wait_for(lambda: len(job.plane.hellos) > 1)
    agent.terminate()
    assert agent.wait(25) == 1


def test_a_machine_with_files_that_cannot_be_removed_is_not_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mount, say, in the job's folder: the agent must not say that it is clean."""
    root = tmp_path / "root"
    (root / "work" / "busy").mkdir(parents=True)
    processes = SimpleNamespace(kill_all=list)
    config, order_ = SimpleNamespace(folder=tmp_path), SimpleNamespace(job="job-1")
    job = SimpleNamespace(machine=Machine(str(root)), processes=processes, config=config, order=order_)

    def busy(path: str, **given: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy", path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", busy)
        with pytest.raises(OSError, match="busy"):
            clean_machine(job)
    assert "no process of job job-1 is left" in clean_machine(job)
    assert list(root.iterdir()) == []


def test_a_machine_with_a_process_that_cannot_be_ended_is_not_clean(tmp_path: Path) -> None:
    processes = SimpleNamespace(kill_all=lambda: [2**22 + 1])
    config, order_ = SimpleNamespace(folder=tmp_path), SimpleNamespace(job="job-1")
    job = SimpleNamespace(machine=Machine(str(tmp_path / "root")), processes=processes, config=config, order=order_)
    with pytest.raises(OSError, match="can't be ended"):
        clean_machine(job)


def empty_tmp_of_services(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp: Path, owner: int) -> list[str]:
    """Empty a folder where services may have theirs: `tmp` is the machine's, `owner` is root. Return what is left."""
    for name in ("systemd-private-1-ntp", "snap-private-tmp", "of-the-job", "agent"):
        (folder / name).mkdir(parents=True)
    (folder / "systemd-private-link").symlink_to("/etc")
    (folder / "systemd-private-file").touch()
    folder.chmod(0o1777)
    monkeypatch.setattr(health, "SYSTEM_TMP", str(tmp))
    monkeypatch.setattr(health, "SYSTEM_UID", owner)
    _empty_folder(str(folder), str(folder / "agent"))
    return sorted(entry.name for entry in folder.iterdir())


def test_a_shared_folder_stays_shared_and_services_keep_theirs(tmp_path: Path, monkeypatch) -> None:
    """A machine's /tmp is open to all and sticky: it is emptied, and nothing else is done to it."""
    shared = tmp_path / "tmp"
    left = empty_tmp_of_services(shared, monkeypatch, shared, os.geteuid())
    assert left == ["agent", "snap-private-tmp", "systemd-private-1-ntp"], "services have folders, not files or links"
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


def test_a_job_that_takes_the_name_of_a_service_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    """UNIT-2: neither in /tmp, where its user is the owner, nor in any other folder."""
    shared = tmp_path / "tmp"
    assert empty_tmp_of_services(shared, monkeypatch, shared, os.geteuid() + 1) == ["agent"]
    assert empty_tmp_of_services(tmp_path / "input", monkeypatch, shared, os.geteuid()) == ["agent"]


def test_an_idle_worker_comes_when_its_bell_rings(worker):
    """It looks at the bell, and does not call until it rings: its poll would come an hour later."""
    job = worker(reuse=True)
    bell = f"{job.plane.url}/kept/bell?signature=s"
    job.plane.answer_next_hellos({**IDLE, "seconds": 3600, "bell": bell}, order(job="job-2", reuse=True), 410)
    job.plane.kept["bell"] = b""
    job.plane.misbehave = lambda endpoint, count: 404 if endpoint == "kept" and count < 3 else None
    assert job.run() == 0, job.log()
    assert (job.plane.calls.count("kept"), len(job.plane.hellos)) == (3, 4)


@pytest.mark.parametrize("fault", [403, 500, "drop"])
def test_a_bell_that_cannot_be_heard_leaves_the_worker_with_its_polls(worker, fault):
    job = worker(reuse=True)
    idle = {**IDLE, "seconds": 0.6, "bell": f"{job.plane.url}/kept/bell"}
    job.plane.answer_next_hellos(idle, order(job="job-2", reuse=True), 410)
    job.plane.kept["bell"] = b""
    job.plane.misbehave = lambda endpoint, count: fault if endpoint == "kept" else None
    assert job.run() == 0, job.log()
    assert job.plane.calls.count("kept") >= 2
    assert len(job.plane.hellos) == 4


def test_looks_at_a_bell_are_close_at_first_and_then_a_second_apart():
    waits = client.looks()
    first = [next(waits) for _ in range(400)]
    assert first == sorted(first)
    assert (first[0], first[-1]) == (0.05, 1.0)
    assert 90 < sum(wait for wait in first if wait < 1) < 100
