"""A log as one object: in parts and blocks, and read from any line on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from hashlib import sha256

import pytest

from penstock.domain.artifacts.retention import Spans
from penstock.domain.logs import archives
from penstock.domain.logs.archives import RETRY_AFTER
from penstock.domain.logs.logs import (
    Archive,
    ArchivePart,
    ArchiveState,
    Batch,
    Event,
    Line,
    archive_key,
    archive_when_settled,
    is_short,
)
from tests.domain.helpers import NOW, job

SPANS = Spans(log=60, log_wait=600)
ROW = Archive(job="J1", state=ArchiveState.WAITING, since=NOW, settled=NOW, due=NOW)
SECOND = timedelta(seconds=1)


def batch(first: int, *texts: str, task: int | None = 0) -> Batch:
    lines = tuple(Line(NOW, "stdout", text, task) for text in texts)
    return Batch(job="J1", first=first, attempt=2, lines=lines, heard_of=2, heard=9, size=99, version=3)


def begun(last: Batch) -> Archive:
    return archives.begin(ROW, last, "A1", NOW)


def test_it_waits_from_the_end_of_its_job_on() -> None:
    assert ROW.deadline == NOW
    assert ROW.later
    assert ROW.key == archive_key("J1") == ("job#J1", "archive")
    assert archives.wait(ROW, SPANS, NOW + 599 * SECOND) == replace(ROW, due=NOW + 659 * SECOND)
    assert archives.wait(ROW, SPANS, NOW + 600 * SECOND) is None


def test_a_log_is_short_below_32_kib() -> None:
    assert is_short(replace(batch(1, "one"), size=32 * 1024 - 1))
    assert not is_short(replace(batch(1, "one"), size=32 * 1024))


def test_it_begins_with_all_that_is_said_by_then() -> None:
    row = archives.begin(replace(ROW, since=NOW - SECOND), batch(4, "a", "b"), "A1", NOW)
    assert (row.state, row.artifact, row.end, row.next, row.since) == (ArchiveState.WRITING, "A1", 6, 1, NOW)
    assert row.last == replace(batch(6), version=0)
    assert (row.tries, row.due) == (1, NOW + RETRY_AFTER)
    assert ROW.end == 1


def test_each_try_is_later_than_the_last() -> None:
    waits = [archives.begin_step(replace(ROW, tries=tries), NOW).due for tries in (0, 1, 2, 1000)]
    assert waits == [
        NOW + RETRY_AFTER,
        NOW + 2 * RETRY_AFTER,
        NOW + 4 * RETRY_AFTER,
        NOW + timedelta(hours=6),
    ]


def test_what_is_not_there_is_begun_anew() -> None:
    row = replace(begun(batch(1, "a")), version=8, upload="u", parts=(ArchivePart("", 1, ""),), tries=2)
    later = NOW + SECOND
    assert archives.restart(row, later) == replace(ROW, since=later, version=8, tries=3, due=later + 4 * RETRY_AFTER)


def test_batches_are_lines_and_come_back() -> None:
    row, content = archives.encode_batch(
        begun(batch(1, "a", "é\n\x85\u2028")), batch(1, "a", "é\n\x85\u2028", task=None), 0
    )
    assert content.count(b"\n") == 2
    assert row.next == 3
    assert archives.decode(content) == [
        Event(1, 2, Line(NOW, "stdout", "a", None)),
        Event(2, 2, Line(NOW, "stdout", "é\n\x85\u2028", None)),
    ]
    assert content.startswith(b'{"seq":1,"time":"2026-01-02T03:04:05+00:00","stream":"stdout","task":null,')


def test_blocks_begin_with_batches_and_are_not_small() -> None:
    big = "x" * archives.BLOCK_BYTES
    row, written = begun(batch(9, "z")), 0
    for each in (batch(1, "a"), batch(2, big), batch(3, "b"), batch(4, "c"), batch(5, big, "d"), batch(7, "e")):
        row, content = archives.encode_batch(row, each, written)
        written += len(content)
    assert [first for first, _ in row.blocks] == [1, 3, 7]
    exact = replace(row, blocks=((1, 0),))
    assert archives.encode_batch(exact, batch(7, "f"), archives.BLOCK_BYTES)[0].blocks == (
        (1, 0),
        (7, archives.BLOCK_BYTES),
    )
    assert archives.encode_batch(exact, batch(7, "f"), archives.BLOCK_BYTES - 1)[0].blocks == ((1, 0),)
    after_a_part = replace(exact, parts=(ArchivePart("", archives.BLOCK_BYTES, ""),))
    assert archives.encode_batch(after_a_part, batch(7, "f"), 3)[0].blocks[-1] == (7, archives.BLOCK_BYTES + 3)


def test_parts_are_counted_until_all_is_written() -> None:
    row = replace(begun(batch(2, "b")), next=2)
    first = archives.add_part(row, b"one", "t1")
    assert (first.state, first.parts) == (
        ArchiveState.WRITING, (ArchivePart("t1", 3, sha256(b"one").hexdigest()),)
    )  # fmt: skip
    assert (first.size, first.digest, first.tries) == (3, sha256(b"one").hexdigest(), 0)
    second = archives.add_part(replace(first, next=3), b"two!", "t2")
    assert (second.state, second.size) == (ArchiveState.CHECKING, 7)
    assert second.digest == ""


def test_what_is_archived_is_due_until_its_rows_are_gone() -> None:
    row = archives.archived(replace(begun(batch(1, "a")), upload="u"), NOW + SECOND)
    assert (row.state, row.upload, row.tries, row.due) == (ArchiveState.ARCHIVED, "", 0, NOW + SECOND)
    assert row.since == NOW + SECOND
    assert archives.rows_deleted(row, NOW + SECOND).due is None


def test_rows_of_what_is_gone_are_looked_for_once_more() -> None:
    row = archives.gone(
        replace(begun(batch(1, "a")), upload="u", parts=(ArchivePart("", 1, ""),), blocks=((1, 0),)), NOW
    )
    assert (row.state, row.since, row.due, row.upload, row.parts, row.blocks) == (
        ArchiveState.GONE, NOW, NOW, "", (), ()
    )  # fmt: skip
    assert archives.rows_deleted(row, NOW + archives.LATE_ROWS_WITHIN - SECOND).due == NOW + archives.LATE_ROWS_WITHIN
    assert archives.rows_deleted(row, NOW + archives.LATE_ROWS_WITHIN).due is None


def test_a_short_log_that_is_deleted_is_gone_from_the_start() -> None:
    row = archives.never_archived("J1", NOW)
    assert (row.job, row.state, row.since, row.settled, row.due) == ("J1", ArchiveState.GONE, NOW, NOW, NOW)
    assert archives.rows_deleted(row, NOW).due == NOW + archives.LATE_ROWS_WITHIN


@pytest.mark.parametrize(
    ("after", "expected"), [(0, (0, 10)), (3, (0, 10)), (4, (10, 20)), (8, (10, 20)), (9, (30, 3)), (10, (30, 3))]
)
def test_a_line_is_found_by_its_block(after: int, expected: tuple[int, int]) -> None:
    row = replace(begun(batch(11, "z")), blocks=((1, 0), (5, 10), (10, 30)), parts=(ArchivePart("", 33, ""),))
    assert archives.block(row, after) == expected


def test_behind_its_end_there_is_no_block() -> None:
    row = replace(begun(batch(11, "z")), blocks=((1, 0),), parts=(ArchivePart("", 33, ""),))
    assert archives.block(row, 11) is None
    assert archives.block(row, 10) == (0, 33)


def test_it_is_written_with_the_end_of_a_job() -> None:
    goes_on = job()
    assert archive_when_settled(goes_on, SPANS) is None
    over = replace(goes_on, times=replace(goes_on.times, settled=NOW))
    assert archive_when_settled(over, SPANS) == replace(ROW, job=over.id, due=NOW + 60 * SECOND)
