"""What EventBridge says of a machine. Hints, like every message: they may be lost, doubled or late.

Shapes: "Amazon EC2 instance state change events", "Spot Instance interruption notices" and "EC2 instance rebalance
recommendations" in the EC2 User Guide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

SOURCE = "aws.ec2"
STATE = "EC2 Instance State-change Notification"
INTERRUPTION = "EC2 Spot Instance Interruption Warning"
REBALANCE = "EC2 Instance Rebalance Recommendation"

ENDING = ("stopping", "stopped", "shutting-down", "terminated")
WARNING = 120
"""Seconds between the warning and the interruption. Hibernation begins at once."""


class Fate(StrEnum):
    """What becomes of a machine."""

    DRAINING = "draining"  # it works still, and should get nothing new
    LOST = "lost"  # it works no more


@dataclass(frozen=True)
class News:
    """What an event says. `seconds` are left, as far as it says so."""

    instance: str
    fate: Fate
    why: str
    seconds: int | None = None


def news(event: Mapping[str, Any]) -> News | None:
    """What an event means for a machine; None when it means nothing to us."""
    detail = event.get("detail")
    instance = detail.get("instance-id") if isinstance(detail, Mapping) else None
    if event.get("source") != SOURCE or not isinstance(detail, Mapping) or not isinstance(instance, str):
        return None
    kind = event.get("detail-type")
    if kind == STATE and detail.get("state") in ENDING:
        return News(instance, Fate.LOST, f"EC2 says that {instance} is {detail['state']}", 0)
    if kind == INTERRUPTION:
        action = detail.get("instance-action", "terminate")
        seconds = 0 if action == "hibernate" else WARNING
        return News(instance, Fate.DRAINING, f"EC2 takes the spot machine {instance} back ({action})", seconds)
    if kind == REBALANCE:
        return News(instance, Fate.DRAINING, f"EC2 may soon take the spot machine {instance} back")
    return None
