"""penstock profile, openapi, completion."""

from __future__ import annotations

import click

from penstock.cli import config
from penstock.cli.command import Command, Group, Listing, Session, arguments, pass_session
from penstock.cli.errors import Refused
from penstock.cli.output import Column, Fit

PROFILES = (
    Column("NAME", "name", fit=Fit.ID),
    Column("URL", "url"),
    Column("IN USE", "in_use"),
    Column("DEFAULT", "default"),
    Column("TOKEN", "has_token"),
)

group = Group("profile", "List, choose and remove the services in ~/.config/penstock/config.toml.")


@group.command("list", cls=Listing)
@pass_session
def list_(session: Session) -> None:
    """List the profiles, without their tokens."""
    known = config.load(session.config_path)
    default, used = known.default or config.LOCAL, _in_use(session)
    found = [
        {
            "name": name,
            "url": profile.url,
            "in_use": name == used,
            "default": name == default,
            "has_token": bool(profile.token),
        }
        for name, profile in sorted(known.profiles.items())
    ]
    session.out.table(found, PROFILES, f"no profiles: {config.NOWHERE}")


def _in_use(session: Session) -> str | None:
    """The profile that other commands use here; None if a URL goes before all profiles, or there is none."""
    try:
        return session.target.profile
    except Refused:
        return None


@group.command(cls=Command)
@arguments("NAME")
@pass_session
def use(session: Session, name: str) -> None:
    """Set the default profile."""
    config.use_profile(session.config_path, name)
    session.out.done(f"{name} is the default", {"default_profile": name})


@group.command(cls=Command)
@arguments("NAME")
@pass_session
def remove(session: Session, name: str) -> None:
    """Remove a profile, with its token. The token is not revoked: `penstock logout` does that before."""
    found = config.load(session.config_path).profiles.get(name)
    if found is None:
        raise Refused(f"there is no profile `{name}`", "`penstock profile list` shows them")
    config.remove_profile(session.config_path, name)
    session.out.done(f"the profile {name} is removed", {"name": name, "url": found.url})
    if found.made and not session.json:
        session.out.note("its token still works, until it expires: `penstock token list` shows it, `revoke` ends it")


SHELLS = ["bash", "zsh", "fish"]


@click.command(cls=Command)
@pass_session
def openapi(session: Session) -> None:
    """Print the service's OpenAPI document."""
    session.out.json(session.api.get("openapi.json"))


@click.command(cls=Command, epilog="""Example: penstock completion bash >> ~/.bashrc""")
@click.argument("shell", type=click.Choice(SHELLS), metavar="bash|zsh|fish")
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise Refused(f"no completion for {shell}", f"there is one for {', '.join(SHELLS)}")
    root = ctx.find_root()
    click.echo(kind(root.command, {}, "penstock", "_PENSTOCK_COMPLETE").source())
