"""The `container` factory: workers that are containers of this machine's engine. See docs/operators/containers.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from penstock.domain.account import Thing
from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.factories.container import settings as container_settings
from penstock.drivers.factories.container.engine import CONFLICT, MISSING, Engine
from penstock.drivers.factories.container.spec import UNIT, Deployment, body, files
from penstock.drivers.factories.container.streams import output, pull
from penstock.kernel.errors import Misconfigured, Unknown, Unsatisfiable
from penstock.kernel.frozen import dataclass
from penstock.ports import NotYet, Order, Ready

SITE = "PENSTOCK_SITE"
"""The environment variable with the deployment's name."""

NOT_STARTED = ("created", "configured", "initialized")
ENDING = ("removing", "stopping", "dead")
"""States of a container, as the two engines call them."""

AGAIN_SECONDS = 2
NO_CONTAINER = b"no such container"
"""What both engines say, in capital letters or not."""


@dataclass(frozen=True)
class Container:
    """A container of ours: the engine's id of it, its state, and why it failed, if the engine says so."""

    id: str
    state: str
    why: str = ""


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

    @staticmethod
    def complaints(settings: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with settings, one sentence each. Calls no engine."""
        return container_settings.complaints(settings)

    @staticmethod
    def objections(options: Mapping[str, Any], factory: Mapping[str, Any], _: Mapping[str, Any]) -> Sequence[str]:
        """What is wrong with what a job says of its container. Calls no engine."""
        return container_settings.objections(options, factory)

    def create(self, order: Order) -> Ready | NotYet:
        """Make and start the worker's container, unless it was started before."""
        try:
            return self._create(order)
        except OSError as error:
            raise Misconfigured(f"the agent's file cannot be written: {error}") from error

    def _create(self, order: Order) -> Ready | NotYet:
        image = self._image_of(order)
        found = self._find(order.id)
        if found is None and not self._has_image(image):
            return NotYet(AGAIN_SECONDS, "its image is being pulled")
        found = found or self._make(order, image)
        if found and found.state in NOT_STARTED:
            self._start(found, order)
            found = self._find(order.id)
        if found is None or found.state in (*NOT_STARTED, *ENDING):
            return NotYet(AGAIN_SECONDS, "its container does not run yet")
        return Ready({"container": found.id[:12], "image": image})

    def _image_of(self, order: Order) -> str:
        """The image that the job names, if the site still lets it. Raises Unsatisfiable. [SEC-2]"""
        image = order.options.get("image")
        if image and not container_settings.is_allowed(image, self._settings.images):
            raise Unsatisfiable(f"the site does not let jobs name the image {image}")
        return image or self._settings.image

    def _has_image(self, image: str) -> bool:
        """Whether an image is there; if not, pull it, as far as one call can."""
        there = self._engine.call("GET", f"/images/{image}/json", None, None, MISSING).status != MISSING
        return there or pull(self._engine, image)

    def _make(self, order: Order, image: str) -> Container | None:
        """Create the container. Another call may have been first: the engine makes one of a name only."""
        self._make_network()
        description = body(order, image, self._settings, self._of_us)
        try:
            self._engine.call("POST", "/containers/create", {"name": order.id}, description, CONFLICT)
        except Unknown:
            if self._find(order.id) is None:
                raise
        return self._find(order.id)

    def _make_network(self) -> None:
        """Make the deployment's own network, if the factory uses it and it is not there."""
        name = self._of_us.network
        if self._settings.network or self._is_there(f"/networks/{name}"):
            return
        network = {"Name": name, "CheckDuplicate": True, "Driver": "bridge", "Labels": dict(self._of_us.labels)}
        try:
            self._engine.call("POST", "/networks/create", None, network, CONFLICT)
        except Unknown:
            if not self._is_there(f"/networks/{name}"):
                raise

    def _is_there(self, path: str) -> bool:
        return self._engine.call("GET", path, None, None, MISSING).status != MISSING

    def _start(self, found: Container, order: Order) -> None:
        """Put the agent's configuration into a container, and start it. If another call has, nothing happens."""
        try:
            self._engine.call("PUT", f"/containers/{found.id}/archive", {"path": "/"}, files(order))
            self._engine.call("POST", f"/containers/{found.id}/start")
        except Misconfigured:
            if self._find(order.id):  # else it was removed meanwhile, which is no fault
                raise

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Remove the worker's container by force; a proof when the engine has none of that name. [UNIT-2]"""
        found = self._find(unit)
        if found:
            query = {"force": "1", "v": "1"}
            self._engine.call("DELETE", f"/containers/{found.id}", query, None, MISSING, CONFLICT)
            if self._find(unit):
                return NotYet(AGAIN_SECONDS, "its container is being removed")
        return CleanProof(by="container", time=now, checked=f"the engine has no container named {unit}")

    def list(self) -> Iterable[str]:
        """The workers of this factory that have a container, in whatever state."""
        return sorted({unit for unit, _ in self._listed()})

    def things(self) -> Iterable[Thing]:
        """The containers of this factory. Their volumes and files end with them."""
        return [Thing("container", id, unit) for unit, id in self._listed()]

    def _listed(self) -> Iterable[tuple[str, str]]:
        wanted = [f"{label}={value}" for label, value in self._of_us.labels.items()]
        query = {"all": "1", "filters": json.dumps({"label": wanted})}
        found = self._engine.call("GET", "/containers/json", query).json()
        try:
            labelled = [(each["Labels"], str(each["Id"])) for each in found]
            return [(str(labels[UNIT]), id) for labels, id in labelled if self._is_ours(labels)]
        except (KeyError, TypeError) as error:
            raise _garbage("list") from error

    def evidence(self, unit: str) -> str | None:
        """The state of a worker's container, and the end of what it printed."""
        found = self._find(unit)
        if found is None:
            return None
        why = f": {found.why}" if found.why else ""
        printed = output(self._engine, found.id)
        return f"container {found.id[:12]} is {found.state}{why}; end of its output:\n{printed or '(nothing)'}"

    def _find(self, unit: str) -> Container | None:
        """The container of a worker. Raises Misconfigured if one of that name is not of this factory."""
        answer = self._engine.call("GET", f"/containers/{unit}/json", None, None, MISSING)
        if answer.status == MISSING:
            if NO_CONTAINER not in answer.body.lower():  # a path that is not there is no proof that a container is not
                raise _garbage("answer to a question for a container")
            return None
        found = answer.json()
        try:
            labels, state = found["Config"]["Labels"] or {}, found["State"]
            made = Container(str(found["Id"]), str(state["Status"]).lower(), str(state.get("Error") or ""))
        except (KeyError, TypeError, AttributeError) as error:
            raise _garbage("description of a container") from error
        if not self._is_ours(labels) or labels.get(UNIT) != unit:
            raise Misconfigured(f"the engine has a container named {unit} that this factory did not make: remove it")
        return made

    def _is_ours(self, labels: Mapping[str, str]) -> bool:
        return self._of_us.labels.items() <= labels.items()


def _garbage(what: str) -> Unknown:
    return Unknown(f"the container engine sent a {what} that has not the documented form", "Garbage")
