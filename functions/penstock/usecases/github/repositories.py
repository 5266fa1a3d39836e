"""Repositories: which user a repository's name stands for, and what a commit's jobs may read besides their own
repository.

Names change hands, so a user is bound to the id that GitHub gave the repository. The first commit binds. Another
repository with the same name gets none of the user's grants until an operator accepts it. Through `access_repos` nobody
reads what they may not read themselves: all who may have the commit run, or who approved it, must be able to read each
repository. [SEC-2]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.domain.github.commits import CheckSet
from penstock.domain.jobfile import JobFile
from penstock.domain.jobfile.sets import Member
from penstock.domain.users import users as user_rules
from penstock.domain.users.users import Standing, User, user_key
from penstock.kernel.errors import Refused
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Replace
from penstock.system import System, transact
from penstock.usecases.github import client
from penstock.usecases.github.client import Repository
from penstock.usecases.users import audit, users

People = tuple[str, ...]


@dataclass(frozen=True)
class Unreadable:
    """Why something cannot be read; with `awaits`, an approval may help."""

    told: str
    awaits: bool = False


def bind_owner(on: System, name: str, id: int) -> User | str:
    """The user that a repository is, bound now if it was to none; or why it is none."""

    def decide() -> tuple[Sequence[Change], User | str]:
        found = on.store.get(user_key(name), User)
        if found is None:
            return [], f"{name} is no user of this site: an operator adds it with `penstock user create`"
        if found.is_a(Standing.REMOVED):
            return [], f"{user_rules.explain_status(found)}, and nothing is run for it here any more"
        if not found.is_of(id):
            return [], _name_taken(found, id)
        now = replace(found, repository_id=id)
        return ([] if now == found else [Replace(found, now)]), now

    return transact(on, decide)


def _name_taken(found: User, id: int) -> str:
    return (
        f"{found.name} is the repository that GitHub calls {found.repository_id}, and this one is {id}: another has "
        "its name now, and gets nothing of what that was granted. An operator who knows it accepts it with all that: "
        f"`penstock github accept {found.name} {id}`"
    )


def may_be(on: System, name: str, id: int) -> bool:
    """Whether a name is not known to belong to another repository."""
    found = on.store.get(user_key(name), User)
    return found is None or found.is_of(id)


def accept(on: System, name: str, id: int, by: str) -> User:
    """Bind a user to another repository. Raises Refused 404, and 400 if it is no repository's name."""
    if not user_rules.is_repository(name) or not 0 < id < 2**53:
        raise Refused(
            400, "bad-request", "a repository is named as in oxide:hubris, and its id is a number of GitHub's"
        )

    def decide() -> tuple[Sequence[Change], User]:
        was = users.find(on, name)
        now = replace(was, repository_id=id)
        changes = [Replace(was, now)] if now != was else []
        return audit.record(on, changes, by, "accept repository", f"user {name}", f"{was.repository_id} to {id}"), now

    return transact(on, decide)


def readable_ids(
    on: System, of: Repository, found: CheckSet, members: Sequence[Member], trusted: Sequence[People]
) -> Mapping[str, int] | Unreadable:
    """The ids of the repositories that a commit's jobs read, by name; or why they may not.

    `trusted` are the people who brought the commit and may have it run, one group for each time.
    """
    names = sorted({name for member in members for name in requested_repositories(member.file, of.name)})
    ids: dict[str, int] = {}
    for name in names:
        id = client.find_sibling(on, of, name)
        if id is None:
            why = "the App is not installed there, or not by the same owner"
            return Unreadable(f"`access_repos`: a job of {of.name} cannot read {name}: {why}")
        ids[name] = id
    return _why_unreadable(on, of, found, names, trusted) or ids


def _why_unreadable(
    on: System, of: Repository, found: CheckSet, names: Sequence[str], trusted: Sequence[People]
) -> Unreadable | None:
    """Why a commit's jobs may not read some repositories; None if they may."""
    groups = [*trusted, *([(found.approved_by,)] if found.approved_by else [])]
    if any(all(client.may_read(on, of, name, login) for name in names for login in people) for people in groups):
        return None
    what = ", ".join(names)
    if found.approved_by:
        return Unreadable(f"`access_repos`: {found.approved_by} approved this, and may not read all of {what} either")
    text = f"`access_repos`: who brought this commit may not read all of {what}. Somebody who may, and may write here"
    return Unreadable(f"{text}, looks at the commit {found.sha} and approves it: that one, and no other.", awaits=True)


def requested_repositories(file: JobFile, own: str) -> list[str]:
    """The repositories that a file names, without its own; GitHub compares names without case."""
    return [name for name in (each.lower() for each in file.access_repos) if name != own]
