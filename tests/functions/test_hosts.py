"""What a host may ask over HTTP: only with its privilege, only for itself, only what has a shape. [SEC-2]"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.units import power
from penstock.kernel.rows import Create
from tests.functions.odd import ODD
from tests.functions.service import SITE, Answer, Service, refused
from tests.functions.stage import LAB

BODY: dict[str, Any] = {"session": "s" * 43}


@pytest.fixture
def lab(service: Service) -> Service:
    assert service.ask("PUT", "/v1/config", {"toml": SITE + LAB}, as_="root").status == 200
    service.twin.run()
    service.add("bench-7", "host.bench-7", "host.bench-9")
    service.add("bench-8", "host.bench-8")
    return service


def ask(lab: Service, body: Any, host: str = "bench-7", as_: str | None = "bench-7") -> Answer:
    return lab.ask("POST", f"/v1/agent/hosts/{host}", body, as_=as_)


def nothing_changes(lab: Service, body: Any, host: str = "bench-7", as_: str | None = "bench-7") -> Answer:
    rows, messages = dict(lab.twin.store.rows), list(lab.twin.queues.messages)
    answer = ask(lab, body, host, as_)
    assert (lab.twin.store.rows, list(lab.twin.queues.messages)) == (rows, messages)
    return answer


def test_a_hosts_day(lab: Service) -> None:
    assert ask(lab, BODY).json == {"do": "wait", "seconds": 5, "lease_seconds": 120}
    lab.twin.run()
    job = lab.submit(target="benches")
    told = ask(lab, BODY).json
    assert (told["do"], set(told)) == ("work", {"do", "seconds", "lease_seconds", "worker", "key"})
    hello = {"worker": told["worker"], "key": told["key"], "token": "w" * 43}
    assert lab.ask("POST", "/v1/agent/hello", hello, as_=None).json["job"] == job
    at = BODY | {"worker": told["worker"]}
    assert ask(lab, at | {"stage": "working"}).json["do"] == "wait"
    finish = {"result": "succeeded", "exit_code": 0}
    lab.ask("POST", f"/v1/agent/jobs/{job}/finish", finish, token="w" * 43)
    lab.twin.run()
    assert ask(lab, at | {"stage": "ended"}).json["do"] == "clean"
    shown = lab.ask("GET", "/v1/pools/target/benches").json
    assert (shown["held"], shown["away"], shown["slots"][0]["host"]["is_there"]) == (1, 0, True)
    done = ask(lab, at | {"stage": "clean", "cleaned": "all"}).json
    assert (done["do"], done["worker"]) == ("forget", told["worker"])
    assert lab.ask("GET", "/v1/pools/target/benches").json["free"] == 1


def test_who_may_not_speak_for_a_host(lab: Service) -> None:
    refused(nothing_changes(lab, BODY, as_=None), 401, "no-token")
    refused(nothing_changes(lab, BODY, as_="nobody"), 401, "unknown-token")
    for name in ("ada", "bench-8"):
        refused(nothing_changes(lab, BODY, as_=name), 403, "privilege-missing")
        refused(nothing_changes(lab, BODY, "bench-unheard-of", as_=name), 403, "privilege-missing")
    assert ask(lab, BODY, as_="root").status == 200


def test_a_host_that_the_site_does_not_know(lab: Service) -> None:
    refused(nothing_changes(lab, BODY, "bench-9"), 404, "host-not-found")


@pytest.mark.parametrize("name", ODD)
def test_a_host_that_is_none(lab: Service, name: str) -> None:
    answer = nothing_changes(lab, BODY, ODD[name], as_="root")
    assert answer.status == 404, answer


BODIES: dict[str, tuple[Any, int, str]] = {
    "none": (None, 400, "malformed-json"),
    "no session": ({}, 400, "bad-request"),
    "a session that is a number": ({"session": 1}, 400, "bad-request"),
    "a weak session": ({"session": "s" * 42}, 422, "weak-session"),
    "a session without end": ({"session": "s" * 129}, 400, "bad-request"),
    "a worker of 65 characters": (BODY | {"worker": "w" * 65}, 400, "bad-request"),
    "a stage that is none": (BODY | {"stage": "done"}, 400, "bad-request"),
    "a proof without end": (BODY | {"cleaned": "c" * 301}, 400, "bad-request"),
    "a wish that is none": (BODY | {"leaving": "yes"}, 400, "bad-request"),
    "an unknown key": (BODY | {"host": "bench-7"}, 400, "bad-request"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_none(lab: Service, name: str) -> None:
    body, status, code = BODIES[name]
    refused(nothing_changes(lab, body), status, code)


def test_who_waits_and_who_looks_at_the_pool_sees_how_a_host_is_switched(lab: Service) -> None:
    job, now = lab.submit(target="benches"), lab.twin.world.now()
    order = power.wait(power.switch_on(None, "bench-7", now, timedelta(minutes=10)), "the fuse is cold", 5, now)
    lab.twin.store.commit([Create(order)])
    said = f"being switched on since {now:%Y-%m-%d %H:%M:%S}Z: the fuse is cold"
    away = lab.ask("GET", f"/v1/jobs/{job}/why").json["blocked_on"]["away"]
    assert {"host": "bench-7", "since": None, "power": said} in away
    hosts = {slot["slot"]: slot["host"] for slot in lab.ask("GET", "/v1/pools/target/benches").json["slots"]}
    assert hosts["bench-7"] == {"is_there": False, "since": None, "power": said}
    assert all("power" not in shown for name, shown in hosts.items() if name != "bench-7")
    ask(lab, BODY)
    shown = lab.ask("GET", "/v1/pools/target/benches").json["slots"][0]["host"]
    assert (shown["is_there"], shown.get("power")) == (True, None)


def test_a_second_machine(lab: Service) -> None:
    ask(lab, BODY)
    lab.twin.run()
    refused(nothing_changes(lab, {"session": "z" * 43}), 409, "host-taken")


@pytest.mark.parametrize("worker", ["w-none", "w\n", "w-01ARZ3NDEKTSV4RRFFQ69G5FAV"])
def test_a_worker_that_is_not_on_this_host(lab: Service, worker: str) -> None:
    ask(lab, BODY)
    lab.twin.run()
    for stage in ("working", "ended", "clean"):
        answer = nothing_changes(lab, BODY | {"worker": worker, "stage": stage})
        assert (answer.json["do"], answer.json["worker"]) == ("forget", worker)
