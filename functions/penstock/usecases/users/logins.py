"""Logins by code begin, are approved by a user who is signed in, and are taken by the machine that waits. [SEC-2]

The token is made when it is taken, so its secret is stored nowhere. It comes from the token that approved, so whoever
revokes that ends it as well; or, if a session approved, from the token that the session comes from. A browser takes a
session instead of a machine's token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.domain.users import logins, sessions
from penstock.domain.users.logins import Approval, Login, LoginPace
from penstock.domain.users.sessions import Session
from penstock.domain.users.users import Bearer, Token
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.rows import Change, Create, Replace
from penstock.system import System, transact
from penstock.usecases.users import audit, tokens, users
from penstock.usecases.users.tokens import Wish


def begin(on: System, host: str, address: str) -> tuple[str, str]:
    """A machine asks for a token: the code that it shows, and its secret. Raises Refused 429 for too many. [SEC-2]"""

    def decide() -> tuple[Sequence[Change], tuple[str, str]]:
        code, secret = logins.code_from(on.world.secret()), on.world.secret()
        made = logins.new_login(code, secret, host, address, on.world.now())
        counted = [
            _count(on, f"from#{logins.network(address)}", logins.PER_ADDRESS, "too many logins began at your address"),
            _count(on, "all", logins.PER_SITE, "too many logins began at this service"),
        ]
        return [Create(made), *counted], (code, secret)

    return transact(on, decide)


def find(on: System, by: Bearer, code: str) -> Login:
    """A login that waits, for who types its code. Raises Refused 404, or 429 after too many wrong codes. [SEC-2]"""
    _check_guesses(on, by)
    found = _waiting(on, code)
    if found is None:
        _count_guess(on, by)
        raise not_found("login", code[:16])
    return found


def approve(on: System, by: Bearer, code: str, wish: Wish) -> Login:
    """Let a machine take a token made from the one that is shown. Repeated with the same token, it changes nothing.

    Raises Refused 400, 403, 404, 422, 429 as `tokens.mint` and `find` do, and 409 if another token approved. [SEC-2]
    """
    asked = on.world.now()
    scopes, expires = tokens.allowed(tokens.giver(by.token, asked), wish, asked)

    def decide() -> tuple[Sequence[Change], Login]:
        was = find(on, by, code)
        if was.approval and was.approval.token != by.token.id:
            raise Refused(409, "login-approved", "somebody approved this login already; it cannot be approved twice")
        if was.approval:
            return [], was
        approval = Approval(by.name, by.token.id, on.world.now(), tuple(map(str, scopes)), expires)
        now = replace(was, approval=approval)
        text = f"for {was.host or 'a machine'} at {was.address}"
        return audit.record(on, [Replace(was, now)], by.name, "approve login", f"user {by.name}", text), now

    return transact(on, decide)


def take(on: System, code: str, secret: str, *, session: str = "") -> tuple[str, Token] | None:
    """The token of an approved login, once: its secret, and its row; None while nobody approved. [SEC-2]

    With the name of a session it is that, for a browser. It may do what was approved, for 12 hours at most.

    Raises Refused 404 for a login that is over or another machine's, and 410 for one whose token was taken, or whose
    approver's token is no longer good.
    """

    def decide() -> tuple[Sequence[Change], tuple[str, Token] | None]:
        was = _waiting(on, code)
        if was is None or not was.is_of(secret):
            raise not_found("login", code[:16])
        if was.taken:
            raise Refused(410, "login-taken", "the token of this login was taken already; begin another login")
        if was.approval is None:
            return [], None
        made, token, changes = _token(on, was, was.approval, session)
        return [Replace(was, replace(was, taken=token.id)), *changes], (made, token)

    return transact(on, decide)


def _token(on: System, login: Login, approval: Approval, session: str) -> tuple[str, Token, Sequence[Change]]:
    """The token that was approved, or a session of that name, and the changes that make it."""
    try:
        parent, user = users.good_token(on, approval.token)
    except Refused as refused:
        text = f"this login was approved with a token that is no longer good: {refused.detail}"
        raise Refused(410, "login-over", text) from None
    made_from, expires = tokens.giver(parent, on.world.now()), approval.expires
    wish = Wish(f"login on {login.host}" if login.host else "login", approval.scopes)
    if session:
        wish = Wish(session, approval.scopes, session=Session(expires))
        expires = sessions.expiry(on.world.now(), expires)
    return tokens.draft(on, user, wish, approval.by, (*made_from.ancestors, made_from.id), expires)


def _waiting(on: System, code: str) -> Login | None:
    """The login with a code, unless it is over."""
    found = on.store.get(logins.login_key(code), Login)
    return found if found and on.world.now() < found.ends else None


def _pace(on: System, of: str) -> tuple[LoginPace | None, LoginPace]:
    was = on.store.get(logins.pace_key(of), LoginPace)
    return was, was or LoginPace(of=of, at=on.world.now())


def _count(on: System, of: str, most: int, why: str) -> Change:
    """The change that counts one more. Raises Refused 429."""
    was, before = _pace(on, of)
    after = logins.with_one_more(before, most, on.world.now(), why)
    return Replace(was, after) if was else Create(after)


WRONG = "you gave too many wrong codes"


def _check_guesses(on: System, by: Bearer) -> None:
    """Raises Refused 429 if a user gave too many wrong codes."""
    logins.with_one_more(_pace(on, f"codes#{by.name}")[1], logins.WRONG_CODES, on.world.now(), WRONG)


def _count_guess(on: System, by: Bearer) -> None:
    transact(on, lambda: ([_count(on, f"codes#{by.name}", logins.WRONG_CODES, WRONG)], None))
