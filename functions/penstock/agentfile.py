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
LONG_AGO = (1980, 1, 1, 0, 0, 0)


@cache
def build() -> bytes:
    """The file's bytes."""
    sources = {f"agent/{path.relative_to(PACKAGE).as_posix()}": path.read_bytes() for path in PACKAGE.rglob("*.py")}
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


def version() -> str:
    """The version that an agent of this file says it has."""
    found = re.search(r'^VERSION = "(.+)"$', (PACKAGE / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""


def digest() -> str:
    """SHA-256 of the file, in hex."""
    return hashlib.sha256(build()).hexdigest()


def _entry(name: str) -> zipfile.ZipInfo:
    """An entry that says nothing of the machine or the moment it was made."""
    entry = zipfile.ZipInfo(name, LONG_AGO)
    entry.create_system = 3
    entry.external_attr = 0o100644 << 16
    return entry
