"""What becomes of a unit next, and by when, in a sentence."""

from __future__ import annotations

from datetime import datetime

from penstock.domain.holds import clock
from penstock.domain.units import Unit, UnitKind, UnitState, is_held

HELD = {
    UnitState.CLEANING: "it is cleaned when",
    UnitState.IDLE: "nobody is lent it until",
    UnitState.DIRTY: "it is destroyed when",
}
"""What waits for the end of a hold."""


def next_step(unit: Unit, now: datetime) -> str:
    """Who moves a unit on, and by when at the latest."""
    by = f" by {clock(unit.due)}" if unit.due else ""
    held = clock(unit.hold.until) if unit.hold and is_held(unit, now) else ""
    is_worker = unit.is_a is UnitKind.WORKER
    match unit.state:
        case UnitState.CREATING | UnitState.READY:
            return f"{_leased(unit, by, is_worker)}; then {_after(unit, held)}"
        case UnitState.CLEANING | UnitState.IDLE | UnitState.DIRTY if held:
            return f"{HELD[unit.state]} its hold ends, by {held}"
        case UnitState.CLEANING:
            return f"{'its agent' if is_worker else unit.maker} says that it is clean{by}, or it is destroyed"
        case UnitState.IDLE if unit.until:
            return f"the next job is lent it, or it is destroyed by {clock(unit.until)}"
        case UnitState.IDLE:
            coming = f"its agent says hello{by}, or it is destroyed" if unit.made else f"{unit.maker} makes it{by}"
            return f"{coming}; the next job is lent it, there or not"
        case UnitState.DIRTY if unit.begun is None:
            return "it is destroyed when what its attempt gives back before it is back"
        case UnitState.DIRTY:
            return f"{unit.maker} destroys it; asked again{by}"
        case UnitState.QUARANTINED:
            told = f" (reminded {unit.reminders} times)" if unit.reminders else ""
            return f"an operator mends it and releases it, recycles it, or removes it by hand and proves it{told}"
        case _:
            return "nothing: it is gone"


def _leased(unit: Unit, by: str, is_worker: bool) -> str:
    if unit.drain and unit.drain.at_once:
        return "its attempt ends, for it is recycled"
    if unit.state is UnitState.READY:
        return f"its job ends, or is lost if nothing is heard of its agent{by}" if is_worker else "its job ends"
    if unit.made:
        return f"its agent says hello{by}, or its attempt is lost"
    return f"{unit.maker} makes it; asked again{by}"


def _after(unit: Unit, held: str) -> str:
    end = "is destroyed" if unit.drain or not unit.is_kept else "is cleaned for the next, if its job ended well"
    return f"it stays as it is until its hold ends, by {held}, and {end}" if held else f"it {end}"
