"""penstock site, and penstock factory|well disable|drain|enable: what is granted to nobody for a while."""

from __future__ import annotations

from typing import Any

import click

from penstock.cli.command import Command, Group, Listing, Session, arguments, pass_session
from penstock.cli.output import Column, moment
from penstock.cli.references import Name

NEEDED = click.option("--reason", required=True, metavar="TEXT", help="Reason, shown to everybody whose job waits.")
REASON = click.option("--reason", default="", metavar="TEXT", help="Reason, for the audit log.")

STOPS = (
    Column("SCOPE", "scope"),
    Column("SINCE", moment("since")),
    Column("BY", "by"),
    Column("DRAINS", lambda stop: "yes" if stop["drains"] else "no"),
    Column("STATE", lambda stop: "in force" if stop["is_spread"] else "being brought to all pools"),
    Column("REASON", "reason"),
)

site = Group("site", "Pause and resume the whole site; show what is paused.")


@site.command("stops", cls=Listing)
@pass_session
def list_stops(session: Session) -> None:
    """List what is paused as a whole: the site, factories, wells; with who paused it, and why.

    `penstock pool list` shows which pools grant nothing, for whatever reason.
    """
    session.out.table(session.api.items("site", "stops"), STOPS, "neither the site nor a factory or well is paused")


@site.command(cls=Command)
@NEEDED
@pass_session
def pause(session: Session, reason: str) -> None:
    """Grant nothing new on the whole site (operators only). Running jobs go on; others wait, and are told why."""
    answer = session.api.act("site", "pause", body={"reason": reason})
    session.out.done("the site is paused; `penstock site resume` ends that", answer)


@site.command(cls=Command)
@REASON
@pass_session
def resume(session: Session, reason: str) -> None:
    """Grant on the whole site again (operators only). What is paused by itself stays paused."""
    session.out.done("the site is open again", session.api.act("site", "resume", body=_reason(reason)))


def _reason(text: str) -> dict[str, str]:
    return {"reason": text} if text else {}


def _command(noun: str, plural: str, verb: str, help: str, said: str) -> click.Command:
    """A command that stops a factory or well, or lifts that."""

    @click.command(verb, cls=Command, help=help)
    @arguments("NAME", NAME=Name(noun, plural))
    @(REASON if verb == "enable" else NEEDED)
    @pass_session
    def change(session: Session, name: str, reason: str) -> None:
        answer: Any = session.api.act(plural, name, verb, body=_reason(reason))
        back = "" if verb == "enable" else f"; `penstock {noun} enable {name}` ends that"
        session.out.done(f"{noun} {name} {said}{back}", answer)

    return change


factory_disable = _command(
    "factory",
    "factories",
    "disable",
    "Grant nothing new of a factory's targets (operators only). Running jobs go on; idle workers stay.",
    "is disabled",
)
factory_drain = _command(
    "factory",
    "factories",
    "drain",
    "Disable a factory, and destroy each of its workers as soon as no job has it (operators only).",
    "is drained",
)
factory_enable = _command(
    "factory", "factories", "enable", "Grant of a factory's targets again (operators only).", "is enabled"
)
well_disable = _command(
    "well",
    "wells",
    "disable",
    "Grant nothing new of a well's resource types (operators only). What jobs have stays; so does what is idle.",
    "is disabled",
)
well_drain = _command(
    "well",
    "wells",
    "drain",
    "Disable a well, and destroy each of its resources as soon as no job has it (operators only).",
    "is drained",
)
well_enable = _command(
    "well", "wells", "enable", "Grant of a well's resource types again (operators only).", "is enabled"
)
