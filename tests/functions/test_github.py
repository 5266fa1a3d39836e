"""What operators see of the front end for GitHub, and how they have a delivery taken once more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from penstock.domain.github import commits
from penstock.domain.github.deliveries import Delivery
from penstock.kernel.rows import Create
from penstock.testing.twin import START
from tests.functions.service import Service, refused
from tests.functions.stage import DELIVERY, EVENT


def test_only_operators_see_it(service: Service) -> None:
    for path in ("commits", "deliveries"):
        refused(service.ask("GET", f"/v1/github/{path}"), 403, "privilege-missing")
    refused(service.ask("POST", "/v1/github/deliveries/d-1/redeliver"), 403, "privilege-missing")
    refused(service.ask("POST", "/v1/github/repositories/oxide:hubris/accept", {"id": 77}), 403, "privilege-missing")


def test_what_was_said_and_what_it_led_to(service: Service) -> None:
    later = replace(DELIVERY, id="d-2", event=None, outcome="", received=START + timedelta(seconds=1), missed=True)
    assert service.twin.store.commit([Create(DELIVERY), Create(later)])
    first = service.ask("GET", "/v1/github/deliveries", as_="root", query={"limit": "1"}).json
    assert [(one["id"], one["commit"], one["outcome"], one["missed"]) for one in first["items"]] == [
        ("d-2", None, None, True)
    ]
    page = {"limit": "1", "page": first["next"]}
    (one,) = service.ask("GET", "/v1/github/deliveries", as_="root", query=page).json["items"]
    assert (one["id"], one["repository"], one["commit"], one["sender"], one["outcome"]) == (
        "d-1",
        "oxide/hubris",
        "a" * 40,
        "ada",
        "jobs",
    )


def test_commits_and_how_far_they_are(service: Service) -> None:
    row = commits.new_set(replace(EVENT, branch="", number=12), START)
    awaits = commits.move_to(row, commits.Stage.AWAITING, "eve")
    assert service.twin.store.commit([Create(awaits)])
    whole = service.ask("GET", "/v1/github/commits", as_="root").json
    (one,) = whole["items"]
    assert (one["stage"], one["why"], one["pull_request"], one["branch"]) == ("awaiting approval", "eve", 12, None)
    assert whole["next"] is None


def test_a_delivery_is_taken_once_more(service: Service) -> None:
    nothing = replace(DELIVERY, id="d-2", event=None, outcome="ignored")
    assert service.twin.store.commit([Create(DELIVERY), Create(nothing)])
    answer = service.ask("POST", "/v1/github/deliveries/d-1/redeliver", as_="root")
    assert (answer.status, answer.json["outcome"]) == (200, None)
    row = service.twin.store.get(DELIVERY.key, Delivery)
    assert row is not None
    assert (row.due, row.tries) == (service.twin.world.now(), 0)
    hints = [message for _, queue, message in service.twin.queues.messages if queue == "schedule"]
    assert hints[-1] == {"do": "github", "message": {"delivery": "d-1"}}
    audit = service.ask("GET", "/v1/audit", as_="root").json["items"]
    assert (audit[0]["did"], audit[0]["what"]) == ("redeliver", "delivery d-1")
    refused(service.ask("POST", "/v1/github/deliveries/d-2/redeliver", as_="root"), 409, "delivery-leads-nowhere")
    for id in ("d-3", "d%20x"):
        refused(service.ask("POST", f"/v1/github/deliveries/{id}/redeliver", as_="root"), 404, "delivery-not-found")
