"""The files that were changed since a revision, as git knows them: paths from the top of the repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

from penstock.cli.errors import Refused


def since_revision(place: str, revision: str) -> list[str]:
    """What was changed since the work left a revision: committed, not yet committed, deleted, and not known to git yet.

    What others changed on the revision's own branch since then does not count. Raises Refused.
    """
    if not revision or revision.startswith("-"):
        raise Refused(f"`{revision}` is not a revision", "give a commit, a branch or a tag: --since main")
    folder = Path(place) if Path(place).is_dir() else Path(place).parent
    top = _git(folder, "rev-parse", "--show-toplevel").rstrip("\n")
    begin = _git(folder, "merge-base", revision, "HEAD").strip()
    changed = _git(Path(top), "diff", "--name-only", "--no-renames", "-z", begin, "--")
    unknown = _git(Path(top), "ls-files", "--others", "--exclude-standard", "-z")
    return sorted({path for path in (changed + unknown).split("\0") if path})


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, errors="surrogateescape", check=False
        )
    except OSError as error:
        raise Refused(f"git cannot be run: {error.strerror}", "name the files: --changed PATH") from error
    if done.returncode:
        said = done.stderr.strip().splitlines()
        what = said[-1] if said else f"`git {' '.join(words)}` found nothing"
        raise Refused(f"git does not say what was changed: {what}", "fetch it, or name files: --changed PATH")
    return done.stdout
