"""Logins by code: begun by a machine, approved by a user, taken once. [SEC-2]"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.users import logins as rules
from penstock.domain.users.audit import Wanted
from penstock.domain.users.logins import PER_ADDRESS, PER_SITE, WRONG_CODES, LoginPace
from penstock.domain.users.users import ANCESTORS, DEFAULT_LIFE, Bearer
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Key
from penstock.testing.twin import Twin
from penstock.usecases.users import audit, lifecycle, logins, tokens, users
from penstock.usecases.users.tokens import Lasting, Wish
from tests.usecases.races import before_the_next_commit

HOME = "198.51.100.7"


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


def begin(twin: Twin, host: str = "bench") -> tuple[str, str]:
    return logins.begin(twin.on, host, HOME)


def test_a_machine_gets_a_token_that_somebody_approved(twin: Twin) -> None:
    ada = show(twin, first(twin))
    code, secret = begin(twin)
    assert logins.take(twin.on, code, secret) is None
    found = logins.find(twin.on, ada, code.lower())
    assert (found.host, found.address) == ("bench", HOME)
    logins.approve(twin.on, ada, code, Wish())
    got = logins.take(twin.on, code, secret)
    assert got
    bearer = show(twin, got[0])
    assert (bearer.name, bearer.token.name, bearer.token.by) == ("ada", "login on bench", "ada")
    assert bearer.token.ancestors == (ada.token.id,)
    assert bearer.token.scopes == ada.token.scopes
    approved = logins.find(twin.on, ada, code)
    assert approved.approval
    assert bearer.token.expires == approved.approval.at + DEFAULT_LIFE
    assert approved.taken == bearer.token.id


def test_a_machine_without_a_name_gets_a_token_with_one(twin: Twin) -> None:
    ada = show(twin, first(twin))
    code, secret = begin(twin, "")
    logins.approve(twin.on, ada, code, Wish())
    got = logins.take(twin.on, code, secret)
    assert got
    assert got[1].name == "login"


def test_a_token_is_given_once(twin: Twin) -> None:
    """SEC-2."""
    ada = show(twin, first(twin))
    code, secret = begin(twin)
    logins.approve(twin.on, ada, code, Wish())
    assert logins.take(twin.on, code, secret)
    before = len(twin.store.rows)
    assert refused(logins.take, twin.on, code, secret) == (410, "login-taken")
    assert len(twin.store.rows) == before


def test_of_two_that_take_a_token_at_once_one_gets_it(twin: Twin) -> None:
    """SEC-2."""
    ada = show(twin, first(twin))
    code, secret = begin(twin)
    logins.approve(twin.on, ada, code, Wish())
    before_the_next_commit(twin, lambda: logins.take(twin.on, code, secret))
    assert refused(logins.take, twin.on, code, secret) == (410, "login-taken")
    assert len(tokens.list_tokens(twin.on, ada, "ada", 10, "")) == 2


def test_only_the_machine_that_asked_takes_the_token(twin: Twin) -> None:
    """SEC-2: neither who knows the code, nor another machine with its own secret."""
    ada = show(twin, first(twin))
    code, secret = begin(twin)
    other, others = begin(twin)
    logins.approve(twin.on, ada, code, Wish())
    for wrong in ("", "x", others):
        assert refused(logins.take, twin.on, code, wrong) == (404, "login-not-found")
    assert refused(logins.take, twin.on, other, secret) == (404, "login-not-found")
    assert logins.take(twin.on, code, secret)


def test_a_login_is_over_after_ten_minutes(twin: Twin) -> None:
    ada = show(twin, first(twin))
    code, secret = begin(twin)
    late, kept = begin(twin)
    logins.approve(twin.on, ada, late, Wish())
    twin.pass_time(599)
    assert logins.take(twin.on, code, secret) is None
    twin.pass_time(1)
    assert refused(logins.find, twin.on, ada, code) == (404, "login-not-found")
    assert refused(logins.approve, twin.on, ada, code, Wish()) == (404, "login-not-found")
    assert refused(logins.take, twin.on, late, kept) == (404, "login-not-found")


def test_a_login_is_approved_once(twin: Twin) -> None:
    """SEC-2: by one token, as it wished first; that it asks again changes nothing."""
    ada, bob = show(twin, first(twin)), show(twin, first(twin, "bob"))
    code, secret = begin(twin)
    logins.approve(twin.on, ada, code, Wish("", ["read"]))
    assert refused(logins.approve, twin.on, bob, code, Wish()) == (409, "login-approved")
    again = logins.approve(twin.on, ada, code, Wish("", ["submit"]))
    assert again.approval
    assert again.approval.scopes == ("read",)
    got = logins.take(twin.on, code, secret)
    assert got
    assert (got[1].user, got[1].scopes) == ("ada", ("read",))


def test_of_two_that_approve_at_once_one_does(twin: Twin) -> None:
    """SEC-2."""
    ada, bob = show(twin, first(twin)), show(twin, first(twin, "bob"))
    code, _ = begin(twin)
    before_the_next_commit(twin, lambda: logins.approve(twin.on, bob, code, Wish()))
    assert refused(logins.approve, twin.on, ada, code, Wish()) == (409, "login-approved")


def test_nobody_approves_more_than_they_have(twin: Twin) -> None:
    """SEC-2: neither scopes, nor time."""
    ada = show(twin, first(twin, lasts=3600))
    narrow = show(twin, tokens.mint(twin.on, ada, "ada", Wish(scopes=["read"]))[0])
    code, secret = begin(twin)
    assert refused(logins.approve, twin.on, narrow, code, Wish("", ["submit"])) == (403, "scope-missing")
    assert refused(logins.approve, twin.on, ada, code, Wish(lasts="never")) == (422, "outlives-parent")
    logins.approve(twin.on, narrow, code, Wish())
    twin.pass_time(60)
    got = logins.take(twin.on, code, secret)
    assert got
    assert (got[1].scopes, got[1].expires) == (("read",), ada.token.expires)
    assert got[1].ancestors == (ada.token.id, narrow.token.id)


def test_the_oldest_line_of_tokens_approves_nothing(twin: Twin) -> None:
    secret = first(twin)
    for _ in range(ANCESTORS):
        secret = tokens.mint(twin.on, show(twin, secret), "ada", Wish())[0]
    assert refused(logins.approve, twin.on, show(twin, secret), begin(twin)[0], Wish()) == (422, "too-many-ancestors")


def test_a_token_that_was_revoked_meanwhile_gives_none(twin: Twin) -> None:
    """SEC-2."""
    ada = show(twin, first(twin))
    code, secret = begin(twin)
    logins.approve(twin.on, ada, code, Wish())
    tokens.revoke(twin.on, ada, ada.token.id)
    assert refused(logins.take, twin.on, code, secret) == (410, "login-over")


def test_a_user_who_was_disabled_meanwhile_gets_none(twin: Twin) -> None:
    """SEC-2."""
    ada = show(twin, first(twin))
    root = users.create(twin.on, "root", ["admin"])
    code, secret = begin(twin)
    logins.approve(twin.on, ada, code, Wish())
    lifecycle.disable(twin.on, root, "ada", ends_live=False)
    assert refused(logins.take, twin.on, code, secret) == (410, "login-over")


def test_revoking_the_token_that_approved_ends_the_login(twin: Twin) -> None:
    """SEC-2."""
    ada = show(twin, first(twin))
    code, secret = begin(twin)
    logins.approve(twin.on, ada, code, Wish())
    got = logins.take(twin.on, code, secret)
    assert got
    tokens.revoke(twin.on, ada, ada.token.id)
    assert refused(show, twin, got[0]) == (401, "token-revoked")


def test_few_begin_at_one_address(twin: Twin) -> None:
    """SEC-2: the others are refused, and nothing is written for them; those elsewhere are not."""
    for _ in range(PER_ADDRESS):
        begin(twin)
    before = dict(twin.store.rows)
    assert refused(begin, twin) == (429, "too-many-logins")
    assert twin.store.rows == before
    assert logins.begin(twin.on, "bench", "198.51.100.8")
    twin.pass_time(60)
    assert begin(twin)
    assert refused(begin, twin) == (429, "too-many-logins")


def test_those_of_a_network_are_counted_together(twin: Twin) -> None:
    for number in range(PER_ADDRESS):
        logins.begin(twin.on, "bench", f"2001:db8::{number}")
    assert refused(logins.begin, twin.on, "bench", "2001:db8::ffff") == (429, "too-many-logins")
    assert logins.begin(twin.on, "bench", "2001:db8:0:1::1")


def test_few_begin_at_all(twin: Twin) -> None:
    """SEC-2."""
    for number in range(PER_SITE):
        logins.begin(twin.on, "bench", f"10.0.0.{number}")
    assert refused(logins.begin, twin.on, "bench", "10.0.1.1") == (429, "too-many-logins")


def test_nobody_guesses_codes(twin: Twin) -> None:
    """SEC-2: after some wrong ones, a user is refused for a while, also with a right one."""
    ada, bob = show(twin, first(twin)), show(twin, first(twin, "bob"))
    code, _ = begin(twin)
    for number in range(WRONG_CODES):
        ask = logins.find if number % 2 else lambda on, by, code: logins.approve(on, by, code, Wish())
        assert refused(ask, twin.on, ada, "BCDF-GHJK") == (404, "login-not-found")
    assert refused(logins.find, twin.on, ada, code) == (429, "too-many-logins")
    assert refused(logins.approve, twin.on, ada, code, Wish()) == (429, "too-many-logins")
    assert logins.find(twin.on, bob, code)
    twin.pass_time(60)
    assert logins.find(twin.on, ada, code)


def test_who_guessed_too_often_is_refused_unread(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-2: so the time that it takes says nothing of a code."""
    ada = show(twin, first(twin))
    for _ in range(WRONG_CODES):
        refused(logins.find, twin.on, ada, "BCDF-GHJK")
    get, read = twin.store.get, list[str]()

    def noted(key: Key, kind: Any) -> Any:
        read.append(key.sk)
        return get(key, kind)

    monkeypatch.setattr(twin.store, "get", noted)
    assert refused(logins.find, twin.on, ada, "BCDF-GHJK") == (429, "too-many-logins")
    assert read == ["login-pace"]


@pytest.mark.parametrize("before", [0, 1])
def test_of_two_that_begin_at_once_both_are_counted(twin: Twin, before: int) -> None:
    """SEC-2."""
    for _ in range(before):
        begin(twin)
    before_the_next_commit(twin, lambda: begin(twin))
    begin(twin)
    for of in ("all", f"from#{HOME}"):
        pace = twin.store.get(rules.pace_key(of), LoginPace)
        assert pace
        assert pace.level == before + 2


def test_who_has_too_many_tokens_gets_no_more(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "TOKENS", 2)
    ada = show(twin, first(twin))
    code, secret = begin(twin)
    logins.approve(twin.on, ada, code, Wish())
    tokens.mint(twin.on, ada, "ada", Wish())
    assert refused(logins.take, twin.on, code, secret) == (409, "too-many-tokens")


def test_right_codes_are_not_counted(twin: Twin) -> None:
    ada = show(twin, first(twin))
    code, _ = begin(twin)
    for _ in range(WRONG_CODES + 1):
        assert logins.find(twin.on, ada, code)


def test_a_code_that_is_in_use_is_not_given_again(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = show(twin, first(twin))
    codes = iter(["BCDF-GHJK", "BCDF-GHJK", "LMNP-QRST"])
    monkeypatch.setattr(rules, "code_from", lambda chance: next(codes))
    code, secret = begin(twin)
    assert begin(twin)[0] == "LMNP-QRST"
    logins.approve(twin.on, ada, code, Wish())
    assert logins.take(twin.on, code, secret)


def test_who_approved_is_in_the_audit_log(twin: Twin) -> None:
    ada = show(twin, first(twin))
    code, secret = begin(twin)
    logins.approve(twin.on, ada, code, Wish())
    logins.take(twin.on, code, secret)
    unnamed, _ = begin(twin, "")
    logins.approve(twin.on, ada, unnamed, Wish())
    entries, _ = audit.list_entries(twin.on, Wanted("ada"), 10, "")
    assert [(entry.did, entry.what) for entry in entries] == [
        ("approve login", "user ada"),
        ("make token", "user ada"),
        ("approve login", "user ada"),
    ]
    assert entries[1].detail.endswith(" for all, until 2026-04-01 00:00:00Z")
    assert entries[0].detail == f"for a machine at {HOME}"
    assert entries[2].detail == f"for bench at {HOME}"
