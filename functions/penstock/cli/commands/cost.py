"""penstock job cost: what a job cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from penstock.cli import times
from penstock.cli.command import Command, Session, arguments, pass_session
from penstock.cli.output import Column, Moment

CHARGES = (
    Column("NAME", "name"),
    Column("TYPE", "type"),
    Column("HELD", lambda row: times.duration(row["seconds"])),
    Column("UNUSED", lambda row: times.duration(row["unused_seconds"])),
    Column("COST", "cost"),
    Column("OF IT UNUSED", "unused"),
)

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
