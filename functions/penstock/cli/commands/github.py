"""penstock github status, deliveries, redeliver, accept."""

from __future__ import annotations

import click

from penstock.cli.command import Command, Group, Listing, Session, arguments, pass_session
from penstock.cli.output import Column, moment

LIMIT = 20
COMMITS = (
    Column("REPOSITORY", "repository"),
    Column("COMMIT", lambda commit: commit["commit"][:12]),
    Column("BRANCH", "branch"),
    Column("PULL", "pull_request"),
    Column("STAGE", "stage"),
    Column("SINCE", moment("since")),
    Column("WHY", "why"),
)
DELIVERIES = (
    Column("RECEIVED", moment("received")),
    Column("EVENT", lambda each: f"{each['event']} {each['action']}".strip()),
    Column("REPOSITORY", "repository"),
    Column("BY", "sender"),
    Column("MISSED", lambda each: "missed" if each["missed"] else None),
    Column("LED TO", lambda each: each.get("outcome") or "nothing yet"),
    Column("ID", "id"),
)

group = Group("github", "Show the commits and deliveries from GitHub (operators only).")
_limit = click.option(
    "--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, metavar="N", help="Show at most N entries."
)


@group.command("status", cls=Listing)
@_limit
@pass_session
def status(session: Session, limit: int) -> None:
    """List the latest commits and the state of their jobs."""
    found = session.api.items("github", "commits", most=limit)
    session.out.table(found, COMMITS, "no commits; docs/users/github.md says how to set it up")


@group.command("deliveries", cls=Listing)
@_limit
@pass_session
def deliveries(session: Session, limit: int) -> None:
    """List the latest webhook deliveries and their results."""
    found = session.api.items("github", "deliveries", most=limit)
    session.out.table(found, DELIVERIES, "GitHub said nothing that matters")


@group.command(
    "redeliver", cls=Command, epilog="Example: penstock github redeliver 72d3162e-cc78-11e3-81ab-4c9367dc0958"
)
@arguments("DELIVERY")
@pass_session
def redeliver(session: Session, delivery: str) -> None:
    """Process a delivery again. Steps that are already done are skipped."""
    answer = session.api.act("github", "deliveries", delivery, "redeliver")
    session.out.done(f"delivery {delivery} is taken once more", answer)


@group.command("accept", cls=Command, epilog="Example: penstock github accept oxide:hubris 123456789")
@arguments("REPOSITORY")
@click.argument("id", metavar="ID", type=int)
@pass_session
def accept(session: Session, repository: str, id: int) -> None:
    """Transfer the grants of a repository name to the repository that has this name now.

    ID is GitHub's id of the repository; the failed check shows it.
    """
    answer = session.api.act("github", "repositories", repository, "accept", body={"id": id})
    session.out.done(
        f"{repository} is the repository {id} from now on; run its commits again from their checks", answer
    )
