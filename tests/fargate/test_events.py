"""What EventBridge says of tasks, and what a factory makes of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.ports import EventDriver, MachineFate, MachineNotice
from tests.fargate.fake import INTERRUPTED, Ecs
from tests.fargate.helpers import WORKER, Desk, event, factory, only, order

ENDED = {"lastStatus": "STOPPED", "stopCode": "EssentialContainerExited", "stoppedReason": "Essential container exited"}
WARNED = {"lastStatus": "RUNNING", "stopCode": "SpotInterruption", "stoppedReason": INTERRUPTED}


def test_an_interruption_is_a_warning_of_two_minutes(ecs: Ecs, desk: Desk) -> None:
    desk.create()
    assert isinstance(factory(ecs), EventDriver)
    for code in ("SpotInterruption", "TerminationNotice"):
        assert factory(ecs).read_event(event(only(ecs), **{**WARNED, "stopCode": code})) == MachineNotice(
            WORKER,
            MachineFate.DRAINING,
            f"ECS interrupts the spot task {only(ecs).id}: {code}: {INTERRUPTED}",
            datetime(2026, 11, 11, 21, 31, 54, tzinfo=UTC),
        )


def test_a_time_that_is_none_is_left_out(ecs: Ecs, desk: Desk) -> None:
    desk.create()
    found = factory(ecs).read_event({**event(only(ecs), **WARNED), "time": "soon"})
    assert found is not None
    assert found.until is None


@pytest.mark.parametrize(
    "detail",
    [
        ENDED,
        {**WARNED, "lastStatus": "STOPPED"},
        {"lastStatus": "DEPROVISIONING", "stopCode": "TaskFailedToStart", "stoppedReason": "CannotPullContainerError"},
        {"lastStatus": "DEACTIVATING", "stopCode": "EssentialContainerExited", "stoppedReason": "OutOfMemory"},
    ],
    ids=str,
)
def test_a_task_whose_container_ended_is_lost(ecs: Ecs, desk: Desk, detail: dict[str, Any]) -> None:
    desk.create()
    ecs.end(only(ecs).arn, detail["stopCode"], detail["stoppedReason"])
    found = factory(ecs).read_event(event(only(ecs), **detail))
    assert found is not None
    assert (found.unit, found.fate) == (WORKER, MachineFate.LOST)
    assert detail["stoppedReason"] in found.why


@pytest.mark.parametrize(
    "detail",
    [
        {"lastStatus": "RUNNING", "desiredStatus": "RUNNING"},
        {"lastStatus": "PENDING", "desiredStatus": "RUNNING"},
        {"lastStatus": "RUNNING", "stopCode": "UserInitiated"},
    ],
    ids=str,
)
def test_what_goes_on_or_what_we_stop_is_no_news(ecs: Ecs, desk: Desk, detail: dict[str, Any]) -> None:
    desk.create()
    assert factory(ecs).read_event(event(only(ecs), **detail)) is None


def test_a_twin_that_ends_does_not_lose_the_worker(ecs: Ecs, desk: Desk) -> None:
    """JOB-2: only one of two tasks is accepted as the worker."""
    desk.create()
    desk.notes = {}
    first = only(ecs)
    ecs.lag = 90
    desk.more = {"tags": {"team": "tools"}}
    desk.create()
    ecs.lag = 0
    ecs.end(first.arn, "EssentialContainerExited", "refused")
    assert ecs.made() == {WORKER: 2}
    assert factory(ecs).read_event(event(first, **ENDED)) is None


def test_whose_it_is_is_told_by_its_family_cluster_and_region(ecs: Ecs, desk: Desk) -> None:
    desk.create()
    said = event(only(ecs), **ENDED)
    ecs.end(only(ecs).arn, "EssentialContainerExited", "")
    assert factory(ecs, site="Penstock.us-east-1").read_event(said) is None
    assert factory(ecs, "renamed").read_event(said) is not None
    assert factory(ecs).read_event({**said, "region": "us-east-1"}) is None
    by_arn = {"cluster": "arn:aws:ecs:eu-west-1:123456789012:cluster/jobs"}
    ecs.cluster = by_arn["cluster"]
    assert factory(ecs, **by_arn).read_event(said) is not None
    ecs.cluster = "other"
    assert factory(ecs, cluster="other").read_event(said) is None


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"source": "aws.ec2", "detail-type": "EC2 Instance State-change Notification", "detail": {}},
        {"source": "aws.ecs", "detail-type": "ECS Service Action", "detail": {}},
        {"source": "aws.ecs", "detail-type": "ECS Task State Change", "detail": None},
        {"source": "aws.ecs", "detail-type": "ECS Task State Change", "detail": {"lastStatus": "STOPPED"}},
        {
            "source": "aws.ecs",
            "detail-type": "ECS Task State Change",
            "detail": {"taskArn": 1, "lastStatus": "STOPPED"},
        },
    ],
    ids=str,
)
def test_what_is_no_such_event_is_nobodys(ecs: Ecs, said: dict[str, Any]) -> None:
    assert factory(ecs).read_event(said) is None


def test_a_task_without_a_worker_is_nobodys(ecs: Ecs, desk: Desk) -> None:
    desk.create()
    assert factory(ecs).read_event(event(only(ecs), **ENDED, startedBy="")) is None
    factory(ecs).create(order())
