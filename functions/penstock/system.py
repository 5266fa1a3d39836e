"""Everything that a use case may use, in one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.domain.metric import Metric
from penstock.ports import Drivers, Flows, Metrics, Objects, Queues, Store, Vault, World


class Untold:
    """Metrics that nobody watches."""

    def add(self, metric: Metric, value: float = 1, **by: str) -> None:
        """Nothing is told."""

    def wants(self, metric: Metric) -> bool:
        """Nothing is wanted."""
        return False


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
