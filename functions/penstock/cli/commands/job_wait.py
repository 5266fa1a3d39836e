"""penstock job wait, join."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from penstock.cli.boards import open_board
from penstock.cli.command import Command, Session, duration, pass_session
from penstock.cli.joined import Joined, watched, worst
from penstock.cli.logview import View
from penstock.cli.watching import meant, of_jobs, show_ends, stream


def until(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how long to wait."""
    for decorate in (
        click.option("--timeout", type=duration, metavar="D", help="Give up after this time, with exit code 124."),
        click.option("--any/--all", "is_any", default=False, help="Until one has settled, or all (default)."),
    ):
        command = decorate(command)
    return command


@click.command(cls=Command)
@of_jobs
@until
@pass_session
def wait(
    session: Session, jobs: tuple[str, ...], set_id: str | None, owner: str | None, is_any: bool, timeout: int | None
) -> int:
    """Wait until jobs have settled, and exit with the worst of their results: 4, then 1, 3 and 0.

    Prints only which jobs did not succeed, on stderr. With --any, prints the id of the job that settled first, and
    exits with its result. With --json, prints the settled jobs. `job join` does the same and shows the logs.
    """
    ids, of = meant(session, jobs, set_id, owner)
    all_jobs = watched(ids)
    with open_board(session.out, all_jobs, quiet_stdout=True, ends_only=True) as board:
        ended = Joined(session.api, all_jobs, board, of=of, is_any=is_any, has_logs=False).follow(timeout)
    if session.json:
        show_ends(session.out, ended)
    elif is_any:
        session.out.line(ended[0].id)
    return worst(ended)


@click.command(cls=Command)
@of_jobs
@until
@click.option("-v", "--verbose", is_flag=True, help="Show all service lines, not only the most important.")
@pass_session
def join(
    session: Session,
    jobs: tuple[str, ...],
    set_id: str | None,
    owner: str | None,
    is_any: bool,
    timeout: int | None,
    verbose: bool,
) -> int:
    """Show the logs of jobs together until they have settled, and exit with the worst of their results.

    Each line begins with its job's name. On a terminal, a table below shows the jobs that changed last. With --any,
    ends with the job that settles first. With --json, the logs go to stderr, and stdout gets the settled jobs.
    """
    ids, of = meant(session, jobs, set_id, owner)
    view = View(verbose=verbose, summary_follows=True)
    return stream(session, ids, view, of, is_any=is_any, seconds=timeout)
