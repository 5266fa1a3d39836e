"""What may stand behind an option: durations, and pairs of a name and a value."""

from __future__ import annotations

from collections.abc import Sequence

import click


def duration(text: str) -> int:
    """A duration in seconds, written as 90s, 30m, 1h30m, 7d, or a number of seconds. Raises BadParameter."""
    from penstock.domain.jobfile.durations import parse_duration

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


def depend(text: str) -> dict[str, object]:
    """A job and how it is depended on, JOB[,on=failure][,copy_outputs=false], in the API's words."""
    job, *settings = text.split(",")
    given: dict[str, object] = dict(pair(setting) for setting in settings)
    if "copy_outputs" in given:
        given["copy_outputs"] = {"true": True, "false": False}.get(str(given["copy_outputs"]), given["copy_outputs"])
    return {"job": job, **given}
