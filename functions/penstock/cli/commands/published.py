"""penstock published list, show, get, unpublish, access; penstock job publish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from penstock.cli import times
from penstock.cli.command import Command, Group, Listing, Session, arguments, pass_session
from penstock.cli.errors import Refused
from penstock.cli.output import Column, Moment, digest_text, moment

PUBLISHED = (
    Column("FILE", lambda one: full(one)),
    Column("SIZE", lambda one: times.size_text(one["size"]), "size"),
    Column("SHA256", lambda one: digest_text(one)[:12]),
    Column("PUBLISHED", moment("time")),
    Column("JOB", "job"),
)
ACCESS = (
    Column("SERIES", lambda one: "* (all others)" if one["series"] == "*" else one["series"]),
    Column("ACCESS", "access"),
    Column("PRIVILEGE", "privilege"),
)
LIMIT = 50

group = Group("published", "Find and download published files; set who may read them.")


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
@click.option("--series", required=True, metavar="S", help="Series that the file belongs to: nightly.")
@click.option("--version", required=True, metavar="V", help="Version within the series: a commit, a release.")
@click.option("--name", required=True, metavar="N", help="File name within the version: image.tar.")
@pass_session
def publish(session: Session, job: str, output: str, series: str, version: str, name: str) -> None:
    """Publish an output of a settled job under a permanent name. OUTPUT is its path or its id.

    Publishing the same content again changes nothing; other content under the same name is refused.
    """
    found = session.api.output(job, output)
    body = {"series": series, "version": version, "name": name}
    answer = session.api.act("jobs", job, "outputs", found["id"], "publish", body=body)
    before = "" if answer["job"] == job else f"; job {answer['job']} published the same bytes before"
    session.out.done(f"{full(answer)} is published{before}", answer)
    if not session.json:
        session.out.note(f"`penstock published get {full(answer)}` fetches it")


@group.command("list", cls=Listing)
@click.option("--owner", metavar="USER", help="Files of this user or repository: oxide:hubris.")
@click.option("--series", metavar="S", help="Only files of this series.")
@click.option("--version", metavar="V", help="Only files of this version.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, metavar="N", help="Show at most N entries."
)
@pass_session
def list_(session: Session, owner: str | None, series: str | None, version: str | None, limit: int) -> None:
    """List the published files that you may read."""
    given = {"owner": owner, "series": series, "version": version}
    found = session.api.items("published", query=[(key, text) for key, text in given.items() if text], most=limit)
    session.out.table(found, PUBLISHED, "nothing is published; `penstock job publish`, or [[publish]] in a job file")
    if found.more and not session.json:
        session.out.note("there are more: give a higher --limit")


@group.command("show", cls=Command)
@arguments("FILE")
@pass_session
def show(session: Session, file: str) -> None:
    """Show a published file, OWNER/SERIES/VERSION/NAME, also if it was withdrawn."""
    found = session.api.get("published", *parts(file))
    if session.json:
        session.out.json(found)
        return
    facts = [(key, found[key]) for key in ("sha256", "composite", "url", "path", "job", "by", "withdrawn_by")]
    size = times.size_text(found["size"])
    when = [(key, Moment(found[key])) for key in ("time", "withdrawn") if found[key]]
    session.out.details([("file", full(found)), ("size", size), *facts, *when])


@group.command("get", cls=Command)
@arguments("FILE")
@click.argument("dest", required=False, metavar="[DEST]")
@pass_session
def get(session: Session, file: str, dest: str | None) -> None:
    """Download a published file to DEST, a file or a folder (default: here), or - for stdout.

    The checksum is verified.
    """
    from penstock.cli.transfer import fetching

    path = parts(file)
    found = session.api.get("published", *path)
    what = {**found, "path": f"/{found['name']}"}
    fetching(session, what, dest, lambda: str(session.api.act("published", *path, "sign")["url"]))


@group.command("unpublish", cls=Command)
@arguments("FILE")
@pass_session
def unpublish(session: Session, file: str) -> None:
    """Withdraw a published file. No other content can take its name; its bytes expire unless something keeps them."""
    answer = session.api.delete("published", *parts(file))
    session.out.done(f"{full(answer)} is withdrawn", answer)


@group.command("access", cls=Listing, epilog="Example: penstock published access nightly --private")
@click.argument("series", required=False, metavar="[SERIES]")
@click.option("--owner", metavar="USER", help="Owner of the series, if not you: oxide:hubris.")
@click.option("--public", "access", flag_value="public", help="Anyone may read it, without a token.")
@click.option("--private", "access", flag_value="private", help="Only those who may see the owner's jobs may read it.")
@click.option("--privilege", metavar="P", help="Like --private, and also users with this privilege.")
@click.option("--as-others", "access", flag_value="others", help="Remove the setting of this series.")
@pass_session
def access(session: Session, series: str | None, owner: str | None, access: str | None, privilege: str | None) -> None:
    """Show or set who may read a series. SERIES '*' sets the default for your series (otherwise public)."""
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
