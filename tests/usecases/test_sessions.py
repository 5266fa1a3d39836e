"""Sessions: begun with a token or a login, ended, and what they may give to machines. [SEC-2]"""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.domain.users.audit import Wanted
from penstock.domain.users.users import ANCESTORS, DEFAULT_LIFE, SUBMIT, Bearer, Token, token_key
from penstock.kernel.errors import Refused
from penstock.testing.twin import Twin
from penstock.usecases.users import audit, lifecycle, logins, sessions, tokens, users
from penstock.usecases.users.tokens import Lasting, Wish
from tests.usecases.exact import drop

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"
HOME = "198.51.100.7"
HALF_A_DAY = timedelta(hours=12)


def refused(ask: object, *given: object, **named: object) -> tuple[int, str]:
    with pytest.raises(Refused) as found:
        ask(*given, **named)  # type: ignore[operator]
    return found.value.status, found.value.code


def first(twin: Twin, name: str = "ada", lasts: Lasting = "never") -> str:
    """A user with a token that was made from none."""
    users.create(twin.on, name, ())
    return tokens.mint_first(twin.on, name, lasts, "")[0]


def show(twin: Twin, secret: str) -> Bearer:
    return users.authenticate(twin.on, f"Bearer {secret}")


def approved(twin: Twin, by: Bearer, wish: Wish = Wish()) -> tuple[str, str]:  # noqa: B008  (it is frozen)
    """A login that somebody approved: its code, and its secret."""
    code, secret = logins.begin(twin.on, "bench", HOME)
    logins.approve(twin.on, by, code, wish)
    return code, secret


def given_by(twin: Twin, session: str, wish: Wish = Wish()) -> Token:  # noqa: B008
    """The token of a machine whose login a session approved."""
    got = logins.take(twin.on, *approved(twin, users.authenticate_session(twin.on, session), wish))
    assert got
    return got[1]


def lasts(token: Token) -> timedelta:
    """For how long a token was made; the clock moves on by milliseconds while it is."""
    assert token.expires
    return timedelta(seconds=round((token.expires - token.created).total_seconds()))


def test_a_session_is_made_from_a_token_for_half_a_day(twin: Twin) -> None:
    token = first(twin)
    ada, now = show(twin, token), twin.on.world.now()
    secret, who = sessions.begin(twin.on, token, FIREFOX)
    assert secret not in (token, "")
    assert (who.name, who.token.name, who.token.by) == ("ada", "console in Firefox on Linux", "ada")
    assert (who.token.ancestors, who.token.scopes) == ((ada.token.id,), ("all",))
    assert who.token.expires == now + HALF_A_DAY
    assert who.token.session
    (entry, *_) = audit.list_entries(twin.on, Wanted(), 10, "")[0]
    assert (entry.did, entry.what) == ("sign in", "user ada")
    assert entry.detail.startswith(f"session {who.token.id} for all, until ")


def test_each_session_is_new(twin: Twin) -> None:
    """SEC-2: nobody can know one before it begins, or be given another's."""
    token = first(twin)
    made = {sessions.begin(twin.on, token, "")[0] for _ in range(3)}
    assert len(made) == 3


def test_a_session_has_the_scopes_of_its_token_and_ends_with_it(twin: Twin) -> None:
    ada = show(twin, first(twin))
    narrow, row = tokens.mint(twin.on, ada, "ada", Wish("", ["read"], 3600))
    secret, who = sessions.begin(twin.on, narrow, "")
    assert (who.token.scopes, who.token.expires) == (("read",), row.expires)
    assert refused(users.authenticate_session, twin.on, secret, SUBMIT) == (403, "scope-missing")
    twin.pass_time(3600)
    assert refused(users.authenticate_session, twin.on, secret) == (401, "token-expired")


def test_a_session_is_over_after_half_a_day(twin: Twin) -> None:
    secret, _ = sessions.begin(twin.on, first(twin), "")
    twin.pass_time(HALF_A_DAY.total_seconds() - 1)
    assert users.authenticate_session(twin.on, secret).name == "ada"
    twin.pass_time(1)
    assert refused(users.authenticate_session, twin.on, secret) == (401, "token-expired")


def test_revoking_the_token_ends_the_session(twin: Twin) -> None:
    """SEC-2."""
    token = first(twin)
    secret, _ = sessions.begin(twin.on, token, "")
    ada = show(twin, token)
    tokens.revoke(twin.on, ada, ada.token.id)
    assert refused(users.authenticate_session, twin.on, secret) == (401, "token-revoked")


def test_a_token_is_no_session_and_a_hosts_begins_none(twin: Twin) -> None:
    """SEC-2."""
    token = first(twin)
    host, _ = tokens.mint(twin.on, show(twin, token), "ada", Wish("", ["host:target/lab/bench"]))
    assert refused(users.authenticate_session, twin.on, token) == (401, "no-session")
    assert refused(sessions.begin, twin.on, host, "") == (403, "scope-missing")
    for wrong in ("", "x", f"{token[:-1]}!"):
        assert refused(sessions.begin, twin.on, wrong, "")[0] == 401


def test_a_token_with_many_ancestors_begins_no_session(twin: Twin) -> None:
    token = first(twin)
    for _ in range(ANCESTORS):
        token, _row = tokens.mint(twin.on, show(twin, token), "ada", Wish())
    assert refused(sessions.begin, twin.on, token, "") == (422, "too-many-ancestors")


def test_a_login_that_was_approved_begins_a_session_once(twin: Twin) -> None:
    """SEC-2: for half a day, and not for as long as a machine's token lasts."""
    ada, now = show(twin, first(twin)), twin.on.world.now()
    code, secret = approved(twin, ada, Wish("", ["read"]))
    made, who = sessions.begin_by_code(twin.on, code, secret, FIREFOX)
    assert (who.token.name, who.token.scopes) == ("console in Firefox on Linux", ("read",))
    assert (who.token.ancestors, who.token.expires) == ((ada.token.id,), now + HALF_A_DAY)
    assert users.authenticate_session(twin.on, made).name == "ada"
    assert refused(sessions.begin_by_code, twin.on, code, secret, "") == (410, "login-taken")


def test_a_login_that_waits_begins_no_session(twin: Twin) -> None:
    """SEC-2."""
    code, secret = logins.begin(twin.on, "", HOME)
    assert refused(sessions.begin_by_code, twin.on, code, secret, "") == (409, "login-waits")
    assert refused(sessions.begin_by_code, twin.on, code, "x", "") == (404, "login-not-found")


def test_a_session_ends_when_it_is_told_to(twin: Twin) -> None:
    token = first(twin)
    secret, who = sessions.begin(twin.on, token, "")
    assert sessions.end(twin.on, secret)
    assert refused(users.authenticate_session, twin.on, secret) == (401, "token-revoked")
    assert not sessions.end(twin.on, secret)
    assert not sessions.end(twin.on, "")
    assert not sessions.end(twin.on, token), "a token is no session"
    assert show(twin, token).name == "ada"
    row = twin.store.get(token_key(who.token.id), Token)
    assert row
    assert row.revoked
    assert row.revoked.by == "ada"


def test_who_is_disabled_signs_out_for_good(twin: Twin) -> None:
    """SEC-2: a session that somebody ended does not come back when its user is enabled."""
    token = first(twin)
    secret, _ = sessions.begin(twin.on, token, "")
    lifecycle.disable(twin.on, users.create(twin.on, "root", ["admin"]), "ada", ends_live=False)
    assert refused(users.authenticate_session, twin.on, secret) == (401, "user-disabled")
    assert sessions.end(twin.on, secret)
    assert not sessions.end(twin.on, secret)
    lifecycle.enable(twin.on, "root", "ada")
    assert refused(users.authenticate_session, twin.on, secret) == (401, "token-revoked")
    assert show(twin, token).name == "ada", "the token that it was made from is not ended"


def test_a_session_that_is_over_is_signed_out_already(twin: Twin) -> None:
    secret, _ = sessions.begin(twin.on, first(twin), "")
    twin.pass_time(HALF_A_DAY.total_seconds())
    assert not sessions.end(twin.on, secret)


def test_a_session_makes_no_token_that_outlives_it(twin: Twin) -> None:
    """SEC-2."""
    secret, who = sessions.begin(twin.on, first(twin), "")
    _, child = tokens.mint(twin.on, show(twin, secret), "ada", Wish())
    assert (child.expires, child.ancestors[-1], child.session) == (who.token.expires, who.token.id, None)
    for longer in ("never", 13 * 3600):
        assert refused(tokens.mint, twin.on, who, "ada", Wish(lasts=longer)) == (422, "outlives-parent")


def test_a_session_signs_a_machine_in_for_as_long_as_its_token_would(twin: Twin) -> None:
    """SEC-2: the machine's token comes from the session's, ends with that, and not with the session."""
    token = first(twin)
    ada = show(twin, token)
    secret, _ = sessions.begin(twin.on, token, "")
    made = given_by(twin, secret)
    assert (made.ancestors, made.session) == ((ada.token.id,), None)
    assert lasts(made) == DEFAULT_LIFE
    assert sessions.end(twin.on, secret)
    assert users.good_token(twin.on, made.id)
    tokens.revoke(twin.on, ada, ada.token.id)
    assert refused(users.good_token, twin.on, made.id) == (401, "token-revoked")


def test_a_session_signs_no_machine_in_for_ever(twin: Twin) -> None:
    """SEC-2: whoever has a browser for a moment gets 90 days at most."""
    secret, who = sessions.begin(twin.on, first(twin), "")
    code, _ = logins.begin(twin.on, "", HOME)
    for longer in ("never", 91 * 24 * 3600):
        assert refused(logins.approve, twin.on, who, code, Wish(lasts=longer)) == (422, "outlives-parent")
    assert lasts(given_by(twin, secret, Wish(lasts=90 * 24 * 3600))) == DEFAULT_LIFE


def test_a_session_that_is_forgotten_while_it_ends_has_ended(twin: Twin) -> None:
    secret, who = sessions.begin(twin.on, first(twin), "")
    drop(twin, who.token)
    assert tokens.end(twin.on, who.token) == who.token
    assert not sessions.end(twin.on, secret)


def test_what_a_session_gives_ends_with_the_token_that_it_comes_from(twin: Twin) -> None:
    """SEC-2."""
    token = first(twin, lasts=3600 * 24)
    secret, _ = sessions.begin(twin.on, token, "")
    assert given_by(twin, secret).expires == show(twin, token).token.expires


def test_a_session_gives_no_more_than_its_login_was_allowed(twin: Twin) -> None:
    """SEC-2: neither for longer, nor for more."""
    ada = show(twin, first(twin))
    code, secret = approved(twin, ada, Wish("", ["read", "submit"], 3600))
    session, who = sessions.begin_by_code(twin.on, code, secret, "")
    assert lasts(who.token) == timedelta(hours=1)
    made = given_by(twin, session, Wish("", ["read"]))
    assert (made.expires, made.scopes, made.ancestors) == (who.token.expires, ("read",), (ada.token.id,))
    other, _ = logins.begin(twin.on, "", HOME)
    assert refused(logins.approve, twin.on, who, other, Wish("", ["users"])) == (403, "scope-missing")
    assert refused(logins.approve, twin.on, who, other, Wish(lasts=3601)) == (422, "outlives-parent")


def test_a_session_that_a_session_allowed_comes_from_the_same_token(twin: Twin) -> None:
    token = first(twin)
    session, _ = sessions.begin(twin.on, token, "")
    code, secret = approved(twin, users.authenticate_session(twin.on, session))
    _, who = sessions.begin_by_code(twin.on, code, secret, "")
    assert who.token.ancestors == (show(twin, token).token.id,)
    assert lasts(who.token) == HALF_A_DAY


def test_a_login_that_a_session_approved_is_over_when_the_session_ends_first(twin: Twin) -> None:
    """SEC-2."""
    session, who = sessions.begin(twin.on, first(twin), "")
    code, secret = approved(twin, who)
    assert sessions.end(twin.on, session)
    assert refused(logins.take, twin.on, code, secret) == (410, "login-over")


def test_sessions_are_listed_among_the_tokens(twin: Twin) -> None:
    token = first(twin)
    _, who = sessions.begin(twin.on, token, "")
    listed = tokens.list_tokens(twin.on, who, "ada", 10, "")
    assert [bool(each.session) for each in listed] == [False, True]
