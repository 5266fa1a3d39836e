"""Archiving: a settled job's log becomes one object. Rows come first, and go last. [ART-1] [ART-2]

Settling a job creates the archive's row, unless its log is short, and the sweep calls `advance`. A step may stop
anywhere, and the next call continues: each step is one write that names what it assumed, and what it does to the object
before may be repeated. No step holds more than a part and a page of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256

from aws_lambda_powertools import Logger

from penstock.domain.artifacts.artifacts import JOB, LOG, Artifact, id_of, owner
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.logs import archives
from penstock.domain.logs.logs import Archive, ArchiveState, Batch, archive_key, batch_key
from penstock.domain.pools.pools import LeaseState
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Create, Delete, Replace
from penstock.system import System, current_site, transact
from penstock.usecases.artifacts import owners
from penstock.usecases.jobs import flow
from penstock.usecases.logs import logs

STEPS = 8
"""How many steps one call takes: some seconds of work, and 40 MiB."""

AT_ONCE = 10
"""How many batches are read at once: 2 MB of text."""

DELETED = 100
"""How many batches one step deletes."""

CHECKED = 4
"""How many parts one step reads back, one after the other."""

log = Logger(child=True)


@dataclass(frozen=True)
class FilledPart:
    """The next part of an object, and the row that says how far it reaches."""

    row: Archive
    content: bytes


def advance(on: System, job: str) -> None:
    """Take some steps of a log's archive, if it is due."""
    row, now = on.store.get(archive_key(job), Archive), on.world.now()
    if row is None or row.due is None or row.due > now:
        return
    if row.state in (ArchiveState.WRITING, ArchiveState.CHECKING):
        row = _save(on, row, archives.begin_step(row, now))
    for _ in range(STEPS):
        if row is None or row.due is None:
            return
        row = _STEPS[row.state](on, row)


def _save(on: System, was: Archive, row: Archive, *more: Change) -> Archive | None:
    """The row as it is after the write; None when another process moved first."""
    return replace(row, version=was.version + 1) if on.store.commit([Replace(was, row), *more]) else None


def _begin(on: System, row: Archive) -> Archive | None:
    """Decide which lines go into the object, once nothing more will be logged."""
    now, spans = on.world.now(), current_site(on).retention
    waits = None if _are_leases_released(on, row.job) else archives.wait(row, spans, now)
    if waits:
        _save(on, row, waits)
        return None
    last, job = logs.last_batch(on, row.job), on.store.get(job_key(row.job), Job)
    if last is None or job is None:
        return _save(on, row, replace(row, due=None))
    id = id_of(row.job, on.world.ulid())
    made = Artifact(id=id, path=archives.PATH, size=0, sha256="", by=job.owner, time=now, sort=LOG)
    upload = timedelta(seconds=spans.upload)
    return _save(on, row, archives.begin(row, last, id, now), owners.begin(made, upload))


def _are_leases_released(on: System, job: str) -> bool:
    return all(lease.state is LeaseState.RELEASED for lease in flow.leases_of_job(on, job))


def _write_part(on: System, row: Archive) -> Archive | None:
    """Write the next part. A log of one part is an object at once."""
    filled = _fill_part(on, row)
    if filled is None:
        return None
    name, is_all = object_name(row.artifact), filled.row.next >= row.end
    if is_all and not row.upload:
        on.objects.store(name, filled.content)
        return _verify(on, row, archives.add_part(filled.row, filled.content, ""))
    if not row.upload:
        return _save(on, row, replace(row, upload=on.objects.begin(name)))
    tag = on.objects.part(name, row.upload, len(row.parts) + 1, filled.content)
    if tag is None:
        return _start_over(on, row)
    return _save(on, row, archives.add_part(filled.row, filled.content, tag))


def _fill_part(on: System, row: Archive) -> FilledPart | None:
    """The lines of the next part: whole batches. None when another process has archived them already."""
    content = bytearray()
    while not _is_part_full(row, content):
        place = batch_key(row.job, row.next - 1).sk
        found = on.store.find(f"job#{row.job}", "event#", Batch, limit=AT_ONCE, after=place)
        if not found or found[0].first != row.next:
            return None
        for batch in found:
            row, lines = archives.encode_batch(row, batch, len(content))
            content += lines
            if _is_part_full(row, content):
                break
    return FilledPart(row, bytes(content))


def _is_part_full(row: Archive, content: bytearray) -> bool:
    return row.next >= row.end or len(content) >= archives.PART_BYTES


def _verify(on: System, was: Archive, row: Archive) -> Archive | None:
    """Read parts back. When all are there as written, the object is the job's. [ART-1]"""
    name = object_name(row.artifact)
    start = sum(part.size for part in row.parts[: row.checked])
    some = row.parts[row.checked : row.checked + CHECKED]
    for part in some:
        if sha256(on.objects.read(name, start, part.size)).hexdigest() != part.sha256:
            return _start_over(on, was)
        start += part.size
    row = replace(row, checked=row.checked + len(some))
    if row.checked < len(row.parts):
        return _save(on, was, row)
    if on.objects.size(name) != row.size:
        return _start_over(on, was)
    owned = owners.arrival_change(on, row.artifact, owner(JOB, row.job), size=row.size, sha256=row.digest)
    return _start_over(on, was) if owned is None else _save(on, was, archives.archived(row, on.world.now()), owned)


def _start_over(on: System, row: Archive) -> Archive | None:
    """Start again, later: nobody owns what was written, so it is deleted by itself. [ART-2]"""
    log.warning("a log was not archived as it was written", extra={"job": row.job, "artifact": row.artifact})
    _save(on, row, archives.restart(row, on.world.now()))
    return None


def _complete(on: System, row: Archive) -> Archive | None:
    if not row.checked:
        on.objects.complete(object_name(row.artifact), row.upload, [part.tag for part in row.parts])
    return _verify(on, row, row)


def _delete(on: System, row: Archive) -> Archive | None:
    """Delete the rows that the object has, or those of a log that is gone; the oldest first, so that no gap is seen."""
    upto = batch_key(row.job, row.end - 1).sk if row.state is ArchiveState.ARCHIVED else ""
    for _ in range(DELETED // AT_ONCE):
        found = on.store.find(f"job#{row.job}", "event#", Batch, limit=AT_ONCE, upto=upto)
        if not found:
            _save(on, row, archives.rows_deleted(row, on.world.now()))
            return None
        for batch in found:
            on.store.commit([Delete(batch)])
    return row


_STEPS: Mapping[ArchiveState, Callable[[System, Archive], Archive | None]] = {
    ArchiveState.WAITING: _begin,
    ArchiveState.WRITING: _write_part,
    ArchiveState.CHECKING: _complete,
    ArchiveState.ARCHIVED: _delete,
    ArchiveState.GONE: _delete,
}


def delete(on: System, job: str) -> None:
    """Delete the log of a job whose retention has ended; the job no longer owns its object. [ART-2]"""

    def decide() -> tuple[Sequence[Change], None]:
        row, now = on.store.get(archive_key(job), Archive), on.world.now()
        if row is None:
            return [Create(archives.never_archived(job, now))], None
        if row.state is ArchiveState.GONE:
            return [], None
        left = owners.release_changes(on, owners.find(on, row.artifact), owner(JOB, job))
        return [Replace(row, archives.gone(row, now)), *left], None

    transact(on, decide)
