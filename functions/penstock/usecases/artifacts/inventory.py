"""Comparison of the object store with the rows of artifacts, some of it with each sweep. [ART-1] [ART-2]

Objects that no row knows of get a row after a while, as being destroyed. Rows whose bytes are missing are marked as
lost and reported; nothing is deleted for that. If a list cannot be had, nothing is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from aws_lambda_powertools import Logger

from penstock.domain import metrics
from penstock.domain.artifacts import artifacts, volumes
from penstock.domain.artifacts.artifacts import Artifact, artifact_key, listing
from penstock.domain.artifacts.retention import Spans
from penstock.domain.artifacts.volumes import INVENTORY_KEY, PREFIX, Inventory, object_name
from penstock.domain.jobs.jobs import Job, job_key
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Create, Replace
from penstock.ports import Stored
from penstock.system import System, current_site
from penstock.usecases.isolation import Isolation
from penstock.usecases.logs import logs

PAGE = 500
"""How many objects, and how many rows, one sweep compares."""

log = Logger(child=True)


@dataclass(frozen=True)
class NameRange:
    """A range of the store's names: the objects and rows in it, and its last name; "" for the last range."""

    objects: Sequence[Stored]
    rows: Sequence[Artifact]
    upto: str


def compare_next(on: System) -> None:
    """Compare the next range, if one is due. If another sweep commits first, that one acts."""
    row, now, spans = on.store.get(INVENTORY_KEY, Inventory), on.world.now(), current_site(on).retention
    if row and not row.after and row.began + timedelta(seconds=spans.inventory) > now:
        return
    begun = row if row and row.after else Inventory(began=now)
    part = _read_range(on, begun.after)
    continued = replace(begun, after=part.upto)
    if on.store.commit([Replace(row, continued) if row else Create(continued)]):
        steps = Isolation()
        _adopt_strays(on, part, spans, steps)
        _mark_missing(on, part, steps)
        on.metrics.add(metrics.FAILED_NUDGES, steps.failed)


def _read_range(on: System, after: str) -> NameRange:
    """The list first, then the rows: an object that is stored in between has its row before. Raises if there is no
    list.
    """
    objects = on.objects.list(PREFIX, after, PAGE)
    place = listing(after.removeprefix(PREFIX))
    rows = on.store.listed(place.name, Artifact, limit=PAGE, after=place.sort)
    ends = [objects[-1].name] if len(objects) == PAGE else []
    ends += [object_name(rows[-1].id)] if len(rows) == PAGE else []
    upto = min(ends, default="")
    if not upto:
        return NameRange(objects, rows, "")
    return NameRange(
        [each for each in objects if each.name <= upto], [each for each in rows if object_name(each.id) <= upto], upto
    )  # fmt: skip


def _adopt_strays(on: System, part: NameRange, spans: Spans, steps: Isolation) -> None:
    """Give objects without a row one, to be destroyed. Objects not named by us are left alone. [ART-2]"""
    known, now = {row.id for row in part.rows}, on.world.now()
    for each in part.objects:
        artifact = volumes.artifact_of(each.name)
        if artifact in known or each.time + timedelta(seconds=spans.stray) > now:
            continue
        if artifact is None:
            log.warning("an object in the store has no name of ours", extra={"object": each.name})
            continue
        with steps.step("adopting an object", object=each.name):
            _adopt(on, artifact, each)


def _adopt(on: System, artifact: str, found: Stored) -> None:
    if on.store.get(artifact_key(artifact), Artifact):  # the listing may lag; the row itself does not
        return
    adopted = artifacts.stray(artifact, found.size, on.world.now())
    if on.store.commit([Create(adopted)]):
        on.metrics.add(metrics.STRAY_OBJECTS)
        log.warning("bytes without a row are to be destroyed", extra={"object": found.name})


def _mark_missing(on: System, part: NameRange, steps: Isolation) -> None:
    """Mark bytes as lost that are neither listed nor there; take back the mark of those that are. [ART-1]"""
    there = {each.name for each in part.objects}
    for row in part.rows:
        name = object_name(row.id)
        if (name in there) is (row.lost is not None):
            with steps.step("comparing an object", object=name):
                _mark(on, row)


def _mark(on: System, row: Artifact) -> None:
    is_there = on.objects.size(object_name(row.id)) is not None
    after = artifacts.mark_found(row) if is_there else artifacts.mark_lost(row, on.world.now())
    if after != row and on.store.commit([Replace(row, after)]) and after.lost:
        _report_lost(on, row)


def _report_lost(on: System, artifact: Artifact) -> None:
    """Report lost bytes in our log, in a metric, and in the logs of the jobs that own them."""
    on.metrics.add(metrics.BYTES_LOST)
    log.error("the bytes of an artifact are lost", extra={"artifact": artifact.id, "size": artifact.size})
    for kind, id in map(artifacts.parts, artifact.owners):
        job = on.store.get(job_key(id), Job) if kind == artifacts.JOB else None
        if job:
            logs.append(on, id, job.attempt, f"{artifact.path} is lost: its bytes are no longer in the store")
