"""The ways to get a machine, in the order in which they are tried, and by what names their shortages are known."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum

from penstock.drivers.factories.libcloud.settings import Settings


class Reach(StrEnum):
    """How much of what there is a shortage takes away."""

    OFFER = "offer"  # this size, in this location
    SIZE = "size"  # this size
    PLACE = "place"  # this location
    ALL = "all"  # the account


@dataclass(frozen=True)
class Alternative:
    """One way: a size in a location. `account` tells one cloud and its project from another."""

    account: str
    size: str
    location: str | None = None

    def scope(self, reach: Reach) -> str:
        """The name of a shortage that was met on this way. The same in every factory of the account."""
        place = self.location or "any"
        of_account = {
            Reach.OFFER: f"{self.size}/{place}",
            Reach.SIZE: f"size/{self.size}",
            Reach.PLACE: f"place/{place}",
            Reach.ALL: "all",
        }
        return f"{scopes_of(self.account)}/{of_account[reach]}"

    @property
    def scopes(self) -> frozenset[str]:
        """Every shortage that would make this way not worth trying."""
        return frozenset(self.scope(reach) for reach in Reach)

    def __str__(self) -> str:
        return f"{self.size} in {self.location}" if self.location else self.size


def alternatives(settings: Settings) -> tuple[Alternative, ...]:
    """All of them: sizes as listed, each in the locations as listed. Always the same order."""
    account = account_of(settings)
    return tuple(
        Alternative(account, size, location) for size in settings.sizes for location in (settings.locations or (None,))
    )


def account_of(settings: Settings) -> str:
    """A short name of the account: the provider, and a digest of where and as whom it is asked."""
    what = json.dumps([settings.provider, settings.arguments, settings.credentials], sort_keys=True, default=str)
    return f"{settings.provider}/{hashlib.sha256(what.encode()).hexdigest()[:8]}"


def scopes_of(account: str) -> str:
    """How the names of all shortages of an account begin."""
    return f"libcloud/{account}"
