"""The `ec2` factory: workers that are EC2 instances. See docs/operators/ec2.md."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.domain.account import Thing
from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.factories.aws.tags import SITE, SITE_TAG, Tags
from penstock.drivers.factories.ec2 import identity
from penstock.drivers.factories.ec2 import settings as ec2_settings
from penstock.drivers.factories.ec2.alternatives import alternatives, scope_prefix
from penstock.drivers.factories.ec2.errors import driver_errors
from penstock.drivers.factories.ec2.events import read_event
from penstock.drivers.factories.ec2.launch import launch, metadata
from penstock.drivers.factories.ec2.machines import (
    ALIVE,
    RUNNING,
    SHUTTING_DOWN,
    Machine,
    Machines,
    connect,
)
from penstock.drivers.factories.shortages import has_alternative, lateness
from penstock.kernel.errors import Misconfigured
from penstock.ports import MachineFate, MachineNotice, NotYet, Order, Ready

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

RECHECK_SECONDS = 5
"""Seconds between checks of a machine that is being terminated, which takes about half a minute."""

LISTING_LAG = 300
"""Seconds until EC2 lists a new machine at the latest: "Eventual consistency" advises to wait about five minutes."""

EVIDENCE_CHARS = 8 * 1024
"""How many characters of the end of the console output become evidence."""


class Ec2Factory:
    """Makes workers in one region. It has no state of its own: it finds machines by their tags. [UNIT-1]"""

    def __init__(
        self,
        settings: Mapping[str, Any],
        environment: Mapping[str, str],
        client: Callable[[str], EC2Client] = connect,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not environment.get(SITE) or not environment.get(MAKER):
            raise Misconfigured(f"the ec2 driver needs {SITE} and {MAKER} in its environment, to tag what it makes")
        self._settings = ec2_settings.read(settings)
        self._tags = Tags(environment[SITE], environment[MAKER])
        self._client, self._monotonic = client, monotonic

    reusable = True

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, one sentence each. Calls no service."""
        return ec2_settings.complaints(settings)

    @property
    def _machines(self) -> Machines:
        return Machines(self._client(self._settings.region))

    def create(self, order: Order) -> Ready | NotYet:
        """Launch the worker's machine unless it exists, trying one alternative after the other."""
        is_late = lateness(self._monotonic)
        with driver_errors():
            existing = list(self._machines.tagged(self._tags.one(order.id)))
            if existing:
                alive = next((each for each in existing if not each.is_gone), existing[0])
                return Ready(metadata(alive), proves=())
            return launch(order, self._machines, self._settings, self._tags, is_late)

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Terminate the worker's machines and delete their volumes; a proof when EC2 confirms that none is left."""
        with driver_errors():
            machines = list(self._machines.tagged(self._tags.one(unit)))
            for machine in machines:
                if machine.state in ALIVE:
                    self._machines.terminate(machine)
            if not all(machine.is_gone for machine in machines):
                return NotYet(RECHECK_SECONDS, "its machine is shutting down")
            if self._volumes_left(unit):
                return NotYet(RECHECK_SECONDS, "its volumes are being deleted")
        gone = ", ".join(machine.id for machine in machines) or "none was listed"
        checked = f"no machine or volume tagged {unit} is left in {self._settings.region}; terminated: {gone}"
        return CleanProof(by="ec2", time=now, checked=checked, lag=0 if machines else LISTING_LAG)

    def _volumes_left(self, unit: str) -> bool:
        """Whether volumes are left. Deletes those that an image's own settings kept after termination."""
        volumes = self._machines.volumes(self._tags.one(unit))
        for volume, state in volumes:
            if state in ("available", "error"):
                self._machines.delete_volume(volume)
        return bool(volumes)

    def list(self) -> Iterable[str]:
        """The workers of this factory whose machines are not terminated."""
        with driver_errors():
            found = self._machines.tagged(self._tags.all, (*ALIVE, SHUTTING_DOWN))
            return sorted({machine.worker for machine in found if machine.worker})

    def things(self) -> Iterable[Thing]:
        """All that this site's launches made in the region, also for factories that the site does not have any more."""
        with driver_errors():
            return list(self._machines.things({SITE_TAG: self._tags.site}))

    def evidence(self, unit: str) -> str | None:
        """The state of a worker's machines, and the end of their console output."""
        with driver_errors():
            machines = list(self._machines.tagged(self._tags.one(unit)))
            return "\n".join(map(self._describe, machines)) or None

    def _describe(self, machine: Machine) -> str:
        why = f": {machine.reason}" if machine.reason else ""
        head = f"{machine.id} ({machine.type}, {machine.zone}) is {machine.state}{why}"
        printed = self._machines.console(machine).strip()[-EVIDENCE_CHARS:]
        return f"{head}; end of its console:\n{printed}" if printed else f"{head}; its console is empty"

    def has_alternative(self, order: Order) -> bool:
        """Whether an order leaves any alternative to try."""
        return has_alternative(order, alternatives(self._settings))

    def shares_scope(self, scope: str) -> bool:
        """Whether a scope is in this region. EC2 counts the machines of all factories of an account there."""
        return scope.startswith(f"{scope_prefix(self._settings.region)}/")

    def identity_mismatch(self, shown: Mapping[str, str], made: Mapping[str, Any]) -> str | None:
        """Why this identity document is not that of the machine that `create` made; None if it is. [SEC-2]"""
        if not self._settings.identity:
            return None
        return identity.mismatch(shown, self._settings.identity, self._settings.region, made)

    def read_event(self, event: Mapping[str, Any]) -> MachineNotice | None:
        """What an event of EventBridge means for a worker of this site. EC2's tags tell whether the machine is ours."""
        found = read_event(event)
        if found is None or found.region != self._settings.region:
            return None
        with driver_errors():
            machine = self._machines.named(found.instance, {SITE_TAG: self._tags.site})
            if machine is None or not machine.worker:
                return None
            if found.fate is MachineFate.LOST and self._has_twin(machine):
                return None
        return MachineNotice(machine.worker, found.fate, found.why, found.until)

    def _has_twin(self, machine: Machine) -> bool:
        """Whether the worker has another running machine: then the loss of this one does not lose the worker. [JOB-2]

        A launch whose answer was lost, and that was repeated with other settings, makes a second machine. Only one of
        the two is accepted as the worker; the other ends by itself.
        """
        of_worker = self._machines.tagged(self._tags.one(machine.worker or ""), RUNNING)
        return any(each.id != machine.id for each in of_worker)
