"""penstock worker and penstock resource: the same commands for both kinds of unit."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import click

from penstock.cli.command import Command, Group, Listing, Session, arguments, duration, pass_session
from penstock.cli.errors import Broken, Interrupted
from penstock.cli.output import NAMED_JOB, Column, Moment, moment
from penstock.cli.references import RESOURCE, WORKER
from penstock.cli.terminal import clean


def _held(unit: Mapping[str, Any]) -> str | None:
    """The quarantine, the hold or the drain of a unit, in words: by whom, until when, why."""
    hold, drain, apart = unit.get("hold"), unit.get("drain"), unit.get("quarantine")
    if apart:
        return f"in quarantine since {apart['since']}: {apart['reason']}"
    if hold:
        return f"by {hold['by']} until {hold['until']}: {hold['reason']}"
    return f"{'recycled' if drain['at_once'] else 'drained'} by {drain['by']}" if drain else None


COMMON = (
    Column("STATE", "state"),
    *NAMED_JOB,
    Column("SINCE", moment("since")),
    Column("HELD", _held),
    Column("NEXT", "next_step"),
)
WORKERS = (Column("ID", "id"), Column("TARGET", "target"), Column("FACTORY", "factory"), *COMMON)
RESOURCES = (Column("ID", "id"), Column("TYPE", "type"), Column("WELL", "well"), Column("SLOT", "slot"), *COMMON)
UNITS = {"worker": WORKER, "resource": RESOURCE}
MOMENTS = ("since", "due", "until")
PROOF = "If you removed a quarantined unit by hand: how you verified it. Frees its slot."
CONSOLE, CONSOLE_WITHIN = "console output, asked for by ", 30.0
"""How entries with console output begin, and for how many seconds a new one is waited for. If one is only some seconds
old, no other is written, and that one is shown.
"""
EACH = 2.0
"""Seconds between two looks at a log that is followed."""


def _group(noun: str, columns: tuple[Column, ...], help: str) -> Group:
    """The commands for one kind of unit."""
    group = Group(noun, help)
    path = f"{noun}s"

    @group.command("list", cls=Listing, help=f"List the {path}.")
    @pass_session
    def list_(session: Session) -> None:
        session.out.table(session.api.items(path), columns, f"no {path} at the moment")

    @group.command("show", cls=Command, help=f"Show a {noun}, and its next step.")
    @arguments("ID", ID=UNITS[noun])
    @pass_session
    def show(session: Session, id: str) -> None:
        found = session.api.get(path, id)
        if session.json:
            session.out.json(found)
        else:
            session.out.details((name, _shown(name, value)) for name, value in found.items())

    _hold(group, noun)
    for verb, said, what in (
        ("drain", "is lent to no other job", f"Destroy a {noun} after its current job."),
        ("recycle", "is being destroyed", f"Destroy a {noun} now. Its job is retried as after a loss."),
    ):
        _remove(group, noun, verb, said, what)
    _tail(group, noun)
    if noun == "worker":
        _console(group)
    return group


def _shown(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: Moment(part) if key in MOMENTS else part for key, part in value.items()}
    return Moment(value) if name in MOMENTS and value else value


def _hold(group: Group, noun: str) -> None:
    @group.command("hold", cls=Command, help=f"Keep a {noun} for inspection, even after its job ends.")
    @arguments("ID", ID=UNITS[noun])
    @click.option("--reason", required=True, metavar="R", help="Reason, shown to others.")
    @click.option("--for", "seconds", type=duration, metavar="D", help="How long: 2h (default 8h, at most 7d).")
    @pass_session
    def hold(session: Session, id: str, reason: str, seconds: int | None) -> None:
        body = {"reason": reason} | ({} if seconds is None else {"for": seconds})
        answer = session.api.act(f"{noun}s", id, "hold", body=body)
        session.out.done(f"{noun} {id} is held until {(answer.get('hold') or {}).get('until')}", answer)

    @group.command("release", cls=Command, help=f"End the hold or the quarantine of a {noun}.")
    @arguments("ID", ID=UNITS[noun])
    @click.option("--proof", default="", metavar="TEXT", help=PROOF)
    @pass_session
    def release(session: Session, id: str, proof: str) -> None:
        answer = session.api.act(f"{noun}s", id, "release", body={"proof": proof} if proof else None)
        said = "is gone, and its slot given back" if proof else "is no longer held"
        session.out.done(f"{noun} {id} {said}", answer)


def _remove(group: Group, noun: str, verb: str, said: str, help: str) -> None:
    @group.command(verb, cls=Command, help=help)
    @arguments("ID", ID=UNITS[noun])
    @click.option("--reason", default="", metavar="R", help="Reason, shown to others.")
    @pass_session
    def act(session: Session, id: str, reason: str) -> None:
        session.out.done(f"{noun} {id} {said}", session.api.act(f"{noun}s", id, verb, body={"reason": reason}))


def _tail(group: Group, noun: str) -> None:
    @group.command("tail", cls=Command, help=f"Show the history of a {noun}: each decision, by whom and why.")
    @arguments("ID", ID=UNITS[noun])
    @click.option("-f", "--follow", is_flag=True, help=f"Continue until the {noun} is gone.")
    @click.option("--after", type=click.IntRange(0), default=0, metavar="N", help="Skip the events up to number N.")
    @pass_session
    def tail(session: Session, id: str, follow: bool, after: int) -> None:
        try:
            _follow(session, (f"{noun}s", id, "events"), after, once=not follow)
        except KeyboardInterrupt:
            raise Interrupted(f"stopped watching {noun} {id}") from None


def _follow(session: Session, path: tuple[str, ...], after: int, *, once: bool) -> None:
    """Show a unit's events: the existing ones, or all until the unit is gone."""
    while True:
        page = session.api.get(*path, after=str(after))
        for event in page["items"]:
            session.out.line(json.dumps(event, ensure_ascii=False) if session.json else _entry(event))
        after = int(page["next"])
        if not page["items"]:
            if once or page["state"] == "gone":
                return
            time.sleep(EACH)


def _entry(event: Mapping[str, Any]) -> str:
    """An entry on a terminal; the further lines of one that has several, such as console output, are indented."""
    first, *more = str(event["payload"]).splitlines() or [""]
    return "\n".join([clean(f"{event['time']}  {first}"), *(f"    {clean(line)}" for line in more)])


def _console(group: Group) -> None:
    @group.command("console", cls=Command)
    @arguments("ID", ID=WORKER)
    @pass_session
    def console(session: Session, id: str) -> None:
        """Show the end of the console output of a worker's machine, as far as its factory has it.

        The factory writes it into the history of the worker, where `worker tail` shows it too.
        """
        known = [event["seq"] for event in _read_consoles(session, id)]
        session.api.act("workers", id, "console")
        until = time.monotonic() + CONSOLE_WITHIN
        while not (found := _read_consoles(session, id)) or found[-1]["seq"] in known:
            if time.monotonic() > until:
                break
            time.sleep(EACH)
        if not found:
            raise Broken(
                f"the factory of worker {id} wrote nothing", "ask again; `penstock worker tail` shows it later"
            )
        if found[-1]["seq"] in known:
            session.out.note(f"nothing newer came within {CONSOLE_WITHIN:.0f} s; this is older", "yellow")
        session.out.done(_entry(found[-1]), found[-1])


def _read_consoles(session: Session, id: str) -> list[dict[str, Any]]:
    """The entries of a worker that are console output. Only the newest has all of it."""
    page = session.api.get("workers", id, "events", after="0", limit="1000")
    return [event for event in page["items"] if event["payload"].startswith(CONSOLE)]


worker = _group("worker", WORKERS, "Show, hold, drain and destroy the machines that run jobs (operators only).")
resource = _group("resource", RESOURCES, "Show, hold, drain and destroy the resources that jobs use (operators only).")
