"""Commands that watch several jobs: which jobs are meant, their logs in one stream, and a table of how they ended."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from penstock.cli import times
from penstock.cli.boards import counts, open_board
from penstock.cli.command import Session
from penstock.cli.joined import Joined, SetList, Watched, named, watched, worst
from penstock.cli.logview import View
from penstock.cli.output import Column, Output
from penstock.cli.references import JOB
from penstock.cli.submit import counted

MANY = 50
"""The most jobs of which each is shown when all have settled."""


def _took(job: Mapping[str, Any]) -> str | None:
    begun, ended = job["times"]["submitted"], job["times"].get("settled")
    return times.duration((times.parse(ended) - times.parse(begun)).total_seconds()) if ended else None


ENDED = (
    Column("NAME", "name"),
    Column("OUTCOME", lambda job: job.get("outcome") or job["state"]),
    Column("TOOK", _took),
    Column("ID", "id"),
    Column("REASON", lambda job: job.get("reason") if job.get("outcome") != "succeeded" else None),
)


def of_jobs(command: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments and options that name several jobs."""
    for decorate in (
        click.option("--owner", metavar="NAME", help="With --set: the repository or user whose set it is."),
        click.option("--set", "set_id", metavar="ID", help="All jobs of this set, in place of JOB."),
        click.argument("jobs", nargs=-1, type=JOB, metavar="[JOB]..."),
    ):
        command = decorate(command)
    return command


def meant(
    session: Session, jobs: Sequence[str], set_id: str | None, owner: str | None
) -> tuple[dict[str, str], SetList | None]:
    """The ids of the jobs that the arguments name, by distinct names; and the set, if they name one.

    Raises UsageError for none or both, and Refused for a job or a set that does not exist.
    """
    if bool(jobs) == (set_id is not None):
        raise click.UsageError("give one JOB or more, or --set ID")
    of = SetList(set_id, owner) if set_id is not None else None
    return named(session.api, jobs, of), of


def stream(
    session: Session,
    ids: Mapping[str, str],
    view: View,
    of: SetList | None,
    *,
    is_any: bool = False,
    seconds: float | None = None,
) -> int:
    """Show the logs of jobs by their names until all have settled, or one; then a table. The worst exit code of them.

    With --json the logs go to stderr, and stdout gets the settled jobs. Raises TimedOut after some seconds.
    """
    jobs = watched(ids, view)
    with open_board(session.out, jobs, quiet_stdout=session.json) as board:
        ended = Joined(session.api, jobs, board, of=of, is_any=is_any).follow(seconds)
    show_ends(session.out, ended)
    return worst(ended)


def show_ends(out: Output, jobs: Sequence[Watched]) -> None:
    """How jobs ended: a table on stderr, because stdout has what they printed; with --json a list on stdout.

    Of more than MANY jobs, the table has those that did not succeed.
    """
    if out.as_json:
        out.json([job.found for job in jobs])
        return
    beside = copy.copy(out)
    beside.console = out.errors
    shown = [job for job in jobs if len(jobs) <= MANY or job.word != "succeeded"]
    if shown:
        beside.rows([job.found | {"name": job.name} for job in shown], ENDED)
    out.note(f"{counted(len(jobs), 'job')}: {counts(jobs)}")


def tail(
    session: Session, ids: Mapping[str, str], view: View, of: SetList | None, *, after: int, last: int, follows: bool
) -> int:
    """Show the logs of jobs from some line on, or their last lines: what there is, or until all have settled.

    With --json, stdout gets the events. The worst exit code of the jobs; 0 if they are not followed.
    """
    jobs = watched(ids, view)
    for job in jobs:
        job.first, job.last = after, last
    with open_board(session.out, jobs, is_brief=not follows) as board:
        joined = Joined(session.api, jobs, board, of=of)
        if not follows:
            joined.catch_up()
            return 0
        ended = joined.follow()
    if not session.json:
        show_ends(session.out, ended)
    return worst(ended)
