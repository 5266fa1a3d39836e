"""penstock factory test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from penstock.cli.errors import Refused
from penstock.cli.framework import Command, arguments
from penstock.cli.session import Session, pass_session
from penstock.cli.values import duration

FAILED = 1


@click.command(cls=Command, epilog="Example: penstock factory test aws --all --keep-on-failure 1h")
@arguments("NAME")
@click.option("-t", "--target", metavar="TARGET", help="On which of its targets (default: the first that has a limit).")
@click.option("--all", "every", is_flag=True, help="On all of its targets, one after the other.")
@click.option("--timeout", type=duration, default="20m", metavar="D", help="How long it may take (default: 20m).")
@click.option("--keep-on-failure", "keep", type=duration, metavar="D", help="Hold the worker that long if it fails.")
@pass_session
def test(session: Session, name: str, target: str | None, every: bool, timeout: int, keep: int | None) -> int:
    """Show whether a factory works: make one worker, run a job on it, and destroy it until it is gone.

    Each check is a line, with the time that it took. Exits with 0 when all is well, else with 1. Ctrl-C cancels the
    test, and waits until its worker is gone. For operators.
    """
    if target and every:
        raise click.UsageError("--target and --all exclude each other")
    good, found = True, list[Any]()
    for each in _targets(session, name) if every else [target]:
        good &= _prove(session, name, each, timeout, keep, found, every=every)
    if session.json:
        session.out.json(found)
    return 0 if good else FAILED


def _targets(session: Session, name: str) -> Iterator[str | None]:
    """The factory's targets; with none the service says what is wrong."""
    names = [entry["name"] for entry in session.api.items("targets") if entry["settings"].get("factory") == name]
    yield from names or [None]


def _prove(
    session: Session, name: str, target: str | None, timeout: int, keep: int | None, found: list[Any], *, every: bool
) -> bool:
    """One test; where it is one of several, one that is refused does not stop the others."""
    from penstock.cli.proving import Prover

    prover = Prover(session, name, target, timeout, keep)
    try:
        return prover.run()
    except Refused as refused:
        if not (every and target):
            raise
        prover.refused(refused.what)
        return False
    finally:
        found += prover.found
