"""The networks of one factory's workers: one for each worker, known as ours by its labels. [UNIT-1] [SEC-2]

Containers of different bridge networks do not reach each other: Docker sees to that by default, Podman from 4.2 on for
all networks that are made by Docker's API.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.drivers.factories.container.containers import garbage
from penstock.drivers.factories.container.engine import CONFLICT, MISSING, Engine
from penstock.drivers.factories.container.spec import UNIT, Deployment
from penstock.kernel.errors import Misconfigured, QuotaReached, Unknown
from penstock.kernel.frozen import dataclass

MORE = (
    "each worker has a network of its own: have the engine share out more of them (`default-address-pools` in Docker's "
    "daemon.json, `default_subnet_pools` in Podman's containers.conf), remove networks that nobody uses, or lower the "
    "limit of the target"
)
"""What operators can do when the engine has no addresses left for a network."""


@dataclass(frozen=True)
class Network:
    """A network of ours: the engine's id of it, and its worker."""

    id: str
    unit: str


class Networks:
    """The networks of one factory's workers."""

    def __init__(self, engine: Engine, of_us: Deployment) -> None:
        self._engine, self._of_us = engine, of_us

    def have(self, unit: str) -> str:
        """The engine's id of a worker's network, which is made if it is not there. Raises QuotaReached.

        An engine may make two of one name, for two calls at once: all calls choose the same, and both are removed.
        """
        found = self.listed(unit) or self._make(unit)
        if not found:
            raise Misconfigured(f"the engine has a network named {unit} that this factory did not make: remove it")
        return min(each.id for each in found)

    def _make(self, unit: str) -> Sequence[Network]:
        labels = {**self._of_us.labels, UNIT: unit}
        description = {"Name": unit, "CheckDuplicate": True, "Driver": "bridge", "Labels": labels}
        try:
            self._engine.call("POST", "/networks/create", None, description, CONFLICT)
        except QuotaReached as error:
            raise QuotaReached(f"{error}; {MORE}") from error
        except Unknown:
            found = self.listed(unit)
            if not found:
                raise
            return found
        return self.listed(unit)

    def remove(self, id: str) -> None:
        """Remove a network; it need not exist. Raises Unknown while a container uses it."""
        self._engine.call("DELETE", f"/networks/{id}", None, None, MISSING)

    def listed(self, unit: str = "") -> Sequence[Network]:
        """The networks of this factory's workers; or those of one worker.

        Podman is asked by its own API. By Docker's, before 5.0.2, it forgets that a network which it lists is isolated:
        https://github.com/podman-container-tools/podman/pull/22332
        """
        labels = {**self._of_us.labels, **({UNIT: unit} if unit else {})}
        filters = json.dumps({"label": [f"{label}={value}" for label, value in labels.items()]})
        path = f"{self._engine.libpod}/networks/json" if self._engine.libpod else "/networks"
        found = self._engine.call("GET", path, {"filters": filters}).json()
        try:
            return list(self._networks(found, unit))
        except (KeyError, TypeError, AttributeError) as error:
            raise garbage("list of networks") from error

    def _networks(self, found: Any, unit: str) -> Iterable[Network]:
        """Those of workers. A network that all workers of a local cloud shared, as earlier releases made, has none."""
        id, its_labels = ("id", "labels") if self._engine.libpod else ("Id", "Labels")
        for each in found:
            labels: Mapping[str, str] = each[its_labels] or {}
            owner = labels.get(UNIT, "")
            if owner and unit in ("", owner) and self._of_us.labels.items() <= labels.items():
                yield Network(str(each[id]), owner)
