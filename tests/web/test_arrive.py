"""The address that `penstock console` prints signs one browser in, once."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from tests.e2e.conftest import Local
from tests.web.conftest import Visit


def address(local: Local) -> str:
    """What the command prints."""
    done = local.cli("console", "--print")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[0]


def test_it_signs_in_and_its_code_does_not_stay_in_the_address(local: Local, visit: Visit) -> None:
    console = visit()
    console.page.goto(address(local))
    console.page.get_by_role("button", name="Sign out").wait_for()
    assert console.page.url == f"{local.running.url}/"
    asked = console.page.request.get(f"{local.running.url}/v1/whoami", headers={"penstock-console": "1"})
    assert asked.json()["name"] == "admin"


def test_it_signs_in_where_the_console_is_open_already(local: Local, visit: Visit) -> None:
    console = visit()
    console.page.goto(f"{local.running.url}/pools")
    console.page.get_by_role("link", name="Sign in").first.wait_for()
    console.page.goto(address(local).replace("/#", "/pools#"))
    console.page.get_by_role("button", name="Sign out").wait_for()


def test_a_page_that_is_about_to_end_does_not_use_the_code(local: Local, visit: Visit) -> None:
    """The page that signs in was shown before, so it could be shown at once; the new one takes long to come."""
    console, held = visit(), list[Any]()
    page = console.open("/sign-in")
    page.get_by_role("banner").get_by_role("link", name="Penstock").click()
    page.wait_for_url(f"{local.running.url}/")
    page.route(lambda url: urlsplit(url).path == "/sign-in", lambda route: held.append(route))
    page.evaluate("(hash) => void (location.hash = hash)", address(local).partition("#")[2])
    console.until(lambda: held)
    page.wait_for_timeout(500)
    assert [each for each in console.requests if each.startswith("POST")] == []
    held[0].continue_()
    page.get_by_role("button", name="Sign out").wait_for()


def test_it_works_once(local: Local, visit: Visit) -> None:
    printed = address(local)
    first, second = visit(), visit()
    first.page.goto(printed)
    first.page.get_by_role("button", name="Sign out").wait_for()
    second.page.goto(printed)
    second.page.get_by_role("alert").first.wait_for()
    assert second.page.get_by_role("button", name="Sign out").count() == 0
