"""penstock job outputs, copy, sign, send."""

from __future__ import annotations

import click

from penstock.cli import times
from penstock.cli.command import Command, Listing, Session, arguments, duration, pass_session
from penstock.cli.output import Column, digest_text, moment
from penstock.cli.references import OUTPUT

OUTPUTS = (
    Column("PATH", "path"),
    Column("SIZE", lambda output: times.size_text(output["size"]), "size"),
    Column("SHA256", lambda output: digest_text(output)[:12]),
    Column("MADE", moment("time")),
)


@click.command(cls=Listing)
@arguments("JOB")
@pass_session
def outputs(session: Session, job: str) -> None:
    """List the output files of a job."""
    found = list(session.api.items("jobs", job, "outputs"))
    gone = None if found or session.json else session.api.job(job).get("outputs_gone")
    none = "no outputs; rules like `penstock job run -O /work/*.log` choose them"
    session.out.table(found, OUTPUTS, f"its outputs are gone since {gone}: docs/users/retention.md" if gone else none)


@click.command(cls=Command)
@arguments("JOB", "PATH", PATH=OUTPUT)
@click.argument("dest", required=False, metavar="[DEST]")
@pass_session
def copy(session: Session, job: str, path: str, dest: str | None) -> None:
    """Download an output to DEST, a file or a folder (default: here). PATH is as in `job outputs`.

    If DEST is -, the bytes go to stdout. The checksum is verified before the file appears, or the first byte is
    printed. An interrupted download to a file resumes.
    """
    from penstock.cli.transfer import fetching

    output = session.api.output(job, path)
    fetching(session, output, dest, lambda: str(session.api.sign(job, output["id"])["url"]))


@click.command(cls=Command)
@arguments("JOB", "PATH", PATH=OUTPUT)
@click.option("--expires-in", type=duration, metavar="D", help="Lifetime of the URL: 30m (at most 1h).")
@pass_session
def sign(session: Session, job: str, path: str, expires_in: int | None) -> None:
    """Print a temporary URL. Anyone who has it can download the output."""
    output = session.api.output(job, path)
    answer = session.api.sign(job, output["id"], expires_in)
    session.out.done(str(answer["url"]), answer)


@click.command(cls=Command)
@arguments("JOB")
@click.argument("files", nargs=-1, required=True, metavar="[NAME=]PATH…")
@pass_session
def send(session: Session, job: str, files: tuple[str, ...]) -> None:
    """Upload the inputs that a job waits for. Files that were already uploaded are skipped.

    `job run -i` does the same after submitting. If it was interrupted, this command resumes the upload.
    """
    from penstock.cli.transfer import given, send

    send(session, job, given(files))
    waits = [each["name"] for each in session.api.get("jobs", job, "inputs")["items"] if not each["there"]]
    said = f"job {job} waits for {', '.join(waits)}" if waits else f"job {job} has all of its inputs"
    session.out.done(said, {"id": job, "waits_for": waits})
