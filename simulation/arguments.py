"""Arguments of the command lines."""

from __future__ import annotations


def seeds_of(text: str) -> tuple[int, int]:
    """From and to, as in 0:100."""
    first, _, last = text.partition(":")
    return int(first), int(last)


def words(text: str) -> list[str]:
    """What commas separate."""
    return text.split(",") if text else []
