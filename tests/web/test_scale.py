"""Large lists, sets and logs: 500 jobs, 1,000 nodes, a million lines.

The answers of the API are made here (`page.route`): no such sizes were run on the cloud. What is drawn is counted. How
smooth it is, is compared with a small one of the same page in the same browser, as the longest time between two frames;
of some rounds the best counts, so that another process on the machine is not taken for the page's fault.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.e2e.conftest import Local
from tests.web.browser import Console
from tests.web.scenes import Scene

ROUNDS = 3
ROUGHER = 100
"""How many times longer the longest frame of a large page may be than that of a small one: on a busy machine a short
piece of work takes many frames. A page that draws a million lines stops for minutes, which is thousands of frames."""

SCROLL = """async (box, steps) => {
    let longest = 0, last = performance.now();
    for (let step = 0; step <= steps; step++) {
        box.scrollTop = (box.scrollHeight - box.clientHeight) * step / steps;
        for (let frame = 0; frame < 3; frame++) {
            const now = await new Promise(requestAnimationFrame);
            longest = Math.max(longest, now - last);
            last = now;
        }
    }
    return longest;
}"""
"""Scrolls from the start to the end of an element. Gives the longest time between two frames, in milliseconds."""

WHOLE = "document.scrollingElement"


def roughness(console: Console, box: Any, steps: int = 20) -> float:
    """The longest frame of the best round."""
    return float(min(box.evaluate(SCROLL, steps) for _ in range(ROUNDS)))


def drawn(console: Console) -> int:
    return int(console.page.evaluate("document.querySelectorAll('*').length"))


def heap(console: Console) -> int:
    """Bytes of the page's objects that are still needed."""
    tools = console.page.context.new_cdp_session(console.page)
    tools.send("HeapProfiler.collectGarbage")
    tools.send("Performance.enable")
    found = {each["name"]: each["value"] for each in tools.send("Performance.getMetrics")["metrics"]}
    tools.detach()
    return int(found["JSHeapUsedSize"])


def ulid(number: int) -> str:
    return f"01{number:024d}"


def times(begin: int) -> dict[str, str]:
    at = f"2026-01-01T{begin // 3600 % 24:02d}:{begin // 60 % 60:02d}:{begin % 60:02d}Z"
    return {"submitted": at, "ready": at, "acquired": at, "started": at, "settled": at}


def job(number: int) -> dict[str, Any]:
    """A job as lists and sets have it."""
    return {
        "id": ulid(number),
        "name": f"work {number}",
        "owner": "admin",
        "state": "settled",
        "outcome": "succeeded" if number % 7 else "failed",
        "reason": "task 0 exited with code 1",
        "waits_for": None,
        "failure": None,
        "attempt": 1,
        "target": "default",
        "target_resolved": "ubuntu-24.04",
        "times": times(number),
        "worker": None,
        "exit_code": 0,
        "resources": [],
        "attempts": [],
        "dependencies": [],
        "tags": {"number": str(number)},
        "priority": 0,
        "timeout": 60,
        "matrix": {},
    }


PAGE = 100


def pages(route: Any, rows: list[dict[str, Any]], **more: Any) -> None:
    """Answer with a page of some rows; a page is named by the row that it follows."""
    (page,) = parse_qs(urlsplit(route.request.url).query).get("page", [""])
    start = next((at + 1 for at, each in enumerate(rows) if each["id"] == page), 0)
    items = rows[start : start + PAGE]
    follows = items[-1]["id"] if start + PAGE < len(rows) else None
    route.fulfill(json={**more, "items": items, "next": follows})


def list_of(console: Console, count: int) -> Any:
    """The list of so many jobs, all of them loaded."""
    rows = [job(number) for number in reversed(range(count))]
    console.page.unroute_all()
    console.page.route(re.compile(r"/v1/jobs(\?|$)"), lambda route: pages(route, rows))
    page = console.open("/")
    for loaded in range(PAGE, count, PAGE):
        console.becomes(lambda loaded=loaded: page.locator("main tbody tr").count(), loaded)
        console.button("Show more").click()
    console.becomes(lambda: page.locator("main tbody tr").count(), count)
    return page


def test_five_hundred_jobs(operator: Console) -> None:
    page = list_of(operator, PAGE)
    few, whole = drawn(operator), page.evaluate_handle(WHOLE)
    smooth = roughness(operator, whole)
    list_of(operator, 500)
    assert drawn(operator) < few * 6
    assert roughness(operator, page.evaluate_handle(WHOLE)) < smooth * ROUGHER
    assert operator.button("Show more").count() == 0
    for _ in range(3):
        page.keyboard.press("j")
    assert page.evaluate("document.activeElement.getAttribute('href')") == f"/jobs/{ulid(497)}"
    operator.button("Select all 500").click()
    operator.button("Retry 500").wait_for()
    page.get_by_role("checkbox", name=ulid(499)).uncheck()
    operator.button("Retry 499").wait_for()


WIDE = 25


def graph(count: int) -> list[dict[str, Any]]:
    """Jobs in rows of 25, each after two of the row before."""
    jobs = [{**job(number), "name": f"{'abcdefghij'[number % 10] * 3}{number}"} for number in range(count)]
    for number, each in enumerate(jobs[WIDE:], WIDE):
        place, row = number % WIDE, number - number % WIDE - WIDE
        befores = sorted({row + place, row + (place * 7 + 3) % WIDE})
        each["dependencies"] = [
            {"name": f"of{before}", "job": ulid(before), "on": "success", "copy_outputs": False} for before in befores
        ]
    return jobs


def set_of(console: Console, count: int) -> Any:
    """The page of a set of so many jobs, each drawn singly."""
    console.page.unroute_all()
    jobs = graph(count)
    console.page.route("**/v1/sets/large*", lambda route: pages(route, jobs, set="large", owner="admin"))
    page = console.open("/sets/large")
    page.locator("figure.graph[aria-busy=false] .node").first.wait_for()
    box = page.get_by_label("Jobs of a matrix as one")
    if box.count():
        box.uncheck()
    page.locator("figure.graph[aria-busy=false] .node").first.wait_for()
    return page


MOVE = """async (figure, steps) => {
    const [more, less] = ['+', '-'].map((key) => new KeyboardEvent('keydown', {key, bubbles: true}));
    let longest = 0, last = performance.now();
    for (let step = 0; step < steps; step++) {
        figure.querySelector('.node[tabindex="0"]').dispatchEvent(step % 4 < 2 ? more : less);
        for (let frame = 0; frame < 3; frame++) {
            const now = await new Promise(requestAnimationFrame);
            longest = Math.max(longest, now - last);
            last = now;
        }
    }
    return longest;
}"""
"""Zooms in and out by keys. Gives the longest time between two frames, in milliseconds."""


def zooming(page: Any) -> float:
    return float(min(page.locator("figure.graph").evaluate(MOVE, 16) for _ in range(ROUNDS)))


@pytest.mark.long
def test_a_set_of_a_thousand_jobs(operator: Console) -> None:
    smooth = zooming(set_of(operator, 50))
    page = set_of(operator, 1000)
    nodes = page.locator("figure.graph .node")
    assert zooming(page) < smooth * ROUGHER
    operator.button("All").click()
    operator.becomes(nodes.count, 1000)  # each is there, as a link
    assert page.locator(f"[data-node='{ulid(999)}']").get_attribute("href") == f"/jobs/{ulid(999)}"
    boxes = nodes.evaluate_all("all => all.map((each) => each.querySelector('.box').getBoundingClientRect().toJSON())")
    frame = page.locator("figure.graph svg").bounding_box()
    assert all(frame["x"] - 1 <= each["left"] <= each["right"] <= frame["x"] + frame["width"] + 1 for each in boxes)
    assert len({(round(each["left"], 2), round(each["top"], 2)) for each in boxes}) == 1000  # none hides another
    for _ in range(8):
        operator.button("Zoom in").click()
    operator.until(lambda: nodes.count() < 300)  # what is out of sight is not drawn
    assert "1000" in page.get_by_role("region", name="Summary").inner_text()
    rows = page.locator("main tbody tr:has([data-title=Job])")
    assert rows.count() == PAGE
    operator.button("Show all 1000").click()
    operator.becomes(rows.count, 1000)


MILLION = 1_000_000
SEGMENT = 1000
NEEDLES = {5, 123_456, 500_000, 999_999, 1_000_000}
LINE = '{"seq":%d,"time":"2026-01-01T00:00:00Z","stream":"stdout","task":0,"attempt":1,"payload":"line %d: %s"}'
FILL = "what a script says of what it does"


def lines(first: int, last: int) -> str:
    """Lines of a log as the API has them, as JSON."""
    return ",".join(LINE % (each, each, "a needle" if each in NEEDLES else FILL) for each in range(first, last + 1))


class Served:
    """A log of some lines, and what was asked of it."""

    def __init__(self, console: Console, job: str, total: int) -> None:
        self.total, self.segments = total, 0
        console.page.unroute_all()
        console.page.route(f"**/v1/jobs/{job}/events?*", self._page)
        console.page.route(f"**/v1/jobs/{job}/events/*", self._segment)

    def _page(self, route: Any) -> None:
        query = {name: int(value) for name, (value,) in parse_qs(urlsplit(route.request.url).query).items()}
        first = max(query.get("after", 0), self.total - query["last"] if query.get("last") else 0) + 1
        last = min(self.total, first + query.get("limit", 500) - 1)
        rest = f'"next":{last},"total":{self.total},"state":"settled","outcome":"succeeded"'
        route.fulfill(body=f'{{"items":[{lines(first, last)}],{rest}}}', content_type="application/json")

    def _segment(self, route: Any) -> None:
        self.segments += 1
        first = int(urlsplit(route.request.url).path.rpartition("/")[2]) * SEGMENT + 1
        body = f'{{"items":[{lines(first, first + SEGMENT - 1)}],"next":{first + SEGMENT - 1}}}'
        route.fulfill(body=body, content_type="application/json")


def texts(console: Console) -> dict[int, str]:
    """The lines that are drawn and loaded."""
    found = console.page.locator(".log-line:has(.log-text)").evaluate_all(
        "all => all.map((each) => [Number(each.dataset.line), each.querySelector('.log-text').textContent])"
    )
    return {int(line): str(text) for line, text in found}


def shows(console: Console, line: int) -> None:
    """Wait for a line, and see that it is the one with its number."""
    console.until(lambda: line in texts(console))
    assert texts(console)[line].startswith(f"line {line}: ")


@pytest.mark.long
def test_a_million_lines(operator: Console, local: Local, scene: Scene) -> None:
    assert json.loads(f"[{lines(1, 2)}]")[1]["seq"] == 2
    address, box = f"/jobs/{scene.succeeded}/log", operator.region("Lines of the log")
    served = Served(operator, scene.succeeded, SEGMENT)
    page = operator.open(address)
    shows(operator, SEGMENT)
    few, smooth, least = drawn(operator), roughness(operator, box), heap(operator)

    served = Served(operator, scene.succeeded, MILLION)
    operator.open(address)
    shows(operator, MILLION)  # it begins at the end
    box.evaluate("(each) => { each.scrollTop = each.scrollHeight / 2 }")
    operator.until(lambda: any(abs(line - MILLION // 2) < 100 for line in texts(operator)))
    middle = min(texts(operator), key=lambda line: abs(line - MILLION // 2))
    shows(operator, middle)
    box.evaluate("(each) => { each.scrollTop = 0 }")
    shows(operator, 1)
    box.evaluate("(each) => { each.scrollTop = each.scrollHeight }")
    shows(operator, MILLION)
    assert roughness(operator, box) < smooth * ROUGHER
    assert drawn(operator) < few * 2
    assert served.segments < 150  # of a thousand: what nobody looks at is not loaded
    assert heap(operator) < least + 30 * 2**20

    count = page.locator(".log-count")
    page.get_by_role("searchbox", name="Search the log").fill("needle")
    operator.until(lambda: "searched" in count.inner_text())
    assert roughness(operator, box) < smooth * ROUGHER  # the page goes on while it searches
    while "searched" in (said := count.inner_text()):
        operator.until(lambda said=said: count.inner_text() != said)  # it gets on
    operator.until(lambda: count.inner_text().split(" of ")[-1] == f"{len(NEEDLES)} lines")
    for place, line in enumerate(sorted(NEEDLES), 1):
        page.keyboard.press("Enter")
        operator.becomes(count.inner_text, f"{place} of {len(NEEDLES)} lines")
        shows(operator, line)
    assert drawn(operator) < few * 2
    assert heap(operator) < least + MILLION * 150
    assert roughness(operator, box) < smooth * ROUGHER
    operator.page.unroute_all()
    assert local.job(scene.succeeded)["outcome"] == "succeeded"
