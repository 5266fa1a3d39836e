"""A local cloud with real jobs, and browsers that look at its console."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.console import build
from penstock.local import cloud
from penstock.local.state import StateFolder
from tests.e2e.conftest import Local
from tests.web.browser import CHROMIUM, DESK, QUIET, Console
from tests.web.scenes import Scene

SITE = Path(__file__).with_name("site.toml")

Visit = Callable[..., Console]


EACH_COMMIT = ("test_arrive", "test_effort", "test_job", "test_outsiders", "test_pages", "test_sign_in")
"""What `make e2e` runs of these tests, to stay short: every page, who may see it, and the page that is looked at most.
`make prove` runs the others too, and so does `pytest -m "e2e or long" tests/web`.
"""


@pytest.hookimpl(tryfirst=True)  # before xdist reads of which group a test is
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One browser and one cloud are for all of these tests, so they run in one process."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("e2e")
            if item.path.stem not in EACH_COMMIT:
                item.add_marker("long")
            item.add_marker(pytest.mark.xdist_group("web"))
            item.add_marker("networks")


@pytest.fixture(scope="package")  # a running browser has an event loop, which others in this process must not meet
def browser() -> Iterator[Any]:
    """A browser, for as long as all tests take."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine: apt install chromium, or set CHROMIUM")
    api = pytest.importorskip("playwright.sync_api", reason="`make e2e` installs playwright")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield started
        started.close()


@pytest.fixture(scope="package")  # a running browser has an event loop, which others in this process must not meet
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """A cloud for these tests alone: they pause pools and cancel jobs."""
    folder = tmp_path_factory.mktemp("web")
    place = StateFolder(folder / "state")
    running = cloud.up(report=print, config=SITE, tied=True, place=place, console=build.built(print))
    try:
        yield Local(running, folder, place.key(), place)
    finally:
        cloud.down(print, place)


@pytest.fixture(scope="package")  # a running browser has an event loop, which others in this process must not meet
def scene(local: Local) -> Scene:
    """Jobs in every state, and what they hold and made."""
    return Scene.of(local)


@pytest.fixture
def visit(browser: Any, local: Local) -> Iterator[Visit]:
    """Makes a visitor: `visit(size=PHONE, colours="dark")`. At the end, no page of theirs may have said an error."""
    made: list[Console] = []

    def visitor(size: tuple[int, int] = DESK, colours: str = "light", **more: Any) -> Console:
        width, height = size
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=colours, **more)
        context.set_default_timeout(60_000)
        made.append(Console(context.new_page(), local.running.url))
        return made[-1]

    yield visitor
    for each in made:
        each.page.context.close()
    assert [error for each in made for error in each.errors] == []


@pytest.fixture(scope="package")  # a running browser has an event loop, which others in this process must not meet
def states(browser: Any, local: Local, plain: str) -> dict[str, Any]:
    """Browsers' cookies of an operator and of a user without a privilege. A test that ends a session makes its own."""
    made = {}
    for name, token in (("admin", local.running.token), ("erin", plain)):
        context = browser.new_context()
        context.set_default_timeout(60_000)
        Console(context.new_page(), local.running.url).sign_in(token)
        made[name] = context.storage_state()
        context.close()
    return made


@pytest.fixture
def operator(visit: Visit, states: dict[str, Any]) -> Console:
    """An operator who is signed in."""
    return visit(storage_state=states["admin"])


@pytest.fixture
def erin(visit: Visit, states: dict[str, Any]) -> Console:
    """A user without a privilege, who is signed in."""
    return visit(storage_state=states["erin"])


@pytest.fixture(scope="package")  # a running browser has an event loop, which others in this process must not meet
def plain(local: Local) -> str:
    """The token of a user without a privilege, whose name is erin."""
    assert local.call("POST", "/v1/users", json={"name": "erin"}).status_code == 201
    return str(local.call("POST", "/v1/users/erin/tokens", json={}).json()["token"])
