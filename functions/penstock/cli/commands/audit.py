"""penstock audit: what operators did."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from penstock.cli.framework import Command, Group
from penstock.cli.output import Column, moment
from penstock.cli.session import Session, pass_session
from penstock.cli.values import duration

DONE = (
    Column("TIME", moment("time")),
    Column("WHO", "by"),
    Column("DID", "did"),
    Column("WHAT", "what"),
    Column("DETAIL", "detail"),
)
LIMIT = 50

group = Group("audit", "What operators did: who, when, what.")


@group.command("list", cls=Command)
@click.option("--since", type=duration, metavar="D", help="Only what was done in the last D: 2h, 7d.")
@click.option("--who", metavar="NAME", help="Only what this user did.")
@click.option("--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, help="At most so many.")
@pass_session
def list_(session: Session, since: int | None, who: str | None, limit: int) -> None:
    """List what was done with users, pools, units, the site and others' jobs, newest first."""
    query = [("who", who)] if who else []
    if since is not None:
        query.append(("since", (datetime.now(UTC) - timedelta(seconds=since)).strftime("%Y-%m-%dT%H:%M:%SZ")))
    found = session.api.items("audit", query=query, most=limit)
    session.out.table(found, DONE, "nothing was done")
    if found.more and not session.json:
        session.out.note("there are more: give a higher --limit")
