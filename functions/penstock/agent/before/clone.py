"""The repository, at the job's commit."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Sequence

from .trying import Failed, persist, run, say

NEVER = re.compile(
    r"not found|returned error: 40[0-79]|Authentication failed|could not read (Username|Password)|terminal prompts|"
    r"No space left|Permission denied|does not appear to be a git repository|cannot be run"
)
"""What git says of what no later try makes good. All else may be the network, also a commit that is not there yet."""

QUIET = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
STALLED = {"GIT_HTTP_LOW_SPEED_LIMIT": "1000", "GIT_HTTP_LOW_SPEED_TIME": "60"}


def clone(url: str, sha: str, branch: str, folder: str) -> None:
    """Clone all of a repository, and have a commit of it checked out, as the branch if it is one's. Raises Failed."""
    if os.path.isdir(folder) and os.listdir(folder):
        raise Failed(f"{folder} is not empty")
    persist(lambda: _clone(url, folder))
    persist(lambda: git("fetch", "--progress", "origin", sha, cwd=folder))
    if branch:
        here("update-ref", f"refs/heads/{branch}", sha, cwd=folder)
        here("symbolic-ref", "HEAD", f"refs/heads/{branch}", cwd=folder)
    here("reset", "--hard", sha, cwd=folder)
    say(f"{url} is in {folder}, at {sha}{f', branch {branch}' if branch else ''}")


def _clone(url: str, folder: str) -> None:
    """Begin from nothing: what an earlier try has left is of no use."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    git("clone", "--progress", "--no-checkout", url, folder)


def fetch_file(url: str, sha: str, name: str, folder: str) -> None:
    """Put one file of a commit into a folder, without the rest of the repository. Raises Failed."""
    here("init", "--quiet", folder)
    persist(lambda: git("fetch", "--depth", "1", url, sha, cwd=folder))
    with contextlib.suppress(Failed):  # what is not there is told by whoever looks for it
        here("checkout", "--quiet", "FETCH_HEAD", "--", name, cwd=folder)


def git(*arguments: str, cwd: str | None = None) -> Sequence[str]:
    """Run git, which asks nobody, and gives up what does not move. Raises Failed."""
    try:
        return run(["git", *arguments], cwd, {**STALLED, **os.environ, **QUIET})
    except Failed as why:
        raise Failed(str(why), passing=not NEVER.search(str(why))) from why


def here(*arguments: str, cwd: str | None = None) -> None:
    """Run git where no network is needed, so that what fails does so for good. Raises Failed."""
    try:
        git(*arguments, cwd=cwd)
    except Failed as why:
        raise Failed(str(why)) from why
