"""Packs the agent into the one file that machines fetch: a zip with a `#!` line, which Python runs as it is.

The same sources always give the same bytes. They are stored, not compressed: compressors differ between versions, and
`bmat`, which every call reads from this file, starts faster.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from functools import cache
from pathlib import Path

from penstock.agent import packed

PACKAGE = Path(__file__).with_name("agent")
SHEBANG = b"#!/usr/bin/env python3\n"
START = "import sys\n\nfrom agent.__main__ import main\n\nsys.exit(main(sys.argv))\n"
VERSIONED = "agent/__init__.py"
VERSION = rb'(?m)^VERSION = ".+"'
VERSION_CHARS = 8
"""Hex digits of a version. A worker's row has it, and is written in one unit as long as it has less than 1 KB."""

LONG_AGO = (1980, 1, 1, 0, 0, 0)


@cache
def build() -> bytes:
    """The file's bytes."""
    sources = {**_sources(), VERSIONED: re.sub(VERSION, f'VERSION = "{version()}"'.encode(), _sources()[VERSIONED])}
    buffer = io.BytesIO()
    buffer.write(SHEBANG)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        for name, source in sorted({**sources, "__main__.py": START.encode()}.items()):
            file.writestr(_entry(name), source)
    return buffer.getvalue()


@cache
def build_compiled() -> bytes:
    """The same with modules compiled for the Python that runs, which starts sooner with it."""
    return packed.compile_file(build())


def _sources() -> dict[str, bytes]:
    return {f"agent/{path.relative_to(PACKAGE).as_posix()}": path.read_bytes() for path in PACKAGE.rglob("*.py")}


@cache
def version() -> str:
    """The version that an agent of this file says it has: the start of a digest of its sources.

    So who reads a worker's row knows which agent it has, and whether it is the one that the service has now.
    """
    digests = [name.encode() + hashlib.sha256(source).digest() for name, source in sorted(_sources().items())]
    return hashlib.sha256(b"".join(digests)).hexdigest()[:VERSION_CHARS]


def digest() -> str:
    """SHA-256 of the file, in hex."""
    return hashlib.sha256(build()).hexdigest()


def _entry(name: str) -> zipfile.ZipInfo:
    """An entry that says nothing of the machine or the moment it was made."""
    entry = zipfile.ZipInfo(name, LONG_AGO)
    entry.create_system = 3
    entry.external_attr = 0o100644 << 16
    return entry
