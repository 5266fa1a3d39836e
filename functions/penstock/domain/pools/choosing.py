"""Which slots a claim takes of a pool whose things are chosen: those that fit, and that others miss least. [SLOT-2]

Each lease gets a warm unit or a cold slot of a thing that fits, or all slots of one thing. Of several that fit, it
takes one that is reserved for nobody; of those, one that the fewest claims ahead miss, and then the fewest behind; then
one with a warm unit; then, as its placement says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from penstock.domain.pools.choices import Choice, Placement
from penstock.domain.pools.matching import Kind, Matching, Sorting, Wish
from penstock.domain.pools.pools import Pool, Slot, thing_of
from penstock.kernel.frozen import dataclass

Slots = tuple[Slot, ...]
"""What one lease takes of a pool: its own slot first."""

WEIGHED = 32
"""Of how many kinds that fit it is reckoned, at a time, whom it would harm to take one."""

TRIES = 500
"""How many ways to take something are tried for one claim. Where some of its leases want things for themselves, and
others parts of the same ones, it is not known at once what leads nowhere; what is not found then counts as not there.
"""

Harm = Callable[[Sequence[Slot]], tuple[int, int] | None]
"""How many claims ahead are harmed if some slots are taken, and how many of those behind; None if any of these is
reserved for one ahead.
"""


@dataclass(frozen=True)
class Offer:
    """What of a pool may be taken: cold slots, and warm ones, those that are better first; both are free.

    `had`: slots that somebody has, or that a kept unit takes. None if these are not known, or about to change; then no
    thing is known to be free as a whole. Of a pool whose machines are shared, `cold` are those that the claim may have.
    """

    pool: Pool
    cold: Sequence[Slot]
    warm: Sequence[Slot] = ()
    had: Sequence[Slot] | None = None


def choose(
    offer: Offer, wished: Sequence[Wish], harm: Harm = lambda _: (0, 0), others: Sequence[Choice] = ()
) -> dict[int, Slots] | None:
    """The slots of each lease, by its number; None if what is free does not fit all of them.

    Wishes that few things fit come first. `others` are the choices of those whom it may harm.
    """
    chooser = _Chooser(offer, [*(wish.choice for wish in wished), *others], harm)
    each = [wish for wish in wished for _ in range(1 if wish.is_of_one_thing else wish.count)]
    ordered = sorted(each, key=chooser.options)
    found = chooser.fill(ordered, ())
    if found is None:
        return None
    taken: dict[int, Slots] = defaultdict(tuple)
    for wish, slots in zip(ordered, found, strict=True):
        taken[wish.lease] += slots
    return dict(taken)


def may_fit(offer: Offer, wished: Iterable[Wish]) -> bool:
    """Whether something is free for each of some wishes by itself. Nobody need be asked then whom it would harm, which
    takes longer the more claims there are.
    """
    things = {slot.thing for slot in (*offer.warm, *offer.cold)}
    labels = offer.pool.labels
    choices = {wish.choice for wish in wished}
    return all(any(choice.fits(thing, labels.get(thing, {})) for thing in things) for choice in choices)


class _Chooser:
    """Takes slots for one wish after the other, and goes back where that leaves too little for the rest."""

    def __init__(self, offer: Offer, choices: Sequence[Choice], harm: Harm) -> None:
        self._offer, self._harm = offer, harm
        self._sorting = Sorting(offer.pool, choices)
        self._free = [*offer.warm, *offer.cold]
        self._left = Counter(slot.thing for slot in self._free)
        self._whole = _whole(offer)
        self._tries = TRIES

    def options(self, wish: Wish) -> int:
        """How many slots fit a wish."""
        kinds = self._sorting.count(self._for(wish))
        return sum(kinds[kind] for kind in self._sorting.fit(wish.choice, kinds))

    def fill(self, wished: Sequence[Wish], taken: Slots) -> list[Slots] | None:
        """What each wish takes beside what is taken already; None if some wish comes to nothing."""
        if not wished:
            return []
        first, rest = wished[0], wished[1:]
        for slots in self._best_first(first, taken):
            self._tries -= 1
            if self._tries < 0:
                return None
            more = self.fill(rest, (*taken, *slots)) if self._is_enough(rest, (*taken, *slots)) else None
            if more is not None:
                return [slots, *more]
        return None

    def _best_first(self, wish: Wish, taken: Slots) -> Iterator[Slots]:
        """What a choice may take: of each kind the best, and of those first what harms the fewest; nothing that is
        reserved for somebody ahead. [QUEUE-2]
        """
        found: dict[Kind, Slots] = {}
        for slots in sorted(self._fitting(wish, taken), key=lambda slots: self._rank(wish.choice, slots)):
            found.setdefault(self._sorting.kind(slots[0].thing), slots)
        options = list(found.values())
        for at in range(0, len(options), WEIGHED):
            harmful: list[tuple[tuple[int, int], Slots]] = []
            for slots in options[at : at + WEIGHED]:
                lost = self._harm((*taken, *slots))
                if lost == (0, 0):
                    yield slots
                elif lost:
                    harmful.append((lost, slots))
            yield from (slots for _, slots in sorted(harmful, key=lambda each: each[0]))

    def _fitting(self, wish: Wish, taken: Slots) -> Iterator[Slots]:
        gone = {slot.name for slot in taken}
        for slots in self._options(wish):
            thing = slots[0].thing
            if gone.isdisjoint(slot.name for slot in slots) and wish.choice.fits(
                thing, self._offer.pool.labels.get(thing, {})
            ):
                yield slots

    def _options(self, wish: Wish) -> Iterable[Slots]:
        """What one wish could take, whatever it chooses: a slot, all slots of a thing, or the first so many of one. Who
        looks for the first that is free sees when it is taken.
        """
        if wish.choice.exclusive:
            return self._whole.values()
        if not wish.choice.together:
            return ((slot,) for slot in self._for(wish))
        by_thing: dict[str, list[Slot]] = defaultdict(list)
        for slot in self._free:
            by_thing[slot.thing].append(slot)
        enough = (sorted(slots, key=lambda slot: slot.name) for slots in by_thing.values() if len(slots) >= wish.count)
        return (tuple(slots[: wish.count]) for slots in enough)

    def _for(self, wish: Wish) -> Sequence[Slot]:
        """The free slots that one wish may take. A slot with a kept unit serves a lease of that unit only. [SLOT-1]"""
        return self._offer.cold if wish.is_beside else self._free

    def _rank(self, choice: Choice, slots: Slots) -> tuple[bool, int]:
        left = self._left[slots[0].thing]
        placed = {Placement.ANY: 0, Placement.PACKED: left, Placement.LEAST_LOADED: -left}[choice.placement]
        return slots[0].unit is None, placed

    def _is_enough(self, wished: Sequence[Wish], taken: Slots) -> bool:
        """Whether the rest has a slot for each wish, and a whole thing for each that wants one, each by themselves."""
        gone = {slot.name for slot in taken}
        slots = [slot for slot in self._free if slot.name not in gone]
        things = [slots[0] for slots in self._whole.values() if gone.isdisjoint(slot.name for slot in slots)]
        # A worker, which takes parts of a host, is the only one of its step: so there is no other of these here.
        alone = [wish for wish in wished if wish.choice.exclusive]
        return self._is_matched(wished, slots) and self._is_matched(alone, things)

    def _is_matched(self, wished: Sequence[Wish], slots: Sequence[Slot]) -> bool:
        matching = Matching(self._sorting.count(slots))
        return all(matching.add(self._sorting.fit(wish.choice, matching.left), 1) for wish in wished)


def _whole(offer: Offer) -> dict[str, Slots]:
    """The things that are free as a whole, each with its slots: all that it is to have are there, and nobody has one
    that is to go. [SLOT-1]
    """
    if offer.had is None:
        return {}
    cold = {slot.name: slot for slot in offer.cold}
    had = {slot.thing for slot in offer.had}
    named: dict[str, list[str]] = defaultdict(list)
    for name in (offer.pool.names or ())[: offer.pool.limit]:
        named[thing_of(name)].append(name)
    return {
        thing: tuple(cold[name] for name in names)
        for thing, names in named.items()
        if thing not in had and cold.keys() >= set(names)
    }
