"""The synthesised stack: app.py writes it, again only when its sources change; its template and its assets."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import sources
from penstock.local.state import LocalCloudError

DATE = (1980, 1, 1, 0, 0, 0)
"""Every file in a zip is this old, so that the same content gives the same bytes."""

READABLE, EXECUTABLE = 0o644, 0o755
"""What files in a zip permit, whatever the umask was: functions run as another user than whoever made the zip."""


@dataclass(frozen=True)
class Assembly:
    """What `cdk synth` wrote for one stack."""

    stack: str
    template: str
    files: Mapping[str, Any]
    folder: Path
    properties: Mapping[str, Any]

    @staticmethod
    def read(folder: Path) -> Assembly:
        """The assembly in a folder. Raises ValueError if it does not have exactly one stack."""
        artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"]
        stacks = [name for name, each in artifacts.items() if each["type"] == "aws:cloudformation:stack"]
        if len(stacks) != 1:
            raise ValueError(f"{folder}: expected one stack, found {stacks}")
        template = (folder / artifacts[stacks[0]]["properties"]["templateFile"]).read_text()
        files = json.loads((folder / f"{stacks[0]}.assets.json").read_text())["files"]
        return Assembly(stacks[0], template, files, folder, artifacts[stacks[0]]["properties"])

    def content(self, source: Mapping[str, str]) -> bytes:
        """The bytes of an asset, zipped if it asks for that."""
        path = self.folder / source["path"]
        return zipped(path) if source["packaging"] == "zip" else path.read_bytes()

    @property
    def resources(self) -> int:
        """How many resources the stack has."""
        return len(json.loads(self.template)["Resources"])

    @property
    def parameters(self) -> list[str]:
        """The names of the stack's parameters."""
        return list(json.loads(self.template).get("Parameters", {}))

    @property
    def warnings(self) -> list[str]:
        """What whoever deploys should know."""
        file = self.folder / f"{self.stack}.metadata.json"
        notes = json.loads(file.read_text()) if file.is_file() else {}
        return [each["data"] for at in notes.values() for each in at if each["type"] == "aws:cdk:warning"]


def zipped(folder: Path) -> bytes:
    """A folder as a zip file: the same files give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(str(path.relative_to(folder)), DATE)
                entry.external_attr = (EXECUTABLE if path.stat().st_mode & 0o100 else READABLE) << 16
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


SOURCES = sources.ROOT
"""The folder with app.py, infra/ and functions/."""

LEFT_OUT = ("penstock/cli/", "penstock/deploy/", "penstock/local/")
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
    beside = [SOURCES / "app.py", SOURCES / "cdk.json"]
    for folder in (SOURCES / "infra", sources.FUNCTIONS):
        beside += [path for path in folder.glob("*") if path.is_file()]
    found = {path.relative_to(SOURCES).as_posix(): path for path in beside}
    return found | {name: path for name, path in sources.shipped().items() if not name.startswith(LEFT_OUT)}


def synthesise(out: Path, **context: Any) -> None:
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
        raise LocalCloudError(f"the stack cannot be synthesised: {made.stderr.strip()}")


def _remove_old(folder: Path) -> None:
    for each in folder.glob("*"):
        if time.time() - each.stat().st_mtime > OLD_SECONDS:
            shutil.rmtree(each, ignore_errors=True)
