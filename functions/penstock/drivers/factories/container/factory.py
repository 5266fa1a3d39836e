"""The `container` factory: workers that are containers of this machine's engine. See docs/operators/containers.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from penstock.domain.account import Thing
from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.factories.container import settings as container_settings
from penstock.drivers.factories.container.containers import ENDING, NOT_STARTED, Container, Containers
from penstock.drivers.factories.container.engine import Engine
from penstock.drivers.factories.container.networks import Networks
from penstock.drivers.factories.container.services import Services
from penstock.drivers.factories.container.spec import Deployment, body, files
from penstock.kernel.errors import Misconfigured, Unsatisfiable
from penstock.ports import NotYet, Order, Ready

SITE = "PENSTOCK_SITE"
"""The environment variable with the deployment's name."""

AGAIN_SECONDS = 2


class ContainerFactory:
    """Makes workers at one engine. It has no state of its own: a container is found by its name and labels. [UNIT-1]"""

    reusable = True

    def __init__(self, settings: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        home, site, maker = (environment.get(each, "") for each in ("PENSTOCK_HOME", SITE, MAKER))
        if not home or not site or not maker:
            raise Misconfigured(
                "the container driver works only where Penstock runs on the engine's machine, which is the local "
                "cloud; choose another driver for a deployment in AWS"
            )
        self._settings = container_settings.read(settings)
        self._of_us = Deployment(site, maker, Path(home))
        self._engine = Engine(container_settings.socket_of(self._settings))
        self._containers = Containers(self._engine, self._of_us)
        self._networks = Networks(self._engine, self._of_us)
        self._services = Services(self._containers, self._settings, self._of_us)

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, one sentence each. Calls no engine."""
        return container_settings.complaints(settings)

    @staticmethod
    def objections(options: Mapping[str, Any], factory: Mapping[str, Any], _: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with what a job says of its container. Calls no engine."""
        return container_settings.objections(options, factory)

    def create(self, order: Order) -> Ready | NotYet:
        """Make and start the worker's container, and before that its network, unless it was started before."""
        try:
            return self._create(order)
        except OSError as error:
            raise Misconfigured(f"the agent's file cannot be written: {error}") from error

    def _create(self, order: Order) -> Ready | NotYet:
        image = container_settings.image_of(self._settings, order.options)
        found = self._containers.find(order.id, order.id)
        if found is None and not self._has_image(image):
            return NotYet(AGAIN_SECONDS, "its image is being pulled")
        found = found or self._make(order, image)
        if found and found.state in NOT_STARTED:
            self._start(found, order)
            found = self._containers.find(order.id, order.id)
        if found is None or found.state in (*NOT_STARTED, *ENDING):
            return NotYet(AGAIN_SECONDS, "its container does not run yet")
        return self._services.begin(order, found) or Ready({"container": found.id[:12], "image": image})

    def _has_image(self, image: str) -> bool:
        """Whether an image is there, or was pulled. One that cannot be had fails the job that names it."""
        try:
            return self._containers.has_image(image)
        except Misconfigured as error:
            if image == self._settings.image:
                raise
            raise Unsatisfiable(f"the image {image} cannot be had: {error}") from error

    def _make(self, order: Order, image: str) -> Container | None:
        """Make a container, in the factory's network or in one of its own, which is made before."""
        network = self._settings.network or self._networks.have(order.id)
        return self._containers.make(order.id, order.id, body(order, image, network, self._settings, self._of_us))

    def _start(self, found: Container, order: Order) -> None:
        """Put the agent's configuration into a container, and start it. If another call has, nothing happens."""
        if not found.is_bounded:
            raise Misconfigured("the engine bounds no memory: run it as root, or on a machine with cgroups v2")
        try:
            self._containers.put(found, files(order))
            self._containers.start(found)
        except Misconfigured:
            if self._containers.find(order.id, order.id):  # else it was removed meanwhile, which is no fault
                raise

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Remove the worker's containers by force, then its network; a proof when the engine has neither. [UNIT-2]

        Its services go first: an engine may keep a container whose network others use.
        """
        found = self._containers_of(unit)
        for id in found:
            self._containers.remove(id)
        if found and self._containers_of(unit):
            return NotYet(AGAIN_SECONDS, "its containers are being removed")
        networks = self._networks.listed(unit)
        for each in networks:
            self._networks.remove(each.id)
        if networks and self._networks.listed(unit):
            return NotYet(AGAIN_SECONDS, "its network is being removed")
        checked = f"the engine has no container named {unit}, no service of it, and no network of its own"
        return CleanProof(by="container", time=now, checked=checked)

    def _containers_of(self, unit: str) -> list[str]:
        """The containers of a worker: its services, and then its own, which is known by its name."""
        own = self._containers.find(unit, unit)
        services = [each.id for each in self._containers.listed(unit) if each.service]
        return [*services, *([own.id] if own else [])]

    def list(self) -> Iterable[str]:
        """The workers of this factory that have a container, in whatever state, or a network."""
        containers = {each.unit for each in self._containers.listed()}
        return sorted(containers | {each.unit for each in self._networks.listed()})

    def things(self) -> Iterable[Thing]:
        """The containers of this factory, whose volumes and files end with them, and its networks."""
        containers = [Thing("container", each.id, each.unit) for each in self._containers.listed()]
        return [*containers, *(Thing("network", each.id, each.unit) for each in self._networks.listed())]

    def evidence(self, unit: str) -> str | None:
        """The state of a worker's container, and the end of what it and its services printed."""
        found = self._containers.find(unit, unit)
        if found is None:
            return None
        why = f": {found.why}" if found.why else ""
        printed = [f"container {found.id[:12]} is {found.state}{why}; {self._printed(found.id)}"]
        beside = [each for each in self._containers.listed(unit) if each.service]
        return "\n".join([*printed, *(f"service {each.service}: {self._printed(each.id)}" for each in beside)])

    def _printed(self, id: str) -> str:
        return f"end of its output:\n{self._containers.output(id) or '(nothing)'}"
