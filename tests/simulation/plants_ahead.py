"""Bugs in making units ahead of need, for the simulation to find."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.pools import pools
from penstock.domain.pools.pools import Pool, Slot
from penstock.domain.units import prewarm as rules
from penstock.domain.units.prewarm import FreeCapacity
from penstock.kernel.rows import Replace
from penstock.usecases.units import prewarm


def takes_what_others_wait_for(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks whether anybody waits for what a unit takes that is made ahead of need."""

    def room(on: Any, pool: Pool, count: int) -> FreeCapacity:
        return FreeCapacity(pool, on.store.find(pools.collection(pool.name), "free#cold#", Slot, limit=count))

    patch.setattr(prewarm, "_room", room)


def makes_past_the_limit(patch: pytest.MonkeyPatch) -> None:
    """Of an amount units that are made ahead of need take as much as they want."""
    order = rules.reserve

    def wide(unit: Any, takes: Any, rooms: Any) -> Any:
        more = {name: replace(room, pool=replace(room.pool, limit=room.pool.limit * 9)) for name, room in rooms.items()}
        found = order(unit, takes, more)
        if found is None:
            return None
        made, changes = found
        return made, [_as_limited(change, rooms) for change in changes]

    patch.setattr(rules, "reserve", wide)


def _as_limited(change: Any, rooms: Any) -> Any:
    if not isinstance(change, Replace) or not isinstance(change.row, Pool):
        return change
    was = rooms[change.row.name].pool
    return Replace(was, replace(change.row, limit=was.limit))
