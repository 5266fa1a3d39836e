"""Whose turn it is when a slot was freed."""

from __future__ import annotations

from penstock.domain import leases
from penstock.domain.leases import WORKER, Lease
from penstock.domain.units import Unit
from penstock.system import System
from penstock.usecases import acquiring


def go_on(on: System, unit: Unit) -> None:
    """Who frees a slot hands it over, and passes the turn to the next lease of the attempt. [QUEUE-1]"""
    for pool in dict.fromkeys((unit.pool, *(pool for pool, _ in unit.also))):
        acquiring.serve(on, pool)
    left = leases.next_release(on.store.find(f"job#{unit.job}", leases.prefix(unit.attempt), Lease))
    if left and left.unit:
        on.queues.advance(left.unit, left.order == WORKER)
    if unit.order == WORKER:
        on.queues.schedule({"do": "start", "job": unit.job})


def is_due(on: System, unit: Unit) -> bool:
    """Whether the units of its attempt that go before it are back: the worker first, then resources in reverse."""
    attempt = on.store.find(f"job#{unit.job}", leases.prefix(unit.attempt), Lease)
    turn = leases.next_release(attempt)
    return turn is None or turn.order == unit.order
