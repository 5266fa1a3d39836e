"""What operators ask of workers and resources over HTTP, and how they are refused. [UNIT-3] [SEC-2]"""

from __future__ import annotations

from typing import Any

import pytest

from tests.functions.service import Service, conforms, refused
from tests.functions.stage import Stage

VERBS = ("hold", "release", "drain", "recycle")
KINDS = ("worker", "resource")
HOLD = {"reason": "a look at its disk", "for": 3600}


@pytest.fixture
def stage(service: Service) -> Stage:
    return Stage(service)


def path(stage: Stage, kind: str, verb: str = "") -> str:
    return f"/v1/{kind}s/{stage.unit(0 if kind == 'worker' else 1)}/{verb}".rstrip("/")


def do(stage: Stage, kind: str, verb: str, body: Any = None, as_: str = "root") -> Any:
    return stage.service.ask("POST", path(stage, kind, verb), body, as_=as_)


@pytest.mark.parametrize("kind", KINDS)
def test_a_unit_is_held_and_released(stage: Stage, kind: str) -> None:
    held = do(stage, kind, "hold", HOLD).json
    assert {key: held["hold"][key] for key in ("by", "reason")} == {"by": "root", "reason": "a look at its disk"}
    assert "it stays as it is until its hold ends, by 2026-01-01 01:00" in held["next_step"]
    listed = stage.service.ask("GET", f"/v1/{kind}s", as_="root").json["items"]
    assert [one["hold"] for one in listed if one["id"] == held["id"]] == [held["hold"]]
    assert do(stage, kind, "release").json["hold"] is None
    problem = refused(do(stage, kind, "release"), 409, "not-held")
    assert problem["detail"] == f"{kind} {held['id']} is not held"


@pytest.mark.parametrize("kind", KINDS)
def test_a_hold_that_names_no_time_is_for_eight_hours(stage: Stage, kind: str) -> None:
    held = do(stage, kind, "hold", {"reason": "x"}).json["hold"]
    assert (held["since"][:16], held["until"][:16]) == ("2026-01-01T00:00", "2026-01-01T08:00")


@pytest.mark.parametrize("kind", KINDS)
def test_its_log_says_who_did_what_and_why(stage: Stage, kind: str) -> None:
    do(stage, kind, "hold", HOLD)
    do(stage, kind, "release", {})
    do(stage, kind, "drain", {"reason": "it is old"})
    page = stage.service.ask("GET", path(stage, kind, "events"), as_="root").json
    conforms(page, "UnitEventPage")
    said = [event["payload"] for event in page["items"]]
    assert said[0] == f"ordered from {'hand' if kind == 'worker' else 'locks'} for job {stage.job}, attempt 1"
    assert said[-2:] == ["released by root", "drained by root: it is old"]
    assert said[-3].endswith("Z: a look at its disk")
    assert [event["seq"] for event in page["items"]] == list(range(1, page["next"] + 1))
    rest = stage.service.ask(
        "GET", path(stage, kind, "events"), as_="root", query={"after": str(page["next"] - 1)}
    ).json
    assert [event["payload"] for event in rest["items"]] == ["drained by root: it is old"]
    some = stage.service.ask("GET", path(stage, kind, "events"), as_="root", query={"limit": "2"}).json
    assert (len(some["items"]), some["next"]) == (2, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", VERBS)
def test_only_operators_may(stage: Stage, kind: str, verb: str) -> None:
    """SEC-2: not even for the worker of one's own job."""
    rows = dict(stage.service.twin.store.rows)
    refused(do(stage, kind, verb, HOLD, as_="ada"), 403, "privilege-missing")
    refused(stage.service.ask("GET", path(stage, kind, "events"), as_="ada"), 403, "privilege-missing")
    assert stage.service.twin.store.rows == rows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("unit", ["w-none", "x" * 10_000, "other"])
def test_what_is_not_there(stage: Stage, kind: str, verb: str, unit: str) -> None:
    """A resource is no worker, nor the other way round."""
    unit = stage.unit(1 if kind == "worker" else 0) if unit == "other" else unit
    body = {"hold": HOLD, "release": None}.get(verb, {})
    refused(stage.service.ask("POST", f"/v1/{kind}s/{unit}/{verb}", body, as_="root"), 404, f"{kind}-not-found")


BAD: dict[str, Any] = {
    "no body": None,
    "no reason": {"for": 60},
    "an empty reason": {"reason": "", "for": 60},
    "a long reason": {"reason": "x" * 301},
    "two lines": {"reason": "a\nb"},
    "no time": {"reason": "x", "for": 0},
    "eight days": {"reason": "x", "for": 8 * 24 * 3600},
    "a time in words": {"reason": "x", "for": "2h"},
    "half a second": {"reason": "x", "for": 0.5},
    "yes": {"reason": "x", "for": True},
    "null": {"reason": "x", "for": None},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BAD)
def test_a_hold_that_is_none(stage: Stage, kind: str, name: str) -> None:
    rows = dict(stage.service.twin.store.rows)
    answer = do(stage, kind, "hold", BAD[name])
    assert answer.status == 400
    refused(answer, 400, answer.json["code"])
    assert stage.service.twin.store.rows == rows


def test_an_unknown_key_is_told_apart(stage: Stage) -> None:
    problem = refused(do(stage, "worker", "hold", {"reason": "x", "four": 60}), 400, "bad-request")
    assert problem["errors"][0]["hint"] == "did you mean 'for'?"


def test_a_held_worker_is_not_recycled(stage: Stage) -> None:
    do(stage, "worker", "hold", HOLD)
    problem = refused(do(stage, "worker", "recycle"), 409, "held")
    assert "held by root until 2026-01-01 01:00" in problem["detail"]
    assert problem["detail"].endswith("a look at its disk; release it first")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_recycled_is_gone_and_says_so(stage: Stage, kind: str) -> None:
    answer = do(stage, kind, "recycle", {"reason": "it hangs"}).json
    assert (answer["drain"]["at_once"], answer["drain"]["reason"]) == (True, "it hangs")
    gone = path(stage, kind)
    stage.service.twin.run()
    shown = stage.service.ask("GET", gone, as_="root").json
    assert (shown["state"], shown["next_step"]) == ("gone", "nothing: it is gone")
    assert stage.service.ask("GET", f"{gone}/events", as_="root").json["state"] == "gone"
    for verb in ("hold", "drain", "recycle"):
        refused(stage.service.ask("POST", f"{gone}/{verb}", HOLD if verb == "hold" else {}, as_="root"), 409, "gone")
    refused(stage.service.ask("POST", f"{gone}/release", as_="root"), 409, "not-held")
    assert stage.service.ask("GET", f"/v1/jobs/{stage.job}").json["attempts"][0]["outcome"] == "lost"
