"""Operators who hold, release, drain and recycle, and what a hold promises. [UNIT-3]"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from typing import Any

from penstock.domain.pools.pools import Slot, SlotState
from penstock.domain.units.units import Unit, UnitState, is_held, unit_key
from penstock.domain.users.users import User
from penstock.testing.twin import START
from penstock.usecases.units import maintenance
from simulation import faults
from simulation.commits import Moment
from simulation.interfaces import Run

ROOT = User(name="root", privileges=("admin",), created=START, version=1)
LENGTHS = (20, 120, 1200)


def act(engine: Run) -> tuple[str, Callable[[], Any]] | None:
    """What an operator does to a unit: a name, and the call; None while there is no unit."""
    found = [row for row in engine.store.rows.values() if isinstance(row, Unit) and row.state is not UnitState.GONE]
    if not found:
        return None
    dice = engine.dice
    held = [unit for unit in found if unit.hold or unit.state is UnitState.QUARANTINED]
    doing = (
        "release"
        if held and dice.random() < 0.3
        else dice.choice(("hold", "hold", "hold", "release", "drain", "recycle"))
    )
    unit = dice.choice(held if held and doing == "release" else found)
    whose = (engine.on, ROOT, unit.is_a, unit.id)
    if doing == "hold":
        seconds = dice.choice(LENGTHS)
        return f"root holds {unit.id} for {seconds} s", lambda: maintenance.hold(*whose, "looking", seconds)
    if doing == "release":
        return f"root releases {unit.id}", lambda: maintenance.release(*whose)
    remove = maintenance.drain if doing == "drain" else maintenance.recycle
    return f"root wants to {doing} {unit.id}", lambda: remove(*whose, "")


def let_out(engine: Run) -> None:
    """An operator releases every unit in quarantine."""
    for unit in [row for row in engine.store.rows.values() if isinstance(row, Unit)]:
        if unit.state is UnitState.QUARANTINED:
            maintenance.release(engine.on, ROOT, unit.is_a, unit.id)


def held_is_held(moment: Moment, now: datetime, called: Collection[str]) -> Iterator[tuple[str, str]]:
    """UNIT-3: while a hold stands no commit lends its unit, begins to clean or destroy it, ends it, or frees its slots.

    Nor does anybody take the hold off but an operator. And none is put on what a driver was `called` to destroy. The
    clock of one process says when it ends, that of another says that it is over.
    """
    now += faults.APART
    for was, after in moment.of(Unit):
        if was and after and after.hold and after.hold != was.hold and after.id in called:
            yield "UNIT-3", f"{after.id} is {after.hold}, though its driver was told to destroy it before"
        if was is None or after is None or not is_held(was, now):
            continue
        if after.hold is None and not (moment.task and moment.task.name.startswith("root releases")):
            yield "UNIT-3", f"the hold of {was.id} is taken off before its time"
        if (
            after.lease.leases != was.lease.leases
            or after.state is UnitState.GONE
            or (after.hold and after.cleaning.begun != was.cleaning.begun)
        ):
            yield "UNIT-3", f"{was.id} is {was.hold}, and goes from {was.state} to {after.state}"
    for before, slot in moment.of(Slot):
        unit = moment.store.rows.get(unit_key(before.unit)) if before and before.unit else None
        is_left = slot is None or slot.state is not SlotState.HELD
        if before and is_left and isinstance(unit, Unit) and is_held(unit, now):
            yield "UNIT-3", f"{before.name} of {before.pool} is given back, and {unit.id} is {unit.hold}"
