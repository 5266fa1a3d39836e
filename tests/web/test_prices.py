"""The page of prices says what the API says, to the last millionth, and how a site gets prices that has none."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.e2e.conftest import Local
from tests.web.browser import Console
from tests.web.scenes import Scene

AMOUNTS = ("total", "unused", "control", "worker", "resources", "stored", "sent")
names = st.text("abcdefghijklmnopqrstuvwxyz-.:", min_size=1, max_size=20).filter(lambda name: name not in (".", ".."))
amounts = st.integers(0, 10**15).map(lambda micros: f"{Decimal(micros) / 10**6:.6f}")


@st.composite
def sums(draw: st.DrawFn) -> dict[str, Any]:
    """What the jobs of one owner cost, in one of two currencies."""
    parts = {name: draw(amounts) for name in AMOUNTS}
    parts["unused"] = f"{Decimal(parts['total']) * draw(st.integers(0, 100)) / 100:.6f}"
    return parts | {
        "name": draw(names),
        "currency": draw(st.sampled_from(["EUR", "USD"])),
        "jobs": draw(st.integers(1, 10**6)),
    }


READ = """() => [...document.querySelectorAll('main section.part')].map((part) => ({
    currency: part.getAttribute('aria-label').split(' ').at(-1),
    all: {...part.querySelector('[data-total]').dataset},
    said: part.querySelector('[data-total]').textContent,
    rows: [...part.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent)),
}))"""


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(sums(), max_size=8, unique_by=lambda each: (each["name"], each["currency"])))
def test_the_page_of_prices_says_what_the_api_says(operator: Console, shown: list[dict[str, Any]]) -> None:
    """Each amount as it came; sums over the rows exactly; and nothing added up of two currencies."""
    days = {"by": "owner", "since": "2026-01-01", "until": "2026-01-31"}
    body = json.dumps({"items": shown, "next": None, "is_counted": True} | days | {"budget": None})
    operator.page.unroute_all()
    operator.page.route("**/v1/costs?*", lambda route: route.fulfill(body=body, content_type="application/json"))
    operator.open("/prices")
    found = {each["currency"]: each for each in operator.page.evaluate(READ)}
    assert set(found) == {each["currency"] for each in shown}
    for currency, part in found.items():
        here = [each for each in shown if each["currency"] == currency]
        total, unused = (sum(Decimal(each[name]) for each in here) for name in ("total", "unused"))
        assert part["all"] == {
            "total": f"{total:.6f}",
            "unused": f"{unused:.6f}",
            "jobs": str(sum(each["jobs"] for each in here)),
        }
        assert f"{total:.6f} {currency}" in part["said"]
        shares = ("worker", "resources", "control", "stored", "sent")
        assert [[row[0], row[1], row[2], row[3], *row[6:]] for row in part["rows"]] == [
            [each["name"], str(each["jobs"]), each["total"], each["unused"], *(each[name] for name in shares)]
            for each in here
        ]


@st.composite
def budgets(draw: st.DrawFn) -> dict[str, Any]:
    """How somebody stands by a budget: well, near its end, or past it."""
    state = draw(st.sampled_from(["well", "near", "spent"]))
    return {
        "owner": draw(names),
        "budget": draw(amounts.filter(lambda each: Decimal(each) > 0)),
        "spent": draw(amounts),
        "currency": "EUR",
        "since": "2026-01-01",
        "ends": "2026-02-01T00:00:00Z",
        "is_near": state != "well",
        "is_spent": state == "spent",
    }


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(budgets())
def test_the_page_of_prices_says_how_an_owner_stands_by_its_budget(operator: Console, budget: dict[str, Any]) -> None:
    days = {"by": "owner", "since": "2026-01-01", "until": "2026-01-31"}
    body = json.dumps({"items": [], "next": None, "is_counted": True} | days | {"budget": budget})
    operator.page.unroute_all()
    operator.page.route("**/v1/costs?*", lambda route: route.fulfill(body=body, content_type="application/json"))
    page = operator.open("/prices")
    card = page.get_by_role("region", name=f"The budget of {budget['owner']}", exact=True)
    said = card.inner_text()
    assert f"{budget['owner']} has spent {budget['spent']} of {budget['budget']} EUR" in said
    assert ("nearly spent" in said, "is spent" in said) == (
        budget["is_near"] and not budget["is_spent"],
        budget["is_spent"],
    )
    spent = Decimal(budget["spent"]) / Decimal(budget["budget"])
    shown = card.get_by_role("meter").evaluate("meter => meter.value")
    assert abs(shown - float(min(spent, 1))) < 1e-5


def test_by_pool_each_leads_to_its_page_and_all_jobs_are_those_of_no_pool(operator: Console) -> None:
    """A job counts in each of its pools, so their numbers of jobs are no sum."""
    amounts = dict.fromkeys(AMOUNTS, "1.000000") | {"currency": "EUR"}
    names = {"resource/bench": 2, "target/linux": 3, "other": 4}
    shown = [amounts | {"name": name, "jobs": jobs} for name, jobs in names.items()]
    days = {"by": "pool", "since": "2026-01-01", "until": "2026-01-31"}
    body = json.dumps({"items": shown, "next": None, "is_counted": True, "budget": None} | days)
    operator.page.route("**/v1/costs?*", lambda route: route.fulfill(body=body, content_type="application/json"))
    page = operator.open("/prices?by=pool")
    assert "4 jobs cost 3.000000 EUR" in page.locator("[data-total]").inner_text()
    table = page.get_by_role("table", name="What jobs cost by pool, in EUR")
    assert table.get_by_role("columnheader").first.inner_text() == "Pool"
    assert table.get_by_role("link").all_inner_texts() == ["resource/bench", "target/linux"]
    table.get_by_role("link", name="resource/bench").click()
    page.wait_for_url("**/pools/resource/bench")


def test_a_site_without_prices_says_how_to_set_them(operator: Console, local: Local) -> None:
    assert local.call("GET", "/v1/costs").json()["is_counted"] is False
    page = operator.open("/prices")
    said = page.get_by_role("region", name="No prices")
    assert "[prices]" in said.inner_text()
    assert page.locator("main table").count() == 0
    said.get_by_role("link", name="How prices are set").click()
    page.get_by_role("dialog", name="Runbook").get_by_role("heading", name="Prices").wait_for()


def test_what_is_asked_of_prices_stands_in_the_address(operator: Console) -> None:
    page = operator.open("/prices")
    with page.expect_request(lambda request: "by=day" in request.url and "/v1/costs" in request.url):
        page.get_by_role("combobox", name="By", exact=True).select_option("day")
    with page.expect_request(lambda request: "since=2026-01-02" in request.url and "by=day" in request.url):
        page.get_by_label("From", exact=True).fill("2026-01-02")
        page.get_by_label("From", exact=True).blur()
    assert page.url.endswith("/prices?by=day&since=2026-01-02")
    page.get_by_label("From", exact=True).fill("")
    page.get_by_label("From", exact=True).blur()
    page.wait_for_url("**/prices?by=day")


def test_a_jobs_price_leads_to_the_prices_of_its_owner(operator: Console, scene: Scene, local: Local) -> None:
    owner = local.job(scene.succeeded)["owner"]
    page = operator.open(f"/jobs/{scene.succeeded}")
    page.get_by_role("region", name="Price").get_by_role("link", name="by target").click()
    page.wait_for_url(f"**/prices?owner={owner}&by=target")
    page.get_by_role("heading", name="Prices", exact=True).wait_for()


def test_the_page_of_prices_has_no_fault_of_accessibility(operator: Console) -> None:
    operator.open("/prices?by=day")
    assert operator.faults() == []
    assert operator.overflow() == 0
