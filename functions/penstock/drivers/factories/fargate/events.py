"""EventBridge's events about tasks. Like every message they are hints: they may be lost, doubled or late.

Shape: "Amazon ECS task state change events" in the ECS Developer Guide; with a spot interruption: "Fargate capacity
providers" there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.kernel.frozen import dataclass
from penstock.ports import MachineFate

SOURCE = "aws.ecs"
KIND = "ECS Task State Change"
STOPPED = "STOPPED"

INTERRUPTED = ("SpotInterruption", "TerminationNotice")
ENDED = ("EssentialContainerExited", "TaskFailedToStart")
"""Codes of tasks whose container does not run any more, whatever ECS still does for them."""

WARNING = timedelta(seconds=120)
"""How long before a spot interruption ECS warns."""


@dataclass(frozen=True)
class TaskEvent:
    """What an event means for the task of a worker. It works `until` then, if the event says so."""

    task: str
    worker: str
    family: str
    cluster: str
    region: str
    fate: MachineFate
    why: str
    until: datetime | None = None


def read_event(event: Mapping[str, Any]) -> TaskEvent | None:
    """What an event means for a task; None for an event of another kind, or of a task that goes on."""
    detail = event.get("detail")
    if event.get("source") != SOURCE or event.get("detail-type") != KIND or not isinstance(detail, Mapping):
        return None
    task, definition = str(detail.get("taskArn")), str(detail.get("taskDefinitionArn"))
    known = (task.rpartition("/")[2], str(detail.get("startedBy", "")), family_of(definition))
    of = (*known, str(detail.get("clusterArn")), str(event.get("region")))
    why = f"{detail.get('stopCode', 'stopped')}: {detail.get('stoppedReason', 'no reason is given')}"
    if detail.get("lastStatus") == STOPPED or detail.get("stopCode") in ENDED:
        return TaskEvent(*of, MachineFate.LOST, f"ECS reports that task {known[0]} has ended: {why}")
    if detail.get("stopCode") in INTERRUPTED:
        return TaskEvent(*of, MachineFate.DRAINING, f"ECS interrupts the spot task {known[0]}: {why}", _until(event))
    return None


def family_of(definition: str) -> str:
    """The family in the ARN of a task definition, which ends with `/family:revision`."""
    return definition.rpartition("/")[2].partition(":")[0]


def _until(event: Mapping[str, Any]) -> datetime | None:
    """When the task is interrupted, counted from the time of the event, however late it arrives."""
    try:
        return datetime.fromisoformat(str(event.get("time"))).astimezone(UTC) + WARNING
    except ValueError:
        return None
