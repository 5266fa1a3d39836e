"""Which host of a shared pool has room for whom, reckoned from names of slots: penstock.domain.pools.packing does the
same for those who wait together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from penstock.domain.pools.choices import ANY
from penstock.domain.pools.pools import Claim, Pool, Serves, thing_of


class Hosts:
    """What is free of each host, and whose jobs it has."""

    def __init__(self, pool: Pool, free: Collection[str], had: Mapping[str, str]) -> None:
        self._pool = pool
        self._free = Counter(map(thing_of, free))
        self._owners: dict[str, set[str]] = {}
        for name, owner in had.items():
            self._owners.setdefault(thing_of(name), set()).add(owner)
        self._is_apart = pool.share is not None and pool.share.serves is Serves.OWNER

    def fit(self, claim: Claim) -> list[str]:
        """The hosts that have enough free for a claim, and nobody else's job, where owners are kept apart."""
        return [host for host in self._chosen(claim) if self._free[host] >= claim.count and self._is_open(host, claim)]

    def most(self, claim: Claim, aside: Mapping[str, int]) -> list[str]:
        """The hosts of which most is free, of those that a claim chooses, and that have enough once jobs end, without
        the parts that are aside; of all, if there is none.
        """
        parts = self._pool.share.parts if self._pool.share else 1
        chosen = self._chosen(claim)
        fits = [host for host in chosen if parts - aside.get(host, 0) >= claim.count] or chosen
        return [host for host in fits if self._free[host] == max(self._free[each] for each in fits)]

    def _is_open(self, host: str, claim: Claim) -> bool:
        return not self._is_apart or self._owners.get(host, set()) <= {claim.owner}

    def _chosen(self, claim: Claim) -> list[str]:
        choice, labels = next(iter(claim.choices), ANY), self._pool.labels
        names = dict.fromkeys(map(thing_of, self._pool.names or ()))
        return [host for host in names if choice.fits(host, labels.get(host, {}))]
