"""What packages the console is made of, by its lockfile, and their licences, which are shipped with it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

INSTALLED = "node_modules/"
LOCKFILE = "package-lock.json"

NOTICES = ("LICENSE*", "LICENCE*", "license*", "COPYING*", "NOTICE*", "UNLICENSE*")
"""How the files are called in which packages have their licences."""


@dataclass(frozen=True, order=True)
class Package:
    """One package of npm. `is_shipped`: a part of it is in the build; others only make the build.

    `sha512` is that of its archive, in hex.
    """

    name: str
    version: str
    licence: str
    sha512: str
    is_shipped: bool


def locked(web: Path) -> Iterator[tuple[str, Package]]:
    """All packages that the lockfile in a folder names, with the folder of each below that one."""
    for place, each in json.loads((web / LOCKFILE).read_text(encoding="utf-8"))["packages"].items():
        if place:  # else it is the console itself
            kind, _, digest = each["integrity"].partition("-")
            if kind != "sha512":
                raise ValueError(f"{web / LOCKFILE}: {place} has no SHA-512")
            name = each.get("name", place.rpartition(INSTALLED)[2])
            sha512, is_shipped = base64.b64decode(digest).hex(), not each.get("dev", False)
            yield place, Package(name, each["version"], each.get("license", ""), sha512, is_shipped)


def licences(web: Path) -> str:
    """The licences of all packages that are shipped, as their authors ask for, of an installation of the lockfile."""
    shipped = [(package, web / place) for place, package in locked(web) if package.is_shipped]
    return "\n\n".join(_licence(package, folder) for package, folder in sorted(shipped)) + "\n"


def _licence(package: Package, folder: Path) -> str:
    files = {path for pattern in NOTICES for path in folder.glob(pattern) if path.is_file()}
    texts = [path.read_text(encoding="utf-8").strip() for path in sorted(files)]
    return "\n\n".join([f"{package.name} {package.version} ({package.licence})", *texts])
