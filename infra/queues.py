"""The queues. Messages are hints: one in a dead-letter queue delays a step until the next sweep, and loses nothing."""

from __future__ import annotations

from datetime import timedelta

from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from constructs import Construct

NAMES = ("schedule", "factory", "well", "sweep")

TRIES = 5
"""Deliveries before a message goes to the dead-letter queue."""

VISIBILITY_FACTOR = 6
"""Times the function's timeout. Source: AWS Lambda developer guide, "Using Lambda with Amazon SQS"."""


class Queues(Construct):
    """A queue and its dead-letter queue for each of NAMES."""

    def __init__(self, scope: Construct, name: str, *, timeouts: dict[str, timedelta]) -> None:
        super().__init__(scope, name)
        self.dead: dict[str, sqs.Queue] = {}
        self.of = {each: self._queue(each, timeouts[each]) for each in NAMES}

    def add(self, name: str, timeout: timedelta) -> sqs.Queue:
        """Add a queue of an optional part."""
        self.of[name] = self._queue(name, timeout)
        return self.of[name]

    def _queue(self, name: str, timeout: timedelta) -> sqs.Queue:
        dead = sqs.Queue(
            self,
            f"{name.title()}Dead",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
        )
        self.dead[name] = dead
        return sqs.Queue(
            self,
            name.title(),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            visibility_timeout=Duration.seconds(VISIBILITY_FACTOR * timeout.total_seconds()),
            retention_period=Duration.days(4),
            dead_letter_queue=sqs.DeadLetterQueue(queue=dead, max_receive_count=TRIES),
        )
