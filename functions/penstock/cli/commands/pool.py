"""penstock pool: capacity, who holds it and who waits, as tables or as a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from penstock.cli.command import Command, Group, Listing, Session, arguments, pass_session, since
from penstock.cli.output import NAMED_JOB, Column, Moment, Output, moment
from penstock.cli.references import POOL

POOLS = (
    Column("POOL", "pool"),
    Column("KIND", "kind"),
    Column("LIMIT", "limit"),
    Column("HELD", "held"),
    Column("FREE", "free"),
    Column("WAITING", "waiting"),
    Column("STATE", lambda pool: "paused" if pool.get("paused") else "open"),
)


SLOTS = (
    Column("SLOT", "slot"),
    Column("STATE", "state"),
    *NAMED_JOB,
    Column("SINCE", moment("since")),
    Column("UNIT", "unit"),
)


LABELS = Column("LABELS", "labels")

CHOICE = Column("CHOICE", "choice")

KEPT = Column("KEPT BECAUSE", lambda slot: (slot.get("kept") or {}).get("says"))
"""Why a slot's unit is not given back: it is held, in quarantine, or not clean; shown where there is one."""

HOSTS = (
    Column("HOST", "slot"),
    Column("IS", lambda slot: "there" if slot["host"]["is_there"] else "away"),
    Column("SINCE", moment("host.since")),
)

POWER = Column("POWER", lambda slot: slot["host"].get("power"))
"""Whether a host is off, or being switched; shown where there is one."""


HOURS = (
    Column("HOUR (UTC)", lambda hour: hour["start"][:16].replace("T", " ")),
    Column("HELD", lambda hour: f"{hour['mean']['held']:.1f}"),
    Column("IDLE", lambda hour: f"{hour['mean']['idle']:.1f}"),
    Column("WAITING", lambda hour: f"{hour['mean']['waiting']:.1f}"),
    Column("MOST WAITING", lambda hour: f"{hour['most']['waiting']:.0f}"),
    Column("LIMIT", "limit"),
)

QUEUE = (
    Column("POSITION", "position"),
    *NAMED_JOB,
    Column("WAITING SINCE", moment("since")),
    Column("PRIORITY", "priority"),
)

EXPECTED = Column("EXPECTED", moment("expected"))
"""When a job may be granted what it waits for in its queue."""

TURN = Column("TURN", moment("turn"))
"""By when a job stands in its queue, on a site with shares."""

group = Group(
    "pool", "Show and change capacity: slots, holders, queues, limits. Pools have names like target/ubuntu-24.04."
)


@group.command("list", cls=Listing)
@pass_session
def list_(session: Session) -> None:
    """List the pools."""
    session.out.table(session.api.items("pools"), POOLS, "no pools; `penstock config apply FILE` makes them")


@group.command(cls=Command)
@click.argument("pool", metavar="[POOL]", required=False, type=POOL)
@click.option("--graph", is_flag=True, help="Print all pools and who waits for whom, as a graph (operators only).")
@click.option(
    "--format",
    "form",
    type=click.Choice(["dot", "json"]),
    default="dot",
    help="Format of the graph: dot is for `dot -Tsvg`.",
)
@pass_session
def show(session: Session, pool: str | None, graph: bool, form: str) -> None:
    """Show a pool: its slots, their holders, its queue."""
    if graph == bool(pool):
        raise click.UsageError("give the name of a pool, or --graph for the whole site", click.get_current_context())
    if graph:
        _show_graph(session, as_json=session.json or form == "json")
        return
    found = session.api.get("pools", str(pool))
    if session.json:
        session.out.json(found)
    else:
        show_pool(session.out, found)


@group.command(cls=Listing)
@arguments("POOL")
@click.option("--since", type=since, metavar="D", help="Since then: 7d, or 2026-01-31T10:00:00Z (default: one day).")
@pass_session
def history(session: Session, pool: str, since: str | None) -> None:
    """Show what a pool had, hour by hour, for up to 32 days: means of each hour, and what waited at most.

    IDLE slots have a unit and no job: it is warm, is held by somebody, or is in quarantine.
    """
    answer = session.api.get("pools", pool, "series", **({"since": since} if since else {}))
    session.out.table(answer["items"], HOURS, "nothing was counted yet; the service counts each minute")


def _show_graph(session: Session, *, as_json: bool) -> None:
    pass

    found = session.api.get("graph")
    if as_json:
        session.out.json(found)
    else:
        session.out.line(dot(found))
    if found["cycle"]:
        session.out.note(f"these wait for each other: {' -> '.join(found['cycle'])}; please report it", "bold red")
    if found["left_out"]:
        session.out.note(f"{found['left_out']} more jobs and pools are not shown", "yellow")


def show_pool(out: Output, pool: Mapping[str, Any]) -> None:
    """A pool's numbers, slots and queue."""
    out.rows([pool], POOLS)
    _show_by_hand(out, pool)
    if pool.get("setback"):
        count, why = pool["setback"]["count"], pool["setback"]["why"]
        again = pool["setback"]["until"]
        out.line()
        out.line(f"made ahead of need: {count} came to nothing, the last as {why}; tried again from {again}", "yellow")
    slots = pool.get("slots") or ()
    queue = pool.get("queue") or ()
    has_turns = any(each.get("turn") for each in queue)
    is_expected = any(each.get("expected") for each in queue)
    is_kept, has_labels = (any(slot.get(key) for slot in slots) for key in ("kept", "labels"))
    chooses = any(each.get("choice") for each in queue)
    hosts = [slot for slot in slots if slot.get("host")]
    is_switched = any(slot["host"].get("power") for slot in hosts)
    for title, rows, columns in (
        ("slots", slots, (*SLOTS, *[LABELS] * has_labels, *[KEPT] * is_kept)),
        ("hosts", hosts, (*HOSTS, *[POWER] * is_switched)),
        ("queue", queue, (*QUEUE, *[CHOICE] * chooses, *[EXPECTED] * is_expected, *[TURN] * has_turns)),
    ):
        if rows:
            out.line()
            out.line(title, "dim")
            out.rows(rows, columns)
    if queue and pool["waiting"] > len(queue):
        out.line()
        out.line(f"{pool['waiting']} jobs wait; the first {len(queue)} are shown", "dim")
    if has_turns:
        out.line()
        out.line("served by priority, then by turn: later than its submit by what its owner used and asked for lately")


def _show_by_hand(out: Output, pool: Mapping[str, Any]) -> None:
    """Who paused a pool and who set its limit, if somebody did."""
    for said, by_hand in (("paused", pool.get("pause")), (f"limit {pool['limit']} set", pool.get("resized"))):
        if by_hand:
            why = f": {by_hand['reason']}" if by_hand["reason"] else ""
            out.line()
            out.line(
                f"{said}{_whole(by_hand.get('scope'))} by {by_hand['by']} {out.text(Moment(by_hand['at']))}{why}",
                "yellow",
            )


def _whole(scope: str | None) -> str:
    """What was paused with a pool: `factory/ec2`, or the site."""
    words = "the whole site" if scope == "site" else (scope or "").replace("/", " ", 1)
    return f" with {words}" if words else ""


REASON = click.option("--reason", default="", metavar="TEXT", help="Reason, shown to others.")


@group.command(cls=Command)
@arguments("POOL")
@click.argument("limit", type=click.IntRange(0), metavar="N")
@REASON
@pass_session
def resize(session: Session, pool: str, limit: int, reason: str) -> None:
    """Set the limit of a pool (operators only). A lower limit does not interrupt jobs that hold a slot."""
    answer = session.api.put("pools", pool, "limit", body={"limit": limit, **_reason(reason)})
    session.out.done(f"{pool}: the limit is {answer.get('limit', limit)}", answer)


@group.command(cls=Command)
@arguments("POOL")
@REASON
@pass_session
def pause(session: Session, pool: str, reason: str) -> None:
    """Stop granting slots of a pool (operators only). Jobs that hold a slot keep it."""
    session.out.done(f"{pool} is paused", session.api.act("pools", pool, "pause", body=_reason(reason)))


@group.command(cls=Command)
@arguments("POOL")
@REASON
@pass_session
def resume(session: Session, pool: str, reason: str) -> None:
    """Grant slots of a pool again (operators only)."""
    session.out.done(f"{pool} is open again", session.api.act("pools", pool, "resume", body=_reason(reason)))


def _reason(text: str) -> dict[str, str]:
    """The part of a request that says why; empty without a reason."""
    return {"reason": text} if text else {}


SHAPES = {"pool": "box", "job": "ellipse"}


STYLES = {"waits": "dashed", "holds": "solid"}


def dot(graph: Mapping[str, Any]) -> str:
    """The graph in DOT. Edges lead from a waiting job to a pool, and from a pool to its holders."""
    return "\n".join(["digraph penstock {", "  rankdir=LR;", *_lines(graph), "}"])


def _lines(graph: Mapping[str, Any]) -> Iterator[str]:
    for node in graph["nodes"]:
        label = f"{node['label']}: {node['job_name']} ({node['job_owner']})" if node.get("job_name") else node["label"]
        yield f"  {_quoted(node['id'])} [label={_quoted(label)}, shape={SHAPES[node['kind']]}];"
    for edge in graph["edges"]:
        label = "waits" if edge["kind"] == "waits" else "held by"
        label += f" for {edge['choice']}" if edge.get("choice") else ""
        ends = f"{_quoted(edge['from'])} -> {_quoted(edge['to'])}"
        yield f"  {ends} [label={_quoted(label)}, style={STYLES[edge['kind']]}];"


def _quoted(text: str) -> str:
    """A text as DOT's quoted string: a backslash would begin an escape, a control character would break the line."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'
