"""The `http` factory against a controller that does wrong what one can. [UNIT-1] [UNIT-2] [JOB-2] [SEC-1] [SEC-2]"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock import agentfile
from penstock.domain.account import Thing
from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER, Registry
from penstock.drivers.factories import userdata
from penstock.drivers.factories.http.factory import HttpFactory
from penstock.drivers.http import protocol
from penstock.drivers.http.protocol import WORKERS
from penstock.drivers.http.serving import Endpoint
from penstock.drivers.http.units import EVIDENCE_CHARS
from penstock.kernel.errors import (
    DriverError,
    Misconfigured,
    NoCapacity,
    QuotaReached,
    RateLimited,
    Unknown,
    Unsatisfiable,
)
from penstock.ports import EvidenceDriver, NotYet, Order, Ready, ThingsDriver
from tests.controllers.lab import FaultyLab, factory
from tests.wells.faulty import ANYBODY, Asked
from tests.wells.rack import Rack
from tests.wells.service import NOW, SECRET, SURROUNDINGS, well

UNIT = "w-1"
OWNER = "Penstock.eu-west-1/lab"
GOOD = {"url": "https://lab.example.com/penstock", "secret": "secretsmanager:penstock/lab"}
KEY = "k" * 64


def order(unit: str = UNIT) -> Order:
    return Order(unit, "helios", "3", url="https://penstock.example.com", key=KEY)


def create(lab: FaultyLab, unit: str = UNIT, **settings: Any) -> Ready | NotYet:
    return factory(lab.url, **settings).create(order(unit))


def destroy(lab: FaultyLab, unit: str = UNIT, **settings: Any) -> CleanProof | NotYet:
    return factory(lab.url, **settings).destroy(unit, NOW)


def told(lab: FaultyLab, **settings: Any) -> dict[str, Any]:
    """What the controller is told to make a worker."""
    heard: list[dict[str, Any]] = []
    lab.service.create, make = lambda unit, given: heard.append(given) or make(unit, given), lab.service.create
    create(lab, **settings)
    lab.service.create = make
    return heard[0]


# What it is told


def test_an_order_has_all_that_starts_the_agent_and_whom_it_is_for(lab: FaultyLab) -> None:
    settings = {"image": "helios-2.0", "cpus": 8}
    said = told(lab, settings=settings, user_data="mount /data", python="/usr/bin/python3.11", linger=5)
    assert (said["unit"], said["owner"], said["type"], said["slot"]) == (UNIT, OWNER, "helios", "3")
    assert said["settings"] == settings
    assert said["boot"] == userdata.script(order(), "mount /data", "/usr/bin/python3.11", 5)
    assert said["agent"] == {
        "url": "https://penstock.example.com/v1/agent/agent.pyz",
        "sha256": agentfile.digest(),
        "config": {"url": "https://penstock.example.com", "worker": UNIT, "key": KEY},
    }


def test_a_launch_token_is_of_the_whole_order(lab: FaultyLab) -> None:
    """JOB-2: a hypervisor refuses a known token with another request."""
    tokens = [told(lab)["token"], told(lab)["token"], told(lab, settings={"cpus": 8})["token"]]
    assert tokens[0] == tokens[1] != tokens[2]
    assert len(tokens[0]) == 64


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"url": "http://lab.example.com"}, "must be https"),
        ({"secret": "the secret itself"}, "reference"),
        ({"timeout": "21s"}, "20 seconds"),
        ({"settings": 1}, "a table"),
        ({"settings": {"since": datetime(2026, 1, 1, tzinfo=UTC)}}, "write a date as a string"),
        ({"settings": {"share": float("inf")}}, "write a date as a string"),
        ({"settings": {"long": "x" * 9000}}, "at most 8192"),
        ({"settings": {str(each): 1 for each in range(51)}}, "at most 50"),
        ({"user_data": 1}, "shell commands"),
        ({"python": "python 3"}, "a program"),
        ({"linger": -1}, "0 to 1440"),
        ({"options": {}}, "options"),
    ],
)
def test_settings_are_checked(change: dict[str, Any], part: str) -> None:
    assert HttpFactory.complaints(GOOD) == []
    assert any(part in each for each in HttpFactory.complaints({**GOOD, **change}))
    with pytest.raises(Misconfigured):
        HttpFactory({**GOOD, **change}, {MAKER: "lab"})


def test_a_boot_script_that_no_machine_takes_is_refused_before_anybody_is_asked(lab: FaultyLab) -> None:
    with pytest.raises(Misconfigured, match="user data"):
        factory(lab.url).create(Order(UNIT, "helios", "1", url="https://" + "x" * 16_000, key=KEY))
    assert not lab.asked


def test_what_it_is_able_to_do() -> None:
    assert Registry({}).reusable("factory", "http")
    made = HttpFactory(GOOD, {MAKER: "lab"})
    assert isinstance(made, ThingsDriver)
    assert isinstance(made, EvidenceDriver)
    with pytest.raises(Misconfigured, match="needs PENSTOCK_MAKER"):
        HttpFactory(GOOD, {})


# What it answers


def test_asked_twice_it_makes_one(lab: FaultyLab) -> None:
    assert create(lab) == create(lab) == create(lab, settings={"cpus": 8})
    assert lab.machines == [UNIT]


def test_an_order_that_comes_after_the_end_makes_nothing(lab: FaultyLab) -> None:
    """JOB-2: a late one never brings a worker back."""
    create(lab)
    destroy(lab)
    assert create(lab) == Ready(proves=())
    assert (lab.machines, list(factory(lab.url).list())) == ([], [])


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (403, "", Misconfigured), (409, "", Unknown), (409, "quota-reached", QuotaReached),
        (409, "no-capacity", NoCapacity), (409, "misconfigured", Misconfigured), (422, "unsatisfiable", Unsatisfiable),
        (500, "", Unknown), (302, "", Misconfigured),
    ],
)  # fmt: skip
def test_what_it_refuses_is_of_the_closed_set(lab: FaultyLab, status: int, code: str, error: type[DriverError]) -> None:
    lab.on("PUT", lambda asked: asked.say(status, {"code": code, "detail": "no room"}))
    with pytest.raises(error, match="no room") as raised:
        create(lab)
    assert type(raised.value) is error


def test_how_long_it_wants_to_be_left_alone(lab: FaultyLab) -> None:
    lab.on("PUT", lambda asked: asked.say(503, {}, Retry_After="60"))
    with pytest.raises(RateLimited) as raised:
        create(lab)
    assert (raised.value.seconds, raised.value.calls) == (60, "create")


def test_a_machine_that_takes_a_while_is_asked_for_again(lab: FaultyLab) -> None:
    lab.on("PUT", lambda asked: asked.say(202, {"reason": "its disk is written"}, Retry_After="42"), times=1)
    assert create(lab) == NotYet(42, "its disk is written")
    assert isinstance(create(lab), Ready)


MEANS: dict[str, tuple[Callable[[Asked], bool], type[DriverError]]] = {
    "means another": (lambda asked: asked.say(200, {"unit": "w-2", "state": "ready"}), Misconfigured),
    "is not ready": (lambda asked: asked.say(200, {"unit": UNIT, "state": "creating"}), Misconfigured),
    "says nothing": (lambda asked: asked.say(200, {}), Misconfigured),
    "does not know it": (lambda asked: asked.say(404, {}), Unknown),
    "has no object": (lambda asked: asked.say(200, {"unit": UNIT, "state": "ready", "metadata": "x"}), Misconfigured),
    "has too much": (
        lambda asked: asked.say(200, {"unit": UNIT, "state": "ready", "metadata": {f"{n}": "" for n in range(21)}}),
        Misconfigured,
    ),
    "has what is no string": (
        lambda asked: asked.say(200, {"unit": UNIT, "state": "ready", "metadata": {"a": [1]}}),
        Misconfigured,
    ),
}  # fmt: skip


@pytest.mark.parametrize("odd", [*ANYBODY, *MEANS])
def test_whatever_it_answers_the_call_ends_with_an_error_and_no_secret_in_it(lab: FaultyLab, odd: str) -> None:
    fault, error = {**ANYBODY, **MEANS}[odd]
    lab.on("PUT", fault)
    with pytest.raises(error) as raised:
        create(lab, timeout="1s")
    assert type(raised.value) is error
    assert not {SECRET, KEY} & set(str(raised.value).split())
    assert len(str(raised.value)) < 500
    lab.let_go.set()


def replay(heard: list[bytes]) -> Callable[[Asked], bool]:
    return lambda asked: asked.write(heard[0])


@pytest.mark.parametrize("method", ["PUT", "DELETE", "GET", "LIST", "CONSOLE"])
def test_an_answer_to_another_request_is_none(lab: FaultyLab, method: str) -> None:
    """SEC-2: however good it was, for the request that it was to."""
    calls: dict[str, Callable[[], object]] = {
        "PUT": lambda: create(lab),
        "DELETE": lambda: destroy(lab),
        "GET": lambda: destroy(lab),
        "LIST": lambda: list(factory(lab.url).list()),
        "CONSOLE": lambda: factory(lab.url).evidence(UNIT),
    }
    heard: list[bytes] = []
    if method != "PUT":
        create(lab)
    lab.on(method, lambda asked: heard.append(asked.overheard()) is None and asked.write(heard[0]), times=1)
    calls[method]()
    assert heard
    create(lab)
    lab.on(method, lambda asked: asked.write(heard[0]))
    with pytest.raises(DriverError, match="not signed"):
        calls[method]()


@pytest.mark.parametrize("odd", ANYBODY)
@pytest.mark.parametrize("method", ["DELETE", "GET", "LIST"])
def test_nothing_odd_is_taken_for_a_proof(lab: FaultyLab, method: str, odd: str) -> None:
    """UNIT-1, UNIT-2: above all not the 404 of somebody who is not the controller."""
    create(lab)
    lab.on(method, ANYBODY[odd][0])
    try:
        done = destroy(lab, timeout="1s")
    except DriverError:
        done = None
    lab.let_go.set()
    assert not isinstance(done, CleanProof) or not lab.machines


def test_who_says_that_it_is_destroyed_and_has_it_still_gets_no_proof(lab: FaultyLab) -> None:
    """UNIT-1, UNIT-2"""
    create(lab)
    lab.on("DELETE", lambda asked: asked.say(200, {"proof": {"checked": "trust me"}}))
    with pytest.raises(Unsatisfiable, match="its status is ready"):
        destroy(lab)
    lab.on("GET", lambda asked: asked.say(404, {}))
    with pytest.raises(Unsatisfiable, match="still lists it"):
        destroy(lab)


def test_what_is_on_its_way_out_is_waited_for(lab: FaultyLab) -> None:
    create(lab)
    lab.on("DELETE", lambda asked: asked.say(202, {"reason": "its disk is wiped"}, Retry_After="9"), times=1)
    assert destroy(lab) == NotYet(9, "its disk is wiped")
    lab.on("GET", lambda asked: asked.say(200, {"unit": UNIT, "state": "destroying"}), times=1)
    assert destroy(lab) == NotYet(5, "it is being destroyed")


def test_gone_is_proved_by_status_and_list(lab: FaultyLab) -> None:
    create(lab)
    create(lab, "w-2")
    lab.asked.clear()
    done = destroy(lab)
    assert isinstance(done, CleanProof)
    assert (done.by, done.time) == ("http 127.0.0.1", NOW)
    assert "no process" in done.checked
    assert "its status is 404, and it is not listed" in done.checked
    assert [method for method, _ in lab.asked] == ["DELETE", "GET", "GET"]
    again = destroy(lab, "w-9")
    assert isinstance(again, CleanProof)
    assert lab.machines == ["w-2"]


# What it has


def test_only_ours_are_listed(lab: FaultyLab) -> None:
    """UNIT-1: what another Penstock made with the same controller is not one of our strays."""
    create(lab)
    factory(lab.url, "another").create(order("w-2"))
    assert list(factory(lab.url).list()) == [UNIT]
    assert list(factory(lab.url, "another").list()) == ["w-2"]


def test_a_controller_tells_what_a_worker_consists_of(lab: FaultyLab) -> None:
    """UNIT-1: a disk that outlives its machine is found by the account diff."""
    create(lab)
    create(lab, "w-2")
    things = [
        {"kind": "machine", "id": "vm-7", "made": "2026-01-01T10:00:00+01:00"},
        {"kind": "disk\x1b", "id": "d" * 100, "made": "0001-01-01T00:00:00+14:00"},
        {"kind": "port", "id": 9, "made": "2026-01-01"},
    ]
    lab.service.list = lambda owner, start: [{"unit": UNIT, "things": things}, "w-2"]
    assert list(factory(lab.url).things()) == [
        Thing("machine", "vm-7", UNIT, datetime(2026, 1, 1, 9, tzinfo=UTC)),
        Thing("disk?", "d" * 61 + "...", UNIT),
        Thing("port", "9", UNIT),
        Thing("worker", "w-2", "w-2"),
    ]
    assert list(factory(lab.url).list()) == [UNIT, "w-2"]


@pytest.mark.parametrize("things", [[], "disk", ["disk"], [{}] * 21])
def test_things_that_are_none_are_no_list(lab: FaultyLab, things: object) -> None:
    lab.service.list = lambda owner, start: [{"unit": UNIT, "things": things}]
    with pytest.raises(Misconfigured, match="`things` of w-1"):
        factory(lab.url).things()


def test_the_end_of_its_console_is_shown(lab: FaultyLab) -> None:
    made = factory(lab.url)
    assert made.evidence(UNIT) is None
    create(lab)
    assert made.evidence(UNIT) is None
    (lab.folder / "machines" / UNIT / "console").write_text("x" * 9000 + "no agent\n")
    shown = made.evidence(UNIT)
    assert shown
    assert shown.endswith("xno agent")
    assert len(shown) == EVIDENCE_CHARS


@pytest.mark.parametrize("said", [{}, {"console": None}, {"console": ["a"]}])
def test_a_console_that_is_none_is_an_error(lab: FaultyLab, said: object) -> None:
    lab.on("CONSOLE", lambda asked: asked.say(200, said))
    with pytest.raises(Misconfigured, match="`console`"):
        factory(lab.url).evidence(UNIT)


def test_an_id_that_is_a_path_is_refused(lab: FaultyLab) -> None:
    for unit in ("../w-1", "a/b"):
        with pytest.raises(Unsatisfiable):
            create(lab, unit)


# Wells and factories


def test_a_service_of_a_well_makes_no_workers_and_the_other_way_round(lab: FaultyLab, rack: Rack) -> None:
    """A mistaken URL is told to the operator, and makes and frees nothing."""
    with pytest.raises(Misconfigured, match="405"):
        factory(rack.url).create(order())
    with pytest.raises(Misconfigured, match="405"):
        factory(rack.url).destroy(UNIT, NOW)
    with pytest.raises(Misconfigured, match="405"):
        well(lab.url).create(Order("r-1", "project", "1"))
    with pytest.raises(Misconfigured, match="405"):
        well(lab.url).list()
    assert (lab.machines, rack.units) == ([], {})


def test_a_controller_is_called_by_path_and_nothing_else_is(lab: FaultyLab) -> None:
    endpoint = Endpoint(lab.service, SECRET, of=WORKERS, clock=lambda: 0)

    def status(method: str, path: str) -> int:
        request = f"{method} {path}"
        headers = {
            protocol.TIMESTAMP: "0",
            protocol.REQUEST_ID: request,
            protocol.SIGNATURE: protocol.sign_request(SECRET, method, path, "", "0", request, b"{}"),
        }
        return endpoint.answer(method, path, headers, b"{}").status

    create(lab)
    assert status("GET", "/lab/workers/w-1/console") == status("GET", "/workers") == 200
    for other in ("/workers/w-1/clean", "/w-1/console", "/", "/resources", "/resources/w-1"):
        assert status("POST", other) == status("GET", other) == 405, other
    assert json.loads(endpoint.answer("GET", "/workers", {}, b"").body)["code"] == "unknown"
    assert SURROUNDINGS["RACK"] == SECRET
