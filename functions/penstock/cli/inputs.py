"""Sends the files that a job reads: straight to where bytes are kept, checked, and again if it breaks off."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import httpx

from penstock.cli.client import Api, Object
from penstock.cli.download import PAUSE_SECONDS, TRIES
from penstock.cli.errors import Broken, Refused, Unreachable
from penstock.cli.fetching import bytes_bar
from penstock.cli.sending import Described, Progress, describe, put, put_parts
from penstock.cli.session import Session
from penstock.cli.times import size_text


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


def send(session: Session, job: str, files: dict[str, Path]) -> None:
    """Send a job's files; what is there already is not sent again. Raises Refused, Broken, Unreachable."""
    for name, path in files.items():
        session.api.transport.notice(f"sending {name} ({size_text(path.stat().st_size)})")
        with bytes_bar(session, name, path.stat().st_size) as progress:
            _send(session.api, job, name, describe(path), progress)


def _send(api: Api, job: str, name: str, file: Described, progress: Progress) -> None:
    for left in reversed(range(TRIES)):
        leave = api.act("jobs", job, "inputs", body={"name": name, **file.json()})  # anew each time: it expires
        if leave["there"]:
            return
        try:
            if leave["part_bytes"]:
                put_parts(file, partial(_ask, api, job, name), progress)
            else:
                put(file, leave, progress)
            break
        except httpx.HTTPError as error:
            if not left:
                kind = Broken if isinstance(error, httpx.HTTPStatusError) else Unreachable
                again = f"`penstock job send {job} {name}={file.path}` goes on with it"
                end = f"`penstock job cancel {job}` ends it"
                raise kind(f"sending {name} broke off: {error}", f"{again}, {end}") from error
            api.transport.notice(f"sending {name} broke off ({error}): once more")
            time.sleep(PAUSE_SECONDS)
    api.act("jobs", job, "inputs", "commit", body={"name": name})


def _ask(api: Api, job: str, name: str, first: int, digests: Sequence[str]) -> Sequence[Object]:
    body = {"name": name, "first": first, "sha256": list(digests)}
    found: Sequence[Object] = api.act("jobs", job, "inputs", "parts", body=body)["parts"]
    return found
