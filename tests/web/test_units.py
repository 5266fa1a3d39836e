"""Workers and resources: their lists, their pages, and what operators order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.e2e.conftest import Local
from tests.web.browser import Console
from tests.web.scenes import Scene, put_apart, running


def unit(local: Local, id: str) -> dict[str, Any]:
    """A unit as the API shows it."""
    return dict(local.call("GET", f"/v1/{'resources' if id.startswith('r-') else 'workers'}/{id}").json())


@pytest.fixture(scope="module")
def own(local: Local) -> Iterator[tuple[str, str, str]]:
    """A job that runs, its worker and its resource, for tests after which it goes on."""
    made = running(local, "at a desk", "desk")
    yield made
    local.call("POST", f"/v1/jobs/{made[0]}/cancel")


@pytest.fixture
def doomed(local: Local) -> Iterator[tuple[str, str, str]]:
    """As `own`, for one test that ends it."""
    made = running(local, "not for long", "desk")
    yield made
    local.call("POST", f"/v1/jobs/{made[0]}/cancel")


@pytest.fixture
def apart(local: Local, doomed: tuple[str, str, str]) -> str:
    """A resource in quarantine."""
    job, _, resource = doomed
    asked = {"reason": "it smokes", "for": 3600}
    assert local.call("POST", f"/v1/resources/{resource}/hold", json=asked).is_success
    local.call("POST", f"/v1/jobs/{job}/cancel")
    local.until(lambda: unit(local, resource)["state"] == "dirty")
    put_apart(local, resource, "its driver can never destroy it")
    return resource


@pytest.mark.parametrize(("kind", "type"), [("workers", "Target"), ("resources", "Type")])
def test_lists_have_all_units_and_filters(
    operator: Console, local: Local, scene: Scene, own: tuple[str, str, str], kind: str, type: str
) -> None:
    del scene
    page = operator.open(f"/{kind}")
    caption = kind.capitalize()
    said = local.call("GET", f"/v1/{kind}").json()["items"]
    operator.becomes(
        lambda: (
            {(each["Unit"], each["State"].split()[-1], each["Slot"]) for each in operator.rows(caption)}
            >= {(each["id"], each["state"], each["slot"]) for each in said if each["state"] == "ready"}
        ),
        True,
    )
    operator.choose("Job", "AT A DESK")
    mine = own[1] if kind == "workers" else own[2]
    operator.becomes(lambda: [each["Unit"] for each in operator.rows(caption)], [mine])
    place = "ubuntu-24.04" if kind == "workers" else "desk"
    operator.choose(type, place)
    operator.choose("State", "ready")
    operator.field("Factory" if kind == "workers" else "Well").select_option(index=1)
    operator.becomes(lambda: [each["Unit"] for each in operator.rows(caption)], [mine])
    operator.choose("Only", "held")
    page.get_by_text("None looks like that.").wait_for()
    assert "only=held" in page.url
    assert operator.copied("Copy as command") == f"penstock {kind[:-1]} list"
    page.go_back()


def test_a_unit_s_page_says_what_the_service_says(operator: Console, local: Local, own: tuple[str, str, str]) -> None:
    job, worker, resource = own
    for id, kind in ((worker, "workers"), (resource, "resources")):
        page = operator.open(f"/{kind}/{id}")
        said = unit(local, id)
        now = page.get_by_role("region", name="Now", exact=True)
        assert said["next_step"][1:].partition(" by 2")[0] in now.inner_text()  # a heartbeat changes the time
        assert said["moved_by"] in now.inner_text()
        page.get_by_role("link", name="at a desk").first.wait_for()
        assert page.get_by_role("link", name="at a desk").first.get_attribute("href") == f"/jobs/{job}"
        entries = local.call("GET", f"/v1/{kind}/{id}/events?limit=1000").json()["items"]
        operator.until(lambda: operator.rows("Journal"))
        rows = operator.rows("Journal")
        assert [each["No"] for each in rows[-len(entries) :]] == [str(each["seq"]) for each in reversed(entries)]
        assert rows[-1]["Entry"] == entries[0]["payload"]
        one = kind[:-1]
        assert operator.copied("Copy as command") == f"penstock {one} show {id}"
        part = page.locator("section").filter(has=page.get_by_role("heading", name="Journal", exact=True))
        assert operator.copied("Copy as command", part) == f"penstock {one} tail --follow {id}"


@pytest.mark.parametrize("which", ["worker", "resource"])
def test_a_unit_is_held_and_released(operator: Console, local: Local, own: tuple[str, str, str], which: str) -> None:
    id = own[1] if which == "worker" else own[2]
    page = operator.open(f"/{which}s/{id}")
    operator.press("Hold", Reason="to look at it", For_how_long="1 h")
    hold = unit(local, id)["hold"]
    assert (hold["by"], hold["reason"]) == ("admin", "to look at it")
    assert (datetime.fromisoformat(hold["until"]) - datetime.fromisoformat(hold["since"])).total_seconds() == 3600
    page.get_by_text("by admin for").wait_for()
    operator.press("Hold again", Reason="for longer", For_how_long="3 d")
    hold = unit(local, id)["hold"]
    assert hold["reason"] == "for longer"
    assert (datetime.fromisoformat(hold["until"]) - datetime.fromisoformat(hold["since"])).total_seconds() == 3 * 86400
    operator.press("Release")
    operator.says(f"{id} was released")
    assert unit(local, id)["hold"] is None
    operator.button("Hold").wait_for()


def test_a_unit_is_drained_then_recycled(operator: Console, local: Local, doomed: tuple[str, str, str]) -> None:
    _, worker, _ = doomed
    operator.open(f"/workers/{worker}")
    operator.press("Drain", Reason="old kernel")
    drain = unit(local, worker)["drain"]
    assert (drain["by"], drain["reason"], drain["at_once"]) == ("admin", "old kernel", False)
    operator.button("Drain").wait_for(state="detached")
    operator.press("Recycle", Reason="now")
    local.until(lambda: unit(local, worker)["state"] == "gone")
    operator.button("Recycle").wait_for(state="detached")
    said = operator.until(lambda: operator.rows(f"What operators did to worker {worker}"))
    assert {each["Did"] for each in said} >= {"drain"}


def test_a_unit_is_released_from_quarantine(operator: Console, local: Local, apart: str) -> None:
    operator.open(f"/resources/{apart}")
    assert operator.button("Hold").count() == 0
    operator.press("Release from quarantine")
    operator.says("was released from quarantine")
    local.until(lambda: unit(local, apart)["state"] == "gone")


def test_a_unit_that_was_removed_by_hand_is_gone_on_the_operator_s_word(
    operator: Console, local: Local, apart: str
) -> None:
    page = operator.open(f"/resources/{apart}")
    operator.button("Removed by hand").click()
    dialog = page.locator("dialog[open]")
    dialog.get_by_role("button", name="Removed by hand").click()  # without what was checked, the browser refuses
    assert unit(local, apart)["state"] == "quarantined"
    dialog.get_by_label("What you checked").fill("sold; the disk is shredded")
    dialog.get_by_role("button", name="Removed by hand").click()
    operator.says(f"{apart} is gone")
    assert unit(local, apart)["state"] == "gone"
    assert "the disk is shredded" in local.call("GET", f"/v1/resources/{apart}/events?limit=1000").text


def test_an_order_that_comes_too_late_is_refused_in_its_question(
    operator: Console, local: Local, doomed: tuple[str, str, str]
) -> None:
    _, _, resource = doomed
    page = operator.open(f"/resources/{resource}")
    operator.button("Hold").click()
    dialog = page.locator("dialog[open]")
    dialog.get_by_label("Reason").fill("too late")
    local.call("POST", f"/v1/resources/{resource}/recycle", json={"reason": "first"})
    dialog.get_by_role("button", name="Hold", exact=True).click()
    dialog.get_by_role("alert").wait_for()
    assert unit(local, resource)["hold"] is None


def test_console_output_comes_into_the_journal(operator: Console, local: Local, own: tuple[str, str, str]) -> None:
    """The factory of this cloud starts processes, and says that it has none."""
    _, worker, _ = own
    operator.open(f"/workers/{worker}")
    operator.press("Console output")
    operator.says("The console output comes into the journal")
    wanted = f"console output, asked for by admin\nhere has no console output of {worker}"
    operator.becomes(lambda: wanted in [each["Entry"] for each in operator.rows("Journal")], True)
    entries = local.call("GET", f"/v1/workers/{worker}/events?limit=1000").json()["items"]
    assert [each["payload"] for each in entries].count(wanted) == 1


def test_a_resource_is_not_asked_for_console_output(operator: Console, own: tuple[str, str, str]) -> None:
    page = operator.open(f"/resources/{own[2]}")
    page.get_by_role("button", name="Drain", exact=True).wait_for()
    assert page.get_by_role("button", name="Console output", exact=True).count() == 0
