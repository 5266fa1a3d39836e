"""Sends a file's bytes to where outputs are kept."""

from __future__ import annotations

import re
from typing import Any

from .control import Control
from .errors import Unreachable
from .exchange import exchange, persist, transient
from .files import Measured, NotUploaded, Prefix, check_unchanged, opened

STORE_SECONDS = 120.0  # storage checks a whole file before it answers
PUT_TRIES = 8


def put(control: Control, file: Measured, upload: dict[str, Any]) -> None:
    """Send a file, several times if need be. Raises NotUploaded; ServiceError when abandoned."""
    try:
        persist(control, f"storing {file.file.name}", lambda: _put_once(file, upload), PUT_TRIES)
    except Unreachable as why:
        raise NotUploaded(str(why)) from why


def _put_once(file: Measured, upload: dict[str, Any]) -> None:
    headers = {**upload.get("headers", {}), "Content-Length": str(file.size)}
    with opened(file.file) as stream:
        body = Prefix(stream, file.size)
        _send(upload, body, headers)
        if body.sha256() != file.sha256:
            raise NotUploaded("it was written to while it was uploaded", moving=True)
        check_unchanged(file, stream)


def _send(upload: dict[str, Any], body: Prefix, headers: dict[str, str]) -> None:
    try:
        status, answer = exchange(upload.get("method", "PUT"), upload["url"], body, headers, STORE_SECONDS)
    except Unreachable as why:
        raise Unreachable(f"storage could not be reached: {why}") from why
    if status >= 300:
        codes = re.findall("<Code>(.*?)</Code>", answer.decode("utf-8", "replace"))
        text = " ".join([f"storage answered HTTP {status}", *codes])
        raise Unreachable(text) if transient(status) else NotUploaded(text)
