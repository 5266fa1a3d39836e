"""The account diffs, as operators read them, have them made, and as everybody else does not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from penstock.domain import leftovers as domain
from penstock.domain.account import AccountDiff, Checked, Leftover
from penstock.kernel.rows import Create, Replace
from penstock.usecases import account
from tests.functions.service import Service, conforms, refused


def begun(service: Service) -> dict[str, Any]:
    made = service.ask("POST", "/v1/account/diff", as_="root")
    assert made.status == 202
    conforms(made.json, "DiffView")
    return dict(made.json)


def finished(service: Service) -> AccountDiff:
    """A diff with a leftover that is two hours old, one of unknown age, and a well that could not be listed."""
    now = service.twin.world.now()
    leftovers = [
        Leftover("factory/aws", "volume", "vol-1", "w-1", now - timedelta(hours=2), "its unit is gone", "ada"),
        Leftover("factory/aws", "volume", "vol-2", "", None, "its tags name no unit"),
    ]
    diff = domain.ask(None, now, "")
    diff = domain.with_maker(diff, "factory/aws", Checked(9, 2), leftovers, now)
    diff = domain.with_maker(diff, "well/pg", domain.unlisted("Unknown: refused"), [], now)
    diff = domain.finish(diff, now)
    service.twin.store.commit([Create(diff)])
    return diff


def test_a_diff_is_shown_with_what_was_left_behind(service: Service) -> None:
    diff = finished(service)
    shown = service.ask("GET", "/v1/account/diff", as_="root").json
    conforms(shown, "DiffView")
    assert (shown["things"], shown["left"], shown["unlisted"], shown["by"]) == (9, 2, 1, None)
    assert shown["makers"] == [
        {"maker": "factory/aws", "things": 9, "left": 2, "problem": None},
        {"maker": "well/pg", "things": None, "left": None, "problem": "Unknown: refused"},
    ]
    assert [(each["id"], each["unit"], each["owner"], each["seconds_old"]) for each in shown["leftovers"]] == [
        ("vol-2", None, None, None),
        ("vol-1", "w-1", "ada", 7200.0),
    ]
    assert shown["finished"] is not None
    assert service.ask("GET", "/v1/account/diff", as_="root", query={"id": diff.id}).json == shown


def test_diffs_are_listed_newest_first(service: Service) -> None:
    diff = finished(service)
    service.twin.pass_time(60)
    asked = begun(service)
    page = service.ask("GET", "/v1/account/diffs", as_="root").json
    conforms(page, "DiffPage")
    assert [each["id"] for each in page["items"]] == [asked["id"], diff.id]
    assert page["items"][0]["by"] == "root"
    assert "leftovers" not in page["items"][0]
    assert service.ask("GET", "/v1/account/diff", as_="root").json["id"] == diff.id


def test_a_diff_that_goes_on_is_the_one_that_is_asked_for(service: Service) -> None:
    first = begun(service)
    service.twin.pass_time(60)
    assert begun(service)["id"] == first["id"]
    (row,) = account.latest(service.twin.on)
    service.twin.store.commit([Replace(row, domain.finish(row, service.twin.world.now()))])
    assert begun(service)["id"] != first["id"]


def test_the_last_one_is_among_what_needs_a_person(service: Service) -> None:
    assert service.ask("GET", "/v1/attention", as_="root").json["account"] is None
    diff = finished(service)
    found = service.ask("GET", "/v1/attention", as_="root").json
    conforms(found, "AttentionView")
    assert (found["account"]["id"], found["account"]["left"], found["account"]["unlisted"]) == (diff.id, 2, 1)


def test_without_a_diff_there_is_none_to_show(service: Service) -> None:
    refused(service.ask("GET", "/v1/account/diff", as_="root"), 404, "account-diff-not-found")


@pytest.mark.parametrize(("method", "path"), [("GET", "diff"), ("GET", "diffs"), ("POST", "diff")])
def test_only_operators_see_the_account(service: Service, method: str, path: str) -> None:
    assert service.ask(method, f"/v1/account/{path}", as_="ada").status == 403
