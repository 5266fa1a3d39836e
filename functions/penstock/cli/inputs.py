"""Sends the files that a job reads: straight to where bytes are kept, checked, and again if it breaks off."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx

from penstock.cli.client import Api, Object
from penstock.cli.errors import Broken, Refused, Unreachable
from penstock.cli.times import size_text
from penstock.cli.transport import open_client

CHUNK = 256 * 1024
TRIES = 5
PAUSE_SECONDS = 0.5


def given(texts: Sequence[str]) -> dict[str, Path]:
    """[NAME=]PATH as names and files. Raises Refused for what cannot be sent, before anything is submitted."""
    found: dict[str, Path] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        place = Path(path if equals else text)
        name = name if equals else place.name
        if not place.is_file():
            why = "is a folder: pack it" if place.is_dir() else "is not there, or no file"
            raise Refused(f"can't send {place}: it {why}", "-i takes [NAME=]PATH, the path of a file")
        if found.setdefault(name, place) != place:
            raise Refused(f"two inputs are called `{name}`", "name one of them: -i NAME=PATH")
    return found


def send(api: Api, job: str, files: dict[str, Path]) -> None:
    """Send a job's files; what is there already is not sent again. Raises Refused, Broken, Unreachable."""
    for name, path in files.items():
        api.transport.notice(f"sending {name} ({size_text(path.stat().st_size)})")
        _send(api, job, name, path)


def _send(api: Api, job: str, name: str, path: Path) -> None:
    about = {"name": name, "size": path.stat().st_size, "sha256": _digest(path)}
    for left in reversed(range(TRIES)):
        leave = api.act("jobs", job, "inputs", body=about)  # anew each time: it expires
        if leave["there"]:
            return
        try:
            _put(leave, path)
            break
        except httpx.HTTPError as error:
            if not left:
                kind = Broken if isinstance(error, httpx.HTTPStatusError) else Unreachable
                again = f"`penstock job cancel {job}` ends the job, which waits for it"
                raise kind(f"sending {name} broke off: {error}", again) from error
            api.transport.notice(f"sending {name} broke off ({error}): once more")
            time.sleep(PAUSE_SECONDS)
    api.act("jobs", job, "inputs", "commit", body={"name": name})


def _put(leave: Object, path: Path) -> None:
    headers = {**leave["headers"], "content-length": str(path.stat().st_size)}
    with open_client(leave["url"]) as client:
        response = client.request(leave["method"], leave["url"], headers=headers, content=_chunks(path))
    if not response.is_success:
        raise httpx.HTTPStatusError(
            f"{response.status_code} {response.reason_phrase}", request=response.request, response=response
        )


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    for chunk in _chunks(path):
        digest.update(chunk)
    return digest.hexdigest()


def _chunks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
    except OSError as error:
        raise Refused(f"can't read {path}: {error.strerror}") from error
