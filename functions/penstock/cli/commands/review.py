"""penstock job approve: look at a job that asks for an environment, and approve or refuse it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from penstock.cli.command import Listing, Session, pass_session
from penstock.cli.output import Column, Moment, moment
from penstock.cli.references import REVIEW

if TYPE_CHECKING:
    from penstock.cli.client import Object

FACTS = ("job", "name", "owner", "environment", "privileges", "target", "resources", "source", "inputs", "env", "by")


REQUESTS = (
    Column("JOB", "job"),
    Column("ENVIRONMENT", "environment"),
    Column("OWNER", "owner"),
    Column("NAME", "name"),
    Column("REF", lambda row: row["source"].get("ref")),
    Column("UNTIL", moment("until")),
)


@click.command(cls=Listing)
@click.argument("job", required=False, metavar="[JOB]", type=REVIEW)
@click.option("--refuse", is_flag=True, help="Refuse the job instead: it fails.")
@click.option("--yes", is_flag=True, help="Do not show the job and ask.")
@pass_session
def approve(session: Session, job: str | None, refuse: bool, yes: bool) -> None:
    """Approve a job that asks for an environment; without JOB, list those that wait for you.

    Shows what the job is and what it runs, and asks. From then on the job has the privileges of the environment, and
    goes on. Only a reviewer of the environment may do this, and not of a job of their own.
    """
    if job is None:
        session.out.table(session.api.items("reviews"), REQUESTS, "no job waits for your review")
        return
    if not yes:
        _show(session, dict(session.api.get("jobs", job, "review")))
        click.confirm(f"{'Refuse' if refuse else 'Approve'} it?", abort=True, err=True)
    found = dict(session.api.act("jobs", job, "review", body={"refuse": refuse}))
    said = f"{'refused' if refuse else 'approved'} job {found['job']} for the environment {found['environment']}"
    session.out.done(said, found)


def _show(session: Session, found: Object) -> None:
    """The script comes last, so that what is asked stands right below what is approved."""
    used = [each["job"] for each in found["dependencies"]]
    facts = [(name, found[name] or None) for name in FACTS]
    session.out.details([*facts, ("dependencies", used), ("until", Moment(found["until"]))])
    session.out.note(found["script"] or "its script is no longer kept")
