"""The events of a job's log: queued in one order, then delivered to the service in batches."""

from __future__ import annotations

import json
import threading
from collections import deque
from typing import Any

from .client import Client
from .control import Abandon, Control, Refused
from .log import now, utc_now
from .masking import Mask

Event = dict[str, Any]
FULL_BATCHES = 4
OUTPUT_STREAMS = ("stdout", "stderr")
DETAIL = "detail"
"""The stream of lines that a reader needs only to find a fault: command lines show them with `--verbose`."""

IDLE_SECONDS = 0.5  # how often who waits looks whether the work was abandoned
WATCHED_SECONDS, UNWATCHED_SECONDS = 0.2, 2.0  # how long an event waits for others to go with it
CONTENT_STATUSES = (400, 413, 422)  # statuses that refuse what is in a batch, not the worker


class Outbox:
    """Events that are not delivered yet. It is bounded: when the service is slow, `put` waits, and so does the job.

    Once the log is full, output is counted and dropped here: it is not sent, and nothing waits.
    """

    def __init__(self, control: Control, limits: dict[str, int], mask: Mask) -> None:
        self._control, self._mask = control, mask
        self._most_events, self._most_bytes = limits["batch_events"], limits["batch_bytes"]
        self._changed = threading.Condition()
        self._queue: deque[tuple[Event, int]] = deque()
        self._bytes = 0
        self._flushing = False
        self._dropped = self._dropped_bytes = 0
        self.first = 1  # the number of the oldest event in the queue

    def put(self, stream: str, task: int | None, payload: str) -> None:
        """Queue one event with the current time. Wait while the queue is full; drop the event if the work is abandoned.

        A task's output is masked already. All other text is masked here, for it may quote a secret. [SEC-1]
        """
        payload = payload if stream in OUTPUT_STREAMS else self._mask.text(payload)
        event = {"time": utc_now(), "stream": stream, "task": task, "payload": payload}
        size = len(json.dumps(event)) + 2
        with self._changed:
            while self._holds(FULL_BATCHES) and not self._control.abandoned:
                self._changed.wait(IDLE_SECONDS)
            if self._control.full and stream in OUTPUT_STREAMS:
                self._drop(event)
            elif not self._holds(FULL_BATCHES):
                self._queue.append((event, size))
                self._bytes += size
                self._changed.notify_all()

    def report_dropped(self) -> None:
        """Queue an event with how much output was dropped, if any."""
        with self._changed:
            full = self._control.full or {"lines": 0, "bytes": 0}
            lines, size = self._dropped + full["lines"], self._dropped_bytes + full["bytes"]
        if lines:
            self.put("worker", None, f"{lines} line(s), {size} bytes, of output were dropped, for the log was full")

    def flush(self) -> None:
        """Wait until all events are delivered or the work is abandoned."""
        with self._changed:
            self._flushing = True
            self._changed.notify_all()
            while self._queue and not self._control.abandoned:
                self._changed.wait(IDLE_SECONDS)
            self._flushing = False

    def next_batch(self) -> list[Event]:
        """Wait for events, then a little for more: longer when nobody watches the job. May return none."""
        with self._changed:
            if not self._queue:
                self._changed.wait(IDLE_SECONDS)
                return []
            until = now() + (WATCHED_SECONDS if self._control.watched else UNWATCHED_SECONDS)
            while not (self._holds(1) or self._flushing or self._control.abandoned) and now() < until:
                self._changed.wait(min(0.2, max(0.0, until - now())))
            return self.oldest()

    def oldest(self) -> list[Event]:
        """Return the oldest events that fit in one batch, at least one. They stay queued until `delivered`."""
        batch: list[Event] = []
        total = 0
        for event, size in self._queue:
            total += size
            if batch and (len(batch) >= self._most_events or total > self._most_bytes):
                break
            batch.append(event)
        return batch

    def delivered(self, count: int) -> None:
        """Remove the oldest events."""
        with self._changed:
            self.first += count
            for _ in range(count):
                self._bytes -= self._queue.popleft()[1]
            if self._control.full:
                self._shed()
            self._changed.notify_all()

    def _shed(self) -> None:
        """Drop the output that is still queued."""
        kept = [(event, size) for event, size in self._queue if event["stream"] not in OUTPUT_STREAMS]
        for event, _ in self._queue:
            if event["stream"] in OUTPUT_STREAMS:
                self._drop(event)
        self._queue = deque(kept)
        self._bytes = sum(size for _, size in kept)

    def _drop(self, event: Event) -> None:
        self._dropped += 1
        self._dropped_bytes += len(event["payload"].encode("utf-8", "replace"))

    def _holds(self, batches: int) -> bool:
        return len(self._queue) >= batches * self._most_events or self._bytes >= batches * self._most_bytes


class Delivery:
    """Posts batches in order, each until the service has it."""

    def __init__(self, service: Client, control: Control, outbox: Outbox, job: str) -> None:
        self._service, self._control, self._outbox, self._job = service, control, outbox, job

    def run(self) -> None:
        """Deliver events until abandoned. Runs as a thread."""
        while not self._control.abandoned:
            batch = self._outbox.next_batch()
            if batch:
                self._deliver(batch)

    def try_rest(self) -> None:
        """Try once to deliver the rest, after the lease was lost and the thread has ended. Raises ServiceError."""
        while batch := self._outbox.oldest():
            self._deliver(batch)

    def _deliver(self, batch: list[Event]) -> None:
        """Post a batch. If the service refuses its content, post half of it, until the bad event is found and replaced.

        The other half stays in the outbox, which may drop output from it when the log is full.
        """
        try:
            self._post(batch)
        except Refused as why:
            if why.status not in CONTENT_STATUSES:
                self._control.abandon(Abandon.REFUSED)
                raise
            if len(batch) == 1:
                self._replace(batch[0], why.status)
            else:
                self._deliver(batch[: len(batch) // 2])

    def _replace(self, culprit: Event, status: int) -> None:
        try:
            self._post([{**culprit, "payload": f"[the service refused this line: HTTP {status}]"}])
        except Refused:
            self._control.abandon(Abandon.REFUSED)
            raise

    def _post(self, batch: list[Event]) -> None:
        self._service.renew(self._job, "events", {"first": self._outbox.first, "events": batch})
        self._outbox.delivered(len(batch))
