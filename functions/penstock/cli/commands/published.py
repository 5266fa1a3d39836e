"""penstock published list, show, get, unpublish, access; penstock job publish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from penstock.cli import times
from penstock.cli.errors import Refused
from penstock.cli.fetching import fetching
from penstock.cli.framework import Command, Group, arguments
from penstock.cli.output import Column, Moment, moment
from penstock.cli.session import Session, pass_session

PUBLISHED = (
    Column("FILE", lambda one: full(one)),
    Column("SIZE", lambda one: times.size_text(one["size"])),
    Column("SHA256", lambda one: str(one["sha256"])[:12]),
    Column("PUBLISHED", moment("time")),
    Column("JOB", "job"),
)
ACCESS = (
    Column("SERIES", lambda one: "* (all others)" if one["series"] == "*" else one["series"]),
    Column("ACCESS", "access"),
    Column("PRIVILEGE", "privilege"),
)
LIMIT = 50

group = Group("published", "Files that were published: names for good, and who reads them.")


def full(one: Mapping[str, Any]) -> str:
    """What a published file is called."""
    return "/".join(one[part] for part in ("owner", "series", "version", "name"))


def parts(file: str) -> list[str]:
    """The four parts of OWNER/SERIES/VERSION/NAME. Raises Refused."""
    found = file.split("/")
    if len(found) != 4 or not all(found):
        raise Refused(f"`{file}` is not OWNER/SERIES/VERSION/NAME", "give it as `penstock published list` shows it")
    return found


@click.command(
    cls=Command, epilog="Example: penstock job publish ID /work/image.tar --series image --version v1 --name image.tar"
)
@arguments("JOB", "OUTPUT")
@click.option("--series", required=True, metavar="S", help="What it is one of: nightly.")
@click.option("--version", required=True, metavar="V", help="Which of these: a commit, a release.")
@click.option("--name", required=True, metavar="N", help="What it is called there: image.tar.")
@pass_session
def publish(session: Session, job: str, output: str, series: str, version: str, name: str) -> None:
    """Give an output of a settled job a name for good. OUTPUT is its path as `job outputs` shows it, or its id.

    The same bytes again are good. Other bytes under a name that was given are refused.
    """
    found = session.api.output(job, output)
    body = {"series": series, "version": version, "name": name}
    answer = session.api.act("jobs", job, "outputs", found["id"], "publish", body=body)
    before = "" if answer["job"] == job else f"; job {answer['job']} published the same bytes before"
    session.out.done(f"{full(answer)} is published{before}", answer)
    if not session.json:
        session.out.note(f"`penstock published get {full(answer)}` fetches it")


@group.command("list", cls=Command)
@click.option("--owner", metavar="USER", help="What another user, or a repository, published: oxide:hubris.")
@click.option("--series", metavar="S", help="Only of this series.")
@click.option("--version", metavar="V", help="Only this version of the series.")
@click.option("--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, help="At most so many.")
@pass_session
def list_(session: Session, owner: str | None, series: str | None, version: str | None, limit: int) -> None:
    """List what you, or somebody else, published, as far as you may read it."""
    given = {"owner": owner, "series": series, "version": version}
    found = session.api.items("published", query=[(key, text) for key, text in given.items() if text], most=limit)
    session.out.table(found, PUBLISHED, "nothing is published; `penstock job publish`, or [[publish]] in a job file")
    if found.more and not session.json:
        session.out.note("there are more: give a higher --limit")


@group.command("show", cls=Command)
@arguments("FILE")
@pass_session
def show(session: Session, file: str) -> None:
    """Show a published file: OWNER/SERIES/VERSION/NAME. What was withdrawn is shown as well, with what it was."""
    found = session.api.get("published", *parts(file))
    if session.json:
        session.out.json(found)
        return
    facts = [(key, found[key]) for key in ("sha256", "url", "path", "job", "by", "withdrawn_by")]
    size = times.size_text(found["size"])
    when = [(key, Moment(found[key])) for key in ("time", "withdrawn") if found[key]]
    session.out.details([("file", full(found)), ("size", size), *facts, *when])


@group.command("get", cls=Command)
@arguments("FILE")
@click.argument("dest", required=False, metavar="[DEST]")
@pass_session
def get(session: Session, file: str, dest: str | None) -> None:
    """Download a published file to DEST: a file or a folder (default: here). It appears whole and checked."""
    path = parts(file)
    found = session.api.get("published", *path)
    what = {**found, "path": f"/{found['name']}"}
    fetching(session, what, dest, lambda: str(session.api.act("published", *path, "sign")["url"]))


@group.command("unpublish", cls=Command)
@arguments("FILE")
@pass_session
def unpublish(session: Session, file: str) -> None:
    """Withdraw a published file. Its name never stands for other bytes; these go if nobody else keeps them."""
    answer = session.api.delete("published", *parts(file))
    session.out.done(f"{full(answer)} is withdrawn", answer)


@group.command("access", cls=Command, epilog="Example: penstock published access nightly --private")
@click.argument("series", required=False, metavar="[SERIES]")
@click.option("--owner", metavar="USER", help="Whose series it is, if not yours: oxide:hubris.")
@click.option("--public", "access", flag_value="public", help="Anybody reads it, without a token.")
@click.option("--private", "access", flag_value="private", help="Who may see the owner's jobs reads it.")
@click.option("--privilege", metavar="P", help="They read it, and who has this privilege.")
@click.option("--as-others", "access", flag_value="others", help="Say nothing of it any more.")
@pass_session
def access(session: Session, series: str | None, owner: str | None, access: str | None, privilege: str | None) -> None:
    """Say who may read a series, or show what is said. SERIES '*' is all of which nothing else is said: else public."""
    of = owner or str(session.api.get("whoami")["name"])
    if access and privilege:
        raise click.UsageError(f"--privilege and --{access} do not go together")
    if not (access or privilege):
        found = session.api.items("series", of)
        session.out.table(found, ACCESS, "nothing is said: all that is published is public")
        return
    if series is None:
        raise click.UsageError("say of which SERIES, or '*' for all others")
    body = {"series": series, "access": "privilege" if privilege else access, "privilege": privilege}
    if access == "others":
        del body["access"]
    sent = {key: text for key, text in body.items() if text}
    answer = session.api.put("series", of, body=sent)
    how = f"needs {privilege}" if privilege else f"is {access}" if access != "others" else "is as the others"
    session.out.done(f"series {series} of {of} {how}", answer)
