"""What needs a person: counted, shown with its runbook, and solved where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.aws.dynamodb import Table
from penstock.kernel.rows import Create
from penstock.local.cloud import REGION
from tests.e2e.conftest import Local
from tests.functions.stage import DELIVERY
from tests.web.browser import Console
from tests.web.scenes import put_apart, running

NOT_FOUND = "The documentation has no such section."


def count(console: Console, id: str) -> int:
    """How many the glance at the top counts."""
    found = console.page.locator(f"a[data-finding='{id}']").first
    return int(str(console.until(lambda: found.get_attribute("data-count"))))


def resource(local: Local, id: str) -> dict[str, Any]:
    return dict(local.call("GET", f"/v1/resources/{id}").json())


@pytest.fixture
def held(local: Local) -> Iterator[tuple[str, str]]:
    """A job that runs, and its resource, which is held for half an hour."""
    job, _, found = running(local, "beside a desk", "desk")
    asked = {"reason": "it hums", "for": 1800}
    assert local.call("POST", f"/v1/resources/{found}/hold", json=asked).is_success
    yield job, found
    local.call("POST", f"/v1/resources/{found}/release", json={"proof": ""})
    local.call("POST", f"/v1/jobs/{job}/cancel")


@pytest.fixture
def apart(local: Local, held: tuple[str, str]) -> str:
    """A resource in quarantine."""
    job, found = held
    local.call("POST", f"/v1/jobs/{job}/cancel")
    local.until(lambda: resource(local, found)["state"] == "dirty")
    put_apart(local, found, "its driver can never destroy it")
    return found


def test_each_runbook_is_in_the_documentation_and_closes_by_keys(operator: Console) -> None:
    page = operator.open("/operator")
    page.get_by_role("heading", name="Alarms").wait_for()
    operator.until(lambda: page.locator("#alarms a.runbook-link").count() > 5)
    links = {str(each.get_attribute("href")) for each in page.locator("a.runbook-link").all()}
    assert len(links) > 15
    first = page.locator("#quarantine a.runbook-link")
    assert first.get_attribute("aria-label") == "Runbook: Quarantine"
    first.click()
    dialog = page.get_by_role("dialog", name="Runbook", exact=True)
    dialog.get_by_role("heading", level=2).wait_for()
    assert "runbook=" in page.url
    page.keyboard.press("Escape")
    operator.until(lambda: "runbook=" not in page.url)
    page.go_back()
    dialog.get_by_role("heading", level=2).wait_for()
    page.go_back()
    dialog.wait_for(state="hidden")
    for link in sorted(links):
        operator.open(f"/operator?{link.partition('?')[2]}")
        dialog.locator("h2, :text-is('The documentation has no such section.')").first.wait_for()
        assert NOT_FOUND not in dialog.inner_text(), link


def test_a_unit_in_quarantine_is_released_with_a_proof(operator: Console, local: Local, apart: str) -> None:
    page = operator.open("/operator")
    row = operator.row("Units in quarantine", apart)
    row.wait_for()
    assert "its driver can never destroy it" in row.inner_text()
    assert count(operator, "quarantine") == page.locator("#quarantine tbody tr").count()
    operator.press("Release", row, Proof="sold; disk shredded")
    operator.says(f"{apart} is released")
    assert resource(local, apart)["state"] == "gone"
    row.wait_for(state="detached")


def test_a_unit_in_quarantine_is_recycled(operator: Console, local: Local, apart: str) -> None:
    operator.open("/operator")
    row = operator.row("Units in quarantine", apart)
    operator.press("Recycle", row, Reason="mended")
    operator.says(f"{apart} is recycled")
    local.until(lambda: resource(local, apart)["state"] == "gone")
    assert "mended" in local.call("GET", f"/v1/resources/{apart}/events?limit=1000").text


def test_a_hold_that_ends_soon_is_counted_made_longer_and_ended(
    operator: Console, local: Local, held: tuple[str, str]
) -> None:
    _, found = held
    operator.open("/operator")
    row = operator.row("Held units", found)
    row.wait_for()
    assert "it hums" in row.inner_text()
    assert "soon" in row.inner_text()
    assert count(operator, "holds") == 1
    operator.press("Hold on", row, Reason="it still hums", Hours_from_now="5")
    hold = resource(local, found)["hold"]
    assert hold["reason"] == "it still hums"
    assert (datetime.fromisoformat(hold["until"]) - datetime.fromisoformat(hold["since"])).total_seconds() == 5 * 3600
    operator.becomes(lambda: count(operator, "holds"), 0)
    operator.press("Release", row)
    operator.says(f"{found} is released")
    assert resource(local, found)["hold"] is None
    row.wait_for(state="detached")


def test_a_paused_pool_is_resumed_and_counts_as_changed_by_hand(operator: Console, local: Local) -> None:
    local.call("POST", "/v1/pools/target/shut/pause", json={"reason": "it smells of smoke"})
    page = operator.open("/operator")
    row = operator.row("Paused pools", "target/shut")
    row.wait_for()
    operator.until(lambda: "admin" in row.inner_text())
    assert "it smells of smoke" in row.inner_text()
    assert count(operator, "paused") == 1
    drift = operator.row("Changed by hand", "target/shut")
    drift.wait_for()
    assert "paused" in drift.inner_text()
    assert operator.copied("As command", row) == "penstock pool resume target/shut"
    operator.press("Resume", row)
    operator.says("target/shut grants again")
    assert local.call("GET", "/v1/pools/target/shut").json()["paused"] is False
    page.get_by_text("No pool is paused.").wait_for()
    operator.becomes(lambda: count(operator, "paused"), 0)


def test_the_account_is_compared_and_what_is_left_over_is_said(operator: Console, local: Local) -> None:
    page = operator.open("/operator")
    part = page.locator("#leftovers")
    part.wait_for()
    operator.press("Compare now", part)
    operator.says("A comparison has begun")
    local.until(lambda: local.call("GET", "/v1/attention").json()["account"]["finished"])
    found = local.call("GET", "/v1/attention").json()["account"]
    operator.open("/operator")
    told = part.locator("[data-left]")
    told.wait_for()
    assert (told.get_attribute("data-left"), told.get_attribute("data-unlisted")) == (
        str(found["left"]),
        str(found["unlisted"]),
    )
    assert count(operator, "leftovers") == found["left"]
    assert operator.copied("As command", part) == "penstock account diff --now"


def test_the_site_is_paused_and_resumed_and_a_factory_is_enabled(operator: Console, local: Local) -> None:
    def scopes() -> list[str]:
        return [each["scope"] for each in local.call("GET", "/v1/site/stops").json()["items"]]

    page = operator.open("/operator")
    page.get_by_text("Neither the site nor a factory or well is paused.").wait_for()
    try:
        operator.press("Pause the site", Reason="the network is rebuilt")
        operator.says("The site is paused")
        row = operator.row("Stops", "the whole site")
        row.wait_for()
        assert "the network is rebuilt" in row.inner_text()
        assert scopes() == ["site"]
        operator.becomes(lambda: count(operator, "stops"), 1)
        assert operator.copied("As command", row) == "penstock site resume"
        operator.press("Resume", row)
        operator.says("the whole site grants again")
        assert scopes() == []
        local.call("POST", "/v1/factories/broken/drain", json={"reason": "a new image"})
        operator.open("/operator")
        row = operator.row("Stops", "factory broken")
        row.wait_for()
        assert "are drained" in row.inner_text()
        assert operator.copied("As command", row) == "penstock factory enable broken"
        operator.press("Enable", row)
        operator.says("factory broken grants again")
        assert scopes() == []
    finally:
        local.call("POST", "/v1/site/resume")
        local.call("POST", "/v1/factories/broken/enable")


def test_a_canary_is_sent(operator: Console, local: Local) -> None:
    def canary() -> dict[str, Any]:
        (found,) = local.call("GET", "/v1/canaries").json()["items"]
        return dict(found)

    local.until(lambda: canary()["outcome"] == "succeeded")
    before = canary()["job"]
    page = operator.open("/operator")
    page.get_by_text("No canary fails.").wait_for()
    row = operator.row("Canaries", "target/probed")
    assert operator.copied("As command", row) == "penstock canary send target/probed"
    operator.press("Send", row)
    operator.says("A canary of target/probed is sent")
    local.until(lambda: canary()["job"] != before)
    link = f"/jobs/{canary()['job']}"
    operator.until(lambda: row.locator(f"a[href='{link}']").count())


def test_a_factory_that_is_wrongly_set_up_is_named(operator: Console, local: Local) -> None:
    job = local.submit('#: name = "on the broken"\n#: variety = "basic"\n#: target = "broken"\ntrue\n')
    cooling = local.until(lambda: local.call("GET", "/v1/factories/broken").json()["cooling"])
    try:
        operator.open("/operator")
        row = operator.row("What only an operator can mend", "factory broken")
        row.wait_for()
        assert cooling[0]["why"] in row.inner_text()
        assert cooling[0]["cause"] in row.inner_text()
        assert count(operator, "misconfigured") == 1
    finally:
        local.call("POST", f"/v1/jobs/{job}/cancel")


def test_leaks_are_shown_also_when_there_are_none(operator: Console, local: Local) -> None:
    operator.open("/operator")
    local.until(lambda: local.call("GET", "/v1/factories/here").json()["compared"])
    rows = operator.until(lambda: operator.rows("Comparisons with what exists outside"))
    assert {each["Made by"] for each in rows} == {"factory here", "factory broken", "well locks"}
    for finding in operator.page.locator("a[data-finding=leaks]").all():
        operator.becomes(lambda finding=finding: finding.get_attribute("data-count"), "0")


def test_a_delivery_that_was_missed_can_be_handled_again(
    operator: Console, local: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in local.deployer().items():
        monkeypatch.setenv(name, value)
    table = Table(local.output("TableName"), REGION)
    row = replace(DELIVERY, id="d-missed", received=datetime.now(UTC), missed=True)
    table.commit([Create(row)])
    page = operator.open("/operator")
    shown = operator.row("Deliveries that were missed or led to nothing yet", "oxide/hubris")
    shown.wait_for()
    assert "missed at first" in shown.inner_text()
    assert operator.copied("As command", shown) == "penstock github redeliver d-missed"
    path = "/v1/github/deliveries/d-missed/redeliver"
    with page.expect_response(lambda answer: answer.url.endswith(path)) as came:
        operator.press("Redeliver", shown)
    page.locator(".notices p").first.wait_for()
    assert bool(page.locator(".notices p.good").count()) == came.value.ok


def test_a_raised_alarm_is_counted_and_stands_first_with_its_runbook(operator: Console, local: Local) -> None:
    watch = local.aws("cloudwatch")
    known = local.call("GET", "/v1/alarms").json()["alarms"]
    assert (known["problem"], known["count"]) == (None, 0)
    (name,) = (each["name"] for each in known["items"] if each["section"] == "FunctionErrors" and each["of"] == "well")
    watch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="3 errors in 15 minutes")
    try:
        page = operator.open("/operator")
        row = operator.row("Raised alarms", "FunctionErrors")
        row.wait_for()
        assert "The function well failed or timed out 3 times" in row.inner_text()
        assert "3 errors in 15 minutes" in row.inner_text()
        assert count(operator, "alarms") == 1
        others = page.locator("#alarms details")
        others.locator("summary").click()
        assert len(operator.rows("Other alarms")) == known["of"] - 1
        row.get_by_role("link", name=f"Runbook: {name}").click()
        page.get_by_role("dialog", name="Runbook", exact=True).get_by_role("heading", name="FunctionErrors").wait_for()
    finally:
        watch.set_alarm_state(AlarmName=name, StateValue="OK", StateReason="no errors")


def test_dead_letters_are_counted_with_the_commands_of_the_runbook(operator: Console, local: Local) -> None:
    queue = next(
        each for each in local.call("GET", "/v1/alarms").json()["dead_letters"]["items"] if each["of"] == "well"
    )
    sqs = local.aws("sqs")
    sqs.send_message(QueueUrl=queue["url"], MessageBody='{"form": 1, "unit": "r-1"}')
    try:
        operator.open("/operator")
        row = operator.row("Dead-letter queues", "well")
        row.wait_for()
        assert "! 1" in row.inner_text()
        assert count(operator, "dead-letters") == 1
        assert queue["url"] in operator.copied("Copy: look at them", row)
        assert operator.copied("Copy: redrive", row) == f"aws sqs start-message-move-task --source-arn {queue['arn']}"
        assert operator.copied("Copy: delete all", row) == f"aws sqs purge-queue --queue-url {queue['url']}"
    finally:
        sqs.purge_queue(QueueUrl=queue["url"])


def test_what_goes_soon_is_asked_for_within_a_time(operator: Console, local: Local) -> None:
    page = operator.open("/operator")
    for words, seconds in {"1 h": 3600, "30 d": 2_592_000}.items():
        part = page.locator("#going")
        part.get_by_label("within").select_option(words)
        operator.until(lambda words=words: re.search(f"within={words.replace(' ', '(%20|[+])')}", page.url))
        found = local.call("GET", f"/v1/artifacts-to-go?within={seconds}").json()["items"]
        said = f"within {words}" + ("," if found else ".")
        part.get_by_text(said).first.wait_for()
        assert len(operator.rows("Artifacts about to go")) == min(20, len(found))
