"""The `libcloud` factory: workers that are machines of any Apache Libcloud provider. See docs/operators/libcloud.md."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from penstock.domain.account import Thing
from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.factories.libcloud import settings as libcloud_settings
from penstock.drivers.factories.libcloud.alternatives import account_of, alternatives, scope_prefix
from penstock.drivers.factories.libcloud.errors import driver_errors, scrubbed
from penstock.drivers.factories.libcloud.launch import creation_error, launch, metadata
from penstock.drivers.factories.libcloud.names import Names
from penstock.drivers.factories.libcloud.nodes import Cloud, Machine, Nodes, connect
from penstock.drivers.factories.libcloud.settings import Settings
from penstock.drivers.factories.shortages import has_alternative, lateness
from penstock.drivers.secrets import Resolve, resolver
from penstock.kernel.errors import Misconfigured
from penstock.ports import NotYet, Order, Ready

SITE = "PENSTOCK_SITE"
"""The environment variable with the deployment's name, which infra/stack.py sets."""

RECHECK_SECONDS = 10
"""Seconds between checks of a machine that is being destroyed."""

MACHINE, CARD, DISK = "machine", "network card", "disk"
"""The kinds of things that the account diff shows."""

EVIDENCE_CHARS = 8 * 1024
"""How many characters of the end of the console output become evidence."""


class LibcloudFactory:
    """Makes workers in one account of one cloud. It has no state of its own: it finds machines by name. [UNIT-1]"""

    reusable = True

    def __init__(
        self,
        settings: Mapping[str, Any],
        environment: Mapping[str, str],
        open_cloud: Callable[[Settings, Resolve], Cloud] = connect,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not environment.get(SITE) or not environment.get(MAKER):
            raise Misconfigured(
                f"the libcloud driver needs {SITE} and {MAKER} in its environment, to name what it makes"
            )
        self._settings = libcloud_settings.read(settings)
        self._names = Names(environment[SITE], environment[MAKER], self._settings.prefix)
        self._open_cloud, self._monotonic = open_cloud, monotonic
        self._resolve = resolver(environment)

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, one sentence each. Calls no service."""
        return libcloud_settings.complaints(settings)

    @cached_property
    def _nodes(self) -> Nodes:
        return Nodes(self._open_cloud(self._settings, self._resolve), self._settings)

    def create(self, order: Order) -> Ready | NotYet:
        """Create the worker's machine unless one is listed, trying one alternative after the other."""
        is_late = lateness(self._monotonic)
        with driver_errors():
            found = self._of(order.id)
            if found:
                return self._existing(found)
            return launch(order, self._nodes, self._settings, self._names, is_late)

    def _existing(self, found: Sequence[Machine]) -> Ready:
        """Keep the machine that was made first, and destroy others. Raises DriverError if all have failed."""
        alive = sorted((each for each in found if not each.is_gone), key=lambda each: each.age)
        whole = [each for each in alive if each.state != "error"]
        for machine in alive:
            if machine not in whole[:1]:
                self._nodes.end(machine)
        if alive and not whole:
            raise creation_error(alive[0], self._settings)
        return Ready(metadata((whole or found)[0], self._settings))

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Destroy the worker's machines and network cards; a proof when none is listed any more."""
        with driver_errors():
            machines = [machine for machine in self._of(unit) if not machine.is_gone]
            for machine in machines:
                self._nodes.end(machine)
            if machines:
                return NotYet(RECHECK_SECONDS, "its machine is being destroyed")
            cards = [card for name, card in self._nodes.cards() if self._names.is_of(name, unit)]
            for card in cards:
                self._nodes.end_card(card)
            if cards:
                return NotYet(RECHECK_SECONDS, "its network card is being deleted")
        checked = f"no machine named for {unit} is listed by {self._settings.provider}"
        return CleanProof(by="libcloud", time=now, checked=checked, lag=self._settings.lag)

    def list(self) -> Iterable[str]:
        """The workers of this factory of which a machine or network card is left."""
        with driver_errors():
            names = [machine.name for machine in self._nodes.all() if not machine.is_gone]
            names += [name for name, _ in self._nodes.cards()]
            return sorted({worker for worker in map(self._names.worker, names) if worker})

    def things(self) -> Iterable[Thing]:
        """The machines, network cards and disks of this site, also those of factories that it no longer has."""
        names = self._names
        with driver_errors():
            machines = [
                (MACHINE, each.id, names.of_site(each.name, each.extra))
                for each in self._nodes.all()
                if not each.is_gone
            ]
            cards = [(CARD, str(card.id), names.of_site(name, {})) for name, card in self._nodes.cards()]
            disks = [(DISK, disk.id, names.disk(disk.name, disk.extra)) for disk in self._nodes.disks()]
        return [Thing(kind, id, of[0], maker=of[1]) for kind, id, of in (*machines, *cards, *disks) if of]

    def evidence(self, unit: str) -> str | None:
        """The state of a worker's machines, and the end of their console output."""
        with driver_errors():
            return "\n".join(map(self._describe, self._of(unit))) or None

    def has_alternative(self, order: Order) -> bool:
        """Whether an order leaves any alternative to try."""
        return has_alternative(order, alternatives(self._settings))

    def shares_scope(self, scope: str) -> bool:
        """Whether a scope is in this account."""
        return scope.startswith(f"{scope_prefix(account_of(self._settings))}/")

    def _describe(self, machine: Machine) -> str:
        why = f": {scrubbed(machine.fault)}" if machine.fault else ""
        head = f"{machine.name} ({machine.id}) is {machine.state}{why}"
        printed = self._nodes.console(machine).strip()[-EVIDENCE_CHARS:]
        return f"{head}; end of its console:\n{printed}" if printed else f"{head}; its console output is not available"

    def _of(self, worker: str) -> Sequence[Machine]:
        return [machine for machine in self._nodes.all() if self._names.is_of(machine.name, worker)]
