"""Failures of a factory with several alternatives, such as zones: which are shortages, and what error is left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, Shortage
from penstock.ports import Order


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


def has_alternative(order: Order, ways: Iterable[Alternative]) -> bool:
    """Whether there is an alternative that an order does not avoid."""
    return not all(way.scopes.intersection(order.avoid) for way in ways)


def shared(failures: Sequence[Met]) -> list[Shortage]:
    """The shortages that other orders should avoid."""
    return [shortage for shortage, means in failures if means.is_shortage]


def final_error(failures: Sequence[Met], more: str = "") -> DriverError:
    """The error after the last alternative; `more` ends its message. It is Misconfigured if no failure is a shortage,
    which ends by itself.
    """
    if not failures:
        return NoCapacity("every alternative is in a cool-down because of a recent shortage")
    why = "; ".join(shortage.why for shortage, _ in failures) + more
    kinds = {means.kind for _, means in failures}
    if kinds == {Misconfigured}:
        return Misconfigured(why)
    return (QuotaReached if kinds == {QuotaReached} else NoCapacity)(why, shared(failures))
