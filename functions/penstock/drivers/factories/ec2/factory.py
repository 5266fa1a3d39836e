"""The `ec2` factory: workers that are EC2 instances. See docs/operators/ec2.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.factories.ec2 import identity, keys
from penstock.drivers.factories.ec2.alternatives import region_of
from penstock.drivers.factories.ec2.events import news
from penstock.drivers.factories.ec2.machines import ALIVE, GOING, RUNNING, Machine, Machines, connect
from penstock.drivers.factories.ec2.search import has_way, launched, metadata
from penstock.drivers.factories.ec2.tags import SITE as SITE_TAG
from penstock.drivers.factories.ec2.tags import Tags
from penstock.drivers.factories.ec2.told import told
from penstock.kernel.errors import Misconfigured
from penstock.ports import MachineFate, MachineNotice, NotYet, Order, Ready

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

SITE = "PENSTOCK_SITE"
"""The function's environment names the deployment: infra/stack.py."""

LOOK_AGAIN = 5
"""Seconds until a machine that is ending is looked at again; it takes about half a minute."""

SEEN_WITHIN = 60
"""Seconds for which a machine may exist before EC2's lists show it."""

EVIDENCE = 8 * 1024
"""How many characters of a console are kept: its end."""


class Ec2Factory:
    """Makes workers in one region. It keeps nothing: what there is, EC2 is asked for by tags. [UNIT-1]"""

    def __init__(
        self,
        settings: Mapping[str, Any],
        surroundings: Mapping[str, str],
        client: Callable[[str], EC2Client] = connect,
    ) -> None:
        if not surroundings.get(SITE) or not surroundings.get(MAKER):
            raise Misconfigured("the ec2 factory must know its site and its own name, to tag what it makes")
        self._settings = keys.read(settings)
        self._tags = Tags(surroundings[SITE], surroundings[MAKER])
        self._client = client

    keeps = True

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, a sentence each. Asks nobody."""
        return keys.complaints(settings)

    @property
    def _machines(self) -> Machines:
        return Machines(self._client(self._settings.region))

    def create(self, order: Order) -> Ready | NotYet:
        """Launch the worker's machine, unless it was launched before; trying one alternative after the other."""
        with told():
            before = list(self._machines.tagged(self._tags.one(order.id)))
            if before:
                return Ready(metadata(next((each for each in before if not each.is_gone), before[0])), proves=())
            return launched(order, self._machines, self._settings, self._tags)

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Terminate every machine of the worker, and say so when EC2 says that they are gone, and their volumes."""
        with told():
            machines = list(self._machines.tagged(self._tags.one(unit)))
            for machine in machines:
                if machine.state in ALIVE:
                    self._machines.terminate(machine)
            if not all(machine.is_gone for machine in machines):
                return NotYet(LOOK_AGAIN, "its machine is shutting down")
            if self._volumes_left(unit):
                return NotYet(LOOK_AGAIN, "its volumes are being deleted")
        gone = ", ".join(machine.id for machine in machines) or "none was listed"
        checked = f"no machine or volume tagged {unit} is left in {self._settings.region}; terminated: {gone}"
        return CleanProof(by="ec2", time=now, checked=checked, lag=0 if machines else SEEN_WITHIN)

    def _volumes_left(self, unit: str) -> bool:
        """Whether there are volumes left. An image may say of its own that they outlive the machine: not here."""
        volumes = self._machines.volumes(self._tags.one(unit))
        for volume, state in volumes:
            if state in ("available", "error"):
                self._machines.delete_volume(volume)
        return bool(volumes)

    def list(self) -> Iterable[str]:
        """The workers whose machines are not gone, as far as this factory made them."""
        with told():
            found = self._machines.tagged(self._tags.all, (*ALIVE, GOING))
            return sorted({machine.worker for machine in found if machine.worker})

    def evidence(self, unit: str) -> str | None:
        """What EC2 says of a worker's machines, and the end of what they printed."""
        with told():
            machines = list(self._machines.tagged(self._tags.one(unit)))
            return "\n".join(map(self._testimony, machines)) or None

    def _testimony(self, machine: Machine) -> str:
        why = f": {machine.reason}" if machine.reason else ""
        head = f"{machine.id} ({machine.type}, {machine.zone}) is {machine.state}{why}"
        printed = self._machines.console(machine).strip()[-EVIDENCE:]
        return f"{head}; it printed:\n{printed}" if printed else f"{head}; it has printed nothing yet"

    def has_way(self, order: Order) -> bool:
        """Whether an order leaves any way to be tried."""
        return has_way(order, self._settings)

    def shares(self, scope: str) -> bool:
        """Whether a shortage's name is one of this region: EC2 counts what all factories of an account have there."""
        return scope.startswith(f"{region_of(self._settings.region)}/")

    def stranger(self, shown: Mapping[str, str], made: Mapping[str, Any]) -> str | None:
        """Why the machine that shows this is not the one that `create` told of; None when it is. [SEC-2]"""
        if not self._settings.identity:
            return None
        return identity.stranger(shown, self._settings.identity, self._settings.region, made)

    def tidings(self, event: Mapping[str, Any]) -> MachineNotice | None:
        """What an event of EventBridge says of a worker of this site; only EC2 itself knows which machines are ours."""
        said = news(event)
        if said is None or said.region != self._settings.region:
            return None
        with told():
            machine = self._machines.named(said.instance, {SITE_TAG: self._tags.site})
            if machine is None or not machine.worker:
                return None
            if said.fate is MachineFate.LOST and self._others(machine):
                return None
        return MachineNotice(machine.worker, said.fate, said.why, said.until)

    def _others(self, machine: Machine) -> bool:
        """Whether a worker has another machine that runs. Of two that were launched for it, one is refused and ends.

        A launch whose answer was lost, and that was asked for again under other settings, makes a second one. [JOB-2]
        """
        of_worker = self._machines.tagged(self._tags.one(machine.worker or ""), RUNNING)
        return any(each.id != machine.id for each in of_worker)
