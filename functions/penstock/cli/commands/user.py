"""penstock user, whoami."""

from __future__ import annotations

import click

from penstock.cli.config import Profile, save_profile
from penstock.cli.framework import Command, Group, arguments
from penstock.cli.output import Column, Moment, moment
from penstock.cli.session import Session, pass_session
from penstock.cli.values import duration

USERS = (Column("NAME", "name"), Column("PRIVILEGES", "privileges"), Column("CREATED", moment("created")))

group = Group("user", "Users, their privileges and tokens.")


@group.command(cls=Command)
@arguments("NAME")
@click.option("--privilege", "privileges", multiple=True, metavar="P", help="A privilege to begin with: admin.")
@pass_session
def create(session: Session, name: str, privileges: tuple[str, ...]) -> None:
    """Create a user, or a repository: oxide:hubris. A token is made with `penstock user token`."""
    answer = session.api.make("users", body={"name": name, "privileges": list(privileges)})
    session.out.done(f"user {name} is created", answer)
    if not session.json:
        session.out.note(f"`penstock user token {name}` makes a token")


@group.command("list", cls=Command)
@pass_session
def list_(session: Session) -> None:
    """List the users."""
    session.out.table(session.api.items("users"), USERS, "no users")


@group.command(cls=Command)
@arguments("NAME", "PRIVILEGE")
@pass_session
def grant(session: Session, name: str, privilege: str) -> None:
    """Give a user a privilege; `admin` is every privilege."""
    answer = session.api.put("users", name, "privileges", privilege)
    session.out.done(f"{name} has {privilege}", answer)


@group.command(cls=Command)
@arguments("NAME", "PRIVILEGE")
@click.option("--now", is_flag=True, help="Also cancel the jobs that hold something under it.")
@pass_session
def revoke(session: Session, name: str, privilege: str, now: bool) -> None:
    """Take a privilege from a user. Jobs that wait under it fail; those that hold something keep it until they end."""
    answer = session.api.delete("users", name, "privileges", privilege, **({"now": "true"} if now else {}))
    session.out.done(f"{name} no longer has {privilege}", answer)
    if not session.json:
        _tell(session, answer.get("stopped") or [], answer.get("holding") or [], now)


def _tell(session: Session, stopped: list[str], holding: list[str], now: bool) -> None:
    """What a revocation did to jobs."""
    if stopped:
        session.out.note(f"{_jobs(stopped)} waited under it and will fail: {', '.join(stopped)}")
    if holding and now:
        session.out.note(f"{_jobs(holding)} held something under it and are being cancelled: {', '.join(holding)}")
    elif holding:
        told = f"{_jobs(holding)} hold something under it, and keep it until they end: {', '.join(holding)}"
        session.out.note(f"{told}; --now cancels them")


def _jobs(found: list[str]) -> str:
    return f"{len(found)} job{'s' * (len(found) != 1)}"


@group.command(cls=Command)
@arguments("NAME")
@click.option("--expires-in", type=duration, metavar="D", help="How long it works: 90d.")
@pass_session
def token(session: Session, name: str, expires_in: int | None) -> None:
    """Make a token for a user, and print it: it is never shown again."""
    body = {} if expires_in is None else {"expires_in": expires_in}
    answer = session.api.make("users", name, "tokens", body=body)
    session.out.done(str(answer["token"]), answer)
    if not session.json:
        until = f"works until {answer['expires']}" if answer.get("expires") else "works until it is revoked"
        session.out.note(f"this is shown once; it {until}")


@group.command(cls=Command)
@click.option("--stack", default="Penstock", show_default=True, metavar="NAME", help="The stack that was deployed.")
@click.option("--region", metavar="REGION", help="Its region (default: that of your AWS configuration).")
@click.option("--save", metavar="PROFILE", help="Also keep URL and token as this profile.")
@pass_session
def bootstrap(session: Session, stack: str, region: str | None, save: str | None) -> None:
    """Make the first operator of a deployed stack, with your own AWS credentials, and print a token.

    It writes to the stack's table; nobody who lacks that permission can do it. Run it again for another token.
    """
    from penstock.cli.deployed import first_operator

    url, secret = first_operator(stack, region)
    if save:
        save_profile(session.config_path, save, Profile(url, secret))
    if session.json:
        session.out.json({"url": url, "token": secret})
        return
    session.out.details([("url", url), ("token", secret)])
    session.out.note("the token is shown once, and works until it is revoked")


@click.command(cls=Command)
@pass_session
def whoami(session: Session) -> None:
    """Show who you are to the service, and what you may do."""
    answer = session.api.get("whoami")
    if session.json:
        session.out.json(answer)
        return
    target = session.target
    facts = [(name, Moment(value) if name == "created" else value) for name, value in answer.items()]
    session.out.details([*facts, ("service", target.url), ("profile", target.profile)])
