"""The local cloud, up and down."""

from __future__ import annotations

import contextlib
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import tomlkit

from penstock import processes
from penstock.local import guard, launch, synth
from penstock.local.place import LocalCloudError, Place, Running

Report = Callable[[str], None]

DOWN_SECONDS = 20.0
REGION = launch.REGION


def up(
    *,
    report: Report,
    port: int | None = None,
    workers: int | None = None,
    config: Path | None = None,
    tied: bool = False,
    place: Place | None = None,
    context: Mapping[str, str] | None = None,
) -> Running:
    """Bring it up and return when a job can be submitted; if it is up already, return that.

    A tied one ends with this process, however this process ends. `context` are settings as `cdk deploy -c` takes them.
    Raises LocalCloudError; then nothing is left running.
    """
    place = place or Place.default()
    site = _site(config or synth.SOURCES / "examples" / "site.toml", workers)
    with place.alone():
        running = place.load()
        if running is not None:
            report(f"the local cloud is already up at {running.url}")
            return running
        guard.clear(place)
        with _cleared_unless_up(place):
            return _bring_up(place, port, site, tied, report, context)


def down(report: Report, place: Place | None = None) -> None:
    """Take it down with everything it started. When it is not up, that is fine."""
    place = place or Place.default()
    with place.alone():
        report("stopping the local cloud")
        _take_down(place)


def status(place: Place | None = None) -> Running | None:
    """The local cloud that is up, if one is."""
    return (place or Place.default()).load()


def reset(report: Report, place: Place | None = None) -> Running:
    """Forget all data: jobs, logs, users, configuration. The URL stays, the token is a new one."""
    place = place or Place.default()
    running = status(place)
    if running is None:
        raise LocalCloudError("the local cloud is not up: `penstock local up` starts it")
    port = httpx.URL(running.url).port
    down(report, place)
    return up(report=report, port=port, place=place)


def _bring_up(
    place: Place, port: int | None, site: str, tied: bool, report: Report, context: Mapping[str, str] | None
) -> Running:
    assembly = synth.assembly(report, context)
    with launch.listener(port) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        report(f"starting the local cloud on {url.removeprefix('http://')}")
        pid = launch.start(place, listener, tied)
    launch.wait_until_healthy(place, url)
    made = launch.deploy(assembly, place, url, report)
    running = Running(url=url, token=made["token"], pid=pid, home=str(place.home))
    call(running, "PUT", f"/_penstock/api/{made['outputs']['ApiId']}")
    report("applying the site's configuration")
    call(running, "PUT", "/v1/config", {"toml": site})
    place.save(running)
    return running


@contextlib.contextmanager
def _cleared_unless_up(place: Place) -> Iterator[None]:
    try:
        yield
    except BaseException:
        _take_down(place)
        raise


def _take_down(place: Place) -> None:
    guards = processes.recorded(place.guard)
    processes.kill(guards, signal.SIGTERM)
    until = time.monotonic() + DOWN_SECONDS
    while guards and time.monotonic() < until and processes.recorded(place.guard):
        launch.reap(guards)
        time.sleep(0.02)
    guard.clear(place)
    place.guard.unlink(missing_ok=True)
    shutil.rmtree(place.home, ignore_errors=True)
    shutil.rmtree(place.tmp, ignore_errors=True)


def _site(path: Path, workers: int | None) -> str:
    """The site's configuration, with the limit of every target that has one set to `workers`."""
    try:
        text = path.read_text()
    except OSError as error:
        raise LocalCloudError(f"cannot read the site's configuration {path}: {error.strerror}") from error
    if workers is None:
        return text
    site = tomlkit.parse(text)
    for target in site.get("targets", {}).values():
        if "factory" in target:
            target["limit"] = workers
    return tomlkit.dumps(site)


def call(running: Running, method: str, path: str, body: Any = None) -> Any:
    """Ask the local cloud itself, never through a proxy. Raises LocalCloudError when it refuses."""
    headers = {"Authorization": f"Bearer {running.token}"}
    with httpx.Client(trust_env=False, timeout=30) as client:
        answer = client.request(method, running.url + path, json=body, headers=headers)
    if not answer.is_success:
        raise LocalCloudError(f"{method} {path} was refused with {answer.status_code}: {answer.text}")
    return answer.json()
