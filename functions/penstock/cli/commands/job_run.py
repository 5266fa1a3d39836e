"""penstock job run, tail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from penstock.cli.errors import OUTCOME_CODES, CliError, Interrupted
from penstock.cli.follow import Follower
from penstock.cli.framework import Command, arguments
from penstock.cli.screen import open_screen
from penstock.cli.session import Session, pass_session
from penstock.cli.summary import summarize
from penstock.cli.values import depend, duration, mapping, pair

LEAST, MOST = -100, 100
SEE_LIST = "`penstock job list` shows it, `penstock job cancel` ends it"


@click.command(cls=Command, epilog="Example: penstock job run build.sh -t ubuntu-24.04 -r bench -O '/work/*.log'")
@click.argument("file", metavar="FILE|DIR")
@click.option("-t", "--target", metavar="TARGET", help="Where it runs (default: what the file says).")
@click.option("-r", "--resource", "resources", multiple=True, metavar="NAME", help="A resource type it needs.")
@click.option("-O", "--output", "rules", multiple=True, metavar="RULE", help="Files to keep: '/work/*.log'.")
@click.option("-i", "--input", "inputs", multiple=True, metavar="[NAME=]PATH", help="A file it reads.")
@click.option(
    "-d", "--depend", "depends", multiple=True, type=pair, metavar="NAME=JOB", help="A job before it: its id."
)
@click.option("-T", "--tag", "tags", multiple=True, type=pair, metavar="K=V", help="A tag to find it by.")
@click.option("-e", "--env", multiple=True, type=pair, metavar="K=V", help="A variable of its environment.")
@click.option("-n", "--name", metavar="NAME", help="What it is called (default: what the file says).")
@click.option("--owner", metavar="REPOSITORY", help="Whose it is, if not yours: oxide:hubris.")
@click.option("--cache-scope", metavar="BRANCH", help="Save caches for this branch, or trunk (docs/users/caches.md).")
@click.option("--priority", type=click.IntRange(LEAST, MOST), metavar="N", help="Higher goes first.")
@click.option("--timeout", type=duration, metavar="D", help="How long it may run: 30m.")
@click.option("--retries", type=click.IntRange(0), metavar="N", help="How many lost machines it survives.")
@click.option("--hold-on-failure", type=duration, metavar="D", help="Hold what it had so long if it fails: 30m.")
@click.option("-v", "--verbose", is_flag=True, help="Show every service line, not only the essential ones.")
@click.option("-W", "--no-wait", is_flag=True, help="Print the job's id and leave.")
@click.option("--set", "set_id", metavar="ID", help="With DIR: go on with the run of this name.")
@click.option(
    "--changed", multiple=True, metavar="PATH", help="Only the jobs that this changed file concerns: their `paths`."
)
@click.option("--since", metavar="REV", help="Only the jobs that what was changed since this revision concerns.")
@click.option("--plan", is_flag=True, help="Submit nothing: show what it would acquire and wait for.")
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
    """Submit a job file; stream its log and exit as the job did. FILE - is stdin. DIR is a set of jobs.

    The file is checked first. The job's stdout goes to stdout, everything else to stderr; with --json the whole
    log goes to stderr, and stdout gets the settled job. Ctrl-C leaves the job running.

    The .sh files of a folder are submitted together, as they depend on each other, and so are the jobs of a file with
    a matrix; the exit code is the worst of theirs. Options count for each. What broke off is gone on with by --set.
    With --changed or --since, jobs whose `paths` match no changed file are left out (docs/users/dependencies.md).
    """
    from penstock.cli.submit import is_many

    wishes = _wishes(**options)
    some = bool(changed) or since is not None
    if is_many(file) or (some and file != "-"):
        alone = {"-i": inputs, "-d": wishes["dependencies"], "-n": wishes["name"]}
        news = _changed(file, changed, since) if some else None
        return _run_set(session, file, set_id, news, no_wait=no_wait, planned=plan, wishes=wishes, alone=alone)
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
    from penstock.cli.inputs import given
    from penstock.cli.submit import request

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
    return watch(session, job, 0, whole=True, verbose=verbose)


def _submit(session: Session, body: dict[str, Any], files: dict[str, Path]) -> str:
    """Submit a job and send its files. Ctrl-C says what stands, and how to go on."""
    from penstock.cli.inputs import send

    try:
        job = session.api.submit(body)
    except KeyboardInterrupt:
        raise Interrupted("stopped; the job may have been submitted already", SEE_LIST) from None
    try:
        send(session, job, files)
    except KeyboardInterrupt:
        raise Interrupted(
            f"stopped; job {job} waits for what was not sent",
            f"`penstock job send {job} [NAME=]PATH…` goes on, `penstock job cancel {job}` ends it",
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
    wishes: dict[str, object],
    alone: dict[str, object],
) -> int:
    from penstock.cli import sets
    from penstock.cli.submit import counted

    for option in (option for option, value in alone.items() if value):
        raise click.UsageError(f"{option} is for one job; of several, their files say it")
    jobs = sets.load(folder, set_id, changed)
    for name, why in jobs.left_out.items():
        session.out.note(f"{name}: left out: {why}")
    if not jobs.members:
        session.out.done("nothing to run: what was changed concerns no job", [])
        return 0
    if planned:
        sets.plan(session, jobs, wishes)
        return 0
    session.out.note(f"set {jobs.id}: {counted(len(jobs.members), 'job')}")
    ids = sets.submit(session, jobs, wishes)
    if not no_wait:
        return sets.follow(session, jobs, ids)
    session.out.table([{"id": id, "name": name} for name, id in ids.items()], sets.SUBMITTED, "")
    return 0


def _changed(file: str, given: Sequence[str], since: str | None) -> list[str]:
    """The changed files: those that are given, and those that git knows of."""
    from penstock.cli.changed import since_revision

    return [*given, *(since_revision(file, since) if since is not None else ())]


def _show_plan(session: Session, body: Mapping[str, object]) -> None:
    from penstock.cli.plan import show_plan

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
    **plain: object,
) -> dict[str, object]:
    """The options in the API's words."""
    return {
        **plain,
        "resources": list(resources),
        "output_rules": list(rules),
        "dependencies": {name: depend(job) for name, job in mapping(depends, "-d").items()},
        "tags": mapping(tags, "-T"),
        "env": mapping(env, "-e"),
    }


def watch(session: Session, job: str, after: int, *, whole: bool, verbose: bool = False, last: int = 0) -> int:
    """Show a job's log to its end, then how it ended; the exit code that says the same."""
    screen = open_screen(session.out, verbose=verbose, summary_follows=True, quiet_stdout=whole and session.json)
    with screen:
        Follower(session.api, job, screen, after, last).follow()
    settled = session.api.job(job)
    if whole and session.json:
        session.out.json(settled)
    else:
        summarize(session, settled)
    return OUTCOME_CODES.get(str(settled.get("outcome")), CliError.exit_code)


@click.command(cls=Command)
@arguments("JOB")
@click.option("-f", "--follow/--no-follow", default=True, help="Go on until the job settles (the default).")
@click.option("--after", type=click.IntRange(0), default=0, metavar="N", help="Only events after number N.")
@click.option("--from", "first", type=click.IntRange(1), default=1, metavar="N", help="Only from event number N on.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Of what there is already only the last N events.")
@click.option("-v", "--verbose", is_flag=True, help="Show every service line, not only the essential ones.")
@pass_session
def tail(session: Session, job: str, follow: bool, after: int, first: int, last: int | None, verbose: bool) -> int:
    """Show a job's log, follow it until the job settles, and exit as the job did.

    The log of a job that has settled is read from where it is kept, for as long as what the job owns. With --json every
    event is an object on a line of its own, service lines included.
    """
    start = max(after, first - 1)
    if follow:
        return watch(session, job, start, whole=False, verbose=verbose, last=last or 0)
    with open_screen(session.out, verbose=verbose) as screen:
        Follower(session.api, job, screen, start, last or 0).catch_up()
    return 0
