"""GitHub accounts: what GitHub is asked, whom it names, and which browser began. [SEC-2]"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from penstock.domain.github import accounts
from penstock.domain.github.accounts import Account, Person
from penstock.domain.site.site import GitHubApp

VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
"""Source: RFC 7636, appendix B."""


def test_the_challenge_is_that_of_the_standard() -> None:
    assert accounts.challenge(VERIFIER) == CHALLENGE


@pytest.mark.parametrize(
    ("api", "web"),
    [
        ("https://api.github.com", "https://github.com"),
        ("https://github.example.com/api/v3", "https://github.example.com"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
    ],
)
def test_a_browser_is_sent_to_github_with_a_challenge(api: str, web: str) -> None:
    app = GitHubApp(1, (), api, "Iv1.a")
    address = urlsplit(accounts.authorize_url(app, "https://p.example/back?", "s&t", VERIFIER))
    assert f"{address.scheme}://{address.netloc}{address.path}" == f"{web}/login/oauth/authorize"
    assert dict(parse_qsl(address.query)) == {
        "client_id": "Iv1.a", "redirect_uri": "https://p.example/back?", "state": "s&t",
        "code_challenge": CHALLENGE, "code_challenge_method": "S256", "allow_signup": "false",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kept", "state", "verifier"),
    [
        ("s.v", "s", "v"),
        ("s.v.w", "s", "v.w"),
        ("s.v", "t", ""),
        ("s.v", "", ""),
        (".v", "", ""),
        ("", "", ""),
        ("s", "s", ""),
        ("s.", "s", ""),
        ("é.v", "é", "v"),
    ],
)
def test_only_the_browser_that_began_has_the_verifier(kept: str, state: str, verifier: str) -> None:
    """SEC-2."""
    assert accounts.verifier_in(kept, state) == verifier


@pytest.mark.parametrize(
    ("body", "person"),
    [
        ({"id": 42, "login": "ada-l", "more": 1}, Person(42, "ada-l")),
        ({"id": 1, "login": "dependabot[bot]"}, Person(1, "dependabot[bot]")),
        ({"id": 2**53, "login": "a"}, Person(2**53, "a")),
        *(({"id": id, "login": "a"}, None) for id in (0, -1, 2**53 + 1, "42", None, True, 1.5)),
        *(({"id": 1, "login": login}, None) for login in ("", "a b", "\x1b[2J", 7, None)),
        ({"id": 1}, None), ({}, None), ([], None), (None, None), ("x", None),
    ],
)  # fmt: skip
def test_only_a_whole_answer_names_somebody(body: Any, person: Person | None) -> None:
    """SEC-2: nobody is account 0, or one that GitHub did not name."""
    assert accounts.person_in(body) == person


def test_an_account_is_found_by_its_number_alone() -> None:
    """SEC-2: a login changes hands."""
    row = Account(id=42, login="ada-l", user="ada", token="T")
    assert row.key == accounts.account_key(42) == replace(row, login="eve", user="eve").key
    assert row.key != accounts.account_key(43)
