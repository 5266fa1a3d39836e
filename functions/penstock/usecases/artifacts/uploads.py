"""Uploads: in one piece, or in parts. The sender gets URLs; we check what has arrived. [ART-2]

Used for inputs, outputs and archives of caches.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

from penstock.domain.artifacts import artifacts, volumes
from penstock.domain.artifacts.artifacts import Artifact, ArtifactState
from penstock.domain.artifacts.content import Content
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.commands import NewFile, Parts
from penstock.domain.replies import PartUpload, PartUploads, Upload
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Replace
from penstock.ports import Grant
from penstock.system import System, current_site

_DIGEST = r"[0-9a-f]{64}"

NO_UPLOAD = Upload(method="", url="", headers={}, part_bytes=0)


def check(kind: str, name: str, file: NewFile, most: int) -> None:
    """Raises Refused 400 for an invalid declaration, 413 for more than `most` bytes."""
    digests = [file.sha256, *([file.composite] if file.composite else [])]
    if file.size < 0 or not all(re.fullmatch(_DIGEST, each) for each in digests):
        raise Refused(
            400, "bad-request", f"{name[:200]!r} needs a size, and 64 hex digits, in lower case, for a SHA-256"
        )
    if file.size > most:
        raise Refused(413, f"{kind}-too-big", f"{name} has {file.size} bytes; the site takes {most}")
    if file.size > volumes.WHOLE_BYTES and not file.composite:
        raise Refused(400, "bad-request", f"{name} is too big to be sent in one piece: say `composite`, and send parts")


def sign_upload(on: System, artifact: Artifact) -> Upload:
    """Where to upload an artifact's bytes, as its row announces them; if in parts, each part is signed on request."""
    if artifact.composite:
        return replace(NO_UPLOAD, part_bytes=volumes.PART_BYTES)
    given = on.objects.upload(object_name(artifact.id), artifact.size, artifact.sha256)
    return Upload(given.method, given.url, dict(given.headers), part_bytes=0)


def sign_parts(on: System, artifact: Artifact, ask: Parts) -> PartUploads:
    """Where to upload some parts; parts that have arrived are skipped. Raises Refused 400, and 409 once all are there.

    A finished upload is not begun again, so that nobody sends parts to an object that has a name. One that goes on has
    more time.
    """
    if artifact.state is not ArtifactState.CREATING:
        raise Refused(409, "upload-over", f"{artifact.path[:200]} has arrived: its parts are joined")
    try:
        if not artifact.composite:
            raise ValueError("it is sent in one piece")
        wanted = volumes.name_parts(artifact.size, ask.first, ask.sha256)
    except ValueError as error:
        raise Refused(400, "bad-request", f"{artifact.path[:200]}: {error}") from error
    _renew(on, artifact)
    found = on.objects.parts(object_name(artifact.id), wanted)
    return PartUploads([_signed_part(part.number, given) for part, given in zip(wanted, found, strict=True)])


def _renew(on: System, artifact: Artifact) -> None:
    """Give an upload more time, if it needs some. If another write comes first, the next request does it."""
    upload = timedelta(seconds=current_site(on).retention.upload)
    after = artifacts.renew(artifact, upload, on.world.now())
    if after != artifact:
        on.store.commit([Replace(artifact, after)])


def _signed_part(number: int, given: Grant | None) -> PartUpload:
    if given is None:
        return PartUpload(number, there=True, method="", url="", headers={})
    return PartUpload(number, there=False, method=given.method, url=given.url, headers=dict(given.headers))


def described(content: Content) -> dict[str, Any]:
    """How the agent that downloads some bytes checks them."""
    parts = {"composite": content.composite, "part_bytes": volumes.PART_BYTES} if content.composite else {}
    return {"size": content.size, "sha256": content.sha256, **parts}


def refuse_arrival(on: System, kind: str, id: str, name: str, announced: Content) -> Refused | None:
    """Why bytes are not those that were announced; None if they are, by the store's own digest. [ART-1]

    Parts are joined when all are there. Nothing gets a name before this.
    """
    found = _arrived(on, object_name(id), announced)
    if found is None or found.size != announced.size:
        there = found.size if found else 0
        return Refused(409, f"{kind}-incomplete", f"of {name} {there} of {announced.size} bytes have arrived")
    if found != announced:
        why = f"{name} was announced as {announced}; what arrived is {found}"
        return Refused(409, f"{kind}-differs", why)
    return None


def _arrived(on: System, name: str, announced: Content) -> Content | None:
    found = on.objects.content(name)
    if found is None and announced.composite:
        on.objects.join(name, volumes.count_parts(announced.size), announced.composite)
        found = on.objects.content(name)
    return found
