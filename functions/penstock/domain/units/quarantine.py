"""Quarantine: units that no step of ours can put back. They keep what they take until an operator has seen to them.

    dirty ──what time does not mend, or broken and not to be made anew──▶ quarantined ──released, recycled──▶ dirty
                                                                             └──removed by hand──▶ gone

Nothing that happens by itself touches such a unit but a reminder: an operator moves it on. [UNIT-1]

Workers of one target that are broken, or do not boot, one after the other: its image is bad, and each costs money.

They are counted in the target's pool, by the write that gives a worker's slot back. A resource is broken when a canary
has failed on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.pools.pools import Pool
from penstock.domain.units.units import (
    STEP_WITHIN,
    CleanProof,
    Unit,
    UnitKind,
    UnitState,
    add_entry,
    format_time,
    mark_gone,
)
from penstock.kernel.errors import DriverError, Misconfigured, Refused, Unsatisfiable

REMINDER_INTERVAL = timedelta(days=1)
"""How often it is noted that a unit is still in quarantine."""

MAX_TRIES: Mapping[type[DriverError], int] = {
    # The driver itself says that it can never work. Not at the first word, for what it looked at may have been old.
    Unsatisfiable: 3,
    # Wrong settings are mostly those of the whole factory, and all its units go on when they are put right. 20 tries
    # take about two and a half hours; what is still refused then, for instance one host's key, is for somebody to see.
    Misconfigured: 20,
}
"""How often a driver may fail to destroy a unit before it is quarantined, by error.

What is not in the table is waited for, however long it takes: RateLimited, QuotaReached and NoCapacity end by
themselves, and Unknown is what an outage of the provider looks like. Waiting for a cloud that is down for three days is
right.
"""


def count_failure(unit: Unit, error: DriverError) -> Unit:
    """A unit that could not be destroyed: what time does not mend is counted."""
    return replace(unit, stuck=unit.stuck + 1) if type(error) in MAX_TRIES else unit


def is_stuck(unit: Unit, error: DriverError) -> bool:
    """Whether a unit could not be destroyed so often that trying again is of no use."""
    most = MAX_TRIES.get(type(error))
    return most is not None and unit.stuck >= most


def enter(unit: Unit, reason: str, now: datetime) -> Unit:
    """A unit that is kept apart. Raises ValueError for one that is not to be destroyed."""
    if unit.state is not UnitState.DIRTY:
        raise ValueError(f"unit {unit.id} is {unit.state}, not dirty")
    unit = add_entry(unit, now, f"quarantined: {reason}")
    return replace(
        unit, state=UnitState.QUARANTINED, reason=reason, since=now, due=now + REMINDER_INTERVAL, next_look=None,
        tries=0, stuck=0, reminders=0,
    )  # fmt: skip


def remind(unit: Unit, now: datetime) -> Unit:
    """A unit that is still in quarantine; counted, and noted the first time, the second, the fourth, the eighth..."""
    count = unit.reminders + 1
    is_told = count & (count - 1) == 0  # its journal has few entries, and the older ones say what went wrong
    told = add_entry(unit, now, f"still quarantined, since {format_time(unit.since)}") if is_told else unit
    return replace(told, reminders=count, due=now + REMINDER_INTERVAL)


def release(unit: Unit, what: str, now: datetime) -> Unit:
    """A unit that an operator has seen to: it is destroyed in the ordinary way, and its tries are counted anew."""
    unit = add_entry(unit, now, f"{what}; it is to be destroyed")
    return replace(
        unit, state=UnitState.DIRTY, reason=what, broken=None, since=now, due=now + STEP_WITHIN, next_look=None,
        reminders=0, begun=unit.begun or now,
    )  # fmt: skip


def removed(unit: Unit, by: str, checked: str, now: datetime) -> Unit:
    """A unit that an operator has removed by hand, and says what they have checked. [UNIT-2]

    Raises Refused 409 for one that is not in quarantine: what can be destroyed, is.
    """
    if unit.state is not UnitState.QUARANTINED:
        said = f"{unit.is_a} {unit.id} is {unit.state}, not quarantined: its maker destroys it, and a word does not"
        raise Refused(409, "not-quarantined", said)
    proof = CleanProof(by=f"the operator {by}", time=now, checked=checked)
    return mark_gone(unit, proof, now)


def may_continue(unit: Unit) -> bool:
    """Whether what comes after a unit goes on while it is in quarantine: nothing of its attempt runs on it. [JOB-2]

    Else its attempt's resources stay as they are, and the job's next attempt waits.
    """
    return unit.is_a is UnitKind.RESOURCE or not unit.may_run


def describe(unit: Unit) -> str:
    """A unit in quarantine as a sentence."""
    return f"{unit.is_a} {unit.id} is quarantined since {format_time(unit.since)}: {unit.reason}"


MAX_BROKEN_IN_A_ROW = 3
"""How many cool their target down. One machine may be bad by chance, and two; of three the image is to blame."""

PROBE_WITHIN = timedelta(minutes=15)
"""How long one may try before the next does. It is longer than the default boot deadline, which `boot` may raise."""


def is_broken(unit: Unit) -> bool:
    """Whether a unit was broken, or a worker was never heard of."""
    return unit.broken is not None or (unit.is_a is UnitKind.WORKER and unit.is_unheard)


def count_broken(pool: Pool, unit: Unit) -> Pool:
    """A unit's pool when a lease of it has ended: one more in a row that was bad, or none any more.

    A worker that was not waited for, as its job was cancelled, tells nothing, nor a resource that nobody looked at.
    """
    if pool.name != unit.pool:
        return pool
    if is_broken(unit):
        return replace(pool, broken=pool.broken + 1)
    return replace(pool, broken=0) if unit.past_hash else pool


def why_broken(unit: Unit) -> str:
    """What was wrong with a worker."""
    return unit.broken or f"worker {unit.id} did not say hello in time"
