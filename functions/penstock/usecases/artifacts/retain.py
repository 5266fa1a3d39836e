"""Retention: how long a job's outputs and inputs are kept. Set when it settles; dependents and failures extend it.

The first dependent creates the row, or else the job's end does. So a settled job without one has nothing any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.domain.artifacts import retention
from penstock.domain.artifacts.retention import LatestFailure, Retention, retention_key
from penstock.domain.jobs.jobs import Job, job_key
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.rows import Change, Check, Create, Replace
from penstock.system import System, current_site, transact


def on_settled(on: System, job: Job) -> list[Change]:
    """The changes to write with a job's settling: until when what it owns is kept."""
    row = on.store.get(retention_key(job.id), Retention)
    after = retention.settled(row or Retention(job=job.id), job, current_site(on).retention)
    if row is None:
        return [Create(after)] if after.until else []
    return [Replace(row, after)] if after != row else []


def pin(on: System, job: str, dependent: str) -> list[Change]:
    """The changes to write with a job that depends on another: all that that owns is kept until this one settles.
    [ART-1]

    Raises Refused 404 for a job that does not exist, 422 if its outputs are gone, 409 if too many depend on it.
    """
    row = on.store.get(retention_key(job), Retention)
    if row is None:
        return _first_pin(on, job, dependent)
    after = retention.pinned(row, dependent)
    if isinstance(after, Refused):
        raise after
    return [Replace(row, after)] if after != row else []


def _first_pin(on: System, job: str, dependent: str) -> list[Change]:
    """The first dependent of a job, which must not settle before this is written: its end creates the same row."""
    row = on.store.get(job_key(job), Job)
    if row is None:
        raise not_found("job", job)
    if row.is_settled:
        raise retention.outputs_gone(job, row.end.outputs_gone or row.times.submitted)
    return [Create(Retention(job=job, dependents=(dependent,))), Check(row)]


def unpin(on: System, job: str, dependent: str) -> None:
    """Stop keeping what a job owns for a dependent. Safe to repeat."""

    def decide() -> tuple[Sequence[Change], None]:
        row = on.store.get(retention_key(job), Retention)
        after = row and retention.unpinned(row, dependent)
        return ([Replace(row, after)] if row and after and after != row else []), None

    transact(on, decide)


def keep_latest_failure(on: System, job: Job) -> None:
    """Keep the job's outputs longer if its failure is the latest of its name; the one before no longer so.

    A crash before this loses nothing but the longer time, and the sweep repeats this before it ends any retention.
    """
    failure = retention.failure(job)
    if failure:
        transact(on, lambda: _latest_failure_changes(on, failure))


def _latest_failure_changes(on: System, failure: LatestFailure) -> tuple[Sequence[Change], None]:
    known = on.store.get(failure.key, LatestFailure)
    row = on.store.get(retention_key(failure.job), Retention)
    is_known = known is not None and known.job == failure.job
    is_later = known is None or is_known or (failure.settled, failure.job) > (known.settled, known.job)
    if row is None or row.ended or not is_later or (is_known and row.longer):
        return [], None
    longer = retention.longer(row, failure, current_site(on).retention)
    changes: list[Change] = [Replace(known, failure) if known else Create(failure), Replace(row, longer)]
    last = on.store.get(retention_key(known.job), Retention) if known and not is_known else None
    return [*changes, *([Replace(last, replace(last, longer=None))] if last and not last.ended else [])], None
