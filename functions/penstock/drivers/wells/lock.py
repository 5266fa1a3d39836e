"""The `lock` well: a resource that is only a slot, such as a licence or a bench.

The driver makes and cleans nothing: whoever holds the slot may use the thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from penstock.domain.units.units import CleanProof
from penstock.ports import NotYet, Option, Order, Ready


class LockWell:
    """Gives a job the name of its slot, and the settings of the resource type."""

    makes_nothing = True

    def __init__(self, settings: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        del settings, environment

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings: there are none."""
        return [f"the lock driver has no setting {key!r}; it has no settings" for key in settings]

    @staticmethod
    def options(well: Mapping[str, Any], kind: Mapping[str, Any]) -> Sequence[Option]:
        """There are no options."""
        del well, kind
        return ()

    @staticmethod
    def objections(options: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with options: there are none."""
        return [f"the lock driver has no option {key!r}; it has no options" for key in options]

    def create(self, order: Order) -> Ready | NotYet:
        """The slot's name, and the settings of its type as metadata."""
        name, _, _ = order.slot.partition("/")  # a resource with several leases has a slot for each: name/1, name/2
        return Ready({"name": name, "type": order.type, **order.settings}, public=("name", "type"))

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """A proof at once: there is nothing to remove."""
        return CleanProof(by="lock", time=now, checked=f"{unit} is only a slot; there is nothing to clean")

    def list(self) -> Iterable[str]:
        """Nothing: a lock has nothing outside of its slot."""
        return ()
