"""penstock worker and penstock resource: the same commands for both kinds of unit."""

from __future__ import annotations

import click

from penstock.cli.framework import Command, Group, arguments
from penstock.cli.output import Column, Moment, moment
from penstock.cli.screen import open_screen
from penstock.cli.session import Session, pass_session
from penstock.cli.values import duration

COMMON = (
    Column("STATE", "state"),
    Column("JOB", "job"),
    Column("SINCE", moment("since")),
    Column("DUE", moment("due")),
    Column("REASON", "reason"),
)
WORKERS = (Column("ID", "id"), Column("TARGET", "target"), Column("FACTORY", "factory"), *COMMON)
RESOURCES = (Column("ID", "id"), Column("TYPE", "type"), Column("WELL", "well"), Column("SLOT", "slot"), *COMMON)
MOMENTS = ("since", "due", "time")


def _group(noun: str, columns: tuple[Column, ...], help: str) -> Group:
    """The commands for one kind of unit."""
    group = Group(noun, help)
    path = f"{noun}s"

    @group.command("list", cls=Command, help=f"List the {path} that there are.")
    @pass_session
    def list_(session: Session) -> None:
        session.out.table(session.api.items(path), columns, f"no {path} at the moment")

    @group.command("show", cls=Command, help=f"Show a {noun}.")
    @arguments("ID")
    @pass_session
    def show(session: Session, id: str) -> None:
        found = session.api.get(path, id)
        if session.json:
            session.out.json(found)
            return
        session.out.details(
            (name, Moment(value) if name in MOMENTS and value else value) for name, value in found.items()
        )

    @group.command("hold", cls=Command, help=f"Keep a {noun} as it is, for looking at it.")
    @arguments("ID")
    @click.option("--reason", required=True, metavar="R", help="Why, for others to read.")
    @click.option("--for", "seconds", type=duration, required=True, metavar="D", help="For how long: 2h.")
    @pass_session
    def hold(session: Session, id: str, reason: str, seconds: int) -> None:
        answer = session.api.act(path, id, "hold", body={"reason": reason, "for": seconds})
        session.out.done(f"{noun} {id} is held", answer)

    for verb, said, what in (
        ("release", "is no longer held", f"End the hold of a {noun}."),
        ("drain", "takes no more jobs", f"Let a {noun} finish what it does, then take it away."),
        ("recycle", "is being recycled", f"Take a {noun} away now and make it anew."),
    ):
        _act(group, noun, verb, said, what)
    _tail(group, noun)
    return group


def _act(group: Group, noun: str, verb: str, said: str, help: str) -> None:
    @group.command(verb, cls=Command, help=help)
    @arguments("ID")
    @pass_session
    def act(session: Session, id: str) -> None:
        session.out.done(f"{noun} {id} {said}", session.api.act(f"{noun}s", id, verb))


def _tail(group: Group, noun: str) -> None:
    @group.command("tail", cls=Command, help=f"Show the log of a {noun}.")
    @arguments("ID")
    @click.option("--after", type=click.IntRange(0), default=0, metavar="N", help="Only events after number N.")
    @pass_session
    def tail(session: Session, id: str, after: int) -> None:
        with open_screen(session.out) as screen:
            while True:
                page = session.api.get(f"{noun}s", id, "events", after=str(after))
                for event in page["items"]:
                    screen.event(event)
                if not page["items"]:
                    return
                after = int(page["next"])


worker = _group("worker", WORKERS, "The machines that run jobs.")
resource = _group("resource", RESOURCES, "What wells made for jobs.")
