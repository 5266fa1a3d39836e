"""Starting the processes of the local cloud: the guard with its host, and the deployer."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from penstock import processes
from penstock.local import synth
from penstock.local.place import LocalCloudError, Place

Report = Callable[[str], None]

REGION = "us-east-1"
BOOT_SECONDS = 30.0

PROGRESS = "> "
"""What the deployer writes before a line of progress."""


def reap(pids: set[int]) -> None:
    """Look at children that may have ended: one stays listed until its parent has looked."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def listener(port: int | None) -> socket.socket:
    """A listening socket on the loopback, on a port or a free one. Raises LocalCloudError if the port is taken."""
    try:
        return socket.create_server(("127.0.0.1", port or 0), backlog=512)
    except OSError as error:
        raise LocalCloudError(
            f"cannot listen on 127.0.0.1:{port}: {error.strerror}; choose another with --port, or none for a free one"
        ) from error


def start(place: Place, listener: socket.socket, tied: bool) -> int:
    """Start the guard, which starts the host. A tied guard holds a pipe whose other end dies with us."""
    place.make()
    descriptors = [listener.fileno()]
    if tied:
        watched, ours = os.pipe()
        descriptors.append(watched)
        _TIES.append(ours)
    port = listener.getsockname()[1]
    numbers = [str(each) for each in (descriptors[0], port, *descriptors[1:])]
    with place.log.open("ab") as log:
        started = subprocess.Popen(
            [sys.executable, "-m", "penstock.local.guard", str(place.root), *numbers],
            cwd=place.root,
            env=environment(place, port),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=descriptors,
            start_new_session=True,
        )
    if tied:
        os.close(watched)
    place.record_guard(started.pid)
    return started.pid


_TIES: list[int] = []
"""Writing ends of the pipes of tied guards: held open until this process ends."""


def environment(place: Place, port: int) -> Mapping[str, str]:
    """All that the host and the functions see of this machine's environment, and nothing else of it."""
    url = f"http://127.0.0.1:{port}"
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": str(synth.SOURCES / "functions"),
        "LANG": "C.UTF-8",
        "TMPDIR": str(place.tmp),
        "PENSTOCK_HOME": str(place.home),
        "PENSTOCK_CODE": str(synth.code()),
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


def wait_until_healthy(place: Place, url: str) -> None:
    """Wait until the host answers. Raises LocalCloudError with the end of its log if it does not."""
    until = time.monotonic() + BOOT_SECONDS
    with httpx.Client(trust_env=False, timeout=2) as client:
        while time.monotonic() < until and (guards := processes.recorded(place.guard)):
            reap(guards)
            with contextlib.suppress(httpx.TransportError):
                if client.get(f"{url}/_ministack/health").is_success:
                    return
            time.sleep(0.02)
    said = place.log.read_text(errors="replace")[-2000:] if place.log.exists() else ""
    raise LocalCloudError(f"the local cloud did not start; {place.log} ends with:\n{said}")


def deploy(assembly: Path, place: Place, url: str, report: Report) -> dict[str, Any]:
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
