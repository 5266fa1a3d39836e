"""Uploads: in one piece, or in parts. The sender gets URLs; we check what has arrived. [ART-2]

Used for inputs, outputs and archives of caches.
"""

from __future__ import annotations

import re
from dataclasses import replace

from penstock.domain.artifacts import volumes
from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.commands import NewFile, Parts
from penstock.domain.replies import PartUpload, PartUploads, Upload
from penstock.kernel.errors import Refused
from penstock.ports import Grant
from penstock.system import System
from penstock.usecases.artifacts import owners

_DIGEST = re.compile(r"[0-9a-f]{64}")

NO_UPLOAD = Upload(method="", url="", headers={}, part_bytes=0)


def check(kind: str, name: str, file: NewFile, most: int) -> None:
    """Raises Refused 400 for an invalid declaration, 413 for more than `most` bytes."""
    digests = [file.sha256, *([file.composite] if file.composite else [])]
    if file.size < 0 or not all(map(_DIGEST.fullmatch, digests)):
        raise Refused(
            400, "bad-request", f"{name[:200]!r} needs a size, and 64 hex digits, in lower case, for a SHA-256"
        )
    if file.size > most:
        raise Refused(413, f"{kind}-too-big", f"{name} has {file.size} bytes; the site takes {most}")
    if file.size > volumes.WHOLE_BYTES and not file.composite:
        raise Refused(400, "bad-request", f"{name} is too big to be sent in one piece: say `composite`, and send parts")


def sign_upload(on: System, id: str, file: NewFile) -> Upload:
    """Where to upload an artifact's bytes; if in parts, each part is signed on request."""
    if file.composite:
        return replace(NO_UPLOAD, part_bytes=volumes.PART_BYTES)
    given = on.objects.upload(object_name(id), file.size, file.sha256)
    return Upload(given.method, given.url, dict(given.headers), part_bytes=0)


def sign_parts(on: System, artifact: Artifact, ask: Parts) -> PartUploads:
    """Where to upload some parts; parts that have arrived are skipped. Raises Refused 400."""
    try:
        if not artifact.composite:
            raise ValueError("it is sent in one piece")
        wanted = volumes.name_parts(artifact.size, ask.first, ask.sha256)
    except ValueError as error:
        raise Refused(400, "bad-request", f"{artifact.path[:200]}: {error}") from error
    found = on.objects.parts(object_name(artifact.id), wanted)
    return PartUploads([_signed_part(part.number, given) for part, given in zip(wanted, found, strict=True)])


def _signed_part(number: int, given: Grant | None) -> PartUpload:
    if given is None:
        return PartUpload(number, there=True, method="", url="", headers={})
    return PartUpload(number, there=False, method=given.method, url=given.url, headers=dict(given.headers))


def arrived_bytes(on: System, id: str, size: int) -> int | None:
    """How many bytes of an artifact have arrived; None for none. Parts are joined when all are there. [ART-1]"""
    name = object_name(id)
    found = on.objects.size(name)
    artifact = owners.find(on, id) if found is None else None
    if artifact and artifact.composite:
        on.objects.join(name, volumes.count_parts(size), artifact.composite)
        found = on.objects.size(name)
    return found
