"""penstock cache list, show, delete."""

from __future__ import annotations

import click

from penstock.cli import times
from penstock.cli.commands.artifact import LIMIT
from penstock.cli.framework import Command, Group, arguments
from penstock.cli.output import Column, moment
from penstock.cli.session import Session, pass_session

CACHES = (
    Column("ID", "id"),
    Column("NAME", "name"),
    Column("KEY", "key"),
    Column("SCOPE", "scope"),
    Column("TARGET", "target"),
    Column("SIZE", lambda one: times.size_text(one["size"])),
    Column("USED", moment("used")),
    Column("UNTIL", moment("until")),
)

group = Group("cache", "What jobs left for later jobs: keys, scopes, sizes, and until when.")


@group.command("list", cls=Command)
@click.option("--owner", metavar="OWNER", help="Those of a repository, or of another user.")
@click.option("--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, help="At most so many.")
@pass_session
def list_(session: Session, owner: str | None, limit: int) -> None:
    """List what your caches have, newest first: whose jobs restore it, when that was last, and when it will go."""
    query = [("owner", owner)] if owner else []
    found = session.api.items("caches", query=query, most=limit)
    session.out.table(found, CACHES, "no caches; jobs make them: `bmat cache save NAME PATH`, or [cache.NAME]")
    if not session.json:
        if found.more:
            session.out.note("there are more: give a higher --limit")
        page = session.api.get("caches", limit="1", **dict(query))
        session.out.note(f"together {times.size_text(page['bytes'])} of {times.size_text(page['quota'])}")


@group.command("show", cls=Command)
@arguments("CACHE")
@pass_session
def show(session: Session, cache: str) -> None:
    """Show one entry of a cache, by its id."""
    found = session.api.get("caches", cache)
    if session.json:
        session.out.json(found)
    else:
        session.out.details(found.items())


@group.command("delete", cls=Command, epilog="Example: penstock cache delete 01KDVDNA02G83EFRTNJJN6PQ8A")
@arguments("CACHE")
@pass_session
def delete(session: Session, cache: str) -> None:
    """Delete one entry of a cache. The next job that saves its key has it. Who fetches it just now may go on."""
    answer = session.api.delete("caches", cache)
    session.out.done(f"{answer['name']} has no entry any more with the key {answer['key']!r}", answer)
