"""penstock job send."""

from __future__ import annotations

import click

from penstock.cli.framework import Command, arguments
from penstock.cli.session import Session, pass_session


@click.command(cls=Command)
@arguments("JOB")
@click.argument("files", nargs=-1, required=True, metavar="[NAME=]PATH…")
@pass_session
def send(session: Session, job: str, files: tuple[str, ...]) -> None:
    """Send files that a job waits for; of what was sent already nothing is sent again.

    It is what `job run -i` does after it has submitted the job. When that broke off, this goes on with it.
    """
    from penstock.cli.inputs import given, send

    send(session, job, given(files))
    waits = [each["name"] for each in session.api.get("jobs", job, "inputs")["items"] if not each["there"]]
    said = f"job {job} waits for {', '.join(waits)}" if waits else f"job {job} has all of its inputs"
    session.out.done(said, {"id": job, "waits_for": waits})
