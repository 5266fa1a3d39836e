"""Every reader takes what it begins with, what was found once, and some of what is made of both."""

from __future__ import annotations

import random

import pytest

from tests.fuzz import hunt
from tests.fuzz.targets import READERS, Reader

TRIES = 100
"""How many inputs are made here; `python -m tests.fuzz` makes them for minutes, and sees which branches they take."""


@pytest.mark.parametrize("name", READERS)
def test_what_was_found_once_is_read(name: str) -> None:
    read = READERS[name].read()
    for content in hunt.regressions(name):
        read(content)


@pytest.mark.parametrize("reader", READERS.values(), ids=lambda reader: reader.name)
def test_what_is_made_of_what_is_right_is_read(reader: Reader) -> None:
    dice, read = random.Random(reader.name), reader.read()
    seeds = list(reader.begins())
    for content in seeds:
        read(content)
    for _ in range(TRIES):
        read(_changed(dice, dice.choice(seeds), dice.choice(seeds)))


def _changed(dice: random.Random, one: bytes, other: bytes) -> bytes:
    """One input with a part of it gone, a part of another in it, and a byte that is another."""
    start, end = sorted(dice.randrange(len(one) + 1) for _ in range(2))
    at, to = sorted(dice.randrange(len(other) + 1) for _ in range(2))
    made = bytearray(one[:start] + other[at : min(to, at + 40)] + one[min(end, start + 40) :])
    if made:
        made[dice.randrange(len(made))] = dice.randrange(256)
    return bytes(made)


def test_a_reader_that_is_wrong_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: what one of the readers was found to do is found again."""
    from penstock.agent.tasks import BmatRequests

    monkeypatch.setattr(BmatRequests, "answer", lambda requests, line: b"[]")
    with pytest.raises(AssertionError):
        READERS["bmat"].read()(b'{"do": "facts"}')
