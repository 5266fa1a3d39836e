"""However much a job prints: the agent stays small, calls the service rarely, and loses no line without a note.

`PENSTOCK_LINES=1000000` makes the great test a real one.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from penstock.agent import client, joblog
from penstock.agent.client import Control
from penstock.agent.joblog import LineSplitter, Outbox
from penstock.agent.masking import Mask

LINES = int(os.environ.get("PENSTOCK_LINES", "50000"))
SMALL_KIB = 80 * 1024
LIMITS = {"line_bytes": 16384, "batch_bytes": 196608, "batch_events": 500}
DROPPED = re.compile(r"(\d+) line\(s\), (\d+) bytes, of output were dropped because the log was full")


def sized(worker, **changes):
    """A worker whose size is looked at with every batch that it sends."""
    sizes = []

    def look(endpoint, _):
        if endpoint == "events":
            status = Path("/proc", str(job.agents[0].pid), "status").read_text()
            sizes.append(int(re.search(r"VmHWM:\s+(\d+)", status)[1]))

    job = worker(look, limits=LIMITS, **changes)
    return job, sizes


def test_many_lines_all_arrive_in_order_and_the_agent_stays_small(worker):
    job, sizes = sized(worker, script=f"seq {LINES}", timeout_seconds=600)
    assert job.start().wait(600) == 0
    assert job.plane.lines("stdout") == [str(number) for number in range(1, LINES + 1)]
    assert max(sizes) < SMALL_KIB
    assert len(sizes) < LINES / 500 + 100, "batches are full"


def test_a_line_of_100_mb_in_little_memory(worker):
    """What does not fit is dropped and counted to the byte; the job goes on, and says how it ended."""
    job, sizes = sized(
        worker, script="head -c 104857600 /dev/zero | tr '\\0' x; echo; echo the end; exit 3", timeout_seconds=600
    )
    job.plane.room = 100
    assert job.start().wait(600) == 0
    assert job.outcome()["exit_code"] == 3
    assert max(sizes) < SMALL_KIB
    shown = job.plane.lines("stdout")[:100]
    (said,) = [DROPPED.fullmatch(line) for line in job.plane.lines("worker") if "dropped" in line]
    lines, size = map(int, said.groups())
    assert lines + 100 == 104857600 // 16384 + 1
    assert size + sum(map(len, shown)) == 104857600 + len("the end")
    assert "stdout: a line of 104857600 bytes is shown as 6400 lines of at most 16384 bytes" in job.plane.lines("task")
    assert "exit code 3" in job.plane.lines("task")[-1]
    assert len(sizes) < 40, "what is dropped is not sent"


def test_a_log_with_room_mentions_no_dropped_output(worker):
    job = worker(script="echo one")
    job.plane.room = 1
    job.finish()
    assert not [line for line in job.plane.lines() if "dropped" in line]


def fed(*parts: bytes, limit: int = 4):
    lines, notes = [], []
    reader = LineSplitter(limit, lines.append, notes.append)
    for part in parts:
        reader.feed(part)
    reader.feed(b"", final=True)
    return lines, notes


@pytest.mark.parametrize(
    ("parts", "lines", "notes"),
    [
        ([b"abcd\n", b"ab"], ["abcd", "ab"], []),
        ([b"abcde\n"], ["abcd", "e"], ["a line of 5 bytes is shown as 2 lines of at most 4 bytes"]),
        (
            [b"abcd", b"efgh", b"\nx\n"],
            ["abcd", "efgh", "x"],
            ["a line of 8 bytes is shown as 2 lines of at most 4 bytes"],
        ),
        ([b"abcdefgh"], ["abcd", "efgh"], ["a line of 8 bytes is shown as 2 lines of at most 4 bytes"]),
        (["é".encode()[:1], "é".encode()[1:]], ["é"], []),
        ([b"\xff\n\xff\n"], ["\ufffd", "\ufffd"], ["there were bytes that are not UTF-8; each is shown as \ufffd"]),
        (["é".encode()[:1]], ["\ufffd"], ["there were bytes that are not UTF-8; each is shown as \ufffd"]),
        (["\ufffd".encode()], ["\ufffd"], []),
        ([b"a\0b\n"], ["a\0b"], []),
    ],
)
def test_changed_lines_are_noted(parts, lines, notes):
    assert fed(*parts) == (lines, notes)


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, box: Outbox) -> None:
        self.time = 0.0
        monkeypatch.setattr(joblog, "now", lambda: self.time)
        monkeypatch.setattr(box._changed, "wait", self._wait)

    def _wait(self, seconds: float) -> None:
        self.time += seconds


@pytest.mark.parametrize(("watched", "calls"), [(True, 1500), (False, 7)])
def test_calls_in_five_minutes_of_a_job_that_prints_all_the_time(monkeypatch, watched, calls):
    """Ten lines a second: while somebody looks none waits longer than 0.2 s; otherwise they go with the heartbeat."""
    control = Control()
    control.watched = watched
    box = Outbox(control, LIMITS | {"batch_events": 1000}, Mask([]), 45.0)
    clock = Clock(monkeypatch, box)
    monkeypatch.setattr(client, "now", lambda: clock.time)
    said = asked = waited = 0
    while clock.time < 300:
        box.put("stdout", 0, "line")
        start, said = clock.time, said + 1
        batch = box.next_batch()
        waited = max(waited, clock.time - start)
        box.delivered(len(batch))
        control.renew_lease({"lease_seconds": 120}, clock.time)
        asked += 1
    assert abs(asked - calls) <= 1
    assert waited <= (0.21 if watched else 44.2)


def test_events_renew_the_lease_only_if_the_service_says_so(monkeypatch):
    """JOB-2: otherwise the service may take this worker for lost while its job goes on."""
    control = Control()
    time = [0.0]
    monkeypatch.setattr(client, "now", lambda: time[0])
    control.renew_lease({"lease_seconds": 120, "watched": False}, 0.0)
    control.renew_lease({}, 40.0)
    assert control.until_beat(45.0) == 45.0
    control.renew_lease({"lease_seconds": 120}, 40.0)
    assert control.until_beat(45.0) == 85.0
    time[0] = 90.0
    assert control.until_beat(45.0) == 0.0


def test_a_job_whose_log_somebody_follows_learns_sooner_that_it_is_cancelled(monkeypatch):
    control = Control()
    monkeypatch.setattr(client, "now", lambda: 0.0)
    control.renew_lease({"lease_seconds": 120, "watched": True}, 0.0)
    assert (control.until_beat(45.0), control.until_beat(5.0)) == (10.0, 5.0)


def test_queued_output_of_a_full_log_is_dropped_and_counted():
    control = Control()
    box = Outbox(control, LIMITS, Mask([]), 60.0)
    box.put("stdout", 0, "sent")
    box.put("stderr", 0, "né")
    box.put("task", 0, "ended")
    control.renew_lease({"full": {"lines": 1, "bytes": 7}}, 0.0)
    control.renew_lease({}, 0.0)
    box.delivered(1)
    box.put("stdout", 0, "more")
    box.report_dropped()
    said = [event["payload"] for event in box.oldest()]
    assert said == ["ended", "3 line(s), 14 bytes, of output were dropped because the log was full"]
    assert box.first == 2
