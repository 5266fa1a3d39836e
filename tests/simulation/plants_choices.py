"""Bugs in choosing among named things, for the simulation to find."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.pools import choosing, pools


def takes_what_does_not_fit(patch: pytest.MonkeyPatch) -> None:
    """A claim takes whatever is free, once there is something that fits it."""
    fitting = choosing._Chooser._fitting

    def any_at_all(self: Any, wish: Any, taken: Any) -> Any:
        found = list(fitting(self, wish, taken))
        others = [] if wish.choice.exclusive else [(slot,) for slot in self._free if slot not in taken]
        return sorted([*found, *others], key=lambda slots: slots in found) if found else []

    patch.setattr(choosing._Chooser, "_fitting", any_at_all)


def gives_a_part_as_the_whole(patch: pytest.MonkeyPatch) -> None:
    """What is free of a thing counts as all of it."""

    def parts(offer: Any) -> Any:
        found: dict[str, Any] = {}
        for slot in offer.cold:
            found[slot.thing] = (*found.get(slot.thing, ()), slot)
        return found

    patch.setattr(choosing, "_whole", parts)


def takes_a_slot_with_anothers_unit(patch: pytest.MonkeyPatch) -> None:
    """What a lease takes beside its own slot may be a slot on which a unit is kept for somebody else."""
    take = pools.take
    patch.setattr(choosing._Chooser, "_for", lambda self, wish: self._free)
    patch.setattr(pools, "take", lambda slot, *told: take(replace(slot, unit=None), *told))
