"""The three queues. Messages are hints: what goes to a dead-letter queue costs a sweep period, never a job."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import Construct

NAMES = ("schedule", "factory", "well")

TRIES = 5
"""Deliveries before a message is set aside."""

VISIBILITY_FACTOR = 6
"""Times the function's timeout. Source: AWS Lambda developer guide, "Using Lambda with Amazon SQS"."""


class Queues(Construct):
    """A queue, its dead-letter queue and an alarm on that, for each of NAMES."""

    def __init__(self, scope: Construct, name: str, *, timeouts: dict[str, Duration]) -> None:
        super().__init__(scope, name)
        self.dead: dict[str, sqs.Queue] = {}
        self.of = {each: self._queue(each, timeouts[each]) for each in NAMES}

    def _queue(self, name: str, timeout: Duration) -> sqs.Queue:
        dead = sqs.Queue(
            self,
            f"{name.title()}Dead",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
        )
        self.dead[name] = dead
        cloudwatch.Alarm(
            self,
            f"{name.title()}Alarm",
            alarm_description=f"The {name} function failed {TRIES} times on a message; see docs/operations.md",
            metric=dead.metric_approximate_number_of_messages_visible(period=Duration.minutes(5)),
            threshold=1,
            evaluation_periods=1,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        return sqs.Queue(
            self,
            name.title(),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            visibility_timeout=Duration.seconds(VISIBILITY_FACTOR * timeout.to_seconds()),
            retention_period=Duration.days(4),
            dead_letter_queue=sqs.DeadLetterQueue(queue=dead, max_receive_count=TRIES),
        )
