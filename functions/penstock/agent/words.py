"""Numbers as people say them."""

from __future__ import annotations

import signal


def duration(seconds: float) -> str:
    """Say seconds: `30m`, `1h5m`, `2.5s`."""
    text = ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        count, seconds = divmod(seconds, size)
        text += f"{count:.0f}{unit}" if count else ""
    return text if text and not seconds else f"{text}{seconds:g}s"


def size(count: float) -> str:
    """Say a number of bytes: `12.3 KiB`."""
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
