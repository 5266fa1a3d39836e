"""The agent's own log."""

from __future__ import annotations

import sys

from .clock import utc_now


def log(message: str) -> None:
    """Write a line for whoever runs the machine; users see events instead."""
    print(f"{utc_now()} {message}", file=sys.stderr, flush=True)
