"""The job's log, from the pipes of its processes to the service.

`OutputReader` reads what a process prints, masks secrets in it, and splits it into lines. `Outbox` queues these lines
and the agent's own, in one order, as events. `Delivery` sends them in batches.
"""

from __future__ import annotations

import codecs
import json
import os
import selectors
import subprocess
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

from .client import Abandon, Client, Control, Refused
from .machine import now, utc_now
from .masking import Mask, MaskedStream

Event = dict[str, Any]
OUTPUT_STREAMS = ("stdout", "stderr")
DETAIL = "detail"
"""The stream of lines that a reader needs only to find a fault: command lines show them with `--verbose`."""

FULL_BATCHES = 4  # the queue is full with as much as fits in four batches
IDLE_SECONDS = 0.5  # how often waiting threads check whether the work was abandoned
WATCHED_SECONDS = 0.2  # how long an event waits for others to join its batch, if somebody follows the log
BEFORE_BEAT_SECONDS = 1.0  # how long before a heartbeat the events go that nobody waits for: they renew the lease
CONTENT_STATUSES = (400, 413, 422)  # statuses that refuse the content of a batch, not the worker
Put = Callable[[str, "int | None", str], None]
"""Takes a line: its stream, its task, and its text."""

REST_BYTES = 4 << 20  # how much is still read from pipes that leftover processes hold open
TAIL_LINES = 20
TAIL_CHARS = 400  # the service cuts longer lines


class LineSplitter:
    """Splits the bytes of one stream into lines, and holds no more than `limit` bytes.

    A longer line becomes several, and bytes that are not UTF-8 become U+FFFD. `note` gets a sentence about each long
    line, and one about the first such bytes.
    """

    def __init__(self, limit: int, emit: Callable[[str], None], note: Callable[[str], None]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._strict: codecs.IncrementalDecoder | None = codecs.getincrementaldecoder("utf-8")()
        self._limit, self._emit, self._note, self._rest = limit, emit, note, ""
        self._split = self._pieces = 0  # bytes and pieces of the unfinished line that were emitted already

    def feed(self, data: bytes, final: bool = False) -> None:
        """Emit all whole lines, and at the end also the last one."""
        self._check_encoding(data, final)
        *lines, rest = (self._rest + self._decoder.decode(data, final)).split("\n")
        for line in lines:
            *most, last = split_line(line, self._limit)
            self._emit_pieces(most)
            self._end(last)
        *most, self._rest = split_line(rest, self._limit)
        self._emit_pieces(most)
        if final and (self._rest or self._pieces):
            self._end(self._rest)

    def _emit_pieces(self, texts: list[str]) -> None:
        for text in texts:
            self._emit(text)
            self._split += len(text.encode("utf-8"))
            self._pieces += 1

    def _end(self, last: str) -> None:
        self._emit(last)
        if self._pieces:
            size = self._split + len(last.encode("utf-8"))
            self._note(f"a line of {size} bytes is shown as {self._pieces + 1} lines of at most {self._limit} bytes")
        self._split = self._pieces = 0

    def _check_encoding(self, data: bytes, final: bool) -> None:
        """Note the first bytes that are not UTF-8."""
        try:
            if self._strict:
                self._strict.decode(data, final)
        except UnicodeDecodeError:
            self._strict = None
            self._note("there were bytes that are not UTF-8; each is shown as \ufffd")


def split_line(line: str, limit: int) -> list[str]:
    """Cut a line into pieces of at most `limit` bytes of UTF-8, between characters."""
    raw, found = line.encode("utf-8"), []
    while len(raw) > limit:
        cut = limit
        while raw[cut] & 0xC0 == 0x80:
            cut -= 1
        found.append(raw[:cut].decode("utf-8"))
        raw = raw[cut:]
    return [*found, raw.decode("utf-8")]


@dataclass(frozen=True)
class Source:
    """One stream of a task."""

    pipe: IO[bytes]
    masked: MaskedStream


class OutputReader:
    """Reads stdout and stderr line by line until both are closed, and masks secrets. [SEC-1]"""

    def __init__(self, child: subprocess.Popen[bytes], task: int | None, limit: int, mask: Mask, put: Put) -> None:
        self._selector = selectors.DefaultSelector()
        self._left: int | None = None  # bytes that are still read, once nobody should be writing
        self.cut_off = False  # whether a pipe was still open at the end
        for stream, pipe in (("stdout", child.stdout), ("stderr", child.stderr)):
            if pipe:
                lines = LineSplitter(limit, partial(put, stream, task), partial(_put_note, put, stream, task))
                source = Source(pipe, MaskedStream(mask, lines.feed))
                self._selector.register(pipe, selectors.EVENT_READ, source)

    def last_call(self) -> None:
        """Read what is in the pipes now, then stop, even if a process holds them open."""
        self._left = REST_BYTES

    def run(self) -> None:
        """Read until the end. Runs as a thread."""
        while self._selector.get_map():
            ready = self._selector.select(0.2)
            if self._left is not None and (not ready or self._left < 0):
                self.cut_off = True
                break
            for key, _ in ready:
                self._read(key.data)
            for key in self._selector.get_map().values():
                key.data.masked.flush_quiet()
        for key in list(self._selector.get_map().values()):
            self._close(key.data)
        self._selector.close()

    def _read(self, source: Source) -> None:
        data = os.read(source.pipe.fileno(), 1 << 16)
        if self._left is not None:
            self._left -= len(data)
        if data:
            source.masked.feed(data)
        else:
            self._close(source)

    def _close(self, source: Source) -> None:
        self._selector.unregister(source.pipe)
        source.masked.feed(b"", final=True)
        source.pipe.close()


def _put_note(put: Put, stream: str, task: int | None, text: str) -> None:
    put("task", task, f"{stream}: {text}")


class Tail:
    """Passes lines on, and remembers the last of them. They are masked already."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self._last: deque[str] = deque(maxlen=TAIL_LINES)

    def put(self, stream: str, task: int | None, payload: str) -> None:
        """Add a line."""
        self._last.append(payload[:TAIL_CHARS])
        self._put(stream, task, payload)

    @property
    def lines(self) -> list[str]:
        """The last lines, the oldest first."""
        return list(self._last)


class Outbox:
    """Events that are not delivered yet. It is bounded: when the service is slow, `put` waits, and so does the job.

    Once the log is full, output is counted and dropped here: it is not sent, and nothing waits.
    """

    def __init__(self, control: Control, limits: dict[str, int], mask: Mask, heartbeat: float) -> None:
        self._control, self._mask, self._heartbeat = control, mask, heartbeat
        self._most_events, self._most_bytes = limits["batch_events"], limits["batch_bytes"]
        self._changed = threading.Condition()
        self._queue: deque[tuple[Event, int]] = deque()
        self._bytes = 0
        self._flushing = False
        self._dropped = self._dropped_bytes = 0
        self.first = 1  # the number of the oldest event in the queue

    def put(self, stream: str, task: int | None, payload: str) -> None:
        """Queue one event with the current time. Wait while the queue is full; drop the event if the work is abandoned.

        A task's output is masked already. All other text is masked here, because it may quote a secret. [SEC-1]
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
            self.put("worker", None, f"{lines} line(s), {size} bytes, of output were dropped because the log was full")

    def flush(self) -> None:
        """Wait until all events are delivered or the work is abandoned."""
        with self._changed:
            self._flushing = True
            self._changed.notify_all()
            while self._queue and not self._control.abandoned:
                self._changed.wait(IDLE_SECONDS)
            self._flushing = False

    def next_batch(self) -> list[Event]:
        """Wait for events, then a little for more. If nobody follows the log, until the lease has to be renewed.

        May return none.
        """
        with self._changed:
            if not self._queue:
                self._changed.wait(IDLE_SECONDS)
                return []
            beat = self._control.until_beat(self._heartbeat) - BEFORE_BEAT_SECONDS
            until = now() + (WATCHED_SECONDS if self._control.watched else max(WATCHED_SECONDS, beat))
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
        """Remove the oldest events, which the service has now."""
        with self._changed:
            self.first += count
            for _ in range(count):
                self._bytes -= self._queue.popleft()[1]
            if self._control.full:
                self._drop_queued_output()
            self._changed.notify_all()

    def _drop_queued_output(self) -> None:
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

    def send_rest(self, until: float) -> None:
        """Send the rest, each batch once and none after `until`: the agent was told to end. Raises ServiceError."""
        while (batch := self._outbox.oldest()) and now() < until:
            body = {"first": self._outbox.first, "events": batch}
            self._service.send_last(self._job, "events", body, until - now())
            self._outbox.delivered(len(batch))

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
