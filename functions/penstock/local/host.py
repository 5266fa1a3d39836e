"""The child process that is the local cloud: MiniStack, put right, behind our door.

    python -m penstock.local.host FD PORT

serves the listening socket FD, whose port is PORT, on the loopback only, until it is told to stop (SIGTERM) or
its guard, at the other end of its standard input, is gone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import ministack.app
from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack.core import lambda_runtime

from penstock.local import fixes, meters
from penstock.local.front import Front
from penstock.local.meter import Meter


def main() -> None:
    """Serve until told to stop, then end every function's process."""
    descriptor, port = int(sys.argv[1]), int(sys.argv[2])
    meter = Meter()
    fixes.apply()
    meters.install(meter)
    try:
        asyncio.run(_serve(Front(ministack.app.app, meter, port, os.environ["AWS_ACCESS_KEY_ID"]), descriptor))
    finally:
        lambda_runtime.reset()
        # Flows wait for tokens in threads that a normal exit would wait for in turn.
        os._exit(0)


async def _serve(app: Any, descriptor: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGINT, lambda: None)  # a terminal's Ctrl-C is for the owner to act on
    loop.add_reader(sys.stdin.fileno(), stop.set)  # the guard never writes: readable means that it is gone
    config = Config()
    config.bind = [f"fd://{descriptor}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 0.5
    config.loglevel = "WARNING"
    await serve(app, config, shutdown_trigger=stop.wait)


if __name__ == "__main__":
    main()
