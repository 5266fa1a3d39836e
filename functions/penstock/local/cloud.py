"""Starts and stops the local cloud: the guard with its emulator, and the deployment of the stack."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import tomlkit

from penstock import sources
from penstock.drivers.factories import process
from penstock.local import giveback, guard, stack
from penstock.local.state import LocalCloudError, Running, StateFolder

Report = Callable[[str], None]

DOWN_SECONDS = 20.0

LENDING = {
    "sts_roles": "arn:aws:iam::000000000000:role/penstock-lent",
    "sts_boundary": "arn:aws:iam::000000000000:policy/penstock-lent",
    "s3_well": "penstock-lent/jobs",
}
"""What lets the wells `sts` and `s3` lend the role and the bucket that deploy.py makes: settings of the stack."""

NO_CLOUDFRONT = {"console": "false"}
"""The emulator's front serves the console itself: a setting of the stack."""


def up(
    *,
    report: Report,
    port: int | None = None,
    workers: int | None = None,
    config: Path | None = None,
    tied: bool = False,
    place: StateFolder | None = None,
    context: Mapping[str, str] | None = None,
    console: Path | None = None,
) -> Running:
    """Start the local cloud and return when it accepts jobs. If it already runs, return that one.

    A tied one ends with this process, however this process ends. `context` are settings as `cdk deploy -c` takes them,
    `console` is the folder of the console to serve. What `down` has kept is in it again, with its site unless there is
    another `config`. Raises LocalCloudError; then nothing is left running.
    """
    place = place or StateFolder.default()
    is_kept = place.kept.is_dir() and config is None and workers is None
    site = None if is_kept else _site(config or sources.SITE, workers)
    with place.alone():
        running = place.load()
        if running is not None:
            report(f"the local cloud is already up at {running.url}")
            return running
        guard.clear(place)
        with _cleared_unless_up(place):
            return _bring_up(place, port, site, tied, report, context, console)


def owns(running: Running) -> bool:
    """Whether this process started a local cloud as a tied one, which ends with it."""
    return running.pid in _TIES


def down(report: Report, place: StateFolder | None = None, *, give_back: bool = False, keep: bool = False) -> list[str]:
    """Stop the local cloud and every process that it started. Does nothing if it is not running.

    With `give_back`, what jobs hold is given back and cleaned before; what could not be is returned. Ctrl-C skips that.
    With `keep`, what is in it is kept for the next `up`; else also what was kept before goes. Raises LocalCloudError if
    it cannot be kept; then it goes on running.
    """
    place = place or StateFolder.default()
    with place.alone():
        running = place.load()
        resumed = _open_pools(running) if keep and running else []
        left = _given_back(report, running) if give_back else []
        if keep and running:
            _keep(place, running, resumed, report)
        report("stopping the local cloud")
        _take_down(place)
        if not keep:
            shutil.rmtree(place.kept, ignore_errors=True)
    return left


def _open_pools(running: Running) -> list[str]:
    """The pools that are not paused: giving back pauses all."""
    return [pool["pool"] for pool in call(running, "GET", "/v1/pools")["items"] if not pool["paused"]]


def _keep(place: StateFolder, running: Running, resumed: list[str], report: Report) -> None:
    report("keeping what is in it")
    place.resumed.write_text(json.dumps(resumed))
    _alone(place, running.url, "penstock.local.keeping", "save", str(place.kept))


def _restore(place: StateFolder, running: Running, report: Report) -> None:
    report("restoring what was kept")
    _alone(place, running.url, "penstock.local.keeping", "restore", str(place.kept))
    for pool in json.loads(place.resumed.read_text()):
        call(running, "POST", f"/v1/pools/{pool}/resume")


def _alone(place: StateFolder, url: str, *words: str) -> None:
    """Run a module in a process that sees nothing of this machine's AWS settings. Raises LocalCloudError."""
    port = int(url.rpartition(":")[2])
    done = subprocess.run(
        [sys.executable, "-m", *words],
        env={**environment(place, port), "AWS_REGION": REGION},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LocalCloudError(done.stderr.strip())


def _given_back(report: Report, running: Running | None) -> list[str]:
    """What is left after everything was given back; a sentence if that could not be found out."""
    if running is None:
        return []
    try:
        return [str(each) for each in giveback.give_back(call, running, report)]
    except LocalCloudError as error:
        return [str(error)]
    except KeyboardInterrupt:
        return ["interrupted: what jobs held may be left"]


def status(place: StateFolder | None = None) -> Running | None:
    """The running local cloud, if any."""
    return (place or StateFolder.default()).load()


def keeps(place: StateFolder | None = None) -> bool:
    """Whether what was in a local cloud is kept for the next one."""
    return (place or StateFolder.default()).kept.is_dir()


def reset(report: Report, place: StateFolder | None = None, console: Path | None = None) -> Running:
    """Give back what jobs hold, and delete all data: jobs, logs, users, configuration. The URL stays the same."""
    place = place or StateFolder.default()
    running = status(place)
    if running is None:
        raise LocalCloudError("the local cloud is not up: `penstock local up` starts it")
    port = httpx.URL(running.url).port
    down(report, place, give_back=True)
    return up(report=report, port=port, place=place, console=console)


def _bring_up(
    place: StateFolder,
    port: int | None,
    site: str | None,
    tied: bool,
    report: Report,
    context: Mapping[str, str] | None,
    console: Path | None,
) -> Running:
    assembly = stack.assembly(report, {**LENDING, **NO_CLOUDFRONT, **(context or {})})
    with listen(port) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        report(f"starting the local cloud on {url.removeprefix('http://')}")
        pid = start(place, listener, tied, console)
    wait_until_healthy(place, url)
    made = deploy(assembly, place, url, report)
    running = Running(url, made["token"], pid, str(place.home), console=f"{url}/" if console else "")
    call(running, "PUT", f"/_penstock/api/{made['outputs']['ApiId']}")
    if place.kept.is_dir():
        _restore(place, running, report)
    if site is not None:
        report("applying the site's configuration")
        call(running, "PUT", "/v1/config", {"toml": site})
    place.save(running)
    return running


@contextlib.contextmanager
def _cleared_unless_up(place: StateFolder) -> Iterator[None]:
    try:
        yield
    except BaseException:
        _take_down(place)
        raise


def _take_down(place: StateFolder) -> None:
    guards = process.recorded(place.guard)
    process.kill(guards, signal.SIGTERM)
    until = time.monotonic() + DOWN_SECONDS
    while guards and time.monotonic() < until and process.recorded(place.guard):
        reap(guards)
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
    """Send a request to the local cloud, never through a proxy. Raises LocalCloudError if it refuses."""
    headers = {"Authorization": f"Bearer {running.token}"}
    with httpx.Client(trust_env=False, timeout=30) as client:
        answer = client.request(method, running.url + path, json=body, headers=headers)
    if not answer.is_success:
        raise LocalCloudError(f"{method} {path} was refused with {answer.status_code}: {answer.text}")
    return answer.json()


REGION = "us-east-1"
BOOT_SECONDS = 30.0

PROGRESS = "> "
"""The prefix of the deployer's lines of progress."""


def reap(pids: set[int]) -> None:
    """Reap children that have ended; the kernel lists them until then."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def listen(port: int | None) -> socket.socket:
    """A listening socket on the loopback, on a port or a free one. Raises LocalCloudError if the port is taken."""
    try:
        return socket.create_server(("127.0.0.1", port or 0), backlog=512)
    except OSError as error:
        raise LocalCloudError(
            f"cannot listen on 127.0.0.1:{port}: {error.strerror}; choose another with --port, or none for a free one"
        ) from error


def start(place: StateFolder, listener: socket.socket, tied: bool, console: Path | None = None) -> int:
    """Start the guard, which starts the emulator. A tied guard ends with this process, by a pipe."""
    place.make()
    descriptors = [listener.fileno()]
    if tied:
        watched, ours = os.pipe()
        descriptors.append(watched)
    port = listener.getsockname()[1]
    numbers = [str(each) for each in (descriptors[0], port, *descriptors[1:])]
    with place.log.open("ab") as log:
        started = subprocess.Popen(
            [sys.executable, "-m", "penstock.local.guard", str(place.root), *numbers],
            cwd=place.root,
            env={**environment(place, port), **({"PENSTOCK_CONSOLE": str(console)} if console else {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=descriptors,
            start_new_session=True,
        )
    if tied:
        os.close(watched)
        _TIES[started.pid] = ours
    place.record_guard(started.pid)
    return started.pid


_TIES: dict[int, int] = {}
"""Writing ends of the pipes of tied guards, by the guard: held open until this process ends."""


def environment(place: StateFolder, port: int) -> Mapping[str, str]:
    """The environment of the emulator and the functions. Nothing else of this machine's environment reaches them."""
    url = f"http://127.0.0.1:{port}"
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": str(sources.PACKAGE.parent),
        "LANG": "C.UTF-8",
        "TMPDIR": str(place.tmp),
        "PENSTOCK_HOME": str(place.home),
        "PENSTOCK_CODE": str(stack.code()),
        "SITE_LOCAL": "1",
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "LOG_LEVEL": "WARNING",
        "AUTH": "true",  # roles may do what the stack grants them, and nothing else
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": place.key(),
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def wait_until_healthy(place: StateFolder, url: str) -> None:
    """Wait until the emulator answers. Raises LocalCloudError with the end of its log if it does not."""
    until = time.monotonic() + BOOT_SECONDS
    with httpx.Client(trust_env=False, timeout=2) as client:
        while time.monotonic() < until and (guards := process.recorded(place.guard)):
            reap(guards)
            with contextlib.suppress(httpx.TransportError):
                if client.get(f"{url}/_ministack/health").is_success:
                    return
            time.sleep(0.02)
    said = place.log.read_text(errors="replace")[-2000:] if place.log.exists() else ""
    raise LocalCloudError(f"the local cloud did not start; {place.log} ends with:\n{said}")


def deploy(assembly: Path, place: StateFolder, url: str, report: Callable[[str], None]) -> dict[str, Any]:
    """Deploy in a process that sees nothing of this machine's AWS settings, passing its progress on.

    Returns the stack's outputs and the first operator's token. Raises LocalCloudError with CloudFormation's reasons.
    """
    deployer = subprocess.Popen(
        [sys.executable, "-m", "penstock.local.deploy", str(assembly), url],
        env={**environment(place, int(url.rpartition(":")[2])), "AWS_REGION": REGION},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert deployer.stdout is not None
    assert deployer.stderr is not None
    said = []
    try:
        for line in deployer.stderr:
            said.append(line)
            if line.startswith(PROGRESS):
                report(line.removeprefix(PROGRESS).strip())
        answer = deployer.stdout.read()
    except BaseException:
        deployer.kill()
        raise
    finally:
        deployer.wait()
    if deployer.returncode != 0:
        raise LocalCloudError("".join(line for line in said if not line.startswith(PROGRESS)).strip())
    return dict(json.loads(answer))
