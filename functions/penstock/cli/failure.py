"""Why a job did not succeed, in a few lines: what happened, what there is to show for it, what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from penstock.cli import times
from penstock.cli.output import Output, clean

Say = Callable[[str, str], None]
"""Takes a line and its style."""


def show_failure(out: Output, job: Mapping[str, Any]) -> None:
    """On stdout, with the last lines: for somebody who has not seen the log."""
    failure = job.get("failure")
    if failure:
        _tell(out.line, failure)
        of = "of its machine's console" if failure.get("lines_of") == "console" else "that it said"
        if failure.get("lines"):
            out.line(f"the last lines {of}", "dim")
        for line in failure.get("lines", ()):
            out.line(f"  {clean(line)}")


def note_failure(out: Output, job: Mapping[str, Any]) -> None:
    """On stderr, without the last lines: for somebody who has just seen them."""
    if job.get("failure"):
        _tell(out.note, job["failure"])


def _tell(say: Say, failure: Mapping[str, Any]) -> None:
    say(f"{failure['kind']}: {failure['what']}", "")
    for name, value in _facts(failure):
        say(f"  {name}: {value}", "")
    say(f"what to do: {failure['advice']}", "bold")


def _facts(failure: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    task = failure.get("task")
    if task:
        yield "task", clean(f'{task["index"]} "{task["name"]}"') if task["name"] else str(task["index"])
    for name, value in failure["evidence"].items():
        words = name.replace("_", " ")
        if name.endswith("_bytes"):
            yield words.removesuffix(" bytes"), times.size_text(value)
        elif name.endswith("_seconds"):
            yield words.removesuffix(" seconds") + " of", times.duration(value)
        else:
            yield words, clean(str(value))
