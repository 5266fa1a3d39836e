"""How many decisions the domain makes in a second on one core: pure functions over plain values."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from penstock.domain.jobs import outcome
from penstock.domain.jobs.jobs import Report, Result, State
from penstock.domain.pools import capacity, grants, pools
from penstock.domain.pools.grants import Stock
from penstock.domain.pools.pools import LeaseState
from penstock.domain.units import units
from penstock.domain.units.units import CleanProof, UnitState
from penstock.kernel.rows import Create, holds
from tests.domain.helpers import NOW, claim, job, lease, pool, slot, unit
from tests.rows import changed

SECONDS = 0.5
"""How long each is repeated."""


def rates() -> dict[str, float]:
    """Decisions in a second, by what is decided."""
    return {name: _rate(decide) for name, decide in _decisions().items()}


def _rate(decide: Callable[[], object]) -> float:
    count, began = 0, time.process_time()
    while (spent := time.process_time() - began) < SECONDS:
        for _ in range(100):
            decide()
        count += 100
    return count / spent


def _decisions() -> dict[str, Callable[[], object]]:
    free = [slot(str(number)) for number in range(3)]
    queue = [claim(f"J{number:02d}", count=9 if number < 8 else 1) for number in range(grants.WINDOW)]
    stocks = {"resource/bench": Stock(pool(), queue, free)}
    held = pools.take(free[0], queue[0], 1, "r-1", NOW)
    running = changed(job(state=State.RUNNING), report=Report(Result.SUCCEEDED, "the script ended", NOW, 0))
    made, dirty = unit(), unit(state=UnitState.DIRTY)
    proof = CleanProof("lock", NOW, "r-1")
    attempt = [lease(order, LeaseState.RELEASING) for order in range(4)]
    many = [slot(str(number)) for number in range(100)]
    return {
        "`grants.pick`, the first eight of sixteen must wait": lambda: grants.pick("resource/bench", stocks),
        "`pools.take` and its changes": lambda: pools.move(free[0], pools.take(free[0], queue[0], 1, "r-1", NOW)),
        "`pools.give_back` and its changes": lambda: pools.move(held, pools.give_back(held)),
        "`outcome.conclude`, by its report": lambda: outcome.conclude(running, None, None, NOW),
        "`units.hello`": lambda: units.hello(made, "hash", NOW, timedelta(minutes=2)),
        "`units.mark_gone`": lambda: units.mark_gone(dirty, proof, NOW),
        "`leases.next_release` of four": lambda: pools.next_release(attempt, lambda lease: lease),
        "`rows.holds`": lambda: holds(Create(made), None),
        "`capacity.fit` of a hundred slots": lambda: capacity.fit(pool(limit=100), many),
    }
