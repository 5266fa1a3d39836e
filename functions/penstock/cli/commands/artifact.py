"""penstock artifact and penstock cache: files that the service keeps."""

from __future__ import annotations

import click

from penstock.cli import times
from penstock.cli.command import Command, Group, Listing, Session, arguments, duration, pass_session
from penstock.cli.output import Column, moment

ARTIFACTS = (
    Column("ID", "id"),
    Column("PATH", "path"),
    Column("SIZE", lambda one: times.size_text(one["size"]), "size"),
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
    Column("SIZE", lambda one: times.size_text(one["size"]), "size"),
    Column("WHY", "why"),
)


LIMIT = 50

group = Group("artifact", "Show, keep and download stored files: outputs, inputs, logs.")


@group.command("list", cls=Listing)
@click.option("--by", metavar="USER", help="Artifacts of another user (operators only).")
@click.option(
    "--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, metavar="N", help="Show at most N entries."
)
@pass_session
def list_(session: Session, by: str | None, limit: int) -> None:
    """List your artifacts, those of your newest job first, with owners and expiry."""
    found = session.api.items("artifacts", query=[("by", by)] if by else [], most=limit)
    session.out.table(found, ARTIFACTS, "no artifacts; jobs make them: `penstock job run -O /work/*.log`")
    if found.more and not session.json:
        session.out.note("there are more: give a higher --limit")


@group.command("why", cls=Command)
@arguments("ARTIFACT")
@pass_session
def why(session: Session, artifact: str) -> None:
    """Explain who keeps an artifact, until when, and what would release it sooner."""
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
@click.option("--reason", required=True, metavar="R", help="Reason, shown to others.")
@click.option("--for", "seconds", type=duration, metavar="D", help="How long: 90d (default: until you unpin it).")
@pass_session
def pin(session: Session, artifact: str, reason: str, seconds: int | None) -> None:
    """Keep an artifact even after its job's retention ends. A second pin replaces the first."""
    body: dict[str, object] = {"reason": reason} | ({} if seconds is None else {"for": seconds})
    answer = session.api.put("artifacts", artifact, "pin", body=body)
    until = answer.get("until") or "you unpin it"
    session.out.done(
        f"artifact {artifact} is kept until {until}; `penstock artifact unpin {artifact}` removes the pin", answer
    )


@group.command("unpin", cls=Command)
@arguments("ARTIFACT")
@click.option("--by", metavar="USER", help="Remove the pin of this user (operators only).")
@pass_session
def unpin(session: Session, artifact: str, by: str | None) -> None:
    """Remove your pin. If nothing else keeps the artifact, the next sweep deletes it."""
    answer = session.api.delete("artifacts", artifact, "pin", **({"by": by} if by else {}))
    session.out.done(f"artifact {artifact} is no longer pinned by {by or 'you'}", answer)


@group.command("copy", cls=Command)
@arguments("ARTIFACT")
@click.argument("dest", required=False, metavar="[DEST]")
@pass_session
def copy(session: Session, artifact: str, dest: str | None) -> None:
    """Download an artifact to DEST, a file or a folder (default: here), or - for stdout. The checksum is verified."""
    from penstock.cli.transfer import fetching

    found = session.api.get("artifacts", artifact)
    fetching(session, found, dest, lambda: str(session.api.act("artifacts", artifact, "sign")["url"]))


@group.command("sign", cls=Command)
@arguments("ARTIFACT")
@click.option("--expires-in", type=duration, metavar="D", help="Lifetime of the URL: 30m (at most 1h).")
@pass_session
def sign(session: Session, artifact: str, expires_in: int | None) -> None:
    """Print a temporary URL. Anyone who has it can download the artifact."""
    body = {} if expires_in is None else {"expires_in": expires_in}
    answer = session.api.act("artifacts", artifact, "sign", body=body)
    session.out.done(str(answer["url"]), answer)


@group.command("sweep", cls=Command, epilog="Example: penstock artifact sweep --dry-run --within 7d")
@click.option(
    "--dry-run", is_flag=True, required=True, help="Required: deletion itself happens every minute, by the service."
)
@click.option(
    "--within", type=duration, default="0s", metavar="D", help="Include what would be deleted within this time: 7d."
)
@pass_session
def sweep(session: Session, dry_run: bool, within: int) -> None:
    """Show which artifacts the next sweep would delete (operators only)."""
    found = session.api.get("artifacts-to-go", within=str(within))
    if session.json:
        session.out.json(found)
        return
    session.out.table(found["items"], GOING, "nothing would go")
    total = times.size_text(sum(one["size"] for one in found["items"]))
    more = "" if found["is_whole"] else ", and more than one answer holds"
    session.out.note(f"{len(found['items'])} artifacts, {total}{more}")


CACHES = (
    Column("ID", "id"),
    Column("NAME", "name"),
    Column("KEY", "key"),
    Column("SCOPE", "scope"),
    Column("TARGET", "target"),
    Column("SIZE", lambda one: times.size_text(one["size"]), "size"),
    Column("USED", moment("used")),
    Column("UNTIL", moment("until")),
)

cache = Group("cache", "Show and delete cache entries that jobs saved for later jobs.")


@cache.command("list", cls=Listing)
@click.option("--owner", metavar="OWNER", help="Entries of this repository or user (default: yours).")
@click.option(
    "--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, metavar="N", help="Show at most N entries."
)
@pass_session
def list_caches(session: Session, owner: str | None, limit: int) -> None:
    """List your cache entries, newest first, with scope, last use and expiry."""
    query = [("owner", owner)] if owner else []
    found = session.api.items("caches", query=query, most=limit)
    session.out.table(found, CACHES, "no caches; jobs make them: `bmat cache save NAME PATH`, or [cache.NAME]")
    if not session.json:
        if found.more:
            session.out.note("there are more: give a higher --limit")
        page = session.api.get("caches", limit="1", **dict(query))
        session.out.note(f"together {times.size_text(page['bytes'])} of {times.size_text(page['quota'])}")


@cache.command("show", cls=Command)
@arguments("CACHE")
@pass_session
def show(session: Session, cache: str) -> None:
    """Show one cache entry by its id."""
    found = session.api.get("caches", cache)
    if session.json:
        session.out.json(found)
    else:
        session.out.details(found.items())


@cache.command("delete", cls=Command, epilog="Example: penstock cache delete 01KDVDNA02G83EFRTNJJN6PQ8A")
@arguments("CACHE")
@pass_session
def delete(session: Session, cache: str) -> None:
    """Delete one cache entry. The next job with its key saves a new one. Running downloads continue."""
    answer = session.api.delete("caches", cache)
    session.out.done(f"the entry of {answer['name']} with the key {answer['key']!r} is deleted", answer)
