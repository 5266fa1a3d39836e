"""What one grant hands out: slots, parts of amounts, and the warm units that some of them carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from penstock.domain import idle, pools
from penstock.domain.granting import Stock
from penstock.domain.leases import Need
from penstock.domain.pools import Claim, Slot
from penstock.domain.units import Unit
from penstock.kernel.rows import Change, Create, Replace


class Hand:
    """Takes from the stocks of one claim's pools, lease by lease, and remembers the changes. [SLOT-1] [SLOT-2]"""

    def __init__(self, claim: Claim, stocks: Mapping[str, Stock]) -> None:
        self.claim = claim
        self._before = {name: stock.pool for name, stock in stocks.items()}
        self._pools = dict(self._before)
        self._free = {name: list(stock.free) for name, stock in stocks.items()}
        self._warm = {name: list(stock.warm) for name, stock in stocks.items()}
        self._changes: list[Change] = []

    def warm(self, pool: str) -> Slot | None:
        """The next slot of a pool that carries a unit; for a fresh claim there is none."""
        return self._warm[pool].pop(0) if self._warm[pool] and not self.claim.fresh else None

    def over(self, unit: Unit, own: Slot, others: Sequence[Slot], order: int, now: datetime) -> Unit:
        """A warm unit goes to its next lease, with everything that it takes."""
        taken = pools.take(own, self.claim, order, unit.id, now)
        given = idle.lend(unit, self.claim.job, self.claim.attempt, order, taken.fence, now)
        self._changes += [*pools.move(own, taken), Replace(unit, given)]
        for slot in others:
            self._changes += pools.move(slot, pools.hand_over(slot, self.claim, order, now))
        return given

    def order(self, unit: Unit, need: Need) -> Unit:
        """A unit that will be made takes its own slot, and all that its type uses."""
        own, *others = [slot for pool, count in need.takes.items() for slot in self._take(pool, count, unit)]
        also = tuple((other.pool, other.name) for other in others)
        is_kept = self._pools[need.pool].warm is not None and not self.claim.fresh
        made = replace(unit, slot=own.name, fence=own.fence, also=also, is_kept=is_kept)
        self._changes.append(Create(made))
        return made

    def _take(self, pool: str, count: int, unit: Unit) -> list[Slot]:
        if self._pools[pool].is_amount:
            left, held = pools.take_amount(self._pools[pool], self.claim, unit.order, count, unit.id, unit.since)
            self._pools[pool] = left
            self._changes.append(Create(held))
            return [held]
        free, self._free[pool] = self._free[pool][:count], self._free[pool][count:]
        taken = [pools.take(slot, self.claim, unit.order, unit.id, unit.since) for slot in free]
        self._changes += [change for was, now in zip(free, taken, strict=True) for change in pools.move(was, now)]
        return taken

    def changes(self) -> list[Change]:
        """All of it, for one commit."""
        pooled = [Replace(was, self._pools[name]) for name, was in self._before.items() if was != self._pools[name]]
        return [*self._changes, *pooled]
