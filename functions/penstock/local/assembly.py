"""What `cdk synth` writes for one stack: a template and the assets that it names."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATE = (1980, 1, 1, 0, 0, 0)
"""Every file in a zip is this old, so that the same content gives the same bytes."""


@dataclass(frozen=True)
class Assembly:
    """What `cdk synth` wrote for one stack."""

    stack: str
    template: str
    files: Mapping[str, Any]
    folder: Path

    @staticmethod
    def read(folder: Path) -> Assembly:
        """The assembly in a folder. Raises ValueError if it does not have exactly one stack."""
        artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"]
        stacks = [name for name, each in artifacts.items() if each["type"] == "aws:cloudformation:stack"]
        if len(stacks) != 1:
            raise ValueError(f"{folder}: expected one stack, found {stacks}")
        template = (folder / artifacts[stacks[0]]["properties"]["templateFile"]).read_text()
        files = json.loads((folder / f"{stacks[0]}.assets.json").read_text())["files"]
        return Assembly(stacks[0], template, files, folder)

    def content(self, source: Mapping[str, str]) -> bytes:
        """The bytes of an asset, zipped if it asks for that."""
        path = self.folder / source["path"]
        return zipped(path) if source["packaging"] == "zip" else path.read_bytes()

    @property
    def resources(self) -> int:
        """How many resources the stack has."""
        return len(json.loads(self.template)["Resources"])


def zipped(folder: Path) -> bytes:
    """A folder as a zip file: the same files give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(str(path.relative_to(folder)), DATE)
                entry.external_attr = (path.stat().st_mode & 0o777) << 16
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
