"""penstock cost, penstock job cost: what jobs cost."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

import click

from penstock.cli import times
from penstock.cli.command import Command, Listing, Session, arguments, pass_session, since
from penstock.cli.output import Column, Moment

CHARGES = (
    Column("NAME", "name"),
    Column("TYPE", "type"),
    Column("HELD", lambda row: times.duration(row["seconds"])),
    Column("UNUSED", lambda row: times.duration(row["unused_seconds"])),
    Column("COST", "cost"),
    Column("OF IT UNUSED", "unused"),
)

WIDTH = 79
"""Columns of the narrowest terminal that a sentence is to fit."""

PARTS = ("control", "worker", "resources", "stored", "sent")


@click.command("cost", cls=Command)
@arguments("JOB")
@pass_session
def job_cost(session: Session, job: str) -> None:
    """Show what a job cost: the service, its worker, its resources, its files.

    `unused` is the part for what the job had while its script did not run: waiting for other things, booting, being
    cleaned or held. Until all is given back, this is what the job has cost so far.
    """
    found = session.api.get("jobs", job, "cost")
    if session.json:
        session.out.json(found)
        return
    out = session.out
    due = found.get("final_after")
    so_far = "" if found["is_final"] else " so far"
    out.details(
        [
            ("total", f"{amount(found, 'total')}{so_far}"),
            ("unused", f"{amount(found, 'unused')} of it"),
            *((name, amount(found, name)) for name in PARTS),
            ("final after", Moment(due) if due else None),
        ]
    )
    if found["charges"]:
        out.line("held, and how long of that the script did not run", "dim")
        out.rows(found["charges"], CHARGES, indent=2)


def amount(found: Mapping[str, Any], name: str) -> str:
    """An amount with its currency."""
    return f"{found[name]} {found['currency']}"


SUMS = (
    Column("JOBS", "jobs"),
    Column("TOTAL", "total"),
    Column("OF IT UNUSED", "unused"),
    Column("WORKER", "worker"),
    Column("RESOURCES", "resources"),
    Column("CONTROL", "control"),
    Column("STORED", "stored"),
    Column("SENT", "sent"),
    Column("CURRENCY", "currency"),
)

NO_PRICES = "this site has no [prices]: what its jobs cost is not added up"


@click.command("cost", cls=Listing)
@click.option(
    "--by",
    type=click.Choice(["owner", "target", "pool", "day"]),
    default="owner",
    show_default=True,
    help="Add up by what.",
)
@click.option("--since", type=since, metavar="D", help="Jobs that ended since then: 7d, or 2026-01-31T00:00:00Z.")
@click.option("--until", type=since, metavar="D", help="Jobs that ended until then, that day included.")
@click.option("--owner", metavar="NAME", help="Jobs of this repository or user (default: yours; for operators, all).")
@pass_session
def costs(session: Session, /, by: str, **asked: str | None) -> None:
    """Show what jobs cost by owner, target, pool or day: those that ended since the first of the month, in whole days.

    Days are those of UTC. A job is counted once everything that it had is given back, five minutes after its end at the
    earliest. By pool, `other` is what belongs to no pool: the service and files.
    """
    found = session.api.get("costs", by=by, **{name: value for name, value in asked.items() if value})
    if not found["is_counted"] and not session.json:
        session.out.note(NO_PRICES)
    budget = found.get("budget")
    if budget and not session.json:
        said = f"{budget['spent']} of {budget['budget']} {budget['currency']} since {budget['since']}"
        for line in wrap(f"the budget of {budget['owner']}: {said}", WIDTH):
            session.out.note(line, "yellow" if budget["is_near"] else "dim")
    columns = (Column(by.upper(), "name"), *SUMS)
    session.out.table(found["items"], columns, f"no costs from {found['since']} to {found['until']}")
