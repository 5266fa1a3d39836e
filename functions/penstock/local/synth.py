"""The synthesised stack: made by app.py, and made again only when what it is made of has changed."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from penstock.local.place import LocalCloudError

SOURCES = Path(__file__).parents[3]
"""The source tree: app.py, infra/ and functions/."""

LEFT_OUT = {"__pycache__", "local", "cli"}
"""Folders that are in no function: see infra/bundle.py."""

OLD_SECONDS = 24 * 3600
"""What was made here and not used for so long is removed when the stack is synthesised again."""


def assembly(report: Callable[[str], None], context: Mapping[str, str] | None = None) -> Path:
    """A folder with the stack synthesised from the sources as they are, and settings as `cdk deploy -c` takes them.

    Raises LocalCloudError if that fails.
    """
    if not (SOURCES / "app.py").is_file():
        raise LocalCloudError(
            f"the local cloud deploys the stack from Penstock's source tree, and {SOURCES} is none: "
            "run this from a clone, after `make setup`"
        )
    settings = dict(context or {})
    folder = SOURCES / "build" / "assembly" / fingerprint(settings)
    if folder.is_dir():
        os.utime(folder)
        return folder
    report("synthesising the stack")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.parent):
        if not folder.is_dir():  # who waited for another may find it made
            _remove_old(folder.parent)
            _remove_old(code())
            with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
                synthesise(Path(beside) / "out", **settings)
                (Path(beside) / "out").rename(folder)
    return folder


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Be the only process that synthesises: two at once would be slower than one after the other. Waits for it."""
    with open(folder.with_suffix(".lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def code() -> Path:
    """Where the local cloud keeps unzipped and compiled functions."""
    folder = SOURCES / "build" / "code"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def fingerprint(settings: Mapping[str, str] | None = None) -> str:
    """A hash over every file that the stack is made of, and its settings."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode() if settings else b"")
    for path in sorted(_made_of()):
        digest.update(f"{path.relative_to(SOURCES)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _made_of() -> Iterator[Path]:
    yield SOURCES / "app.py"
    yield SOURCES / "cdk.json"
    for folder in (SOURCES / "infra", SOURCES / "functions"):
        for path in folder.rglob("*"):
            if path.is_file() and not LEFT_OUT & {*path.parts}:
                yield path


def synthesise(out: Path, **context: str) -> None:
    """Synthesise into a folder, with settings as `cdk deploy -c` takes them. Raises LocalCloudError if that fails."""
    made = subprocess.run(
        [sys.executable, "app.py"],
        cwd=SOURCES,
        env={**os.environ, "CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": json.dumps(context)},
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise LocalCloudError(f"the stack cannot be synthesised; `make synth` shows this too:\n{made.stderr.strip()}")


def _remove_old(folder: Path) -> None:
    for each in folder.iterdir():
        if time.time() - each.stat().st_mtime > OLD_SECONDS:
            shutil.rmtree(each, ignore_errors=True)
