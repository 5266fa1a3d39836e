"""From a job file and options to a submit request, or to the plan of what it would acquire."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.cli import times
from penstock.cli.errors import Refused
from penstock.cli.output import Column, Output
from penstock.domain.jobfile import Problem, Problems, parse

STDIN = "-"


def read(file: str) -> bytes:
    """A job file's bytes; `-` is stdin. Raises Refused when it can't be read."""
    try:
        return sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except OSError as error:
        raise Refused(f"can't read {file}: {error.strerror}", "give the path of a job file, or - for stdin") from error


def shown(file: str) -> str:
    """What a job file is called in messages."""
    return "stdin" if file == STDIN else file


def lint(file: str) -> tuple[Sequence[Problem], Sequence[Problem]]:
    """Everything that is wrong with a job file, and its keys that have no effect.

    A file that can't be read is a problem of its own.
    """
    try:
        found = parse(read(file), shown(file))
    except Refused as error:
        return [Problem(file, 1, 1, error.what, error.hint)], []
    return (found.items, ()) if isinstance(found, Problems) else ((), found.ignored)


def checked(file: str) -> str:
    """A job file's text, when it is good. Raises Refused with every problem."""
    script = read(file)
    found = parse(script, shown(file))
    if isinstance(found, Problems):
        what = f"{shown(file)} is not a good job file: {counted(len(found.items), 'problem')}"
        raise Refused(
            what,
            "nothing was submitted; `penstock job lint` checks without submitting",
            [str(item) for item in found.items],
        )
    return script.decode()


def request(file: str, options: Mapping[str, object]) -> dict[str, object]:
    """The body of a submit: the file, and the options that were given. Raises Refused for a bad file."""
    given = {name: value for name, value in options.items() if value not in (None, [], {}, ())}
    return {"script": checked(file), "path": shown(file), **given}


def is_many(file: str) -> bool:
    """Whether it is a folder of job files, or one that stands for several jobs."""
    if file == STDIN:
        return False
    if Path(file).is_dir():
        return True
    found = parse(read(file), file)
    return not isinstance(found, Problems) and found.matrix is not None


def counted(number: int, noun: str) -> str:
    """A number and its noun: 1 problem, 2 problems."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


STEPS = (Column("STEP", "step"), Column("POOL", "pool"), Column("TYPE", "type"), Column("COUNT", "count"))


def _expected(wait: Mapping[str, Any]) -> str | None:
    seconds = wait.get("expected_seconds")
    return None if seconds is None else times.duration(seconds)


WAITS = (
    Column("POOL", "pool"),
    Column("POSITION", "position"),
    Column("EXPECTED", _expected),
    Column("BASIS", "basis"),
)


def show_plan(out: Output, plan: Mapping[str, Any]) -> None:
    """Sentences first, then the steps and the waits as tables."""
    for sentence in plan["sentences"]:
        out.line(sentence)
    out.line()
    out.rows([{"step": step["step"], **one} for step in plan["steps"] for one in step["acquires"]], STEPS)
    if plan["waits_for"]:
        out.line()
        out.line("it would wait for", "dim")
        out.rows(plan["waits_for"], WAITS)
    if plan["privileges"]:
        out.line()
        out.details([("privileges", plan["privileges"])])
