"""Artifacts: created, owned, and deleted when nobody owns them any more. [ART-1] [ART-2]

All that keeps artifacts uses this. What releases one need not know the kinds of owners: it was the last, or it was not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from aws_lambda_powertools import Logger

from penstock import transaction
from penstock.domain.artifacts import artifacts, volumes
from penstock.domain.artifacts.artifacts import CACHE, Artifact, Name, artifact_key, collection
from penstock.domain.artifacts.outputs import Output, output_key
from penstock.domain.artifacts.volumes import Volume, VolumeState, volume_key
from penstock.kernel import rows
from penstock.kernel.rows import Change, Create, Delete, Key, Replace
from penstock.system import System

log = Logger(child=True)


def begin(artifact: Artifact, upload: timedelta) -> list[Change]:
    """The rows to create with a new artifact: they come first, so that no bytes are unknown. [ART-2]"""
    due = artifact.time + upload
    volume = Volume(
        artifact=artifact.id, state=VolumeState.CREATING, since=artifact.time, size=artifact.size,
        in_parts=bool(artifact.composite), due=due,
    )  # fmt: skip
    return [Create(replace(artifact, due=due)), Create(volume)]


def arrival_changes(on: System, id: str, owner: str, **known: Any) -> list[Change] | None:
    """The changes by which an artifact whose bytes were seen gets an owner; None when it is gone. [ART-1]

    `known` is what was not known when it was begun: its size and its digest.
    """
    artifact, volume = on.store.get(artifact_key(id), Artifact), on.store.get(volume_key(id), Volume)
    if artifact is None or volume is None or volume.state is VolumeState.DESTROYING:
        return None
    there = replace(volumes.arrive(volume, on.world.now()), size=known.get("size", volume.size))
    changes: list[Change] = [Replace(artifact, artifacts.own(replace(artifact, **known), owner))]
    return [*changes, Replace(volume, there)] if there != volume else changes


def existing(on: System, named: Sequence[str]) -> list[str]:
    """Which of some artifacts still exist: nobody may have the bytes of the others. [ART-2]"""
    return [id for id in named if rows.is_ulid(id) and on.store.get(artifact_key(id), Artifact)]


def release_name(on: System, name: Key, kind: type[Name], owner: str) -> None:
    """Delete a job's name for an artifact, and its ownership; with the last owner the artifact. [ART-1]"""

    def decide() -> tuple[Sequence[Change], None]:
        row = on.store.get(name, kind)
        artifact = on.store.get(artifact_key(row.artifact), Artifact) if row else None
        return ([Delete(row), *(release_changes(on, artifact, owner) if artifact else [])] if row else []), None

    transaction.run(on, decide)


def release_changes(on: System, artifact: Artifact, owner: str) -> list[Change]:
    """The changes by which an artifact loses an owner. [ART-1] [ART-2]"""
    left = artifacts.disown(artifact, owner)
    if left is None:
        return delete_changes(on, artifact)
    return [Replace(artifact, left)] if left != artifact else []


def delete_changes(on: System, artifact: Artifact) -> list[Change]:
    """The end of an artifact: only this write begins to destroy its bytes. [ART-1]

    A cache's archive may go while a job downloads it: its bytes stay until no URL for them is valid.
    """
    held = on.store.find(collection(artifact.id), "volume#", Volume)
    wait = volumes.DOWNLOAD_WITHIN if artifact.sort == CACHE else timedelta(0)
    dying = [(volume, volumes.destroy(volume, on.world.now(), wait)) for volume in held]
    return [Delete(artifact), *(Replace(volume, after) for volume, after in dying if after != volume)]


def delete_unowned(on: System, id: str) -> None:
    """Delete an artifact that nobody came to own in time, and the name that was prepared for it. [ART-1] [ART-2]"""

    def decide() -> tuple[Sequence[Change], None]:
        artifact = on.store.get(artifact_key(id), Artifact)
        if artifact is None or not artifacts.is_abandoned(artifact, on.world.now()):
            return [], None
        name = on.store.get(output_key(artifact.job, id), Output)
        return [*delete_changes(on, artifact), *([Delete(name)] if name else [])], None

    transaction.run(on, decide)


def expire_upload(on: System, id: str) -> None:
    """Destroy a volume whose bytes did not arrive in time, and its artifact if nobody owns that. [ART-2]"""

    def decide() -> tuple[Sequence[Change], None]:
        volume, now = on.store.get(volume_key(id), Volume), on.world.now()
        if volume is None or volume.state is not VolumeState.CREATING or volume.due is None or volume.due > now:
            return [], None
        return [Replace(volume, volumes.destroy(volume, now))], None

    delete_unowned(on, id)
    transaction.run(on, decide)


def destroy(on: System, id: str) -> None:
    """Delete bytes that nobody owns; the row goes once they are verified to be gone. [ART-1]

    The try is written first, with the time of the next.
    """
    volume, now = on.store.get(volume_key(id), Volume), on.world.now()
    if volume is None or volume.state is not VolumeState.DESTROYING or (volume.due and volume.due > now):
        return
    if not on.store.commit([Replace(volume, volumes.begin_deletion(volume, now))]):
        return
    if volume.in_parts:
        on.objects.abandon(volume.object_name)
    on.objects.delete(volume.object_name)
    if on.objects.size(volume.object_name) is not None:
        log.warning("bytes were deleted and are still there", extra={"object": volume.object_name})
        return
    left = on.store.get(volume.key, Volume)
    if left:
        on.store.commit([Delete(left)])
