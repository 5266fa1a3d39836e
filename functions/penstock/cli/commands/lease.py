"""penstock lease: resources without a job."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

from penstock import leasing
from penstock.agent import bmat
from penstock.cli.command import Command, Group, Listing, Session, arguments, duration, mapping, pair, pass_session
from penstock.cli.errors import Interrupted, Refused
from penstock.cli.output import Column, moment
from penstock.cli.references import RESOURCE_TYPE, ListedId
from penstock.leasing import Lease, LeaseEnded

LEASE = ListedId("lease", "leases", "lease list")

GRACE = 10
"""How many seconds a command has to end by itself once its lease is lost."""

LEASES = (
    Column("LEASE", "id"),
    Column("NAME", "name"),
    Column("STATE", lambda lease: lease["outcome"] or lease["state"]),
    Column("HAS", lambda lease: _has(lease)),
    Column("ASKED", moment("submitted")),
    Column("UNTIL", "until"),
    Column("OWNER", "owner"),
)

group = Group("lease", "Have resources without a job: acquire, renew and release them.")


def _has(lease: Mapping[str, Any]) -> str:
    return ", ".join(f"{each['name']}={each['slot'] or each['state']}" for each in lease["resources"])


def asked(command: Any) -> Any:
    """The options that say what is leased, and how long it may take to get it."""
    for decorate in (
        click.option("--owner", metavar="NAME", help="Repository that owns the lease, if that is not you."),
        click.option("--priority", type=int, metavar="N", help="From -100 to 100. Above 0 needs a privilege."),
        click.option("--tag", "tags", type=pair, metavar="NAME=VALUE", multiple=True, help="A tag; repeatable."),
        click.option("--name", metavar="NAME", help="Name of the lease, for those who wait."),
        click.option("--max-wait", type=duration, metavar="D", help="Give up waiting after this time."),
        click.option(
            "--option", "options", type=pair, metavar="KEY=VALUE", multiple=True,
            help="An option for the resource, which its well checks; repeatable. With one TYPE only.",
        ),
        click.option(
            "--labels", metavar="EXPRESSION", help='Which things it may be: "board == gimlet". With one TYPE only.'
        ),
        click.option("--thing", metavar="NAME", help="Which thing it is to be. With one TYPE only."),
        click.option("--exclusive", is_flag=True, help="Have all leases of a thing. With one TYPE only."),
        click.option(
            "--placement", type=click.Choice(["packed", "least-loaded"]),
            help="Of things that serve several leases: the one with the fewest left, or the most. With one TYPE only.",
        ),
        click.option("--count", type=click.IntRange(1), default=1, metavar="N", help="How many. With one TYPE only."),
    ):  # fmt: skip
        command = decorate(command)
    return command


@group.command(cls=Command)
@click.argument("types", nargs=-1, required=True, type=RESOURCE_TYPE, metavar="TYPE...")
@click.option("--for", "length", type=duration, metavar="D", help="How long to have them. Renew it in time.")
@click.option("--wait", is_flag=True, help="Wait until all are there.")
@asked
@pass_session
def acquire(session: Session, /, types: tuple[str, ...], length: int | None, wait: bool, **given: Any) -> None:
    """Acquire resources of these types, and print the id of the lease.

    Without --wait the lease may still wait in its queues: `penstock lease show` says why. It ends by itself after
    --for; `penstock lease release` gives back what it has before. Ctrl-C while it waits gives up.
    """
    found = leasing.acquire(session.api, _body(types, length, **given))
    if wait:
        with interruptible(), _released_if_interrupted(found):
            found.wait(session.out.notice)
    view = found.view()
    if session.json:
        session.out.json(view)
        return
    session.out.line(found.id)
    session.out.note(_told(view))


def _told(view: Mapping[str, Any]) -> str:
    if view["state"] == "held":
        return f"held until {view['until']}: {_has(view)}"
    return f"{view['why'] or 'it waits'}; `penstock lease show {view['id']}` says when it is held"


@contextmanager
def _released_if_interrupted(found: Lease) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        found.release()
        raise Interrupted(f"lease {found.id} is released") from None


def _body(types: Sequence[str], length: int | None, **given: Any) -> dict[str, Any]:
    """The request. Raises UsageError for what goes with one type only."""
    count, options = given["count"], mapping(given["options"], "--option")
    choice = {key: given[key] for key in ("labels", "thing", "exclusive", "placement") if given[key]}
    resources: Any = list(types)
    if count > 1 or options or choice:
        if len(types) > 1:
            text = "--count, --option, --labels, --thing, --exclusive and --placement are for one TYPE"
            raise click.UsageError(f"{text}: lease the others by themselves")
        each = {"type": types[0], "options": {key: _value(text) for key, text in options.items()}, **choice}
        names = [types[0]] if count == 1 else [f"{types[0]}-{number}" for number in range(1, count + 1)]
        resources = {name: each for name in names}
    said = {"for": length, "max_wait": given["max_wait"], "name": given["name"], "priority": given["priority"]}
    said |= {"tags": mapping(given["tags"], "--tag"), "owner": given["owner"]}
    return {"resources": resources, **{key: value for key, value in said.items() if value not in (None, {})}}


def _value(text: str) -> Any:
    """An option's value: as JSON if it is some, or else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@group.command(cls=Command)
@arguments("LEASE", LEASE=LEASE)
@click.option("--for", "length", type=duration, required=True, metavar="D", help="How long from now to have it.")
@pass_session
def renew(session: Session, lease: str, length: int) -> None:
    """Have a lease last longer. It never ends earlier for it, nor later than the site allows a job to run."""
    view = Lease(session.api, lease).renew(length)
    session.out.done(f"lease {lease} is held until {view['until']}", view)


@group.command(cls=Command)
@click.argument("leases", nargs=-1, required=True, type=LEASE, metavar="LEASE...")
@pass_session
def release(session: Session, leases: tuple[str, ...]) -> None:
    """Give back what leases have. One that still waits stops waiting. Safe to repeat."""
    for lease in leases:
        view = Lease(session.api, lease).release()
        session.out.done(f"lease {lease} is released", view)


@group.command("list", cls=Listing)
@click.option("--ended", is_flag=True, help="List those that have ended too.")
@click.option("--owner", metavar="NAME", help="Leases of this owner. By default your own.")
@click.option("--all", "everybody", is_flag=True, help="Leases of every owner (operators only).")
@pass_session
def list_leases(session: Session, ended: bool, owner: str | None, everybody: bool) -> None:
    """List leases that wait or are held, newest first."""
    query = [("ended", "true")] * ended + [("all", "true")] * everybody + ([("owner", owner)] if owner else [])
    session.out.table(session.api.items("leases", query=query), LEASES, "there are no leases")


@group.command(cls=Command)
@arguments("LEASE", LEASE=LEASE)
@click.option("--env", is_flag=True, help="Print what it has as export lines for a shell, with credentials.")
@pass_session
def show(session: Session, lease: str, env: bool) -> None:
    """Show a lease: what it has, until when, or why it waits.

    With --env, prints what is to be known of its resources, such as addresses and credentials, to be evaluated by a
    shell: eval "$(penstock lease show LEASE --env)". The variables are called as `bmat resource env` calls them.
    """
    found = Lease(session.api, lease)
    if env:
        for name, value in variables(found.resources).items():
            session.out.data(f"export {name}={shlex.quote(value)}")
        return
    view = found.view()
    if session.json:
        session.out.json(view)
        return
    session.out.details(
        [
            ("lease", view["id"]), ("name", view["name"]), ("owner", view["owner"]),
            ("state", view["outcome"] or view["state"]), ("why", view["why"] or view["reason"]),
            ("asked", moment("submitted")(view)), ("since", moment("since")(view)), ("until", view["until"]),
            ("ended", moment("ended")(view)), ("priority", view["priority"]), ("tags", view["tags"]),
        ]
    )  # fmt: skip
    session.out.rows(view["resources"], RESOURCES, indent=2)


RESOURCES = (
    Column("RESOURCE", "name"),
    Column("TYPE", "type"),
    Column("STATE", "state"),
    Column("SLOT", "slot"),
    Column("FENCE", "fence"),
)


def variables(resources: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """All that is to be known of resources, as environment variables. Raises Refused for what cannot be one."""
    found: dict[str, str] = {}
    for name, metadata in resources.items():
        try:
            found |= bmat.variables(name, metadata, "penstock.lease() in Python has it as it is")
        except bmat.Absent as absent:
            raise Refused(str(absent)) from None
    return found


class Running(Command):
    """A command with another command behind `--`, which gets all words there as they are."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the other command from the line. Raises UsageError if there is none."""
        if "--" not in args[:-1]:
            if not set(args) & {"-h", "--help"}:
                raise click.UsageError("say what to run behind `--`: penstock lease run bench -- make flash", ctx)
            return super().parse_args(ctx, args)
        at = args.index("--")
        ctx.meta[COMMAND] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


COMMAND = "penstock.lease.command"
"""Where the context has the other command."""


@group.command(cls=Running, options_metavar="[OPTIONS]")
@click.option(
    "--for",
    "length",
    type=duration,
    default=leasing.LENGTH,
    show_default=True,
    metavar="D",
    help="How long it is kept if this program dies. While it runs, the lease is renewed.",
)
@asked
@click.argument("types", nargs=-1, required=True, type=RESOURCE_TYPE, metavar="TYPE... -- COMMAND...")
@pass_session
def run(session: Session, /, types: tuple[str, ...], length: int, **given: Any) -> int:
    """Run a command while you have resources of these types; release them whatever ends it.

    The command gets what is to be known of each resource as environment variables, called as `bmat resource env` calls
    them, and PENSTOCK_LEASE. Exits with its exit code; with 4 if the lease was lost, or could not be renewed in time,
    after the command was told to end.

    \b
    Example:
      penstock lease run licence -- env
    """  # fmt: skip
    command = click.get_current_context().meta[COMMAND]
    with interruptible():
        found = leasing.acquire(session.api, _body(types, length, **given))
        with _released_if_interrupted(found), leasing.held(found, length, session.out.notice):
            return Child(found, command).run()


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What is passed on to the command: whoever ends this program ends that."""


class Child:
    """The command that runs while the lease is held."""

    def __init__(self, lease: Lease, command: Sequence[str]) -> None:
        self._lease, self._command = lease, command

    def run(self) -> int:
        """Its exit code; 128 and more for a signal, as shells have it. Raises LeaseEnded or Refused."""
        env = {**os.environ, **variables(self._lease.resources), "PENSTOCK_LEASE": self._lease.id}
        with passing_on() as started:
            try:
                process = subprocess.Popen(list(self._command), env=env)
            except OSError as error:
                raise Refused(f"cannot run `{self._command[0]}`: {error.strerror or error}") from error
            started(process)
            return self._wait(process)

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        while True:
            try:
                code = process.wait(0.2)
            except subprocess.TimeoutExpired:
                if not self._lease.lost.is_set():
                    continue
                end(process)
                raise LeaseEnded(f"the lease was lost, and the command told to end: {self._lease.why_lost}") from None
            return code if code >= 0 else 128 - code


def end(process: subprocess.Popen[bytes]) -> None:
    """Have a process end, after GRACE seconds at the latest."""
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def interruptible() -> Iterator[None]:
    """Whatever asks this program to end is as Ctrl-C: what is held is released."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with handled(interrupt):
        yield


@contextmanager
def handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle SIGNALS so while a block runs."""
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)


@contextmanager
def passing_on() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Pass signals on to a process that is about to start, and go on: its end is the end of this program.

    What comes before it has started is passed on then. Otherwise this program would end, and the process go on with
    what it has no more.
    """
    running: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        del frame
        if not running:
            early.append(number)
        elif running[0].poll() is None:
            running[0].send_signal(number)

    def started(process: subprocess.Popen[bytes]) -> None:
        running.append(process)
        for number in early:
            process.send_signal(number)

    with handled(pass_on):
        yield started
