"""Signing in by each way, coming back to where one was, and out. [SEC-1] [SEC-2]"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.conftest import Local
from tests.web.browser import Console

Visit = Callable[..., Console]

LOGIN = re.compile(r"penstock login approve (\S+)")


def name(console: Console) -> str:
    """Who is signed in, as the bar says."""
    return str(console.page.locator("header .wide-only .me a").inner_text())


def fill_in(console: Console, token: str) -> None:
    console.page.locator("input[name=token]").fill(token)
    console.page.get_by_role("button", name="Sign in", exact=True).click()


def test_a_token_signs_in_and_one_signs_out(visit: Visit, local: Local, plain: str) -> None:
    console = visit()
    page = console.open("/sign-in")
    fill_in(console, "pst_user_wrong")
    page.locator("main").get_by_role("alert").wait_for()
    assert page.locator("header .wide-only .me").count() == 0
    fill_in(console, plain)
    page.get_by_role("heading", name="Jobs", exact=True).wait_for()
    assert name(console) == "erin"
    cookie = {each["name"]: each for each in page.context.cookies()}["__Host-penstock-session"]
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (True, True, "Strict")
    assert cookie["value"] != plain
    assert page.evaluate("document.cookie") == ""
    stored = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert plain not in stored
    page.get_by_role("button", name="Sign out").first.click()
    console.says("Signed out")
    page.get_by_role("link", name="Sign in").first.wait_for()
    assert page.context.cookies() == []
    kept = {"cookie": f"{cookie['name']}={cookie['value']}", "penstock-console": "1", "authorization": ""}
    assert local.call("GET", "/v1/whoami", headers=kept).status_code == 401


def test_an_address_of_penstock_console_signs_in_once(visit: Visit, local: Local) -> None:
    address = local.cli("console", "--print").stdout.split()[0]
    console = visit()
    console.page.goto(address)
    console.page.get_by_role("heading", name="Jobs", exact=True).wait_for()
    console.until(lambda: console.page.locator("header .wide-only .me a").count())
    assert name(console) == "admin"
    assert "#" not in console.page.url
    other = visit()
    other.page.goto(address)
    other.page.get_by_role("alert").first.wait_for()
    assert other.page.locator("header .wide-only .me").count() == 0
    assert "sign-in=" not in other.page.url


@pytest.fixture
def asking(local: Local) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A machine on which somebody signs in with `penstock login`, and the code that it shows."""
    environment = {**local.environment(), "HOME": str(local.folder / "machine")}
    del environment["PENSTOCK_TOKEN"], environment["PENSTOCK_URL"]
    command = [sys.executable, "-u", "-m", "penstock.cli", "login", "to", local.running.url, "--json"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as machine:
        assert machine.stderr is not None
        said = ""
        while not (found := LOGIN.search(said)):
            line = machine.stderr.readline()
            assert line, said
            said += line
        yield machine, found[1]
        machine.kill()


def test_a_login_is_approved_on_the_page_that_it_names(
    erin: Console, local: Local, asking: tuple[subprocess.Popen[str], str]
) -> None:
    machine, code = asking
    page = erin.open("/login")
    page.get_by_label("Code").fill(code.lower())
    erin.button("Look it up").click()
    part = page.get_by_role("region", name="The machine that asks")
    part.wait_for()
    assert code in page.url.upper()
    asked = local.call("GET", f"/v1/logins/{code}").json()
    assert asked["address"] in part.inner_text()
    button = part.get_by_role("button", name="Let it sign in as erin")
    assert button.is_disabled()
    part.get_by_role("checkbox", name="on a machine of my own").check()
    part.get_by_label("only this:").check()
    part.get_by_role("checkbox", name="read").check()
    button.click()
    page.get_by_text("✓ Approved.").wait_for()
    out, err = machine.communicate(timeout=120)
    assert json.loads(out)["user"] == "erin", err
    made = local.call("GET", "/v1/users/erin/tokens").json()["items"]
    assert ["read"] in [each["scopes"] for each in made if each["kind"] == "login" or each["state"] == "good"]
    page = erin.open(f"/login?code={code}")
    page.get_by_text("This code was used").wait_for()


def test_a_code_that_nobody_waits_with_and_one_that_is_left(
    erin: Console, local: Local, asking: tuple[subprocess.Popen[str], str]
) -> None:
    _, code = asking
    page = erin.open("/login?code=ZZZZ-ZZZZ")
    page.get_by_text("No machine waits with the code").wait_for()
    page = erin.open(f"/login?code={code}")
    page.get_by_role("link", name="Leave it").click()
    page.get_by_role("heading", name="Jobs", exact=True).wait_for()
    assert local.call("GET", f"/v1/logins/{code}").json()["state"] == "waiting"


def test_who_is_not_signed_in_approves_nothing_and_comes_back_after_signing_in(
    visit: Visit, plain: str, asking: tuple[subprocess.Popen[str], str]
) -> None:
    _, code = asking
    console = visit()
    page = console.open(f"/login?code={code}")
    assert page.get_by_role("region", name="The machine that asks").count() == 0
    page.locator("main").get_by_role("link", name="Sign in").click()
    fill_in(console, plain)
    page.get_by_role("region", name="The machine that asks").wait_for()
    assert page.url.endswith(f"/login?code={code}")


@pytest.mark.parametrize(
    ("to", "ends"),
    [
        ("/pools?sort=resource", "/pools?sort=resource"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example/", "/"),
        ("/.//evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("/sign-in?to=/sign-in", "/"),
        ("/v1/session/github", "/"),
    ],
)
def test_after_signing_in_one_goes_only_to_pages_of_the_console(
    visit: Visit, local: Local, states: dict[str, Any], to: str, ends: str
) -> None:
    console = visit(storage_state=states["erin"])
    page = console.open("/sign-in")
    page.evaluate("to => location.assign('/sign-in?to=' + encodeURIComponent(to))", to)
    link = page.get_by_role("link", name="Go on")
    link.wait_for()
    assert link.get_attribute("href") == ends
    link.click()
    page.get_by_role("heading", name="Pools" if ends != "/" else "Jobs", exact=True).wait_for()
    assert page.url == local.running.url + ends
    assert console.abroad() == []


def test_a_session_that_was_ended_is_said_and_one_comes_back(visit: Visit, local: Local, plain: str) -> None:
    console = visit()
    console.sign_in(plain)
    page = console.open("/pools?sort=resource")
    newest = max(
        (each for each in local.call("GET", "/v1/users/erin/tokens").json()["items"] if each["kind"] == "session"),
        key=lambda each: each["created"],
    )
    assert local.call("DELETE", f"/v1/tokens/{newest['id']}").is_success
    page.get_by_text("Your session has ended.").wait_for()
    assert page.locator("main article").count()  # what was shown stays
    page.locator(".ended").get_by_role("link", name="Sign in").click()
    fill_in(console, plain)
    page.get_by_role("heading", name="Pools", exact=True).wait_for()
    assert page.url.endswith("/pools?sort=resource")
    assert page.get_by_text("Your session has ended.").count() == 0


def test_a_session_whose_time_is_over_is_said_by_a_page_that_asks_nothing(visit: Visit, plain: str) -> None:
    console = visit()
    console.page.clock.install()
    console.sign_in(plain)
    page = console.open("/sign-in")
    page.get_by_role("link", name="Go on").wait_for()
    page.get_by_role("link", name="erin").first.click()
    page.get_by_role("heading", name="Your tokens", exact=True).wait_for()
    page.context.set_offline(True)
    page.clock.fast_forward("12:00:01")
    page.get_by_text("Your session has ended.").wait_for()
    console.errors.clear()  # Chromium says that it is offline


def test_github_is_offered_where_the_site_has_it_and_comes_back_to_the_page(
    visit: Visit, local: Local, states: dict[str, Any]
) -> None:
    """The service has no GitHub App here: that it has one, and that GitHub sent a person back, is made up."""
    assert local.call("GET", "/v1/console").json()["github"] is False
    console = visit(storage_state=states["erin"])
    page = console.open("/sign-in")
    page.get_by_role("heading", name="With a token").wait_for()
    assert page.get_by_role("link", name="Sign in with GitHub").count() == 0
    ways = {**local.call("GET", "/v1/console").json(), "github": True}
    page.route("**/v1/console", lambda route: route.fulfill(json=ways))
    page.route("**/v1/session/github", lambda route: route.fulfill(status=302, headers={"location": "/"}))
    console.open("/sign-in?to=/pools%3Fsort%3Dtarget")
    page.get_by_role("link", name="Sign in with GitHub").click()
    page.get_by_role("heading", name="Pools", exact=True).wait_for()
    assert page.url.endswith("/pools?sort=target")
    page.goto(local.running.url + "/")
    page.get_by_role("heading", name="Jobs", exact=True).wait_for()


def test_who_comes_back_from_github_in_vain_reads_why_and_tries_again(visit: Visit, local: Local) -> None:
    console = visit()
    page = console.open("/sign-in?to=/pools")
    ways = {**local.call("GET", "/v1/console").json(), "github": True}
    page.route("**/v1/console", lambda route: route.fulfill(json=ways))
    page.reload()
    back = {"location": "/sign-in?refused=github-unlinked"}
    page.route("**/v1/session/github", lambda route: route.fulfill(status=302, headers=back))
    for _ in range(2):
        page.get_by_role("link", name="Sign in with GitHub").click()
        page.get_by_role("alert").get_by_text("Your GitHub account is no user's here.").wait_for()
    assert page.evaluate("JSON.parse(sessionStorage.getItem('after-sign-in') ?? 'null')") is None
    console.open("/sign-in?refused=toString")
    page.get_by_role("alert").get_by_text("Signing in with GitHub did not work. Try again.").wait_for()


EARLY = """(key) => document.dispatchEvent(
    Object.defineProperty(new KeyboardEvent('keydown', {key, bubbles: true}), 'timeStamp', {value: 1}))"""


def test_the_second_key_of_two_goes_nowhere_alone(operator: Console) -> None:
    """Also in the first second of a page."""
    page = operator.open("/pools")
    page.evaluate(EARLY, "t")
    page.evaluate(EARLY, "j")
    assert page.url.endswith("/pools")
    page.evaluate(EARLY, "g")
    page.evaluate(EARLY, "t")
    page.get_by_role("heading", name="Your tokens", exact=True).wait_for()


def test_keys_go_to_pages_find_the_field_and_can_be_turned_off(operator: Console, erin: Console) -> None:
    page = operator.open("/pools")
    for key, title in {"w": "Workers", "s": "Site", "t": "Your tokens", "p": "Pools"}.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.get_by_role("heading", name=title, exact=True).wait_for()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.type("g?")  # what is typed into a field is no shortcut
    assert page.locator("dialog[open]").count() == 0
    page.keyboard.press("Tab")
    page.locator("h1").focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys and documentation", exact=True)
    dialog.wait_for()
    assert "Audit log" in dialog.inner_text()
    assert operator.faults() == []
    dialog.get_by_label("Use these keys").uncheck()
    dialog.get_by_role("button", name="Close").click()
    page.locator("h1").focus()
    page.keyboard.press("?")
    assert page.locator("dialog[open]").count() == 0
    page.get_by_role("button", name="Keys and documentation").click()
    dialog.get_by_label("Use these keys").check()
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    other = erin.open("/pools")
    other.keyboard.press("?")
    assert "Audit log" not in other.get_by_role("dialog", name="Keys and documentation").inner_text()
