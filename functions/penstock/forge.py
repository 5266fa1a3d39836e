"""What the front end for GitHub needs of it: a port, like those of ports.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from penstock.domain.site import GitHubApp


@dataclass(frozen=True)
class Scope:
    """What a token of an installation is good for: one repository and maybe others, and what may be done there.

    Without a repository, 0, it is good for all that the installation has.
    """

    installation: int
    repository_id: int
    permissions: Mapping[str, str]
    others: tuple[int, ...] = ()

    @property
    def asks(self) -> Mapping[str, Any]:
        """What GitHub is asked for a token with."""
        of = {"repository_ids": [self.repository_id, *self.others]} if self.repository_id else {}
        return {**of, "permissions": dict(self.permissions)}


@dataclass(frozen=True)
class Ask:
    """One call of GitHub's API. Without a scope it is the App itself that asks.

    With `raw` the answer is a file's bytes; with an `etag` GitHub may say that nothing is new: 304. A `token` is shown
    in the place of one that would be made for the scope; that GitHub does not take it is an answer as any other: 401.
    """

    method: str
    path: str
    scope: Scope | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    etag: str = ""
    raw: bool = False
    token: str = field(default="", repr=False)


@dataclass(frozen=True)
class Told:
    """What GitHub answered. `next` are the parameters of the page that follows."""

    status: int
    body: Any = None
    etag: str = ""
    next: Mapping[str, str] | None = None


class Forge(Protocol):
    """GitHub, and whoever does what follows from what it says."""

    def tell(self, message: Mapping[str, Any], after: int = 0) -> None:
        """Hint to the front end to take a step, after some seconds (at most 900). As with all hints, it may be lost."""

    def call(self, app: GitHubApp, ask: Ask) -> Told:
        """Ask GitHub. Raises RateLimited, or Unknown for an answer of 5xx or none, or of 401 to a token of our own."""

    def secret(self) -> str:
        """What webhooks are signed with."""
