"""The same for units that are kept for the next lease."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from penstock.domain.pools import grants
from penstock.domain.pools.grants import Pick, Stock
from penstock.domain.pools.pools import Warm
from penstock.domain.units import reuse
from penstock.domain.units.units import CleanProof, Unit
from tests.rows import changed


def evicts_for_what_is_on_its_way(patch: pytest.MonkeyPatch) -> None:
    """`domain.pools.grants._room`: units that are leaving already do not count, so one after the other has to go."""
    room = grants._room

    def blind(claim: Pick, stocks: Mapping[str, Stock]) -> list[str] | None:
        seen = {name: [slot for slot in stock.idle if not slot.leaving] for name, stock in stocks.items()}
        return room(claim, {name: replace(stock, idle=seen[name]) for name, stock in stocks.items()})

    patch.setattr(grants, "_room", blind)


def counts_from_birth(patch: pytest.MonkeyPatch) -> None:
    """`domain.units.reuse.keep_warm`: a unit counts as idle from its order on."""
    keep = reuse.keep_warm

    def kept(unit: Unit, proof: CleanProof, warm: Warm, now: datetime, lease: timedelta) -> Unit:
        until = (unit.creation.born or now) + timedelta(seconds=warm.idle)
        return changed(keep(unit, proof, warm, now, lease), until=until, due=until)

    patch.setattr(reuse, "keep_warm", kept)
