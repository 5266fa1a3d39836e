"""Users, their privileges and their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from penstock.domain.probes import canaries
from penstock.domain.users import users
from penstock.domain.users.users import ACT_AS, ADMIN, Token, User, digest, token_key, user_key
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

PREFIX = "pst_"
"""What user tokens begin with, so that scanners for leaked secrets recognize them."""


def authenticate(on: System, header: str | None) -> User:
    """The user whose bearer token a request has. Raises Refused 401."""
    scheme, _, secret = (header or "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Refused(401, "no-token", "show a token: Authorization: Bearer <token>")
    token = on.store.get(token_key(digest(secret.strip())), Token)
    if token is None:
        raise Refused(401, "unknown-token", "this token is not known here, or no longer")
    if token.expires and token.expires <= on.world.now():
        raise Refused(401, "token-expired", f"this token expired at {token.expires.isoformat()}; ask for a new one")
    user = on.store.get(user_key(token.user), User)
    if user is None:
        raise Refused(401, "unknown-token", "the user of this token is gone")
    return user


def require_admin(user: User) -> None:
    """Raises Refused 403 unless the user is an operator. [SEC-2]"""
    if not user.is_admin:
        raise Refused(403, "privilege-missing", f"this needs the privilege {ADMIN!r}")


def find(on: System, name: str) -> User:
    """A user by name. Raises Refused 404."""
    user = on.store.get(user_key(name), User) if users.is_name(name) else None
    if user is None:
        raise not_found("user", name)
    return user


def create(on: System, name: str, privileges: Sequence[str], by: str = "") -> User:
    """Create a user. Raises Refused 409 if the name is taken."""
    if not users.is_name(name):
        raise Refused(400, "bad-request", _NAMES)
    if name == canaries.USER:
        raise Refused(409, "user-exists", f"{name!r} is whom the site's own canaries belong to, and nobody's name")
    user = User(name=name, privileges=_validated(privileges), created=on.world.now())
    text = ", ".join(user.privileges)
    if not on.store.commit(audit.record(on, [Create(user)], by, "create user", f"user {name}", text)):
        raise Refused(409, "user-exists", f"there is a user {name!r} already")
    return user


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


def issue_token(on: System, name: str, expires_in: int | None, by: str = "") -> tuple[str, Token]:
    """A new token of a user: the secret, shown once, and the row that is stored."""
    if expires_in is not None and not 1 <= expires_in <= 10 * 366 * 24 * 3600:
        raise Refused(400, "bad-request", "expires_in is in seconds, from 1 to ten years")
    user = find(on, name)
    now = on.world.now()
    secret = PREFIX + on.world.secret()
    expires = now + timedelta(seconds=expires_in) if expires_in else None
    token = Token(digest=digest(secret), user=user.name, created=now, expires=expires)
    text = f"until {expires:%Y-%m-%d %H:%M:%SZ}" if expires else "for ever"
    on.store.commit(audit.record(on, [Create(token)], by, "make token", f"user {name}", text))
    return secret, token


def resolve_owner(on: System, user: User, owner: str | None) -> User:
    """The user whose job it is: the submitter, or a repository that they may submit for. Raises Refused 403 or 422."""
    if owner is None or owner == user.name:
        return user
    if not users.is_repository(owner):
        raise Refused(403, "privilege-missing", "jobs are submitted for oneself, or for a repository: oxide:hubris")
    if not user.may_act_for(owner):
        raise Refused(
            403, "privilege-missing", f"to submit for {owner[:200]} needs the privilege {f'{ACT_AS}.{owner}'[:200]!r}"
        )
    found = on.store.get(user_key(owner), User)
    if found is None:
        raise Refused(422, "unknown-owner", f"there is no repository {owner[:200]!r}; operators add it as a user")
    return found
