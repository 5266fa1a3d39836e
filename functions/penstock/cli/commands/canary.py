"""penstock canary list, send."""

from __future__ import annotations

from penstock.cli.framework import Command, Group, arguments
from penstock.cli.output import Column, moment
from penstock.cli.session import Session, pass_session

CANARIES = (
    Column("POOL", "pool"),
    Column("STATE", lambda canary: "out" if canary["is_out"] else "due"),
    Column("LAST", lambda canary: canary.get("outcome")),
    Column("FAILURES", "failures"),
    Column("SENT", moment("since")),
    Column("NEXT", moment("due")),
    Column("JOB", "job"),
    Column("REASON", "reason"),
)

group = Group("canary", "Jobs of the site's own that show whether things work.")


@group.command("list", cls=Command)
@pass_session
def list_(session: Session) -> None:
    """List the canaries: how the last came back, and when the next is sent."""
    session.out.table(session.api.items("canaries"), CANARIES, "no canaries; `canary = {...}` of a target makes one")


@group.command("send", cls=Command, epilog="Example: penstock canary send target/ubuntu-24.04")
@arguments("POOL")
@pass_session
def send(session: Session, pool: str) -> None:
    """Send a canary now, to see whether what was broken works again."""
    sort, _, name = pool.partition("/")
    answer = session.api.act("canaries", sort, name, "send")
    said = f"job {answer['job']}" if answer["is_out"] else f"it was refused: {answer['reason']}"
    session.out.done(f"the canary of {pool} is sent: {said}", answer)
