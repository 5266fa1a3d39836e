"""The system clock, its alarm, and random numbers. No other module reads any of them."""

from __future__ import annotations

import os
import random
import secrets
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from penstock.kernel import rows
from penstock.kernel.errors import TimeLimit

RANDOM = random.SystemRandom()
"""It keeps no state, which all processes that Lambda starts from one snapshot would share.

Source: Lambda Developer Guide, Handling uniqueness with Lambda SnapStart.
"""

AGAIN = 1.0
"""Seconds after which a block that went on after its limit is broken off again."""


class RealWorld:
    """The system's clock and its source of random numbers."""

    def now(self) -> datetime:
        """The time, in UTC."""
        return datetime.now(UTC)

    def ulid(self) -> str:
        """A new id."""
        return rows.ulid(self.now(), os.urandom(rows.RANDOM_BYTES))

    def secret(self) -> str:
        """256 random bits as text."""
        return secrets.token_urlsafe(32)

    def draw(self, count: int) -> int:
        """A number from 0 on below a count."""
        return RANDOM.randrange(count)

    def pause(self, tries: int) -> None:
        """Full jitter: up to 10 ms, doubled with every try, at most 0.5 s.

        Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
        """
        time.sleep(RANDOM.uniform(0, min(0.5, 0.01 * 2**tries)))

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Break the block off after some seconds. Python does that in the main thread only, where functions run.

        It is a signal, so that nothing of the block goes on beside what follows it. What does not return to Python, or
        goes on for ever in spite of it, ends with the function's process.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        is_over = False

        def break_off(*_: object) -> None:
            if not is_over:
                raise TimeLimit

        before = signal.signal(signal.SIGALRM, break_off)
        timer = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
        try:
            yield
        finally:
            is_over = True
            signal.setitimer(signal.ITIMER_REAL, *timer)
            signal.signal(signal.SIGALRM, before)


def back_off(tries: int) -> None:
    """Wait before a throttled request is repeated: half to all of 0.1 s, doubled with every try, at most 1 s."""
    time.sleep(min(1, 0.1 * 2**tries) * RANDOM.uniform(0.5, 1))
