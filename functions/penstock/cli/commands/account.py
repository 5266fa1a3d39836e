"""penstock account: what exists outside with our tags, and belongs to nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click

from penstock.cli import times
from penstock.cli.command import Group, Listing, Session, pass_session
from penstock.cli.errors import CliError, Interrupted
from penstock.cli.output import Column, moment

LEFTOVERS = (
    Column("MADE BY", "maker"),
    Column("KIND", "kind"),
    Column("ID", "id"),
    Column("AGE", lambda row: "unknown" if row["seconds_old"] is None else times.duration(row["seconds_old"])),
    Column("OWNER", lambda row: row["owner"] or "unknown"),
    Column("UNIT", "unit"),
    Column("WHY", "why"),
)

NIGHTS = (
    Column("DIFF", "id"),
    Column("BEGAN", moment("began")),
    Column("FINISHED", moment("finished")),
    Column("THINGS", "things"),
    Column("LEFT", "left"),
    Column("UNLISTED", "unlisted"),
    Column("ASKED BY", "by"),
)

EACH = 3
"""Seconds between two looks at a diff that goes on."""

MOST = 900
"""Seconds until `--now` stops waiting. The sweep begins it within a minute; each factory and well takes one at most."""

group = Group("account", "Show what was left behind outside (operators only).")


class Unfinished(CliError):
    """The diff goes on. Nothing is known yet."""

    exit_code = 4


@group.command(cls=Listing)
@click.option("--history", is_flag=True, help="List the diffs that are kept, newest first, in numbers.")
@click.option("--now", is_flag=True, help="Have a new diff made, and wait for it.")
@click.option("--id", metavar="DIFF", help="Show this one of the history.")
@pass_session
def diff(session: Session, history: bool, now: bool, id: str | None) -> None:
    """Show what exists outside with this deployment's tags and belongs to no unit: one line each, or zero.

    The service compares everything each night at 03:00 UTC. Shows the newest diff that is finished. Nothing is
    destroyed: docs/operators/operations.md says what to do about what is found.
    """
    if history + now + bool(id) > 1:
        raise click.UsageError("--history, --now and --id exclude each other")
    if history:
        session.out.table(session.api.get("account", "diffs")["items"], NIGHTS, "there was no diff yet")
        return
    found = _wait(session) if now else session.api.get("account", "diff", **({"id": id} if id else {}))
    _print(session, found)


def _wait(session: Session) -> Mapping[str, Any]:
    """Have a diff made, and wait for its end. Raises Interrupted on Ctrl-C, Unfinished if it takes too long."""
    found: Mapping[str, Any] = session.api.act("account", "diff")
    again = f"penstock account diff --id {found['id']}"
    until = time.monotonic() + MOST
    try:
        while not found["finished"]:
            if time.monotonic() > until:
                raise Unfinished(f"diff {found['id']} goes on; see later: {again}")
            session.out.notice("everything outside is being compared; this takes a minute or two")
            time.sleep(EACH)
            found = session.api.get("account", "diff", id=found["id"])
    except KeyboardInterrupt:
        raise Interrupted(f"the service goes on comparing; see later: {again}") from None
    return found


def _print(session: Session, found: Mapping[str, Any]) -> None:
    if session.json:
        session.out.json(found)
        return
    left, summary = found["leftovers"], _summary(found)
    session.out.table(left, LEFTOVERS, summary)
    for maker in found["makers"]:
        if maker["problem"]:
            session.out.note(f"{maker['maker']} could not be listed: {maker['problem']}", "yellow")
    if left:
        session.out.note(summary)


def _summary(found: Mapping[str, Any]) -> str:
    left, shown = found["left"], len(found["leftovers"])
    first = f" ({shown} shown)" if left > shown else ""
    when = f"diff of {found['finished']}" if found["finished"] else "this diff is not finished"
    return f"left over: {left} of {found['things']} things{first}; {when}"
