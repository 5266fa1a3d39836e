"""Failures of a factory with several alternatives, such as zones: which are shortages, and what error is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, Shortage
from penstock.ports import Order

SEARCH_SECONDS = 40
"""Seconds from the beginning of a `create` after which it tries no other alternative.

A call of a driver is broken off after 60 (`CALL_SECONDS` of the use cases), and what it met would be lost with it. What
is left is for the last call for an alternative, which takes some seconds.
"""

NO_TIME = "; there was no time for the other alternatives"


class Means(Protocol):
    """What a failure means: the error, which alternatives meet the same, and whether other orders should avoid it."""

    @property
    def kind(self) -> type[DriverError]: ...

    @property
    def reach(self) -> StrEnum | None: ...

    @property
    def is_shortage(self) -> bool: ...


class Alternative(Protocol):
    """One alternative, with the scopes of every shortage that affects it."""

    @property
    def scopes(self) -> frozenset[str]: ...


Met: TypeAlias = tuple[Shortage, Means]
"""A failure that an alternative met, named like a shortage, and what it means."""


def lateness(monotonic: Callable[[], float]) -> Callable[[], bool]:
    """What tells from now on whether it is too late for another alternative."""
    until = monotonic() + SEARCH_SECONDS
    return lambda: monotonic() >= until


def has_alternative(order: Order, ways: Iterable[Alternative]) -> bool:
    """Whether there is an alternative that an order does not avoid."""
    return not all(way.scopes.intersection(order.avoid) for way in ways)


def shared(failures: Sequence[Met]) -> list[Shortage]:
    """The shortages that other orders should avoid."""
    return [shortage for shortage, means in failures if means.is_shortage]


def final_error(failures: Sequence[Met], more: str = "", *, untried: bool = False) -> DriverError:
    """The error after the last alternative, or, `untried`, after the last that there was time for; `more` ends its
    message. It is Misconfigured if no failure is a shortage, which ends by itself.

    If some are untried, it names every failure, so that the next `create` does not spend its time on the same ones.
    """
    if not failures:
        return NoCapacity("every alternative is in a cool-down because of a recent shortage")
    why = "; ".join(shortage.why for shortage, _ in failures) + NO_TIME * untried + more
    kinds = {means.kind for _, means in failures}
    if kinds == {Misconfigured} and not untried:
        return Misconfigured(why)
    kind = QuotaReached if kinds == {QuotaReached} else NoCapacity
    return kind(why, [shortage for shortage, _ in failures] if untried else shared(failures), untried=untried)
