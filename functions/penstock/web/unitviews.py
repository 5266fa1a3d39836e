"""What callers are shown of workers and of resources."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from penstock import wire
from penstock.domain.units import lifecycle, units
from penstock.domain.units.lifecycle import LIFE
from penstock.domain.units.units import Unit, UnitState
from penstock.web.times import present, stamp


def worker(row: Unit, now: datetime) -> wire.WorkerView:
    """A worker."""
    return wire.WorkerView(id=row.id, target=row.type, factory=row.maker, slot=row.slot, **_unit(row, now))


def resource(row: Unit, now: datetime) -> wire.ResourceView:
    """A resource, without its metadata. [SEC-1]"""
    return wire.ResourceView(id=row.id, type=row.type, well=row.maker, slot=row.slot, **_unit(row, now))


def _unit(row: Unit, now: datetime) -> dict[str, Any]:
    """What is shown of workers and of resources."""
    hold = row.hold if units.is_held(row, now) else None
    drain = row.drain
    return {
        "state": "creating" if units.is_coming(row) else row.state.value,
        "job": row.job or None,
        "attempt": row.attempt or None,
        "since": present(row.since),
        "due": stamp(row.due),
        "reason": row.reason,
        "leases": row.leases,
        "hold": wire.HoldView(hold.by, hold.reason, present(hold.since), present(hold.until)) if hold else None,
        "drain": wire.DrainView(drain.by, drain.reason, present(drain.since), drain.at_once) if drain else None,
        "quarantine": quarantine(row),
        "broken": row.broken,
        "next_step": lifecycle.next_step(row, now),
        "moved_by": LIFE[row.state].by,
        "due_is": LIFE[row.state].due,
    }


def quarantine(row: Unit) -> wire.QuarantineView | None:
    """Since when a unit is in quarantine, if it is."""
    if row.state is not UnitState.QUARANTINED:
        return None
    return wire.QuarantineView(present(row.since), row.reason or "", row.reminders)


def unit_events(row: Unit, after: int, most: int) -> wire.UnitEventPage:
    """A unit's log behind a number."""
    found = row.journal.after(after)[:most]
    items = [wire.UnitEvent(seq, present(entry.time), "control", entry.what) for seq, entry in found]
    return wire.UnitEventPage(items, items[-1].seq if items else after, row.state.value)
