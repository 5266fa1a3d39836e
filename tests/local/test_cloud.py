"""Up, down, and every way of ending: nothing is left running."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock import processes
from penstock.local import cloud, stack
from penstock.local.stack import Assembly, zipped
from penstock.local.state import LocalCloudError, Running, StateFolder
from tests.local.conftest import quiet

WAIT_SECONDS = 240  # for machines that do much else


def left(place: StateFolder) -> set[int]:
    """Processes of a local cloud: its guard, its host, its functions."""
    return processes.recorded(place.guard) | processes.tagged("PENSTOCK_HOME", str(place.home))


def ends(place: StateFolder) -> bool:
    """Whether everything ends by itself."""
    until = time.monotonic() + WAIT_SECONDS
    while left(place) and time.monotonic() < until:
        cloud.reap(left(place))
        time.sleep(0.05)
    return not left(place)


def owner(place: StateFolder) -> subprocess.Popen[str]:
    """Another process that brings a tied cloud up, says so, and does nothing more."""
    script = (
        "import sys, time; from pathlib import Path; from penstock.local import cloud; "
        "from penstock.local.state import StateFolder; "
        "cloud.up(report=lambda line: None, tied=True, place=StateFolder(Path(sys.argv[1]))); "
        "print('up', flush=True); time.sleep(60)"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", script, str(place.root)],
        env={**os.environ, "PYTHONPATH": str(stack.SOURCES / "functions")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "up\n"
    return started


def test_it_comes_up_serves_the_site_and_goes_down(place: StateFolder) -> None:
    said: list[str] = []
    running = cloud.up(report=said.append, place=place, tied=True)
    assert said[-4:] == [
        f"starting the local cloud on {running.url.removeprefix('http://')}",
        "uploading 3 assets",
        f"deploying {Assembly.read(stack.assembly(quiet)).resources} resources",
        "applying the site's configuration",
    ]
    pools = cloud.call(running, "GET", "/v1/pools")["items"]
    assert {"target/ubuntu-24.04", "resource/bench", "resource/licence"} <= {pool["pool"] for pool in pools}
    assert cloud.status(place) == running
    assert oct(place.running.stat().st_mode & 0o777) == oct(place.key_file.stat().st_mode & 0o777) == "0o600"
    assert cloud.up(report=said.append, place=place) == running
    cloud.down(quiet, place)
    assert cloud.status(place) is None
    assert not left(place)
    assert sorted(path.name for path in place.root.iterdir()) == ["host.log", "key", "lock"]
    cloud.down(quiet, place)


def test_a_reset_forgets_everything_and_keeps_the_url(up: Running, place: StateFolder) -> None:
    cloud.call(up, "POST", "/v1/users", {"name": "ada"})
    after = cloud.reset(quiet, place)
    assert after.url == up.url
    assert after.token != up.token
    assert [user["name"] for user in cloud.call(after, "GET", "/v1/users")["items"]] == ["admin"]


def test_workers_sets_the_limit_of_targets(place: StateFolder) -> None:
    running = cloud.up(report=quiet, place=place, workers=7, tied=True)
    pools = {each["pool"]: each["limit"] for each in cloud.call(running, "GET", "/v1/pools")["items"]}
    assert pools["target/ubuntu-24.04"] == 7
    assert pools["resource/licence"] == 2


def test_an_owner_that_is_killed_takes_everything_along(place: StateFolder) -> None:
    other = owner(place)
    worker = _stray_worker(place)
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    assert ends(place)
    assert not processes.started(worker.pid) or worker.wait(5) is not None


def test_a_host_that_is_killed_takes_everything_along(up: Running, place: StateFolder) -> None:
    del up
    worker = _stray_worker(place)
    (host,) = [pid for pid in left(place) if "penstock.local.emulator" in _command(pid)]
    os.kill(host, signal.SIGKILL)
    assert ends(place)
    assert worker.wait(5) is not None
    assert cloud.status(place) is None


def test_a_guard_that_is_killed_takes_the_host_along(up: Running, place: StateFolder) -> None:
    os.kill(up.pid, signal.SIGKILL)
    assert ends(place)


def test_what_a_dead_cloud_left_is_cleared_by_the_next(place: StateFolder) -> None:
    place.make()
    worker = _stray_worker(place)
    cloud.up(report=quiet, place=place, tied=True)
    assert worker.wait(5) is not None


def test_a_taken_port_is_said(place: StateFolder) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalCloudError, match=f"cannot listen on 127.0.0.1:{port}"):
            cloud.up(report=quiet, port=port, place=place)
    assert not left(place)


def test_a_site_that_is_not_there_is_said_before_anything_starts(place: StateFolder, tmp_path: Path) -> None:
    with pytest.raises(LocalCloudError, match=r"nowhere\.toml"):
        cloud.up(report=quiet, config=tmp_path / "nowhere.toml", place=place)
    assert not place.root.exists()


def test_a_site_that_is_wrong_is_said_and_nothing_is_left(place: StateFolder, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('[targets.here]\nfactory = "none"\n')
    with pytest.raises(LocalCloudError, match="none"):
        cloud.up(report=quiet, config=wrong, place=place)
    assert not left(place)


def test_two_at_once_do_not_meet(place: StateFolder) -> None:
    with place.alone(), pytest.raises(LocalCloudError, match="another command"):
        cloud.up(report=quiet, place=place)


def test_a_reused_process_id_is_not_taken_for_ours(place: StateFolder) -> None:
    place.make()
    place.guard.write_text(json.dumps({"pid": os.getpid(), "started": "long ago"}))
    place.save(Running("http://127.0.0.1:1", "token", os.getpid(), str(place.home)))
    assert cloud.status(place) is None


def test_the_same_folder_gives_the_same_zip(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    first = zipped(tmp_path)
    os.utime(tmp_path / "a.py", (1, 1))
    assert zipped(tmp_path) == first


def _command(pid: int) -> str:
    listed = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return listed.stdout


def _stray_worker(place: StateFolder) -> subprocess.Popen[bytes]:
    """A process as the process factory starts it, which ignores polite requests."""
    folder = place.home / "workers" / "w-stray"
    folder.mkdir(parents=True)
    script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    return subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PENSTOCK_WORKER_ID": "w-stray"},
        start_new_session=True,
    )
