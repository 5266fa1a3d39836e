"""A breakage of holds that the simulation must notice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.usecases.units import advance, maintenance


def the_sweep_forgets_holds(patch: pytest.MonkeyPatch) -> None:
    """A unit's next step is taken whether it is held or not."""
    patch.setattr(maintenance, "wait_for_hold", lambda on, unit: False)
    patch.setattr(advance.units, "begin_end", lambda unit, now: replace(unit, begun=unit.begun or now))
