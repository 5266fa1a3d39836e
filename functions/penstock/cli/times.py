"""Times, durations and sizes as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def parse(text: str) -> datetime:
    """A time of the API. Raises ValueError."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def now() -> datetime:
    """The present."""
    return datetime.now(UTC)


def age(time: datetime, now: datetime) -> str:
    """How long ago, in its largest unit: 3m ago."""
    seconds = int((now - time).total_seconds())
    if seconds < 0:
        return f"in {_coarse(-seconds)}"
    return f"{_coarse(seconds)} ago" if seconds else "now"


def _coarse(seconds: int) -> str:
    return next((f"{seconds // size}{unit}" for size, unit in UNITS if seconds >= size), "0s")


def duration(seconds: float) -> str:
    """A length of time in its two largest units: 1m 20s; tenths of a second below ten."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    left = round(seconds)
    parts: list[str] = []
    for size, unit in UNITS:
        count, left = divmod(left, size)
        parts += [f"{count}{unit}"] if count or parts else []
    return " ".join(part for part in parts[:2] if not part.startswith("0"))


def size_text(size: int) -> str:
    """A size in bytes, in its largest binary unit."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
