"""The pools: who has what, until when, who is next; and what operators change."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.e2e.conftest import Local
from tests.web.browser import Console
from tests.web.scenes import Scene


def pools(local: Local) -> list[dict[str, Any]]:
    return list(local.call("GET", "/v1/pools").json()["items"])


def pool(local: Local, name: str) -> dict[str, Any]:
    return dict(local.call("GET", f"/v1/pools/{name}").json())


def cards(console: Console) -> list[str]:
    """The pools that are shown, in their order."""
    return [str(each.get_attribute("aria-label")) for each in console.page.locator("main article").all()]


def test_each_pool_is_a_card_with_the_service_s_numbers(operator: Console, local: Local, scene: Scene) -> None:
    page = operator.open("/pools")
    found = pools(local)
    assert sorted(cards(operator)) == sorted(each["pool"] for each in found)
    pressure = {each["pool"]: each["waiting"] / max(each["limit"], 1) for each in found}
    assert [pressure[each] for each in cards(operator)] == sorted(pressure.values(), reverse=True)
    bench = page.get_by_role("article", name="resource/bench", exact=True)
    said = pool(local, "resource/bench")
    for part in (f"{said['held']} of {said['limit']} held", f"{said['free']} free", f"{said['waiting']} wait"):
        assert part in bench.inner_text()
    assert [each.get_attribute("title") for each in bench.locator(".slots a").all()] == [
        each["job"] for each in said["slots"]
    ]
    assert bench.locator(".next a").first.get_attribute("title") == said["queue"][0]["job"] == scene.waiting
    bench.get_by_text("Who has it, who is next").click()
    operator.becomes(lambda: bench.locator(".slots").count(), 0)
    assert operator.copied("Copy as command") == "penstock pool list"


def test_pools_are_found_by_filters_that_stand_in_the_address(operator: Console, local: Local, scene: Scene) -> None:
    del scene
    page = operator.open("/pools?only=waited+for")
    waited = {each["pool"] for each in pools(local) if each["waiting"]}
    operator.becomes(lambda: set(cards(operator)), waited)
    operator.choose("Only", "any")
    operator.choose("Sort", "resource")
    of_sort = {each["pool"] for each in pools(local) if each["pool"].startswith("resource/")}
    operator.becomes(lambda: set(cards(operator)), of_sort)
    operator.choose("Name", "LICEN")
    operator.becomes(lambda: cards(operator), ["resource/licence"])
    assert page.url.endswith("/pools?sort=resource&name=LICEN")


def test_a_pool_s_page_has_all_its_slots_and_its_queue(operator: Console, local: Local, scene: Scene) -> None:
    page = operator.open("/pools/resource/bench")
    operator.becomes(lambda: page.locator("main .loading").count(), 0)
    said = pool(local, "resource/bench")
    assert [(each["Slot"], each["Who"], each["Unit"], each["Fence"]) for each in operator.rows("Slots")] == [
        (each["slot"], f"{each['job_name']} {each['job_owner']}", each["unit"], str(each["fence"]))
        for each in said["slots"]
    ]
    queued = [(each["Place"], each["Job"]) for each in operator.rows("Queue")]
    assert queued == [(str(each["position"]), f"{each['job_name']} {each['job_owner']}") for each in said["queue"]]
    assert queued[0] == ("1", "flash again admin")
    job = local.job(scene.running)
    ends = datetime.fromisoformat(job["times"]["started"]) + timedelta(seconds=job["timeout"])
    until = operator.row("Slots", "soak test").locator("td[data-title=Until] time")
    assert datetime.fromisoformat(str(until.get_attribute("datetime"))) == ends
    assert operator.button("Change limit").count() == 0  # its slots have names: they are in the configuration
    assert operator.copied("Copy as command") == "penstock pool show resource/bench"


def test_a_pool_is_paused_and_resumed(operator: Console, local: Local) -> None:
    page = operator.open("/pools/target/probed")
    operator.press("Pause", Reason="the bench is being rewired")
    operator.says("target/probed is paused")
    assert pool(local, "target/probed")["paused"]
    said = page.get_by_text("nothing is granted until an operator resumes it")
    said.wait_for()
    assert "Paused by admin" in said.inner_text()
    assert said.inner_text().endswith(": the bench is being rewired")
    operator.press("Resume", Reason="it is done")
    operator.says("target/probed grants again")
    assert not pool(local, "target/probed")["paused"]
    page.reload()
    operator.until(lambda: len(operator.rows("What operators did to pool target/probed")) >= 2)
    did = {(each["Did"], each["How, or why"]) for each in operator.rows("What operators did to pool target/probed")}
    assert {("pause", "the bench is being rewired"), ("resume", "it is done")} <= did


def test_a_limit_is_changed_and_more_slots_are_shown_on_demand(operator: Console, local: Local) -> None:
    page = operator.open("/pools/resource/licence")
    before = pool(local, "resource/licence")["limit"]
    try:
        operator.press("Change limit", Limit="70", Reason="more were bought")
        operator.says("The limit of resource/licence was set")
        assert pool(local, "resource/licence")["limit"] == 70
        page.get_by_text("of 70 held").wait_for()
        by_hand = pool(local, "resource/licence")["resized"]
        assert (by_hand["by"], by_hand["reason"]) == ("admin", "more were bought")
        assert page.get_by_text("Limit of 70 set by admin").inner_text().endswith(": more were bought")
        operator.becomes(lambda: len(operator.rows("Slots")), 60)
        operator.button("Show all 70 slots").click()
        operator.becomes(lambda: len(operator.rows("Slots")), 70)
    finally:
        local.call("PUT", "/v1/pools/resource/licence/limit", json={"limit": before})


def test_a_refused_limit_is_said_and_nothing_changes(operator: Console, local: Local) -> None:
    page = operator.open("/pools/resource/licence")
    before = pool(local, "resource/licence")["limit"]
    operator.button("Change limit").click()
    dialog = page.get_by_role("dialog", name="Change limit", exact=True)
    dialog.get_by_label("Limit", exact=True).fill("99999999999")
    dialog.get_by_role("button", name="Change limit", exact=True).click()
    dialog.get_by_role("alert").wait_for()
    dialog.get_by_role("button", name="Back").click()
    assert pool(local, "resource/licence")["limit"] == before


def test_the_history_of_a_day_and_a_month_is_a_chart_and_a_table(operator: Console, local: Local, scene: Scene) -> None:
    del scene
    page = operator.open("/pools/resource/bench")
    path = "/v1/pools/resource/bench/series"
    local.until(lambda: local.call("GET", path).json()["items"])
    page.reload()
    for name in ("Day", "Month"):
        operator.button(name).click()
        operator.becomes(lambda name=name: operator.button(name).get_attribute("aria-pressed"), "true")
        page.get_by_text("As a table: ").click()
        newest = operator.until(lambda: operator.rows("History, the newest first"))[0]
        assert newest["Limit"] == "3"
        assert page.locator("main canvas").count() == 1
    asked = [each for each in operator.requests if path in each]
    assert len({each.partition("since=")[2][:10] for each in asked}) == 2


def test_a_long_queue_is_shown_in_part(operator: Console, local: Local, scene: Scene) -> None:
    """The answer of the service is made longer here: 60 jobs wait."""
    del scene
    said = pool(local, "resource/bench")
    one, *_ = said["queue"]
    said["queue"] = [{**one, "job": f"01{number:024}", "position": number} for number in range(1, 61)]
    said["waiting"] = 2000
    operator.page.route("**/v1/pools/resource/bench", lambda route: route.fulfill(json=said))
    page = operator.open("/pools/resource/bench")
    page.get_by_text("2000 wait; the first 60 are listed.").wait_for()
    operator.becomes(lambda: len(operator.rows("Queue")), 50)
    operator.button("Show all 60").click()
    operator.becomes(lambda: len(operator.rows("Queue")), 60)


def test_who_is_no_operator_changes_nothing(erin: Console, scene: Scene) -> None:
    del scene
    page = erin.open("/pools/resource/licence")
    page.get_by_role("heading", name="Queue").wait_for()
    assert [each for each in ("Pause", "Change limit", "Resume") if erin.button(each).count()] == []
    assert page.get_by_role("heading", name="Changes").count() == 0
