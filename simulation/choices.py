"""What must hold where claims choose among named things, reckoned slot by slot, apart from the code that grants.

A claim's wishes are matched to slots one at a time (Kuhn's algorithm); penstock.domain.pools.matching counts kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from penstock.domain.pools.choices import Choice
from penstock.domain.pools.matching import wishes
from penstock.domain.pools.pools import Claim, Pool, Slot, thing_of


class Given:
    """Which slots wishes get, one wish after the other: who has one keeps one, though perhaps another."""

    def __init__(self, slots: Iterable[str], labels: Mapping[str, Mapping[str, str]]) -> None:
        self._slots, self._labels = sorted(slots), labels
        self._whose: dict[str, int] = {}
        self._wishes: list[Choice] = []

    def add(self, choice: Choice) -> bool:
        """One wish more. Whether it gets a slot."""
        self._wishes.append(choice)
        return self._find(len(self._wishes) - 1, set())

    def drop(self, count: int) -> None:
        """The last wishes are not there any more."""
        self._whose = {slot: wish for slot, wish in self._whose.items() if wish < len(self._wishes) - count}
        del self._wishes[len(self._wishes) - count :]

    def would_serve(self, wish: int, slots: Collection[str]) -> bool:
        """Whether a wish would get a slot if one of these was there as well."""
        other = Given([*self._slots, *slots], self._labels)
        other._whose, other._wishes = dict(self._whose), list(self._wishes)
        return other._find(wish, set())

    def _find(self, wish: int, seen: set[str]) -> bool:
        for slot in self._slots:
            thing = thing_of(slot)
            if slot in seen or not self._wishes[wish].fits(thing, self._labels.get(thing, {})):
                continue
            seen.add(slot)
            if slot not in self._whose or self._find(self._whose[slot], seen):
                self._whose[slot] = wish
                return True
        return False


def wished(claim: Claim, pool: str) -> list[Choice]:
    """What a claim wants of a pool, slot by slot."""
    return [wish.choice for wish in wishes(claim, pool) for _ in range(wish.count)]


def can_have(claim: Claim, pool: Pool, slots: Collection[str]) -> bool:
    """Whether some slots are enough for a claim. Who wants a thing for itself needs one that is there as a whole: each
    such one is tried.
    """
    alone = [wish.choice for wish in wishes(claim, pool.name) if wish.choice.exclusive]
    beside = [choice for choice in wished(claim, pool.name) if not choice.exclusive]
    return _can_have(alone, beside, pool, set(slots))


def _can_have(alone: Sequence[Choice], beside: Sequence[Choice], pool: Pool, slots: set[str]) -> bool:
    if not alone:
        given = Given(slots, pool.labels)
        return all(given.add(choice) for choice in beside)
    whole = [
        (thing, set(names))
        for thing, names in _things(pool).items()
        if set(names) <= slots and alone[0].fits(thing, pool.labels.get(thing, {}))
    ]
    return any(_can_have(alone[1:], beside, pool, slots - names) for _, names in whole)


def _things(pool: Pool) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in (pool.names or ())[: pool.limit]:
        found.setdefault(thing_of(name), []).append(name)
    return found


class Everything:
    """All that pools have, given to claims one after the other as if nobody had anything. What is `aside` of a pool
    is not there: no job's end brings it back.
    """

    def __init__(self, pool: Callable[[str], Pool | None], aside: Callable[[str], Collection[Slot]]) -> None:
        self._pool, self._aside = pool, aside
        self._given: dict[str, Given] = {}
        self._asked = Counter[str]()

    def add(self, claim: Claim) -> bool:
        """One claim more. Whether each of its pools has what it wants, beside those before; if not, it gets nothing."""
        wanted = sum(map(Counter, claim.takes), Counter[str]())
        if any(self._asked[name] + count > self._most(name) for name, count in wanted.items()):
            return False
        added = [(self._things_of(name), wished(claim, name)) for name in claim.pools if self._names(name)]
        if not all([given.add(choice) for given, choices in added for choice in choices]):
            for given, choices in added:
                given.drop(len(choices))
            return False
        self._asked += wanted
        return True

    def _most(self, name: str) -> int:
        pool = self._pool(name)
        away = sum(slot.count for slot in self._aside(name) if not slot.withdrawn)
        return pool.limit - away if pool and not pool.is_paused else 0

    def _names(self, name: str) -> Sequence[str]:
        pool, away = self._pool(name), {slot.name for slot in self._aside(name)}
        return [each for each in (pool.names or ())[: pool.limit] if each not in away] if pool else ()

    def _things_of(self, name: str) -> Given:
        pool = self._pool(name)
        return self._given.setdefault(name, Given(self._names(name), pool.labels if pool else {}))


def harmed(
    ahead: Sequence[Claim], pool: Pool, left: Collection[str], taken: Collection[str], everything: Everything
) -> list[Claim]:
    """Those of the claims ahead for whom what is left is not enough, and who could have used what was taken. But for
    those who could not be granted with those before them even if nobody had anything.
    """
    given, found, number = Given(left, pool.labels), list[Claim](), 0
    for other in ahead:
        if not everything.add(other):
            continue
        wants = wished(other, pool.name)
        got = [given.add(choice) for choice in wants]
        if any(not has and given.would_serve(number + at, taken) for at, has in enumerate(got)):
            found.append(other)
        number += len(wants)
    return found
