"""How many calls a second a factory or well is sent that change something, where the site bounds them."""

from __future__ import annotations

from penstock.domain import cooldowns
from penstock.domain.cooldowns import Budget, budget_key
from penstock.domain.site.site import Site
from penstock.domain.units.units import Unit, UnitKind
from penstock.kernel.rows import Create, Replace
from penstock.system import System

TRIES = 4
"""How often a lost race is run again before the unit is sent away as if there were no token."""


def token(on: System, site: Site, unit: Unit) -> int | None:
    """Take one of the calls that a maker may be sent in a second; with none left, in how many seconds to look again."""
    makers = site.factories if unit.is_a is UnitKind.WORKER else site.wells
    found = makers.get(unit.maker)
    if found is None or found.rate is None:
        return None
    maker = cooldowns.maker_of(unit.is_a, unit.maker)
    for tries in range(TRIES):
        now = on.world.now()
        row = on.store.get(budget_key(maker), Budget)
        left = cooldowns.take_token(row, maker, found.rate, now)
        if left is None and row:
            return cooldowns.budget_wait(row, found.rate, unit.id, now)
        if left and on.store.commit([Replace(row, left) if row else Create(left)]):
            return None
        on.world.pause(tries)
    return cooldowns.spread(unit.id, 5)
