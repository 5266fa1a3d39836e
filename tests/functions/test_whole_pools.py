"""Lists of pools show some whole, for who watches these; and each slot says until when its job may have it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from penstock.domain.pools.pools import Slot
from penstock.kernel.rows import Replace
from tests.functions.service import Service, conforms, refused
from tests.functions.stage import Stage


@pytest.fixture
def stage(service: Service) -> Stage:
    """A job that runs with a worker and a bench, and one that waits for the bench."""
    return Stage(service)


def pool(stage: Stage, name: str, as_: str = "ada") -> dict[str, object]:
    return dict(stage.service.ask("GET", f"/v1/pools/{name}", as_=as_).json)


def test_pools_that_are_asked_for_are_shown_as_by_themselves(stage: Stage) -> None:
    asked = {"whole": "resource/bench,target/linux,resource/none"}
    found = {each["pool"]: each for each in stage.service.ask("GET", "/v1/pools", query=asked).json["items"]}
    for name in ("resource/bench", "target/linux"):
        conforms(found[name], "PoolView")
        assert found[name] == pool(stage, name)
        assert found[name]["slots"]
    others = [each for each in found.values() if each["pool"] not in asked["whole"]]
    assert others
    assert all(each["slots"] is None and each["queue"] is None for each in others)


def test_without_being_asked_no_pool_is_shown_whole(stage: Stage) -> None:
    assert all(each["slots"] is None for each in stage.service.ask("GET", "/v1/pools").json["items"])


@pytest.mark.parametrize("whole", ["bench", "resource/", "resource/a,", ",".join(["resource/a"] * 21), "resource/a b"])
def test_what_names_no_pools_or_too_many_is_refused(service: Service, whole: str) -> None:
    refused(service.ask("GET", "/v1/pools", query={"whole": whole}), 400, "bad-request")


def test_everybody_sees_until_when_a_slot_may_be_held(stage: Stage) -> None:
    """SEC-2: the end of the script's time, and nothing else of the job than its name and owner."""
    stage.service.add("bob")
    job = stage.service.ask("GET", f"/v1/jobs/{stage.job}").json
    started = datetime.fromisoformat(job["times"]["started"])
    (slot,) = pool(stage, "resource/bench", as_="bob")["slots"]  # type: ignore[misc]
    assert datetime.fromisoformat(slot["until"]) == started + timedelta(seconds=job["timeout"])
    refused(stage.service.ask("GET", f"/v1/jobs/{stage.job}", as_="bob"), 404, "job-not-found")


def test_there_is_no_such_time_once_the_script_has_ended(stage: Stage) -> None:
    stage.end()
    slots = pool(stage, "target/linux")["slots"]
    assert all(each["until"] is None for each in slots if each["job"] == stage.job)  # type: ignore[attr-defined]


def test_a_slot_that_an_earlier_attempt_has_ends_otherwise(stage: Stage) -> None:
    """The script's time is that of the attempt that runs, while the slot of the one before is being cleaned."""
    store = stage.service.twin.store
    slot = next(row for row in store.rows.values() if isinstance(row, Slot) and row.pool == "resource/bench")
    store.commit([Replace(slot, replace(slot, attempt=7))])
    (shown,) = pool(stage, "resource/bench")["slots"]  # type: ignore[misc]
    assert (shown["attempt"], shown["until"]) == (7, None)


def test_there_is_none_before_the_script_has_begun(service: Service) -> None:
    job = service.submit()
    slots = service.ask("GET", "/v1/pools/target/linux").json["slots"]
    assert [each["until"] for each in slots if each["job"] == job] == [None]
