"""Disabling, enabling, renaming and removing users: what may follow what. [SEC-2]

    active ──disable──▶ disabled ──its last job has settled──▶ may be removed ──remove──▶ removed
      ▲────enable─────────┘

The status is one write, and every token is refused from then on. The rest follows in steps that the sweep repeats: the
jobs of a disabled user are ended, the tokens of a renamed one moved, those of a removed one deleted. A name is never
given to another user, so that nobody comes into what was granted to it, or published under it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.users.users import Standing, Status, User, Withdrawal, is_repository
from penstock.kernel.errors import Refused

IN_FLIGHT = timedelta(minutes=2)
"""How long a request may be under way that was let in before its user was disabled: API Gateway ends it after 30 s."""

WATCHED_EVERY = timedelta(minutes=5)
"""How often the jobs are looked at that a disabled user was left."""

LIVE = 100
"""How many of these jobs are remembered."""

FORMER_NAMES = 10
"""How often a user may be renamed."""


def disable(user: User, by: str, now: datetime, *, ends_live: bool) -> User:
    """A user who may do nothing any more. `ends_live`: jobs that run end too. Raises Refused 409 for one's own user."""
    if user.name == by:
        raise Refused(409, "own-user", "nobody disables the user whose token they show: another operator does it")
    status = user.status or Status(Standing.DISABLED, by, now)
    return replace(user, status=status, withdrawal=Withdrawal(user.names, ends_live), due=now)


def enable(user: User) -> User:
    """A user who may act again."""
    return replace(user, status=None, withdrawal=None, due=None)


def rename(user: User, name: str, by: str, now: datetime) -> tuple[User, User]:
    """The row of the former name, and that of the new one. Raises Refused 409 or 422."""
    if is_repository(user.name) or is_repository(name):
        raise Refused(
            422, "repository", "a repository has the name that it has at its forge: create one with the new name"
        )
    if user.status:
        raise Refused(409, f"user-{user.status.standing}", f"{user.name} is {user.status.standing}: enable it first")
    if len(user.former) >= FORMER_NAMES:
        raise Refused(409, "too-many-names", f"a user is renamed at most {FORMER_NAMES} times")
    former = replace(user, privileges=(), revoked=(), status=Status(Standing.RENAMED, by, now, to=name), due=now)
    return former, replace(user, name=name, former=user.names, version=0, indexed=None)


def follow(former: User, name: str) -> User:
    """An earlier name's row, which now leads to the newest name."""
    return former if former.status is None else replace(former, status=replace(former.status, to=name))


def why_not_removed(user: User) -> str | None:
    """Why a user cannot be removed yet, as a sentence; None if nothing of theirs runs, and nothing will."""
    if not user.is_a(Standing.DISABLED) or user.withdrawal is None:
        return f"{user.name} is not disabled: `penstock user disable {user.name}` comes first"
    if user.withdrawal.names or not user.withdrawal.is_last:
        return f"the jobs of {user.name} are still being ended; try again in a few minutes"
    if user.withdrawal.live:
        shown = ", ".join(user.withdrawal.live[:5])
        return f"jobs of {user.name} still run: {shown}; cancel them, or wait for their end"
    return None


def remove(user: User, by: str, now: datetime) -> User:
    """The row of a name that was a user's."""
    removed = Status(Standing.REMOVED, by, now)
    return replace(user, privileges=(), revoked=(), status=removed, withdrawal=None, due=now)


def walked(user: User, before: str, live: Sequence[str]) -> User:
    """A disabled user some of whose jobs were looked at: all down to `before`, "" if that was all of a name."""
    was = user.withdrawal
    assert was
    known = tuple(dict.fromkeys((*was.live, *live)))
    names = was.names if before else was.names[1:]
    kept = replace(was, names=names, before=before, live=known[:LIVE], is_cut=was.is_cut or len(known) > LIVE)
    return replace(user, withdrawal=kept)


def next_pass(user: User, now: datetime) -> User:
    """A disabled user; once all jobs were looked at, with when they are looked at again, if they are."""
    was, status = user.withdrawal, user.status
    assert was
    assert status
    if was.names:
        return user
    if not was.is_last:
        again = replace(was, names=user.names, is_last=True)
        return replace(user, withdrawal=again, due=max(now, status.at + IN_FLIGHT), indexed=None)
    if was.live:
        return replace(user, due=now + WATCHED_EVERY, indexed=None)
    if was.is_cut:
        return replace(user, withdrawal=Withdrawal(user.names, was.ends_live), due=now)
    return replace(user, due=None)


def watched(user: User, live: Sequence[str]) -> User:
    """A disabled user, of whose jobs these still run."""
    assert user.withdrawal
    return replace(user, withdrawal=replace(user.withdrawal, live=tuple(live)))
