"""penstock job run, tail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from penstock.cli import watching
from penstock.cli.command import Command, Session, depend, duration, mapping, pair, pass_session
from penstock.cli.commands.job import summarize
from penstock.cli.errors import OUTCOME_CODES, CliError, Interrupted
from penstock.cli.follow import Follower, open_screen
from penstock.cli.logview import Choice, View, begin, moment_of, pattern
from penstock.cli.references import DEPENDENCY, RESOURCE_TYPE, TARGET
from penstock.cli.watching import meant, of_jobs

LEAST, MOST = -100, 100
SEE_LIST = "`penstock job list` shows it, `penstock job cancel` ends it"


@click.command(cls=Command, epilog="Example: penstock job run build.sh -t ubuntu-24.04 -r bench -O '/work/*.log'")
@click.argument("file", metavar="FILE|DIR")
@click.option("-t", "--target", type=TARGET, metavar="TARGET", help="Target to run on (default: as the file says).")
@click.option("--host", metavar="EXPRESSION", help='Which of the target\'s hosts it may be: "rack == 4 && probe".')
@click.option("--image", metavar="IMAGE", help="Image of the worker's container: name@sha256:…")
@click.option(
    "--machine",
    multiple=True,
    type=pair,
    metavar="K=V",
    help="What it needs of its machine: cpus=4, memory=16GiB, scratch=100GiB, gpu=1, arch=arm64.",
)
@click.option(
    "-r",
    "--resource",
    "resources",
    multiple=True,
    type=RESOURCE_TYPE,
    metavar="NAME",
    help="Resource type that the job needs.",
)
@click.option(
    "-O",
    "--output",
    "rules",
    multiple=True,
    metavar="RULE",
    help="Files to upload when the script ends: '/work/*.log'.",
)
@click.option(
    "-i", "--input", "inputs", multiple=True, metavar="[NAME=]PATH", help="File to upload before the job starts."
)
@click.option(
    "-d",
    "--depend",
    "depends",
    multiple=True,
    type=DEPENDENCY,
    metavar="NAME=JOB",
    help="Id of a job that this job depends on.",
)
@click.option("-T", "--tag", "tags", multiple=True, type=pair, metavar="K=V", help="Tag, for `penstock job list -T`.")
@click.option("-e", "--env", multiple=True, type=pair, metavar="K=V", help="Environment variable of the script.")
@click.option("-n", "--name", metavar="NAME", help="Name of the job (default: as the file says).")
@click.option("--owner", metavar="REPOSITORY", help="Submit for a repository, not for yourself: oxide:hubris.")
@click.option("--cache-scope", metavar="BRANCH", help="Scope in which it saves caches: trunk, or a branch.")
@click.option(
    "--priority",
    type=click.IntRange(LEAST, MOST),
    metavar="N",
    help="Jobs with a higher priority start first. Above 0 you need the privilege `priority`.",
)
@click.option("--timeout", type=duration, metavar="D", help="Longest time that the script may run: 30m.")
@click.option("--max-wait", type=duration, metavar="D", help="Give up when it has waited this long for what it needs.")
@click.option("--retries", type=click.IntRange(0), metavar="N", help="Number of retries after a lost machine.")
@click.option(
    "--hold-on-failure", type=duration, metavar="D", help="If the script fails, hold its worker and resources: 30m."
)
@click.option("-v", "--verbose", is_flag=True, help="Show all service lines, not only the most important.")
@click.option("-W", "--no-wait", is_flag=True, help="Print the job's id and return.")
@click.option("--set", "set_id", metavar="ID", help="Continue submitting the job set with this id.")
@click.option("--changed", multiple=True, metavar="PATH", help="Only the jobs whose `paths` match this changed file.")
@click.option("--since", metavar="REV", help="Only the jobs whose `paths` match a file changed since REV.")
@click.option("--plan", is_flag=True, help="Submit nothing; show what the job would acquire and wait for.")
@pass_session
def run(
    session: Session,
    /,
    file: str,
    no_wait: bool,
    verbose: bool,
    plan: bool,
    set_id: str | None,
    inputs: tuple[str, ...],
    changed: tuple[str, ...],
    since: str | None,
    **options: Any,
) -> int:
    """Submit a job, show its log, and exit with the job's result. If FILE is -, the job file is read from stdin.

    A file with errors is not submitted. The job's stdout goes to stdout, everything else to stderr; with --json the
    whole log goes to stderr, and stdout gets the settled job. Ctrl-C stops showing the log; the job continues. To
    give several values of --machine, -r, -O, -i, -d, -T or -e, repeat the option.

    All .sh files of a folder, or all jobs of a file with a matrix, are submitted as one job set, dependencies first.
    The options apply to every job; -i, -d and -n are for single jobs. The logs of all jobs are shown together, each
    line after its job's name, and on a terminal a table of the jobs below. The exit code is that of the worst result.
    If submitting was interrupted, --set submits the rest. --changed and --since skip jobs whose `paths` match no
    changed file.
    """
    from penstock.cli.submit import is_many

    wishes = _wishes(**options)
    some = bool(changed) or since is not None
    if is_many(file) or (some and file != "-"):
        alone = {"-i": inputs, "-d": wishes["dependencies"], "-n": wishes["name"]}
        news = _changed(file, changed, since) if some else None
        how = {"no_wait": no_wait, "planned": plan, "verbose": verbose}
        return _run_set(session, file, set_id, news, **how, wishes=wishes, alone=alone)
    if some:
        raise click.UsageError("--changed and --since are for files, and not for stdin")
    if set_id:
        raise click.UsageError("--set is for a folder of jobs")
    return _run_one(session, file, inputs, wishes, no_wait=no_wait, verbose=verbose, planned=plan)


def _run_one(
    session: Session,
    file: str,
    inputs: Sequence[str],
    wishes: dict[str, Any],
    *,
    no_wait: bool,
    verbose: bool,
    planned: bool,
) -> int:
    from penstock.cli.submit import request
    from penstock.cli.transfer import given

    files = given(inputs)
    body = request(file, {**wishes, "inputs": list(files)})
    if planned:
        _show_plan(session, body)
        return 0
    job = _submit(session, body, files)
    if no_wait:
        session.out.done(job, {"id": job})
        return 0
    session.out.note(f"job {job}")
    return watch(session, job, 0, whole=True, view=View(verbose=verbose, summary_follows=True))


def _submit(session: Session, body: dict[str, Any], files: dict[str, Path]) -> str:
    """Submit a job and upload its inputs. After Ctrl-C, says what was done and how to continue."""
    from penstock.cli.transfer import send

    try:
        job = session.api.submit(body)
    except KeyboardInterrupt:
        raise Interrupted("stopped; the job may have been submitted already", SEE_LIST) from None
    try:
        send(session, job, files)
    except KeyboardInterrupt:
        raise Interrupted(
            f"stopped; job {job} waits for the inputs that are missing",
            f"`penstock job send {job} [NAME=]PATH…` continues, `penstock job cancel {job}` ends it",
        ) from None
    return job


def _run_set(
    session: Session,
    folder: str,
    set_id: str | None,
    changed: Sequence[str] | None,
    *,
    no_wait: bool,
    planned: bool,
    verbose: bool,
    wishes: dict[str, Any],
    alone: dict[str, object],
) -> int:
    from penstock.cli import sets
    from penstock.cli.submit import counted

    for option in (option for option, value in alone.items() if value):
        raise click.UsageError(f"{option} is for one job only; for several, write it in their files")
    jobs = sets.load(folder, set_id, changed)
    for name, why in jobs.left_out.items():
        session.out.note(f"{name}: left out: {why}")
    if not jobs.members:
        session.out.done("nothing to run: no job's `paths` match a changed file", [])
        return 0
    if planned:
        sets.plan(session, jobs, wishes)
        return 0
    session.out.note(f"set {jobs.id}: {counted(len(jobs.members), 'job')}")
    ids = sets.submit(session, jobs, wishes, verbose=verbose)
    if not no_wait:
        return sets.follow(session, jobs, ids, owner=wishes["owner"], verbose=verbose)
    session.out.table([{"id": id, "name": name} for name, id in ids.items()], sets.SUBMITTED, "")
    return 0


def _changed(file: str, given: Sequence[str], since: str | None) -> list[str]:
    """The changed files: those given as options, and those that git lists."""
    from penstock.cli.sets import since_revision

    return [*given, *(since_revision(file, since) if since is not None else ())]


def _show_plan(session: Session, body: Mapping[str, object]) -> None:
    from penstock.cli.submit import show_plan

    found = session.api.plan(body)
    if session.json:
        session.out.json(found)
    else:
        show_plan(session.out, found)


def _wishes(
    resources: tuple[str, ...],
    rules: tuple[str, ...],
    depends: tuple[tuple[str, str], ...],
    tags: tuple[tuple[str, str], ...],
    env: tuple[tuple[str, str], ...],
    machine: tuple[tuple[str, str], ...],
    host: str | None,
    **plain: object,
) -> dict[str, object]:
    """The options in the API's words."""
    needs = mapping(machine, "--machine")
    return {
        **plain,
        "host": {"labels": host} if host else None,
        "machine": {name: int(value) if value.isdecimal() else value for name, value in needs.items()},
        "resources": list(resources),
        "output_rules": list(rules),
        "dependencies": {name: depend(job) for name, job in mapping(depends, "-d").items()},
        "tags": mapping(tags, "-T"),
        "env": mapping(env, "-e"),
    }


def watch(session: Session, job: str, after: int, *, whole: bool, view: View, last: int = 0) -> int:
    """Show a job's log to its end, then a summary; return the exit code for its outcome."""
    with open_screen(session.out, view, quiet_stdout=whole and session.json) as screen:
        Follower(session.api, job, screen, after, last).follow()
    settled = session.api.job(job)
    if whole and session.json:
        session.out.json(settled)
    else:
        summarize(session, settled)
    view.choice.check()
    return OUTCOME_CODES.get(str(settled.get("outcome")), CliError.exit_code)


@click.command(cls=Command, epilog="Example: penstock job tail JOB --since 10m --grep 'error|warning' --timestamps")
@of_jobs
@click.option(
    "-f", "--follow/--no-follow", default=True, help="Continue until all have settled (default), or show what exists."
)
@click.option("--after", type=click.IntRange(0), default=0, metavar="N", help="Skip the events up to number N.")
@click.option("--from", "first", type=click.IntRange(1), default=1, metavar="N", help="Start with event number N.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Of the existing events, show only the last N.")
@click.option(
    "--since", type=moment_of, metavar="TIME", help="Only lines of the last 10m, 2h…, or since 2026-11-27T10:00:00Z."
)
@click.option("--task", metavar="NAME", help="Only lines of the task with this name or number.")
@click.option(
    "--stream", "streams", multiple=True, metavar="NAME", help="Only this stream, such as stdout. May be repeated."
)
@click.option("--grep", type=pattern, metavar="PATTERN", help="Only lines in which this regular expression is found.")
@click.option(
    "--timestamps", is_flag=True, help="Begin each line with its time: local on a terminal, else UTC (RFC 3339)."
)
@click.option("-v", "--verbose", is_flag=True, help="Show all service lines, not only the most important.")
@pass_session
def tail(
    session: Session,
    /,
    jobs: tuple[str, ...],
    set_id: str | None,
    owner: str | None,
    follow: bool,
    after: int,
    first: int,
    last: int | None,
    verbose: bool,
    timestamps: bool,
    **chosen: Any,
) -> int:
    """Show a job's log until the job settles, and exit with the job's result.

    The log of a settled job is readable until retention ends. With several jobs, each line begins with its job's name,
    and the exit code is that of the worst result. With --no-follow, the exit code is 0. With --json, each event is one
    JSON object on a line, and all service lines are included.
    """
    view = View(verbose=verbose, summary_follows=follow, timestamps=timestamps, choice=Choice(**chosen))
    start = max(after, first - 1)
    if len(jobs) != 1 or set_id is not None:
        ids, of = meant(session, jobs, set_id, owner)
        return watching.tail(session, ids, view, of, after=start, last=last or 0, follows=follow)
    return _tail_one(session, jobs[0], view, start, last or 0, follow)


def _tail_one(session: Session, job: str, view: View, after: int, last: int, follow: bool) -> int:
    start = begin(session.api, job, view.choice, after, last)
    if follow:
        return watch(session, job, start, whole=False, view=view, last=last)
    with open_screen(session.out, view) as screen:
        Follower(session.api, job, screen, start, last).catch_up()
    return 0
