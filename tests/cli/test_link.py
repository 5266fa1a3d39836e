"""penstock user link: a GitHub account, by its number, signs in as a user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from penstock.cli.commands import user
from penstock.domain.github.accounts import Account, account_key
from tests.attacks.front import serving
from tests.cli.conftest import plain
from tests.functions.service import Service, new_service, new_twin, token_of


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    made = new_service(new_twin(monkeypatch))
    made.ask("GET", "/v1/whoami")  # a function's first call prints that it started
    return made


@pytest.fixture
def url(service: Service, home: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A service where an operator is signed in."""
    with serving(service) as found:
        monkeypatch.setenv("PENSTOCK_URL", found)
        monkeypatch.setenv("PENSTOCK_TOKEN", token_of("root"))
        yield found


def github(monkeypatch: pytest.MonkeyPatch, answer: httpx.Response | Exception) -> list[str]:
    """What github.com answers, and what it is asked."""
    asked: list[str] = []

    def get(url: str, **_: Any) -> httpx.Response:
        asked.append(url)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(user.httpx, "get", get)
    return asked


def linked(service: Service, id: int) -> Account | None:
    return service.twin.store.get(account_key(id), Account)


def test_an_account_is_linked_by_its_number(service: Service, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = github(monkeypatch, httpx.Response(200, json={"id": 4242, "login": "ada-l"}))
    result = plain("user", "link", "ada", "--github", "ada-l")
    assert (result.exit_code, result.stdout) == (0, "the GitHub account ada-l (number 4242) signs in as ada\n")
    assert asked == ["https://api.github.com/users/ada-l"]
    found = linked(service, 4242)
    assert found
    assert (found.user, found.login) == ("ada", "ada-l")


def test_a_number_is_taken_as_it_is_given(service: Service, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = github(monkeypatch, httpx.Response(500))
    assert plain("user", "link", "ada", "--github", "ada-l", "--id", "7").exit_code == 0
    assert (asked, linked(service, 7) is not None) == ([], True)


def test_a_login_is_no_path(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = github(monkeypatch, httpx.Response(404))
    result = plain("user", "link", "ada", "--github", "../orgs/x?")
    assert (result.exit_code, asked) == (2, ["https://api.github.com/users/..%2Forgs%2Fx%3F"])


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (httpx.Response(404, json={}), 2, "github.com knows no account eve (404)"),
        (httpx.Response(200, json={}), 2, "github.com knows no account eve (200)"),
        (httpx.ConnectError("away"), 5, "github.com does not answer: away"),
    ],
)
def test_without_a_number_nothing_is_linked(
    url: str, monkeypatch: pytest.MonkeyPatch, answer: httpx.Response | Exception, code: int, message: str
) -> None:
    github(monkeypatch, answer)
    result = plain("user", "link", "ada", "--github", "eve")
    assert result.exit_code == code
    assert message in result.stderr
    assert "--id" in result.stderr
