"""Quarantine and broken machines over HTTP: what is shown, and how it ends. [UNIT-1] [UNIT-2] [SEC-2]"""

from __future__ import annotations

from typing import Any

import pytest

from tests.functions.service import Service, conforms, refused
from tests.functions.stage import Stage


@pytest.fixture
def stage(service: Service) -> Stage:
    """A worker that was found broken before its job's script, and that its factory cannot make anew."""
    service.twin.drivers.quarantining = True
    made = Stage(service)
    said = {"result": "broken", "reason": "its health check failed", "broken": "no disk"}
    assert made.agent(f"/v1/agent/jobs/{made.job}/finish", said).status == 200
    service.twin.run()
    return made


def worker(stage: Stage) -> str:
    found: dict[str, Any] = stage.greeting
    return str(found["worker"])


def test_it_is_shown_wherever_one_looks(stage: Stage) -> None:
    ask = stage.service.ask
    shown = ask("GET", f"/v1/workers/{worker(stage)}", as_="root").json
    conforms(shown, "WorkerView")
    assert (shown["state"], shown["broken"], shown["moved_by"]) == ("quarantined", "no disk", "an operator")
    assert shown["due_is"] == "a daily reminder"
    apart = {"since": shown["since"], "reason": "it is broken: no disk", "reminders": 0}
    assert shown["quarantine"] == apart
    pool = ask("GET", "/v1/pools/target/linux").json
    conforms(pool, "PoolView")
    assert [slot["quarantine"] for slot in pool["slots"] if slot["unit"] == worker(stage)] == [apart]
    assert [slot["quarantine"] for slot in pool["slots"] if slot["unit"] != worker(stage)] != [apart]
    factory = ask("GET", "/v1/factories/hand").json
    conforms(factory, "MakerView")
    (one,) = factory["quarantined"]
    assert (one["unit"], one["type"], one["slot"]) == (worker(stage), "linux", shown_slot(pool, stage))
    assert ask("GET", "/v1/wells/locks").json["quarantined"] == []


def shown_slot(pool: dict[str, Any], stage: Stage) -> str:
    return next(str(slot["slot"]) for slot in pool["slots"] if slot["unit"] == worker(stage))


def test_the_job_goes_on_without_it(stage: Stage) -> None:
    shown = stage.service.ask("GET", f"/v1/jobs/{stage.job}").json
    assert (shown["attempt"], shown["outcome"]) == (2, None)
    assert shown["attempts"][0]["reason"] == f"worker {worker(stage)} is broken: no disk"


def test_a_release_with_a_proof_is_an_operators(stage: Stage) -> None:
    """SEC-2, UNIT-2"""
    path, body = f"/v1/workers/{worker(stage)}/release", {"proof": "sold; disk shredded"}
    refused(stage.service.ask("POST", path, body), 403, "privilege-missing")
    refused(stage.service.ask("POST", path, {"proof": "x" * 301}, as_="root"), 400, "bad-request")
    refused(stage.service.ask("POST", path, {"prof": "x"}, as_="root"), 400, "bad-request")
    gone = stage.service.ask("POST", path, body, as_="root").json
    assert (gone["state"], gone["quarantine"]) == ("gone", None)
    refused(stage.service.ask("POST", path, body, as_="root"), 409, "not-quarantined")


def test_it_is_released_recycled_and_not_held(stage: Stage) -> None:
    path = f"/v1/workers/{worker(stage)}"
    refused(stage.service.ask("POST", f"{path}/hold", {"reason": "x"}, as_="root"), 409, "quarantined")
    released = stage.service.ask("POST", f"{path}/release", as_="root").json
    assert (released["state"], released["broken"]) == ("dirty", None)


@pytest.mark.parametrize("said", [{"result": "broken"}, {"result": "broken", "reason": "hm"}])
def test_an_agent_need_not_say_how(service: Service, said: dict[str, str]) -> None:
    stage = Stage(service)
    assert stage.agent(f"/v1/agent/jobs/{stage.job}/finish", said).status == 200
    service.twin.run()
    told = said.get("reason", "it did not say how")
    shown = service.ask("GET", f"/v1/jobs/{stage.job}").json
    assert shown["attempts"][0]["reason"] == f"worker {worker(stage)} is broken: {told}"
