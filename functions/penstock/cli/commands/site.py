"""penstock target, factory, well, resource-type, canary: the site and what it defines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from penstock.cli.command import Command, Entry, Group, Listing, Session, arguments, pass_session
from penstock.cli.output import Column, Fit, moment
from penstock.cli.references import Name

NAMED = Column("NAME", "name", fit=Fit.ID)


NO_SITE = "none; `penstock config apply FILE` sets up a site"


def _settings(*names: str) -> Iterator[Column]:
    """A column for each setting; empty where the setting is absent."""
    for name in names:
        yield Column(name.upper(), partial(_setting, name))


def _setting(name: str, entry: Mapping[str, Any]) -> object:
    return entry["settings"].get(name) or None


def _group(
    noun: str, plural: str, columns: tuple[Column, ...], help: str, entries: Mapping[str, Entry] | None = None
) -> Group:
    """list and show for one kind of thing."""
    group = Group(noun, help, entries)

    @group.command("list", cls=Listing, help=f"List the {plural}.".replace("-", " "))
    @pass_session
    def list_(session: Session) -> None:
        session.out.table(session.api.items(plural), columns, NO_SITE)

    @group.command("show", cls=Command, help=f"Show one {noun}.".replace("-", " "))
    @arguments("NAME", NAME=Name(noun, plural))
    @pass_session
    def show(session: Session, name: str) -> None:
        found = session.api.get(plural, name)
        if session.json:
            session.out.json(found)
        else:
            told = {key: value for key, value in found["settings"].items() if key != "things"}
            session.out.details([("name", found["name"]), *told.items()])
            _health(session, found)
            _things(session, found)
            _options(session, found)

    return group


def _health(session: Session, found: Mapping[str, Any]) -> None:
    """The health of a factory or well: last comparison, shortages, failures. Nothing for other kinds."""
    compared = found.get("compared") or {}
    keys = (("compared", moment("at")), ("not listed", "failures"), ("because", "why"))
    stop = found.get("stop")
    if stop:
        session.out.line(f"stopped by {stop['by']} at {stop['at']}: {stop['reason']}", "yellow")
    shown = [(name, read(compared) if callable(read) else compared.get(read) or None) for name, read in keys]
    session.out.details([*shown, ("strays", compared.get("strays")), ("missing", compared.get("missing"))])
    for title, key, columns in TABLES:
        if found.get(key):
            session.out.line()
            session.out.line(f"{title}:")
            session.out.rows(found[key], columns, indent=2)


THINGS = (Column("THING", "name"), Column("LABELS", "labels"))


def _things(session: Session, found: Mapping[str, Any]) -> None:
    """The things of a resource type among which jobs choose, with their labels."""
    things = found["settings"].get("things") or {}
    if things:
        session.out.line()
        session.out.line("things:")
        session.out.rows([{"name": name, **thing} for name, thing in things.items()], THINGS, indent=2)


def _options(session: Session, found: Mapping[str, Any]) -> None:
    """What a job may choose of a resource."""
    if "options" not in found:
        return
    session.out.line()
    if found["options"]:
        session.out.line("options of a job:")
        session.out.rows(found["options"], OPTIONS, indent=2)
    else:
        session.out.line("options of a job: " + ("none" if found["options"] is not None else "its well does not say"))


OPTIONS = (
    Column("NAME", "name"),
    Column("KIND", "kind"),
    Column("ALLOWED", "allowed"),
    Column("DEFAULT", "default"),
    Column("MEANING", "meaning"),
)


COOLING = (
    Column("SCOPE", "scope"),
    Column("CAUSE", "cause"),
    Column("SINCE", moment("since")),
    Column("UNTIL", "until"),
    Column("TRIED", "tried"),
    Column("PROBE", "probe"),
    Column("WHY", "why"),
)


FAILURES = (
    Column("CODE", "code"),
    Column("COUNT", "count"),
    Column("LAST", moment("last")),
    Column("MESSAGE", "message"),
)


APART = (
    Column("UNIT", "unit"),
    Column("TYPE", "type"),
    Column("SLOT", "slot"),
    Column("SINCE", moment("since")),
    Column("WHY", "reason"),
)


TABLES = (
    ("in quarantine", "quarantined", APART),
    ("cooling down", "cooling", COOLING),
    ("failures", "failures", FAILURES),
)

target = _group(
    "target",
    "targets",
    (NAMED, *_settings("factory", "redirect", "machines", "limit", "privilege")),
    "Show the execution environments that jobs can name.",
)


def _stops(noun: str, units: str) -> dict[str, Entry]:
    """The commands that stop a factory or well, and lift that."""
    here = f"penstock.cli.commands.stop:{noun}"
    return {
        "disable": Entry(f"{here}_disable", f"Grant nothing new of a {noun}; what runs goes on."),
        "drain": Entry(f"{here}_drain", f"Disable a {noun}, and destroy its {units} once no job has them."),
        "enable": Entry(f"{here}_enable", f"Grant of a {noun} again."),
    }


TEST = "Test a factory: make one worker, run a job on it, destroy it, and verify that it is gone."
factory = _group(
    "factory",
    "factories",
    (NAMED, *_settings("driver")),
    "Show, test and stop the factories, which make workers.",
    {"test": Entry("penstock.cli.commands.factory_test:test", TEST), **_stops("factory", "workers")},
)


well = _group(
    "well",
    "wells",
    (NAMED, *_settings("driver")),
    "Show and stop the wells, which make resources.",
    _stops("well", "resources"),
)


resource_type = _group(
    "resource-type",
    "resource-types",
    (NAMED, *_settings("well", "limit", "names", "privilege")),
    "Show the types of resources that jobs can request.",
)


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

canary = Group(
    "canary", "Show and send canaries: jobs that regularly test a target or a resource type (operators only)."
)


@canary.command("list", cls=Listing)
@pass_session
def list_canaries(session: Session) -> None:
    """List the canaries, with the last result and the time of the next one."""
    session.out.table(session.api.items("canaries"), CANARIES, "no canaries; `canary = {...}` of a target makes one")


@canary.command("send", cls=Command, epilog="Example: penstock canary send target/ubuntu-24.04")
@arguments("POOL")
@pass_session
def send(session: Session, pool: str) -> None:
    """Send a canary now, for example after a repair."""
    sort, _, name = pool.partition("/")
    answer = session.api.act("canaries", sort, name, "send")
    said = f"job {answer['job']}" if answer["is_out"] else f"it was refused: {answer['reason']}"
    session.out.done(f"the canary of {pool} is sent: {said}", answer)
