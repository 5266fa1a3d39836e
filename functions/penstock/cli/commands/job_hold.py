"""penstock job hold, release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from penstock.cli import times
from penstock.cli.framework import Command, arguments
from penstock.cli.output import Column, Output
from penstock.cli.session import Session, pass_session
from penstock.cli.values import duration

UNITS = (Column("KIND", "kind"), Column("ID", "id"), Column("POOL", "pool"), Column("SLOT", "slot"))


@click.command(cls=Command)
@arguments("JOB")
@click.option("--reason", required=True, metavar="R", help="Why, for others to read.")
@click.option("--for", "seconds", type=duration, metavar="D", help="For how long: 30m. The longest, if not given.")
@click.option("--whatever", is_flag=True, help="Also when its script succeeds.")
@pass_session
def hold(session: Session, job: str, reason: str, seconds: int | None, whatever: bool) -> None:
    """Hold a job's worker and resources together when its script fails, to look at them.

    To be asked before the script ends; `penstock job run --hold-on-failure D` asks from the start.
    """
    body: dict[str, object] = {"reason": reason, "whatever": whatever} | ({} if seconds is None else {"for": seconds})
    answer = session.api.act("jobs", job, "hold", body=body)
    when = "when its script has ended" if whatever else "if its script fails"
    session.out.done(f"what job {job} has is held {when}; `penstock job release {job}` takes that back", answer)


@click.command(cls=Command)
@arguments("JOB")
@pass_session
def release(session: Session, job: str) -> None:
    """Hold nothing of a job any more: what it had is cleaned and given back."""
    session.out.done(f"nothing of job {job} is held any more", session.api.act("jobs", job, "release"))


def show_held(out: Output, job: Mapping[str, Any]) -> None:
    """What of a job is held, until when, what that has cost so far, and the way back."""
    found = job.get("held")
    if not found:
        return
    cost = times.duration(found["unit_seconds"])
    out.line(f"held by {found['by']} until {found['until']}: {found['reason']} (so far {cost} of units' time)", "dim")
    out.rows(found["units"], UNITS, indent=2)
    out.note(f"`penstock job release {job['id']}` gives it back now", "")
