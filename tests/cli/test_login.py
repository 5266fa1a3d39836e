"""penstock login and logout, against the real handlers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import Result

from penstock.cli import terminal
from penstock.cli.commands import login
from penstock.cli.config import Config, Profile, load, path, save_profile, use_profile
from penstock.domain.users.users import DEFAULT_LIFE, Token, token_id_in
from penstock.testing.twin import START
from tests.attacks.front import serving
from tests.cli.conftest import plain
from tests.functions.service import Service, new_service, new_twin, token_of


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    made = new_service(new_twin(monkeypatch))
    made.ask("GET", "/v1/whoami")  # a function's first call prints that it started
    return made


@pytest.fixture
def url(service: Service) -> Iterator[str]:
    with serving(service) as found:
        service.twin.on = replace(service.twin.on, console_url=found)
        yield found


@pytest.fixture
def file(home: Path) -> Path:
    return path({"HOME": str(home)})


@pytest.fixture
def other(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Another machine, at which Ada is signed in."""

    def run(*words: str) -> Result:
        with monkeypatch.context() as there:
            there.setenv("HOME", str(tmp_path / "other"))
            there.setenv("PENSTOCK_URL", url)
            there.setenv("PENSTOCK_TOKEN", token_of("ada"))
            return plain(*words)

    return run


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[float]:
    """What happens while the command waits, and how long it waited each time."""
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            act()

    monkeypatch.setattr(login.time, "sleep", sleep)
    return waits


def code_of(service: Service, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The codes that are shown from now on."""
    shown: list[str] = []
    made = login.Api.make

    def make(api: login.Api, *where: str, **more: object) -> object:
        answer = made(api, *where, **more)  # type: ignore[arg-type]
        if where == ("logins",):
            shown.append(answer["code"])
        return answer

    monkeypatch.setattr(login.Api, "make", make)
    return shown


def tokens_of(service: Service, user: str = "ada") -> list[Token]:
    return [row for row in service.twin.store.rows.values() if isinstance(row, Token) and row.user == user]


@pytest.mark.parametrize(("words", "opened"), [([], True), (["--no-browser"], False)])
def test_where_there_is_a_browser_the_page_that_approves_opens(
    service: Service,
    url: str,
    other: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    opened: bool,
) -> None:
    codes: list[str] = code_of(service, monkeypatch)
    pages: list[str] = []
    monkeypatch.setattr(terminal, "can_ask", lambda: True)
    monkeypatch.setattr(terminal, "open_page", lambda page: pages.append(page) or True)
    meanwhile(monkeypatch, lambda: other("login", "approve", codes[0], "--yes"))
    result = plain("login", url, *words)
    assert result.exit_code == 0, result.output
    assert pages == ([f"{url}/login?code={codes[0]}"] if opened else [])
    assert ("opens now" in result.stderr) is opened


def test_a_machine_signs_in_by_code(
    service: Service, url: str, file: Path, other: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes, approved = code_of(service, monkeypatch), []
    monkeypatch.setattr(login.socket, "gethostname", lambda: "bench\x1b[2J-7")
    waits = meanwhile(monkeypatch, lambda: approved.append(other("login", "approve", codes[0].lower(), "--yes")))
    result = plain("login", url)
    assert result.exit_code == 0, result.output
    assert waits == [5, 5]
    assert result.stdout == f"signed in to {url} as ada; the profile 127.0.0.1 is in use\n"
    assert f"penstock login approve {codes[0]}" in result.stderr
    assert f"{url}/login?code={codes[0]}" in result.stderr
    assert "machine      bench?[2J-7 (as it calls itself)" in approved[0].stdout
    assert "scopes       all" in approved[0].stdout
    assert "approved: its token is good for all, until 2026-04-01T" in approved[0].stdout
    (profile,) = load(file).profiles.values()
    assert (profile.url, profile.made, load(file).default) == (url, True, "127.0.0.1")
    (made,) = [token for token in tokens_of(service) if token.name == "login on bench?[2J-7"]
    assert made.id == token_id_in(str(profile.token))
    assert made.expires
    assert made.expires - made.created <= DEFAULT_LIFE
    assert "ada" in plain("whoami").stdout
    assert profile.token not in result.output + approved[0].output


def test_whoever_approves_narrows_the_token(
    service: Service, url: str, file: Path, other: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = code_of(service, monkeypatch)
    wish = ("--scope", "read", "--scope", "submit", "--expires", "1h", "--yes", "--json")
    meanwhile(monkeypatch, lambda: other("login", "approve", codes[0], *wish))
    result = plain("login", url, "--profile", "lab", "--json")
    assert json.loads(result.stdout)["profile"] == "lab"
    made = tokens_of(service)[-1]
    assert made.scopes == ("read", "submit")
    assert made.expires
    assert timedelta(minutes=59) < made.expires - START < timedelta(minutes=61)


def test_nobody_approves_without_being_asked(
    url: str, service: Service, other: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-2: neither without a terminal, nor who says no."""
    code = service.ask("POST", "/v1/logins", {"host": "x"}, as_=None).json["code"]
    result = other("login", "approve", code)
    assert (result.exit_code, "give --yes" in result.stderr) == (2, True)
    monkeypatch.setattr(terminal, "can_ask", lambda: True)
    assert other("login", "approve", code).exit_code == 130
    assert service.ask("GET", f"/v1/logins/{code}").json["state"] == "waiting"


def test_a_wrong_code_is_refused(url: str, other: Callable[..., Result]) -> None:
    result = other("login", "approve", "BCDF-GHJK", "--yes")
    assert (result.exit_code, "no login 'BCDF-GHJK' that" in result.stderr) == (2, True)
    assert "penstock login" in result.stderr


def test_nobody_approves_in_time(url: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(login.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(login.time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + 100))
    result = plain("login", url)
    assert (result.exit_code, "nobody approved" in result.stderr) == (2, True)
    assert load(file) == Config()


def test_a_service_that_is_away_for_a_moment_is_asked_again(
    service: Service, url: str, other: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes, ask, lost = code_of(service, monkeypatch), service.ask, []

    def asked(method: str, where: str, *given: object, **more: object) -> object:
        if where.endswith("/token") and len(lost) < 1:
            lost.append(where)
            raise ConnectionResetError
        return ask(method, where, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(service, "ask", asked)
    meanwhile(monkeypatch, lambda: other("login", "approve", codes[0], "--yes"))
    assert plain("login", url).exit_code == 0
    assert lost


def test_a_token_comes_by_pipe(service: Service, url: str, file: Path) -> None:
    result = plain("login", url, "--with-token", input=token_of("ada") + "\n")
    assert (result.exit_code, "as ada" in result.stdout) == (0, True)
    assert load(file) == Config({"127.0.0.1": Profile(url, token_of("ada"))}, "127.0.0.1")
    assert file.stat().st_mode & 0o777 == 0o600
    assert plain("login", "--with-token", input=token_of("bob")).exit_code == 0  # the service in use
    assert load(file).profiles["127.0.0.1"].token == token_of("bob")
    assert all(token.revoked is None for token in tokens_of(service))


@pytest.mark.parametrize(
    ("given", "why"),
    [("", "no token"), ("two words", "no token"), ("pst_user_short", "no whole token"), ("good-token", "not known")],
)
def test_a_token_that_is_not_good_is_not_saved(url: str, file: Path, given: str, why: str) -> None:
    result = plain("login", url, "--with-token", input=given)
    assert (result.exit_code, why in result.stderr) == (2, True)
    assert load(file) == Config()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("http://penstock.example", "not encrypted"),
        ("http://127.0.0.1.example.com", "not encrypted"),
        ("https://ada:secret@penstock.example", "more than a URL"),
        ("https://penstock.example/?x=1", "more than a URL"),
        ("https://penstock.example/#x", "more than a URL"),
        ("ftp://penstock.example", "not the URL"),
    ],
)
def test_a_token_is_sent_to_no_such_address(
    file: Path, address: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-1."""
    monkeypatch.setattr(login, "Transport", lambda *_: pytest.fail("nothing is sent"))
    result = plain("login", address, "--with-token", input=token_of("ada"))
    assert (result.exit_code, why in result.stderr) == (2, True)
    assert load(file) == Config()


def test_a_host_without_a_scheme_is_asked_by_https(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def transport(url: str, *_: object) -> object:
        asked.append(url)
        raise login.Unreachable("away")

    monkeypatch.setattr(login, "Transport", transport)
    assert plain("login", "penstock.example/", "--with-token", input=token_of("ada")).exit_code == 5
    assert asked == ["https://penstock.example"]


def test_a_profile_of_another_service_is_not_replaced(url: str, file: Path) -> None:
    save_profile(file, "127.0.0.1", Profile("http://127.0.0.1:1", "t"))
    result = plain("login", url, "--with-token", input=token_of("ada"))
    assert (result.exit_code, "--profile NAME" in result.stderr) == (2, True)
    assert load(file).profiles["127.0.0.1"].token == "t"


def made_by_login(service: Service, url: str, file: Path, name: str = "lab") -> str:
    """A profile as `login` leaves it, and its token's id."""
    answer = service.ask("POST", "/v1/users/ada/tokens", {"scopes": ["read"]}).json
    save_profile(file, name, Profile(url, answer["token"], made=True))
    use_profile(file, name)
    return str(answer["id"])


def state_of(service: Service, id: str) -> str:
    listed = service.ask("GET", "/v1/users/ada/tokens").json["items"]
    return str(next(token["state"] for token in listed if token["id"] == id))


def test_logout_revokes_what_login_made(service: Service, url: str, file: Path) -> None:
    id = made_by_login(service, url, file)
    result = plain("logout")
    assert result.stdout == f"signed out of {url}; its token is revoked\n"
    assert state_of(service, id) == "revoked"
    assert load(file) == Config({"lab": Profile(url)}, "lab")
    assert plain("logout").exit_code == 2


def test_logout_leaves_other_tokens(service: Service, url: str, file: Path) -> None:
    save_profile(file, "lab", Profile(url, token_of("ada")))
    result = plain("logout", "--profile", "lab")
    assert (result.exit_code, "still works" in result.stdout) == (0, True)
    assert load(file).profiles == {"lab": Profile(url)}
    assert all(token.revoked is None for token in tokens_of(service))


def test_logout_says_that_the_token_was_not_good_any_more(service: Service, url: str, file: Path) -> None:
    id = made_by_login(service, url, file)
    service.ask("DELETE", f"/v1/tokens/{id}")
    result = plain("logout")
    assert (result.exit_code, "did not work any more" in result.stdout) == (0, True)


def test_logout_says_that_the_token_of_a_disabled_user_is_not_revoked(service: Service, url: str, file: Path) -> None:
    """SEC-2: it works again once the user is enabled, so an operator revokes it."""
    id = made_by_login(service, url, file)
    assert service.ask("POST", "/v1/users/ada/disable", {}, as_="root").status == 200
    result = plain("logout")
    assert (result.exit_code, "could not be revoked" in result.stderr, id in result.stderr) == (4, True, True)
    assert load(file).profiles == {"lab": Profile(url)}


def test_logout_says_that_it_could_not_revoke(file: Path, service: Service, url: str) -> None:
    id = made_by_login(service, url, file)
    token = load(file).profiles["lab"].token
    save_profile(file, "lab", Profile("http://127.0.0.1:1", token, made=True))
    result = plain("logout")
    assert (result.exit_code, "could not be revoked" in result.stderr, id in result.stderr) == (4, True, True)
    assert load(file).profiles == {"lab": Profile("http://127.0.0.1:1")}


def test_logout_needs_a_profile(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_URL", url)
    result = plain("logout")
    assert (result.exit_code, "no profile is in use" in result.stderr) == (2, True)


def test_a_login_replaces_the_token_of_the_one_before(service: Service, url: str, file: Path) -> None:
    id = made_by_login(service, url, file)
    assert plain("login", url, "--with-token", "--profile", "lab", input=token_of("ada")).exit_code == 0
    assert state_of(service, id) == "revoked"


def test_variables_that_go_before_the_profile_are_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_TOKEN", "other")
    result = plain("login", url, "--with-token", input=token_of("ada"))
    assert "PENSTOCK_TOKEN is set" in result.stderr


def test_profiles_are_listed_used_and_removed(service: Service, url: str, file: Path) -> None:
    made_by_login(service, url, file, "lab")
    save_profile(file, "work", Profile("https://w.example"))
    assert plain("profile", "use", "work").exit_code == 0
    shown = {each["name"]: each for each in json.loads(plain("profile", "list", "--json").stdout)}
    assert (shown["work"]["in_use"], shown["lab"]["in_use"], shown["lab"]["has_token"]) == (True, False, True)
    shown = {each["name"]: each for each in json.loads(plain("profile", "list", "--json", "--url", url).stdout)}
    assert [each["in_use"] for each in shown.values()] == [False, False]
    assert plain("profile", "remove", "work").exit_code == 0
    assert load(file).default == "lab"  # the one before
    result = plain("profile", "remove", "lab")
    assert "its token still works" in result.stderr
    assert load(file) == Config()
    assert plain("profile", "remove", "lab").exit_code == 2
