"""EventBridge's events about machines. Like every message they are hints: they may be lost, doubled or late.

Shapes: "Amazon EC2 instance state change events", "Spot Instance interruption notices" and "EC2 instance rebalance
recommendations" in the EC2 User Guide.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.kernel.frozen import dataclass
from penstock.ports import MachineFate

SOURCE = "aws.ec2"
STATE = "EC2 Instance State-change Notification"
INTERRUPTION = "EC2 Spot Instance Interruption Warning"
REBALANCE = "EC2 Instance Rebalance Recommendation"

ENDING = ("stopping", "stopped", "shutting-down", "terminated")
WARNING = timedelta(seconds=120)
"""How long before a spot interruption EC2 warns. Hibernation begins at once."""


@dataclass(frozen=True)
class MachineEvent:
    """What an event means for a machine. It works `until` then, if the event says so."""

    instance: str
    region: str
    fate: MachineFate
    why: str
    until: datetime | None = None


def read_event(event: Mapping[str, Any]) -> MachineEvent | None:
    """What an event means for a machine; None for an event of another kind."""
    detail, region = event.get("detail"), event.get("region")
    instance = detail.get("instance-id") if isinstance(detail, Mapping) else None
    if event.get("source") != SOURCE or not isinstance(detail, Mapping) or not isinstance(instance, str):
        return None
    if not isinstance(region, str):
        return None
    kind = event.get("detail-type")
    if kind == STATE and detail.get("state") in ENDING:
        return MachineEvent(instance, region, MachineFate.LOST, f"EC2 reports that {instance} is {detail['state']}")
    if kind == INTERRUPTION:
        action = detail.get("instance-action", "terminate")
        why = f"EC2 interrupts the spot machine {instance} ({action})"
        return MachineEvent(instance, region, MachineFate.DRAINING, why, _until(event, action))
    if kind == REBALANCE:
        return MachineEvent(
            instance, region, MachineFate.DRAINING, f"EC2 may soon interrupt the spot machine {instance}"
        )
    return None


def _until(event: Mapping[str, Any], action: object) -> datetime | None:
    """When the machine is interrupted, counted from the time of the event, however late it arrives."""
    try:
        time = datetime.fromisoformat(str(event.get("time")))
    except ValueError:
        return None
    return time.astimezone(UTC) + (WARNING if action != "hibernate" else timedelta())
