"""penstock privilege: ask for privileges, and decide who gets them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from penstock.cli.command import Command, Group, Listing, Session, arguments, pass_session
from penstock.cli.output import Column, moment

REQUESTS = (
    Column("USER", "user"),
    Column("PRIVILEGE", "privilege"),
    Column("STATE", lambda row: _state(row)),
    Column("ASKED", moment("since")),
    Column("BY", "by"),
    Column("REASON", "reason"),
    Column("ANSWER", "answer"),
)

group = Group("privilege", "Ask for privileges; see who asks, and grant or refuse.")


def _state(row: Mapping[str, Any]) -> str:
    if row["decided"] is None:
        return "waiting"
    return "granted" if row["is_granted"] else "refused"


@group.command(cls=Command)
@arguments("PRIVILEGE")
@click.option("--reason", required=True, metavar="TEXT", help="What you need it for.")
@click.option("--owner", metavar="NAME", help="Repository that is to have it, if that is not you.")
@pass_session
def request(session: Session, privilege: str, reason: str, owner: str | None) -> None:
    """Ask for a privilege. An operator decides; `penstock privilege list` shows what became of it.

    An error at submit names the privilege that you lack; so do `penstock target list` and `resource-type list`. Asking
    again says the reason anew.
    """
    body = {"reason": reason} | ({"owner": owner} if owner else {})
    answer = session.api.put("privileges", privilege, "request", body=body)
    session.out.done(f"asked for {privilege} for {answer['user']}; an operator decides", answer)


@group.command("list", cls=Listing)
@click.option("--all", "everybody", is_flag=True, help="Those that wait, of every user (operators only).")
@pass_session
def list_requests(session: Session, everybody: bool) -> None:
    """List your requests, and what became of them; they are kept for 30 days."""
    query = [("all", "true")] if everybody else []
    session.out.table(session.api.items("privileges", "requests", query=query), REQUESTS, "there are no requests")


@group.command(cls=Command)
@arguments("USER", "PRIVILEGE")
@pass_session
def approve(session: Session, user: str, privilege: str) -> None:
    """Grant what a user asked for (operators only). `penstock user grant` does the same."""
    answer = session.api.put("users", user, "privileges", privilege)
    session.out.done(f"{user} has {privilege}", answer)


@group.command(cls=Command)
@arguments("USER", "PRIVILEGE")
@click.option("--reason", required=True, metavar="TEXT", help="Why, for who asked.")
@pass_session
def refuse(session: Session, user: str, privilege: str, reason: str) -> None:
    """Refuse what a user asked for (operators only). They see who did, and why."""
    answer = session.api.act("users", user, "privileges", privilege, "refuse", body={"reason": reason})
    session.out.done(f"refused {privilege} for {user}", answer)
