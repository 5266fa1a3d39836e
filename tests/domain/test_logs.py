"""A log is numbered without gaps and has each line of the agent once, whatever is repeated or interleaved."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain import logs
from penstock.domain.logs import CONTROL, LOG_BYTES, Batch, Line, hear, say
from tests.domain.helpers import NOW


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
            batches.append(say(last, "J1", attempt, [line("ours", CONTROL)] * count))
            continue
        sent = [line(f"{attempt}:{number}") for number in range(first, first + count)]
        heard = hear(last, "J1", attempt, first, sent)
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


def test_of_two_writers_who_read_the_same_end_one_wins() -> None:
    last = say(None, "J1", 1, [line("a")])
    heard = hear(last, "J1", 1, 1, [line("b")])
    assert heard
    assert heard.key == say(last, "J1", 1, [line("c")]).key


def test_nothing_sent_is_nothing_stored() -> None:
    assert hear(None, "J1", 1, 1, []) is None


def test_a_log_that_is_full_says_so_once() -> None:
    full = Batch(job="J1", first=1, attempt=1, lines=(line("x"),), heard_of=1, heard=1, size=LOG_BYTES)
    notice = hear(full, "J1", 1, 2, [line("y"), line("z")])
    assert notice
    assert [(one.stream, one.payload.split(";")[0]) for one in notice.lines] == [
        (CONTROL, "the log has reached its limit of 64 MiB")
    ]
    assert hear(notice, "J1", 1, 4, [line("more")]) is None
    assert hear(notice, "J1", 1, 2, [line("y"), line("z")]) is None


def test_the_last_bytes_of_a_log_are_used() -> None:
    almost = Batch(job="J1", first=1, attempt=1, lines=(line("x"),), heard_of=1, heard=1, size=LOG_BYTES - 33)
    heard = hear(almost, "J1", 1, 2, [line("y")])
    assert heard
    assert (heard.lines, heard.size) == ((line("y"),), LOG_BYTES)


def test_we_can_still_speak_in_a_log_that_is_full() -> None:
    full = Batch(job="J1", first=1, attempt=1, lines=(line("x"),), heard_of=1, heard=1, size=LOG_BYTES + 1)
    assert say(full, "J1", 1, [line("the end", CONTROL)]).first == 2


@pytest.mark.parametrize("count", [1, 10**6])
def test_batches_sort_by_number(count: int) -> None:
    assert logs.batch_key("J1", count) < logs.batch_key("J1", count + 1) < logs.batch_key("J1", count * 100)
