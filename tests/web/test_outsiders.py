"""Who has no session, or another's, gets nothing from the console; what jobs print breaks nothing. [SEC-1] [SEC-2]"""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Local
from tests.web.browser import Console
from tests.web.conftest import Visit
from tests.web.scenes import Scene, text

COOKIE = "__Host-penstock-session"
OURS = {"penstock-console": "1"}


def session(local: Local, token: str = "") -> str:
    """A new session, as the value of its cookie."""
    body = {"token": token or local.running.token}
    answer = httpx.post(f"{local.running.url}/v1/session", json=body, headers=OURS, trust_env=False, timeout=30)
    assert answer.status_code == 201, answer.text
    said = answer.headers["set-cookie"]
    for flag in ("HttpOnly", "Secure", "SameSite=Strict", "Path=/", "Max-Age=43200"):
        assert flag.lower() in said.lower(), (flag, said)
    assert said.startswith(f"{COOKIE}=")
    return str(said.partition("=")[2].partition(";")[0])


def get(local: Local, path: str, cookie: str, **headers: str) -> httpx.Response:
    sent = {"cookie": f"{COOKIE}={cookie}", **headers}
    return httpx.get(local.running.url + path, headers=sent, trust_env=False, timeout=30)


def test_a_session_is_good_for_the_console_only(local: Local) -> None:
    cookie = session(local)
    assert get(local, "/v1/whoami", cookie, **OURS).status_code == 200
    assert get(local, "/v1/whoami", cookie).status_code == 401  # a link or a form of another page
    crossing = {"sec-fetch-site": "cross-site"}
    assert get(local, "/v1/whoami", cookie, **OURS, **crossing).status_code in (401, 403)
    assert get(local, "/v1/whoami", cookie, origin="https://evil.example", **OURS).status_code in (401, 403)


def test_a_session_that_was_ended_is_good_for_nothing(local: Local) -> None:
    cookie = session(local)
    sent = {"cookie": f"{COOKIE}={cookie}", **OURS}
    ended = httpx.delete(f"{local.running.url}/v1/session", headers=sent, trust_env=False, timeout=30)
    assert ended.is_success
    assert get(local, "/v1/whoami", cookie, **OURS).status_code == 401


def test_a_session_is_never_the_token_it_came_from_nor_one_that_was_given(local: Local) -> None:
    one, other = session(local), session(local)
    assert len({one, other, local.running.token}) == 3


def test_another_page_can_do_nothing_with_somebodys_session(operator: Console, local: Local, scene: Scene) -> None:
    """A form that another origin posts, and a request of its script."""
    address = f"{local.running.url}/v1/jobs/{scene.running}/cancel"
    form = f"<form method=post action='{address}'></form><script>document.forms[0].submit()</script>"
    page = operator.page.context.new_page()
    page.route("http://evil.example/**", lambda route: route.fulfill(body=form, content_type="text/html"))
    page.goto("http://evil.example/")
    page.wait_for_load_state()
    ask = f"fetch('{address}', {{method: 'POST', credentials: 'include', headers: {{'penstock-console': '1'}}}})"
    page.route("http://other.example/**", lambda route: route.fulfill(body="<p>hello", content_type="text/html"))
    page.goto("http://other.example/")
    assert page.evaluate(f"{ask}.then(() => 'sent', () => 'stopped')") == "stopped"
    assert local.job(scene.running)["state"] == "running"


def test_who_is_not_signed_in_sees_nothing_and_can_sign_in(visit: Visit, scene: Scene) -> None:
    stranger = visit()
    stranger.open(f"/jobs/{scene.running}")
    said = stranger.page.locator("main").inner_text()
    assert "soak test" not in said
    assert stranger.page.get_by_role("link", name="Sign in").count()


def test_another_user_sees_nothing_of_a_job(visit: Visit, local: Local, scene: Scene) -> None:
    local.cli("user", "create", "bob")
    token = json.loads(local.cli("token", "create", "--user", "bob", "--json").stdout)["token"]
    bob = visit()
    bob.sign_in(token)
    bob.open(f"/jobs/{scene.running}")
    assert "soak test" not in bob.page.locator("main").inner_text()
    assert bob.page.get_by_role("alert").count()
    assert bob.page.get_by_role("link", name="Operator").count() == 0


NASTY = [
    "<script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">",
    "\033]8;;javascript:document.title='owned'\033\\click\033]8;;\033\\",
    "\033]0;owned\007\033[2J\033[1;1H\033[?1049h",
    "\033[31mred\033[0m \033[38;2;1;2;3mmany\033[0m \033[999999999m",
    "\u202eright to left \u0000 and nothing",
]


def test_what_a_job_prints_is_text(operator: Console, local: Local) -> None:
    printed = base64.b64encode("\n".join(NASTY).encode()).decode()
    job = local.submit(text("<b>nasty</b>", f"echo {printed} | base64 -d"))
    assert local.settled(job)["outcome"] == "succeeded"
    page = operator.open(f"/jobs/{job}")
    page.get_by_text("onerror").first.wait_for()
    assert "owned" not in page.title()
    assert page.locator("main img[src='x'], main script, main a[href^='javascript']").count() == 0
    assert page.get_by_text("<b>nasty</b>").count()


@pytest.mark.parametrize("path", ["/", "/sign-in", "/jobs/x", "/assets/../index.html"])
def test_pages_say_what_may_run_in_them(local: Local, path: str) -> None:
    answer = httpx.get(local.running.url + path, headers={"accept": "text/html"}, trust_env=False, timeout=30)
    assert answer.status_code == 200
    rules = answer.headers["content-security-policy"]
    for rule in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"):
        assert rule in rules
    assert "unsafe" not in rules
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_nothing_is_asked_of_another_origin(operator: Console, local: Local, scene: Scene) -> None:
    for path in ("/", f"/jobs/{scene.succeeded}", "/pools", "/graph"):
        operator.open(path)
    foreign: list[Any] = [each for each in operator.requests if f" {local.running.url}/" not in each]
    assert foreign == []
