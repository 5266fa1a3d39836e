"""A worker is gone when the engine has no container of its name, and not before. [UNIT-1] [UNIT-2]"""

from __future__ import annotations

import pytest

from penstock.domain.units.units import CleanProof
from penstock.kernel.errors import DriverError, Misconfigured, RateLimited, Unknown
from penstock.ports import NotYet, Ready
from tests.containers.helpers import KEY, NOW, WORKER, Place, order


@pytest.fixture
def made(place: Place) -> Place:
    assert isinstance(place.factory().create(order()), Ready)
    return place


def test_it_is_removed_by_force_and_that_is_checked(made: Place) -> None:
    proof = made.factory().destroy(WORKER, NOW)
    assert isinstance(proof, CleanProof)
    checked = f"the engine has no container named {WORKER}, no service of it, and no network of its own"
    assert (proof.by, proof.time, proof.checked) == ("container", NOW, checked)
    assert (made.engine.boxes, made.engine.networks) == ({}, {})
    box, *looks, nets, net, check = made.engine.calls[-6:]
    assert (box[:18], net[:17]) == ("DELETE /containers", "DELETE /networks/")
    assert looks == [f"GET /containers/{WORKER}/json", "GET /containers/json"]
    assert nets == check == "GET /networks"


def test_there_is_no_proof_while_it_is_there(made: Place) -> None:
    made.engine.removals = 2
    for _ in range(2):
        assert isinstance(made.factory().destroy(WORKER, NOW), NotYet)
        assert list(made.factory().list()) == [WORKER]
    assert isinstance(made.factory().destroy(WORKER, NOW), CleanProof)


def test_one_that_is_removed_meanwhile_is_gone(made: Place) -> None:
    made.engine.fail("DELETE", way="after")
    with pytest.raises(Unknown):
        made.factory().destroy(WORKER, NOW)
    assert isinstance(made.factory().destroy(WORKER, NOW), CleanProof)


FAULTS = [
    (500, "the daemon is busy", "", Unknown),
    (409, "container is paused", "", Unknown),
    (400, "bad parameter", "", Misconfigured),
    (403, "not allowed", "", Misconfigured),
    (429, "slow down", "", RateLimited),
    (500, "toomanyrequests: You have reached your pull rate limit", "", RateLimited),
    (500, 'exec: "python3": executable file not found in $PATH', "", Misconfigured),
    (500, "unable to find network with name or ID ci: network not found", "", Misconfigured),
    (500, "runc: cgroup controllers are missing", "", Misconfigured),
    (0, "", "cut", Unknown),
    (0, "", "garbage", Unknown),
    (0, "", "odd", Unknown),
    (0, "", "closed", Unknown),
]


@pytest.mark.parametrize(("status", "message", "way", "kind"), FAULTS)
@pytest.mark.parametrize("call", ["GET /containers/w-", "GET /containers/json", "GET /networks", "GET /version"])
def test_a_call_that_fails_is_no_answer(
    made: Place, call: str, status: int, message: str, way: str, kind: type[DriverError]
) -> None:
    """UNIT-2: no fault is taken for absence, and each has its kind."""
    made.engine.fail(call, status, message, way)
    driver = made.factory()
    ask = driver.list if not call.endswith("w-") else lambda: driver.destroy(WORKER, NOW)
    with pytest.raises(kind) as raised:
        ask()
    assert type(raised.value) is kind
    assert list(made.factory().list()) == [WORKER]


def test_a_page_that_is_missing_is_no_proof(made: Place) -> None:
    """UNIT-2: only the engine's own words are."""
    made.engine.fail("GET /containers/w-", 404, "page not found")
    with pytest.raises(Unknown, match="has not the documented form"):
        made.factory().destroy(WORKER, NOW)
    assert list(made.factory().list()) == [WORKER]


def test_an_engine_that_does_not_answer_is_given_up(made: Place) -> None:
    driver = made.factory()
    driver._engine._seconds = 0.2
    made.engine.fail("GET /containers/w-", way="slow")
    with pytest.raises(Unknown, match="did not answer: TimeoutError"):
        driver.destroy(WORKER, NOW)


def test_no_engine_at_all_is_for_the_operator(place: Place) -> None:
    absent = place.factory(socket=str(place.folder / "none.sock"))
    for call in (lambda: absent.create(order()), lambda: absent.destroy(WORKER, NOW), lambda: list(absent.list())):
        with pytest.raises(Misconfigured, match=r"there is no container engine at .*none\.sock .*setting `socket`"):
            call()


def test_evidence_is_its_state_and_the_end_of_its_output(made: Place) -> None:
    """SEC-1: without what may be a key."""
    said = made.factory().evidence(WORKER)
    assert said is not None
    assert "is running; end of its output:\nworker: saying hello" in said
    assert said.endswith("the end")
    assert KEY not in said
    assert "\x01" not in said
    made.factory().destroy(WORKER, NOW)
    assert made.factory().evidence(WORKER) is None


def test_evidence_tells_why_it_did_not_start(made: Place) -> None:
    (box,) = made.engine.boxes.values()
    box.state, box.error = "created", "no such file"
    said = made.factory().evidence(WORKER)
    assert said is not None
    assert "is created: no such file; end of its output" in said


def test_containers_and_networks_are_things_until_they_are_gone(made: Place) -> None:
    """UNIT-1: for the account diff."""
    found = made.factory().things()
    assert [(each.kind, each.unit, each.maker) for each in found] == [
        ("container", WORKER, ""),
        ("network", WORKER, ""),
    ]
    made.factory().destroy(WORKER, NOW)
    assert list(made.factory().things()) == []
