"""When it can be believed that nothing is left of a unit: what is outside shows itself late. [UNIT-1]

A driver that found nothing says by how much what it looked at may be behind. That counts from the last moment at which
something may have been made: who waited for capacity was launched long after it was ordered.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil

from penstock.domain.retries import BACK_OFF
from penstock.domain.units import CleanProof, Unit

CALL_WITHIN = timedelta(minutes=2)
"""How long a call that makes something may be under way. No function of a factory or well lives longer."""

WHY = "what was just made may not be listed yet"


def wait(unit: Unit, proof: CleanProof) -> int:
    """In how many seconds it is looked for again, as the proof comes too early; 0 when it is believed."""
    left = _believed(unit, timedelta(seconds=proof.lag)) - proof.time if proof.lag else timedelta()
    return max(0, ceil(min(left, BACK_OFF).total_seconds()))


def _believed(unit: Unit, lag: timedelta) -> datetime:
    """From when on absence is believed. Nobody begins to make what is made, nor what no lease wants any more.

    When it was made is written after the call, so that this one is over; of what is not known to be, one may be under
    way. It is when that began after its driver had found nothing of it: then it would have been written before.
    """
    return unit.made + lag if unit.made else (unit.bare or unit.since) + CALL_WITHIN + lag
