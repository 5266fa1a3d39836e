"""The assembly that the local cloud deploys: it is synthesised again only when its sources have changed."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from penstock import sources
from penstock.deploy.assembly import DeployError, synthesise
from penstock.local.state import LocalCloudError

LEFT_OUT = ("penstock/cli/", "penstock/console/", "penstock/deploy/", "penstock/local/")
"""Folders that are in no function: see infra/bundle.py."""

OLD_SECONDS = 24 * 3600
"""What was made here and not used for so long is removed when the stack is synthesised again."""


def assembly(report: Callable[[str], None], context: Mapping[str, str] | None = None) -> Path:
    """A folder with the stack synthesised from the sources as they are, and settings as `cdk deploy -c` takes them.

    Raises LocalCloudError if that fails.
    """
    settings = dict(context or {})
    folder = sources.BUILT / "assembly" / fingerprint(settings)
    if folder.is_dir():
        os.utime(folder)
        return folder
    report("synthesising the stack")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.parent):
        if not folder.is_dir():  # who waited for another may find it made
            _remove_old(folder.parent)
            _remove_old(code())
            _remove_old(sources.BUILT / "function")
            with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
                _synthesise(Path(beside) / "out", settings)
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
    folder = sources.BUILT / "code"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def fingerprint(settings: Mapping[str, str] | None = None) -> str:
    """A hash over every file that the stack is made of, and its settings."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode() if settings else b"")
    for name, path in sorted(_made_of().items()):
        digest.update(f"{name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _made_of() -> Mapping[str, Path]:
    """Each of these files by its name, which is the same wherever Penstock is installed."""
    beside = [sources.ROOT / "app.py", sources.ROOT / "cdk.json"]
    for folder in (sources.ROOT / "infra", sources.FUNCTIONS):
        beside += [path for path in folder.glob("*") if path.is_file()]
    found = {path.relative_to(sources.ROOT).as_posix(): path for path in beside}
    return found | {name: path for name, path in sources.shipped().items() if not name.startswith(LEFT_OUT)}


def _synthesise(out: Path, settings: Mapping[str, str]) -> None:
    try:
        synthesise(out, **settings)
    except DeployError as error:
        raise LocalCloudError(str(error)) from error


def _remove_old(folder: Path) -> None:
    for each in folder.glob("*"):
        if time.time() - each.stat().st_mtime > OLD_SECONDS:
            shutil.rmtree(each, ignore_errors=True)
