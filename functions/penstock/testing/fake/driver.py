"""The driver of a factory or a well in the fake cloud. It shows what a driver does with what its cloud does to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import ceil
from typing import Any

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.kernel.errors import NoCapacity, QuotaReached, Shortage
from penstock.ports import NotYet, Order, Ready
from penstock.testing.fake import keys
from penstock.testing.fake.cloud import QUOTA, Cloud

LATER = (1, 5, 60)
"""In how many seconds to look again, of a call that is not done."""


class FakeDriver:
    """Makes machines in a cloud, which is passed in. It keeps nothing: what there is, the cloud is asked for by tag."""

    reusable = True

    def __init__(self, settings: Mapping[str, Any], environment: Mapping[str, str], cloud: Cloud) -> None:
        self._settings = keys.read(settings)
        self._maker = environment.get(MAKER, "")
        self._cloud = cloud

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, a sentence each. Asks nobody."""
        return keys.complaints(settings)

    @staticmethod
    def objections(options: Mapping[str, Any]) -> Sequence[str]:
        """A job may pass a well no options."""
        return [f"the fake driver takes no option {key!r}; it takes none" for key in options]

    def create(self, order: Order) -> Ready | NotYet:
        """Make a machine, unless one was made before; trying one way after the other."""
        cloud = self._cloud
        cloud.begin("create", cloud.faults.create, cloud.faults.create_every)
        later = self._not_yet("it is coming")
        if later:
            return later
        if cloud.of(order.id) or cloud.was_made(order.id):  # what was made and is gone was this worker: never another
            return Ready(_metadata(order), proves=() if self._settings.types else None)
        return self._launched(order)

    def _launched(self, order: Order) -> Ready:
        short: list[Shortage] = []
        avoid = set(order.avoid)
        for offer in self._settings.offers(order.type):
            if avoid.intersection(offer.scopes):
                continue
            try:
                self._cloud.run(order, self._maker, offer)
            except NoCapacity as error:
                short += error.shortages
                avoid |= {each.scope for each in error.shortages}
            except QuotaReached as error:  # one quota for all: no other way has more
                raise QuotaReached(str(error), [*error.shortages, *short]) from error
            else:
                return Ready(_metadata(order), short, offer.scopes if self._settings.types else None)
        raise NoCapacity("; ".join(each.why for each in short) or "all is too short of late to be tried", short)

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Terminate every machine of the unit, and say so when they are gone."""
        cloud = self._cloud
        cloud.begin("destroy", cloud.faults.destroy)
        later = self._not_yet("it is going")
        if later:
            return later
        found = cloud.of(unit)
        for machine in found:
            cloud.terminate(machine)
        if cloud.of(unit):
            return NotYet(5, "its machine is shutting down")
        return CleanProof(
            by=self._maker or "fake", time=now, checked=unit, lag=0 if found else ceil(cloud.faults.unseen)
        )

    def clean(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Make a unit as new."""
        self._cloud.begin("clean", self._cloud.faults.clean)
        return self._not_yet("it is going") or CleanProof(by=self._maker or "fake", time=now, checked=unit)

    def list(self) -> Iterable[str]:
        """The units of this factory or well, as far as the cloud's list has them."""
        self._cloud.begin("list", self._cloud.faults.list, self._cloud.faults.list_every)
        return self._cloud.listed(self._maker)

    def evidence(self, unit: str) -> str | None:
        """What the cloud says of a unit's machines."""
        self._cloud.calls["look"] += 1
        found = self._cloud.of(unit)
        return "\n".join(f"{each.id} ({each.offer}) exists since {each.born:%H:%M:%S}" for each in found) or None

    def has_alternative(self, order: Order) -> bool:
        """Whether an order leaves any way to be tried."""
        return not all(set(order.avoid).intersection(each.scopes) for each in self._settings.offers(order.type))

    def shares_scope(self, scope: str) -> bool:
        """Whether a shortage is of the one quota that the cloud has, for all who order from it."""
        return scope == QUOTA

    def _not_yet(self, why: str) -> NotYet | None:
        cloud = self._cloud
        return NotYet(cloud.dice.choice(LATER), why) if cloud.chance(cloud.faults.slow, "not done yet") else None


def _metadata(order: Order) -> dict[str, str]:
    return {"id": order.id}
