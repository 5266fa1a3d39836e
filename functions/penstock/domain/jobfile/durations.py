"""Durations as people write them."""

import re

__all__ = ["parse_duration"]

SHAPE = re.compile(r"(?:([0-9]{1,6})d)?(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,9})s)?")
UNITS = (24 * 3600, 3600, 60, 1)
MOST_SECONDS = 10**9


def parse_duration(value: object) -> int | str:
    """Seconds in `"90s"`, `"30m"`, `"1d"`, `"1h30m"` or a whole number of them; else what is wrong."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return 'wanted a duration like "30m" or "1h30m", or a whole number of seconds'
    if isinstance(value, int):
        return value if 0 <= value <= MOST_SECONDS else f"wanted seconds from 0 to {MOST_SECONDS}"
    found = SHAPE.fullmatch(value)
    if not found or not value:
        return 'wanted a duration: whole numbers with the units d, h, m, s in this order, like "30m" or "1h30m"'
    return sum(int(count) * unit for count, unit in zip(found.groups(), UNITS, strict=True) if count)
