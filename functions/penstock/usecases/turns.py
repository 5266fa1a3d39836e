"""Whose turn it is when a slot was freed."""

from __future__ import annotations

from datetime import timedelta

from penstock.domain.pools import leases
from penstock.domain.pools.leases import WORKER, Lease
from penstock.domain.units import retries, units
from penstock.domain.units.units import Unit, UnitState, unit_key
from penstock.system import System
from penstock.usecases import acquiring


def go_on(on: System, unit: Unit) -> None:
    """Who frees a slot hands it over, and passes the turn to the next lease of the attempt. [QUEUE-1]"""
    for pool in dict.fromkeys((unit.pool, *(pool for pool, _ in unit.also))):
        acquiring.serve(on, pool)
    left = leases.next_release(on.store.find(f"job#{unit.job}", leases.prefix(unit.attempt), Lease))
    if left and left.unit:
        on.queues.advance(left.unit, left.order == WORKER)
    if unit.order == WORKER and unit.job:
        on.queues.schedule({"do": "start", "job": unit.job})


def pause(on: System, unit: Unit) -> timedelta | None:
    """How long until a unit looks again whether it is its turn: the worker first, then resources in reverse order.

    None when it is. Who goes before it may be held by an operator: then it keeps all that comes after it, as it is.
    """
    turn = leases.next_release(on.store.find(f"job#{unit.job}", leases.prefix(unit.attempt), Lease))
    if turn is None or turn.order == unit.order:
        return None
    ahead = on.store.get(unit_key(turn.unit or ""), Unit)
    if ahead and ahead.state is UnitState.QUARANTINED:  # who ends that passes the turn on
        return retries.BACK_OFF_MOST
    if ahead and ahead.hold:
        return max(units.STEP_WITHIN, ahead.hold.until - on.world.now())
    return units.STEP_WITHIN
