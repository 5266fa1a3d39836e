"""penstock job store."""

from __future__ import annotations

import sys

import click

from penstock.cli.framework import Command, Group, arguments
from penstock.cli.output import Column, moment
from penstock.cli.session import Session, pass_session

VALUES = (
    Column("NAME", "name"),
    Column("VALUE", lambda entry: "(secret)" if entry.get("secret") else entry.get("value")),
    Column("BY", "source"),
    Column("SET", moment("time")),
)

group = Group("store", "Small values that a job and its user exchange.")


@group.command("list", cls=Command)
@arguments("JOB")
@pass_session
def list_(session: Session, job: str) -> None:
    """List a job's values; secret ones are not shown."""
    session.out.table(session.api.items("jobs", job, "store"), VALUES, "no values")


@group.command(cls=Command)
@arguments("JOB", "NAME")
@pass_session
def get(session: Session, job: str, name: str) -> None:
    """Print a value."""
    answer = session.api.get("jobs", job, "store", name)
    session.out.done(str(answer.get("value", "")), answer)


@group.command(cls=Command)
@arguments("JOB", "NAME", "VALUE")
@click.option("-s", "--secret", is_flag=True, help="Show it to nobody but the job.")
@pass_session
def put(session: Session, job: str, name: str, value: str, secret: bool) -> None:
    """Set a value; VALUE - is stdin, where no list of processes shows it.

    What was secret once stays so. A job that waits for it (`bmat store get NAME`) goes on.
    """
    value = sys.stdin.read().removesuffix("\n") if value == "-" else value
    answer = session.api.put("jobs", job, "store", name, body={"value": value, "secret": secret})
    session.out.done(f"{name} is set", answer)
