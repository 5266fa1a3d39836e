"""penstock alarm: which alarms are raised, and which queues have dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from penstock.cli.command import Group, Listing, Session, pass_session
from penstock.cli.errors import Unreachable
from penstock.cli.output import Column, moment

ALARMS = (
    Column("STATE", lambda alarm: alarm["state"].replace("_", " ")),
    Column("ALARM", "section"),
    Column("OF", "of"),
    Column("SINCE", moment("since")),
    Column("MEANS", "what"),
    Column("REASON", "reason"),
)

DEAD_LETTERS = (Column("QUEUE", "of"), Column("MESSAGES", "messages"), Column("URL", "url"))

group = Group("alarm", "Show the alarms of the deployment, and its dead letters (operators only).")


@group.command("list", cls=Listing)
@click.option("--raised", is_flag=True, help="Only those that are raised.")
@pass_session
def list_(session: Session, raised: bool) -> None:
    """List the alarms, those first that are raised. What to do about each: docs/operators/operations.md."""
    found = _known(session.api.get("alarms")["alarms"])
    rows = [row for row in found if row["state"] == "alarm" or not raised]
    empty = "no alarm is raised" if found else "this deployment has no alarms"
    session.out.table(rows, ALARMS, empty)


@group.command(cls=Listing)
@pass_session
def dead_letters(session: Session) -> None:
    """List the dead-letter queues. A message that a function took twenty times in vain is in its queue's."""
    session.out.table(
        _known(session.api.get("alarms")["dead_letters"]), DEAD_LETTERS, "this deployment has no dead-letter queues"
    )


def _known(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The items of a part of the answer. Raises Unreachable if they are not known: none would look like good news."""
    if found["problem"]:
        raise Unreachable(found["problem"])
    return list(found["items"])
