"""The `http` well: resources that a service of the site creates, cleans and destroys.

The driver verifies what the service answers: `penstock.drivers.http.units`. A contradiction is not a proof: the step is
repeated, and then the unit is quarantined. [UNIT-1] [UNIT-2]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from penstock.domain.units.units import CleanProof
from penstock.drivers.http.client import Client
from penstock.drivers.http.protocol import READY, RESOURCES
from penstock.drivers.http.units import Units, check, metadata_of, not_yet
from penstock.drivers.wells.http import settings as keys
from penstock.drivers.wells.http.settings import objections
from penstock.kernel.errors import Unsatisfiable
from penstock.ports import NotYet, Order, Ready, UnitContext

NOTHING: Mapping[str, Any] = {}


class HttpWell:
    """Calls one service. It has no state of its own: the service lists its resources. [UNIT-1]"""

    reusable = True

    def __init__(
        self,
        settings: Mapping[str, Any],
        environment: Mapping[str, str],
        client: Callable[..., Client] = Client,
    ) -> None:
        self._settings = keys.read(settings)
        self._units = Units(RESOURCES, self._settings, environment, client)
        self._fence = 0

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, one sentence each. Calls no service."""
        return keys.complaints(settings)

    @staticmethod
    def objections(
        options: Mapping[str, Any], well: Mapping[str, Any] = NOTHING, kind: Mapping[str, Any] = NOTHING
    ) -> Sequence[str]:
        """What is wrong with options by the well's schema; without its settings, `create` checks them."""
        del kind
        return objections(keys.read(well).options, options) if well else []

    def with_context(self, of: UnitContext) -> HttpWell:
        """The driver, sending the fence of the unit's lease, so that late requests change nothing. [SLOT-3]"""
        self._fence = of.fence
        return self

    def create(self, order: Order) -> Ready | NotYet:
        """Have the service create the resource, or prepare a cleaned one for its next lease."""
        wrong = objections(self._settings.options, order.options)
        if wrong:
            raise Unsatisfiable("; ".join(wrong))
        body = {
            "unit": order.id, "owner": self._units.owner, "fence": self._fence, "type": order.type, "slot": order.slot,
            "settings": dict(order.settings), "options": dict(order.options),
        }  # fmt: skip
        answer = self._units.client().call("PUT", order.id, body=body, calls="create")
        if answer.status == 202:
            return not_yet(answer, "it is being made")
        check(answer, order.id, fence=self._fence, state=READY)
        return Ready(metadata_of(answer))

    def clean(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Have the service clean the resource; a proof if its status agrees. [UNIT-2]"""
        return self._units.clean(unit, self._fence, now)

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Have the service destroy the resource; a proof if its status and the list agree. [UNIT-1] [UNIT-2]"""
        return self._units.destroy(unit, now, fence=self._fence)

    def list(self) -> Iterable[str]:
        """The resources that the service has for this well. Those of other owners are left out."""
        return self._units.list()
