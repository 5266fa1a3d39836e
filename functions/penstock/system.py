"""Everything that a use case may use, in one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.domain.errors import Misconfigured
from penstock.domain.metric import Metric
from penstock.domain.site import GitHubApp
from penstock.ports import Ask, Drivers, Flows, Forge, Metrics, Objects, Queues, Store, Told, Vault, World


class Untold:
    """Metrics that nobody watches."""

    def add(self, metric: Metric, value: float = 1, **by: str) -> None:
        """Nothing is told."""

    def wants(self, metric: Metric) -> bool:
        """Nothing is wanted."""
        return False


class NoForge:
    """A deployment without the front end for GitHub."""

    def tell(self, message: Mapping[str, Any], after: int = 0) -> None:
        """Nobody is there to take a step."""

    def call(self, app: GitHubApp, ask: Ask) -> Told:
        """Raises Misconfigured."""
        raise Misconfigured("this deployment has no front end for GitHub: deploy it with -c github=true")

    def secret(self) -> str:
        """Raises Misconfigured."""
        raise Misconfigured("this deployment has no front end for GitHub: deploy it with -c github=true")


@dataclass(frozen=True)
class System:
    """The ports, plugged in. `url` is where agents dial; `signing_key` is read only when it is needed."""

    store: Store
    queues: Queues
    flows: Flows
    objects: Objects
    drivers: Drivers
    world: World
    vault: Vault
    url: str
    signing_key: Callable[[], str]
    metrics: Metrics = field(default_factory=Untold)
    forge: Forge = field(default_factory=NoForge)
