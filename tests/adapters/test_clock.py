"""A block is broken off when its time is over, whatever it does."""

from __future__ import annotations

import random
import signal
import threading
import time

import pytest

from penstock.aws import clock
from penstock.aws.clock import RealWorld
from penstock.kernel.errors import TimeLimit

LONG = 60.0
"""Seconds that no test waits."""


def test_a_block_is_broken_off() -> None:
    with pytest.raises(TimeLimit), RealWorld().limit(0.01):
        time.sleep(LONG)


def test_a_block_that_goes_on_in_spite_of_it_is_broken_off_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "AGAIN", 0.01)
    times = []

    def stubborn() -> None:
        for _ in range(2):
            try:
                time.sleep(LONG)
            except BaseException:  # a driver that catches all there is
                times.append(1)
        time.sleep(LONG)

    with pytest.raises(TimeLimit), RealWorld().limit(0.01):
        stubborn()
    assert len(times) == 2


def test_after_the_block_all_is_as_before() -> None:
    handler, timer = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    with RealWorld().limit(LONG):
        assert signal.getitimer(signal.ITIMER_REAL)[0] <= LONG
        assert signal.getsignal(signal.SIGALRM) is not handler
    assert signal.getsignal(signal.SIGALRM) is handler
    assert signal.getitimer(signal.ITIMER_REAL)[0] == pytest.approx(timer[0], abs=LONG)
    assert bool(signal.getitimer(signal.ITIMER_REAL)[0]) == bool(timer[0])


def test_an_error_of_the_block_is_passed_on() -> None:
    handler = signal.getsignal(signal.SIGALRM)
    with pytest.raises(KeyError), RealWorld().limit(LONG):
        raise KeyError
    assert signal.getsignal(signal.SIGALRM) is handler


def test_another_thread_has_no_limit() -> None:
    """Python breaks off its main thread only."""
    handler, found = signal.getsignal(signal.SIGALRM), []

    def run() -> None:
        with RealWorld().limit(LONG):
            found.append(signal.getsignal(signal.SIGALRM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [handler]


def test_no_handler_of_an_error_takes_it_for_its_own() -> None:
    assert not issubclass(TimeLimit, Exception)


def test_two_processes_of_one_snapshot_draw_different_numbers() -> None:
    """What `random` would draw next is a part of the snapshot."""
    before, world = random.getstate(), RealWorld()
    first = [world.draw(1 << 30) for _ in range(4)]
    random.setstate(before)
    assert [world.draw(1 << 30) for _ in range(4)] != first
