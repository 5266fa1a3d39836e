"""How many calls a second a site wants to make that change something at one factory or well: a bucket of tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil
from typing import ClassVar

from penstock.domain.cooling import collection, spread
from penstock.kernel.rows import Key, Row


@dataclass(frozen=True, kw_only=True)
class Budget(Row):
    """The bucket of one maker: what was left in it, and when."""

    kind: ClassVar[str] = "budget"
    maker: str
    tokens: float
    at: datetime

    @property
    def key(self) -> Key:
        return budget_key(self.maker)

    @property
    def expiry(self) -> datetime | None:
        return self.at + timedelta(days=1)  # it is full again long before


def budget_key(maker: str) -> Key:
    """Where a maker's bucket is."""
    return Key(collection(maker), "budget")


def take(row: Budget | None, maker: str, rate: float, now: datetime) -> Budget | None:
    """The bucket after a token was taken; None when there is none. It holds what falls into it in a second."""
    most = max(1.0, rate)
    tokens = _tokens(row, rate, now) if row else most
    if tokens < 1:
        return None
    return replace(row, tokens=tokens - 1, at=now) if row else Budget(maker=maker, tokens=tokens - 1, at=now)


def wait(row: Budget, rate: float, unit: str, now: datetime) -> int:
    """In how many seconds a unit that got no token looks again: when there is one, and not all at once."""
    until = max(0.0, 1 - _tokens(row, rate, now)) / rate
    return ceil(until) + spread(unit, 5) - 1


def _tokens(row: Budget, rate: float, now: datetime) -> float:
    passed = max(0.0, (now - row.at).total_seconds())
    return min(max(1.0, rate), row.tokens + passed * rate)
