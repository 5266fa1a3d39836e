"""Workers of one target that are broken, or do not boot, one after the other: its image is bad, and each costs money.

They are counted in the target's pool, by the write that gives a worker's slot back. A resource is broken when a canary
has failed on it.
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
    """Whether a unit was broken, or a worker was never heard of."""
    return unit.broken is not None or (unit.is_a is UnitKind.WORKER and unit.is_unheard)


def counted(pool: Pool, unit: Unit) -> Pool:
    """A unit's pool when a lease of it has ended: one more in a row that was bad, or none any more.

    A worker that was not waited for, as its job was cancelled, tells nothing, nor a resource that nobody looked at.
    """
    if pool.name != unit.pool:
        return pool
    if is_bad(unit):
        return replace(pool, broken=pool.broken + 1)
    return replace(pool, broken=0) if unit.past_hash else pool


def why(unit: Unit) -> str:
    """What was wrong with a worker."""
    return unit.broken or f"worker {unit.id} did not say hello in time"
