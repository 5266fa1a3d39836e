"""Jobs that hold or await something are named, with their owners; and lists over HTTP find them. [SEC-2]"""

from __future__ import annotations

import pytest

from penstock.testing.twin import Twin
from tests.functions.service import Service
from tests.functions.stage import Stage


@pytest.fixture
def stage(service: Service) -> Stage:
    return Stage(service)


HERS = {"job_owner": "ada", "job_name": "build-it"}


def named(one: dict[str, object]) -> dict[str, object]:
    return {name: one[name] for name in HERS}


def test_who_waits_sees_the_names_and_owners_of_who_holds_and_who_is_ahead(service: Service) -> None:
    """SEC-2: of another's job that is in the way its name and owner are shown, and nothing else of it."""
    holder, ahead = (service.submit(name="build-it", resources=["bench"]) for _ in range(2))
    mine = service.ask(
        "POST", "/v1/jobs", {"script": "#!/bin/sh\n", "target": "default", "resources": ["bench"]}, as_="bob"
    )
    job = mine.json["id"]
    service.twin.run()
    why = service.ask("GET", f"/v1/jobs/{job}/why", as_="bob").json
    assert why["state"] == "waiting"
    block = why["blocked_on"]
    assert [(each["job"], named(each)) for each in block["held_by"]] == [(holder, HERS)]
    assert [(each["job"], named(each)) for each in block["ahead"]] == [(ahead, HERS)]
    pool = service.ask("GET", "/v1/pools/resource/bench", as_="bob").json
    assert [named(slot) for slot in pool["slots"] if slot["job"]] == [HERS]
    assert [each["job_owner"] for each in pool["queue"]] == ["ada", "bob"]
    assert service.ask("GET", f"/v1/jobs/{holder}", as_="bob").status == 404
    shown = service.ask("GET", f"/v1/jobs/{job}", as_="bob").json
    assert (shown["state"], shown["waits_for"]) == ("waiting", "resource/bench")
    assert service.ask("GET", f"/v1/jobs/{job}/events", as_="bob").json["state"] == "waiting"


def test_operators_see_whose_workers_and_resources_are_and_who_waits_for_whom(service: Service) -> None:
    job = service.submit(name="build-it", resources=["bench"])
    ask = service.ask
    for noun in ("workers", "resources"):
        for unit in ask("GET", f"/v1/{noun}", as_="root").json["items"]:
            assert (unit["job"], named(unit)) == (job, HERS)
            assert named(ask("GET", f"/v1/{noun}/{unit['id']}", as_="root").json) == HERS
    assert ask("GET", "/v1/resources", as_="root").json["items"]
    nodes = ask("GET", "/v1/graph", as_="root").json["nodes"]
    assert [named(node) for node in nodes if node["kind"] == "job"] == [HERS]
    assert {node["job_name"] for node in nodes if node["kind"] == "pool"} == {None}


def test_jobs_are_looked_for_by_name_outcome_and_time(service: Service, twin: Twin) -> None:
    first = service.submit(name="build-it")
    twin.pass_time(60)
    then = twin.world.now().isoformat()
    second = service.submit(name="test-it")

    def ids(as_: str = "ada", **query: str) -> list[str]:
        return [job["id"] for job in service.ask("GET", "/v1/jobs", query=query, as_=as_).json["items"]]

    assert ids(name="build*") == [first]
    assert ids(since=then) == [second]
    service.ask("POST", f"/v1/jobs/{second}/cancel")
    twin.run()
    assert (ids(state="cancelled"), ids(state="settled"), ids(state="failed")) == ([second], [second], [])
    assert ids("root", all="true") == [second, first]
    assert ids("root") == []
    assert service.ask("GET", "/v1/jobs", query={"all": "true"}).status == 403
    for wrong in ({"state": "gone"}, {"since": "yesterday"}, {"name": "x" * 201}, {"all": "perhaps"}):
        assert service.ask("GET", "/v1/jobs", query=wrong).status == 400, wrong
