"""Logins by code: codes, what machines call themselves, and how many may begin. [SEC-2]"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from penstock.domain.users import logins
from penstock.domain.users.logins import LASTS, Approval, LoginPace
from penstock.kernel.errors import Refused

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_codes_have_eight_letters_that_are_not_mistaken() -> None:
    made = {logins.code_from(str(number)) for number in range(2000)}
    assert len(made) == 2000
    assert {len(code) for code in made} == {9}
    assert {code[4] for code in made} == {"-"}
    for place in (0, 1, 2, 3, 5, 6, 7, 8):
        assert {code[place] for code in made} == set("BCDFGHJKLMNPQRSTVWXZ")


@pytest.mark.parametrize("text", ["BCDF-GHJK", "bcdfghjk", " bcdf ghjk\n", "B.C.D.F-G.H.J.K"])
def test_a_code_is_found_however_it_is_written(text: str) -> None:
    assert logins.login_key(text) == logins.login_key("BCDF-GHJK")
    assert logins.new_login("BCDF-GHJK", "s", "", "", NOW).key == logins.login_key(text)


@pytest.mark.parametrize("text", ["BCDF-GHJL", "BCDF-GHJ", "BCDF-GHJKL", "", "é"])
def test_another_code_is_another(text: str) -> None:
    assert logins.login_key(text) != logins.login_key("BCDF-GHJK")


def test_neither_code_nor_secret_is_stored() -> None:
    """SEC-1."""
    row = logins.new_login("BCDF-GHJK", "secret-text", "bench", "10.0.0.1", NOW)
    assert "BCDF" not in repr(row)
    assert "secret-text" not in repr(row)
    assert row.is_of("secret-text")
    assert not row.is_of("secret-texu")
    assert (row.ends, row.expiry) == (NOW + LASTS, NOW + timedelta(minutes=10))


@pytest.mark.parametrize(
    ("said", "shown"),
    [(" bench ", "bench"), ("a\x1b[2Jb\nc", "a?[2Jb?c"), ("bénch\u202e", "b?nch?"), ("x" * 65, "x" * 64), ("", "")],
)
def test_what_a_machine_calls_itself_harms_no_terminal(said: str, shown: str) -> None:
    """SEC-1."""
    assert logins.clean(said) == shown


@pytest.mark.parametrize(
    ("address", "shown", "counted"),
    [
        ("10.0.0.1", "10.0.0.1", "10.0.0.1"),
        ("2001:DB8:0:1:2::3", "2001:db8:0:1:2::3", "2001:db8:0:1::/64"),
        ("", "unknown", "unknown"),
        ("nonsense\n", "unknown", "unknown"),
    ],
)
def test_addresses(address: str, shown: str, counted: str) -> None:
    assert (logins.plain_address(address), logins.network(address)) == (shown, counted)


def test_many_begin_and_one_more_after_a_while() -> None:
    """SEC-2: a bucket of three that leaks in ten minutes."""
    pace = LoginPace(of="x", at=NOW)
    for _ in range(3):
        pace = logins.with_one_more(pace, 3, NOW, "too many")
    with pytest.raises(Refused, match="too many; at most 3 in 10 minutes: wait a minute") as found:
        logins.with_one_more(pace, 3, NOW + timedelta(seconds=199), "too many")
    assert (found.value.status, found.value.code) == (429, "too-many-logins")
    after = logins.with_one_more(pace, 3, NOW + timedelta(seconds=200), "too many")
    assert (after.level, after.at, after.expiry) == (3, NOW + timedelta(seconds=200), after.at + LASTS)
    assert logins.level(after, 3, NOW + timedelta(days=1)) == 0
    assert after.key == logins.pace_key("x")


def test_an_approval_says_what_the_token_will_be_good_for() -> None:
    approval = Approval("ada", "0" * 26, NOW, ("read",), None)
    assert (approval.scopes, approval.expires) == (("read",), None)
