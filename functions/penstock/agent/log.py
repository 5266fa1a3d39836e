"""The agent's own log."""

from __future__ import annotations

import contextlib
import sys

from .clock import utc_now


def log(message: str) -> None:
    """Write a line for whoever runs the machine; users see events instead."""
    with contextlib.suppress(OSError, ValueError):  # its disk may be full, or its reader gone: the job goes on
        print(f"{utc_now()} {message}", file=sys.stderr, flush=True)
