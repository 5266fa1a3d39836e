"""The sweep of what nobody waits for: artifacts without owners, retention that ended, archives, pins and caches.
[ART-2]

They have shards of their own in the due index, so that nothing that somebody waits for is behind them. When a job's
retention ends, no job can come to depend on it any more; an input's name goes with its ownership in one write, and
the job records at last when its outputs went. Any call may stop anywhere, and the next continues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from aws_lambda_powertools import Logger

from penstock.domain import metrics
from penstock.domain.artifacts import artifacts, retention
from penstock.domain.artifacts.artifacts import JOB, id_of, owner
from penstock.domain.artifacts.inputs import Input
from penstock.domain.artifacts.retention import LatestFailure, Retention, latest_key
from penstock.domain.jobs.jobs import Job, job_key
from penstock.kernel.rows import Change, Delete, Key, Replace
from penstock.system import System, current_site, transact
from penstock.usecases import caches
from penstock.usecases.artifacts import inventory, owners, pins
from penstock.usecases.jobs import bills
from penstock.usecases.jobs.settle import find_retention, keep_latest_failure, retention_changes
from penstock.usecases.logs import archives
from penstock.usecases.overdue import Walk

WITHIN = timedelta(seconds=20)
"""After how long a sweep leaves the rest of these rows to messages: one log may take some seconds."""

log = Logger(child=True)

NUDGES: Mapping[str, Callable[[System, str, str], None]] = {
    "archive": lambda on, id, _: archives.advance(on, id),
    "artifact": lambda on, job, ulid: owners.move_on(on, id_of(job, ulid)),
    "retention": lambda on, id, _: end_retention(on, id),
    Job.ends_as: lambda on, id, _: move_on_settled(on, id),
    "cache": lambda on, owner, place: caches.expire(on, owner, place),
    "pin": lambda on, id, by: pins.expire(on, id, by),
}

AT_ONCE = 50
"""How many inputs and outputs one call releases; the next continues."""


@dataclass
class ExpireResult:
    """The counts of one sweep."""

    moved: int = 0
    failed: int = 0


def expire_overdue(on: System, left: datetime | None = None) -> ExpireResult:
    """Move on what is overdue. A failure of one row does not stop the others. `left`: see `overdue.Walk`."""
    now = on.world.now()
    walk = Walk(on, nudge, now + WITHIN, left or now + WITHIN)
    walk.take(on.store.shards(later=True))
    try:
        inventory.compare_next(on)
    except Exception:
        log.exception("the store could not be compared with the rows")
        on.metrics.add(metrics.STORE_UNLISTED)
    on.metrics.add(metrics.TIDY_LATE, walk.late)
    return ExpireResult(walk.overdue - walk.rows.failed, walk.rows.failed)


def nudge(on: System, kind: str, key: Key) -> None:
    """Move on one row, by its kind."""
    act = NUDGES.get(kind)
    if act:
        act(on, key.pk.partition("#")[2], key.sk.partition("#")[2])


def move_on_settled(on: System, job: str) -> None:
    """Close a settled job's bill if it is due, or else end its retention. If both are, two nudges do it."""
    if bills.is_due(on, on.store.get(job_key(job), Job)):
        bills.close(on, job)
    else:
        end_retention(on, job)


def end_retention(on: System, job: str) -> None:
    """End a job's retention, or release the names of what it owned. [ART-1] [ART-2]"""
    row, found = find_retention(on, job)
    if row is None or row.deadline is None or row.deadline > on.world.now():
        return
    if row.ended is None:
        if found:
            keep_latest_failure(on, found)  # if nobody did so when the job settled
        transact(on, lambda: _end_changes(on, job))
    else:
        _release_all(on, row, found)


def _end_changes(on: System, job: str) -> tuple[Sequence[Change], None]:
    row, found = find_retention(on, job)
    now = on.world.now()
    if row is None or row.ended or row.deadline is None or row.deadline > now:
        return [], None
    left = _unsettled(on, row)
    spans = current_site(on).retention
    after = retention.recheck(row, left, spans, now) if left else retention.end(replace(row, dependents=()), now)
    return retention_changes(row, found, after), None


def _unsettled(on: System, row: Retention) -> tuple[str, ...]:
    """The dependents, without the settled ones at their front, whose removal was lost.

    The first unsettled one is enough to keep the job's outputs, so that a thousand rows need not be read.
    """
    for at, name in enumerate(row.dependents):
        job = on.store.get(job_key(name), Job)
        if job and not job.is_settled:
            return row.dependents[at:]
    return ()


def _release_all(on: System, row: Retention, found: Job | None) -> None:
    """Release the inputs and outputs that a job owns, and what was only named; then its log. Pinned outputs stay."""
    job, mine = row.job, owner(JOB, row.job)
    names = on.store.find(f"job#{job}", "input#", Input, limit=AT_ONCE)
    left = (row for row in owners.made_for(on, job) if artifacts.is_output(row) or artifacts.is_begun(row))
    kept = list(islice(left, AT_ONCE - len(names)))
    for name in names:
        owners.release_input(on, name, mine)
    for output in kept:
        owners.release_output(on, output.id, mine)
    if len(names) + len(kept) == AT_ONCE:
        teller = retention.teller(row, found)
        on.store.commit([Replace(teller, teller)])  # so that the next sweep goes on: something came of this one
        return
    archives.delete(on, job)
    transact(on, lambda: _close_changes(on, job))


def _close_changes(on: System, job: str) -> tuple[Sequence[Change], None]:
    """Nothing is left: the job records that, and the rows of its retention go."""
    row, found = find_retention(on, job)
    if row is None:
        return [], None
    changes: list[Change] = [Delete(row)] if retention.teller(row, found) is row else []
    if found:
        latest = on.store.get(latest_key(found.owner, found.name), LatestFailure)
        changes += [Delete(latest)] if latest and latest.job == job else []
        changes.append(Replace(found, retention.hand_over(retention.tell(found, row))))
    return changes, None
