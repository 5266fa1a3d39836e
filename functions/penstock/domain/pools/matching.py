"""Who of a queue gets which of a pool's things, where claims choose among them.

Things that the same choices fit are of one kind. A `Matching` gives each claim of a queue what it wants of the kinds
that fit it, as much as there is: where that is needed, those before it get another kind that fits them as well, but
never less. This is maximum bipartite matching by augmenting paths, the claims in the order of their queue.
(Ford and Fulkerson, "Maximal flow through a network", 1956; the paths are found breadth first.)

`overtaken_by` and `satisfiable` say of such pools what those of penstock.domain.pools.grants say of the others. With
one kind of thing only, they are the same. docs/decisions/0099-claims-choose-among-named-things.md
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from penstock.domain.pools.choices import ANY, NAME, Choice, test_of
from penstock.domain.pools.pools import Claim, Pool, Slot, thing_of
from penstock.kernel.frozen import dataclass

Kind = tuple[object, ...]
"""Which of a queue's choices fit a thing; and its name, if somebody wants a thing for itself."""


@dataclass(frozen=True)
class Wish:
    """What one lease of a claim wants of a pool: so many slots of things that fit, of one of them, or all of its.

    `is_beside`: its own slot is of another pool, so no unit that is kept here serves it.
    """

    lease: int
    choice: Choice
    count: int = 1
    is_beside: bool = False

    @property
    def is_of_one_thing(self) -> bool:
        """Whether all that it takes is of one thing."""
        return self.choice.exclusive or self.choice.together


def wishes(claim: Claim, pool: str) -> list[Wish]:
    """What each lease of a claim wants of a pool. Only the pool of its own type lets it choose."""
    found = []
    for at, takes in enumerate(claim.takes):
        if pool in takes:
            is_beside = next(iter(takes)) != pool
            choice = claim.choices[at] if claim.choices and not is_beside else ANY
            found.append(Wish(at, choice, takes[pool], is_beside))
    return found


def choosing(claims: Iterable[Claim], pool: str) -> list[Choice]:
    """How these claims choose among a pool's things; empty if none does."""
    choosers = (claim for claim in claims if claim.choices)
    return [wish.choice for claim in choosers for wish in wishes(claim, pool) if wish.choice != ANY]


@dataclass(frozen=True)
class Chosen:
    """What a claim chooses among a pool's things, and the names of those that fit; None of them if it takes any."""

    said: str = ""
    things: frozenset[str] | None = None

    @classmethod
    def of(cls, pool: Pool, claim: Claim) -> Chosen:
        """What a claim chooses in this pool."""
        wished = wishes(claim, pool.name)
        if not any(wish.choice.labels or wish.choice.exclusive for wish in wished):
            return cls()
        names = dict.fromkeys(map(thing_of, pool.names or ()))
        fits = [name for name in names if any(wish.choice.fits(name, pool.labels.get(name, {})) for wish in wished)]
        return cls(" or ".join(dict.fromkeys(filter(None, (str(wish.choice) for wish in wished)))), frozenset(fits))

    def has(self, slot: Slot) -> bool:
        """Whether a slot is of a thing that fits."""
        return self.has_thing(slot.thing)

    def has_thing(self, name: str) -> bool:
        """Whether a thing fits."""
        return self.things is None or name in self.things

    @property
    def named(self) -> tuple[str, ...]:
        """The things that fit, in order."""
        return tuple(sorted(self.things or ()))


class Sorting:
    """Sorts the things of a pool into kinds, by the choices that are made among them."""

    def __init__(self, pool: Pool, choices: Iterable[Choice]) -> None:
        some = list(choices)
        self._labels = pool.labels
        self._names = pool.names or ()
        self._choices = sorted({choice.labels for choice in some} - {""})
        self._tests = [test_of(text) for text in self._choices]
        self._by_thing = any(choice.exclusive or choice.together for choice in some)
        self._known: dict[str, Kind] = {}

    def kind(self, thing: str) -> Kind:
        """The kind of a thing."""
        if thing not in self._known:
            labels = {**self._labels.get(thing, {}), NAME: thing}
            fits = tuple(test(labels) for test in self._tests)
            self._known[thing] = (*fits, thing) if self._by_thing else fits
        return self._known[thing]

    def slots_of(self, thing: str) -> int:
        """How many slots a thing has: one for each lease at the same time."""
        return self._slots[thing]

    @cached_property
    def _slots(self) -> Counter[str]:
        return Counter(map(thing_of, self._names))

    def fit(self, choice: Choice, kinds: Iterable[Kind]) -> list[Kind]:
        """Those of some kinds that a choice may have."""
        if not choice.labels:
            return list(kinds)
        at = self._choices.index(choice.labels)
        return [kind for kind in kinds if kind[at]]

    def count(self, slots: Iterable[Slot]) -> Counter[Kind]:
        """How many slots there are of each kind."""
        found: Counter[Kind] = Counter()
        for slot in slots:
            found[self.kind(slot.thing)] += slot.count
        return found


class Matching:
    """What is given of each kind, wish by wish; see the module."""

    def __init__(self, room: Mapping[Kind, int]) -> None:
        self.left = dict(room)
        self._given: list[dict[Kind, int]] = []
        self._fit: list[Sequence[Kind]] = []
        self._takers: dict[Kind, tuple[int, ...]] = {}

    @property
    def size(self) -> int:
        """How many wishes were added."""
        return len(self._fit)

    def copy(self) -> Matching:
        """The same, to try something."""
        other = Matching(self.left)
        other._given = list(self._given)
        other._fit = list(self._fit)
        other._takers = dict(self._takers)
        return other

    def add(self, fit: Sequence[Kind], count: int) -> int:
        """One wish more, for so many of the kinds that fit it. How many it gets."""
        self._fit.append(fit)
        self._given.append({})
        got = 0
        while got < count and (more := self._augment(len(self._fit) - 1, count - got)):
            got += more
        return got

    def reached(self, wish: int) -> set[Kind]:
        """The kinds of which one more would serve a wish: it fits, or somebody could take it instead of what fits."""
        return set(self._paths(wish))

    def _paths(self, wish: int) -> dict[Kind, tuple[int, Kind | None]]:
        """How each kind is reached from a wish: who would take it, and which kind that one would leave."""
        found: dict[Kind, tuple[int, Kind | None]] = {}
        waiting: deque[tuple[int, Kind | None]] = deque([(wish, None)])
        while waiting:
            taker, leaves = waiting.popleft()
            for kind in self._fit[taker]:
                if kind not in found:
                    found[kind] = taker, leaves
                    waiting.extend((other, kind) for other in self._takers.get(kind, ()))
        return found

    def _augment(self, wish: int, most: int) -> int:
        """Give a wish more, along one path. How much."""
        paths = self._paths(wish)
        end = next((kind for kind in paths if self.left.get(kind, 0) > 0), None)
        if end is None:
            return 0
        steps = list(_steps(paths, end))
        much = min([most, self.left[end], *(self._given[taker][leaves] for taker, _, leaves in steps if leaves)])
        self.left[end] -= much
        for taker, takes, leaves in steps:
            self._give(taker, takes, much)
            if leaves is not None:
                self._give(taker, leaves, -much)
        return much

    def _give(self, taker: int, kind: Kind, much: int) -> None:
        """Give a wish more of a kind, or less. A copy shares what was given before, so that is left as it is."""
        had = self._given[taker].get(kind, 0)
        self._given[taker] = {**self._given[taker], kind: had + much}
        others = [other for other in self._takers.get(kind, ()) if other != taker]
        self._takers[kind] = tuple(sorted([*others, taker] if had + much else others))


def _steps(paths: Mapping[Kind, tuple[int, Kind | None]], end: Kind) -> Iterable[tuple[int, Kind, Kind | None]]:
    """Who takes which kind and leaves which, from the end of a path back to its beginning."""
    takes: Kind | None = end
    while takes is not None:
        taker, leaves = paths[takes]
        yield taker, takes, leaves
        takes = leaves


NOTHING: Mapping[Kind, int] = {}


def overtaken_by(
    ahead: Iterable[Claim], taken: Sequence[Slot], room: Sequence[Slot], pool: Pool, lacking: Collection[str] = ()
) -> list[Claim]:
    """The claims ahead in a queue that are harmed if some of its room is taken: they do not get all that they want of
    what is left, and what is taken would be of use to them. Of things that are `lacking` some slots are set aside.
    [QUEUE-2]
    """
    everybody = list(ahead)
    sorting = Sorting(pool, choosing(everybody, pool.name))
    left, gone = sorting.count(room), sorting.count(taken)
    matching = Matching({kind: count - gone[kind] for kind, count in left.items()})
    lacks = (_lacks(matching, sorting, claim, pool, gone, lacking) for claim in everybody)
    return [claim for claim, kinds in zip(everybody, lacks, strict=True) if kinds & gone.keys()]


def _lacks(
    matching: Matching,
    sorting: Sorting,
    claim: Claim,
    pool: Pool,
    gone: Mapping[Kind, int],
    lacking: Collection[str],
) -> set[Kind]:
    """Add a claim to a matching. The kinds of which more would serve it; empty if it gets all that it wants."""
    found: set[Kind] = set()
    for wish in wishes(claim, pool.name):
        number = matching.size
        if not _add(matching, sorting, wish, lacking, gone):
            found |= matching.reached(number)
    return found


def _add(
    matching: Matching, sorting: Sorting, wish: Wish, lacking: Collection[str], gone: Mapping[Kind, int] = NOTHING
) -> bool:
    """Add a wish to a matching. Whether it gets all that it wants.

    Who wants a thing for itself waits for the one of which most was left before this was `gone`, and rather for one of
    which nothing is set aside. Nobody takes that from a claim with a reservation, so it only comes back, until all of
    it is there.
    """
    fit = sorting.fit(wish.choice, matching.left)
    if not wish.choice.exclusive:
        return matching.add(fit, wish.count) == wish.count
    is_whole = {kind: str(kind[-1]) not in lacking for kind in fit}
    left = {kind: matching.left[kind] + gone.get(kind, 0) for kind in fit}
    first = max(sorted(fit, key=str), key=lambda kind: (is_whole[kind], left[kind]), default=None)
    if first is None:
        matching.add((), 1)
        return False
    wanted = sorting.slots_of(str(first[-1]))
    return matching.add([first], wanted) == wanted


class Prospect:
    """Which claims of a queue could all be granted together if nobody held anything of one pool: `names` are the slots
    that there would be, and things that are `lacking` have more.
    """

    def __init__(self, pool: Pool, choices: Iterable[Choice], names: Iterable[str], lacking: Collection[str]) -> None:
        self._pool, self._sorting, self._lacking = pool, Sorting(pool, choices), lacking
        self._matching = Matching(Counter(self._sorting.kind(thing_of(name)) for name in names))

    def has(self, claim: Claim) -> bool:
        """Whether there is what a claim wants, beside those that were added."""
        trial = self._matching.copy()
        return self._all(trial, claim)

    def add(self, claim: Claim) -> None:
        """One claim more."""
        self._all(self._matching, claim)

    def _all(self, matching: Matching, claim: Claim) -> bool:
        wished = wishes(claim, self._pool.name)
        return all([_add(matching, self._sorting, wish, self._lacking) for wish in wished])
