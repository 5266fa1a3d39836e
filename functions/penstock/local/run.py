"""`make run`: starts a local cloud, runs one job on it, prints the job's price, and removes everything.

    python -m penstock.local.run examples/hello.sh

Ends with the job's own status. Ctrl-C at any moment, a closed terminal, even `kill -9`: nothing keeps running.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from penstock.local import cloud, prices
from penstock.local.state import LocalCloudError, Running, StateFolder

USAGE = 2
OURS = 4

REST_SECONDS = 3.0
"""Most seconds to wait for the clean-up after a job before the bill is made."""


def main() -> int:
    """Run the job file named on the command line."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        print(f"usage: python -m penstock.local.run FILE; no such file: {' '.join(sys.argv[1:])}", file=sys.stderr)
        return USAGE
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        with _place() as place:
            running = cloud.up(report=_say, tied=True, place=place)
            return _run(running, Path(sys.argv[1]))
    except LocalCloudError as error:
        print(error, file=sys.stderr)
        return OURS
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


@contextlib.contextmanager
def _place() -> Iterator[StateFolder]:
    """A private folder. On exit, its local cloud is stopped and the folder is removed."""
    place = StateFolder(Path(tempfile.mkdtemp(prefix="penstock-run-")))
    try:
        yield place
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        cloud.down(_say, place)
        shutil.rmtree(place.root, ignore_errors=True)


def _run(running: Running, file: Path) -> int:
    """Run the job, print its price, and return its exit status."""
    cloud.call(running, "POST", "/_penstock/meter/reset")
    status = _penstock(running, "job", "run", str(file))
    jobs = cloud.call(running, "GET", "/v1/jobs?limit=1")["items"]
    if jobs:
        print("\ncost")
        print(prices.text(prices.bill(_reading(running))), flush=True)
    return status


def _reading(running: Running) -> dict[str, Any]:
    """The meter's reading once it stops changing: clean-up continues after a job has settled."""
    before, after = None, _meter(running)
    until = time.monotonic() + REST_SECONDS
    while before != after and time.monotonic() < until:
        time.sleep(REST_SECONDS / 6)
        before, after = after, _meter(running)
    return after


def _meter(running: Running) -> dict[str, Any]:
    return dict(cloud.call(running, "GET", "/_penstock/meter"))


def _penstock(running: Running, *words: str) -> int:
    environment = {**os.environ, "PENSTOCK_URL": running.url, "PENSTOCK_TOKEN": running.token}
    return subprocess.run([sys.executable, "-m", "penstock.cli", *words], env=environment, check=False).returncode


def _say(line: str) -> None:
    """Print progress to stderr; stdout belongs to the job. Continues if the terminal is closed."""
    with contextlib.suppress(OSError):
        print(f"- {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
