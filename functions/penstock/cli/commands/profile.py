"""penstock profile: the services that this command knows."""

from __future__ import annotations

import os

from penstock.cli import config
from penstock.cli.framework import Command, Group, arguments
from penstock.cli.output import Column
from penstock.cli.session import Session, pass_session

PROFILES = (Column("NAME", "name"), Column("URL", "url"), Column("DEFAULT", "default"), Column("TOKEN", "has_token"))

group = Group("profile", "The services that this command knows, in ~/.config/penstock/config.toml.")


@group.command("list", cls=Command)
@pass_session
def list_(session: Session) -> None:
    """List the profiles. Tokens are not shown."""
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
    """Make a profile the default."""
    config.use_profile(session.config_path, name)
    session.out.done(f"{name} is the default", {"default_profile": name})
