"""The queues. Messages are hints: one in a dead-letter queue delays a step until the next sweep, and loses nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from constructs import Construct

NAMES = ("schedule", "serve", "factory", "well", "sweep")

CONSUMERS = {name: "schedule" if name == "serve" else name for name in NAMES}
"""The functions that take their messages. One takes two queues, and is warm for both."""

TRIES = 20
"""Deliveries before a message goes to the dead-letter queue: what fails for twenty minutes is no passing trouble."""


SECURE: Any = {"encryption": sqs.QueueEncryption.SQS_MANAGED, "enforce_ssl": True}


class Queues(Construct):
    """A queue and its dead-letter queue for each of NAMES.

    What a call did not do comes again after the function's timeout, the least that Lambda takes: docs/decisions/0061.
    """

    def __init__(self, scope: Construct, name: str, *, timeouts: dict[str, timedelta]) -> None:
        super().__init__(scope, name)
        self.dead: dict[str, sqs.Queue] = {}
        self.of = {each: self._queue(each, timeouts[each]) for each in NAMES if each != "serve"}
        self.of["serve"] = self._groups("serve", timeouts["serve"])

    def add(self, name: str, timeout: timedelta) -> sqs.Queue:
        """Add a queue of an optional part."""
        self.of[name] = self._queue(name, timeout)
        return self.of[name]

    def _queue(self, name: str, timeout: timedelta) -> sqs.Queue:
        self.dead[name] = dead = sqs.Queue(self, f"{name.title()}Dead", retention_period=Duration.days(14), **SECURE)
        return sqs.Queue(
            self,
            name.title(),
            visibility_timeout=Duration.seconds(timeout.total_seconds()),
            retention_period=Duration.days(4),
            dead_letter_queue=sqs.DeadLetterQueue(queue=dead, max_receive_count=TRIES),
            **SECURE,
        )

    def _groups(self, name: str, timeout: timedelta) -> sqs.Queue:
        """A FIFO queue, of which one call at a time has messages of a group.

        While a call that failed has them, their group waits. Throughput is counted by group, not for the whole queue.
        """
        self.dead[name] = dead = sqs.Queue(
            self, f"{name.title()}Dead", fifo=True, retention_period=Duration.days(14), **SECURE
        )
        return sqs.Queue(
            self,
            name.title(),
            fifo=True,
            deduplication_scope=sqs.DeduplicationScope.MESSAGE_GROUP,
            fifo_throughput_limit=sqs.FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
            visibility_timeout=Duration.seconds(timeout.total_seconds()),
            retention_period=Duration.days(4),
            dead_letter_queue=sqs.DeadLetterQueue(queue=dead, max_receive_count=TRIES),
            **SECURE,
        )
