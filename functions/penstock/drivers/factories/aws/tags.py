"""The tags of what a factory makes in AWS. [UNIT-1]"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.kernel.frozen import dataclass

SITE = "PENSTOCK_SITE"
"""The environment variable with the deployment's name, which infra/stack.py sets."""

SITE_TAG = "penstock:site"
FACTORY_TAG = "penstock:factory"
WORKER_TAG = "penstock:worker"


@dataclass(frozen=True)
class Tags:
    """The tags of one factory of one deployment. Another deployment's machines never carry this `site`."""

    site: str
    factory: str

    def of(self, worker: str, more: Mapping[str, str]) -> dict[str, str]:
        """All tags of what is made for a worker."""
        own = {SITE_TAG: self.site, FACTORY_TAG: self.factory, WORKER_TAG: worker}
        return {**more, **own, "Name": f"{self.factory} {worker}"}

    @property
    def all(self) -> dict[str, str]:
        """The tags that every machine of the factory carries."""
        return {SITE_TAG: self.site, FACTORY_TAG: self.factory}

    def one(self, worker: str) -> dict[str, str]:
        """The tags that every machine of a worker carries, even if the factory was renamed since."""
        return {SITE_TAG: self.site, WORKER_TAG: worker}
