"""What EventBridge says of a machine. Hints, like every message: they may be lost, doubled or late.

Shapes: "Amazon EC2 instance state change events", "Spot Instance interruption notices" and "EC2 instance rebalance
recommendations" in the EC2 User Guide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.ports import MachineFate

SOURCE = "aws.ec2"
STATE = "EC2 Instance State-change Notification"
INTERRUPTION = "EC2 Spot Instance Interruption Warning"
REBALANCE = "EC2 Instance Rebalance Recommendation"

ENDING = ("stopping", "stopped", "shutting-down", "terminated")
WARNING = timedelta(seconds=120)
"""How long before the interruption the warning is given. Hibernation begins at once."""


@dataclass(frozen=True)
class News:
    """What an event says. The machine works `until` then, as far as it says so."""

    instance: str
    region: str
    fate: MachineFate
    why: str
    until: datetime | None = None


def news(event: Mapping[str, Any]) -> News | None:
    """What an event means for a machine; None when it means nothing to us."""
    detail, region = event.get("detail"), event.get("region")
    instance = detail.get("instance-id") if isinstance(detail, Mapping) else None
    if event.get("source") != SOURCE or not isinstance(detail, Mapping) or not isinstance(instance, str):
        return None
    if not isinstance(region, str):
        return None
    kind = event.get("detail-type")
    if kind == STATE and detail.get("state") in ENDING:
        return News(instance, region, MachineFate.LOST, f"EC2 says that {instance} is {detail['state']}")
    if kind == INTERRUPTION:
        action = detail.get("instance-action", "terminate")
        why = f"EC2 takes the spot machine {instance} back ({action})"
        return News(instance, region, MachineFate.DRAINING, why, _until(event, action))
    if kind == REBALANCE:
        return News(instance, region, MachineFate.DRAINING, f"EC2 may soon take the spot machine {instance} back")
    return None


def _until(event: Mapping[str, Any], action: object) -> datetime | None:
    """When the machine is taken back: so long after the event, however late it comes."""
    try:
        told = datetime.fromisoformat(str(event.get("time")))
    except ValueError:
        return None
    return told.astimezone(UTC) + (WARNING if action != "hibernate" else timedelta())
