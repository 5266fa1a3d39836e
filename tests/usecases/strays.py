"""Units that drivers list and no row names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from penstock.domain.units.comparison import Comparison, comparison_key
from penstock.ports import Order
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.units import reconcile
from penstock.usecases.units.reconcile import Reconciled
from tests.usecases.steps import sweep

STRAY = Order("w-stray", "linux", "1")


WELL = site_toml(
    targets={"default": {"limit": 2, "warm": {"max": 1, "idle": "2h"}}},
    wells={"hand": "hand"},
    resources={"bench": {"well": "hand", "names": ["bench-1"]}},
    limits={"lease": "1h", "boot": "2h"},
)


def regular(twin: Twin, minutes: int, each: Callable[[], object] = lambda: None) -> list[int]:
    """A sweep a minute; in which of them something was destroyed."""
    found = []
    for minute in range(minutes):
        if sweep(twin, 60).strays:
            found.append(minute)
        each()
    return found


def compare_all(twin: Twin, seconds: float = 110) -> Reconciled:
    """Compare whatever is due, with time enough unless it is said."""
    return reconcile.reconcile(twin.on, twin.world.now() + timedelta(seconds=seconds))


def compared(twin: Twin) -> Comparison:
    row = twin.store.get(comparison_key("factory/hand"), Comparison)
    assert row
    return row
