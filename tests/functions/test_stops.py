"""Stops over HTTP: who may make them, and what everybody is told. [SEC-2]"""

from __future__ import annotations

import pytest

from tests.functions.service import Service

REASON = {"reason": "the network is rebuilt"}


def test_a_paused_site_says_who_paused_it_and_why(service: Service) -> None:
    answer = service.ask("POST", "/v1/site/pause", REASON, as_="root")
    (stop,) = answer.json["items"]
    assert (stop["scope"], stop["by"], stop["reason"], stop["drains"], stop["is_spread"]) == (
        "site", "root", "the network is rebuilt", False, True,
    )  # fmt: skip
    assert service.ask("GET", "/v1/site/stops", as_="ada").json["items"] == [stop]
    for pool in service.ask("GET", "/v1/pools", as_="ada").json["items"]:
        assert pool["paused"]
        assert pool["pause"] == {"by": "root", "at": stop["since"], "reason": stop["reason"], "scope": "site"}
    found = service.ask("GET", "/v1/attention", as_="root").json
    assert found["stops"] == {"count": 1, "items": [stop]}
    assert found["paused"]["count"] == 0, "no pool is paused by itself"
    assert service.ask("POST", "/v1/site/resume", as_="root").json["items"] == []
    assert not any(pool["paused"] for pool in service.ask("GET", "/v1/pools", as_="ada").json["items"])


@pytest.mark.parametrize(
    ("sort", "name", "pool"), [("factories", "hand", "target/linux"), ("wells", "locks", "resource/bench")]
)
def test_a_factory_and_a_well_say_that_they_are_stopped(service: Service, sort: str, name: str, pool: str) -> None:
    path = f"/v1/{sort}/{name}"
    assert service.ask("GET", path, as_="ada").json["stop"] is None
    service.ask("POST", f"{path}/disable", REASON, as_="root")
    found = service.ask("GET", path, as_="ada").json["stop"]
    assert (found["by"], found["reason"]) == ("root", "the network is rebuilt")
    assert service.ask("GET", f"/v1/pools/{pool}", as_="ada").json["pause"]["scope"] == found["scope"]
    (stop,) = service.ask("POST", f"{path}/drain", REASON, as_="root").json["items"]
    assert stop["drains"]
    assert service.ask("POST", f"{path}/enable", as_="root").json["items"] == []
    assert service.ask("GET", path, as_="ada").json["stop"] is None


@pytest.mark.parametrize(
    "path", ["/v1/site/pause", "/v1/site/resume", "/v1/factories/hand/disable", "/v1/factories/hand/drain",
             "/v1/factories/hand/enable", "/v1/wells/locks/disable", "/v1/wells/locks/drain", "/v1/wells/locks/enable"],
)  # fmt: skip
def test_only_operators_stop_anything(service: Service, path: str) -> None:
    assert service.ask("POST", path, REASON, as_="ada").status == 403
    assert service.ask("GET", "/v1/site/stops", as_="ada").json["items"] == []


def test_a_stop_without_a_reason_or_of_nothing_is_refused(service: Service) -> None:
    assert service.ask("POST", "/v1/site/pause", {}, as_="root").status == 400
    assert service.ask("POST", "/v1/site/pause", {"reason": " "}, as_="root").status == 400
    assert service.ask("POST", "/v1/factories/none/drain", REASON, as_="root").status == 404


def test_a_test_of_a_stopped_factory_is_refused_with_the_reason(service: Service) -> None:
    service.ask("POST", "/v1/factories/hand/disable", REASON, as_="root")
    refused = service.ask("POST", "/v1/factories/hand/test", {"target": "linux"}, as_="root")
    assert refused.status == 409
    assert "with factory hand by root" in refused.json["detail"]
