"""What every use case works with: the ports, in one value that it gets as `on`; transactions; and the site as applied.

Optional ports have stand-ins here, for deployments without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any, TypeVar

from penstock.domain.metrics import Count, Metric
from penstock.domain.site import parse
from penstock.domain.site.site import SITE_KEY, GitHubApp, Site, SiteText
from penstock.domain.users.oidc import PublicKey
from penstock.kernel.errors import Misconfigured, Moved, Refused
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Row
from penstock.ports import (
    AgentFile,
    Alarms,
    Attestor,
    DeadLetters,
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


class NothingWatched:
    """A system that is no deployment: it has no alarms and no dead-letter queues."""

    def read(self) -> Sequence[Any]:
        """None."""
        return ()


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

    def exchange(self, app: GitHubApp, code: str, verifier: str, redirect: str) -> str:
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
    """The ports. `url` is where agents connect, `console_url` where people find the pages; `signing_key` and
    `front_key`, which proves that a request came through our distribution, are read only when needed.

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
    attestor: Attestor | None = None
    forge: Forge = field(default_factory=NoForge)
    minted: Vault = field(default_factory=NoVault)
    agent_file: AgentFile | None = None
    console_url: str = ""
    front_key: Callable[[], str] | None = None
    alarms: Alarms = field(default_factory=NothingWatched)
    dead_letters: DeadLetters = field(default_factory=NothingWatched)


TRIES = 12
"""How often a lost race is repeated before the step is left to a redelivery or the sweep."""

T = TypeVar("T")


class StaleRead(Exception):
    """The rows that were read were never so at one moment."""


def transact(on: System, decide: Callable[[], tuple[Sequence[Change], T]]) -> T:
    """Commit what `decide` decides and return its answer. Without changes there is nothing to commit.

    `decide` reads what it needs itself, so every try sees the rows anew. A commit holds only if all its rows are as
    they were read; a refusal without a commit uses `check_unchanged`. Raises Moved after TRIES.
    """
    for tries in range(TRIES):
        with suppress(StaleRead):
            changes, answer = decide()
            if not changes or on.store.commit(changes):
                return answer
        on.world.pause(tries)
    raise Moved()


def check_unchanged(on: System, row: Row) -> None:
    """Make sure that a row is as it was read before the others. Raises StaleRead, after which `transact` repeats."""
    if on.store.get(row.key, type(row)) != row:
        raise StaleRead


_parsed_site: dict[str, Site] = {}
"""The last text that was parsed, and its site; a warm function mostly reads the same text again."""


def current_site(on: System) -> Site:
    """The site. A site that was never applied is empty."""
    row = on.store.get(SITE_KEY, SiteText)
    return parse_site(row.toml) if row else Site()


def parse_site(toml: str) -> Site:
    """The site that an applied text describes. Raises Misconfigured if it is no longer valid."""
    if toml not in _parsed_site:
        found = parse.parse(toml, "site.toml")
        if not isinstance(found, Site):
            raise Misconfigured(f"the site no longer parses: {found[0].message}")
        _parsed_site.clear()
        _parsed_site[toml] = found
    return _parsed_site[toml]


def measure(on: System, counts: Iterable[Count]) -> None:
    """Add what an event adds to metrics, after the commit of the event. No decision depends on them."""
    for each in counts:
        on.metrics.add(each.metric, each.value, **each.by)
