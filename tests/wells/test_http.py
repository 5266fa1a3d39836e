"""The `http` well against a service that does wrong what a service can. [UNIT-1] [UNIT-2] [SEC-1] [SEC-2]"""

from __future__ import annotations

from collections.abc import Callable
from threading import Timer
from typing import Any

import pytest

from penstock.domain.units.units import CleanProof
from penstock.kernel.errors import (
    DriverError,
    Misconfigured,
    NoCapacity,
    QuotaReached,
    RateLimited,
    Unknown,
    Unsatisfiable,
)
from penstock.ports import NotYet, Order, Ready, UnitContext
from tests.wells.faulty import ANYBODY
from tests.wells.rack import Asked, Rack
from tests.wells.service import NOW, SECRET, well

UNIT = "r-1"
OK = {"unit": UNIT, "owner": "Penstock.eu-west-1/rack", "fence": 7, "digest": None}


def create(rack: Rack, unit: str = UNIT, fence: int = 7, **how: Any) -> Ready | NotYet:
    settings = how.pop("settings", {})
    return well(rack.url, **settings).with_context(UnitContext("1", fence)).create(Order(unit, "project", "1", **how))


def clean(rack: Rack, fence: int = 7) -> CleanProof | NotYet:
    return well(rack.url).with_context(UnitContext("1", fence)).clean(UNIT, NOW)


def destroy(rack: Rack, unit: str = UNIT) -> CleanProof | NotYet:
    return well(rack.url).with_context(UnitContext("1", 7)).destroy(unit, NOW)


CALLS: dict[str, Callable[[Rack], object]] = {"PUT": create, "POST": clean, "DELETE": destroy}


def problem(status: int, code: str, **headers: str) -> Callable[[Asked], bool]:
    return lambda asked: asked.say(status, {"code": code, "detail": f"it is {code}"}, **headers)


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (400, "", Misconfigured), (401, "", Misconfigured), (403, "", Misconfigured), (413, "", Misconfigured),
        (409, "", Unknown), (409, "stale-fence", Unknown), (409, "quota-reached", QuotaReached),
        (409, "no-capacity", NoCapacity), (409, "misconfigured", Misconfigured), (422, "unsatisfiable", Unsatisfiable),
        (422, "quota-reached", QuotaReached), (422, "nobody knows", Unsatisfiable), (500, "quota-reached", Unknown),
        (418, "", Unknown), (502, "", Unknown), (503, "", Unknown), (302, "", Misconfigured), (201, "", Unknown),
    ],
)  # fmt: skip
def test_what_the_service_refuses_is_of_the_closed_set(
    rack: Rack, status: int, code: str, error: type[DriverError]
) -> None:
    rack.on("PUT", problem(status, code))
    with pytest.raises(error, match=str(status)) as told:
        create(rack)
    assert type(told.value) is error
    assert f"it is {code}" in str(told.value)


@pytest.mark.parametrize(("said", "seconds"), [("17", 17), ("0", 1), ("99999", 900), ("soon", 30), ("-1", 30)])
def test_how_long_to_wait_is_believed_within_bounds(rack: Rack, said: str, seconds: int) -> None:
    rack.on("PUT", problem(429, "", Retry_After=said))
    with pytest.raises(RateLimited) as told:
        create(rack)
    assert (told.value.seconds, told.value.calls) == (seconds, "create")


def test_a_service_that_is_down_for_a_while_says_for_how_long(rack: Rack) -> None:
    rack.on("PUT", problem(503, "", Retry_After="60"))
    with pytest.raises(RateLimited):
        create(rack)


@pytest.mark.parametrize("method", CALLS)
def test_what_is_not_done_yet_is_asked_again_when_the_service_says(rack: Rack, method: str) -> None:
    create(rack)
    said = {"reason": "the disks\x1b are wiped" + "!" * 1000}
    rack.on(method, lambda asked: asked.say(202, said, Retry_After="42"))
    done = CALLS[method](rack)
    assert isinstance(done, NotYet)
    assert done.after == 42
    assert done.reason
    assert done.reason.startswith("the disks? are wiped")
    assert len(done.reason) <= 300


def test_not_yet_without_a_word(rack: Rack) -> None:
    rack.on("PUT", lambda asked: asked.say(202, b""))
    assert create(rack) == NotYet(5, "it is being made")


ODD: dict[str, tuple[Callable[[Asked], bool], type[DriverError]]] = {
    **ANYBODY,
    "means another": (lambda asked: asked.say(200, {**OK, "unit": "r-2", "state": "ready"}), Misconfigured),
    "means another lease": (lambda asked: asked.say(200, {**OK, "fence": 6, "state": "ready"}), Misconfigured),
    "is not ready": (lambda asked: asked.say(200, {**OK, "state": "creating"}), Misconfigured),
    "has no object": (lambda asked: asked.say(200, {**OK, "state": "ready", "metadata": "x"}), Misconfigured),
    "has too much of it": (
        lambda asked: asked.say(200, {**OK, "state": "ready", "metadata": {"a": "b" * 17_000}}),
        Misconfigured,
    ),
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_whatever_it_answers_the_call_ends_with_an_error_and_no_secret_in_it(rack: Rack, odd: str) -> None:
    fault, error = ODD[odd]
    rack.on("PUT", fault)
    with pytest.raises(error) as told:
        create(rack, settings={"timeout": "1s"})
    assert type(told.value) is error
    assert SECRET not in str(told.value)
    assert "bbbb" not in str(told.value)
    assert len(str(told.value)) < 500
    rack.let_go.set()


@pytest.mark.parametrize(
    "begun", [b"HTT", b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"],
    ids=["in its first line", "in a header", "in its body"],
)  # fmt: skip
def test_who_dribbles_is_cut_off(rack: Rack, begun: bytes) -> None:
    """A socket's own timeout begins anew with every byte: that the well ends it is seen by whoever writes on."""

    def dribbles(asked: Asked) -> bool:
        asked.write(begun)
        try:
            while not rack.let_go.wait(0.1):
                asked.write(b"y")
        except OSError:
            rack.cut.set()
        return True

    rack.on("PUT", dribbles)
    limit = Timer(40, rack.let_go.set)
    limit.start()
    with pytest.raises(Unknown, match=r"no answer|not signed"):
        create(rack, settings={"timeout": "1s"})
    assert rack.cut.wait(60), "it could write for as long as it liked"
    limit.cancel()


@pytest.mark.parametrize("odd", [each for each, (_, error) in ODD.items() if each != "means another lease"])
@pytest.mark.parametrize("method", ["DELETE", "GET", "LIST"])
def test_nothing_odd_is_taken_for_a_proof(rack: Rack, method: str, odd: str) -> None:
    """UNIT-1, UNIT-2: above all not the 404 of somebody who is not the service."""
    create(rack)
    fault = ODD[odd][0]
    rack.on(method, fault)
    try:
        done = well(rack.url, timeout="1s").destroy(UNIT, NOW)
    except DriverError:
        done = None
    rack.let_go.set()
    assert not isinstance(done, CleanProof) or UNIT not in rack.units


def test_asked_twice_it_makes_one_and_says_the_same(rack: Rack) -> None:
    first, second = create(rack), create(rack)
    assert first == second
    assert list(rack.units) == [UNIT]


@pytest.mark.parametrize("method", CALLS)
def test_a_service_that_answers_twice_is_heard_once(rack: Rack, method: str) -> None:
    """UNIT-2: the second answer on a wire is no answer to what is asked next."""
    if method != "PUT":
        create(rack)
    rack.on(method, lambda asked: asked.write(asked.overheard() * 2))
    rack.on("GET", lambda asked: asked.write(asked.overheard() * 2))
    assert isinstance(CALLS[method](rack), Ready | CleanProof)
    assert list(rack.units) == ([] if method == "DELETE" else [UNIT])


@pytest.mark.parametrize("method", CALLS)
def test_what_was_done_before_the_connection_was_lost_is_found_the_next_time(rack: Rack, method: str) -> None:
    def lose(asked: Asked) -> bool:
        asked.act()
        return True

    if method != "PUT":
        create(rack)
    rack.on(method, lose, times=1)
    with pytest.raises(Unknown):
        CALLS[method](rack)
    assert isinstance(CALLS[method](rack), Ready | CleanProof)
    assert list(rack.units) == ([] if method == "DELETE" else [UNIT])


def test_a_call_for_an_older_lease_changes_nothing(rack: Rack) -> None:
    """SLOT-3"""
    create(rack, fence=8)
    for call in (lambda: create(rack, fence=7), lambda: clean(rack, fence=7), lambda: destroy(rack)):
        with pytest.raises(Unknown, match="another lease"):
            call()
    assert rack.units[UNIT]["state"] == "ready"


def test_what_it_says_of_cleaning_is_in_the_proof(rack: Rack) -> None:
    create(rack)
    done = clean(rack)
    assert isinstance(done, CleanProof)
    assert (done.by, done.time) == ("http 127.0.0.1", NOW)
    assert "no disk" in done.checked
    assert "with fence 7" in done.checked


LIES = {
    "is in use": {"state": "ready"},
    "is clean after another lease": {"fence": 6},
    "looks different": {"digest": "another"},
    "is clean by halves": {"state": "cleaning"},
}


@pytest.mark.parametrize("lie", LIES)
def test_who_lies_about_cleaning_gets_no_proof(rack: Rack, lie: str) -> None:
    """UNIT-2: what it states is compared with what its status says."""
    create(rack)
    clean(rack)
    status = {**rack.service.status(UNIT), **LIES[lie]}
    rack.on("GET", lambda asked: asked.say(200, status))
    with pytest.raises(Unsatisfiable, match=r"answered that r-1 is clean, .* but its status is"):
        clean(rack)


def test_what_is_gone_is_not_clean(rack: Rack) -> None:
    create(rack)
    rack.on("GET", lambda asked: asked.say(404, {}))
    with pytest.raises(Unsatisfiable):
        clean(rack)
    rack.units.clear()
    with pytest.raises(Unknown, match="does not know r-1"):
        clean(rack)


@pytest.mark.parametrize("proof", [None, "clean", {}, {"checked": " "}, {"checked": 1}])
def test_who_does_not_say_what_was_checked_gets_no_proof(rack: Rack, proof: object) -> None:
    create(rack)
    rack.on("POST", lambda asked: asked.say(200, {**OK, "state": "clean", "proof": proof}))
    with pytest.raises(Misconfigured, match=r"proof\.checked"):
        clean(rack)


def test_who_says_that_it_is_destroyed_and_has_it_still_gets_no_proof(rack: Rack) -> None:
    """UNIT-1"""
    create(rack)
    rack.on("DELETE", lambda asked: asked.say(200, {"proof": {"checked": "trust me"}}))
    with pytest.raises(Unsatisfiable, match="its status is ready"):
        destroy(rack)
    rack.on("GET", lambda asked: asked.say(404, {}))
    with pytest.raises(Unsatisfiable, match="still lists it"):
        destroy(rack)


def test_what_is_on_its_way_out_is_waited_for(rack: Rack) -> None:
    create(rack)
    rack.on("DELETE", lambda asked: asked.say(200, {"proof": {"checked": "it will go"}}))
    rack.on("GET", lambda asked: asked.say(200, {**OK, "state": "destroying", "reason": "disks"}, Retry_After="9"))
    assert destroy(rack) == NotYet(9, "disks")


def test_gone_is_proved_by_status_and_list(rack: Rack) -> None:
    create(rack)
    create(rack, "r-2")
    rack.asked.clear()
    done = destroy(rack)
    assert isinstance(done, CleanProof)
    assert "its status is 404, and it is not listed" in done.checked
    assert [method for method, _ in rack.asked] == ["DELETE", "GET", "GET"]
    again = destroy(rack)
    assert isinstance(again, CleanProof)
    assert "it did not exist" in again.checked


def test_only_ours_are_listed_page_by_page(rack: Rack, monkeypatch: pytest.MonkeyPatch) -> None:
    """UNIT-1: what another Penstock made with the same service is not one of our strays."""
    monkeypatch.setattr("penstock.drivers.http.units.PAGE", 2)
    ids = [f"r-{number}" for number in range(5)]
    for unit in ids:
        create(rack, unit)
    well(rack.url, "another").with_context(UnitContext("1", 1)).create(Order("r-9", "project", "1"))
    assert list(well(rack.url).list()) == ids
    assert list(well(rack.url, "another").list()) == ["r-9"]
    theirs = {"units": [{"unit": "r-9", "owner": "somebody"}], "next": None}
    rack.on("LIST", lambda asked: asked.say(200, theirs))
    assert list(well(rack.url).list()) == []


@pytest.mark.parametrize(
    ("page", "part"),
    [
        ({}, "not a list"),
        ({"units": [], "next": 7}, "not a list"),
        ({"units": ["r-1"]}, "an invalid unit"),
        ({"units": [{"unit": "x" * 65}]}, "an invalid unit"),
        ({"units": [], "next": "a"}, "in the wrong order"),
    ],
)
def test_a_list_that_is_none_is_no_list(rack: Rack, page: dict[str, Any], part: str) -> None:
    rack.on("LIST", lambda asked: asked.say(200, page))
    with pytest.raises(Misconfigured, match=part):
        well(rack.url).list()


def test_a_list_without_end_ends(rack: Rack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.drivers.http.units.PAGES", 3)
    pages = iter(range(100))
    rack.on("LIST", lambda asked: asked.say(200, {"units": [], "next": f"a{next(pages):03}"}))
    with pytest.raises(Unknown, match="more than"):
        well(rack.url).list()


def test_a_job_may_ask_for_what_the_site_says(rack: Rack) -> None:
    options = {"size": {"type": "string", "enum": ["small", "large"], "required": True}}
    made = well(rack.url, options=options)
    with pytest.raises(Unsatisfiable, match="'size' is required"):
        made.create(Order(UNIT, "project", "1"))
    with pytest.raises(Unsatisfiable, match="one of small, large"):
        made.create(Order(UNIT, "project", "1", options={"size": "huge"}))
    assert not rack.asked
    assert isinstance(made.create(Order(UNIT, "project", "1", options={"size": "large"})), Ready)
