"""What the rows say of a resource."""

from __future__ import annotations

from penstock.domain.units.units import Unit, UnitKind
from penstock.testing.twin import Twin


def resource_of(twin: Twin) -> Unit:
    """The resource that was leased last."""
    found = [row for row in twin.store.rows.values() if isinstance(row, Unit) and row.is_a is UnitKind.RESOURCE]
    return max(found, key=lambda unit: unit.id)
