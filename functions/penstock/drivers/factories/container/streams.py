"""What the engine sends in parts: the progress of a pull, and the output of a container."""

from __future__ import annotations

import json
from collections.abc import Iterable

from penstock.drivers.factories.container.engine import TIMED_OUT, Engine, failure, scrubbed
from penstock.kernel.errors import Unknown

PULL_SECONDS = 45.0
"""For how long one call waits for a pull. The function has two minutes."""

LOG_LINES = 200
LOG_BYTES = 256 << 10
LOG_SECONDS = 10.0
EVIDENCE_CHARS = 8 * 1024
"""How many characters of the end of a container's output become evidence."""

HEADER = 8
"""Bytes before each part of an output: the stream, three zeros, and the part's length."""


def pull(engine: Engine, image: str, seconds: float = PULL_SECONDS) -> bool:
    """Pull an image, and return whether that is done; if not, it goes on with the next call. Raises DriverError."""
    name, _, digest = image.partition("@")
    try:
        with engine.stream("POST", "/images/create", {"fromImage": name, "tag": digest}, seconds) as parts:
            _check_progress(b"".join(parts))
    except Unknown as error:
        if error.code != TIMED_OUT:
            raise
        return False
    return engine.call("GET", f"/images/{image}/json", None, None, 404).status == 200


def _check_progress(body: bytes) -> None:
    """Raise the DriverError of a pull that failed: its status was sent long before."""
    for line in body.splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            continue  # the last line may be cut off
        if isinstance(said, dict) and said.get("error"):
            raise failure("a pull", 500, str(said["error"]))


def output(engine: Engine, id: str) -> str:
    """The end of what a container printed. Raises DriverError."""
    query = {"stdout": "1", "stderr": "1", "tail": str(LOG_LINES)}
    found = bytearray()
    with engine.stream("GET", f"/containers/{id}/logs", query, LOG_SECONDS) as parts:
        for part in parts:
            found += part
            if len(found) > LOG_BYTES:
                break
    return scrubbed(_text(bytes(found)).strip())[-EVIDENCE_CHARS:]


def _text(raw: bytes) -> str:
    """The text of an output: its parts without their headers; all of it, if it has no such headers."""
    return b"".join(_unframed(raw)).decode("utf-8", "replace")


def _unframed(raw: bytes) -> Iterable[bytes]:
    at = 0
    while at < len(raw):
        head = raw[at : at + HEADER]
        if len(head) < HEADER or head[0] > 2 or head[1:4] != b"\0\0\0":
            yield raw[at:]
            return
        size = int.from_bytes(head[4:], "big")
        yield raw[at + HEADER : at + HEADER + size]
        at += HEADER + size
