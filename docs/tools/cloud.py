"""The cloud on this machine of which pictures are made, and the commands that are given to it."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
COLUMNS = 100
PATIENCE = 60.0
"""Seconds until a job has started."""

Around = Mapping[str, str]
"""The environment in which commands find a cloud and nothing else. Its HOME is their working folder."""


@contextmanager
def cloud(site: str = "") -> Iterator[Around]:
    """A cloud on this machine with a site, or the example's. It is taken down at the end."""
    with tempfile.TemporaryDirectory() as home:
        around = {"HOME": home, "PATH": os.environ["PATH"], "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
        (Path(home) / "site.toml").write_text(site, encoding="utf-8")
        config = " --config site.toml" if site else ""
        says(around, f"local up --detach --port {_free_port()}{config}")
        try:
            yield around
        finally:
            says(around, "local down")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def says(around: Around, command: str) -> str:
    """What a command prints. Raises CalledProcessError when it fails."""
    words = [PENSTOCK, *shlex.split(command)]
    done = subprocess.run(words, env=around, cwd=around["HOME"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def until(around: Around, job: str, state: str) -> None:
    """Wait until a job is in a state. Raises TimeoutError."""
    end = time.monotonic() + PATIENCE
    while f'"state": "{state}"' not in says(around, f"job show {job} --json"):
        if time.monotonic() > end:
            raise TimeoutError(f"job {job} is not {state} after {PATIENCE:.0f} s")
        time.sleep(0.5)
