"""What tokens are good for, for how long, and how their secrets look. [SEC-2]"""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from penstock.domain.users import users
from penstock.domain.users.users import (
    ANY,
    HOST,
    KEPT_FOR,
    OPERATE,
    OPERATE_POOL,
    READ,
    SUBMIT,
    TOUCHED_EVERY,
    WHOLE,
    Bearer,
    Need,
    Revocation,
    Scope,
    Token,
    TokenKind,
    User,
    digest,
)
from penstock.kernel import rows
from tests.domain.helpers import MINUTE, NOW, SECOND

ID = rows.ulid(NOW, b"0123456789")
SECRET = users.token_secret(TokenKind.HOST, ID, "s" * 43)


def token(*has: str, **more: object) -> Token:
    return Token(**{"id": ID, "digest": digest(SECRET), "user": "ada", "created": NOW, "scopes": has} | more)  # type: ignore[arg-type]


def bearer(need: Need, *has: str, privileges: tuple[str, ...] = ()) -> Bearer | None:
    return users.bearer(User(name="ada", privileges=privileges, created=NOW), token(*has), need)


def narrowed(need: Need, *has: str, privileges: tuple[str, ...] = ()) -> Bearer:
    made = bearer(need, *has, privileges=privileges)
    assert made
    return made


def test_a_secret_says_what_it_is_for_and_which_token() -> None:
    assert re.fullmatch(rf"pst_host_{ID}_s{{43}}[0-9A-Z]{{7}}", SECRET)
    assert users.token_id_in(SECRET) == ID
    assert token().is_shown_by(SECRET)
    assert not token().is_shown_by(SECRET + "x")


BROKEN = {
    "empty": "",
    "only the beginning": "pst_host_",
    "cut": SECRET[:-1],
    "too long": SECRET + "0",
    "of another kind": SECRET.replace("host", "user"),
    "mistyped": SECRET.replace("s" * 43, "s" * 42 + "t"),
    "huge": "x" * 10_000,
    "another alphabet": "pst_host_ключ",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_what_is_no_whole_secret_names_no_token(text: str) -> None:
    """The checksum shows a typing error, and another word in front, before anything is read."""
    assert users.token_id_in(text) is None


def test_tokens_of_the_old_form_are_known_as_such() -> None:
    assert users.is_old_token("pst_" + "a" * 43)
    assert not any(map(users.is_old_token, (SECRET, "pst_" + "a" * 42, "a" * 43)))


def test_when_a_token_is_good() -> None:
    assert token().is_good(NOW)
    assert token(expires=NOW + SECOND).is_good(NOW)
    assert not token(expires=NOW).is_good(NOW)
    assert not token(revoked=Revocation("root", NOW)).is_good(NOW)


def test_a_token_is_forgotten_when_it_expires_or_some_time_after_it_was_revoked() -> None:
    assert token().expiry is None
    assert token(expires=NOW).expiry == NOW
    assert token(revoked=Revocation("root", NOW)).expiry == NOW + KEPT_FOR


def test_its_last_use_is_written_once_an_hour() -> None:
    assert token().is_stale(NOW)
    assert token(used=NOW).is_stale(NOW + TOUCHED_EVERY)
    assert not token(used=NOW).is_stale(NOW + TOUCHED_EVERY - SECOND)


def test_what_a_token_comes_from() -> None:
    child = token(ancestors=("a", "b"))
    assert (child.parent, token().parent) == ("b", None)
    assert [child.comes_from(each) for each in ("a", "b", ID, "c")] == [True, True, True, False]


def test_a_token_is_refused_with_any_of_its_ancestors() -> None:
    """SEC-2: a revoked, expired or forgotten ancestor ends all that come from it."""
    good, late = token(), token(expires=NOW - MINUTE)
    assert not users.is_any_gone([], NOW)
    assert not users.is_any_gone([good, good], NOW)
    for bad in (None, late, token(revoked=Revocation("root", NOW))):
        assert users.is_any_gone([good, bad, good], NOW)


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("all", Scope("all")),
        ("read", Scope("read")),
        ("submit", Scope("submit")),
        ("submit:oxide:hubris", Scope("submit", "oxide:hubris")),
        ("operate:target/ubuntu-24.04", Scope("operate", "target/ubuntu-24.04")),
        ("host:target/lab/bench-7", Scope("host", "target/lab/bench-7")),
        ("site", Scope("site")),
        ("users", Scope("users")),
        *((text, None) for text in (
            "", "admin", "All", "read:ada", "all:ada", "submit:", "submit:Ada", "operate:", "operate:lab",
            "operate:target/", "operate:target/a/b", "host", "host:", "host:bench-7", "host:target/lab", "site:x",
            "users:ada", "host:target/lab/Bench 7",
            "submit:ada\n", "operate:target/lab\n", " read",
        )),
    ],
)  # fmt: skip
def test_what_is_a_scope(text: str, scope: Scope | None) -> None:
    assert users.parse_scope(text) == scope
    assert scope is None or str(scope) == text


@pytest.mark.parametrize(
    ("wanted", "had", "beyond"),
    [
        (["read"], ["all"], None),
        (["all"], ["read", "submit", "operate", "site", "users"], "all"),
        (["read", "submit"], ["read"], "submit"),
        (["submit:ada"], ["submit"], None),
        (["submit"], ["submit:ada"], "submit"),
        (["submit:ada"], ["submit:bob"], "submit:ada"),
        (["operate:target/a"], ["operate:target/b", "operate:target/a"], None),
        (["host:target/a/h"], ["operate"], "host:target/a/h"),
        (["host:target/a/h"], ["all"], None),
        ([], [], None),
    ],
)
def test_nobody_gives_more_than_they_have(wanted: list[str], had: list[str], beyond: str | None) -> None:
    """SEC-2."""
    found = users.exceeding_scope(users.parse_scopes(wanted), users.parse_scopes(had))
    assert (str(found) if found else None) == beyond


def test_a_scope_that_is_not_known_any_more_allows_nothing() -> None:
    assert bearer(READ, "see") is None
    assert bearer(ANY, "see") is None


@pytest.mark.parametrize(
    ("need", "had", "within"),
    [
        (READ, ["all"], {""}),
        (READ, ["read"], {""}),
        (READ, ["submit"], None),
        (SUBMIT, ["submit:ada", "submit:bob"], {"ada", "bob"}),
        (SUBMIT, ["submit:ada", "submit"], {""}),
        (OPERATE, ["operate:target/a"], None),
        (OPERATE_POOL, ["operate:target/a"], {"target/a"}),
        (HOST, ["host:target/a/h"], {"target/a/h"}),
        (ANY, ["host:target/a/h"], None),
        (ANY, ["host:target/a/h", "read"], {""}),
        (WHOLE, ["read", "submit", "operate", "site", "users"], None),
        (READ, [], None),
        (SUBMIT, ["read"], None),
    ],
)
def test_what_a_route_makes_of_a_token(need: Need, had: list[str], within: set[str] | None) -> None:
    """SEC-2."""
    assert users.narrowing(need, users.parse_scopes(had)) == within


@pytest.mark.parametrize(
    ("texts", "privileges", "kind"),
    [
        (["all"], (), TokenKind.USER),
        (["all"], ("admin",), TokenKind.OPERATOR),
        (["read"], ("admin",), TokenKind.USER),
        ([], ("admin",), TokenKind.USER),
        (["operate:target/a"], ("admin",), TokenKind.OPERATOR),
        (["host:target/a/h"], ("admin",), TokenKind.HOST),
        (["host:target/a/h", "read"], ("admin",), TokenKind.USER),
    ],
)
def test_what_a_token_is_called(texts: list[str], privileges: tuple[str, ...], kind: TokenKind) -> None:
    assert users.token_kind(users.parse_scopes(texts), User(name="ada", privileges=privileges, created=NOW)) is kind


def test_a_token_for_one_owner_is_for_nobody_else() -> None:
    """SEC-2: neither for the user, nor for other repositories of theirs."""
    gate = narrowed(SUBMIT, "submit:oxide:hubris", privileges=("as",))
    others = ("oxide:hubris", "oxide:idol", "ada")
    assert [gate.may_act_for(each) for each in others] == [True, False, False]
    assert [gate.may_see(each) for each in others] == [True, False, False]
    reads = narrowed(READ, "read", "submit:oxide:hubris", privileges=("as",))
    assert all(reads.may_see(each) for each in others)


def test_an_operators_token_that_submits_does_not_operate() -> None:
    """SEC-2: it cancels no job of others, unless it has that scope too."""
    for has, sees in ((("submit",), False), (("submit", "operate"), True), (("all",), True)):
        assert narrowed(SUBMIT, *has, privileges=("admin",)).may_see("eve") is sees
        assert narrowed(SUBMIT, *has, privileges=("admin",)).may_see("ada")
    assert narrowed(READ, "read", privileges=("admin",)).may_see("eve")
    assert not narrowed(READ, "read").may_see("eve")
    both = narrowed(SUBMIT, "submit:ada", "operate", privileges=("admin",))
    assert [both.may_see(each) for each in ("ada", "eve")] == [True, False]


def test_a_token_for_one_pool_is_for_no_other() -> None:
    one = narrowed(OPERATE_POOL, "operate:target/a")
    assert [one.covers("operate", pool) for pool in ("target/a", "target/b")] == [True, False]
    assert one.covers("submit", "ada")
    assert narrowed(OPERATE_POOL, "operate").covers("operate", "target/b")
    assert User(name="ada", created=NOW).covers("operate", "target/b")


def test_a_user_keeps_what_is_theirs_with_a_token() -> None:
    made = narrowed(READ, "read", privileges=("target.lab",))
    assert (made.name, made.may("target.lab"), made.may("target.gpu"), made.is_narrowed) == ("ada", True, False, False)
    assert made.token.expires is None
    assert timedelta(days=90) == users.DEFAULT_LIFE
