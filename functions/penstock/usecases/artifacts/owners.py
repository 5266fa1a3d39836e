"""Artifacts: created, owned, and deleted when nobody owns them any more. [ART-1] [ART-2]

All that keeps artifacts uses this. What releases one need not know the kinds of owners: it was the last, or it was not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from aws_lambda_powertools import Logger

from penstock.domain.artifacts import artifacts
from penstock.domain.artifacts.artifacts import Artifact, ArtifactState, artifact_key
from penstock.domain.artifacts.inputs import Input
from penstock.domain.artifacts.volumes import object_name
from penstock.kernel.rows import Change, Create, Delete, Replace
from penstock.listings import every_of
from penstock.system import System, transact
from penstock.usecases.users import users

log = Logger(child=True)


def find(on: System, id: str) -> Artifact | None:
    """An artifact; None if there is none, or if it is being destroyed."""
    found = on.store.get(artifact_key(id), Artifact) if artifacts.is_id(id) else None
    return found if found and found.state is not ArtifactState.DESTROYING else None


def made_for(on: System, job: str) -> Iterator[Artifact]:
    """All artifacts that were made for a job, by age, without those that are being destroyed."""
    found = every_of(on, f"job#{job}", "artifact#", Artifact)
    return (row for row in found if row.state is not ArtifactState.DESTROYING)


def outputs_of(on: System, job: str) -> Iterator[Artifact]:
    """The outputs that a job owns, by age."""
    return filter(artifacts.is_output, made_for(on, job))


def begin(artifact: Artifact, upload: timedelta) -> Change:
    """The row to create for a new artifact: it comes first, so that no bytes are unknown. [ART-2]"""
    return Create(replace(artifact, due=artifact.time + upload))


def arrival_change(on: System, id: str, owner: str, **known: Any) -> Change | None:
    """The change by which an artifact whose bytes were seen gets an owner; None when it is gone. [ART-1]

    `known` is what was not known when it was begun: its size and its digest.
    """
    artifact = find(on, id)
    return Replace(artifact, artifacts.arrive(replace(artifact, **known), owner)) if artifact else None


def existing(on: System, named: Sequence[str]) -> list[str]:
    """Which of some artifacts still exist: nobody may have the bytes of the others. [ART-2]"""
    return [id for id in named if find(on, id)]


def release_output(on: System, id: str, owner: str) -> None:
    """Take an output from its job; with the last owner it goes, and so does a name without bytes. [ART-1] [ART-2]"""

    def decide() -> tuple[Sequence[Change], None]:
        row = find(on, id)
        return ([destroy_change(on, row)] if row and artifacts.is_begun(row) else release_changes(on, row, owner)), None

    transact(on, decide)


def release_input(on: System, name: Input, owner: str) -> None:
    """Delete a job's name for an artifact, and its ownership; with the last owner the artifact. [ART-1]"""

    def decide() -> tuple[Sequence[Change], None]:
        row = on.store.get(name.key, Input)
        return ([Delete(row), *release_changes(on, find(on, row.artifact), owner)] if row else []), None

    transact(on, decide)


def release_changes(on: System, artifact: Artifact | None, owner: str) -> list[Change]:
    """The changes by which an artifact loses an owner; none if it is gone. [ART-1] [ART-2]"""
    if artifact is None:
        return []
    left = artifacts.disown(artifact, owner, on.world.now())
    return [Replace(artifact, left)] if left != artifact else []


def destroy_change(on: System, artifact: Artifact) -> Change:
    """The end of an artifact that nobody owns: only this write begins to destroy its bytes. [ART-1]"""
    return Replace(artifact, artifacts.destroy(artifact, on.world.now()))


def move_on(on: System, id: str) -> None:
    """Do what an artifact's row is due for."""
    delete_unowned(on, id)
    delete_bytes(on, id)


def delete_unowned(on: System, id: str) -> None:
    """Begin to destroy an artifact that nobody came to own in time. [ART-1] [ART-2]"""

    def decide() -> tuple[Sequence[Change], None]:
        row = find(on, id)
        return ([destroy_change(on, row)] if row and artifacts.is_abandoned(row, on.world.now()) else []), None

    transact(on, decide)


def delete_bytes(on: System, id: str) -> None:
    """Delete bytes that nobody owns; the row goes once they are verified to be gone. [ART-1]

    The try is written first, with the time of the next.
    """
    row, now, name = on.store.get(artifact_key(id), Artifact), on.world.now(), object_name(id)
    if row is None or row.state is not ArtifactState.DESTROYING or (row.due and row.due > now):
        return
    if not on.store.commit([Replace(row, artifacts.begin_deletion(row, now))]):
        return
    if row.composite:
        on.objects.abandon(name)
    on.objects.delete(name)
    if on.objects.size(name) is not None:
        log.warning("bytes were deleted and are still there", extra={"object": name})
        return
    transact(on, lambda: _gone_changes(on, id))


def _gone_changes(on: System, id: str) -> tuple[Sequence[Change], None]:
    """The end of an artifact's row: its maker's tally has it no more."""
    left = on.store.get(artifact_key(id), Artifact)
    return ([Delete(left), *users.discount_bytes(on, left)] if left else []), None
