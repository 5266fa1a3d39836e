"""penstock share: what owners used of what many want."""

from __future__ import annotations

from typing import Any

from penstock.cli.command import Group, Listing, Session, pass_session
from penstock.cli.output import Column

group = Group("share", "Show whose jobs are served first, on a site where owners have shares.")


def _percent(key: str) -> Any:
    return lambda share: f"{share[key]:.0%}"


SHARES = (
    Column("OWNER", "owner"),
    Column("WEIGHT", "weight"),
    Column("SHARE", _percent("entitled"), "entitled"),
    Column("USED", _percent("used"), "used"),
    Column("SLOT HOURS", lambda share: f"{share['used_seconds'] / 3600:.1f}", "used_seconds"),
)

NONE = "this site has no [shares]: of one priority, the oldest job is served first"


@group.command("list", cls=Listing)
@pass_session
def list_(session: Session) -> None:
    """List who used how much lately. Who is above its share waits behind those below theirs.

    Operators see everybody; others see themselves and the repositories that they submit for.
    """
    found = session.api.get("shares")
    if found["half_life"] is None and not session.json:
        session.out.note(NONE)
        return
    session.out.table(found["items"], SHARES, "nobody used anything lately")
