"""The guard starts the emulator, waits for the end of the local cloud, and ends every process that is left.

    python -m penstock.local.guard ROOT LISTENER PORT [OWNER]

It does so when the emulator ends, on SIGTERM, or when OWNER is closed. OWNER is the reading end of a pipe whose writing
end only the owner has: the kernel closes it when the owner ends, even after SIGKILL. The guard has its own session,
so that Ctrl-C in a terminal does not reach it.
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

from penstock.drivers.factories import process
from penstock.drivers.factories.process import ProcessFactory
from penstock.local.state import StateFolder
from penstock.ports import NotYet

PATIENCE_SECONDS = 5.0
"""How long processes may take to end after SIGTERM."""


def main() -> None:
    """Start the emulator, wait for any end, end all processes."""
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
    """End every process of this cloud: the emulator, its functions, then the workers. Idempotent."""
    place.running.unlink(missing_ok=True)
    until = time.monotonic() + PATIENCE_SECONDS
    while ours := process.tagged("PENSTOCK_HOME", str(place.home)):
        process.kill(ours, signal.SIGKILL)
        if time.monotonic() > until:
            break
        time.sleep(0.02)
    factory = ProcessFactory({}, {"PENSTOCK_HOME": str(place.home)})
    for worker in list(factory.list()):
        while isinstance(factory.destroy(worker, datetime.now(UTC)), NotYet) and time.monotonic() < until:
            time.sleep(0.02)


if __name__ == "__main__":
    main()
