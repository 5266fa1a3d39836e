"""What users may do, and what can name them."""

import hashlib
from dataclasses import replace

import pytest

from penstock.domain.users.users import ADMIN, User, digest, is_name, is_privilege, is_strong
from tests.domain.helpers import NOW


@pytest.mark.parametrize(
    ("has", "asked", "may"),
    [
        ((), None, True),
        ((), "target.lab", False),
        (("target.lab",), "target.lab", True),
        (("target.lab",), "target.labs", False),
        (("target.lab",), ADMIN, False),
        ((ADMIN,), "target.lab", True),
    ],
)
def test_a_user_may(has: tuple[str, ...], asked: str | None, may: bool) -> None:
    assert User(name="ada", privileges=has, created=NOW).may(asked) is may


@pytest.mark.parametrize(
    ("text", "name", "privilege"),
    [
        ("ada", True, True),
        ("ada.l_0-x", True, True),
        ("resource/bench", False, True),
        ("a" * 64, True, True),
        ("a" * 65, False, True),
        ("a" * 192, False, True),
        ("a" * 193, False, False),
        ("oxide:hubris", True, True),
        ("as.oxide:hubris", True, True),
        ("oxide:" + "x" * 100, True, True),
        ("oxide:" + "x" * 101, False, True),
        ("oxide:", False, True),
        ("oxide:a:b", False, True),
        (":hubris", False, False),
        ("", False, False),
        ("Ada", False, False),
        ("-a", False, False),
        ("a\n", False, False),
    ],
)
def test_what_can_be_a_name_and_what_a_privilege(text: str, name: bool, privilege: bool) -> None:
    assert (is_name(text), is_privilege(text)) == (name, privilege)


@pytest.mark.parametrize(
    ("token", "strong"),
    [("a" * 43, True), ("-_9Z" * 32, True), ("a" * 42, False), ("a" * 129, False), ("a" * 42 + "!", False)],
)
def test_a_token_is_accepted_by_its_shape(token: str, strong: bool) -> None:
    assert is_strong(token) is strong


def test_only_the_hash_of_a_secret_is_kept() -> None:
    assert digest("secret") == hashlib.sha256(b"secret").hexdigest()


@pytest.mark.parametrize(
    ("privileges", "acts_for", "sees"),
    [
        ((), (), ()),
        (("as",), ("oxide:hubris", "oxide:idol"), ("oxide:hubris", "oxide:idol")),
        (("as.oxide:hubris",), ("oxide:hubris",), ("oxide:hubris",)),
        (("as.eve",), (), ()),
        (("admin",), ("oxide:hubris", "oxide:idol"), ("oxide:hubris", "oxide:idol", "eve")),
    ],
)
def test_for_whom_somebody_acts_and_whose_things_they_see(
    privileges: tuple[str, ...], acts_for: tuple[str, ...], sees: tuple[str, ...]
) -> None:
    gate = User(name="gate", privileges=privileges, created=NOW)
    others = ("oxide:hubris", "oxide:idol", "eve")
    assert (gate.may_act_for("gate"), gate.may_see("gate")) == (True, True)
    assert tuple(each for each in others if gate.may_act_for(each)) == acts_for
    assert tuple(each for each in others if gate.may_see(each)) == sees


def test_a_repository_is_the_one_that_it_was_first() -> None:
    user = User(name="oxide:hubris", created=NOW)
    assert user.is_of(55)
    bound = replace(user, repository_id=55)
    assert bound.is_of(55)
    assert not bound.is_of(77)
