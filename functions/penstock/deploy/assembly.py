"""The assembly: what app.py writes for the stack. It has the template, the assets, and warnings for whoever deploys."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import sources

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


class DeployError(Exception):
    """What cannot be deployed, and why. What to do stands behind the last `; `, if anything."""


def synthesise(out: Path, **context: Any) -> None:
    """Synthesise into a folder, with settings as `cdk deploy -c` takes them. Raises DeployError if that fails."""
    made = subprocess.run(
        [sys.executable, "app.py"],
        cwd=sources.ROOT,
        env={**os.environ, "CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": json.dumps(context)},
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise DeployError(f"the stack cannot be synthesised: {made.stderr.strip()}")
