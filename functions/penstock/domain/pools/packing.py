"""Who of a queue gets parts of which machine, where several jobs share each: a pool with a `share`.

Each machine has as many slots as parts. A job takes some of them, all of one machine: of those that have enough left,
the one with the fewest, so that others stay free for large jobs. (Best fit; D. S. Johnson et al., "Worst-case
performance bounds for simple one-dimensional packing algorithms", 1974.) Where owners are kept apart, nobody gets a
part of a machine of which somebody else has one. [SEC-2]

Who finds no machine waits for the one of which most is left, of those that have enough once jobs end: parts may be set
aside, for a unit that somebody holds or that is in quarantine. Once others may take nothing from that claim any more,
this machine only gets emptier: so in the end it has enough. [QUEUE-2] docs/decisions/0103-jobs-share-machines.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from penstock.domain.pools.matching import Wish, wishes
from penstock.domain.pools.pools import Claim, Pool, Slot, thing_of
from penstock.kernel.frozen import dataclass

NOTHING: Mapping[str, int] = {}


@dataclass(frozen=True)
class Place:
    """The machine that a claim gets parts of, or waits for; None if none fits it."""

    machine: str | None
    has_it: bool


SEVERAL = "several owners"
"""Whose a machine is that has jobs of several owners, since it served anybody's until now. No owner is called so."""


def occupants(pool: Pool, had: Iterable[Slot] | None) -> dict[str, str]:
    """Who has parts of which machine, where owners are kept apart: nobody else gets the rest of it. [SEC-2]"""
    found: dict[str, str] = {}
    for slot in (had or ()) if pool.keeps_apart else ():
        found[slot.thing] = slot.owner if found.get(slot.thing, slot.owner) == slot.owner else SEVERAL
    return found


def reachable(pool: Pool, free: Iterable[Slot], had: Sequence[Slot] | None, owner: str) -> list[Slot]:
    """The free parts that an owner may have. None of a machine while it is not known who has the others. [SEC-2]

    A part that came back after the free ones were read, and before those that somebody has, was seen in neither. Who
    gives it back asks that the pool is served after that.
    """
    every = list(free)
    if not pool.keeps_apart:
        return every
    if had is None:
        return []
    taken, seen = occupants(pool, had), {slot.name for slot in (*every, *had)}
    unknown = {thing_of(name) for name in (pool.names or ())[: pool.limit] if name not in seen}
    return [slot for slot in every if slot.thing not in unknown and taken.get(slot.thing, owner) == owner]


def wants(pool: Pool, claim: Claim) -> str:
    """What a claim takes of a machine, for people; "" where jobs do not share machines."""
    parts = pool.share.parts if pool.share else 1
    if claim.count > parts and any(choice.together for choice in claim.choices):
        return f"{claim.count} parts of one host, and a host has {parts} now: it waits until the site changes"
    if pool.share is None:
        return ""
    alone = ", on which only jobs of its owner run" if pool.keeps_apart else ""
    return f"{claim.count} of the {parts} parts of one host{alone}"


class Packing:
    """What is left of each machine, and whose it is, claim by claim.

    `gone` is what somebody takes before the others: who waits still waits for the machine of which most was left before
    that. `lacking`: of which machines so many parts are set aside.
    """

    def __init__(
        self,
        pool: Pool,
        left: Mapping[str, int],
        occupants: Mapping[str, str],
        gone: Mapping[str, int] = NOTHING,
        lacking: Mapping[str, int] = NOTHING,
    ) -> None:
        self._pool, self._left, self._owners, self._gone = pool, dict(left), dict(occupants), gone
        self._lacking = lacking

    def copy(self) -> Packing:
        """The same, to try something."""
        return Packing(self._pool, self._left, self._owners, self._gone, self._lacking)

    def add(self, claim: Claim) -> list[Place]:
        """One claim more: where each of its leases gets its parts, or which machine it waits for."""
        return [self._place(wish, claim.owner) for wish in wishes(claim, self._pool.name)]

    def _place(self, wish: Wish, owner: str) -> Place:
        fits = [name for name in sorted(self._left) if wish.choice.fits(name, self._pool.labels.get(name, {}))]
        open_ = [name for name in fits if self._left[name] >= wish.count and self._owners.get(name, owner) == owner]
        if open_:
            return self._take(min(open_, key=lambda name: self._left[name]), wish.count, owner, has_it=True)
        if fits:
            most = max(self._able(fits, wish), key=lambda name: self._left[name] + self._gone.get(name, 0))
            return self._take(most, self._left[most], owner, has_it=False)
        return Place(None, has_it=False)

    def _able(self, fits: Sequence[str], wish: Wish) -> Sequence[str]:
        """The machines that will have enough parts once jobs end; all, if there is none."""
        parts = self._pool.share.parts if self._pool.share else 1
        return [name for name in fits if parts - self._lacking.get(name, 0) >= wish.count] or fits

    def _take(self, name: str, count: int, owner: str, *, has_it: bool) -> Place:
        self._left[name] -= count
        if self._pool.keeps_apart:
            self._owners[name] = owner
        return Place(name, has_it)


def overtaken_by(
    ahead: Iterable[Claim],
    taken: Sequence[Slot],
    owner: str,
    room: Sequence[Slot],
    had: Sequence[Slot] | None,
    pool: Pool,
    lacking: Mapping[str, int] = NOTHING,
) -> list[Claim]:
    """The claims ahead in a queue that are harmed if an owner takes some of its room: they had a machine and have none
    after that, or what is taken is of the machine that they wait for. `lacking`: how many parts are set aside.
    [QUEUE-2]
    """
    gone = Counter(slot.thing for slot in taken)
    left, whose = Counter(slot.thing for slot in room), occupants(pool, had)
    before = Packing(pool, left, whose, lacking=lacking)
    rest = {name: count - gone[name] for name, count in left.items()}
    after = Packing(pool, rest, _with(whose, gone, owner, pool), gone, lacking)
    found = []
    for claim in ahead:
        places = zip(before.add(claim), after.add(claim), strict=True)
        if any(not now.has_it if was.has_it else was.machine in gone for was, now in places):
            found.append(claim)
    return found


def _with(whose: Mapping[str, str], gone: Mapping[str, int], owner: str, pool: Pool) -> dict[str, str]:
    return {**whose, **dict.fromkeys(gone, owner)} if pool.keeps_apart else dict(whose)


class Prospect:
    """Which claims of a queue could all be granted together if nobody had anything of one pool: `names` are the slots
    that there would be.
    """

    def __init__(self, pool: Pool, names: Iterable[str]) -> None:
        self._packing = Packing(pool, Counter(map(thing_of, names)), {})

    def has(self, claim: Claim) -> bool:
        """Whether there is what a claim wants, beside those that were added."""
        return all(place.has_it for place in self._packing.copy().add(claim))

    def add(self, claim: Claim) -> None:
        """One claim more."""
        self._packing.add(claim)
