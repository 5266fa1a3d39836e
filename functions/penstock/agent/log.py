"""The agent's own log, its clock, and how it writes durations, sizes and signals."""

from __future__ import annotations

import contextlib
import datetime
import signal
import sys
import time


def utc_now() -> str:
    """Return the wall-clock time, RFC 3339 in UTC with milliseconds."""
    here = datetime.datetime.now(datetime.timezone.utc)
    return here.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now() -> float:
    """Return seconds on a clock that never jumps and, on Linux, goes on while the machine sleeps."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def log(message: str) -> None:
    """Write a line for whoever operates the machine. Users see the job's events instead."""
    with contextlib.suppress(OSError, ValueError):  # its disk may be full, or its reader gone: the job goes on
        print(f"{utc_now()} {message}", file=sys.stderr, flush=True)


def duration_text(seconds: float) -> str:
    """Return a duration as text: `30m`, `1h5m`, `2.5s`."""
    text = ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        count, seconds = divmod(seconds, size)
        text += f"{count:.0f}{unit}" if count else ""
    return text if text and not seconds else f"{text}{seconds:g}s"


def size_text(count: float) -> str:
    """Return a number of bytes as text: `12.3 KiB`."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} GiB"


def signal_name(number: int) -> str:
    """Return `9 (SIGKILL)` for 9."""
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)
