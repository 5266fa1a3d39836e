"""The page of a set: its graph, its matrix, its table and its buttons, against what the API says of the set."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import Local
from tests.web.browser import Console
from tests.web.scenes import FAMILY, PAIR, Scene, all_settled, family, members

JOBS = "Jobs of the set, in the order in which they were submitted"


@pytest.fixture(scope="module")
def settled(local: Local, scene: Scene) -> str:
    """A set of which all jobs have settled: a matrix, what depends on one of it, and a report."""
    del scene
    its = family(local, FAMILY)
    all_settled(local, its)
    return its


def open_set(console: Console, its: str) -> Any:
    page = console.open(f"/sets/{its}")
    page.locator("figure.graph[aria-busy=false] .node").first.wait_for()
    return page


def nodes(console: Console) -> list[str]:
    return list(console.page.locator("figure.graph .node").evaluate_all("all => all.map((each) => each.dataset.node)"))


def state_of(job: dict[str, Any]) -> str:
    return str(job["outcome"] or job["state"])


def test_the_set_is_as_the_service_says(operator: Console, local: Local, settled: str) -> None:
    page = open_set(operator, settled)
    jobs = members(local, settled)
    rows = operator.rows(JOBS)
    assert [row["Job"] for row in rows] == list(jobs)
    for row, job in zip(rows, jobs.values(), strict=True):
        assert row["State"].split()[-1] == state_of(job)
        assert (job["reason"] if job["outcome"] != "succeeded" else "") == row["Why"]
    after = {row["Job"]: row["After"] for row in rows}
    assert after == {name: "" for name in jobs} | {"sign": "build (c, debug)", "report": "sign whatever comes"}
    assert sorted(nodes(operator)) == sorted(each["id"] for each in jobs.values())

    summary = page.get_by_role("region", name="Summary").inner_text()
    counts: dict[str, int] = {}
    for job in jobs.values():
        counts[state_of(job)] = counts.get(state_of(job), 0) + 1
    for state, count in counts.items():
        assert f"{count} {state}" in summary
    assert "admin" in summary
    assert operator.copied("Copy as command") == f"penstock job list --set {settled} --no-limit"


def test_the_matrix_is_a_grid_with_a_cell_for_each_job(operator: Console, local: Local, settled: str) -> None:
    page = open_set(operator, settled)
    grid = page.get_by_role("region", name="Matrix build (*)")
    assert grid.locator("thead th").all_inner_texts() == ["debug", "release"]
    assert grid.locator("tbody th").all_inner_texts() == ["a", "b", "c", "d"]
    for name, job in members(local, settled).items():
        if not job["matrix"]:
            continue
        board, mode = job["matrix"].values()
        row = grid.locator("tbody tr").filter(has=page.get_by_role("rowheader", name=board, exact=True))
        cell = row.locator("td").nth(["debug", "release"].index(mode))
        assert cell.locator("a").get_attribute("href") == f"/jobs/{job['id']}", name
        assert cell.locator(".state").get_attribute("data-state") == state_of(job)


def test_jobs_of_a_matrix_are_drawn_as_one_or_singly(operator: Console, local: Local, settled: str) -> None:
    page = open_set(operator, settled)
    jobs = members(local, settled)
    assert len(nodes(operator)) == len(jobs)
    box = page.get_by_label("Jobs of a matrix as one")
    box.check()
    operator.becomes(lambda: len(nodes(operator)), 3)
    assert operator.button("Close all").count() == 0
    (pile,) = set(nodes(operator)) - {each["id"] for each in jobs.values()}
    page.locator(f"[data-node='{pile}']").click()
    operator.becomes(lambda: len(nodes(operator)), len(jobs))
    operator.button("Close all").click()
    operator.becomes(lambda: len(nodes(operator)), 3)
    box.uncheck()
    operator.becomes(lambda: len(nodes(operator)), len(jobs))


def zoom(console: Console) -> float:
    """By how much the picture is larger than it was laid out."""
    found = console.page.locator("figure.graph svg > g").evaluate("each => each.getCTM().a")
    return float(found)


def test_the_graph_is_zoomed_by_buttons_and_keys_and_a_node_leads_to_its_job(operator: Console, settled: str) -> None:
    page = open_set(operator, settled)
    begun = zoom(operator)
    for enlarge, reduce in (
        (lambda: operator.button("Zoom in").click(), lambda: operator.button("Zoom out").click()),
        (lambda: page.keyboard.press("+"), lambda: page.keyboard.press("-")),
    ):
        page.locator("figure.graph .node[tabindex='0']").focus()
        before = zoom(operator)
        enlarge()
        operator.until(lambda before=before: zoom(operator) > before * 1.2)
        page.locator("figure.graph .node[tabindex='0']").focus()
        reduce()
        operator.until(lambda before=before: abs(zoom(operator) - before) < before * 0.05)
    for _ in range(4):
        operator.button("Zoom in").click()
    operator.until(lambda: zoom(operator) > begun * 1.5)
    operator.button("All").click()
    operator.until(lambda: zoom(operator) <= begun * 1.5)
    frame = page.locator("figure.graph svg").bounding_box()
    for each in page.locator("figure.graph .node").all():
        box = each.bounding_box()
        assert box["x"] >= frame["x"] - 1
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1

    page.locator("figure.graph .node[tabindex='0']").focus()
    first = page.evaluate("document.activeElement.dataset.node")
    for key in ("ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.dataset.node")
    seen = {first}
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
        seen.add(page.evaluate("document.activeElement.dataset.node"))
    assert len(seen) > 1
    here = page.evaluate("document.activeElement.dataset.node")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{here}")


def test_the_table_shows_the_jobs_of_a_state(operator: Console, local: Local, settled: str) -> None:
    page = open_set(operator, settled)
    state = page.locator("main .filters select")
    for wanted in ("failed", "succeeded", ""):
        state.select_option(wanted)
        names = [name for name, job in members(local, settled).items() if wanted in ("", state_of(job))]
        operator.becomes(lambda: [row["Job"] for row in operator.rows(JOBS)], names)


def test_what_failed_is_run_again_and_what_waits_for_it_is_said(operator: Console, local: Local, settled: str) -> None:
    its = family(local, FAMILY)
    before = all_settled(local, its)
    page = open_set(operator, its)
    card = page.get_by_role("region", name="To run again")
    said = card.inner_text()
    assert "build (c, debug)" in said
    assert "sign" in said.partition("After that")[2]
    failed, sign, report = (before[each]["id"] for each in ("build (c, debug)", "sign", "report"))
    assert operator.copied("Copy as commands").splitlines() == [
        f"job1=$(penstock job retry {failed})",
        f'job2=$(penstock job retry {sign} --after built="$job1")',
        f'penstock job retry {report} --after signed="$job2"',
    ]
    operator.press("Retry 1 job")
    operator.says("1 job submitted once more")
    local.until(lambda: len(local.call("GET", f"/v1/sets/{its}").json()["items"]) == len(before) + 1)
    assert members(local, its)["build (c, debug)"]["id"] != failed
    operator.becomes(lambda: sum("submitted again later" in row["Job"] for row in operator.rows(JOBS)), 1)
    assert {name: job["id"] for name, job in members(local, settled).items()}  # another set is as it was
    all_settled(local, its)


RERUN = "Re-run what failed and what depends on it"


def newest(local: Local, its: str) -> dict[str, list[dict[str, Any]]]:
    """The jobs of a set by their names, the first submitted first."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in local.call("GET", f"/v1/sets/{its}").json()["items"]:
        found.setdefault(each["name"], []).append(each)
    return found


def test_what_failed_and_what_depends_on_it_is_run_again_after_the_new_jobs(operator: Console, local: Local) -> None:
    """One is refused midway: the page says so, and goes on where it ended. None is submitted twice."""
    its = family(local, FAMILY)
    before = all_settled(local, its)
    failed, sign = (before[each]["id"] for each in ("build (c, debug)", "sign"))
    page = open_set(operator, its)
    later = {
        "type": "about:blank",
        "title": "x",
        "status": 429,
        "code": "too-many-jobs",
        "detail": "there are too many",
    }
    page.route(f"**/v1/jobs/{sign}/retry", lambda route: route.fulfill(status=429, json=later))
    page.get_by_role("button", name=RERUN, exact=True).first.click()
    dialog = page.locator("dialog[open]")
    assert "3 jobs will be submitted once more" in dialog.inner_text()
    go = dialog.get_by_role("button", name=RERUN, exact=True)
    go.click()
    said = dialog.get_by_role("alert")
    said.wait_for()
    assert said.inner_text().startswith("1 of 3 were submitted once more (build (c, debug)). “sign” was refused: ")
    page.unroute(f"**/v1/jobs/{sign}/retry")
    local.until(lambda: len(newest(local, its)["build (c, debug)"]) == 2)
    go.click()
    operator.says("jobs submitted once more")
    local.until(lambda: len(newest(local, its)["report"]) == 2)
    jobs = newest(local, its)
    assert {name: len(each) for name, each in jobs.items() if len(each) > 1} == {
        "build (c, debug)": 2, "sign": 2, "report": 2,
    }  # fmt: skip
    assert [each["job"] for each in jobs["sign"][1]["dependencies"]] == [jobs["build (c, debug)"][1]["id"]]
    assert [each["job"] for each in jobs["report"][1]["dependencies"]] == [jobs["sign"][1]["id"]]
    assert jobs["sign"][1]["dependencies"][0] | {"job": failed} == before["sign"]["dependencies"][0]
    grid = page.get_by_role("region", name="Matrix build (*)")
    operator.until(lambda: grid.locator(f"a[href='/jobs/{jobs['build (c, debug)'][1]['id']}']").count() == 1)
    assert grid.locator(f"a[href='/jobs/{failed}']").count() == 0
    all_settled(local, its)


def test_all_that_has_not_settled_is_cancelled(operator: Console, local: Local, scene: Scene) -> None:
    its = family(local, PAIR)
    page = open_set(operator, its)
    assert page.get_by_role("region", name="To run again").count() == 0
    operator.press("Cancel 2 jobs")
    operator.says("2 jobs being cancelled")
    assert {state_of(each) for each in all_settled(local, its).values()} == {"cancelled"}
    operator.becomes(lambda: {row["State"].split()[-1] for row in operator.rows(JOBS)}, {"cancelled"})
    operator.becomes(lambda: operator.button("Cancel 2 jobs").count(), 0)
    assert local.job(scene.running)["state"] == "running"


def test_there_may_be_no_such_set(operator: Console) -> None:
    operator.page.goto(f"{operator.url}/sets/000000000000")
    operator.page.get_by_role("alert").get_by_text("404").wait_for()
