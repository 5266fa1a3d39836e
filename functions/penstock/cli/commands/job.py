"""penstock job: list, show, why, timings, cancel, retry, hold, release, store, lint."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from penstock.cli import times
from penstock.cli.command import (
    Command,
    Entry,
    Group,
    Listing,
    Session,
    arguments,
    duration,
    mapping,
    pair,
    pass_session,
    since,
)
from penstock.cli.errors import CliError, Refused
from penstock.cli.output import NAMED_JOB, STYLES, Column, Moment, Output, moment
from penstock.cli.references import DEPENDENCY, JOB, TARGET
from penstock.cli.terminal import clean

if TYPE_CHECKING:
    from penstock.cli.client import Object

HERE = "penstock.cli.commands"

group = Group(
    "job",
    "Submit jobs, follow their logs, download their outputs.",
    {
        "run": Entry(f"{HERE}.job_run:run", "Submit a job, show its log, and exit with the job's result."),
        "list": Entry(f"{HERE}.job:list_", "List jobs, newest first."),
        "show": Entry(f"{HERE}.job:show", "Show everything about a job; if it failed, why."),
        "tail": Entry(f"{HERE}.job_run:tail", "Show a job's log until the job settles."),
        "wait": Entry(f"{HERE}.job_wait:wait", "Wait until jobs have settled."),
        "join": Entry(f"{HERE}.job_wait:join", "Show the logs of several jobs until they have settled."),
        "cancel": Entry(f"{HERE}.job:cancel", "Cancel a job or a job set."),
        "extend": Entry(f"{HERE}.job:extend", "Let a job run for longer."),
        "discard": Entry(f"{HERE}.job:discard", "Delete a job's files and log before their time."),
        "approve": Entry(f"{HERE}.review:approve", "Approve a job that asks for an environment."),
        "why": Entry(f"{HERE}.job:why", "Explain why a job waits."),
        "script": Entry(f"{HERE}.job:script", "Print the job file that a job was submitted with."),
        "send": Entry(f"{HERE}.job_files:send", "Upload the inputs that a job waits for."),
        "outputs": Entry(f"{HERE}.job_files:outputs", "List the output files of a job."),
        "copy": Entry(f"{HERE}.job_files:copy", "Download an output."),
        "sign": Entry(f"{HERE}.job_files:sign", "Print a temporary download URL of an output."),
        "provenance": Entry(f"{HERE}.provenance:provenance", "Print the signed statement about a job's outputs."),
        "verify": Entry(f"{HERE}.provenance:verify", "Check that a job made a file. Needs no service."),
        "publish": Entry(f"{HERE}.published:publish", "Publish an output under a permanent name."),
        "timings": Entry(f"{HERE}.job:timings", "Show how long each phase took, and what was held meanwhile."),
        "cost": Entry(f"{HERE}.cost:job_cost", "Show what a job cost, and how much of that was unused."),
        "hold": Entry(f"{HERE}.job:hold", "If the script fails, keep its worker and resources."),
        "release": Entry(f"{HERE}.job:release", "End the hold of a job."),
        "retry": Entry(f"{HERE}.job:retry", "Submit the same job again."),
        "store": Entry(f"{HERE}.job:store", "Exchange small values with a running job."),
        "lint": Entry(f"{HERE}.job:lint", "Check job files without submitting them."),
    },
)

STATES = ["waiting", "queued", "acquiring", "running", "settled", "succeeded", "failed", "cancelled", "errored"]
"""The states of jobs, and their outcomes."""


JOBS = (
    Column("ID", "id"),
    Column("STATE", lambda job: job.get("outcome") or job["state"]),
    Column("WAITS FOR", "waits_for"),
    Column("TARGET", "target"),
    Column("SUBMITTED", moment("times.submitted")),
    Column("NAME", "name"),
    Column("TAGS", "tags"),
)

OF_SET = (
    Column("ID", "id"),
    Column("NAME", "name"),
    Column("STATE", lambda job: job.get("outcome") or job["state"]),
    Column("WAITS FOR", "waits_for"),
    Column("DEPENDS ON", lambda job: [each["name"] for each in job["dependencies"]]),
    Column("TARGET", "target"),
)

OWNER = Column("OWNER", "owner")
"""Whose job it is; shown in a list of everybody's."""


AHEAD = (*NAMED_JOB, Column("WAITING SINCE", moment("since")))


HOLDERS = (Column("SLOT", "slot"), *NAMED_JOB, Column("SINCE", moment("since")))


RESOURCES = (Column("NAME", "name"), Column("TYPE", "type"), Column("STATE", "state"), Column("SLOT", "slot"))
CHOICE = Column("CHOOSES", "choice")


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


@click.command("list", cls=Listing)
@click.option("--state", type=click.Choice(STATES), help="Only jobs in this state, or with this outcome.")
@click.option("--name", metavar="PATTERN", help="Only jobs of this name: 'build*' for all that begin so.")
@click.option("--since", type=since, metavar="D", help="Only jobs submitted since then: 2d, or 2026-01-31T10:00:00Z.")
@click.option("--target", type=TARGET, metavar="NAME", help="Only jobs for this target.")
@click.option("--owner", metavar="NAME", help="Jobs of this repository or user (default: your jobs).")
@click.option("--all", "everybody", is_flag=True, help="Jobs of every owner (operators only).")
@click.option("-T", "--tag", "tags", type=pair, multiple=True, metavar="K=V", help="Only jobs with this tag.")
@click.option("--set", "set_id", metavar="ID", help="The jobs of this set, and what each depends on.")
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="Show at most N entries."
)
@click.option("--no-limit", "everything", is_flag=True, help="Show all entries.")
@pass_session
def list_(
    session: Session,
    /,
    everybody: bool,
    everything: bool,
    limit: int,
    tags: tuple[tuple[str, str], ...],
    set_id: str | None,
    **asked: str | None,
) -> None:
    """List jobs, newest first. `waiting` are all jobs that wait, whatever for."""
    if everybody and asked["owner"]:
        raise click.UsageError("--owner and --all exclude each other")
    most = None if everything else limit
    query = [(name, value) for name, value in asked.items() if value]
    if set_id is not None:
        if everybody or tags or any(name != "owner" for name, _ in query):
            raise click.UsageError("--set lists all jobs of a set: of the other options only --owner goes with it")
        session.out.table(session.api.items("sets", set_id, query=query, most=most), OF_SET, "no such jobs")
        return
    query += [("tag", f"{name}={value}") for name, value in tags]
    query += [("all", "true")] if everybody else []
    pages = session.api.items("jobs", query=query, most=most)
    columns = (*JOBS, OWNER) if everybody else JOBS
    session.out.table(pages, columns, "no such jobs" if query else "no jobs yet: `penstock job run FILE` submits one")
    if pages.more and not session.json:
        session.out.note("there are more: --no-limit lists them, --limit N lists N")


@click.command(cls=Command)
@arguments("JOB")
@pass_session
def show(session: Session, job: str) -> None:
    """Show everything about a job: its state, its times, what it uses, and why it failed."""
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
            *(
                (name, job.get(name))
                for name in ("id", "name", "owner", "state", "waits_for", "outcome", "reason", "exit_code")
            ),
            ("target", target if resolved in (None, target) else f"{target} (now {resolved})"),
            ("chosen", job.get("chosen")),
            ("host", job.get("host")),
            *(
                (name, job.get(name))
                for name in ("worker", "attempt", "priority", "tags", "cache_scope", "environment", "approved_by")
            ),
            ("timeout", times.duration(job["timeout"]) if job.get("timeout") else None),
            ("cost", _cost(job)),
            *((name, Moment(time)) for name, time in job["times"].items() if time),
        ]
    )
    chooses = any(resource.get("choice") for resource in job["resources"])
    resources = (*RESOURCES, *[CHOICE] * chooses)
    for title, key, columns in (("resources", "resources", resources), ("attempts", "attempts", ATTEMPTS)):
        if job.get(key):
            out.line(title, "dim")
            out.rows(job[key], columns, indent=2)
    show_failure(out, job)
    show_held(out, job)


def _cost(job: Mapping[str, Any]) -> str | None:
    """What a job cost, and the unused part of it; `penstock job cost` has the rest."""
    found = job.get("cost")
    return f"{found['total']} {found['currency']}, of which {found['unused']} unused" if found else None


@click.command(cls=Command)
@arguments("JOB")
@pass_session
def why(session: Session, job: str) -> None:
    """Explain why a job waits: for which pool, who holds it, who is ahead, when it may start."""
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
        ("target", found.get("chosen")),
        ("warning", found.get("warning")),
    ]
    show_block(out, facts, found.get("blocked_on") or {})


def show_block(out: Output, facts: list[tuple[str, Any]], block: Mapping[str, Any]) -> None:
    """Facts; then, if the job waits for a pool, its numbers, its holders and the jobs ahead."""
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
def script(session: Session, job: str) -> None:
    """Print the job file that a job was submitted with; of a job without one, its tasks as JSON."""
    answer = session.api.get("jobs", job, "script")
    if session.json or answer["script"] is None:
        session.out.json(answer if session.json else answer["tasks"])
        return
    session.out.data(str(answer["script"]).removesuffix("\n"))


@click.command(cls=Command)
@arguments("JOB")
@pass_session
def timings(session: Session, job: str) -> None:
    """Show how long each phase of a job took, what it held, and how long of that its script did not run."""
    found = session.api.get("jobs", job, "timings")
    if session.json:
        session.out.json(found)
        return
    spans = found.get("intervals") or {}
    session.out.details((name, times.duration(spent)) for name, spent in spans.items() if spent is not None)
    if found.get("held"):
        session.out.line("held, and how long of that the script did not run", "dim")
        session.out.rows(found["held"], HELD, indent=2)


CANCELLED = (
    Column("ID", "id"),
    Column("STATE", lambda job: job.get("outcome") or job["state"]),
    Column("NAME", "name"),
)


@click.command(cls=Command)
@click.argument("job", required=False, metavar="JOB", type=JOB)
@click.option("--set", "set_id", metavar="ID", help="Cancel every job of this set.")
@click.option("--wait", is_flag=True, help="Wait until the job has settled.")
@pass_session
def cancel(session: Session, job: str | None, set_id: str | None, wait: bool) -> None:
    """Cancel a job, or all jobs of a set. Outputs uploaded so far are kept."""
    if (job is None) == (set_id is None):
        raise click.UsageError("give a JOB, or --set ID")
    if job is None:
        _cancel_set(session, str(set_id), wait)
        return
    found = dict(session.api.act("jobs", job, "cancel"))
    if wait:
        found = settled(session, found)
    session.out.done(_said(found), found)


@click.command(cls=Command)
@arguments("JOB")
@click.option("--for", "length", type=duration, required=True, metavar="D", help="How long from now it may run.")
@pass_session
def extend(session: Session, job: str, length: int) -> None:
    """Let a job run for longer. It never gets less time for it, nor more than the site allows a job to run.

    A job that does not run yet may then run so long from its start. PENSTOCK_DEADLINE stays as it was when its script
    began.
    """
    found = session.api.act("jobs", job, "extend", body={"for": length})
    session.out.done(f"job {job} may run for {times.duration(found['timeout'])}", found)


@click.command(cls=Command)
@arguments("JOB")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_session
def discard(session: Session, job: str, yes: bool) -> None:
    """Delete the files and the log of a settled job before their time.

    The job itself stays in lists. What is pinned or published stays, and what a job needs that has not settled cannot
    be deleted. There is no way back.
    """
    if not yes:
        click.confirm(f"Delete the files and the log of job {job}?", abort=True, err=True)
    found = dict(session.api.act("jobs", job, "discard"))
    session.out.done(f"the files and the log of job {found['id']} are being deleted", found)


def _cancel_set(session: Session, set_id: str, wait: bool) -> None:
    """Those that wait for others are ended before these: else they would fail by it."""
    ended = []
    for job in list(session.api.items("jobs", query=[("tag", f"set={set_id}")])):
        if job["state"] != "settled":
            try:
                ended.append(dict(session.api.act("jobs", job["id"], "cancel")))
            except Refused as error:
                if error.status != 409:  # it settled meanwhile
                    raise
    found = [settled(session, job) if wait else job for job in ended]
    session.out.table(found, CANCELLED, f"no job of set {set_id} is left to cancel")


def settled(session: Session, job: Object) -> Object:
    """The job once it has settled. Raises Interrupted on Ctrl-C."""
    from penstock.cli import follow

    try:
        while job["state"] != "settled":
            session.out.notice(f"job {job['id']} is {job['state']}: waiting for its end")
            time.sleep(follow.SLOW / 2)
            job = session.api.job(job["id"])
    except KeyboardInterrupt:
        raise follow.goes_on(job["id"]) from None
    return job


def _said(job: Object) -> str:
    if job["state"] != "settled":
        return f"job {job['id']} is being cancelled (it is {job['state']})"
    return f"job {job['id']} {job['outcome']}: {job.get('reason') or 'no reason is known'}"


@click.command(cls=Command)
@arguments("JOB")
@click.option(
    "--after", multiple=True, type=DEPENDENCY, metavar="NAME=JOB", help="Wait for JOB in the place of dependency NAME."
)
@pass_session
def retry(session: Session, job: str, after: tuple[tuple[str, str], ...]) -> None:
    """Submit the same job again, and print the new job's id.

    It waits for the same jobs as before. If one of these was retried, name its new job with --after.
    """
    body = {"dependencies": mapping(after, "--after")} if after else {}
    answer = session.api.make("jobs", job, "retry", body=body, headers={"Idempotency-Key": str(uuid.uuid4())})
    session.out.done(str(answer["id"]), answer)
    if not session.json:
        session.out.note(f"`penstock job tail {answer['id']}` follows it")


UNITS = (Column("KIND", "kind"), Column("ID", "id"), Column("POOL", "pool"), Column("SLOT", "slot"))


@click.command(cls=Command)
@arguments("JOB")
@click.option("--reason", required=True, metavar="R", help="Reason, shown to others.")
@click.option("--for", "seconds", type=duration, metavar="D", help="How long: 30m (default: the longest time allowed).")
@click.option("--whatever", is_flag=True, help="Hold them also when the script succeeds.")
@pass_session
def hold(session: Session, job: str, reason: str, seconds: int | None, whatever: bool) -> None:
    """If the script fails, keep the job's worker and resources, so that you can inspect them.

    You can do this until the script ends. `penstock job run --hold-on-failure D` does it at submission.
    """
    body: dict[str, object] = {"reason": reason, "whatever": whatever} | ({} if seconds is None else {"for": seconds})
    answer = session.api.act("jobs", job, "hold", body=body)
    when = "when its script has ended" if whatever else "if its script fails"
    session.out.done(f"what job {job} has is held {when}; `penstock job release {job}` ends the hold", answer)


@click.command(cls=Command)
@arguments("JOB")
@pass_session
def release(session: Session, job: str) -> None:
    """End the hold of a job: its worker and resources are cleaned and returned."""
    session.out.done(f"the hold of job {job} has ended", session.api.act("jobs", job, "release"))


def show_held(out: Output, job: Mapping[str, Any]) -> None:
    """What of a job is held, until when, what that has cost so far, and the way back."""
    found = job.get("held")
    if not found:
        return
    cost = times.duration(found["unit_seconds"])
    out.line(f"held by {found['by']} until {found['until']}: {found['reason']} (so far {cost} of units' time)", "dim")
    out.rows(found["units"], UNITS, indent=2)
    out.note(f"`penstock job release {job['id']}` ends the hold now", "")


VALUES = (
    Column("NAME", "name"),
    Column("VALUE", lambda entry: "(secret)" if entry.get("secret") else entry.get("value")),
    Column("BY", "source"),
    Column("SET", moment("time")),
)

store = Group("store", "Exchange small values with a running job.")


@store.command("list", cls=Listing)
@arguments("JOB")
@pass_session
def list_values(session: Session, job: str) -> None:
    """List a job's values. Secret values are hidden."""
    session.out.table(session.api.items("jobs", job, "store"), VALUES, "no values")


@store.command(cls=Command)
@arguments("JOB", "NAME")
@pass_session
def get(session: Session, job: str, name: str) -> None:
    """Print one value."""
    answer = session.api.get("jobs", job, "store", name)
    session.out.json(answer) if session.json else session.out.data(str(answer.get("value", "")))


@store.command(cls=Command)
@arguments("JOB", "NAME", "VALUE")
@click.option("-s", "--secret", is_flag=True, help="Show the value to the job only.")
@pass_session
def put(session: Session, job: str, name: str, value: str, secret: bool) -> None:
    """Set a value. VALUE - reads stdin, which keeps a secret out of process lists.

    A secret value stays secret when you set it again. `bmat store get NAME` in the job waits for the value.
    """
    value = sys.stdin.read().removesuffix("\n") if value == "-" else value
    answer = session.api.put("jobs", job, "store", name, body={"value": value, "secret": secret})
    session.out.done(f"{name} is set", answer)


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@pass_session
def lint(session: Session, files: tuple[str, ...]) -> int:
    """Check job files without submitting them. Needs no service."""
    from penstock.cli.submit import counted
    from penstock.cli.submit import lint as problems_of

    found = [problems_of(file) for file in files]
    problems = [problem for wrong, _ in found for problem in wrong]
    for useless in (each for _, ignored in found for each in ignored):
        session.out.note(f"warning: {useless}", "yellow")
    if session.json:
        session.out.json([asdict(problem) for problem in problems])
    for problem in problems if not session.json else ():
        session.out.line(str(problem))
    if not session.json:
        good = len(files) - len({problem.file for problem in problems})
        summary = f"{counted(len(problems), 'problem')}, {good} of {counted(len(files), 'file')} good"
        session.out.note(summary, "red" if problems else "green")
    return 2 if problems else 0


MARKS = {"succeeded": "✓", "cancelled": "-"}


def summarize(session: Session, job: Mapping[str, Any]) -> None:
    """Print outcome, reason, duration and outputs on stderr."""
    out = session.out
    outcome = str(job.get("outcome"))
    took = _took(job["times"])
    reason = "" if outcome == "succeeded" or not job.get("reason") else f": {job['reason']}"
    out.note(f"{MARKS.get(outcome, '✗')} {outcome}{reason}{took}", f"bold {STYLES.get(outcome, '')}".strip())
    note_failure(out, job)
    show_held(out, job)
    try:
        outputs = list(session.api.items("jobs", job["id"], "outputs"))
    except CliError as error:  # the job's own end counts, and is known
        out.note(f"cannot list its outputs: {error.what}", "yellow")
        return
    width = max((len(output["path"]) for output in outputs), default=0)
    for output in outputs:
        out.note(f"  {output['path'].ljust(width)}  {times.size_text(output['size'])}", "")
    if outputs:
        out.note(f"`penstock job copy {job['id']} PATH` fetches one")


def _took(stations: Mapping[str, str | None]) -> str:
    """How long the job took, and how much of that its script ran."""
    begun, started, ended = (stations.get(name) for name in ("submitted", "started", "settled"))
    if not begun or not ended:
        return ""
    total = times.duration((times.parse(ended) - times.parse(begun)).total_seconds())
    if not started:
        return f" ({total}; it never ran)"
    ran = times.duration((times.parse(ended) - times.parse(started)).total_seconds())
    return f" ({total}, of which it ran {ran})"


Say = Callable[[str, str], None]
"""Takes a line and its style."""


def show_failure(out: Output, job: Mapping[str, Any]) -> None:
    """On stdout, with the last lines: for somebody who has not seen the log."""
    failure = job.get("failure")
    if failure:
        _tell(out.line, failure)
        of = "of its machine's console" if failure.get("lines_of") == "console" else "that it said"
        if failure.get("lines"):
            out.line(f"the last lines {of}", "dim")
        for line in failure.get("lines", ()):
            out.line(f"  {clean(line)}")


def note_failure(out: Output, job: Mapping[str, Any]) -> None:
    """On stderr, without the last lines: for somebody who has just seen them."""
    if job.get("failure"):
        _tell(out.note, job["failure"])


def _tell(say: Say, failure: Mapping[str, Any]) -> None:
    say(f"{failure['kind']}: {failure['what']}", "")
    for name, value in _facts(failure):
        say(f"  {name}: {value}", "")
    say(f"what to do: {failure['advice']}", "bold")


def _facts(failure: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    task = failure.get("task")
    if task:
        yield "task", clean(f'{task["index"]} "{task["name"]}"') if task["name"] else str(task["index"])
    for name, value in failure["evidence"].items():
        words = name.replace("_", " ")
        if name.endswith("_bytes"):
            yield words.removesuffix(" bytes"), times.size_text(value)
        elif name.endswith("_seconds"):
            yield words.removesuffix(" seconds") + " of", times.duration(value)
        else:
            yield words, clean(str(value))
