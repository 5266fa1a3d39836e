"""Uploads of a job's inputs and downloads of its outputs: resumed, checked, with a progress bar."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from penstock.cli import times
from penstock.cli.client import Api, Object, open_client
from penstock.cli.command import Session
from penstock.cli.errors import Broken, Refused, Unreachable
from penstock.cli.output import LINES, digest_text
from penstock.cli.terminal import clean
from penstock.cli.times import size_text
from penstock.domain.artifacts.volumes import PART_BYTES, composite


def fetching(session: Session, what: dict[str, Any], dest: str | None, sign: Callable[[], str]) -> None:
    """Download something that has a path, a size and a digest; `sign` gives a URL, anew for each try.

    To `-`, its bytes go to stdout, once their digest is verified. Raises what `fetch` raises.
    """
    if dest == STDOUT:
        _print(session, what, sign)
    else:
        place = destination(what, dest)
        _download(session, what, place, sign)
        session.out.done(f"{place}  {times.size_text(what['size'])}", {**what, "file": str(place)})


def _print(session: Session, what: dict[str, Any], sign: Callable[[], str]) -> None:
    """Download to a temporary file, and copy it to stdout; to a terminal without what the terminal would obey."""
    if session.json:
        raise Refused("--json and - both need stdout", "leave one of them out, or give a file")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "download"
        _download(session, what, place, sign)
        if session.out.console.is_terminal:
            session.out.console.file.write(clean(place.read_text(errors="replace"), LINES))
        else:
            with place.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
                sys.stdout.flush()


def _download(session: Session, what: dict[str, Any], place: Path, sign: Callable[[], str]) -> None:
    with bytes_bar(session, Path(what["path"]).name, what["size"]) as progress:
        had = 0

        def upto(have: int) -> None:
            nonlocal had
            progress(have - had)
            had = have

        fetch(session.api, sign, what, place, upto)


@contextmanager
def bytes_bar(session: Session, name: str, size: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on terminals. Call what it yields with each number of bytes transferred."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(True), TransferSpeedColumn())
    hidden = session.json or not session.out.errors.is_terminal
    with Progress(*columns, console=session.out.errors, disable=hidden, transient=True) as bar:
        task = bar.add_task(clean(name), total=size)
        yield lambda more: bar.advance(task, more)


STDOUT = "-"
"""The destination that stands for stdout. A file of this name is `./-`."""

CHUNK = 256 * 1024
TRIES = 5
PAUSE_SECONDS = 0.5

SoFar = Callable[[int], None]
"""Called with the number of bytes so far."""


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
    part = place.with_name(f".{place.name}.{digest_text(output)[:12]}.part")
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
    """Raises Mismatch unless the checksum is the one that the service verified. A long log has none."""
    wanted = digest_text(output)
    if not part.exists():
        part.touch()
    found = _digest(describe(part), bool(output.get("composite")))
    if wanted and found != wanted:
        raise Mismatch(
            f"{output['path']} arrived damaged: its SHA-256 is {found}, not {wanted}",
            "nothing was kept; try again, and tell the service's operator if it stays",
        )


def _digest(file: Described, is_composite: bool) -> str:
    return composite(file.parts or (file.sha256,)) if is_composite else file.sha256


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
    """Upload a job's inputs, skipping uploaded ones. Raises Refused, Broken, Unreachable."""
    for name, path in files.items():
        session.api.transport.notice(f"sending {name} ({size_text(path.stat().st_size)})")
        with bytes_bar(session, name, path.stat().st_size) as progress:
            _send(session.api, job, name, describe(path), progress)


def _send(api: Api, job: str, name: str, file: Described, progress: Advance) -> None:
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
                again = f"`penstock job send {job} {name}={file.path}` continues"
                end = f"`penstock job cancel {job}` ends it"
                raise kind(f"sending {name} broke off: {error}", f"{again}, {end}") from error
            api.transport.notice(f"sending {name} broke off ({error}): once more")
            time.sleep(PAUSE_SECONDS)
    api.act("jobs", job, "inputs", "commit", body={"name": name})


def _ask(api: Api, job: str, name: str, first: int, digests: Sequence[str]) -> Sequence[Object]:
    body = {"name": name, "first": first, "sha256": list(digests)}
    found: Sequence[Object] = api.act("jobs", job, "inputs", "parts", body=body)["parts"]
    return found


AT_ONCE = 4


LEAVES = 16
"""Parts per request for upload URLs, which expire after an hour."""

Advance = Callable[[int], None]
"""Called with the number of bytes just sent; negative when they must be sent again."""

AskParts = Callable[[int, Sequence[str]], Sequence[dict[str, Any]]]
"""Requests upload URLs of parts: takes the number of the first part and the SHA-256 of each."""


@dataclass(frozen=True)
class Described:
    """A file as it was read: its size in bytes, its SHA-256 in hex, and those of its parts, if it has several."""

    path: Path
    size: int
    sha256: str
    parts: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """What is said of it before it is sent."""
        about = {"size": self.size, "sha256": self.sha256}
        return {**about, "composite": composite(self.parts)} if self.parts else about


def describe(path: Path) -> Described:
    """Read a file. Raises Refused when it cannot be read."""
    whole, parts, size = hashlib.sha256(), [], path.stat().st_size
    for start in range(0, size, PART_BYTES):
        part = hashlib.sha256()
        for chunk in _chunks(path, start, PART_BYTES):
            part.update(chunk)
            whole.update(chunk)
        parts.append(part.hexdigest())
    return Described(path, size, whole.hexdigest(), tuple(parts) if len(parts) > 1 else ())


def put(file: Described, leave: dict[str, Any], progress: Advance) -> None:
    """Send a file in one piece. Raises httpx.HTTPError, and Refused when it cannot be read."""
    _put(file.path, 0, file.size, leave, progress)


def put_parts(file: Described, ask: AskParts, progress: Advance) -> None:
    """Upload the missing parts of a file. Raises httpx.HTTPError after it has tried the others."""
    for first in range(0, len(file.parts), LEAVES):
        told = ask(first + 1, file.parts[first : first + LEAVES])
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(partial(_put_part, file, progress), told))


def _put_part(file: Described, progress: Advance, leave: dict[str, Any]) -> None:
    start = (leave["number"] - 1) * PART_BYTES
    size = min(PART_BYTES, file.size - start)
    if leave["there"]:
        progress(size)
    else:
        _put(file.path, start, size, leave, progress)


def _put(path: Path, start: int, size: int, leave: dict[str, Any], progress: Advance) -> None:
    headers, sent = {**leave["headers"], "content-length": str(size)}, 0

    def told() -> Iterator[bytes]:
        nonlocal sent
        for chunk in _chunks(path, start, size):
            yield chunk
            sent += len(chunk)
            progress(len(chunk))

    try:
        with open_client(leave["url"]) as client:
            response = client.request(leave["method"], leave["url"], headers=headers, content=told())
        if not response.is_success:
            raise httpx.HTTPStatusError(
                f"{response.status_code} {response.reason_phrase}", request=response.request, response=response
            )
    except httpx.HTTPError:
        progress(-sent)
        raise


def _chunks(path: Path, start: int, size: int) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            file.seek(start)
            while size and (chunk := file.read(min(CHUNK, size))):
                yield chunk
                size -= len(chunk)
    except OSError as error:
        raise Refused(f"can't read {path}: {error.strerror}") from error
