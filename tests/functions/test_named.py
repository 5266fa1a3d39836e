"""Jobs that hold or await something are named, with their owners; and lists over HTTP find them. [SEC-2]"""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.api.shapes import present
from penstock.domain.units.units import Unit, unit_key
from penstock.testing.twin import Twin
from penstock.usecases.jobs import flow, proofs
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


def test_files_and_archives_are_shown_with_the_names_of_their_jobs(stage: Stage) -> None:
    name = stage.service.ask("GET", f"/v1/jobs/{stage.job}").json["name"]
    ask = stage.service.ask
    artifacts = ask("GET", "/v1/artifacts").json["items"]
    shown = [*artifacts, ask("GET", f"/v1/artifacts/{stage.output}").json, *ask("GET", "/v1/caches").json["items"]]
    shown += [ask("GET", f"/v1/artifacts/{stage.output}/why").json["artifact"]]
    shown += [ask("GET", f"/v1/caches/{stage.archive}").json]
    assert len(shown) >= 5
    assert {(each["job"], each["job_name"]) for each in shown} == {(stage.job, name)}


def test_what_a_job_held_is_shown_with_its_slot_unit_and_fence(stage: Stage) -> None:
    stage.end()
    held = stage.service.ask("GET", f"/v1/jobs/{stage.job}/timings").json["held"]
    assert [(one["pool"], one["slot"], one["fence"]) for one in held] == [
        ("resource/bench", "bench-1", 1),
        ("target/linux", "1", 1),
    ]
    assert [one["unit"][:2] for one in held] == ["r-", "w-"]
    assert all(one["since"].startswith("2026-01-01T00:00") for one in held)
    assert [(one["clean"]["by"], bool(one["clean"]["checked"])) for one in held] == [
        ("lock", True),
        ("hand", True),
    ]


def test_what_a_job_still_holds_is_not_clean_nor_is_what_another_held_since(stage: Stage, twin: Twin) -> None:
    held = stage.service.ask("GET", f"/v1/jobs/{stage.job}/timings").json["held"]
    assert [one["clean"] for one in held] == [None, None]
    stage.end()
    row = twin.store.rows[unit_key(held[1]["unit"])]
    assert isinstance(row, Unit)
    for other in ({"job": stage.waiting}, {"attempt": 2}, {"order": 1}):
        twin.store.rows[row.key] = replace(row, lease=replace(row.lease, **other))
        shown = stage.service.ask("GET", f"/v1/jobs/{stage.job}/timings").json["held"]
        assert [bool(one["clean"]) for one in shown] == [True, False], other
    del twin.store.rows[row.key]
    shown = stage.service.ask("GET", f"/v1/jobs/{stage.job}/timings").json["held"]
    assert [bool(one["clean"]) for one in shown] == [True, False]


def test_no_proof_is_looked_for_of_what_has_no_unit_yet(
    stage: Stage, twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = [replace(lease, unit=None) for lease in flow.leases_of_job(twin.on, stage.job)]
    assert leases
    monkeypatch.setattr(twin.store, "rows_at", lambda _: pytest.fail("there is no such unit"))
    assert proofs.proofs_of(twin.on, leases) == {}


def test_a_queue_says_when_each_may_be_granted_what_it_waits_for(service: Service, twin: Twin) -> None:
    done = Stage(service)
    twin.pass_time(600)
    done.end()
    twin.run()
    jobs = [service.submit(resources=["bench"]) for _ in range(24)]
    twin.run()
    pool = service.ask("GET", "/v1/pools/resource/bench", as_="bob").json
    expected = [each["expected"] for each in pool["queue"]]
    assert len(expected) > 20
    assert all(expected[:20]), "one gave the bench back, so it is known how long that takes"
    assert expected[:20] == sorted(expected[:20])
    assert len(set(expected[:20])) == 20
    assert set(expected[20:]) == {None}
    first = pool["queue"][0]["job"]
    why = service.ask("GET", f"/v1/jobs/{first}/why").json
    assert why["blocked_on"]["position"] == 1
    assert why["expected_start"] >= expected[0]
    assert first in [done.waiting, *jobs]


def test_nobody_knows_when_a_pool_that_is_paused_goes_on(service: Service) -> None:
    for _ in range(2):
        service.submit(resources=["bench"])
    service.ask("POST", "/v1/pools/resource/bench/pause", as_="root")
    pool = service.ask("GET", "/v1/pools/resource/bench").json
    assert [each["expected"] for each in pool["queue"]] == [None]
    assert pool["pause"]["reason"] == ""


def test_who_waits_for_a_paused_pool_reads_who_paused_it_why_and_who_can_resume_it(service: Service) -> None:
    jobs = [service.submit(resources=["bench"]) for _ in range(2)]
    reason = {"reason": "the bench is being rewired"}
    service.ask("POST", "/v1/pools/resource/bench/pause", reason, as_="root")
    asked = (service.ask("GET", f"/v1/jobs/{job}/why").json for job in jobs)
    (why,) = [each for each in asked if each["blocked_on"]]
    assert "resource/bench is paused by root at " in why["summary"]
    assert "Z: the bench is being rewired; position 1" in why["summary"]
    assert "root or another operator resumes resource/bench" in why["unblocks"]
    by_hand = {"by": "root", "at": present(service.twin.on.world.now()), **reason, "scope": ""}
    assert (why["blocked_on"]["pause"], why["blocked_on"]["resized"]) == (by_hand, None)
    assert service.ask("GET", "/v1/pools/resource/bench").json["pause"] == by_hand
    service.ask("POST", "/v1/pools/resource/bench/resume", {"reason": "done"}, as_="root")
    assert service.ask("GET", "/v1/pools/resource/bench").json["pause"] is None
    service.ask("PUT", "/v1/pools/target/linux/limit", {"limit": 1, **reason}, as_="root")
    assert service.ask("GET", "/v1/pools/target/linux").json["resized"] == by_hand
