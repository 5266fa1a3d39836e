"""penstock job outputs, copy, sign."""

from __future__ import annotations

import click
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from penstock.cli import times
from penstock.cli.framework import Command, arguments
from penstock.cli.output import Column, moment
from penstock.cli.session import Session, pass_session
from penstock.cli.values import duration

OUTPUTS = (
    Column("PATH", "path"),
    Column("SIZE", lambda output: times.size_text(output["size"])),
    Column("SHA256", lambda output: str(output.get("sha256") or "")[:12]),
    Column("MADE", moment("time")),
)


@click.command(cls=Command)
@arguments("JOB")
@pass_session
def outputs(session: Session, job: str) -> None:
    """List the files that a job made."""
    found = session.api.items("jobs", job, "outputs")
    session.out.table(found, OUTPUTS, "no outputs; rules like `penstock job run -O /work/*.log` choose them")


@click.command(cls=Command)
@arguments("JOB", "PATH")
@click.argument("dest", required=False, metavar="[DEST]")
@pass_session
def copy(session: Session, job: str, path: str, dest: str | None) -> None:
    """Download an output to DEST: a file or a folder (default: here). PATH is as `job outputs` shows it.

    The file appears whole and checked, or not at all. A download that broke off is continued.
    """
    from penstock.cli.download import destination, fetch

    output = session.api.output(job, path)
    place = destination(output, dest)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(True), TransferSpeedColumn())
    hidden = session.json or not session.out.errors.is_terminal
    with Progress(*columns, console=session.out.errors, disable=hidden, transient=True) as bar:
        task = bar.add_task(place.name, total=output["size"])
        fetch(session.api, job, output, place, lambda have: bar.update(task, completed=have))
    session.out.done(f"{place}  {times.size_text(output['size'])}", {**output, "file": str(place)})


@click.command(cls=Command)
@arguments("JOB", "PATH")
@click.option("--expires-in", type=duration, metavar="D", help="How long the URL works: 30m (at most 1h).")
@pass_session
def sign(session: Session, job: str, path: str, expires_in: int | None) -> None:
    """Print a URL from which anybody can download an output for a while."""
    output = session.api.output(job, path)
    answer = session.api.sign(job, output["id"], expires_in)
    session.out.done(str(answer["url"]), answer)
