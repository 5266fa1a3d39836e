"""A job's check run on GitHub: created once, and updated when something changes. Truth is the job's row; GitHub only
shows it.

The front end's function calls `sync` for each message that names a check.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from penstock.domain.github import checks, commits
from penstock.domain.github.checks import CALL_WITHIN, CONTROL, CheckRun
from penstock.domain.github.commits import MAX_TRIES, CheckSet, Stage, set_key
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.logs.logs import CONTROL as ESSENTIAL
from penstock.domain.logs.logs import DETAIL, Batch
from penstock.kernel.errors import RateLimited
from penstock.kernel.rows import Change, Key, Replace
from penstock.system import System, current_site, transact
from penstock.usecases.artifacts import outputs
from penstock.usecases.github import client
from penstock.usecases.github.client import Repository

BUSY_SECONDS = 5
"""Seconds until another process retries a check that is being updated."""

BATCHES_READ = 10
"""How many batches at the end of a log are searched for output of the script."""

APPROVED = {
    "status": "completed",
    "conclusion": "success",
    "output": {"title": "Its jobs are run", "summary": "Each of them has a check of its own."},
    "actions": [],
}

RUN_AGAIN = {
    "status": "completed",
    "conclusion": "cancelled",
    "output": {"title": "Run again", "summary": "Another run of it has taken its place."},
    "actions": [],
}


def sync(on: System, key: Key) -> None:
    """Bring GitHub up to date with a check. One process at a time: two could create two check runs."""
    row, now = on.store.get(key, CheckRun), on.world.now()
    if row is None:
        return
    if not (row.job or row.told or row.run_id or row.past):  # it is due again when it has content
        on.store.commit([Replace(row, replace(row, due=None))])
        return
    if row.busy and row.busy > now:
        on.forge.enqueue({"check": row.id}, BUSY_SECONDS)
        return
    due = now + commits.pause(row.tries) if row.tries < MAX_TRIES else None
    begun = row.begun or bool(row.job or row.told)
    taken = replace(row, begun=begun, busy=now + CALL_WITHIN, tries=row.tries + 1, due=due)
    if not on.store.commit([Replace(row, taken)]):
        on.forge.enqueue({"check": row.id}, BUSY_SECONDS)
        return
    job = on.store.get(job_key(row.job), Job) if row.job else None
    try:
        after = _synced(on, row, taken, job)
    except RateLimited as limited:
        after = replace(taken, tries=row.tries, due=now + timedelta(seconds=limited.seconds))
    transact(on, lambda: _record(on, taken, after))


def _synced(on: System, row: CheckRun, taken: CheckRun, job: Job | None) -> CheckRun:
    """End the check runs of earlier runs, and send this one. Returns the check as it is after that."""
    _end_past_runs(on, row)
    ended = replace(taken, past=(), tries=0, due=None)
    if not (row.job or row.told or row.run_id):
        return ended  # its job is not accepted yet
    content = _content(on, row, job)
    run_id, shown = _send(on, row, content)
    over = content["status"] == "completed"
    return replace(ended, run_id=run_id or 0, shown=shown, over=over, due=_next_look(on, run_id, job))


def _end_past_runs(on: System, row: CheckRun) -> None:
    """End the check runs of earlier runs, whose jobs have ended."""
    of = Repository(row.installation, row.repository_id, row.repository)
    for run in row.past:
        found = client.find_check_run(on, of, row.sha, row.name, row.external_id_of(run))
        if found:
            client.update_check_run(on, of, found, RUN_AGAIN)


def _content(on: System, row: CheckRun, job: Job | None) -> Mapping[str, Any]:
    """The content of the check run."""
    if job:
        kept = [one for one in outputs.list_outputs(on, job.id)[0] if one.attempt == job.attempt]
        return checks.job_output(job, _lines(on, job), kept, on.console_url or on.url, _reviewers(on, job))
    if row.number == CONTROL and not row.told:
        return APPROVED
    found = on.store.get(set_key(row.repository_id, row.sha), CheckSet)
    if row.waits:
        return checks.postponed_output(row.told, superseded=found is not None and found.stage is Stage.SUPERSEDED)
    approval = row.number == CONTROL and not row.annotations and found is not None and _awaits(found)
    return checks.message_output(row.told, row.annotations, approval=approval)


def _reviewers(on: System, job: Job) -> str:
    """Who may approve a job for its environment, if it waits for that."""
    found = current_site(on).environments.get(job.review.environment) if job.review else None
    return found.people if found and job.awaits_review else ""


def _lines(on: System, job: Job) -> list[str]:
    """The last lines of a log that the script wrote."""
    batches = on.store.find(f"job#{job.id}", "event#", Batch, limit=BATCHES_READ, last=True)
    lines = [line for batch in sorted(batches, key=lambda each: each.first) for line in batch.lines]
    return [line.payload for line in lines if line.stream not in (ESSENTIAL, DETAIL)]


def _awaits(found: CheckSet) -> bool:
    return found.stage is Stage.AWAITING


def _send(on: System, row: CheckRun, content: Mapping[str, Any]) -> tuple[int | None, str]:
    """Send GitHub what it does not show yet; returns the check run, and a digest of what it shows."""
    of = Repository(row.installation, row.repository_id, row.repository)
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
    if row.run_id:
        if digest != row.shown:
            client.update_check_run(on, of, row.run_id, content)
        return row.run_id, digest
    run = client.find_check_run(on, of, row.sha, row.name, row.external_id) if row.begun else None
    if run is None:
        named = {"name": row.name, "head_sha": row.sha, "external_id": row.external_id}
        return client.create_check_run(on, of, {**named, **content}), digest
    client.update_check_run(on, of, run, content)
    return run, digest


def _next_look(on: System, run_id: int | None, job: Job | None) -> Any:
    """When to update again: never if GitHub has no check run, or nothing will change."""
    return checks.next_check(job, on.world.now()) if job and run_id else None


def _record(on: System, taken: CheckRun, after: CheckRun) -> tuple[Sequence[Change], None]:
    """Record what GitHub shows. A check that was changed meanwhile keeps its change, and is due."""
    fresh = on.store.get(taken.key, CheckRun)
    if fresh is None:
        return [], None
    if fresh.version == taken.version + 1:
        return [Replace(fresh, replace(after, busy=None, version=fresh.version))], None
    if fresh.run != taken.run:
        return [Replace(fresh, replace(fresh, busy=None))], None
    on.forge.enqueue({"check": fresh.id}, BUSY_SECONDS)
    noted = replace(fresh, busy=None, run_id=after.run_id, shown=after.shown, over=after.over, past=after.past)
    return [Replace(fresh, noted)], None
