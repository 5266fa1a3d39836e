"""Bugs in sharing hosts, for the simulation to find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from penstock.domain.pools import choosing, grants, packing, pools
from penstock.domain.pools.pools import Slot, SlotState
from penstock.domain.site import sharing, site
from penstock.domain.units.units import Unit
from penstock.usecases.units import release


def owners_are_not_asked(patch: pytest.MonkeyPatch) -> None:
    """Whose jobs a host has, matters to nobody."""
    patch.setattr(packing, "reachable", lambda pool, free, had, owner: list(free))


def parts_of_two_hosts(patch: pytest.MonkeyPatch) -> None:
    """The parts that a lease gets may be of any host."""
    options = choosing._Chooser._options

    def anywhere(self: Any, wish: Any) -> Any:
        some = tuple(self._free[: wish.count])
        return [some] if wish.choice.together and len(some) == wish.count else options(self, wish)

    patch.setattr(choosing._Chooser, "_options", anywhere)


def a_part_is_enough(patch: pytest.MonkeyPatch) -> None:
    """Whatever a job needs, it gets one part."""
    patch.setattr(sharing, "parts_for", lambda needs, machine, parts: 1)


def too_many_parts(patch: pytest.MonkeyPatch) -> None:
    """A host has more parts than it is divided into."""
    names = site.slot_names
    patch.setattr(site, "slot_names", lambda some, each: names(some, each if each == 1 else each + 2))


def all_parts_are_free_at_once(patch: pytest.MonkeyPatch) -> None:
    """When one container is removed, all parts of its host are free, whosoever containers are there."""
    slots_of = release.slots_of

    def all_of_the_host(on: Any, unit: Unit) -> Sequence[Slot]:
        mine = list(slots_of(on, unit))
        found = on.store.find(pools.collection(unit.lease.pool), f"{SlotState.HELD}#", Slot)
        beside = [slot for slot in found if "/" in slot.name and slot.thing == pools.thing_of(unit.lease.slot)]
        return mine + [slot for slot in beside if slot not in mine]

    patch.setattr(release, "slots_of", all_of_the_host)


def last_comes_first_on_a_host(patch: pytest.MonkeyPatch) -> None:
    """Who came last gets the parts of a host first."""
    pick = grants.pick

    def reversed_pick(pool: str, stocks: Any) -> Any:
        if not stocks[pool].pool.share:
            return pick(pool, stocks)
        turns = grants._turns(stocks)
        found = (grants._grantable(claim, stocks, turns) for claim in reversed(stocks[pool].claims))
        return next((each for each in found if each), None)

    patch.setattr(grants, "pick", reversed_pick)
