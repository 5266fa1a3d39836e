"""penstock job cancel, retry."""

from __future__ import annotations

import time

import click

from penstock.cli.client import Object
from penstock.cli.errors import Refused
from penstock.cli.follow import SLOW, goes_on
from penstock.cli.framework import Command, arguments
from penstock.cli.output import Column
from penstock.cli.session import Session, pass_session

CANCELLED = (
    Column("ID", "id"),
    Column("STATE", lambda job: job.get("outcome") or job["state"]),
    Column("NAME", "name"),
)


@click.command(cls=Command)
@click.argument("job", required=False, metavar="JOB")
@click.option("--set", "set_id", metavar="ID", help="End every job of a set.")
@click.option("--wait", is_flag=True, help="Wait until the job has settled.")
@pass_session
def cancel(session: Session, job: str | None, set_id: str | None, wait: bool) -> None:
    """End a job, or all of a set. What it made so far is still kept."""
    if (job is None) == (set_id is None):
        raise click.UsageError("give a JOB, or --set ID")
    if job is None:
        _cancel_set(session, str(set_id), wait)
        return
    found = dict(session.api.act("jobs", job, "cancel"))
    if wait:
        found = settled(session, found)
    session.out.done(_said(found), found)


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
    session.out.table(found, CANCELLED, f"nothing of set {set_id} is left to cancel")


def settled(session: Session, job: Object) -> Object:
    """The job once it has settled. Raises Interrupted on Ctrl-C."""
    try:
        while job["state"] != "settled":
            session.out.notice(f"job {job['id']} is {job['state']}: waiting for its end")
            time.sleep(SLOW / 2)
            job = session.api.job(job["id"])
    except KeyboardInterrupt:
        raise goes_on(job["id"]) from None
    return job


def _said(job: Object) -> str:
    if job["state"] != "settled":
        return f"job {job['id']} is being cancelled (it is {job['state']})"
    return f"job {job['id']} {job['outcome']}: {job.get('reason') or 'no reason is known'}"


@click.command(cls=Command)
@arguments("JOB")
@pass_session
def retry(session: Session, job: str) -> None:
    """Submit the same job again; prints the new job's id."""
    answer = session.api.make("jobs", job, "retry")
    session.out.done(str(answer["id"]), answer)
    if not session.json:
        session.out.note(f"`penstock job tail {answer['id']}` follows it")
