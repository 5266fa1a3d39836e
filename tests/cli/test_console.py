"""penstock console, against the real handlers: it opens an address that signs a browser in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from penstock.cli import terminal
from penstock.domain.users.users import Token
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
    """A service where Ada is signed in."""
    with serving(service) as found:
        service.twin.on = replace(service.twin.on, console_url=found)
        monkeypatch.setenv("PENSTOCK_URL", f"{found}/")
        monkeypatch.setenv("PENSTOCK_TOKEN", token_of("ada"))
        yield found


def sign_in(url: str, address: str) -> httpx.Response:
    """What the page does with the address that it was opened at."""
    found = re.fullmatch(re.escape(url) + r"/#sign-in=([A-Z]{4}-[A-Z]{4})\.(\S+)", address)
    assert found, address
    body = {"code": found[1], "secret": found[2]}
    return httpx.post(f"{url}/v1/session", json=body, headers={"penstock-console": "1"}, trust_env=False)


def test_the_address_signs_one_browser_in_once(service: Service, url: str) -> None:
    """SEC-2."""
    result = plain("console", "--print")
    assert result.exit_code == 0, result.output
    address = result.stdout.strip()
    assert "works for ten minutes" in result.stderr
    assert token_of("ada") not in result.output
    answer = sign_in(url, address)
    assert (answer.status_code, answer.json()["user"]) == (201, "ada")
    assert sign_in(url, address).status_code == 410
    (made,) = [row for row in service.twin.store.rows.values() if isinstance(row, Token) and row.session]
    assert (made.user, made.ancestors) == ("ada", (token_of("ada")[9:35],))


def test_the_console_may_be_elsewhere_than_the_service(service: Service, url: str) -> None:
    """On AWS, people's pages have an address of their own."""
    service.twin.on = replace(service.twin.on, console_url="https://console.example.com")
    assert plain("console", "--print").stdout.startswith("https://console.example.com/#sign-in=")
    service.twin.on = replace(service.twin.on, console_url="")
    result = plain("console", "--print")
    assert (result.exit_code, "this service has no console" in result.stderr) == (2, True)


def test_a_browser_is_opened_at_it(service: Service, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(terminal, "open_page", lambda address: opened.append(address) or True)
    result = plain("console")
    assert (result.exit_code, result.stdout) == (0, f"opened {url} in your browser\n")
    assert "sign-in" not in result.output
    assert sign_in(url, opened[0]).status_code == 201


def test_programs_get_the_address(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "open_page", lambda address: pytest.fail(address))
    assert sign_in(url, json.loads(plain("console", "--json").stdout)["url"]).status_code == 201


def test_without_a_browser_it_says_what_to_do(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "open_page", lambda _: False)
    result = plain("console")
    assert result.exit_code == 2
    assert "`penstock console --print` prints the address" in result.stderr


def test_a_narrow_token_signs_in_to_no_more(service: Service, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-2."""
    narrow = service.ask("POST", "/v1/users/ada/tokens", {"scopes": ["read"]}).json["token"]
    monkeypatch.setenv("PENSTOCK_TOKEN", narrow)
    answer = sign_in(url, plain("console", "--print").stdout.strip())
    assert answer.json()["scopes"] == ["read"]
