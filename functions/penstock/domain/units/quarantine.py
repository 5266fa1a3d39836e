"""Quarantine: units that no driver can put back. They keep their slots until an operator has dealt with them.

    dirty ──fails for good, or broken and cannot be made again──▶ quarantined ──released or recycled──▶ dirty
                                                                       └──removed by hand──▶ gone

Nothing automatic touches such a unit except a reminder: an operator moves it on. [UNIT-1]

Broken units are counted here too: when several workers of one target in a row are broken or do not boot, the image is
bad, and each further try costs money. The write that gives a worker's slot back counts it in the target's pool. A
resource is broken when a canary failed on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.units.units import (
    STEP_WITHIN,
    CleanProof,
    Unit,
    UnitKind,
    UnitState,
    add_entry,
    format_time,
    mark_gone,
    release_lease,
)
from penstock.kernel.errors import DriverError, Misconfigured, Refused, Unsatisfiable

REMINDER_INTERVAL = timedelta(days=1)
"""How often the journal records that a unit is still in quarantine."""

MAX_TRIES: Mapping[type[DriverError], int] = {
    # The driver itself says that it can never work. Not at the first word, for what it looked at may have been old.
    Unsatisfiable: 3,
    # Wrong settings are mostly those of the whole factory, and all its units go on when they are put right. 20 tries
    # take about two and a half hours; what is still refused then, for instance one host's key, is for somebody to see.
    Misconfigured: 20,
}
"""How often a driver may fail to destroy a unit before it is quarantined, by error.

Other errors are waited out, however long that takes: RateLimited, QuotaReached and NoCapacity end by themselves, and
Unknown is what an outage of the provider looks like. Waiting for a cloud that is down for three days is right.
"""


def count_failure(unit: Unit, error: DriverError) -> Unit:
    """A unit that its driver failed to destroy. Errors that waiting does not resolve are counted."""
    return replace(unit, health=replace(unit.health, stuck=unit.health.stuck + 1)) if type(error) in MAX_TRIES else unit


def is_stuck(unit: Unit, error: DriverError) -> bool:
    """Whether destroying a unit failed so often that trying again is pointless."""
    most = MAX_TRIES.get(type(error))
    return most is not None and unit.health.stuck >= most


def enter(unit: Unit, reason: str, now: datetime) -> Unit:
    """A quarantined unit; its lease is released if its attempt may go on.

    Raises ValueError for a unit that is not dirty.
    """
    if unit.state is not UnitState.DIRTY:
        raise ValueError(f"unit {unit.id} is {unit.state}, not dirty")
    unit = add_entry(release_lease(unit) if may_continue(unit) else unit, now, f"quarantined: {reason}")
    return replace(
        unit,
        state=UnitState.QUARANTINED,
        step=replace(unit.step, reason=reason, next_look=None, tries=0, busy=None),
        since=now,
        due=now + REMINDER_INTERVAL,
        health=replace(unit.health, stuck=0, reminders=0),
    )


def remind(unit: Unit, now: datetime) -> Unit:
    """A unit that is still in quarantine. The journal gets the first reminder, the second, the fourth, the eighth..."""
    count = unit.health.reminders + 1
    is_told = count & (count - 1) == 0  # its journal has few entries, and the older ones say what went wrong
    told = add_entry(unit, now, f"still quarantined, since {format_time(unit.since)}") if is_told else unit
    return replace(told, health=replace(told.health, reminders=count), due=now + REMINDER_INTERVAL)


def release(unit: Unit, what: str, now: datetime) -> Unit:
    """A unit that an operator released or recycled: its driver destroys it as usual, and failures are counted anew."""
    unit = add_entry(unit, now, f"{what}; it is to be destroyed")
    return replace(
        unit,
        state=UnitState.DIRTY,
        step=replace(unit.step, reason=what, next_look=None),
        health=replace(unit.health, broken=None, reminders=0),
        since=now,
        due=now + STEP_WITHIN,
        cleaning=replace(unit.cleaning, begun=unit.cleaning.begun or now),
    )


def removed(unit: Unit, by: str, checked: str, now: datetime) -> Unit:
    """A unit that an operator removed by hand, with the record of what they checked. [UNIT-2]

    Raises Refused 409 for a unit that is not in quarantine: its driver can destroy it.
    """
    if unit.state is not UnitState.QUARANTINED:
        said = f"{unit.is_a} {unit.id} is {unit.state}, not quarantined: its maker destroys it, and a word does not"
        raise Refused(409, "not-quarantined", said)
    proof = CleanProof(by=f"the operator {by}", time=now, checked=checked)
    return mark_gone(unit, proof, now)


def may_continue(unit: Unit) -> bool:
    """Whether the attempt's other units are released while this one is in quarantine: nothing runs on it. [JOB-2]

    Otherwise the attempt's resources stay as they are, and the job's next attempt waits.
    """
    return unit.is_a is UnitKind.RESOURCE or not unit.session.may_run


def describe(unit: Unit) -> str:
    """The quarantine of a unit as a sentence."""
    return f"{unit.is_a} {unit.id} is quarantined since {format_time(unit.since)}: {unit.step.reason}"


MAX_BROKEN_IN_A_ROW = 3
"""How many broken workers in a row cool their target down. One or two may be bad by chance; with three the image is
to blame.
"""

PROBE_WITHIN = timedelta(minutes=15)
"""How long one probe may take before the next one starts. Longer than the default boot deadline, which `boot` may
raise.
"""


def why_broken(unit: Unit) -> str:
    """What was wrong with a worker."""
    return unit.health.broken or f"worker {unit.id} did not say hello in time"
