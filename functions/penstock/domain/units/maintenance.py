"""What operators do with a unit, and when they are refused: hold, release, drain, recycle, see its console. [UNIT-3]

A hold can be set until a driver or the worker's agent may have started to clean or destroy the unit. That moment is a
commit of its own (`Unit.begun`), made before the call. So either the hold comes first and nothing is called, or the
call comes first and the hold is refused.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.units import quarantine
from penstock.domain.units.reuse import renew
from penstock.domain.units.units import (
    CLEAN_WITHIN,
    HOLD_MOST,
    HOLD_REASON_CHARS,
    STEP_WITHIN,
    Drain,
    Hold,
    Journal,
    Unit,
    UnitKind,
    UnitState,
    add_entry,
    format_time,
    is_held,
    is_prewarming,
    lease_due,
)
from penstock.kernel.errors import Refused

PARKED = (UnitState.CLEANING, UnitState.IDLE, UnitState.DIRTY)
"""The states in which a held unit waits for its operator; it is due when its hold ends."""


ENDING = (UnitState.DIRTY, UnitState.QUARANTINED)
"""The states from which a unit is never leased again."""


def check(reason: str, seconds: int | None = None, *, required: bool = False) -> None:
    """Check a reason and a duration. Raises Refused 400."""
    if required and not reason.strip():
        raise Refused(400, "bad-request", "reason must say why, for others to read")
    if len(reason) > HOLD_REASON_CHARS or any(not char.isprintable() for char in reason):
        raise Refused(
            400, "bad-request", f"reason is one line of at most {HOLD_REASON_CHARS} characters that can be printed"
        )
    if seconds is not None and not 1 <= seconds <= HOLD_MOST:
        raise Refused(
            400, "bad-request", f"a hold is for 1 second to {HOLD_MOST // 86400} days; hold again to have more"
        )


def hold(unit: Unit, by: str, reason: str, seconds: int, now: datetime) -> Unit:
    """A held unit. A new hold replaces the last one. Raises Refused 409."""
    _must_exist(unit)
    if unit.state is UnitState.QUARANTINED:
        said = f"{quarantine.describe(unit)}; nothing touches it until an operator releases or recycles it"
        raise Refused(409, "quarantined", said)
    if unit.cleaning.begun:
        doing = "cleaned" if unit.state is UnitState.CLEANING else "destroyed"
        said = f"{unit.is_a} {unit.id} is being {doing} since {format_time(unit.cleaning.begun)} ({unit.step.reason})"
        raise Refused(409, "too-late-to-hold", f"{said}: it is too late to hold it")
    if unit.drain and unit.drain.at_once:
        raise Refused(409, "too-late-to-hold", f"{unit.is_a} {unit.id} is {unit.drain}: it is too late to hold it")
    kept = Hold(by, reason, now, now + timedelta(seconds=seconds))
    held = replace(unit, hold=kept, due=kept.until if unit.state in PARKED else unit.due)
    is_leased = unit.state is UnitState.READY and unit.is_a is UnitKind.RESOURCE
    return add_entry(replace(held, due=lease_due(held)) if is_leased else held, now, str(kept))


def release(unit: Unit, by: str | None, now: datetime, lease: timedelta) -> Unit:
    """A unit without its hold: what the hold delayed goes on. `by` is None when the hold expired.

    A quarantined unit is released in the same way: its operator has repaired it. Raises Refused 409 for a unit that is
    neither. `lease`: how long an idle worker may be silent.
    """
    if unit.state is UnitState.QUARANTINED:
        return quarantine.release(unit, f"released from quarantine by {by}", now)
    if unit.hold is None:
        raise Refused(409, "not-held", f"{unit.is_a} {unit.id} is not held")
    what = f"released by {by}" if by else f"the hold of {unit.hold.by} ran out"
    free = add_entry(replace(unit, hold=None, step=replace(unit.step, next_look=None)), now, what)
    is_worker = unit.is_a is UnitKind.WORKER
    if is_prewarming(unit):  # it is asked for once more, and has as long to boot as any other
        return replace(free, creation=replace(free.creation, made=None), due=now + STEP_WITHIN)
    if unit.state is UnitState.IDLE:
        return renew(free, now, lease)
    if unit.state is UnitState.CLEANING:  # a worker's agent asks, and cleans when it hears this
        begun = unit.cleaning.begun or (now if is_worker else None)
        return replace(
            free, cleaning=replace(free.cleaning, begun=begun), due=now + (CLEAN_WITHIN if is_worker else STEP_WITHIN)
        )
    if unit.state is UnitState.DIRTY:
        return replace(free, due=now + STEP_WITHIN)
    return replace(free, due=lease_due(free)) if unit.state is UnitState.READY and not is_worker else free


def drain(unit: Unit, by: str, reason: str, now: datetime) -> Unit:
    """A unit that is not leased again after its present lease. Raises Refused 409 for one that is gone."""
    _must_exist(unit)
    if unit.drain or unit.state in ENDING:
        return unit
    wish = Drain(by, reason, now)
    return add_entry(replace(unit, drain=wish), now, str(wish))


def recycle(unit: Unit, by: str, reason: str, now: datetime) -> Unit:
    """A unit that is destroyed as soon as possible: the attempt that leases it is lost. Raises Refused 409.

    A quarantined unit is destroyed once more.
    """
    _must_exist(unit)
    if unit.state is UnitState.QUARANTINED:
        return quarantine.release(unit, str(Drain(by, reason, now, at_once=True)), now)
    if is_held(unit, now):
        raise Refused(409, "held", f"{unit.is_a} {unit.id} is {unit.hold}; release it first")
    if unit.state is UnitState.DIRTY or (unit.drain and unit.drain.at_once):
        return unit
    wish = Drain(by, reason, now, at_once=True)
    due = now + STEP_WITHIN if unit.is_leased else unit.due
    return add_entry(replace(unit, drain=wish, due=due), now, str(wish))


CONSOLE = "console output, asked for by "
"""How the journal's entry of a worker's console output begins."""

CONSOLE_CHARS = 4000
"""How many characters of it the entry keeps: the end, which was printed last."""

CONSOLE_AGAIN = timedelta(seconds=10)
"""Who asks again so soon gets no other entry."""


def may_have_console(unit: Unit) -> None:
    """Raises Refused 409 for a worker that is gone."""
    _must_exist(unit)


def is_console_fresh(unit: Unit, now: datetime) -> bool:
    """Whether the console output has just been written."""
    return unit.journal.first(now - CONSOLE_AGAIN, (CONSOLE,)) is not None


def with_console(unit: Unit, by: str, text: str, now: datetime) -> Unit:
    """A worker whose journal has its console output. Of earlier output only the first line stays, to bound the row."""
    before = tuple(
        replace(each, what=each.what.partition("\n")[0]) if each.what.startswith(CONSOLE) else each
        for each in unit.journal.entries
    )
    journal = Journal(before, unit.journal.forgotten).with_(now, f"{CONSOLE}{by}")
    *rest, last = journal.entries
    full = replace(last, what=f"{last.what}\n{text[-CONSOLE_CHARS:]}")
    return replace(unit, journal=Journal((*rest, full), journal.forgotten))


def _must_exist(unit: Unit) -> None:
    if unit.state is UnitState.GONE:
        raise Refused(409, "gone", f"{unit.is_a} {unit.id} is gone since {format_time(unit.since)}")
