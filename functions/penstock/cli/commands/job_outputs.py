"""penstock job outputs, copy, sign."""

from __future__ import annotations

import click

from penstock.cli import times
from penstock.cli.fetching import fetching
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
    found = list(session.api.items("jobs", job, "outputs"))
    gone = None if found or session.json else session.api.job(job).get("outputs_gone")
    none = "no outputs; rules like `penstock job run -O /work/*.log` choose them"
    session.out.table(found, OUTPUTS, f"its outputs are gone since {gone}: docs/users/retention.md" if gone else none)


@click.command(cls=Command)
@arguments("JOB", "PATH")
@click.argument("dest", required=False, metavar="[DEST]")
@pass_session
def copy(session: Session, job: str, path: str, dest: str | None) -> None:
    """Download an output to DEST: a file or a folder (default: here). PATH is as `job outputs` shows it.

    The file appears whole and checked, or not at all. A download that broke off is continued.
    """
    output = session.api.output(job, path)
    fetching(session, output, dest, lambda: str(session.api.sign(job, output["id"])["url"]))


@click.command(cls=Command)
@arguments("JOB", "PATH")
@click.option("--expires-in", type=duration, metavar="D", help="How long the URL works: 30m (at most 1h).")
@pass_session
def sign(session: Session, job: str, path: str, expires_in: int | None) -> None:
    """Print a URL from which anybody can download an output for a while."""
    output = session.api.output(job, path)
    answer = session.api.sign(job, output["id"], expires_in)
    session.out.done(str(answer["url"]), answer)
