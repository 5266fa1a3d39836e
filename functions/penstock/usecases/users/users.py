"""Users and their privileges."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.probes import canaries
from penstock.domain.users import scopes, users
from penstock.domain.users.users import ACT_AS, ADMIN, Standing, User, explain_status, user_key
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.rows import Change, Create, Replace
from penstock.system import System, transact
from penstock.usecases.users import audit

PRIVILEGES = 500
"""How many privileges one user may have."""

_NAMES = (
    "a user's name is 1 to 64 of a-z 0-9 . _ - and begins with a letter or digit; a repository's is its owner's, a "
    "colon, and its own: oxide:hubris"
)


def require_admin(user: User) -> None:
    """Raises Refused 403 unless the user is an operator. [SEC-2]"""
    if not user.is_admin:
        raise Refused(403, "privilege-missing", f"this needs the privilege {ADMIN!r}")


def find(on: System, name: str) -> User:
    """A user by name, also a former one. Raises Refused 404."""
    user = by_name(on, name) if users.is_name(name) else None
    if user is None or user.is_a(Standing.REMOVED):
        raise not_found("user", name)
    return user


def by_name(on: System, name: str) -> User | None:
    """The user who has a name, or had it; None if nobody ever did."""
    return present(on, on.store.get(user_key(name), User))


def present(on: System, user: User | None) -> User | None:
    """The present row of a user; for a former name, that of the name that followed."""
    if user and user.status and user.status.to:
        return on.store.get(user_key(user.status.to), User)
    return user


def create(on: System, name: str, privileges: Sequence[str], by: str = "") -> User:
    """Create a user. Raises Refused 409 if the name is taken."""
    check_name(name)
    user = User(name=name, privileges=_validated(privileges), created=on.world.now())
    text = ", ".join(user.privileges)
    if not on.store.commit(audit.record(on, [Create(user)], by, "create user", f"user {name}", text)):
        raise Refused(409, "user-exists", f"{name!r} is, or was, the name of another user")
    return user


def check_name(name: str) -> None:
    """Raises Refused for what cannot be a user's name."""
    if not users.is_name(name):
        raise Refused(400, "bad-request", _NAMES)
    if name == canaries.USER:
        raise Refused(409, "user-exists", f"{name!r} is whom the site's own canaries belong to, and nobody's name")


def _validated(privileges: Sequence[str]) -> tuple[str, ...]:
    """Privileges in order, each once. Raises Refused 400 for invalid ones, or too many."""
    for privilege in privileges:
        if not users.is_privilege(privilege):
            raise Refused(400, "bad-request", f"{privilege[:80]!r} cannot be a privilege; they look like target.lab")
    if len(set(privileges)) > PRIVILEGES:
        raise Refused(400, "bad-request", f"a user has at most {PRIVILEGES} privileges")
    return tuple(sorted(set(privileges)))


def change_privilege(on: System, name: str, privilege: str, *, grant: bool, by: str = "") -> User:
    """Grant or revoke a privilege; safe to repeat."""
    _validated([privilege])

    def decide() -> tuple[Sequence[Change], User]:
        was = find(on, name)
        kept = set(was.privileges) - {privilege}
        wanted = _validated([*kept, privilege] if grant else list(kept))
        now = users.with_privileges(was, wanted, by, on.world.now())
        changes = [Replace(was, now)] if now != was else []
        return audit.record(on, changes, by, "grant" if grant else "revoke", f"user {name}", privilege), now

    return transact(on, decide)


def resolve_owner(on: System, user: User, owner: str | None) -> User:
    """The user whose job it is: the submitter, or a repository that they may submit for. Raises Refused 403 or 422."""
    if user.status:
        raise Refused(403, f"user-{user.status.standing}", f"{explain_status(user)}, and submits nothing")
    wanted = user.name if owner is None or owner in user.names else owner
    if not user.covers(scopes.SUBMIT.scope, wanted):
        needed = f"submit:{wanted[:200]}"
        raise Refused(403, "scope-missing", f"this needs a token with the scope {needed!r}, and this one has it not")
    if wanted == user.name:
        return user
    if not users.is_repository(wanted):
        raise Refused(403, "privilege-missing", "jobs are submitted for oneself, or for a repository: oxide:hubris")
    if not user.may_act_for(wanted):
        needed = f"{ACT_AS}.{wanted}"[:200]
        raise Refused(403, "privilege-missing", f"to submit for {wanted[:200]} needs the privilege {needed!r}")
    return _repository(on, wanted)


def _repository(on: System, owner: str) -> User:
    """The repository that jobs are submitted for. Raises Refused 422 if there is none, or it may not act."""
    found = by_name(on, owner)
    if found is None:
        raise Refused(422, "unknown-owner", f"there is no repository {owner[:200]!r}; operators add it as a user")
    if found.status:
        raise Refused(422, f"owner-{found.status.standing}", f"{explain_status(found)}, and nobody submits for it")
    return found
