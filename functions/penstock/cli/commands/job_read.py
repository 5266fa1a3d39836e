"""penstock job list, show, why, timings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from penstock.cli import times
from penstock.cli.commands.job_hold import show_held
from penstock.cli.failure import show_failure
from penstock.cli.framework import Command, arguments
from penstock.cli.output import Column, Moment, Output, moment
from penstock.cli.session import Session, pass_session
from penstock.cli.values import pair

STATES = ["waiting", "queued", "acquiring", "running", "settled"]
JOBS = (
    Column("ID", "id"),
    Column("STATE", lambda job: job.get("outcome") or job["state"]),
    Column("TARGET", "target"),
    Column("SUBMITTED", moment("times.submitted")),
    Column("NAME", "name"),
    Column("TAGS", "tags"),
)
AHEAD = (Column("JOB", "job"), Column("WAITING SINCE", moment("since")))
HOLDERS = (Column("SLOT", "slot"), Column("JOB", "job"), Column("SINCE", moment("since")))
RESOURCES = (Column("NAME", "name"), Column("TYPE", "type"), Column("STATE", "state"), Column("SLOT", "slot"))
HELD = (
    Column("ATTEMPT", "attempt"),
    Column("NAME", "name"),
    Column("TYPE", "type"),
    Column("HELD", lambda row: times.duration(row["seconds"])),
    Column("UNUSED", lambda row: times.duration(row["unused_seconds"])),
)
ATTEMPTS = (
    Column("ATTEMPT", "attempt"),
    Column("OUTCOME", "outcome"),
    Column("KIND", "failure"),
    Column("REASON", "reason"),
)


@click.command("list", cls=Command)
@click.option("--state", type=click.Choice(STATES), help="Only jobs in this state.")
@click.option("--target", metavar="NAME", help="Only jobs for this target.")
@click.option("--owner", metavar="NAME", help="Jobs of a repository, or of another user (default: yours).")
@click.option("-T", "--tag", "tags", type=pair, multiple=True, metavar="K=V", help="Only jobs with this tag.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many to list.")
@click.option("--all", "everything", is_flag=True, help="List all there are.")
@pass_session
def list_(
    session: Session,
    state: str | None,
    target: str | None,
    owner: str | None,
    tags: tuple[tuple[str, str], ...],
    limit: int,
    everything: bool,
) -> None:
    """List jobs, the newest first."""
    query = [(name, value) for name, value in (("state", state), ("target", target), ("owner", owner)) if value]
    query += [("tag", f"{name}={value}") for name, value in tags]
    pages = session.api.items("jobs", query=query, most=None if everything else limit)
    session.out.table(pages, JOBS, "no such jobs" if query else "no jobs yet: `penstock job run FILE` submits one")
    if pages.more and not session.json:
        session.out.note("there are more: --all lists them, --limit N lists N")


@click.command(cls=Command)
@arguments("JOB")
@pass_session
def show(session: Session, job: str) -> None:
    """Show a job."""
    found = session.api.job(job)
    if session.json:
        session.out.json(found)
    else:
        show_job(session.out, found)


def show_job(out: Output, job: Mapping[str, Any]) -> None:
    """A job, a line per fact; then its resources and its earlier attempts."""
    target, resolved = job["target"], job.get("target_resolved")
    out.details(
        [
            *((name, job.get(name)) for name in ("id", "name", "owner", "state", "outcome", "reason", "exit_code")),
            ("target", target if resolved in (None, target) else f"{target} (now {resolved})"),
            *((name, job.get(name)) for name in ("worker", "attempt", "priority", "tags", "cache_scope")),
            ("timeout", times.duration(job["timeout"]) if job.get("timeout") else None),
            *((name, Moment(time)) for name, time in job["times"].items() if time),
        ]
    )
    for title, key, columns in (("resources", "resources", RESOURCES), ("attempts", "attempts", ATTEMPTS)):
        if job.get(key):
            out.line(title, "dim")
            out.rows(job[key], columns, indent=2)
    show_failure(out, job)
    show_held(out, job)


@click.command(cls=Command)
@arguments("JOB")
@pass_session
def why(session: Session, job: str) -> None:
    """Explain what a job waits for: which pool, who holds it, who comes first, and when it may start."""
    found = session.api.why(job)
    if session.json:
        session.out.json(found)
        return
    out = session.out
    out.line(found["summary"])
    start = found.get("expected_start")
    facts = [
        ("state", found["state"]),
        ("since", Moment(found["since"]) if found.get("since") else None),
        ("expected start", Moment(start) if start else None),
        ("basis", found.get("basis")),
        ("goes on when", found.get("unblocks")),
    ]
    show_block(out, facts, found.get("blocked_on") or {})


def show_block(out: Output, facts: list[tuple[str, Any]], block: Mapping[str, Any]) -> None:
    """Facts, then the pool that is in the way, if one is: its numbers, its holders, and who comes first."""
    if block:
        paused = ", paused" if block.get("paused") else ""
        numbers = f"{block['held']} of {block['limit']} held, {block['free']} free{paused}"
        facts = [*facts, ("pool", f"{block['pool']}: {numbers}"), ("position", block["position"])]
    out.details(facts)
    for title, key, columns in (("held by", "held_by", HOLDERS), ("ahead", "ahead", AHEAD)):
        if block.get(key):
            out.line(title, "dim")
            out.rows(block[key], columns, indent=2)


@click.command(cls=Command)
@arguments("JOB")
@pass_session
def timings(session: Session, job: str) -> None:
    """Show how long each part of a job took, its cost, and how long what it held was not used yet."""
    found = session.api.get("jobs", job, "timings")
    if session.json:
        session.out.json(found)
        return
    spans = found.get("intervals") or {}
    session.out.details((name, times.duration(spent)) for name, spent in spans.items() if spent is not None)
    session.out.details((f"cost {name}", value) for name, value in (found.get("cost") or {}).items())
    if found.get("held"):
        session.out.line("held, and how long of that the script did not run", "dim")
        session.out.rows(found["held"], HELD, indent=2)
