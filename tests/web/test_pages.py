"""Every page of the console, for an operator and for a user without a privilege: it opens, fits, and can be read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import Local
from tests.web.browser import DESK, PHONE, ROOT, WALL, Console
from tests.web.scenes import Scene

PATHS = re.findall(r'^  \["(/[^"]*)", lazy', (ROOT / "web" / "src" / "app.tsx").read_text(encoding="utf-8"), re.M)
SET = "pages"

UNKNOWN = "main .loading, main a[data-finding]:not([data-count], [data-problem])"
"""What stands where an answer has not come yet."""

OPERATORS_ONLY = {
    "/audit", "/commits", "/graph", "/operator", "/resources", "/resources/:id", "/users", "/users/:name",
    "/workers", "/workers/:id",
}  # fmt: skip

GATE = "This page is for|[Oo]nly operators see"
"""What stands in place of a page that is not for everybody."""

Address = Callable[[str], str]


@pytest.fixture(scope="module")
def address(local: Local, scene: Scene, states: dict[str, Any]) -> Address:
    """Makes a page's address of its path in app.tsx: something that exists stands in the place of each parameter."""
    del states  # erin is there, whom /users/:name shows
    body = {"script": "#!/bin/bash\ntrue\n", "name": "of a set", "tags": {"set": SET}}
    assert local.call("POST", "/v1/jobs", json=body).status_code == 201
    running = local.job(scene.running)
    resource = local.call("GET", "/v1/resources").json()["items"][0]["id"]
    values = {
        "/jobs/:job": scene.running,
        "/jobs/:job/log": scene.succeeded,
        "/pools/:sort/:name": ("resource", "bench"),
        "/resources/:id": resource,
        "/sets/:id": SET,
        "/users/:name": "erin",
        "/workers/:id": running["worker"],
    }

    def made(path: str) -> str:
        given = values.get(path, ())
        for value in (given,) if isinstance(given, str) else given:
            path = re.sub(r":\w+", value, path, count=1)
        assert ":" not in path, f"say in this fixture what {path} is to show"
        return path

    return made


def picture(path: str) -> str:
    """The name of a page's pictures."""
    return re.sub(r"\W+", "-", path).strip("-") or "jobs"


def test_the_paths_of_the_console_are_found() -> None:
    assert len(PATHS) > 20
    assert set(PATHS) >= OPERATORS_ONLY


@pytest.mark.parametrize("path", PATHS)
def test_a_page_fits_every_screen_and_can_be_read_by_everybody(
    visit: Callable[..., Console], states: dict[str, Any], address: Address, path: str
) -> None:
    """On a phone, a laptop and a wall; in light and dark. What is wrong is found by axe."""
    console = visit(storage_state=states["admin"])
    page = console.open(address(path))
    console.becomes(lambda: page.locator(UNKNOWN).count(), 0)
    assert page.locator("main .problem").all_inner_texts() == []
    assert not re.search(GATE, page.locator("main").inner_text())
    found: dict[str, Any] = {}
    for name, size, colours in (("wall", WALL, "light"), ("desk", DESK, "light"), ("phone", PHONE, "dark")):
        page.emulate_media(color_scheme=colours, reduced_motion="reduce")
        page.set_viewport_size({"width": size[0], "height": size[1]})
        if wide := console.overflow():
            found[f"{name}, {colours}"] = f"{wide} pixels wider than the window"
        if name != "wall":
            console.shot(f"{picture(path)}-{name}-{colours}")
            found |= {f"axe, {name}, {colours}": faults for faults in [console.faults()] if faults}
    assert found == {}
    assert console.abroad() == []


@pytest.mark.parametrize("path", PATHS)
def test_a_user_without_a_privilege_sees_what_is_for_everybody(
    visit: Callable[..., Console], states: dict[str, Any], address: Address, path: str
) -> None:
    console = visit(storage_state=states["erin"], size=PHONE)
    page = console.open(address(path))
    said = page.locator("main").inner_text()
    assert bool(re.search(GATE, said)) == (path in OPERATORS_ONLY), said
    assert "soak test" not in said or path.startswith("/pools"), said
    if path not in ("/jobs/:job", "/jobs/:job/log", "/sets/:id"):  # of others, to which the service says no
        assert page.locator("main .problem").all_inner_texts() == []
    assert console.overflow() == 0
    assert console.faults() == []
    assert console.abroad() == []
