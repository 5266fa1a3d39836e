"""What EventBridge says of EC2's machines goes to the factory function, through its queue.

A rule cannot tell machines by their tags: it sends what befalls any machine of the account in this region, and the
function asks EC2 which are ours. Events of other regions come by rules there that forward them: docs/operators/ec2.md.
"""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

ENDING = ["stopping", "stopped", "shutting-down", "terminated"]
WARNINGS = ["EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"]

TRIES = 5
"""How often EventBridge tries again to send an event that the queue did not take, before it is set aside."""

FRESH = Duration.minutes(15)
"""How long it tries. What is older says nothing that a lease has not said."""


class Tidings(Construct):
    """Two rules: machines that end, and machines that will be taken back."""

    def __init__(self, scope: Construct, name: str, *, queue: sqs.IQueue, dead: sqs.IQueue) -> None:
        super().__init__(scope, name)
        self._to = targets.SqsQueue(queue, dead_letter_queue=dead, retry_attempts=TRIES, max_event_age=FRESH)
        self._rule("Ended", ["EC2 Instance State-change Notification"], {"state": ENDING})
        self._rule("Warned", WARNINGS)

    def _rule(self, name: str, kinds: list[str], detail: dict[str, list[str]] | None = None) -> None:
        pattern = events.EventPattern(source=["aws.ec2"], detail_type=kinds, detail=detail)
        events.Rule(self, name, event_pattern=pattern, targets=[self._to])
