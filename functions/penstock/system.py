"""The ports, in one value that every use case gets as `on`; and stand-ins for the optional ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from penstock.domain.metrics import Metric
from penstock.domain.site.site import GitHubApp
from penstock.domain.users.oidc import PublicKey
from penstock.kernel.errors import Misconfigured, Refused
from penstock.kernel.frozen import dataclass
from penstock.ports import (
    Drivers,
    Flows,
    Forge,
    GitHubRequest,
    GitHubResponse,
    Metrics,
    Objects,
    Queues,
    Signer,
    Store,
    Vault,
    World,
)


class NoMetrics:
    """Metrics that nobody collects."""

    def add(self, metric: Metric, value: float = 1, **by: str) -> None:
        """Does nothing."""

    def wants(self, metric: Metric) -> bool:
        """False."""
        return False


class NoSigner:
    """A deployment without a key for identity tokens."""

    def kid(self) -> str:
        """Raises Refused 422: there is no key."""
        raise Refused(422, "no-identity-key", "this deployment has no key to sign identity tokens with")

    def sign(self, message: bytes) -> bytes:
        """Raises Refused 422."""
        return self.kid().encode() + message

    def keys(self) -> Sequence[PublicKey]:
        """None."""
        return ()


class NoForge:
    """A deployment without the front end for GitHub."""

    def enqueue(self, message: Mapping[str, Any], after: int = 0) -> None:
        """Does nothing: no front end would take the step."""

    def call(self, app: GitHubApp, ask: GitHubRequest) -> GitHubResponse:
        """Raises Misconfigured."""
        raise Misconfigured("this deployment has no front end for GitHub: deploy it with -c github=true")

    def secret(self) -> str:
        """Raises Misconfigured."""
        raise Misconfigured("this deployment has no front end for GitHub: deploy it with -c github=true")


class NoVault:
    """A deployment without the front end for GitHub, and so without a key to seal its tokens."""

    def seal(self, secret: bytes, of: Mapping[str, str]) -> str:
        """Raises Misconfigured."""
        raise Misconfigured("this deployment has no front end for GitHub: deploy it with -c github=true")

    def open(self, sealed: str, of: Mapping[str, str]) -> bytes:
        """Raises Misconfigured."""
        raise Misconfigured("this deployment has no front end for GitHub: deploy it with -c github=true")


@dataclass(frozen=True)
class System:
    """The ports. `url` is where agents connect; `signing_key` is read only when needed.

    `vault` seals what workers get, `minted` the GitHub tokens to revoke: each has its own key.
    """

    store: Store
    queues: Queues
    flows: Flows
    objects: Objects
    drivers: Drivers
    world: World
    vault: Vault
    url: str
    signing_key: Callable[[], str]
    metrics: Metrics = field(default_factory=NoMetrics)
    signer: Signer = field(default_factory=NoSigner)
    forge: Forge = field(default_factory=NoForge)
    minted: Vault = field(default_factory=NoVault)
