"""The `libcloud` factory: workers that are machines of any Apache Libcloud provider. See docs/operators/libcloud.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.factories.libcloud import keys
from penstock.drivers.factories.libcloud.alternatives import account_of, scopes_of
from penstock.drivers.factories.libcloud.codes import scrubbed
from penstock.drivers.factories.libcloud.names import Names
from penstock.drivers.factories.libcloud.nodes import Cloud, Machine, Nodes, connect
from penstock.drivers.factories.libcloud.search import has_way, launched, metadata, stillborn
from penstock.drivers.factories.libcloud.settings import Settings
from penstock.drivers.factories.libcloud.told import told
from penstock.drivers.secrets import Resolve, resolver
from penstock.kernel.errors import Misconfigured
from penstock.ports import NotYet, Order, Ready

SITE = "PENSTOCK_SITE"
"""The function's environment names the deployment: infra/stack.py."""

LOOK_AGAIN = 10
"""Seconds until a machine that is ending is looked at again."""

EVIDENCE = 8 * 1024
"""How many characters of a console are kept: its end."""


class LibcloudFactory:
    """Makes workers in one account of one cloud. It keeps nothing: what there is, the cloud is asked. [UNIT-1]"""

    keeps = True

    def __init__(
        self,
        settings: Mapping[str, Any],
        surroundings: Mapping[str, str],
        open_cloud: Callable[[Settings, Resolve], Cloud] = connect,
    ) -> None:
        if not surroundings.get(SITE) or not surroundings.get(MAKER):
            raise Misconfigured("the libcloud factory must know its site and its own name, to name what it makes")
        self._settings = keys.read(settings)
        self._names = Names(surroundings[SITE], surroundings[MAKER], self._settings.prefix)
        self._open_cloud = open_cloud
        self._resolve = resolver(surroundings)

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, a sentence each. Asks nobody."""
        return keys.complaints(settings)

    @cached_property
    def _nodes(self) -> Nodes:
        return Nodes(self._open_cloud(self._settings, self._resolve), self._settings)

    def create(self, order: Order) -> Ready | NotYet:
        """Make the worker's machine, unless one is listed; trying one alternative after the other."""
        with told():
            found = self._of(order.id)
            if found:
                return self._settled(found)
            return launched(order, self._nodes, self._settings, self._names)

    def _settled(self, found: Sequence[Machine]) -> Ready:
        """One machine stays: the first that was made. Raises DriverError when that came to nothing."""
        alive = sorted((each for each in found if not each.is_gone), key=lambda each: each.age)
        whole = [each for each in alive if each.state != "error"]
        for machine in alive:
            if machine not in whole[:1]:
                self._nodes.end(machine)
        if alive and not whole:
            raise stillborn(alive[0], self._settings)
        return Ready(metadata((whole or found)[0], self._settings))

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """End every machine of the worker, and say so when none is listed, nor what it may have left."""
        with told():
            machines = [machine for machine in self._of(unit) if not machine.is_gone]
            for machine in machines:
                self._nodes.end(machine)
            if machines:
                return NotYet(LOOK_AGAIN, "its machine is being destroyed")
            cards = [card for name, card in self._nodes.cards() if self._names.is_of(name, unit)]
            for card in cards:
                self._nodes.end_card(card)
            if cards:
                return NotYet(LOOK_AGAIN, "its network card is being deleted")
        checked = f"no machine named for {unit} is listed by {self._settings.provider}"
        return CleanProof(by="libcloud", time=now, checked=checked, lag=self._settings.lag)

    def list(self) -> Iterable[str]:
        """The workers of whose machines anything is left, as far as this factory made them."""
        with told():
            names = [machine.name for machine in self._nodes.all() if not machine.is_gone]
            names += [name for name, _ in self._nodes.cards()]
            return sorted({worker for worker in map(self._names.worker, names) if worker})

    def evidence(self, unit: str) -> str | None:
        """What the cloud says of a worker's machines, and the end of what they printed."""
        with told():
            return "\n".join(map(self._testimony, self._of(unit))) or None

    def has_way(self, order: Order) -> bool:
        """Whether an order leaves any way to be tried."""
        return has_way(order, self._settings)

    def shares(self, scope: str) -> bool:
        """Whether a shortage's name is one of this account."""
        return scope.startswith(f"{scopes_of(account_of(self._settings))}/")

    def _testimony(self, machine: Machine) -> str:
        why = f": {scrubbed(machine.fault)}" if machine.fault else ""
        head = f"{machine.name} ({machine.id}) is {machine.state}{why}"
        printed = self._nodes.console(machine).strip()[-EVIDENCE:]
        return f"{head}; it printed:\n{printed}" if printed else f"{head}; what it printed is not known"

    def _of(self, worker: str) -> Sequence[Machine]:
        return [machine for machine in self._nodes.all() if self._names.is_of(machine.name, worker)]
