"""What EventBridge's events mean, by the shapes that the EC2 User Guide shows."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.drivers.factories.ec2.events import Fate, news

ID = "i-1234567890abcdef0"


def event(kind: str, **detail: Any) -> dict[str, Any]:
    return {
        "version": "0",
        "id": "7bf73129-1428-4cd3-a780-95db273d1602",
        "detail-type": kind,
        "source": "aws.ec2",
        "account": "123456789012",
        "time": "2026-11-11T21:29:54Z",
        "region": "us-east-1",
        "resources": [f"arn:aws:ec2:us-east-1:123456789012:instance/{ID}"],
        "detail": {"instance-id": ID, **detail},
    }


@pytest.mark.parametrize("state", ["stopping", "stopped", "shutting-down", "terminated"])
def test_a_machine_that_ends_is_lost(state: str) -> None:
    found = news(event("EC2 Instance State-change Notification", state=state))
    assert found
    assert (found.instance, found.fate, found.seconds) == (ID, Fate.LOST, 0)
    assert state in found.why


@pytest.mark.parametrize("state", ["pending", "running"])
def test_a_machine_that_begins_is_no_news(state: str) -> None:
    assert news(event("EC2 Instance State-change Notification", state=state)) is None


@pytest.mark.parametrize(("action", "seconds"), [("terminate", 120), ("stop", 120), ("hibernate", 0)])
def test_a_spot_machine_that_is_taken_back_has_two_minutes(action: str, seconds: int) -> None:
    found = news(event("EC2 Spot Instance Interruption Warning", **{"instance-action": action}))
    assert found
    assert (found.instance, found.fate, found.seconds) == (ID, Fate.DRAINING, seconds)
    assert action in found.why


def test_a_recommendation_says_no_time() -> None:
    found = news(event("EC2 Instance Rebalance Recommendation"))
    assert found
    assert (found.instance, found.fate, found.seconds) == (ID, Fate.DRAINING, None)


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"source": "aws.ec2", "detail": None},
        {"source": "aws.ec2", "detail": {"instance-id": 5}},
        {**event("EC2 Instance State-change Notification", state="terminated"), "source": "my.app"},
        event("EBS Volume Notification"),
        event("EC2 Instance State-change Notification"),
    ],
)
def test_what_is_not_about_a_machine_is_passed_over(other: dict[str, Any]) -> None:
    assert news(other) is None
