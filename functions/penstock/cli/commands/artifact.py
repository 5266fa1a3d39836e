"""penstock artifact list, show, why, pin, unpin, copy, sign, sweep."""

from __future__ import annotations

import click

from penstock.cli import times
from penstock.cli.fetching import fetching
from penstock.cli.framework import Command, Group, arguments
from penstock.cli.output import Column, moment
from penstock.cli.session import Session, pass_session
from penstock.cli.values import duration

ARTIFACTS = (
    Column("ID", "id"),
    Column("PATH", "path"),
    Column("SIZE", lambda one: times.size_text(one["size"])),
    Column("STATE", "state"),
    Column("MADE", moment("time")),
    Column("UNTIL", lambda one: one.get("until") or "not known yet"),
    Column("OWNERS", lambda one: ", ".join(one["owners"]) or "nobody"),
)
KEEPERS = (
    Column("OWNER", "owner"),
    Column("UNTIL", lambda one: one.get("until") or "not known yet"),
    Column("WHY", "why"),
    Column("WHAT WOULD END THAT", "frees"),
)
GOING = (
    Column("AT", "at"),
    Column("ID", "id"),
    Column("PATH", "path"),
    Column("SIZE", lambda one: times.size_text(one["size"])),
    Column("WHY", "why"),
)
LIMIT = 50

group = Group("artifact", "Files that are kept: who owns them, why, and until when.")


@group.command("list", cls=Command)
@click.option("--by", metavar="USER", help="Those of another user (operators only).")
@click.option("--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, help="At most so many.")
@pass_session
def list_(session: Session, by: str | None, limit: int) -> None:
    """List your artifacts, newest first: who owns each, and until when."""
    found = session.api.items("artifacts", query=[("by", by)] if by else [], most=limit)
    session.out.table(found, ARTIFACTS, "no artifacts; jobs make them: `penstock job run -O /work/*.log`")
    if found.more and not session.json:
        session.out.note("there are more: give a higher --limit")


@group.command("why", cls=Command)
@arguments("ARTIFACT")
@pass_session
def why(session: Session, artifact: str) -> None:
    """Say why an artifact is kept, by whom, when it will go, and what would end that sooner."""
    found = session.api.get("artifacts", artifact, "why")
    if session.json:
        session.out.json(found)
        return
    session.out.line(f"{found['artifact']['path']}: {found['summary']}")
    if found["keepers"]:
        session.out.rows(found["keepers"], KEEPERS, indent=2)
    session.out.note(f"`penstock artifact pin {artifact} --reason WHY` keeps it")


@group.command(
    "pin", cls=Command, epilog="Example: penstock artifact pin ID --reason 'the trace of the outage' --for 90d"
)
@arguments("ARTIFACT")
@click.option("--reason", required=True, metavar="R", help="Why, for others to read.")
@click.option(
    "--for", "seconds", type=duration, metavar="D", help="For how long: 90d. Until it is taken back, if not given."
)
@pass_session
def pin(session: Session, artifact: str, reason: str, seconds: int | None) -> None:
    """Keep an artifact, whatever becomes of the job that made it. A second pin takes the first's place."""
    body: dict[str, object] = {"reason": reason} | ({} if seconds is None else {"for": seconds})
    answer = session.api.put("artifacts", artifact, "pin", body=body)
    until = answer.get("until") or "you take that back"
    session.out.done(
        f"artifact {artifact} is kept until {until}; `penstock artifact unpin {artifact}` takes it back", answer
    )


@group.command("unpin", cls=Command)
@arguments("ARTIFACT")
@click.option("--by", metavar="USER", help="The pin of another user (operators only).")
@pass_session
def unpin(session: Session, artifact: str, by: str | None) -> None:
    """Take back your pin. What nobody else owns is deleted with the next sweep."""
    answer = session.api.delete("artifacts", artifact, "pin", **({"by": by} if by else {}))
    session.out.done(f"artifact {artifact} is no longer pinned by {by or 'you'}", answer)


@group.command("copy", cls=Command)
@arguments("ARTIFACT")
@click.argument("dest", required=False, metavar="[DEST]")
@pass_session
def copy(session: Session, artifact: str, dest: str | None) -> None:
    """Download an artifact to DEST: a file or a folder (default: here). It appears whole and checked, or not at all."""
    found = session.api.get("artifacts", artifact)
    fetching(session, found, dest, lambda: str(session.api.act("artifacts", artifact, "sign")["url"]))


@group.command("sign", cls=Command)
@arguments("ARTIFACT")
@click.option("--expires-in", type=duration, metavar="D", help="How long the URL works: 30m (at most 1h).")
@pass_session
def sign(session: Session, artifact: str, expires_in: int | None) -> None:
    """Print a URL from which anybody can download an artifact for a while."""
    body = {} if expires_in is None else {"expires_in": expires_in}
    answer = session.api.act("artifacts", artifact, "sign", body=body)
    session.out.done(str(answer["url"]), answer)


@group.command("sweep", cls=Command, epilog="Example: penstock artifact sweep --dry-run --within 7d")
@click.option("--dry-run", is_flag=True, required=True, help="Only say it. The service itself sweeps each minute.")
@click.option("--within", type=duration, default="0s", metavar="D", help="Also what would go within the next D: 7d.")
@pass_session
def sweep(session: Session, dry_run: bool, within: int) -> None:
    """Say what would be deleted now, or within some time, if nothing changes (operators only)."""
    found = session.api.get("artifacts-to-go", within=str(within))
    if session.json:
        session.out.json(found)
        return
    session.out.table(found["items"], GOING, "nothing would go")
    total = times.size_text(sum(one["size"] for one in found["items"]))
    more = "" if found["is_whole"] else ", and more than one answer holds"
    session.out.note(f"{len(found['items'])} artifacts, {total}{more}")
