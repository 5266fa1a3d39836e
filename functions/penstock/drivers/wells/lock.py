"""The `lock` well: a resource that is nothing but its slot, such as a licence or a bench.

There is nothing to make and nothing to clean: holding the slot is having the thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from penstock.domain.units.units import CleanProof
from penstock.ports import NotYet, Option, Order, Ready


class LockWell:
    """Hands out the name of the slot, and what the site says of the resource type."""

    def __init__(self, settings: Mapping[str, Any], surroundings: Mapping[str, str]) -> None:
        del settings, surroundings

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """A lock takes no settings."""
        return [f"the lock driver has no setting {key!r}; it takes none" for key in settings]

    @staticmethod
    def options(well: Mapping[str, Any], kind: Mapping[str, Any]) -> Sequence[Option]:
        """There is nothing to choose."""
        del well, kind
        return ()

    @staticmethod
    def objections(options: Mapping[str, Any]) -> Sequence[str]:
        """Nor does it take options from a job."""
        return [f"a lock takes no option {key!r}; it takes none" for key in options]

    def create(self, order: Order) -> Ready | NotYet:
        """The slot's name, and the settings of its type as metadata."""
        name, _, _ = order.slot.partition("/")  # of one resource that is leased more than once, each lease has a slot
        return Ready({"name": name, "type": order.type, **order.settings}, public=("name", "type"))

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Nothing was made, so nothing is left."""
        return CleanProof(by="lock", time=now, checked=f"{unit} is a pure slot; there is nothing to clean")

    def list(self) -> Iterable[str]:
        """Nothing exists outside of the slot."""
        return ()
