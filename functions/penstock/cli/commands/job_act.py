"""penstock job cancel, retry."""

from __future__ import annotations

import time

import click

from penstock.cli.client import Object
from penstock.cli.follow import SLOW, goes_on
from penstock.cli.framework import Command, arguments
from penstock.cli.session import Session, pass_session


@click.command(cls=Command)
@arguments("JOB")
@click.option("--wait", is_flag=True, help="Wait until the job has settled.")
@pass_session
def cancel(session: Session, job: str, wait: bool) -> None:
    """End a job. What it made so far is still kept."""
    found = dict(session.api.act("jobs", job, "cancel"))
    if wait:
        found = settled(session, found)
    session.out.done(_said(found), found)


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
