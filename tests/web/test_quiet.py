"""Nothing is asked for more often than somebody looks: a page that is open for long costs next to nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.e2e.conftest import Local
from tests.web.browser import Console
from tests.web.scenes import Scene

TEN_MINUTES = 10 * 60
MOST = 40
"""Requests of one page in ten minutes in which nothing happens: after 2, 3, 4.5 … seconds, then every 30."""


def looks(console: Console, seconds: int) -> list[str]:
    """The requests of a page while its clock goes on for some seconds, without waiting for that."""
    console.requests.clear()
    for _ in range(seconds):
        console.page.clock.run_for(1000)
        console.page.evaluate("0")  # lets answers arrive between two ticks
    return [each for each in console.requests if "/v1/" in each]


@pytest.mark.parametrize("path", ["/?state=settled", "/jobs/{succeeded}"])
def test_a_page_on_which_nothing_happens_asks_ever_less_often(operator: Console, scene: Scene, path: str) -> None:
    operator.page.clock.install()
    operator.open(path.format(**vars(scene)))
    found = looks(operator, TEN_MINUTES)
    assert len(found) <= MOST, found


PAGES = ["/operator", "/pools", "/workers/{worker}"]
"""Those that watch most. Ten minutes of a page take half a minute, so `make prove` looks at the others."""

OTHERS = [
    "/artifacts", "/audit", "/caches", "/commits", "/graph", "/pools/resource/bench", "/prices", "/published",
    "/resources", "/resources/{resource}", "/shares", "/site", "/tokens", "/users", "/users/admin", "/workers",
]  # fmt: skip


@pytest.mark.parametrize("path", [*PAGES, *(pytest.param(each, marks=pytest.mark.long) for each in OTHERS)])
def test_no_page_asks_more_while_jobs_only_run(operator: Console, scene: Scene, local: Local, path: str) -> None:
    """Jobs run and wait meanwhile: heartbeats, estimates and comparisons are no news."""
    ids = {
        kind: next(
            each["id"] for each in local.call("GET", f"/v1/{kind}s").json()["items"] if each["job"] == scene.running
        )
        for kind in ("worker", "resource")
    }
    operator.page.clock.install()
    operator.open(path.format(**ids))
    found = looks(operator, TEN_MINUTES)
    assert len(found) <= MOST, Counter(each.partition("?")[0] for each in found)


def test_a_job_that_has_settled_is_not_asked_for_again(operator: Console, scene: Scene) -> None:
    operator.page.clock.install()
    operator.open(f"/jobs/{scene.succeeded}")
    looks(operator, 10)
    again = [each for each in looks(operator, 60) if each.endswith(f"/v1/jobs/{scene.succeeded}")]
    assert again == []


def test_a_hidden_page_asks_nothing(operator: Console, scene: Scene) -> None:
    del scene
    operator.page.clock.install()
    operator.open("/")
    operator.page.evaluate(
        "Object.defineProperty(document, 'hidden', {get: () => true, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    looks(operator, 2)
    assert looks(operator, 60) == []
    operator.requests.clear()
    operator.page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    operator.until(lambda: [each for each in operator.requests if "/v1/jobs" in each])  # at once, without a tick
