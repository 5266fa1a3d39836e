"""The `hosts` factory: machines that exist already, each with a name, on which somebody else starts the agent.

There is nothing to make: a host's agent asks for its worker by itself (docs/operators/hosts.md). Nothing can be
destroyed from here either: the host cleans up, and its report that it is clean frees its slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from penstock.domain.units.units import CleanProof
from penstock.ports import NotYet, Order, Ready

LOOK_AGAIN = 900
"""Seconds. The host's own word comes without being asked for."""


class HostsFactory:
    """Leaves everything to the hosts."""

    hosts = True
    quarantines = True

    def __init__(self, settings: Mapping[str, Any], surroundings: Mapping[str, str]) -> None:
        del settings, surroundings

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """It takes no settings: what hosts there are, their targets say."""
        return [f"the hosts driver has no setting {key!r}; it takes none" for key in settings]

    def create(self, order: Order) -> Ready | NotYet:
        """The machine is there; its agent comes for the worker."""
        return Ready({"host": order.slot})

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Wait for the host's word. Its agent has stopped the job by itself when it could not renew its lease."""
        return NotYet(LOOK_AGAIN, "its host has not said yet that it is clean", stops_itself=True)

    def list(self) -> Iterable[str]:
        """Nothing that a list could show: a host is silent when its agent is, and the worker's lease tells that."""
        return ()
