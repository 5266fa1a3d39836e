"""The key of a job's log: whoever has it reads that log without a token, for 10 to 20 minutes. [SEC-2]

A cache that many readers share does not ask us who reads. So the address says that somebody was allowed to, a short
while ago.
docs/decisions/0092-readers-of-one-log-share-a-cache.md
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime, timedelta

WINDOW = timedelta(minutes=10)
"""All who ask within one window get the same key, so that they share what is cached."""

PATTERN = "[0-9]{1,10}[.][0-9a-f]{64}"


def key(secret: str, job: str, now: datetime) -> str:
    """The key of a job's log for the present window and the next."""
    return _key(secret, job, _window(now))


def is_good(shown: str, secret: str, job: str, now: datetime) -> bool:
    """Whether a key is that of the present window or the one before. [SEC-2]"""
    window, given = _window(now), shown.encode("utf-8", "replace")
    good = [_key(secret, job, each).encode() for each in (window, window - 1)]
    return any([hmac.compare_digest(given, each) for each in good])


def _window(now: datetime) -> int:
    return int(now.timestamp() // WINDOW.total_seconds())


def _key(secret: str, job: str, window: int) -> str:
    text = f"log/{job}/{window}"
    return f"{window}.{hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()}"
