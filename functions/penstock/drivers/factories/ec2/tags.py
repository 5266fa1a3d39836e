"""By what a machine is known to be ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SITE = "penstock:site"
FACTORY = "penstock:factory"
WORKER = "penstock:worker"


@dataclass(frozen=True)
class Tags:
    """The tags of one factory of one deployment. No other deployment's machines carry this `site`."""

    site: str
    factory: str

    def of(self, worker: str, more: Mapping[str, str]) -> dict[str, str]:
        """All the tags of what is made for a worker."""
        ours = {SITE: self.site, FACTORY: self.factory, WORKER: worker}
        return {**more, **ours, "Name": f"{self.factory} {worker}"}

    @property
    def all(self) -> dict[str, str]:
        """What every machine of the factory carries."""
        return {SITE: self.site, FACTORY: self.factory}

    def one(self, worker: str) -> dict[str, str]:
        """What every machine of a worker carries, under whatever name its factory went."""
        return {SITE: self.site, WORKER: worker}
