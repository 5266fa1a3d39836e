"""What a commit's jobs may read besides their own repository: `access_repos` of their files.

Nobody reads through a job what they may not read themselves: those who may have the commit run must be able to read
each of them, or who approved it. [SEC-2]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.domain.github.commits import CheckSet
from penstock.domain.jobfile import JobFile
from penstock.domain.jobfile.sets import Member
from penstock.system import System
from penstock.usecases.github import calls
from penstock.usecases.github.calls import Repository

People = tuple[str, ...]


@dataclass(frozen=True)
class Unread:
    """Why something cannot be read; with an approval maybe it can."""

    told: str
    awaits: bool = False


def others(
    on: System, of: Repository, found: CheckSet, members: Sequence[Member], trusted: Sequence[People]
) -> Mapping[str, int] | Unread:
    """The ids of the repositories that a commit's jobs read, by their names; or why they may not.

    `trusted` are those who brought the commit and may have it run, once for each time.
    """
    names = sorted({name for member in members for name in wanted(member.file, of.name)})
    ids: dict[str, int] = {}
    for name in names:
        id = calls.beside(on, of, name)
        if id is None:
            why = "the App is not installed there, or not by the same owner"
            return Unread(f"`access_repos`: a job of {of.name} cannot read {name}: {why}")
        ids[name] = id
    return _let(on, of, found, names, trusted) or ids


def wanted(file: JobFile, own: str) -> list[str]:
    """The repositories that a file names, its own left out; GitHub compares names without case."""
    return [name for name in (each.lower() for each in file.access_repos) if name != own]


def _let(on: System, of: Repository, found: CheckSet, names: Sequence[str], trusted: Sequence[People]) -> Unread | None:
    """Why nobody lets a commit's jobs read some repositories; None when somebody does."""
    groups = [*trusted, *([(found.approved_by,)] if found.approved_by else [])]
    if any(all(calls.may_read(on, of, name, login) for name in names for login in people) for people in groups):
        return None
    what = ", ".join(names)
    if found.approved_by:
        return Unread(f"`access_repos`: {found.approved_by} approved this, and may not read all of {what} either")
    told = f"`access_repos`: who brought this commit may not read all of {what}. Somebody who may, and may write here"
    return Unread(f"{told}, looks at the commit {found.sha} and approves it: that one, and no other.", awaits=True)
