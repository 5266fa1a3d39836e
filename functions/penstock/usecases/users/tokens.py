"""Tokens: shown with requests, made from other tokens, listed and revoked. [SEC-2]

A request reads its token, and then in one batch the user and all tokens that it comes from. So whoever revokes a token
writes one row, and everything that was made from it is refused from then on. Nothing has to be found first, and a crash
leaves nothing half done. docs/decisions/0062-a-token-names-its-ancestors.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from penstock.domain.users import scopes, tokens
from penstock.domain.users.scopes import ALL, Bearer, Need, Scope
from penstock.domain.users.tokens import Revocation, Token, token_key
from penstock.domain.users.users import ADMIN, User, digest, explain_status, user_key
from penstock.kernel import rows
from penstock.kernel.errors import Refused, Throttled, not_found
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Create, Key, Replace, Row
from penstock.system import System, transact
from penstock.usecases.users import audit, users

Lasting = int | Literal["never"] | None
"""For how many seconds a token is asked to last; None for the usual time."""


@dataclass(frozen=True)
class Wish:
    """A token that somebody asks for. Without scopes it gets all those of the token that makes it."""

    name: str = ""
    scopes: Sequence[str] = ()
    lasts: Lasting = None


def authenticate(on: System, header: str | None, need: Need = scopes.ANY) -> Bearer:
    """Who shows a token in a request, on a route with this need. Raises Refused 401, or 403 for a missing scope."""
    token, user = _shown(on, _secret(header))
    bearer = scopes.bearer(user, token, need)
    if bearer is None:
        raise _missing_scope(need, token)
    if token.is_stale(on.world.now()):
        with suppress(Throttled):  # who else writes it now did so too, or revoked it
            on.store.commit([Replace(token, replace(token, used=on.world.now(), user=user.name))])
    return bearer


def _secret(header: str | None) -> str:
    scheme, _, secret = (header or "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Refused(401, "no-token", "show a token: Authorization: Bearer <token>")
    return secret.strip()


def _shown(on: System, secret: str) -> tuple[Token, User]:
    """The token that a secret is of, and its user, if both are good. Raises Refused 401."""
    if tokens.is_old(secret):
        raise Refused(401, "old-token", "tokens of this form are no longer accepted; ask an operator for a new one")
    id = tokens.id_in(secret)
    token = on.store.get(token_key(id), Token) if id else None
    if token is None or not token.is_shown_by(secret):
        raise Refused(401, "unknown-token", "this token is not known here, or no longer")
    if token.revoked:
        raise Refused(401, "token-revoked", f"this token was revoked at {token.revoked.at:%Y-%m-%d %H:%M:%SZ}")
    if token.has_expired(on.world.now()):
        raise Refused(401, "token-expired", f"this token expired at {token.expires:%Y-%m-%d %H:%M:%SZ}")
    return token, _good_user(on, token)


def _good_user(on: System, token: Token) -> User:
    """The user of a token, none of whose ancestors is revoked. Raises Refused 401."""
    found = on.store.rows_at([user_key(token.user), *map(token_key, token.ancestors)])
    if tokens.is_any_gone((_token(found, id) for id in token.ancestors), on.world.now()):
        raise Refused(401, "token-revoked", "this token was made with another one that was revoked")
    user = found.get(user_key(token.user))
    user = users.present(on, user if isinstance(user, User) else None)
    if user is None:
        raise Refused(401, "unknown-token", "the user of this token is gone")
    if user.status:
        raise Refused(401, f"user-{user.status.standing}", f"{explain_status(user)}: this token is refused")
    return user


def _token(found: Mapping[Key, Row], id: str) -> Token | None:
    row = found.get(token_key(id))
    return row if isinstance(row, Token) else None


def _missing_scope(need: Need, token: Token) -> Refused:
    has = ", ".join(token.scopes)
    if not need.scope:
        return Refused(403, "scope-missing", f"a host's token is for the host's own calls only; its scopes are: {has}")
    return Refused(
        403, "scope-missing", f"this needs a token with the scope {need.scope!r}; the scopes of this one: {has}"
    )


def mint(on: System, by: Bearer, name: str, wish: Wish) -> tuple[str, Token]:
    """Make a token of a user from the token that is shown: the secret, shown once, and the row.

    Raises Refused 400, 404; 403 for others' tokens, or scopes that the parent lacks; 422 for outliving the parent.
    """
    user = by if name in by.names else users.find(on, name)
    if user is not by:
        users.require_admin(by)
    parent = by.token
    wanted = _scopes(wish.scopes) if wish.scopes else scopes.parsed(parent.scopes)
    beyond = scopes.exceeding(wanted, scopes.parsed(parent.scopes))
    if beyond:
        has = ", ".join(parent.scopes)
        raise Refused(403, "scope-missing", f"this token cannot give the scope {str(beyond)!r}: its own are: {has}")
    if len(parent.ancestors) >= tokens.ANCESTORS:
        text = f"this token comes from {tokens.ANCESTORS} others already; make the new one with one of them"
        raise Refused(422, "too-many-ancestors", text)
    lineage = (*parent.ancestors, parent.id)
    return _issue(on, user, replace(wish, scopes=[str(each) for each in wanted]), by.name, lineage, parent.expires)


def mint_first(on: System, name: str, lasts: Lasting, by: str) -> tuple[str, Token]:
    """Make a token without a parent, for who may write the table: it can do all that its user may."""
    return _issue(on, users.find(on, name), Wish(scopes=[ALL], lasts=lasts), by, ())


def _scopes(texts: Sequence[str]) -> list[Scope]:
    """Raises Refused 400 for scopes that don't exist, or are too many."""
    if len(texts) > scopes.SCOPES:
        raise Refused(400, "bad-request", f"a token has at most {scopes.SCOPES} scopes")
    found = []
    for text in dict.fromkeys(texts):
        scope = scopes.parse(text)
        if scope is None:
            known = "all, read, submit[:OWNER], operate[:POOL], host:POOL/NAME, site, users"
            raise Refused(400, "bad-request", f"{text[:200]!r} is not a scope; there are: {known}")
        found.append(scope)
    return sorted(found)


def _expiry(lasts: Lasting, now: datetime, most: datetime | None) -> datetime | None:
    """When a token expires whose parent does so at `most`. Raises Refused 400, or 422 if it is later. [SEC-2]"""
    if lasts is None:
        usual = now + tokens.DEFAULT_LIFE
        return min(usual, most) if most else usual
    longest = int(tokens.LONGEST_LIFE.total_seconds())
    if lasts != "never" and not 1 <= lasts <= longest:
        raise Refused(400, "bad-request", "expires_in is in seconds, from 1 to ten years, or `never`")
    wanted = None if lasts == "never" else now + timedelta(seconds=lasts)
    if most and (wanted is None or wanted > most):
        until = f"{most:%Y-%m-%d %H:%M:%SZ}"
        raise Refused(
            422, "outlives-parent", f"the token that makes it expires at {until}, and this one cannot be later"
        )
    return wanted


def _issue(
    on: System, user: User, wish: Wish, by: str, ancestors: tuple[str, ...], most: datetime | None = None
) -> tuple[str, Token]:
    """Write a new token, and who made it. Raises Refused 400, 422; 409 if there is one with that id."""
    now = on.world.now()
    expires = _expiry(wish.lasts, now, most)
    sort, id = scopes.kind_of(scopes.parsed(wish.scopes), user), on.world.ulid()
    secret = tokens.secret_of(sort, id, on.world.secret())
    token = Token(
        id=id, digest=digest(secret), user=user.name, name=wish.name, sort=sort, scopes=tuple(wish.scopes),
        created=now, by=by, expires=expires, ancestors=ancestors,
    )  # fmt: skip
    until = f"until {expires:%Y-%m-%d %H:%M:%SZ}" if expires else "for ever"
    text = f"token {id} for {', '.join(token.scopes)}, {until}"
    if not on.store.commit(audit.record(on, [Create(token)], by, "make token", f"user {user.name}", text)):
        raise Refused(409, "token-exists", "there is a token with this id already; try again")
    return secret, token


def check_gives(by: Bearer, privileges: Sequence[str]) -> None:
    """Raises Refused 403 for a token that makes operators without being good for all that operators may. [SEC-2]"""
    if ADMIN in privileges and scopes.granted(scopes.WHOLE, scopes.parsed(by.token.scopes)) is None:
        raise _missing_scope(scopes.WHOLE, by.token)


def find(on: System, by: Bearer, id: str) -> Token:
    """A token that a user may see. Another's is treated as nonexistent. Raises Refused 404."""
    token = on.store.get(token_key(id), Token) if rows.is_ulid(id) else None
    if token is None or not (by.is_admin or token.user in by.names):
        raise not_found("token", id[:64])
    return token


def list_tokens(on: System, by: Bearer, name: str, limit: int, page: str) -> list[Token]:
    """Some tokens of a user, oldest first. Raises Refused 403 for another's, unless for operators; 404."""
    user: User = by
    if name not in by.names:
        users.require_admin(by)
        user = users.find(on, name)
    return on.store.listed(tokens.listing(user.name), Token, limit=limit, after=page)


def revoke(on: System, by: Bearer, id: str) -> Token:
    """Revoke a token, and with it all that were made from it. Safe to repeat. Raises Refused 403 or 404. [SEC-2]

    Every token may revoke itself and what it made. For others it needs the scope `users`.
    """

    def decide() -> tuple[Sequence[Change], Token]:
        was = find(on, by, id)
        if not was.comes_from(by.token.id) and scopes.granted(scopes.USERS, scopes.parsed(by.token.scopes)) is None:
            raise _missing_scope(scopes.USERS, by.token)
        if was.revoked:
            return [], was
        now = replace(was, revoked=Revocation(by.name, on.world.now()))
        return audit.record(on, [Replace(was, now)], by.name, "revoke token", f"user {was.user}", f"token {id}"), now

    return transact(on, decide)
