"""What may stand behind an option: durations, and pairs of a name and a value."""

from __future__ import annotations

from collections.abc import Sequence

import click

from penstock.domain.jobfile.durations import parse_duration


def duration(text: str) -> int:
    """A duration in seconds, written as 90s, 30m, 1h30m, 7d, or a number of seconds. Raises BadParameter."""
    seconds = parse_duration(int(text) if text.isascii() and text.isdigit() else text)
    if isinstance(seconds, str):
        raise click.BadParameter(f"`{text}`: {seconds}")
    return seconds


def pair(text: str) -> tuple[str, str]:
    """NAME=VALUE. Raises BadParameter."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"`{text}` is not NAME=VALUE")
    return name, value


def mapping(pairs: Sequence[tuple[str, str]], option: str) -> dict[str, str]:
    """Pairs as a dictionary. Raises UsageError when a name has two values."""
    found: dict[str, str] = {}
    for name, value in pairs:
        if found.setdefault(name, value) != value:
            raise click.UsageError(f"{option}: `{name}` is given twice, as `{found[name]}` and as `{value}`")
    return found
