"""Tests of factories over HTTP."""

from __future__ import annotations

import pytest

from penstock import agentfile
from penstock.kernel.errors import Misconfigured
from penstock.usecases.units import drivers
from tests.functions.service import WORKER_TOKEN, Service, conforms, refused

PATH = "/v1/factories/hand"
ASK = {"target": "linux"}


def begin(service: Service, **ask: object) -> str:
    answer = service.ask("POST", f"{PATH}/test", ASK | ask, as_="root")
    conforms(answer.json, "FactoryTestStarted")
    service.twin.run()
    job: str = answer.json["id"]
    return job


def shown(service: Service, job: str) -> dict[str, object]:
    found = service.ask("GET", f"{PATH}/tests/{job}", as_="root").json
    conforms(found, "FactoryTestView")
    return dict(found)


def test_a_test_is_shown_while_it_goes_on(service: Service) -> None:
    job = begin(service)
    found = shown(service, job)
    worker = str(found["worker"])
    assert (found["job"], found["factory"], found["target"], found["state"]) == (job, "hand", "linux", "acquiring")
    assert (found["over"], found["passed"], found["held_until"]) == (False, False, None)
    key = drivers.bootstrap_key(service.twin.on.signing_key(), worker)
    hello = {"worker": worker, "key": key, "token": WORKER_TOKEN, "host": "here", "version": agentfile.version()}
    assert service.ask("POST", "/v1/agent/hello", hello, as_=None).status == 200
    service.twin.run()
    checks = {one["check"]: one["ok"] for one in shown(service, job)["checks"]}  # type: ignore[attr-defined]
    assert [name for name, ok in checks.items() if ok] == [
        "settings", "ordered", "listed with its tags", "agent said hello", "agent version",
    ]  # fmt: skip


def test_what_is_asked_for_is_sent_on(service: Service) -> None:
    job = begin(service, keep_on_failure=60)
    assert str(shown(service, job)["held_until"]).startswith("2026-01-01T00:01:00.0")
    assert service.ask("POST", f"{PATH}/test", as_="root").json["target"] == "lab"
    same = [
        service.ask("POST", f"{PATH}/test", ASK, as_="root", headers={"idempotency-key": "k"}).json["id"]
        for _ in range(2)
    ]
    assert same[0] == same[1]


def test_cool_downs_are_said(service: Service) -> None:
    service.twin.drivers.hand.says = [Misconfigured("no such image")]
    begin(service)
    (wait,) = service.ask("POST", f"{PATH}/test", ASK, as_="root").json["waits"]
    assert "no such image" in wait


@pytest.mark.parametrize(("method", "path"), [("POST", "test"), ("GET", "tests/{job}")])
def test_it_is_for_operators(service: Service, method: str, path: str) -> None:
    """SEC-2: not even the owner of a job sees what a driver said of the account."""
    where = f"{PATH}/{path.format(job=service.submit())}"
    refused(service.ask(method, where), 403, "privilege-missing")
    refused(service.ask(method, where, as_=None), 401, "no-token")


def test_it_is_refused_in_the_one_shape(service: Service) -> None:
    problem = refused(service.ask("POST", "/v1/factories/nowhere/test", as_="root"), 404, "factory-not-found")
    assert problem["detail"] == "there is no factory 'nowhere'; there are: hand"
    refused(service.ask("POST", f"{PATH}/test", {"target": "closed"}, as_="root"), 409, "would-wait")
    refused(service.ask("POST", f"{PATH}/test", {"taget": "linux"}, as_="root"), 400, "bad-request")
    refused(service.ask("POST", f"{PATH}/test", ASK, as_="root", headers={"idempotency-key": ""}), 400, "bad-request")
    refused(service.ask("GET", f"{PATH}/tests/{service.submit()}", as_="root"), 404, "test-not-found")
