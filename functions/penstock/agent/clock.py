"""What time it is, for people and for measuring."""

from __future__ import annotations

import datetime
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
