"""Everything that a use case may use, in one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.ports import Drivers, Flows, Objects, Queues, Store, Vault, World


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
