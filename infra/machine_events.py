"""Rules of EventBridge that send events about EC2 machines to the factory function's queue.

A rule cannot filter by tags, so it sends the events of all machines of the account in this region. The function asks
EC2 for their tags. Events of other regions need rules there that forward them: docs/operators/ec2.md.
"""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

ENDING = ["stopping", "stopped", "shutting-down", "terminated"]


WARNINGS = ["EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"]

ATTEMPTS = 5
"""How often EventBridge retries to send an event, before it goes to the dead-letter queue."""

MAX_AGE = Duration.minutes(15)
"""How long EventBridge retries. The leases show older losses anyway."""


class MachineEvents(Construct):
    """Two rules: machines that stop, and warnings of spot interruptions."""

    def __init__(self, scope: Construct, name: str, *, queue: sqs.IQueue, dead: sqs.IQueue) -> None:
        super().__init__(scope, name)
        self._to = to_queue(queue, dead)
        self._rule("Ended", ["EC2 Instance State-change Notification"], {"state": ENDING})
        self._rule("Warned", WARNINGS)

    def _rule(self, name: str, kinds: list[str], detail: dict[str, list[str]] | None = None) -> None:
        pattern = events.EventPattern(source=["aws.ec2"], detail_type=kinds, detail=detail)
        events.Rule(self, name, event_pattern=pattern, targets=[self._to])


def to_queue(queue: sqs.IQueue, dead: sqs.IQueue) -> targets.SqsQueue:
    """The target of rules that send events to a queue; `dead` gets what it does not accept in time."""
    return targets.SqsQueue(queue, dead_letter_queue=dead, retry_attempts=ATTEMPTS, max_event_age=MAX_AGE)
