"""The log of a job: its lines are those of the API, and each tool above it does what it says."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from penstock.agent.joblog import WATCHED_SECONDS
from tests.e2e.conftest import Local
from tests.web.browser import Console
from tests.web.scenes import Scene, text

FIRST = """\
for each in $(seq 1 300); do echo "row $each of the first"; done
printf '\\033[31mred needle\\033[0m and more\\n'
printf '10%%\\r50%%\\r100%% done\\n'
echo Needle
"""
SECOND = """\
for each in $(seq 1 300); do echo "row $each of the second"; done
echo "a long line: $(seq -s ' ' 1 200)"
echo needle
"""


@dataclass(frozen=True)
class Logged:
    """A settled job, and its log as the API has it."""

    job: str
    lines: list[dict[str, Any]] = field(repr=False)

    @property
    def texts(self) -> list[str]:
        return [each["payload"] for each in self.lines]

    def where(self, text: str) -> list[int]:
        """The numbers of the lines that have a text, whatever the case."""
        return [each["seq"] for each in self.lines if text.lower() in each["payload"].lower()]


@pytest.fixture(scope="module")
def logged(local: Local, scene: Scene) -> Logged:
    del scene
    tasks = [{"name": "first", "script": FIRST}, {"name": "second", "script": SECOND}]
    job = local.call("POST", "/v1/jobs", json={"name": "two tasks", "tasks": tasks}).json()["id"]
    assert local.settled(job)["outcome"] == "succeeded"
    local.until(lambda: local.log(job)[-1]["payload"].startswith("settled:"))
    return Logged(job, local.log(job))


READ = """(all) => all.map((each) => ({
    line: Number(each.dataset.line),
    text: each.querySelector('.log-text')?.textContent ?? null,
    isPlain: each.matches('.stream-stdout') && !each.matches('.head'),
    isLinked: each.matches('.linked'),
}))"""


def seen(console: Console) -> list[dict[str, Any]]:
    """The lines that are drawn."""
    return list(console.page.locator(".log-line").evaluate_all(READ))


def open_log(console: Console, job: str, lines: str = "") -> Any:
    console.page.goto("about:blank")  # an address that differs in its fragment only would not be loaded again
    page = console.open(f"/jobs/{job}/log{lines}")
    page.locator(".log-line .log-text").first.wait_for()
    return page


def is_shown(console: Console, line: int) -> bool:
    """Whether a line is in sight, with its text."""
    row = console.page.locator(f".log-line[data-line='{line}']")
    if not row.locator(".log-text").count():
        return False
    box, frame = row.bounding_box(), console.region("Lines of the log").bounding_box()
    return bool(frame["y"] <= box["y"] and box["y"] + box["height"] <= frame["y"] + frame["height"])


def test_every_line_is_what_the_service_has(operator: Console, logged: Logged) -> None:
    page = open_log(operator, logged.job, "#L1")
    operator.until(lambda: is_shown(operator, 1))
    found: dict[int, str] = {}
    plain: set[int] = set()
    box = operator.region("Lines of the log")
    while True:
        operator.until(lambda: all(each["text"] is not None for each in seen(operator)))
        for each in seen(operator):
            found[each["line"]] = each["text"]
            plain |= {each["line"]} if each["isPlain"] else set()
        if box.evaluate("(each) => each.scrollHeight - each.scrollTop - each.clientHeight < 2"):
            break
        box.evaluate("(each) => each.scrollBy(0, each.clientHeight / 2)")
        page.wait_for_timeout(50)
    assert set(found) >= set(range(1, len(logged.lines) + 1))
    rows = {each["seq"]: each["payload"] for each in logged.lines if each["payload"].startswith("row ")}
    assert len(rows) == 600
    for line, payload in rows.items():
        assert found[line].startswith(payload) if line not in plain else found[line] == payload


def test_colours_are_shown_and_what_was_overwritten_is_not(operator: Console, logged: Logged) -> None:
    (line,) = logged.where("red needle")
    page = open_log(operator, logged.job, f"#L{line}")
    operator.until(lambda: is_shown(operator, line))
    row = page.locator(f".log-line[data-line='{line}']")
    assert row.locator(".log-text").inner_text() == "red needle and more"
    red = row.locator("span.fg-red")
    assert red.inner_text() == "red needle"
    colour = "each => getComputedStyle(each).color"
    assert red.evaluate(colour) != row.locator(".log-text").evaluate(colour)
    over = page.locator(f".log-line[data-line='{logged.where('100% done')[0]}'] .log-text")
    assert over.inner_text().endswith("100% done")
    assert "50%" not in over.inner_text()


def test_a_text_is_searched(operator: Console, logged: Logged) -> None:
    page = open_log(operator, logged.job)
    lines = logged.where("needle")
    assert len(lines) >= 3
    count = page.locator(".log-count")
    page.keyboard.press("Control+f")
    page.keyboard.type("needle")
    operator.becomes(count.inner_text, f"{len(lines)} lines")
    for place, press in enumerate(["Enter", "Enter", "Shift+Enter"]):
        page.keyboard.press(press)
        at = (0, 1, 0)[place]
        operator.becomes(count.inner_text, f"{at + 1} of {len(lines)} lines")
        operator.until(lambda at=at: is_shown(operator, lines[at]))
        marked = page.locator(f".log-line[data-line='{lines[at]}'] mark")
        assert {each.lower() for each in marked.all_inner_texts()} == {"needle"}
    operator.button("Next match").click()
    operator.becomes(count.inner_text, f"2 of {len(lines)} lines")
    operator.button("Previous match").click()
    operator.becomes(count.inner_text, f"1 of {len(lines)} lines")
    exact = sum("needle" in each for each in logged.texts)
    assert exact != len(lines)
    operator.button("Match case").click()
    operator.becomes(lambda: count.inner_text().split(" of ")[-1], f"{exact} lines")
    page.get_by_role("searchbox", name="Search the log").press("Escape")
    operator.becomes(count.inner_text, "")
    assert page.locator("main mark").count() == 0
    assert operator.button("Next match").is_disabled()
    page.get_by_role("searchbox", name="Search the log").fill("[31m(")  # no pattern, and nothing that is shown
    operator.becomes(count.inner_text, "0 lines")


def test_lines_are_linked_and_copied(operator: Console, logged: Logged) -> None:
    page = open_log(operator, logged.job, "#L20")
    operator.until(lambda: is_shown(operator, 20))
    page.get_by_role("link", name="Line 18", exact=True).click()
    assert page.url.endswith("#L18")
    page.get_by_role("link", name="Line 22", exact=True).click(modifiers=["Shift"])
    assert page.url.endswith("#L18-L22")
    assert [each["line"] for each in seen(operator) if each["isLinked"]] == [18, 19, 20, 21, 22]
    assert operator.copied("Copy lines 18\u201322") == "".join(f"{each}\n" for each in logged.texts[17:22])
    open_log(operator, logged.job, "#L500-L502")
    operator.until(lambda: is_shown(operator, 500))
    assert [each["line"] for each in seen(operator) if each["isLinked"]] == [500, 501, 502]

    line = page.get_by_label("Line", exact=True)
    assert line.input_value() == "500-502"
    line.fill("40")
    line.press("Enter")
    operator.until(lambda: is_shown(operator, 40))
    assert page.url.endswith("#L40")
    line.fill("99999")
    line.press("Enter")
    operator.says("There is no line 99999")
    line.fill("")
    line.press("Enter")
    operator.becomes(lambda: "#" in page.url, False)
    assert operator.copied("Copy all") == "".join(f"{each}\n" for each in logged.texts)


def test_the_log_is_downloaded(operator: Console, logged: Logged) -> None:
    open_log(operator, logged.job)
    got = operator.download(lambda: operator.button("Download log").click())
    assert got.decode() == "".join(f"{each}\n" for each in logged.texts)
    operator.button("Times").click()
    got = operator.download(lambda: operator.button("Download log").click())
    stamped = [re.sub(r"^\d{4}-\d\d-\d\dT\S+Z ", "", each) for each in got.decode().split("\n")]
    assert stamped == [*logged.texts, ""]
    assert stamped != got.decode().split("\n")


def test_times_are_shown_and_the_choice_is_kept(operator: Console, logged: Logged) -> None:
    page = open_log(operator, logged.job, "#L1")
    assert page.locator("time.log-time").count() == 0
    operator.button("Times").click()
    assert operator.button("Times").get_attribute("aria-pressed") == "true"
    operator.until(lambda: is_shown(operator, 1))
    shown = page.locator(".log-line[data-line='1'] time").get_attribute("datetime")
    assert shown[:19] == logged.lines[0]["time"][:19]
    open_log(operator, logged.job, "#L1")
    page.locator("time.log-time").first.wait_for()
    operator.button("Times").click()
    operator.becomes(lambda: page.locator("time.log-time").count(), 0)


def test_long_lines_are_wrapped(operator: Console, logged: Logged) -> None:
    (line,) = logged.where("a long line")
    page = open_log(operator, logged.job, f"#L{line}")
    row = page.locator(f".log-line[data-line='{line}']")
    operator.until(lambda: is_shown(operator, line))
    box = operator.region("Lines of the log")
    low, wide = row.bounding_box()["height"], "each => each.scrollWidth > each.clientWidth"
    assert box.evaluate(wide)
    operator.button("Wrap").click()
    operator.until(lambda: row.count() and row.bounding_box()["height"] > 2 * low)
    assert not box.evaluate(wide)
    operator.button("Wrap").click()
    operator.until(lambda: row.count() and row.bounding_box()["height"] == low)


def test_tasks_are_folded(operator: Console, logged: Logged) -> None:
    page = open_log(operator, logged.job, "#L1")
    operator.button("Fold all").click()
    folds = page.locator("button.log-fold")
    operator.becomes(lambda: folds.evaluate_all("all => all.map((each) => each.ariaExpanded)"), ["false"] * 3)
    names = ["before the script", "task 0", "task 1"]
    said = folds.all_inner_texts()
    assert [name for name, each in zip(names, said, strict=True) if name in each] == names
    for task in (0, 1):
        count = sum(each["task"] == task for each in logged.lines)
        assert f"{count} lines" in said[task + 1]
    shown = [each["line"] for each in seen(operator)]
    assert not {each["seq"] for each in logged.lines if each["payload"].startswith("row 2")} & set(shown)

    folds.nth(1).click()  # one of them alone
    operator.becomes(lambda: folds.nth(1).get_attribute("aria-expanded"), "true")
    (row,) = logged.where("row 2 of the first")
    operator.until(lambda: row in [each["line"] for each in seen(operator)])
    folds.nth(1).click()
    operator.becomes(lambda: row in [each["line"] for each in seen(operator)], False)

    (hidden,) = logged.where("row 150 of the second")
    line = page.get_by_label("Line", exact=True)
    line.fill(str(hidden))
    line.press("Enter")
    operator.until(lambda: is_shown(operator, hidden))  # a line that is asked for is unfolded
    operator.button("Unfold all").click()
    operator.button("Fold all").wait_for()


def test_the_log_of_a_running_job_is_followed(operator: Console, local: Local, scene: Scene) -> None:
    del scene
    ticks = 'n=0; until bmat store get -W go > /dev/null 2>&1; do n=$((n+1)); echo "tick $n"; sleep 0.1; done'
    job = local.submit(text("ticks", f"seq 1 200; {ticks}"))
    local.until(lambda: any(each["payload"] == "tick 3" for each in local.log(job)))
    page = open_log(operator, job)
    box = operator.region("Lines of the log")
    at_end = "(each) => each.scrollHeight - each.scrollTop - each.clientHeight < 4"

    def last() -> int:
        return max(each["line"] for each in seen(operator))

    begun = last()
    operator.until(lambda: last() >= begun + 3)
    operator.until(lambda: box.evaluate(at_end))
    assert page.get_by_text("live").first.is_visible()
    assert operator.button("Jump to the end").count() == 0

    box.hover()
    page.mouse.wheel(0, -600)
    operator.button("Jump to the end").wait_for()
    place = box.evaluate("(each) => each.scrollTop")
    total = len(local.log(job))
    local.until(lambda: len(local.log(job)) >= total + 5)
    operator.until(lambda: int(page.locator(".log-status").inner_text().split()[0]) >= total + 5)
    assert box.evaluate("(each) => each.scrollTop") == pytest.approx(place, abs=40)
    assert not box.evaluate(at_end)
    operator.button("Jump to the end").click()
    operator.until(lambda: box.evaluate(at_end))
    assert operator.button("Jump to the end").count() == 0

    box.focus()
    page.keyboard.press("PageUp")
    operator.button("Jump to the end").wait_for()
    box.focus()
    page.keyboard.press("End")
    operator.becomes(lambda: operator.button("Jump to the end").count(), 0)
    assert local.call("PUT", f"/v1/jobs/{job}/store/go", json={"value": "now"}).is_success
    local.settled(job)
    operator.becomes(lambda: page.get_by_text("live").count(), 0)
    lines = local.log(job)
    operator.until(lambda: last() >= len(lines))


class Live:
    """The log of a running job, as the service and as CloudFront's cache have it, in the time of the page's clock."""

    def __init__(self, console: Console, job: str, key: str | None) -> None:
        self.now, self.total, self.key, self.kept = 0.0, 5, key, dict[str, tuple[float, dict[str, Any]]]()
        self.asked: Counter[str] = Counter()
        self.open = 0
        console.page.on("request", lambda _: self._count(1))
        for ended in ("requestfinished", "requestfailed"):
            console.page.on(ended, lambda _: self._count(-1))
        console.page.route(f"**/v1/jobs/{job}/events?*", self._own)
        console.page.route(f"**/v1/logs/{job}?*", self._shared)

    def _count(self, by: int) -> None:
        self.open += by

    def page(self, query: dict[str, str], key: str | None) -> dict[str, Any]:
        """What the API says."""
        after = max(int(query.get("after", 0)), self.total - int(query["last"]) if "last" in query else 0)
        line = {"time": "2026-01-01T00:00:00Z", "stream": "stdout", "task": 0, "attempt": 1}
        items = [{**line, "seq": each, "payload": f"line {each}"} for each in range(after + 1, self.total + 1)]
        return {
            "items": items,
            "next": max(self.total, after),
            "total": self.total,
            "state": "running",
            "outcome": None,
            "key": key,
        }

    def _own(self, route: Any) -> None:
        self.asked["own"] += 1
        route.fulfill(json=self.page(dict(parse_qsl(urlsplit(route.request.url).query)), self.key))

    def _shared(self, route: Any) -> None:
        self.asked["shared"] += 1
        query = dict(parse_qsl(urlsplit(route.request.url).query))
        if query["key"] != self.key:
            problem = {"status": 403, "code": "log-key", "detail": "no key", "errors": []}
            route.fulfill(status=403, json=problem, content_type="application/problem+json")
            return
        until, body = self.kept.get(query["after"], (0.0, {}))
        if self.now >= until:
            until, body = self.now + 1, self.page(query, None)
            self.kept[query["after"]] = (until, body)
        route.fulfill(json=body)


TICK = 0.1


@pytest.mark.parametrize("key", [None, f"1.{'a' * 64}"], ids=["own", "shared"])
def test_a_line_is_seen_within_two_seconds(operator: Console, scene: Scene, key: str | None) -> None:
    """By the page's clock, whatever the machine does: also where replies come from a cache and are a second old."""
    live = Live(operator, scene.running, key)
    operator.page.clock.install()
    open_log(operator, scene.running)

    def tick() -> None:
        live.now += TICK
        operator.page.clock.run_for(TICK * 1000)
        operator.becomes(lambda: live.open, 0)

    for phase in range(0, 13, 3):
        for _ in range(100 + phase):  # long quiet, so that the page asks as slowly as it does
            tick()
        live.total += 1
        waited = 0.0
        while not operator.page.get_by_text(f"line {live.total}", exact=True).count():
            tick()
            waited += TICK
            assert waited < 10
        assert waited + WATCHED_SECONDS <= 2  # the agent waits for other lines before it sends one
    assert (live.asked["shared"] > live.asked["own"]) == (key is not None)


def test_a_key_that_has_expired_is_replaced(operator: Console, scene: Scene) -> None:
    live = Live(operator, scene.running, "1." + "a" * 64)
    page = open_log(operator, scene.running)
    operator.until(lambda: live.asked["shared"] >= 2)
    own, live.key = live.asked["own"], "2." + "b" * 64
    live.total += 1
    page.get_by_text(f"line {live.total}", exact=True).wait_for()
    shared = live.asked["shared"]
    operator.until(lambda: live.asked["shared"] >= shared + 3)
    assert live.asked["own"] == own + 1
    assert page.locator("main .problem").count() == 0


def test_the_job_page_has_the_log_and_leads_to_its_full_size(operator: Console, logged: Logged) -> None:
    page = operator.open(f"/jobs/{logged.job}")
    page.locator(".log-line .log-text").first.wait_for()
    operator.until(lambda: is_shown(operator, len(logged.lines)))  # the end of it
    page.get_by_role("link", name="Full size").click()
    page.wait_for_url(f"**/jobs/{logged.job}/log")
    page.get_by_role("heading", name="Log of two tasks").wait_for()
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="two tasks").click()
    page.wait_for_url(f"**/jobs/{logged.job}")
