"""What is asked of ECS for a worker, in which order, and what a call that fails leads to. [JOB-2] [UNIT-1]"""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.drivers.factories.fargate import boot
from penstock.drivers.factories.fargate.launch import OVERRIDES
from penstock.kernel.errors import Misconfigured, NoCapacity, QuotaReached, RateLimited, Unknown
from penstock.ports import NotYet, Order, Ready, UnitContext
from tests.fargate.fake import HOUR, Ecs
from tests.fargate.helpers import HERE, KEY, MORE, OTHER, WORKER, Desk, factory, only, order
from tests.played import Crash

SPOT = {"market": "spot-first"}


def asked(ecs: Ecs, call: str) -> list[dict[str, Any]]:
    return [params for name, params in ecs.calls if name == call]


def test_a_task_is_what_was_asked_for(ecs: Ecs, desk: Desk) -> None:
    done = desk.create()
    made = only(ecs)
    assert done == Ready(
        {"task": made.id, "zone": "eu-west-1a", "market": "on-demand"},
        proves={
            "fargate/eu-west-1/on-demand/x86_64-1-2048/eu-west-1a",
            "fargate/eu-west-1/on-demand",
            "fargate/eu-west-1/subnet/subnet-a",
            "fargate/eu-west-1/all",
        },
        shortages=[],
        notes={"tasks": [made.id]},
    )
    (run,) = asked(ecs, "RunTask")
    assert run["launchType"] == "FARGATE"
    assert run["startedBy"] == WORKER
    assert run["enableExecuteCommand"] is False
    assert run["networkConfiguration"]["awsvpcConfiguration"] == {
        "subnets": ["subnet-a"], "assignPublicIp": "DISABLED",
    }  # fmt: skip
    assert {each["key"]: each["value"] for each in run["tags"]} == {
        "penstock:site": HERE, "penstock:factory": "tasks", "penstock:worker": WORKER, "Name": f"tasks {WORKER}",
    }  # fmt: skip


def test_the_key_is_in_the_tasks_environment_and_nowhere_else(ecs: Ecs, desk: Desk) -> None:
    """SEC-1: a definition is kept, and arguments of a program are shown to all of a container."""
    desk.create()
    (run,) = asked(ecs, "RunTask")
    ((entry,),) = (each["environment"] for each in run["overrides"]["containerOverrides"])
    assert entry["name"] == boot.GIVEN
    config = json.loads(entry["value"])["config"]
    assert config == {"url": "https://penstock.example", "worker": WORKER, "key": KEY, "alone": True}
    assert KEY not in json.dumps([params for name, params in ecs.calls if name != "RunTask"])
    assert KEY not in json.dumps({key: value for key, value in run.items() if key != "overrides"})


def test_what_does_not_fit_into_a_call_is_the_sites_fault(ecs: Ecs) -> None:
    with pytest.raises(Misconfigured, match=str(OVERRIDES)):
        factory(ecs).create(Order(WORKER, "linux", "1", url="https://" + "x" * OVERRIDES, key=KEY))


def test_spot_first_and_every_subnet_of_a_market_before_the_next(ecs: Ecs) -> None:
    ecs.short = {("spot", "*"), ("on-demand", "subnet-a")}
    done = factory(ecs, **SPOT, price=0.05, spot_price=0.02).create(order())
    assert ecs.tries() == ["spot eu-west-1a", "spot eu-west-1b", "on-demand eu-west-1a", "on-demand eu-west-1b"]
    assert isinstance(done, Ready)
    assert [each.scope for each in done.shortages] == [
        "fargate/eu-west-1/spot/x86_64-1-2048/eu-west-1a",
        "fargate/eu-west-1/spot/x86_64-1-2048/eu-west-1b",
        "fargate/eu-west-1/on-demand/x86_64-1-2048/eu-west-1a",
    ]
    assert (done.metadata["market"], done.metadata["price"]) == ("on-demand", "0.050000")


def test_there_is_no_time_for_all_so_the_next_create_goes_on_behind_them(ecs: Ecs) -> None:
    """A call that takes too long would be broken off, and what it met forgotten."""
    ecs.short = {("spot", "*"), ("on-demand", "subnet-a")}
    driver = factory(ecs, **SPOT).with_context(UnitContext("1", 1, {}))
    factory(ecs).create(order(OTHER))  # so that the definition is registered
    ecs.calls.clear()
    driver._monotonic = lambda: 10.0 * ecs.now
    with pytest.raises(NoCapacity, match="no time for the other alternatives") as late:
        driver.create(order())
    assert late.value.untried
    assert late.value.notes == {"tasks": [], "tries": 1}
    assert ecs.tries() == ["spot eu-west-1a", "spot eu-west-1b"]
    done = driver.create(order(avoid=[each.scope for each in late.value.shortages]))
    assert isinstance(done, Ready)
    assert ecs.tries()[2:] == ["on-demand eu-west-1a", "on-demand eu-west-1b"]


def test_a_driver_for_one_worker_has_the_same_clock(ecs: Ecs) -> None:
    made = factory(ecs)
    made._monotonic = lambda: 7.0
    assert made.with_context(UnitContext("1", 1, {}))._monotonic() == 7.0


def test_a_spot_task_is_asked_for_by_its_capacity_provider(ecs: Ecs) -> None:
    done = factory(ecs, **SPOT, spot_price=0.02).create(order())
    (run,) = asked(ecs, "RunTask")
    assert run["capacityProviderStrategy"] == [{"capacityProvider": "FARGATE_SPOT", "weight": 1}]
    assert "launchType" not in run
    assert (done.metadata["market"], done.metadata["price"]) == ("spot", "0.020000")  # type: ignore[union-attr]


def test_a_limit_of_a_market_stops_that_market_at_once_and_no_other(ecs: Ecs) -> None:
    ecs.vcpus = {"spot": 0}
    done = factory(ecs, **SPOT).create(order())
    assert ecs.tries() == ["spot eu-west-1a", "on-demand eu-west-1a"]
    ((shortage,),) = (done.shortages,)  # type: ignore[union-attr]
    assert (shortage.scope, shortage.is_quota) == ("fargate/eu-west-1/spot", True)


def test_what_is_too_short_of_late_is_not_asked_for(ecs: Ecs) -> None:
    made = factory(ecs, **SPOT)
    avoid = ["fargate/eu-west-1/spot", "fargate/eu-west-1/on-demand/x86_64-1-2048/eu-west-1a"]
    made.create(order(avoid=avoid))
    assert ecs.tries() == ["on-demand eu-west-1b"]
    assert not made.has_alternative(order(avoid=["fargate/eu-west-1/all"]))
    with pytest.raises(NoCapacity, match="cool-down"):
        made.create(order(OTHER, avoid=["fargate/eu-west-1/all"]))


def test_of_shortages_and_limits_alone_the_job_waits(ecs: Ecs, desk: Desk) -> None:
    ecs.short = {("*", "*")}
    with pytest.raises(NoCapacity, match="Capacity is unavailable") as found:
        desk.create()
    assert len(found.value.shortages) == 2
    ecs.short, ecs.vcpus = set(), {"on-demand": 0}
    with pytest.raises(QuotaReached, match="limit on the number of vCPUs"):
        desk.create()


def test_one_wrong_subnet_stops_no_other(ecs: Ecs, desk: Desk) -> None:
    desk.more = {"subnets": ["subnet-0", "subnet-b"]}
    assert desk.create().shortages == []  # type: ignore[union-attr]
    assert ecs.tries() == ["on-demand subnet-0", "on-demand eu-west-1b"]
    desk.more = {"subnets": ["subnet-0"]}
    with pytest.raises(Misconfigured, match="does not exist"):
        desk.create(OTHER)


def test_ecs_remembers_a_refusal_so_the_next_try_has_another_token(ecs: Ecs, desk: Desk) -> None:
    """Or a worker that waits for capacity would never get it: ECS repeats what the first call came to."""
    ecs.short = {("*", "*")}
    for _ in range(2):
        with pytest.raises(NoCapacity):
            desk.create()
    assert desk.notes[WORKER] == {"tasks": [], "tries": 2}
    ecs.short = set()
    desk.create()
    assert ecs.made() == {WORKER: 1}
    tokens = [params["clientToken"] for params in asked(ecs, "RunTask")]
    assert len(tokens) == len(set(tokens)) == 5


def test_notes_that_were_lost_cost_one_try(ecs: Ecs, desk: Desk) -> None:
    ecs.short = {("*", "*")}
    with pytest.raises(NoCapacity):
        desk.create()
    desk.notes, ecs.short = {}, set()
    with pytest.raises(NoCapacity):
        desk.create()
    assert isinstance(desk.create(), Ready)


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("lag", [0, 100])
def test_a_crash_on_either_side_of_the_call_makes_no_second_task(ecs: Ecs, desk: Desk, side: str, lag: int) -> None:
    ecs.lag = lag
    ecs.crashes["RunTask", side] = 1
    with pytest.raises(Crash):
        desk.create()
    assert isinstance(desk.create(), Ready)
    assert ecs.made() == {WORKER: 1}


def test_an_unclear_call_after_a_refusal_is_repeated_with_its_token(ecs: Ecs, desk: Desk) -> None:
    """JOB-2: what ECS refused of one subnet changes nothing of a call to another that may have made a task."""
    ecs.lag, ecs.short = 100, {("on-demand", "subnet-a")}
    ecs.crashes["RunTask", "after"] = 2
    with pytest.raises(Crash):
        desk.create()
    assert isinstance(desk.create(), Ready)
    ecs.fail("RunTask", "ServerException", status=500)
    with pytest.raises(Unknown):
        desk.create(OTHER)
    assert OTHER not in desk.notes
    assert ecs.made() == {WORKER: 1}


def test_a_refusal_for_no_known_reason_is_reported_and_tried_again(
    ecs: Ecs, desk: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ecs, "_run", lambda params: {"reason": "The moon is in the wrong house", "detail": "again"})
    with pytest.raises(Unknown, match="wrong house: again"):
        desk.create()
    assert '"UnknownDriverErrors":[1.0]' in capsys.readouterr().out.replace(" ", "")
    assert desk.notes[WORKER] == {"tasks": [], "tries": 1}


def test_a_throttled_call_is_waited_for(ecs: Ecs, desk: Desk) -> None:
    ecs.buckets["RunTask"] = (0, 0)
    with pytest.raises(RateLimited) as found:
        desk.create()
    assert (found.value.calls, found.value.seconds) == ("RunTask", 15)


def test_made_again_it_is_the_same(ecs: Ecs, desk: Desk) -> None:
    desk.create()
    done = desk.create()
    assert done == Ready({"task": only(ecs).id, "zone": "eu-west-1a"}, proves=(), notes={"tasks": [only(ecs).id]})


def test_one_that_is_not_listed_yet_is_the_same_too(ecs: Ecs, desk: Desk) -> None:
    ecs.lag = 60
    desk.create()
    assert isinstance(desk.create(), NotYet), "its notes say that there is one"
    desk.notes = {}
    assert isinstance(desk.create(), Ready), "its token says so"
    assert ecs.made() == {WORKER: 1}


def test_one_that_ended_meanwhile_is_not_replaced(ecs: Ecs, desk: Desk) -> None:
    """JOB-2: what becomes of a worker that ended is not for `create` to say."""
    desk.create()
    ecs.end(only(ecs).arn, "EssentialContainerExited", "Essential container in task exited")
    ecs.now += 60
    assert isinstance(desk.create(), Ready)
    desk.notes = {}
    done = desk.create()
    assert isinstance(done, Ready)
    assert done.proves == ()
    assert ecs.made() == {WORKER: 1}


def test_after_an_hour_its_notes_are_all_that_is_known_of_it(ecs: Ecs, desk: Desk) -> None:
    desk.create()
    ecs.end(only(ecs).arn, "EssentialContainerExited", "Essential container in task exited")
    ecs.now += HOUR + 60
    assert isinstance(desk.create(), NotYet)
    assert ecs.made() == {WORKER: 1}


def test_many_are_listed_page_by_page(ecs: Ecs, desk: Desk) -> None:
    for worker in (*MORE, OTHER):
        desk.create(worker)
    assert set(factory(ecs).list()) == {*MORE, OTHER}
