"""penstock profile, openapi, completion."""

from __future__ import annotations

import os

import click

from penstock.cli import config
from penstock.cli.command import Command, Group, Listing, Session, arguments, pass_session
from penstock.cli.errors import Refused
from penstock.cli.output import Column, Fit

PROFILES = (
    Column("NAME", "name", fit=Fit.ID),
    Column("URL", "url"),
    Column("DEFAULT", "default"),
    Column("TOKEN", "has_token"),
)

group = Group("profile", "List and choose the services in ~/.config/penstock/config.toml.")


@group.command("list", cls=Listing)
@pass_session
def list_(session: Session) -> None:
    """List the profiles, without their tokens."""
    known = config.load(session.config_path)
    default = session.profile or os.environ.get("PENSTOCK_PROFILE") or known.default or config.LOCAL
    found = [
        {"name": name, "url": profile.url, "default": name == default, "has_token": bool(profile.token)}
        for name, profile in sorted(known.profiles.items())
    ]
    session.out.table(found, PROFILES, f"no profiles: {config.NOWHERE}")


@group.command(cls=Command)
@arguments("NAME")
@pass_session
def use(session: Session, name: str) -> None:
    """Set the default profile."""
    config.use_profile(session.config_path, name)
    session.out.done(f"{name} is the default", {"default_profile": name})


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
