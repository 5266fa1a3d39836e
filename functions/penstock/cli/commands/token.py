"""penstock token: tokens are made, listed and revoked."""

from __future__ import annotations

from typing import Literal

import click

from penstock.cli.command import Command, Group, Listing, Session, arguments, duration, pass_session
from penstock.cli.errors import Refused
from penstock.cli.output import Column, moment

TOKENS = (
    Column("ID", "id"),
    Column("NAME", "name"),
    Column("KIND", "kind"),
    Column("SCOPES", "scopes"),
    Column("STATE", "state"),
    Column("CREATED", moment("created")),
    Column("USED", moment("used")),
    Column("EXPIRES", moment("expires")),
    Column("PARENT", "parent"),
)

SCOPE = (
    "What it is good for: read, submit[:OWNER], review, operate[:POOL], host:POOL/NAME, site, users, all. "
    "May be repeated (default: what your own token is good for)."
)

Lasting = int | Literal["never"] | None

group = Group("token", "Make, list and revoke tokens.")


def lasting(text: str) -> int | Literal["never"]:
    """A duration in seconds, or `never`. Raises BadParameter."""
    return "never" if text == "never" else duration(text)


@group.command(cls=Command)
@click.option("--user", metavar="USER", help="Make it for this user (operators only; default: you).")
@click.option("--name", default="", metavar="NAME", help="What lists call it.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="SCOPE",
    help=SCOPE,
)
@click.option(
    "--expires", type=lasting, metavar="D", help="Lifetime, such as 12h, 30d, or never (default: 90d at most)."
)
@pass_session
def create(session: Session, user: str | None, name: str, scopes: tuple[str, ...], expires: Lasting) -> None:
    """Make a token from the one that you use, and print it. It is not shown again.

    It never outlives your token, and is good for nothing that yours is not. If yours is revoked, so is this one.
    """
    body = {"name": name, "scopes": list(scopes), **({} if expires is None else {"expires_in": expires})}
    answer = session.api.make("users", user or own_name(session), "tokens", body=body)
    session.out.done(str(answer["token"]), answer)
    if not session.json:
        until = f"works until {answer['expires']}" if answer.get("expires") else "works until it is revoked"
        session.out.note(f"this is shown once; it {until}; its id is {answer['id']}")


@group.command("list", cls=Listing)
@click.option("--user", metavar="USER", help="List the tokens of this user (operators only; default: yours).")
@pass_session
def list_(session: Session, user: str | None) -> None:
    """List tokens, without their secrets."""
    session.out.table(session.api.items("users", user or own_name(session), "tokens"), TOKENS, "no tokens")


@group.command(cls=Command)
@arguments("ID")
@pass_session
def revoke(session: Session, id: str) -> None:
    """Revoke a token, and all that were made from it. ID may also be the token itself, which is not sent."""
    found = id_of(id)
    answer = session.api.delete("tokens", found)
    session.out.done(f"token {found} of {answer['user']} is revoked, with all that were made from it", answer)


def own_name(session: Session) -> str:
    """The name of the user whose token is used."""
    return str(session.api.get("whoami")["name"])


def id_of(token: str) -> str:
    """The id of a token that is given by its id or as a whole. Raises Refused for a part of one."""
    from penstock.domain.users import users

    id = users.token_id_in(token)
    if id is None and token.startswith("pst_"):
        raise Refused("this is no whole token", "give it as it was printed, or its id, the 26 characters after pst_…_")
    return id or token
