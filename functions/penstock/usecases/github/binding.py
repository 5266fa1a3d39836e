"""Whose a repository's name is: a user is bound to the id that GitHub gave the repository, for names change hands.

The first commit binds. Who comes later with the same name and another id gets nothing of what the user was granted,
until an operator accepts it. [SEC-2]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock import transaction
from penstock.domain.users import users as user_rules
from penstock.domain.users.users import User, user_key
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Replace
from penstock.system import System
from penstock.usecases import auditing, users


def owner(on: System, name: str, id: int) -> User | str:
    """The user that a repository is, bound to it now if it was to none; or why it is none."""

    def decide() -> tuple[Sequence[Change], User | str]:
        found = on.store.get(user_key(name), User)
        if found is None:
            return [], f"{name} is no user of this site: an operator adds it with `penstock user create`"
        if not found.is_of(id):
            return [], _taken(found, id)
        now = replace(found, repository_id=id)
        return ([] if now == found else [Replace(found, now)]), now

    return transaction.run(on, decide)


def is_of(on: System, name: str, id: int) -> bool:
    """Whether a name is not known to be another repository's."""
    found = on.store.get(user_key(name), User)
    return found is None or found.is_of(id)


def accept(on: System, name: str, id: int, by: str) -> User:
    """Have a user be another repository from now on. Raises Refused 404, and 400 for what is no repository's."""
    if not user_rules.is_repository(name) or not 0 < id < 2**53:
        raise Refused(
            400, "bad-request", "a repository is named as in oxide:hubris, and its id is a number of GitHub's"
        )

    def decide() -> tuple[Sequence[Change], User]:
        was = users.find(on, name)
        now = replace(was, repository_id=id)
        changes = [Replace(was, now)] if now != was else []
        return auditing.note(on, changes, by, "accept repository", f"user {name}", f"{was.repository_id} to {id}"), now

    return transaction.run(on, decide)


def _taken(found: User, id: int) -> str:
    return (
        f"{found.name} is the repository that GitHub calls {found.repository_id}, and this one is {id}: another has "
        "its name now, and gets nothing of what that was granted. An operator who knows it accepts it with all that: "
        f"`penstock github accept {found.name} {id}`"
    )
