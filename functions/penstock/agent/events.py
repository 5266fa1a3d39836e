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
IDLE_SECONDS = 0.5  # how often who waits looks whether the work was abandoned
WATCHED_SECONDS, UNWATCHED_SECONDS = 0.2, 2.0  # how long an event waits for others to go with it
CONTENT_STATUSES = (400, 413, 422)  # statuses that refuse what is in a batch, not the worker


class Outbox:
    """Events that are not delivered yet. Bounded: a slow service makes who puts wait, hence the job.

    Once the log has no room for output, that is counted and dropped here: nothing is sent, and nothing waits.
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
        """Queue one event, timed now; wait while the queue is full, and drop it when abandoned.

        What a task says has no secrets in it any more; what is said about it may name one. [SEC-1]
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

    def tell_dropped(self) -> None:
        """Say how much of the output was dropped, if some was."""
        with self._changed:
            full = self._control.full or {"lines": 0, "bytes": 0}
            lines, size = self._dropped + full["lines"], self._dropped_bytes + full["bytes"]
        if lines:
            self.put("worker", None, f"{lines} line(s), {size} bytes, of output were dropped, for the log was full")

    def flush(self) -> None:
        """Return when all is delivered, or can't be."""
        with self._changed:
            self._flushing = True
            self._changed.notify_all()
            while self._queue and not self._control.abandoned:
                self._changed.wait(IDLE_SECONDS)
            self._flushing = False

    def next_batch(self) -> list[Event]:
        """Wait for events, then a little for more of them: longer when nobody is watching. May return none."""
        with self._changed:
            if not self._queue:
                self._changed.wait(IDLE_SECONDS)
                return []
            until = now() + (WATCHED_SECONDS if self._control.watched else UNWATCHED_SECONDS)
            while not (self._holds(1) or self._flushing or self._control.abandoned) and now() < until:
                self._changed.wait(min(0.2, max(0.0, until - now())))
            return self.oldest()

    def oldest(self) -> list[Event]:
        """Return the oldest events that fit in one batch, at least one if there is any; they stay until delivered."""
        batch: list[Event] = []
        total = 0
        for event, size in self._queue:
            total += size
            if batch and (len(batch) >= self._most_events or total > self._most_bytes):
                break
            batch.append(event)
        return batch

    def delivered(self, count: int) -> None:
        """Forget the oldest events."""
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
    """Posts batches in order, each until it is taken."""

    def __init__(self, service: Client, control: Control, outbox: Outbox, job: str) -> None:
        self._service, self._control, self._outbox, self._job = service, control, outbox, job

    def run(self) -> None:
        """Deliver events until abandoned. Runs as a thread."""
        while not self._control.abandoned:
            batch = self._outbox.next_batch()
            if batch:
                self._deliver(batch)

    def try_rest(self) -> None:
        """Try once to deliver what is left, after the lease was lost and the thread has ended. Raises ServiceError."""
        while batch := self._outbox.oldest():
            self._deliver(batch)

    def _deliver(self, batch: list[Event]) -> None:
        """Post a batch; of one refused for what is in it half, until the culprit is found and replaced.

        The other half is still the outbox's, which may drop of it what has no room any more.
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
