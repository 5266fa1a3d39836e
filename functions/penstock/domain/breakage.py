"""Workers of one target that are broken, or do not boot, one after the other: its image is bad, and each costs money.

They are counted in the target's pool, by the write that gives a worker's slot back.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from penstock.domain.pools import Pool
from penstock.domain.units import Unit, UnitKind

IN_A_ROW = 3
"""How many cool their target down. One machine may be bad by chance, and two; of three the image is to blame."""

PROBE_WITHIN = timedelta(minutes=15)
"""How long one may try before the next does. It is longer than the default boot deadline, which `boot` may raise."""


def is_bad(unit: Unit) -> bool:
    """Whether a worker was broken, or was never heard of."""
    return unit.is_a is UnitKind.WORKER and (unit.broken is not None or unit.is_unheard)


def counted(pool: Pool, unit: Unit) -> Pool:
    """A target's pool when one of its workers has ended a lease: one more in a row that was bad, or none any more.

    One that was not waited for, as its job was cancelled, tells nothing.
    """
    if unit.is_a is not UnitKind.WORKER or pool.name != unit.pool:
        return pool
    if is_bad(unit):
        return replace(pool, broken=pool.broken + 1)
    return replace(pool, broken=0) if unit.past_hash else pool


def why(unit: Unit) -> str:
    """What was wrong with a worker."""
    return unit.broken or f"worker {unit.id} did not say hello in time"
