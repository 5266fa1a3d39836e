"""Which of many comes first, where there may be too little time for all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypeVar

T = TypeVar("T")

MINUTE = timedelta(minutes=1)


def rotate(each: Sequence[T], now: datetime, every: timedelta = MINUTE) -> Sequence[T]:
    """All of them, in their order, beginning with another one each time that `every` is over.

    So none is always behind others that take all the time.
    """
    first = int(now.timestamp() // every.total_seconds()) % max(1, len(each))
    return (*each[first:], *each[:first])
