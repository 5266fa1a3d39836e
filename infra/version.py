"""The version of Penstock: that of the tag `vX.Y.Z` that is checked out, or one that says how far behind it this is."""

from __future__ import annotations

import email
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).parents[1]
TAGS = "v[0-9]*.[0-9]*.[0-9]*"
DIGITS = 8
"""Of a commit's hash: always as many, so that all clones have the same version."""

FIRST = "0.1.0"
"""What comes before it has no tag yet."""

DESCRIBED = re.compile(r"v(\d+\.\d+\.)(\d+)-(\d+)-(g[0-9a-f]+)")


def current(root: Path = HERE) -> str:
    """The version of the sources in a folder, which is a clone, or was unpacked from an sdist."""
    sdist = root / "PKG-INFO"
    if sdist.is_file():
        return str(email.message_from_string(sdist.read_text(encoding="utf-8"))["Version"])
    if not (root / ".git").exists():
        return f"{FIRST}.dev0"
    described = _git(root, "describe", "--tags", "--long", f"--abbrev={DIGITS}", f"--match={TAGS}")
    return of_tag(described) if described else _untagged(root)


def of_tag(described: str) -> str:
    """The version that `git describe --long` means: 0.2.0, or 0.2.1.dev5+g… five commits later.

    Raises ValueError for a tag that is not vX.Y.Z.
    """
    found = DESCRIBED.fullmatch(described)
    if not found:
        raise ValueError(f"{described}: a version's tag must be vX.Y.Z; delete this one")
    begin, last, commits, commit = found.groups()
    return f"{begin}{last}" if commits == "0" else f"{begin}{int(last) + 1}.dev{commits}+{commit}"


def _untagged(root: Path) -> str:
    commits, commit = _git(root, "rev-list", "--count", "HEAD"), _git(root, "rev-parse", f"--short={DIGITS}", "HEAD")
    return f"{FIRST}.dev{commits}+g{commit}" if commits and commit else f"{FIRST}.dev0"


def _git(root: Path, *words: str) -> str:
    """What git prints; nothing if it fails or is not installed."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
