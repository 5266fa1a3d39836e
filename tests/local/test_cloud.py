"""Up, down, and every way of ending: nothing is left running."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock import sources
from penstock.deploy.assembly import Assembly, zipped
from penstock.drivers.factories import process
from penstock.local import cloud, giveback, stack
from penstock.local.state import LocalCloudError, Running, StateFolder
from tests.local.conftest import quiet

WAIT_SECONDS = 240  # for machines that do much else


def left(place: StateFolder) -> set[int]:
    """Processes of a local cloud: its guard, its host, its functions."""
    return process.recorded(place.guard) | process.tagged("PENSTOCK_HOME", str(place.home))


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
        env={**os.environ, "PYTHONPATH": str(sources.ROOT / "functions")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "up\n"
    return started


@pytest.mark.e2e
def test_up_serves_the_site_and_down_leaves_nothing(place: StateFolder) -> None:
    said: list[str] = []
    running = cloud.up(report=said.append, place=place, tied=True)
    deployed = Assembly.read(stack.assembly(quiet, {**cloud.LENDING, **cloud.NO_CLOUDFRONT}))
    assert said[-4:] == [
        f"starting the local cloud on {running.url.removeprefix('http://')}",
        "uploading 4 assets",
        f"deploying {deployed.resources} resources",
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


@pytest.mark.e2e
def test_down_gives_back_what_a_job_holds(up: Running, place: StateFolder) -> None:
    job = cloud.call(up, "POST", "/v1/jobs", {"script": "#!/bin/sh\nsleep 600\n", "resources": ["bench"]})["id"]
    until = time.monotonic() + WAIT_SECONDS
    while cloud.call(up, "GET", f"/v1/jobs/{job}")["state"] != "running" and time.monotonic() < until:
        time.sleep(0.2)
    assert {each.job for each in giveback.kept(cloud.call, up)} == {job}
    assert giveback.contents(cloud.call, up)[1:] == ["1 job under way, to be cancelled now"]
    said: list[str] = []
    assert cloud.owns(up)
    assert cloud.down(said.append, place, give_back=True) == []
    assert said == [f"ending job {job}", "stopping the local cloud"]
    assert not left(place)


@pytest.mark.e2e
def test_what_is_kept_is_there_again(up: Running, place: StateFolder) -> None:
    """Files, logs, users and the site; a job that waits goes on, with a flow that is started anew."""
    script = '#!/bin/sh\necho said; echo kept > "$PENSTOCK_WORK/x"\n'
    done = cloud.call(up, "POST", "/v1/jobs", {"script": script, "output_rules": ["=/work/x"]})["id"]
    settled(up, done)
    cloud.call(up, "POST", "/v1/users", {"name": "ada"})
    token = cloud.call(up, "POST", "/v1/users/ada/tokens", {})["token"]
    cloud.call(up, "PUT", "/v1/pools/resource/licence/limit", {"limit": 5})
    holder = cloud.call(up, "POST", "/v1/jobs", {"script": "#!/bin/sh\nsleep 600\n", "resources": ["bench"]})["id"]
    waits = cloud.call(up, "POST", "/v1/jobs", {"script": "#!/bin/sh\necho went on\n", "resources": ["bench"]})["id"]
    until = time.monotonic() + WAIT_SECONDS
    while cloud.call(up, "GET", f"/v1/jobs/{holder}")["state"] != "running" and time.monotonic() < until:
        time.sleep(0.2)
    said: list[str] = []
    assert cloud.down(said.append, place, give_back=True, keep=True) == []
    assert said == [f"ending job {holder}", "keeping what is in it", "stopping the local cloud"]

    again = cloud.up(report=said.append, place=place, tied=True)
    assert "restoring what was kept" in said
    assert "applying the site's configuration" not in said
    assert settled(again, waits)["outcome"] == "succeeded"
    assert cloud.call(again, "GET", f"/v1/jobs/{holder}")["outcome"] == "cancelled"
    assert cloud.call(again, "GET", "/v1/pools/resource/licence")["limit"] == 5
    (output,) = cloud.call(again, "GET", f"/v1/jobs/{done}/outputs")["items"]
    url = cloud.call(again, "POST", f"/v1/jobs/{done}/outputs/{output['id']}/sign", {})["url"]
    assert httpx.get(url, trust_env=False).text == "kept\n"
    events = cloud.call(again, "GET", f"/v1/jobs/{done}/events")["items"]
    assert [each["payload"] for each in events if each["stream"] == "stdout"] == ["said"]
    assert cloud.call(replace(again, token=token), "GET", "/v1/whoami")["name"] == "ada"
    cloud.down(quiet, place)
    assert not left(place)
    assert not place.kept.exists()


def settled(running: Running, job: str) -> dict[str, Any]:
    until = time.monotonic() + WAIT_SECONDS
    while (found := cloud.call(running, "GET", f"/v1/jobs/{job}"))["state"] != "settled":
        assert time.monotonic() < until, found
        time.sleep(0.2)
    return dict(found)


LENT = """#!/bin/sh
set -e
bmat resource get keys access_key_id
bmat resource get scratch url
"""


@pytest.mark.e2e
def test_wells_lend_a_role_and_a_bucket_in_a_plain_local_cloud(place: StateFolder) -> None:
    running = cloud.up(report=quiet, place=place, tied=True, config=sources.ROOT / "examples" / "lent.toml")
    job = cloud.call(running, "POST", "/v1/jobs", {"script": LENT, "resources": ["keys", "scratch"]})["id"]
    until = time.monotonic() + WAIT_SECONDS
    while (shown := cloud.call(running, "GET", f"/v1/jobs/{job}"))["state"] != "settled" and time.monotonic() < until:
        time.sleep(0.2)
    events = cloud.call(running, "GET", f"/v1/jobs/{job}/events")["items"]
    assert shown["outcome"] == "succeeded", (shown["reason"], events)
    printed = [each["payload"] for each in events if each["stream"] == "stdout"]
    assert len(printed) == 2, printed
    assert printed[1].startswith("s3://penstock-lent/jobs/Penstock.us-east-1/scratch/r-")
    while any(each.sort == "resource" for each in giveback.kept(cloud.call, running)) and time.monotonic() < until:
        time.sleep(0.2)
    assert not [each for each in giveback.kept(cloud.call, running) if each.sort == "resource"]


@pytest.mark.e2e
def test_reset_deletes_all_data_and_keeps_the_url(up: Running, place: StateFolder) -> None:
    cloud.call(up, "POST", "/v1/users", {"name": "ada"})
    after = cloud.reset(quiet, place)
    assert after.url == up.url
    assert after.token != up.token
    assert [user["name"] for user in cloud.call(after, "GET", "/v1/users")["items"]] == ["admin"]


@pytest.fixture(scope="module")
def restarted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, subprocess.Popen[bytes]]]:
    """A local cloud with a limit of 7 workers, and the worker that a killed one had left in its folder."""
    place = StateFolder(tmp_path_factory.mktemp("restarted") / "state")
    place.make()
    worker = _stray_worker(place)
    try:
        yield cloud.up(report=quiet, place=place, workers=7, tied=True), worker
    finally:
        cloud.down(quiet, place)


SHARED = pytest.mark.xdist_group("restarted")


@SHARED
@pytest.mark.e2e
def test_up_workers_sets_the_limit_of_targets(restarted: tuple[Running, subprocess.Popen[bytes]]) -> None:
    pools = {each["pool"]: each["limit"] for each in cloud.call(restarted[0], "GET", "/v1/pools")["items"]}
    assert pools["target/ubuntu-24.04"] == 7
    assert pools["resource/licence"] == 2


@SHARED
@pytest.mark.e2e
def test_up_clears_what_a_killed_cloud_left(restarted: tuple[Running, subprocess.Popen[bytes]]) -> None:
    assert restarted[1].wait(WAIT_SECONDS) is not None


@SHARED
@pytest.mark.e2e
def test_our_api_is_at_v1(restarted: tuple[Running, subprocess.Popen[bytes]]) -> None:
    answer = httpx.get(f"{restarted[0].url}/v1/nowhere?a=%2Fb", trust_env=False)
    assert answer.status_code in (401, 404)
    assert answer.headers["content-type"].startswith("application/problem+json")


@pytest.mark.e2e
def test_killing_the_owner_ends_everything(place: StateFolder) -> None:
    other = owner(place)
    worker = _stray_worker(place)
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    assert ends(place)
    assert not process.started(worker.pid) or worker.wait(WAIT_SECONDS) is not None


@pytest.mark.e2e
def test_killing_the_emulator_ends_everything(up: Running, place: StateFolder) -> None:
    del up
    worker = _stray_worker(place)
    (host,) = [pid for pid in left(place) if "penstock.local.emulator" in _command(pid)]
    os.kill(host, signal.SIGKILL)
    assert ends(place)
    assert worker.wait(WAIT_SECONDS) is not None
    assert cloud.status(place) is None


@pytest.mark.e2e
def test_killing_the_guard_ends_the_emulator(up: Running, place: StateFolder) -> None:
    os.kill(up.pid, signal.SIGKILL)
    assert ends(place)


@pytest.mark.e2e
def test_a_port_in_use_is_refused(place: StateFolder) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalCloudError, match=f"cannot listen on 127.0.0.1:{port}"):
            cloud.up(report=quiet, port=port, place=place)
    assert not left(place)


def test_a_missing_site_is_refused_before_anything_starts(place: StateFolder, tmp_path: Path) -> None:
    with pytest.raises(LocalCloudError, match=r"nowhere\.toml"):
        cloud.up(report=quiet, config=tmp_path / "nowhere.toml", place=place)
    assert not place.root.exists()


@pytest.mark.e2e
def test_a_wrong_site_is_refused_and_leaves_nothing(place: StateFolder, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('[targets.here]\nfactory = "none"\n')
    with pytest.raises(LocalCloudError, match="none"):
        cloud.up(report=quiet, config=wrong, place=place)
    assert not left(place)


def test_two_commands_at_once_do_not_interfere(place: StateFolder) -> None:
    with place.alone(), pytest.raises(LocalCloudError, match="another command"):
        cloud.up(report=quiet, place=place)


def test_a_reused_process_id_is_not_mistaken_for_the_guard(place: StateFolder) -> None:
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
