"""Times as callers are shown them: RFC 3339 in UTC, with milliseconds."""

from __future__ import annotations

from datetime import datetime


def present(time: datetime) -> str:
    """A time."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def stamp(time: datetime | None) -> str | None:
    """A time; None where there is none."""
    return present(time) if time else None
