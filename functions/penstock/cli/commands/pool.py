"""penstock pool: capacity, its holders, its queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from penstock.cli.framework import Command, Group, arguments
from penstock.cli.output import Column, Output, moment
from penstock.cli.session import Session, pass_session

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
    Column("JOB", "job"),
    Column("SINCE", moment("since")),
    Column("UNIT", "unit"),
)
APART = Column("QUARANTINED", lambda slot: (slot.get("quarantine") or {}).get("reason"))
"""Why a slot is with a unit that an operator has to see to; shown where there is one."""

HOSTS = (
    Column("HOST", "slot"),
    Column("IS", lambda slot: "there" if slot["host"]["is_there"] else "away"),
    Column("SINCE", moment("host.since")),
)
QUEUE = (
    Column("POSITION", "position"),
    Column("JOB", "job"),
    Column("WAITING SINCE", moment("since")),
    Column("PRIORITY", "priority"),
)

group = Group("pool", "Capacity: who holds it, who waits for it. A pool is named like target/ubuntu-24.04.")


@group.command("list", cls=Command)
@pass_session
def list_(session: Session) -> None:
    """List the pools."""
    session.out.table(session.api.items("pools"), POOLS, "no pools; `penstock config apply FILE` makes them")


@group.command(cls=Command)
@click.argument("pool", metavar="[POOL]", required=False)
@click.option("--graph", is_flag=True, help="Show who waits for whom on the whole site, for `dot -Tsvg`.")
@click.option("--format", "form", type=click.Choice(["dot", "json"]), default="dot", help="The graph's format.")
@pass_session
def show(session: Session, pool: str | None, graph: bool, form: str) -> None:
    """Show a pool: its slots, who holds them, and who waits. With --graph, all pools and jobs at once."""
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


def _show_graph(session: Session, *, as_json: bool) -> None:
    from penstock.cli.dot import dot

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
    if pool.get("setback"):
        count, why = pool["setback"]["count"], pool["setback"]["why"]
        again = pool["setback"]["until"]
        out.line()
        out.line(f"made ahead of need: {count} came to nothing, the last as {why}; tried again from {again}", "yellow")
    slots = pool.get("slots") or ()
    is_apart = any(slot.get("quarantine") for slot in slots)
    for title, rows, columns in (
        ("slots", slots, (*SLOTS, APART) if is_apart else SLOTS),
        ("hosts", [slot for slot in slots if slot.get("host")], HOSTS),
        ("queue", pool.get("queue"), QUEUE),
    ):
        if rows:
            out.line()
            out.line(title, "dim")
            out.rows(rows, columns)


@group.command(cls=Command)
@arguments("POOL")
@click.argument("limit", type=click.IntRange(0), metavar="N")
@pass_session
def resize(session: Session, pool: str, limit: int) -> None:
    """Set a pool's limit to N. Lowering it takes nothing from a holder."""
    answer = session.api.put("pools", pool, "limit", body={"limit": limit})
    session.out.done(f"{pool}: the limit is {answer.get('limit', limit)}", answer)


@group.command(cls=Command)
@arguments("POOL")
@pass_session
def pause(session: Session, pool: str) -> None:
    """Grant nothing more from a pool; who holds a slot keeps it."""
    session.out.done(f"{pool} is paused", session.api.act("pools", pool, "pause"))


@group.command(cls=Command)
@arguments("POOL")
@pass_session
def resume(session: Session, pool: str) -> None:
    """Grant from a pool again."""
    session.out.done(f"{pool} is open again", session.api.act("pools", pool, "resume"))
