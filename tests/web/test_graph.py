"""The graph: who waits for whom, over the whole site."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import Local
from tests.web.browser import Console
from tests.web.scenes import Scene


def graph(local: Local) -> dict[str, Any]:
    return dict(local.call("GET", "/v1/graph").json())


def drawn(console: Console) -> set[str]:
    """The ids of what is drawn."""
    return {str(each.get_attribute("data-node")) for each in console.page.locator("main [data-node]").all()}


def touched(view: dict[str, Any]) -> set[str]:
    """Jobs, and the pools that some job waits for or holds."""
    jobs = {each["id"] for each in view["nodes"] if each["kind"] == "job"}
    return jobs | {end for each in view["edges"] for end in (each["from"], each["to"])}


def node(console: Console, name: str) -> Any:
    """A node by its whole sentence's beginning."""
    return console.page.locator("main [data-node]").filter(has_text=name).first


def test_all_that_waits_or_holds_is_drawn_and_in_the_table(operator: Console, local: Local, scene: Scene) -> None:
    page = operator.open("/graph?draw=all")
    operator.becomes(lambda: drawn(operator) == touched(graph(local)), True)
    waits = page.locator(f"[data-node='{scene.waiting}']")
    assert "flash again of admin waits for resource/bench" in waits.text_content()
    jobs = [each for each in graph(local)["nodes"] if each["kind"] == "job"]
    page.get_by_text(f"As a table: {len(jobs)} jobs").click()
    named = sorted(f"{each['job_name']} {each['job_owner']}" for each in jobs)
    operator.becomes(lambda: sorted(each["Job"] for each in operator.rows("Who waits for whom")), named)
    rows = operator.rows("Who waits for whom")
    (row,) = [each for each in rows if each["Job"].startswith("flash again")]
    assert row["Waits for"] == "resource/bench"
    assert "soak test admin" in row["Which is held by"]
    assert operator.copied("Copy as command") == "penstock pool show --graph"


def test_a_node_opens_a_panel_that_says_why_by_keys_too(operator: Console, local: Local, scene: Scene) -> None:
    page = operator.open("/graph?draw=all")
    waits = page.locator(f"[data-node='{scene.waiting}']")
    waits.focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="What was chosen")
    panel.get_by_role("heading", name="flash again").wait_for()
    said = local.call("GET", f"/v1/jobs/{scene.waiting}/why").json()
    panel.get_by_text("Waits for", exact=True).wait_for()
    assert said["summary"].partition(" by ")[0][:40] in panel.inner_text()
    assert panel.get_by_role("link", name="Open the job").get_attribute("href") == f"/jobs/{scene.waiting}"
    assert f"at={scene.waiting}" in page.url
    page.keyboard.press("Escape")
    panel.wait_for(state="detached")
    focused = "document.activeElement.getAttribute('data-node')"
    operator.becomes(lambda: page.evaluate(focused), scene.waiting)
    page.locator("[data-node='resource/bench']").click()
    panel.get_by_role("link", name="Open the pool").wait_for()
    assert panel.get_by_role("heading", level=3).all_inner_texts() == ["Held by", "Waited for by"]
    panel.get_by_role("button", name="Close").click()
    panel.wait_for(state="detached")


def test_jobs_with_the_same_edges_are_drawn_as_one_until_somebody_asks(operator: Console, scene: Scene) -> None:
    del scene
    page = operator.open("/graph?name=flash")
    pile = page.locator("[data-node^='pile ']").filter(has_text="flash").first
    pile.click()
    panel = page.get_by_role("complementary", name="What was chosen")
    panel.get_by_role("button", name="Draw them singly").click()
    panel.get_by_role("button", name="Draw them as one").wait_for()
    operator.becomes(lambda: len([each for each in drawn(operator) if each.startswith("pile")]), 0)
    node(operator, "flash of admin holds").click()
    panel.get_by_role("button", name="Draw it as one with the other").click()
    pile.wait_for()
    page.get_by_label("Draw every job").check()
    operator.becomes(lambda: len([each for each in drawn(operator) if each.startswith("pile")]), 0)
    assert "draw=all" in page.url


def test_filters_keep_whom_the_jobs_wait_for(operator: Console, local: Local, scene: Scene) -> None:
    page = operator.open("/graph?draw=all")
    operator.choose("Job", "flash again")
    holders = {each["job"] for each in local.call("GET", "/v1/pools/resource/bench").json()["slots"]}
    jobs = {each["id"] for each in graph(local)["nodes"] if each["kind"] == "job"}
    operator.becomes(lambda: drawn(operator) & jobs, holders | {scene.waiting})
    operator.choose("Job", "")
    operator.choose("Pool", "resource/licence")
    operator.becomes(lambda: scene.running in drawn(operator) and scene.waiting not in drawn(operator), True)
    operator.choose("Owner", "nobody-like-that")
    page.get_by_text("No job waits or holds anything that looks like that.").wait_for()


def test_the_picture_is_zoomed_by_buttons(operator: Console, scene: Scene) -> None:
    del scene
    page = operator.open("/graph")
    group = page.locator("main svg g[transform^='scale']").first
    group.wait_for(state="attached")

    def scale() -> float:
        return float(str(group.get_attribute("transform")).partition("(")[2].partition(")")[0])

    operator.button("All").click()
    first = scale()
    operator.button("Zoom in").click()
    operator.until(lambda: scale() > first)
    operator.button("Zoom out").click()
    operator.button("Zoom out").click()
    operator.until(lambda: scale() < first)
    operator.button("All").click()
    operator.becomes(scale, first)
