"""Operators hold, release, drain and recycle in the weather; and what breaks a hold is found. UNIT-3"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.domain.units.units import Unit
from penstock.usecases.units import advance, release
from simulation import runner
from simulation.runner import Run
from tests.rows import changed
from tests.simulation.plants import found
from tests.simulation.plants_holds import the_sweep_forgets_holds


def destroyed_before_it_is_written(patch: pytest.MonkeyPatch) -> None:
    """A driver is told to destroy, and nothing says so before: a hold that comes meanwhile is granted."""
    patch.setattr(release, "_record_destroy", lambda on, unit: unit)
    original = advance.units.end_lease

    def end_lease(unit: Unit, *given: Any, **more: Any) -> Unit:
        return changed(original(unit, *given, **more), begun=None)

    patch.setattr(advance.units, "end_lease", end_lease)


HOSTS = ("UNIT-1", "QUEUE-3", "JOB-1")
"""What the second plant also breaks: a host does not learn either that its worker's cleaning has begun, and waits."""


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("plant", "first", "blind"), [(the_sweep_forgets_holds, 12, ()), (destroyed_before_it_is_written, 294, HOSTS)]
)
def test_a_planted_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], first: int, blind: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    told = found(first, blind=blind)
    assert told is not None, "no seed found it"
    assert told.label == "UNIT-3", told.says


def test_operators_do_hold_things() -> None:
    lines = [line for seed in (3, 6) for line in runner.once(Run(seed)).lines]
    assert [line for line in lines if "root holds" in line and "begins" in line]
    released = [line for line in lines if "root releases" in line]
    assert [line for line in released if "begins" in line]
    assert sum("begins" in line for line in released) > sum("is not held" in line for line in released)
