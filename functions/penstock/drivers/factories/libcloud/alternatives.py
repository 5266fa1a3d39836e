"""The alternatives of a factory (size, location) in the order of trying, and the scopes of their shortages."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum

from penstock.drivers.factories.libcloud.settings import Settings
from penstock.kernel.frozen import dataclass


class Reach(StrEnum):
    """Which alternatives a shortage affects."""

    OFFER = "offer"  # this size, in this location
    SIZE = "size"  # this size
    PLACE = "place"  # this location
    ALL = "all"  # the account


@dataclass(frozen=True)
class Alternative:
    """One alternative: a size in a location. `account` identifies the cloud and the project."""

    account: str
    size: str
    location: str | None = None

    def scope(self, reach: Reach) -> str:
        """The scope of a shortage that this alternative met. It is the same in every factory of the account."""
        place = self.location or "any"
        scopes = {
            Reach.OFFER: f"{self.size}/{place}",
            Reach.SIZE: f"size/{self.size}",
            Reach.PLACE: f"place/{place}",
            Reach.ALL: "all",
        }
        return f"{scope_prefix(self.account)}/{scopes[reach]}"

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes of every shortage that affects this alternative."""
        return frozenset(self.scope(reach) for reach in Reach)

    def __str__(self) -> str:
        return f"{self.size} in {self.location}" if self.location else self.size


def alternatives(settings: Settings) -> tuple[Alternative, ...]:
    """All alternatives: sizes as listed, each in the locations as listed. The order is always the same."""
    account = account_of(settings)
    return tuple(
        Alternative(account, size, location) for size in settings.sizes for location in (settings.locations or (None,))
    )


def account_of(settings: Settings) -> str:
    """A short name of the account: the provider, and a digest of its arguments and credential references."""
    text = json.dumps([settings.provider, settings.arguments, settings.credentials], sort_keys=True, default=str)
    return f"{settings.provider}/{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def scope_prefix(account: str) -> str:
    """The beginning of every scope of an account."""
    return f"libcloud/{account}"
