"""The console in the local cloud, at the root of its address, where AWS SDKs send their requests too.

A request is the console's only if nothing about it is AWS's: no signature, no header of AWS, no path of the emulator's
own. Then a file of the build is served to anybody, and to browsers index.html for a path of the console, such as
/jobs/ID. [SEC-2] Nothing but the build's files is ever read: a request's path is a key among their names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from penstock.console import headers

INDEX = "index.html"

AWS_QUERY = re.compile(rb"(?:^|&)(?:X-Amz-[A-Za-z-]+|AWSAccessKeyId|Signature|Action)=", re.IGNORECASE)
"""What a presigned URL has, or a request of the older services."""

MISSING = (
    "There is no such page here. If nothing of the console is there, `penstock local up` says why when it starts.\n"
)


@dataclass(frozen=True)
class File:
    """A file of the build: its name, and its bytes."""

    name: str
    content: bytes

    @cached_property
    def etag(self) -> str:
        """Its content's hash, quoted."""
        return f'"{hashlib.sha256(self.content).hexdigest()[:32]}"'


@dataclass(frozen=True)
class Request:
    """A request to the front: its header names are in lower case."""

    method: str
    path: str
    query: bytes
    headers: Mapping[str, str]

    @property
    def is_of_aws(self) -> bool:
        """Whether an SDK or a presigned URL may have made it, or it is for the emulator itself."""
        signed = "authorization" in self.headers or any(name.startswith("x-amz-") for name in self.headers)
        return signed or self.path.startswith("/_") or bool(AWS_QUERY.search(self.query))

    @property
    def is_reading(self) -> bool:
        """Whether it asks for something, and changes nothing."""
        return self.method in ("GET", "HEAD")

    @property
    def is_for_a_page(self) -> bool:
        """Whether a browser opens a page with it."""
        return "text/html" in self.headers.get("accept", "") and not headers.is_file(self.path)


@dataclass(frozen=True)
class Reply:
    """What to answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


class Pages:
    """The files of a build. They are read again when it was built anew; there may be none yet."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._read: tuple[int, Mapping[str, File]] | None = None

    def answer(self, ask: Request) -> Reply | None:
        """The reply to a request; None if it is not the console's."""
        if ask.is_of_aws:
            return None
        files = self._files()
        name = ask.path.lstrip("/") or INDEX
        found = files.get(name) or (files.get(INDEX) if ask.is_for_a_page else None)
        if found is None:
            is_ours = ask.is_for_a_page or (files and name.startswith(headers.ASSETS))
            return _plain(404, MISSING) if is_ours and ask.is_reading else None
        if ask.is_reading:
            return _sent(ask, found)
        # SDKs that sign nothing post to / as well: they are refused as ever
        is_ours = name != INDEX or ask.is_for_a_page
        return _plain(405, "The console's files can be read only.\n", allow="GET, HEAD") if is_ours else None

    def _files(self) -> Mapping[str, File]:
        try:
            built = (self._folder / INDEX).stat().st_mtime_ns if self._folder else 0
        except OSError:  # it is being built, or was removed
            built = 0
        if self._folder is None or not built:
            return {}
        if self._read is None or self._read[0] != built:
            self._read = (built, {each.name: each for each in _all(self._folder)})
        return self._read[1]


def _all(folder: Path) -> Iterator[File]:
    """Every file of the build. A link is none: it could lead out of it."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield File(path.relative_to(folder).as_posix(), path.read_bytes())


def _sent(ask: Request, file: File) -> Reply:
    about = {
        **headers.SECURITY,
        "content-security-policy": headers.policy(),
        "cache-control": headers.caching(file.name),
        "etag": file.etag,
    }
    if file.etag in ask.headers.get("if-none-match", ""):
        return Reply(304, about)
    about |= {"content-type": headers.kind(file.name), "content-length": str(len(file.content))}
    return Reply(200, about, b"" if ask.method == "HEAD" else file.content)


def _plain(status: int, text: str, **more: str) -> Reply:
    body = text.encode()
    about = {**headers.SECURITY, "content-type": "text/plain; charset=utf-8", "content-length": str(len(body))}
    return Reply(status, {**about, **more}, body)
