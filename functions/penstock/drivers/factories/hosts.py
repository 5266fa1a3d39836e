"""The `hosts` factory: machines that exist already, each with a name, on which an operator starts the agent.

The driver makes nothing: a host's agent asks for its worker by itself (docs/operators/hosts.md). It destroys nothing
either: the host cleans itself, and its report that it is clean frees its slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from penstock.domain.units.units import CleanProof
from penstock.ports import NotYet, Order, Ready

RECHECK_SECONDS = 900
"""Seconds between checks. The host's report arrives independently of them."""


class HostsFactory:
    """Waits for hosts, and does nothing itself."""

    hosts = True
    quarantines = True

    def __init__(self, settings: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        del settings, environment

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings: there are none. Targets name their hosts."""
        return [f"the hosts driver has no setting {key!r}; it has no settings" for key in settings]

    def create(self, order: Order) -> Ready | NotYet:
        """Ready at once: the machine exists, and its agent asks for the worker."""
        return Ready({"host": order.slot})

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Wait for the host's report. If its agent cannot renew its lease, it stops the job by itself."""
        return NotYet(RECHECK_SECONDS, "its host has not reported yet that it is clean", stops_itself=True)

    def list(self) -> Iterable[str]:
        """Nothing: whether a host is alive is known only from its agent, by the worker's lease."""
        return ()
