"""The first view of a page stays within a budget: requests, elements, layouts, and the work of the browser.

Nothing is compared with a clock. Work is the processor time of the browser's main thread, as a multiple of what a fixed
loop takes in the same browser at the same moment. It says how long the page does not answer, on a busy machine too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.web.browser import Console
from tests.web.scenes import Scene

LOOP = (
    "(() => { let sum = 0; for (let each = 0; each < 20_000_000; each++) sum = (sum * 31 + each) | 0; return sum; })()"
)
"""About as long as the shortest task that browsers call long, 50 ms, on the machine of a developer."""

ADDRESSES = "new Set(performance.getEntriesByType('resource').map((each) => each.name.split('?')[0])).size"
"""What was asked for. Until all is there, a page may have begun to look whether something has changed."""

ROUNDS = 3


@dataclass(frozen=True)
class Effort:
    """What a first view takes. `work`: processor time of the main thread, as a multiple of LOOP's."""

    requests: int
    elements: int
    layouts: int
    work: float

    def over(self, most: Effort) -> dict[str, tuple[float, float]]:
        """What is over a budget: how much it is, and how much it may be."""
        pairs = {name: (found, getattr(most, name)) for name, found in vars(self).items()}
        return {name: pair for name, pair in pairs.items() if pair[0] > pair[1]}


MOST = Effort(requests=40, elements=1500, layouts=40, work=4)
"""The budget of every page, with the data of these tests."""


def metrics(tools: Any) -> dict[str, float]:
    return {each["name"]: each["value"] for each in tools.send("Performance.getMetrics")["metrics"]}


def effort_of(console: Console, path: str) -> Effort:
    """What a page takes until all that it shows at first is there. Of some rounds the least work counts."""
    page = console.open(path)
    found = []
    for _ in range(ROUNDS):
        tools = page.context.new_cdp_session(page)
        tools.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = metrics(tools)
        page.reload()
        page.locator("main h1").wait_for()
        page.locator("main .loading").first.wait_for(state="detached")
        shown = metrics(tools)
        page.evaluate(LOOP)
        after = metrics(tools)
        tools.detach()
        loop = after["TaskDuration"] - shown["TaskDuration"]
        found.append(
            Effort(
                requests=int(page.evaluate(ADDRESSES)),
                elements=int(page.evaluate("document.querySelectorAll('*').length")),
                layouts=int(shown["LayoutCount"] - before["LayoutCount"]),
                work=round((shown["TaskDuration"] - before["TaskDuration"]) / loop, 2),
            )
        )
    return min(found, key=lambda each: each.work)


PATHS = ["/", "/jobs/{succeeded}", "/jobs/{running}", "/pools", "/graph", "/operator", "/site"]


@pytest.mark.parametrize("path", PATHS)
def test_the_first_view_of_a_page_is_within_the_budget(operator: Console, scene: Scene, path: str) -> None:
    found = effort_of(operator, path.format(**vars(scene)))
    assert found.over(MOST) == {}
