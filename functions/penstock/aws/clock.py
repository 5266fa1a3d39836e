"""The system clock and random numbers. No other module reads either."""

from __future__ import annotations

import os
import random
import secrets
import time
from datetime import UTC, datetime

from penstock.kernel import rows


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
        return random.randrange(count)

    def pause(self, tries: int) -> None:
        """Full jitter: up to 10 ms, doubled with every try, at most 0.5 s.

        Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
        """
        time.sleep(random.uniform(0, min(0.5, 0.01 * 2**tries)))


def back_off(tries: int) -> None:
    """Wait before a throttled request is repeated: half to all of 0.1 s, doubled with every try, at most 1 s."""
    time.sleep(min(1, 0.1 * 2**tries) * random.uniform(0.5, 1))
