"""Tokens: made from other tokens, listed and revoked. `users.authenticate` reads them. [SEC-2]

A token names all that it comes from. So whoever revokes one writes one row, and everything that was made from it is
refused from then on. Nothing has to be found first, and a crash leaves nothing half done.
docs/decisions/0062-a-token-names-its-ancestors.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Literal

from penstock import listings
from penstock.domain.users import sessions
from penstock.domain.users.audit import Deed
from penstock.domain.users.sessions import Session
from penstock.domain.users.users import (
    ADMIN,
    ALL,
    ANCESTORS,
    DEFAULT_LIFE,
    LONGEST_LIFE,
    SCOPES,
    TOKENS,
    USERS,
    WHOLE,
    Bearer,
    Revocation,
    Scope,
    Token,
    User,
    digest,
    exceeding_scope,
    narrowing,
    parse_scope,
    parse_scopes,
    token_key,
    token_kind,
    token_listing,
    token_secret,
)
from penstock.kernel import rows
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Create, Replace
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
    session: Session | None = None


def mint(on: System, by: Bearer, name: str, wish: Wish) -> tuple[str, Token]:
    """Make a token of a user from the token that is shown: the secret, shown once, and the row.

    Raises Refused 400, 404; 403 for others' tokens, or scopes that the parent lacks; 422 for outliving the parent.
    """
    user = by if name in by.names else _another(on, by, name)
    scopes, expires = allowed(by.token, wish, on.world.now())
    lineage = (*by.token.ancestors, by.token.id)
    return _issue(on, user, replace(wish, scopes=[str(each) for each in scopes]), by.name, lineage, expires)


def _another(on: System, by: Bearer, name: str) -> User:
    """Another user, for whom an operator makes a token. Raises Refused 403 or 404. [SEC-2]

    It needs the scope `users`: what `submit` or `review` is good for depends on whose token it is.
    """
    users.require_admin(by)
    _require_users(by)
    return users.find(on, name)


def _require_users(by: Bearer) -> None:
    """Raises Refused 403 for a token that does not manage users, and so no tokens of theirs. [SEC-2]"""
    if narrowing(USERS, parse_scopes(by.token.scopes)) is None:
        raise users.missing_scope(USERS, by.token)


def allowed(parent: Token, wish: Wish, now: datetime) -> tuple[list[Scope], datetime | None]:
    """The scopes and the expiry of a token that is made from another as somebody wishes. [SEC-2]

    Raises Refused 400; 403 for scopes that the parent lacks; 422 for outliving it, or too many ancestors.
    """
    wanted = _scopes(wish.scopes) if wish.scopes else parse_scopes(parent.scopes)
    beyond = exceeding_scope(wanted, parse_scopes(parent.scopes))
    if beyond:
        has = ", ".join(parent.scopes)
        raise Refused(403, "scope-missing", f"this token cannot give the scope {str(beyond)!r}: its own are: {has}")
    if len(parent.ancestors) >= ANCESTORS:
        text = f"this token comes from {ANCESTORS} others already; make the new one with one of them"
        raise Refused(422, "too-many-ancestors", text)
    return wanted, _expiry(wish.lasts, now, parent.expires)


def mint_session(on: System, by: Bearer, name: str) -> tuple[str, Token]:
    """Begin a session with the token that is shown: the secret, which is always a new one, and the row. [SEC-2]

    It can do what the token can, for 12 hours at most. Raises Refused 409 or 422 as `mint` does.
    """
    parent, now = by.token, on.world.now()
    scopes, _ = allowed(parent, Wish(), now)
    expires = sessions.expiry(now, parent.expires)
    wish = Wish(name, [str(each) for each in scopes], session=Session(parent.expires))
    return _issue(on, by, wish, by.name, (*parent.ancestors, parent.id), expires)


def giver(token: Token, now: datetime) -> Token:
    """The token that a login is approved with, as what a new token is made from. [SEC-2]

    Of a session that is the token which it comes from itself: a machine is to stay signed in when the browser does not.
    The new one may do no more than the session. It lasts 90 days at most, and no longer than that token, or than the
    login allowed by which the session began.
    """
    if token.session is None:
        return token
    gives, usual = token.session.gives, now + DEFAULT_LIFE
    until = min(gives, usual) if gives else usual
    return replace(token, id=token.ancestors[-1], ancestors=token.ancestors[:-1], expires=until)


def mint_first(on: System, name: str, lasts: Lasting, by: str) -> tuple[str, Token]:
    """Make a token without a parent, for who may write the table: it can do all that its user may."""
    user = users.find(on, name)
    return _issue(on, user, Wish(scopes=[ALL]), by, (), _expiry(lasts, on.world.now(), None))


def _scopes(texts: Sequence[str]) -> list[Scope]:
    """Raises Refused 400 for scopes that don't exist, or are too many."""
    if len(texts) > SCOPES:
        raise Refused(400, "bad-request", f"a token has at most {SCOPES} scopes")
    found = []
    for text in dict.fromkeys(texts):
        scope = parse_scope(text)
        if scope is None:
            known = "all, read, submit[:OWNER], review, operate[:POOL], host:POOL/NAME, site, users"
            raise Refused(400, "bad-request", f"{text[:200]!r} is not a scope; there are: {known}")
        found.append(scope)
    return sorted(found)


def _expiry(lasts: Lasting, now: datetime, most: datetime | None) -> datetime | None:
    """When a token expires whose parent does so at `most`. Raises Refused 400, or 422 if it is later. [SEC-2]"""
    if lasts is None:
        usual = now + DEFAULT_LIFE
        return min(usual, most) if most else usual
    longest = int(LONGEST_LIFE.total_seconds())
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
    on: System, user: User, wish: Wish, by: str, ancestors: tuple[str, ...], expires: datetime | None
) -> tuple[str, Token]:
    """Write a new token, and who made it. Raises Refused 409 if the user has too many, or one has that id."""
    secret, token, changes = draft(on, user, wish, by, ancestors, expires)
    if not on.store.commit(changes):
        raise Refused(409, "token-exists", "there is a token with this id already; try again")
    return secret, token


def draft(
    on: System, user: User, wish: Wish, by: str, ancestors: tuple[str, ...], expires: datetime | None
) -> tuple[str, Token, Sequence[Change]]:
    """A new token, and the changes that write it, and who made it. Raises Refused 409 if the user has too many."""
    now = on.world.now()
    _check_number(on, user, now)
    sort, id = token_kind(parse_scopes(wish.scopes), user), on.world.ulid()
    secret = token_secret(sort, id, on.world.secret())
    token = Token(
        id=id, digest=digest(secret), user=user.name, name=wish.name, sort=sort, scopes=tuple(wish.scopes),
        created=now, by=by, expires=expires, ancestors=ancestors, session=wish.session,
    )  # fmt: skip
    until = f"until {expires:%Y-%m-%d %H:%M:%SZ}" if expires else "for ever"
    did: Deed = "sign in" if token.session else "make token"
    text = f"{'session' if token.session else 'token'} {id} for {', '.join(token.scopes)}, {until}"
    return secret, token, audit.record(on, [Create(token)], by, did, f"user {user.name}", text)


def _check_number(on: System, user: User, now: datetime) -> None:
    """Raises Refused 409 if too many of a user's tokens are good. Those that were made just now may be missing."""
    good = (token for token in listings.every(on, token_listing(user.name), Token) if token.is_good(now))
    if sum(1 for _ in islice(good, TOKENS)) == TOKENS:
        why = f"{user.name} has {TOKENS} tokens that are good, and may have no more"
        hint = "`penstock token list` shows them, `penstock token revoke` ends one"
        raise Refused(409, "too-many-tokens", f"{why}: {hint}")


def check_gives(by: Bearer, privileges: Sequence[str]) -> None:
    """Raises Refused 403 for a token that makes operators without being good for all that operators may. [SEC-2]"""
    if ADMIN in privileges and narrowing(WHOLE, parse_scopes(by.token.scopes)) is None:
        raise users.missing_scope(WHOLE, by.token)


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
    return on.store.listed(token_listing(user.name), Token, limit=limit, after=page)


def revoke(on: System, by: Bearer, id: str) -> Token:
    """Revoke a token, and with it all that were made from it. Safe to repeat. Raises Refused 403 or 404. [SEC-2]

    Every token may revoke itself and what it made. For others it needs the scope `users`.
    """

    def decide() -> tuple[Sequence[Change], Token]:
        was = find(on, by, id)
        if not was.comes_from(by.token.id):
            _require_users(by)
        return _revoked(on, was, by.name)

    return transact(on, decide)


def end(on: System, shown: Token) -> Token:
    """Revoke a token for who shows it, and with it all that were made from it. Safe to repeat."""

    def decide() -> tuple[Sequence[Change], Token]:
        was = on.store.get(shown.key, Token)
        return _revoked(on, was, was.user) if was else ([], shown)

    return transact(on, decide)


def _revoked(on: System, was: Token, by: str) -> tuple[Sequence[Change], Token]:
    """A token as it is revoked, and the changes that write it, if it is not yet."""
    if was.revoked:
        return [], was
    now = replace(was, revoked=Revocation(by, on.world.now()))
    return audit.record(on, [Replace(was, now)], by, "revoke token", f"user {was.user}", f"token {was.id}"), now
