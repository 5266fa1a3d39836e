"""A log is numbered without gaps and has each line of the agent once, whatever is repeated or interleaved."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.logs import logs
from penstock.domain.logs.logs import (
    CONTROL,
    LAST_BYTES,
    LAST_EVENTS,
    SERVICE_BYTES,
    SERVICE_EVENTS,
    SERVICE_LIMIT_NOTICE,
    Batch,
    Line,
    LogLimits,
    append_agent_lines,
    append_service_lines,
    events,
)
from penstock.kernel import limits
from tests.domain.helpers import NOW

MOST = LogLimits(1000, 10_000)
ROOM = 32
"""What a line takes besides its text."""


def line(text: str, stream: str = "stdout") -> Line:
    return Line(NOW, stream, text, 0)


@st.composite
def histories(draw: Any) -> list[tuple[int, int, int]]:
    """What happens to a log: (attempt, first, count): our own lines with first 0, else an agent's, with repeats."""
    done: list[tuple[int, int, int]] = []
    for attempt in range(1, draw(st.integers(1, 3)) + 1):
        heard = 0
        for _ in range(draw(st.integers(0, 6))):
            if draw(st.booleans()):
                done.append((attempt, 0, draw(st.integers(1, 3))))
                continue
            first = draw(st.integers(1, heard + 1))
            count = draw(st.integers(1, 4))
            done.append((attempt, first, count))
            heard = max(heard, first + count - 1)
    return done


def replay(history: list[tuple[int, int, int]]) -> list[Batch]:
    batches: list[Batch] = []
    for attempt, first, count in history:
        last = batches[-1] if batches else None
        if first == 0:
            said = append_service_lines(last, "J1", attempt, [line("ours", CONTROL)] * count)
            batches += [said] if said else []
            continue
        sent = [line(f"{attempt}:{number}") for number in range(first, first + count)]
        heard = append_agent_lines(last, "J1", attempt, first, sent, MOST)
        batches += [heard] if heard else []
    return batches


@given(histories())
def test_numbers_have_no_gaps(history: list[tuple[int, int, int]]) -> None:
    after = 1
    for batch in replay(history):
        assert batch.first == after
        assert batch.lines
        after = batch.end


@given(histories())
def test_every_line_of_an_agent_is_stored_once_and_in_order(history: list[tuple[int, int, int]]) -> None:
    stored = [one.payload for batch in replay(history) for one in batch.lines if one.stream == "stdout"]
    sent = {(attempt, number) for attempt, first, count in history if first for number in range(first, first + count)}
    assert stored == [f"{attempt}:{number}" for attempt, number in sorted(sent)]


@given(histories())
def test_our_own_lines_are_all_stored(history: list[tuple[int, int, int]]) -> None:
    stored = sum(one.stream == CONTROL for batch in replay(history) for one in batch.lines)
    assert stored == sum(count for _, first, count in history if first == 0)


@given(histories())
def test_sizes_only_grow(history: list[tuple[int, int, int]]) -> None:
    sizes = [batch.size for batch in replay(history)]
    assert sizes == sorted(set(sizes))


def test_one_of_two_writers_at_the_same_end_of_a_log_wins() -> None:
    last = append_service_lines(None, "J1", 1, [line("a")])
    heard = append_agent_lines(last, "J1", 1, 1, [line("b")], MOST)
    assert heard
    assert heard.key == append_service_lines(last, "J1", 1, [line("c")]).key


def test_nothing_sent_is_nothing_stored() -> None:
    assert append_agent_lines(None, "J1", 1, 1, [], MOST) is None


def ends(size: int, first: int = 1, **told: Any) -> Batch:
    """The last batch of a log that has so many bytes."""
    return Batch(job="J1", first=first, attempt=1, lines=(line("x"),), heard_of=1, heard=1, size=size, **told)


def payloads(batch: Batch | None) -> list[str]:
    return [one.payload.split(":")[0] for one in batch.lines] if batch else []


NOTICE = "the log has reached its limit of 1000 lines or 10000 bytes"


def test_a_log_that_is_full_says_so_once_and_drops_output() -> None:
    notice = append_agent_lines(ends(10_000), "J1", 1, 2, [line("yy"), line("é", "stderr")], MOST)
    assert notice
    assert payloads(notice) == [NOTICE]
    assert notice.lines[0].stream == CONTROL
    assert notice.lines[0].payload.endswith(": output that follows is dropped, and the job goes on")
    assert (notice.full, notice.dropped, notice.dropped_bytes, notice.heard) == (True, 2, 4, 3)
    assert notice.size == 10_000 + len(notice.lines[0].payload) + ROOM
    assert append_agent_lines(notice, "J1", 1, 4, [line("more")], MOST) is None
    assert append_agent_lines(notice, "J1", 1, 2, [line("yy"), line("é", "stderr")], MOST) is None


def test_what_fits_is_kept_before_the_rest_is_dropped() -> None:
    heard = append_agent_lines(ends(10_000 - 40), "J1", 1, 2, [line("y"), line("z" * 8), line("z")], MOST)
    assert heard
    assert (payloads(heard), heard.dropped, heard.dropped_bytes) == (["y", NOTICE], 2, 9)


def test_the_last_bytes_and_the_last_line_of_a_log_are_used() -> None:
    for almost in (ends(10_000 - ROOM - 1), ends(33, first=999)):
        heard = append_agent_lines(almost, "J1", 1, 2, [line("y")], MOST)
        assert heard
        assert (heard.lines, heard.size, heard.full) == ((line("y"),), almost.size + ROOM + 1, False)
        assert heard.dropped == 0


def test_a_log_with_all_its_lines_is_full() -> None:
    assert payloads(append_agent_lines(ends(33, first=1000), "J1", 1, 2, [line("y")], MOST)) == [NOTICE]


def test_what_the_agent_itself_says_still_finds_room() -> None:
    heard = append_agent_lines(ends(10_000), "J1", 1, 2, [line("y"), line("exited", "task")], MOST)
    assert payloads(heard) == [NOTICE, "exited"]
    assert heard
    assert (heard.dropped, heard.full) == (1, True)
    told = append_agent_lines(heard, "J1", 1, 4, [line("dropped 1", "worker")], MOST)
    assert told
    assert (payloads(told), told.full, told.dropped, told.dropped_bytes) == (["dropped 1"], True, 1, 1)


def test_what_the_agent_says_when_nothing_is_dropped_yet_makes_the_log_full() -> None:
    heard = append_agent_lines(ends(10_000), "J1", 1, 2, [line("exited", "task")], MOST)
    assert heard
    assert (payloads(heard), heard.full, heard.dropped) == ([NOTICE, "exited"], True, 0)


def test_what_the_agent_itself_says_is_bounded_too() -> None:
    lines, size = MOST.events + LAST_EVENTS, MOST.bytes + LAST_BYTES - ROOM - 1
    for full, fits in (
        (ends(9, first=lines - 1, full=True), True),
        (ends(9, first=lines, full=True), False),
        (ends(size, full=True), True),
        (ends(size + 1, full=True), False),
    ):
        assert payloads(append_agent_lines(full, "J1", 1, 2, [line("y", "task")], MOST)) == ["y"] * fits
    most = [line("y", "task")] * 3
    assert payloads(append_agent_lines(ends(9, first=lines - 2, full=True), "J1", 1, 2, most, MOST)) == ["y", "y"]


def test_what_was_dropped_is_counted_for_each_attempt() -> None:
    full = ends(10_000, full=True, dropped=5, dropped_bytes=50)
    heard = append_agent_lines(full, "J1", 2, 1, [line("y"), line("exited", "task")], MOST)
    assert heard
    assert (heard.heard_of, heard.heard, heard.dropped, heard.dropped_bytes) == (2, 2, 1, 1)
    said = append_service_lines(full, "J1", 2, [line("ours", CONTROL)])
    assert (said.full, said.dropped, said.dropped_bytes) == (True, 5, 50)


def test_we_can_still_speak_in_a_log_that_is_full() -> None:
    said = append_service_lines(replace(ends(10_001), version=7), "J1", 1, [line("the end", CONTROL)])
    assert (said.first, said.version, said.attempt, said.size) == (2, 0, 1, 10_001 + ROOM + 7)


def test_what_is_heard_is_a_new_row() -> None:
    heard = append_agent_lines(replace(ends(33), version=7), "J1", 2, 1, [line("y")], MOST)
    assert heard
    assert (heard.version, heard.attempt) == (0, 2)


def test_lines_have_the_numbers_of_their_batch() -> None:
    batch = append_service_lines(ends(33, first=4), "J1", 3, [line("a"), line("b")])
    assert [(one.seq, one.attempt, one.line) for one in events(batch)] == [(5, 3, line("a")), (6, 3, line("b"))]


@pytest.mark.parametrize("count", [1, 10**6])
def test_batches_sort_by_number(count: int) -> None:
    assert logs.batch_key("J1", count) < logs.batch_key("J1", count + 1) < logs.batch_key("J1", count * 100)


def texts(batch: Batch | None) -> list[str]:
    return [each.payload for each in batch.lines] if batch else []


def ours(count: int, text: str = "x") -> list[Line]:
    return [line(text, CONTROL)] * count


def told(before: Batch | None, lines: list[Line], **more: Any) -> Batch:
    batch = append_service_lines(before, "J1", 1, lines, **more)
    assert batch
    return batch


def test_our_own_lines_are_bounded_in_number_and_the_last_says_so() -> None:
    whole = told(None, ours(SERVICE_EVENTS))
    assert (len(whole.lines), whole.hushed) == (SERVICE_EVENTS, False)
    last = told(whole, ours(2))
    assert (texts(last), last.lines[0].stream, last.hushed) == ([SERVICE_LIMIT_NOTICE], CONTROL, True)
    assert append_service_lines(last, "J1", 2, ours(1)) is None
    assert texts(told(None, ours(SERVICE_EVENTS + 1)))[-2:] == ["x", SERVICE_LIMIT_NOTICE]


def test_our_own_lines_are_bounded_in_bytes() -> None:
    fits = "y" * (SERVICE_BYTES - 2 * ROOM - 1)
    first = told(None, ours(1, fits))
    second = told(first, ours(1))
    assert (texts(second), second.hushed, second.said_bytes) == (["x"], False, SERVICE_BYTES)
    assert texts(told(second, ours(1))) == [SERVICE_LIMIT_NOTICE]
    assert texts(told(first, ours(1, "xx"))) == [SERVICE_LIMIT_NOTICE]


def test_how_a_job_ended_always_finds_room() -> None:
    """JOB-1: whoever reads the log is told at least that."""
    full = told(told(None, ours(SERVICE_EVENTS)), ours(1))
    end = told(full, ours(2, "settled"), is_end=True)
    assert (texts(end), end.hushed, end.said) == (["settled"] * 2, True, SERVICE_EVENTS + 3)
    assert append_service_lines(end, "J1", 1, ours(1)) is None
    whole = told(None, ours(SERVICE_EVENTS))
    assert told(whole, ours(1, "settled"), is_end=True).hushed is False


def test_what_an_agent_says_is_not_ours() -> None:
    first = told(None, ours(3))
    heard = append_agent_lines(first, "J1", 1, 1, [line("its")] * 5, MOST)
    assert heard
    assert (heard.said, heard.said_bytes) == (3, first.said_bytes)
    assert told(heard, ours(1)).said == 4


def test_nothing_said_is_no_batch() -> None:
    assert append_service_lines(None, "J1", 1, []) is None


def test_lines_of_ours_come_in_pieces_that_each_fit_into_a_row() -> None:
    assert list(logs.parts([])) == []
    many = [line(str(number)) for number in range(limits.EVENTS_PER_BATCH + 1)]
    assert [list(piece) for piece in logs.parts(many)] == [many[:-1], many[-1:]]
    wide = [line("x" * 4096)] * (limits.EVENT_BATCH_BYTES // 4096)
    assert [len(piece) for piece in logs.parts(wide)] == [len(wide) - 1, 1], "each line also counts a little itself"
    (long,) = logs.parts([line("\U0001f600" * limits.EVENT_LINE_BYTES)])
    assert len(long[0].payload.encode()) == limits.EVENT_LINE_BYTES


@pytest.mark.parametrize(("seconds", "becomes"), [(-60, -30), (-30, -30), (0, 0), (5, 5), (60, 5)])
def test_no_line_is_before_or_after_two_times(seconds: int, becomes: int) -> None:
    line = logs.Line(NOW + timedelta(seconds=seconds), "stdout", "x")
    now = logs.within(line, NOW - timedelta(seconds=30), NOW + timedelta(seconds=5))
    assert now == replace(line, time=NOW + timedelta(seconds=becomes))
