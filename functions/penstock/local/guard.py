"""Nothing outlives the local cloud. The guard starts the host, waits, and clears up, however the end comes.

    python -m penstock.local.guard ROOT LISTENER PORT [OWNER]

It clears up when the host ends, when it is told to (SIGTERM), or when OWNER, the reading end of a pipe whose writing
end only the owner has, says that the owner is gone: the kernel closes it, even after a SIGKILL. The guard is in a
session of its own, so that Ctrl-C in a terminal does not reach it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from penstock import processes
from penstock.drivers.factories.process import ProcessFactory
from penstock.local.state import StateFolder
from penstock.ports import NotYet

PATIENCE_SECONDS = 5.0
"""How long processes may take to end when asked."""


def main() -> None:
    """Start the host, wait for any end, clear up."""
    place, listener, port = StateFolder(Path(sys.argv[1])), int(sys.argv[2]), sys.argv[3]
    owner = [int(each) for each in sys.argv[4:]]
    woken = _wake_on((signal.SIGTERM, signal.SIGCHLD))
    host = subprocess.Popen(
        [sys.executable, "-m", "penstock.local.emulator", str(listener), port],
        stdin=subprocess.PIPE,  # the host ends when this closes, should the guard be killed
        pass_fds=[listener],
    )
    os.close(listener)
    select.select([woken.fileno(), *owner], [], [])
    host.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        host.wait(PATIENCE_SECONDS)
    clear(place)


def _wake_on(numbers: tuple[signal.Signals, ...]) -> socket.socket:
    """A socket that becomes readable with any of these signals. Those of a terminal are ignored."""
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.detach())
    for number in numbers:
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return woken


def clear(place: StateFolder) -> None:
    """End every process of this cloud: the host, its functions, then the workers. Twice is the same as once."""
    place.running.unlink(missing_ok=True)
    until = time.monotonic() + PATIENCE_SECONDS
    while ours := processes.tagged("PENSTOCK_HOME", str(place.home)):
        processes.kill(ours, signal.SIGKILL)
        if time.monotonic() > until:
            break
        time.sleep(0.02)
    factory = ProcessFactory({}, {"PENSTOCK_HOME": str(place.home)})
    for worker in list(factory.list()):
        while isinstance(factory.destroy(worker, datetime.now(UTC)), NotYet) and time.monotonic() < until:
            time.sleep(0.02)


if __name__ == "__main__":
    main()
