"""Fetching an output: resumed where it broke off, checked, and put in place whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from penstock.cli.client import Api
from penstock.cli.errors import Broken, Refused, Unreachable
from penstock.cli.transport import open_client

CHUNK = 256 * 1024
TRIES = 5
PAUSE_SECONDS = 0.5

SoFar = Callable[[int], None]
"""Told how many bytes there are so far."""


Sign = Callable[[], str]
"""Gives a URL to download from, for a while."""


class Mismatch(Broken):
    """The bytes are not those that the job made."""


def destination(output: dict[str, Any], wanted: str | None) -> Path:
    """Where an output goes: a file, or into a folder under its own name. Raises Refused when that can't be."""
    name = Path(output["path"]).name
    place = Path(wanted) if wanted else Path(name)
    if place.is_dir() or (wanted or "").endswith("/"):
        place = place / name
    if place.is_dir() or not place.parent.is_dir():
        raise Refused(f"can't write {place}", "give a file, or a folder that exists")
    return place


def fetch(api: Api, sign: Sign, output: dict[str, Any], place: Path, progress: SoFar) -> None:
    """Download an output or an artifact. What a broken download left beside `place` is continued.

    Raises Mismatch for wrong bytes, Unreachable when the store of the bytes can't be reached, Refused, Broken.
    """
    part = place.with_name(f".{place.name}.{output['sha256'][:12]}.part")
    try:
        _fetch_all(api, sign, output, part, progress)
        _verify(part, output)
        part.replace(place)
    except Mismatch:
        part.unlink(missing_ok=True)
        raise
    except OSError as error:
        raise Refused(f"can't write {place}: {error.strerror}", "free some space, or give another place") from error


def _fetch_all(api: Api, sign: Sign, output: dict[str, Any], part: Path, progress: SoFar) -> None:
    for left in reversed(range(TRIES)):
        url = sign()  # anew each time: it expires
        try:
            with open_client(url) as client:
                _continue(client, url, int(output["size"]), part, progress)
            return
        except httpx.HTTPError as error:
            if not left:
                raise _given_up(output["path"], error) from error
            api.transport.notice(f"the download broke off ({error}): continuing")
            time.sleep(PAUSE_SECONDS)


def _given_up(path: str, error: httpx.HTTPError) -> Broken | Unreachable:
    kind = Broken if isinstance(error, httpx.HTTPStatusError) else Unreachable
    return kind(f"the download of {path} broke off: {error}", "the same command continues it")


def _continue(client: httpx.Client, url: str, size: int, part: Path, progress: SoFar) -> None:
    """Fetch what is missing of a file of `size` bytes."""
    have = part.stat().st_size if part.exists() else 0
    if have >= size and have > 0:
        return
    # Compressed on the way, bytes could neither be counted nor continued.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code not in (200, 206):
            raise httpx.HTTPStatusError(
                f"{response.status_code} {response.reason_phrase}", request=response.request, response=response
            )
        resumed = response.status_code == 206
        with part.open("ab" if resumed else "wb") as file:
            have = have if resumed else 0
            for chunk in response.iter_raw():
                file.write(chunk)
                have += len(chunk)
                progress(have)
    if have < size:
        raise httpx.ReadError(f"{have} of {size} bytes came")


def _verify(part: Path, output: dict[str, Any]) -> None:
    """Raises Mismatch unless the bytes are those that were announced."""
    digest = hashlib.sha256()
    for chunk in _read(part):
        digest.update(chunk)
    if digest.hexdigest() != output["sha256"]:
        raise Mismatch(
            f"{output['path']} arrived damaged: its SHA-256 is {digest.hexdigest()}, not {output['sha256']}",
            "nothing was kept; try again, and tell the service's operator if it stays",
        )


def _read(part: Path) -> Iterator[bytes]:
    with contextlib.suppress(FileNotFoundError), part.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
