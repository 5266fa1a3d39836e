"""Which claim is next: the first in a pool's queue that all of its pools can grant now. [QUEUE-2]

Claims have the same order in every queue: by priority, then by the age of their job. A claim that is granted before
others overtakes those that it takes something from: those for which, together with the claims before them, the queue's
pool has no room left afterwards. A claim can be overtaken MAX_OVERTAKEN times in one queue. From then on, what it and
the claims before it want is reserved until they can be granted in all of their queues; the rest is free for those
behind. Because the order is the same everywhere, the first claim with a reservation never waits for what another
reserves. docs/decisions/0022-overtaking-counts-harm.md

Where claims choose among a pool's named things, room is counted for each kind of thing: penstock.domain.pools.matching
says whom a claim overtakes there, and penstock.domain.pools.choosing which slots it takes. Where jobs share machines,
penstock.domain.pools.packing says whom.

`Allocator` does what a grant decides: it takes slots, parts of amounts, and the warm units that some slots carry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from functools import cache, cached_property
from itertools import compress

from penstock.domain.jobs.jobs import Job
from penstock.domain.pools import choosing, matching, packing, pools
from penstock.domain.pools.choices import ANY, Choice
from penstock.domain.pools.choosing import Offer, Slots
from penstock.domain.pools.matching import Prospect
from penstock.domain.pools.pools import Claim, Need, Pool, Slot, demand
from penstock.domain.units import reuse
from penstock.domain.units.units import Unit
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Check, Create, Replace, key_of, ulid_time

MAX_OVERTAKEN = 8
"""How often a claim may be overtaken in one queue. Passing a claim and leaving it room does not count."""

WINDOW = 16
"""How many claims of each line are read, and the most that one grant may overtake. It bounds reads and commits. Nobody
waits longer for it: who stands behind so many in its line wants the same as they do. [QUEUE-1]
"""


Order = tuple[int, str, int, int]
"""A claim's place among all claims of a queue: `Claim.order`."""

Turns = Callable[[str], Sequence[bool]]
"""What `satisfiable` returns for a pool's queue."""


def claims(job: Job, step: int, now: datetime) -> list[Claim]:
    """A step's claims, one in the queue of every pool that it takes from: written together or not at all. [SLOT-2]"""
    needs = [need for need in job.request.needs if need.step == step]
    wanted = demand(needs)
    takes = tuple(need.takes for need in needs)
    fresh = job.provenance.proves is not None or any(need.is_made_to_order for need in needs)
    choices = tuple(need.choice or ANY for need in needs) if any(need.choice for need in needs) else ()
    owner = "" if job.provenance.canary else job.owner
    is_shared = any(choice.together for choice in choices)
    return [
        Claim(
            pool=pool,
            job=job.id,
            attempt=job.attempt,
            step=step,
            count=count,
            pools=tuple(wanted),
            priority=job.request.priority,
            since=now,
            takes=takes,
            choices=choices,
            fresh=fresh,
            owner=owner,
            line=pools.line_of(takes, fresh=fresh, choices=choices, owner=owner if is_shared else ""),
            turn=ulid_time(job.times.turn) if job.times.turn else "",
        )
        for pool, count in wanted.items()
    ]


def choosing_among(claims: Sequence[Claim], pool: str) -> list[Choice]:
    """How these claims choose among a pool's things; empty if none does, as nearly always."""
    return matching.choosing(claims, pool) if any(claim.choices for claim in claims) else []


def heads(queue: Iterable[Claim], most: int = WINDOW) -> list[Claim]:
    """The first claims of each line, in the order in which they are granted."""
    return heads_in_order(sorted(queue, key=lambda claim: claim.order), most)


def heads_in_order(queue: Iterable[Claim], most: int = WINDOW) -> list[Claim]:
    """The same, for a queue that is in that order already."""
    places: Counter[str] = Counter()
    found: list[Claim] = []
    for claim in queue:
        places[claim.line] += 1
        if places[claim.line] <= most:
            found.append(claim)
    return found


def rows_of_grant(needs: Sequence[Need], amounts: Collection[str]) -> int:
    """The most rows that the commit which grants these needs can name; `amounts` are the pools that are amounts.

    Rows of the claims, of as many claims that they overtake as there may be, of the owner, and of each need's lease,
    unit and slots. A slot moves from one key to another, which is two rows; so does the share of an amount that a warm
    unit has. A unit that is ordered takes a new share of an amount: one row, and the pool's. To give a unit back takes
    fewer: its own row, its lease's, its pool's if it was broken, that of who removed it by hand, and the same two for
    each slot and amount. Where a thing is given as a whole, the pool's row is checked; where parts of one are, so are
    its other parts.
    """
    moved = sum(_shares(need, amounts) for need in needs)
    checked = len({need.pool for need in needs if need.is_of_one_thing}) + sum(need.beside for need in needs)
    return len(demand(needs)) + WINDOW + 1 + 2 * len(needs) + 2 * moved + checked


def _shares(need: Need, amounts: Collection[str]) -> int:
    return sum(1 if pool in amounts else count for pool, count in need.takes.items())


@dataclass(frozen=True)
class Stock:
    """What a pool has, and the first claims on it: its `heads`.

    `free`: as many free slots without a unit as these claims want together; `warm`: those with a unit, whomever it
    serves. `idle`: slots that kept units take besides; they are read only to see who could make room, and what is
    reserved. Where a claim chooses, all that is free is read; where one wants a thing for itself, or parts of one, also
    what is `had` by others. That is None where it is not known. `aside`: slots that no job's end brings back, as their
    host is away, or their unit is in quarantine or held; they are looked for only where something is reserved, and
    among those that are `had`.
    """

    pool: Pool
    claims: Sequence[Claim]
    free: Sequence[Slot] = ()
    warm: Sequence[Slot] = ()
    idle: Sequence[Slot] = ()
    had: Sequence[Slot] | None = None
    aside: Sequence[Slot] = ()

    @property
    def name(self) -> str:
        """The pool's name."""
        return self.pool.name

    @cached_property
    def places(self) -> Mapping[tuple[str, int, int], int]:
        """Where each claim stands among these, by its job, attempt and step."""
        return {_whose(claim): at for at, claim in enumerate(self.claims)}

    @cached_property
    def is_chosen_from(self) -> bool:
        """Whether any of its claims chooses among its things, or jobs share them."""
        return self.pool.share is not None or bool(choosing_among(self.claims, self.name))

    @property
    def left(self) -> int:
        """How much is free without any warm unit; negative while an amount is above its limit."""
        return self.pool.limit - self.pool.used if self.pool.is_amount else len(self.free)

    @property
    def is_used_up(self) -> bool:
        """Whether nothing of it is free, with or without a unit."""
        return self.left <= 0 and not self.warm

    @property
    def room(self) -> int:
        """How much has no lease: what is free, and what every kept unit would free."""
        return self.left + len(self.warm) + sum(slot.count for slot in self.idle if not slot.withdrawn)

    @property
    def unleased(self) -> list[Slot]:
        """The slots without a lease: `room` of a pool that is no amount. First those that cost nobody a kept unit."""
        idle = [slot for slot in self.idle if not slot.withdrawn]
        leaving, kept = ([slot for slot in idle if slot.leaving is is_leaving] for is_leaving in (True, False))
        return [*self.free, *leaving, *self.warm, *kept]

    def emptied(self) -> Stock:
        """The same, if all kept units were destroyed; as it is where nobody chooses."""
        if not self.is_chosen_from:
            return self
        return replace(self, free=list(map(pools.give_back, self.unleased)), warm=(), idle=())

    def without_leaving(self) -> Stock:
        """What there is without any kept unit, once those that are leaving are gone."""
        leaving = [slot for slot in self.idle if slot.leaving and not slot.withdrawn]
        return replace(self, free=[*self.free, *map(pools.give_back, leaving)], warm=(), idle=())

    def offer(self, claim: Claim) -> Offer:
        """What a claim may take: a fresh one no warm unit; of a shared machine nothing, if others have a part of it."""
        had = None if self.had is None else (*self.had, *self.warm, *self.idle)
        free = packing.reachable(self.pool, self.free, self.had, claim.owner)
        return Offer(self.pool, free, () if claim.fresh else self.warm_for(claim), had)

    def overtaken(self, ahead: Sequence[Claim], taken: Sequence[Slot], owner: str) -> list[Claim]:
        """Which of some claims are harmed if an owner takes some slots, where it matters which. [QUEUE-2]"""
        if self.pool.share:
            return packing.overtaken_by(ahead, taken, owner, self.unleased, self.had, self.pool, self.lacking)
        return matching.overtaken_by(ahead, taken, self.unleased, self.pool, self.lacking)

    def warm_for(self, claim: Claim) -> list[Slot]:
        """The warm slots that a claim may get, those first whose units serve nobody else. [SEC-2]"""
        return sorted((slot for slot in self.warm if pools.serves(slot, claim)), key=lambda slot: not slot.owner)

    @property
    def is_short(self) -> bool:
        """Whether the claims want more than there is without a lease: who is granted takes from somebody. Where claims
        choose, they may all want the same.
        """
        return sum(claim.count for claim in self.claims) > self.room or self.is_chosen_from

    @property
    def most(self) -> int:
        """How much there would be if nobody held anything; 0 while an operator has paused the pool."""
        return 0 if self.pool.is_paused else self.pool.limit - sum(slot.count for slot in self._kept_aside)

    @property
    def names(self) -> Sequence[str]:
        """The names of the slots that there would be then; none of a pool that is numbered."""
        aside = {slot.name for slot in self._kept_aside}
        names = () if self.pool.is_paused else (self.pool.names or ())[: self.pool.limit]
        return [name for name in names if name not in aside]

    @property
    def _kept_aside(self) -> Sequence[Slot]:
        """What is aside of what there is to be."""
        return [slot for slot in self.aside if not slot.withdrawn]

    @cached_property
    def lacking(self) -> Mapping[str, int]:
        """The things of which so many slots are aside: who wants such a thing for itself may wait for very long."""
        return Counter(slot.thing for slot in self.aside)

    def has(self, count: int) -> bool:
        """Whether this many slots, or this much of the amount, can be granted."""
        return not self.pool.is_closed and count <= max(0, self.left)


@dataclass(frozen=True)
class Pick:
    """A claim that may be granted: its rows by pool, and the claims that it overtakes. `chosen`: which slots each of
    its leases takes, of the pools in which somebody chooses.
    """

    rows: Mapping[str, Claim]
    overtaken: Sequence[Claim]
    chosen: Mapping[str, Mapping[int, Slots]] = field(default_factory=dict)

    @property
    def takes(self) -> Sequence[Mapping[str, int]]:
        """What each of its leases takes."""
        return next(iter(self.rows.values())).takes

    def slots_of(self, lease: int) -> dict[str, Slots]:
        """The slots that were chosen for one of its leases, by pool."""
        return {pool: chosen[lease] for pool, chosen in self.chosen.items() if lease in chosen}

    def taken(self, pool: str) -> list[Slot]:
        """The slots that were chosen of one pool."""
        return [slot for slots in self.chosen.get(pool, {}).values() for slot in slots]

    @property
    def reuses(self) -> Sequence[Mapping[str, int]]:
        """What those of its leases take that may get warm units: all leases, or none of a fresh claim."""
        return () if next(iter(self.rows.values())).fresh else self.takes


def pick(pool: str, stocks: Mapping[str, Stock]) -> Pick | None:
    """The first claim in a pool's queue that all of its pools can grant; None if there is none."""
    turns = _turns(stocks)
    found = (_grantable(claim, stocks, turns) for claim in stocks[pool].claims)
    return next((each for each in found if each), None)


WEIGHED = 500_000
"""How many claims by how many things are weighed against each other for what is granted by one reading, beyond the
first. Who serves commits what it has found by then and reads anew, so a long queue of many choices is granted bit by
bit, and not only after all of it was reckoned. [QUEUE-1]
"""


def most_picks(stocks: Mapping[str, Stock], most: int) -> int:
    """How many of a pool's claims are picked from what was read once: fewer, where many choose among many things."""
    weighed = sum(len(stock.claims) * stock.pool.limit for stock in stocks.values() if stock.is_chosen_from)
    return min(most, max(1, WEIGHED // weighed)) if weighed else most


def picks(pool: str, stocks: Mapping[str, Stock], most: int) -> list[Pick]:
    """The claims in a pool's queue that can be granted one after the other, as far as their stocks tell, and so many at
    most. [QUEUE-2]

    No more than one if it overtakes somebody, or if something is reserved: what comes after that is read anew. Nobody
    is granted before a claim that was not read: of each line the first are known, so what stands before its last is.
    """
    found: list[Pick] = []
    known, most = _known(stocks), most_picks(stocks, most)
    while (next_ := pick(pool, stocks)) and (not found or _is_known(next_, known)) and not next_.overtaken:
        found.append(next_)
        if len(found) >= most or any(stock.idle for stock in stocks.values()):
            return found
        stocks = _after(next_, stocks)
    return found or ([next_] if next_ else [])


def _known(stocks: Mapping[str, Stock]) -> dict[str, Sequence[Order]]:
    """Of each queue, the last known claim of each line that may go on."""
    found: dict[str, Sequence[Order]] = {}
    for name, stock in stocks.items():
        lines = Counter(claim.line for claim in stock.claims)
        last = {claim.line: claim.order for claim in stock.claims if lines[claim.line] >= WINDOW}
        found[name] = list(last.values())
    return found


def _is_known(found: Pick, known: Mapping[str, Sequence[Order]]) -> bool:
    """Whether all claims before this one are known, in each of its queues."""
    return all(row.order <= last for name, row in found.rows.items() for last in known[name])


def after(found: Iterable[Pick], stocks: Mapping[str, Stock]) -> Mapping[str, Stock]:
    """What is there once claims are granted that overtake nobody."""
    for each in found:
        stocks = _after(each, stocks)
    return stocks


def _after(found: Pick, stocks: Mapping[str, Stock]) -> dict[str, Stock]:
    cold = cold_demand(found, stocks)
    left = dict(stocks)
    for name, row in found.rows.items():
        stock, count = stocks[name], cold[name]
        free, warm = _left(found, stock, count)
        taken = [replace(slot, owner=row.owner) for slot in found.taken(name)]
        left[name] = replace(
            stock,
            pool=replace(stock.pool, used=stock.pool.used + count) if stock.pool.is_amount else stock.pool,
            claims=[claim for claim in stock.claims if claim is not row],
            free=free,
            warm=warm,
            had=None if stock.had is None else [*stock.had, *taken],
        )
    return left


def _left(found: Pick, stock: Stock, cold: int) -> tuple[Sequence[Slot], Sequence[Slot]]:
    """The cold and warm slots of a pool that a claim leaves: it takes those that were chosen, or else the first."""
    if stock.name in found.chosen:
        taken = {slot.name for slot in found.taken(stock.name)}
        free, warm = ([slot for slot in some if slot.name not in taken] for some in (stock.free, stock.warm))
        return free, warm
    given = stock.warm_for(found.rows[stock.name])[: _reused(found, stock.name)]
    return stock.free[cold:], [slot for slot in stock.warm if slot not in given]


def pick_at_once(claims: Sequence[Claim], stocks: Mapping[str, Stock]) -> Pick | None:
    """A new claim, given by its rows for each of its pools, where nobody waits; None if they have not what it wants."""
    alone = {claim.pool: replace(stocks[claim.pool], claims=[claim]) for claim in claims}
    found = _with_choice(Pick({claim.pool: claim for claim in claims}, ()), alone, lambda _: [True])
    return found if found and _has_all(found, alone) else None


def can_grant(claim: Claim, stocks: Mapping[str, Stock]) -> bool:
    """Whether the pool of a claim's row has what it wants, and reserves it for nobody else."""
    turns = _turns(stocks)
    found = _with_choice(Pick({claim.pool: claim}, ()), stocks, turns)
    return found is not None and _has_all(found, stocks) and _passing(found, stocks, turns) is not None


def _has_all(found: Pick, stocks: Mapping[str, Stock]) -> bool:
    return all(stocks[name].has(count) for name, count in cold_demand(found, stocks).items())


def _may_have_all(found: Pick, stocks: Mapping[str, Stock]) -> bool:
    """Whether a claim may be granted, by the pools in which nobody chooses: what is chosen in the others takes longer
    to find. A warm unit brings what it takes of them.
    """
    if any(stocks[name].warm for name in found.rows):
        return True
    return all(stocks[name].has(row.count) for name, row in found.rows.items() if not stocks[name].is_chosen_from)


def _grantable(claim: Claim, stocks: Mapping[str, Stock], turns: Turns) -> Pick | None:
    rows = _rows(claim, stocks)
    if rows is None or not _may_have_all(rows, stocks):
        return None
    found = _with_choice(rows, stocks, turns)
    if found and found.chosen and not _has_all(found, stocks):
        found = _with_choice(rows, stocks, turns, warm_first=True)
    return _passing(found, stocks, turns) if found and _has_all(found, stocks) else None


def _with_choice(found: Pick, stocks: Mapping[str, Stock], turns: Turns, *, warm_first: bool = False) -> Pick | None:
    """A claim with the slots that it takes where somebody chooses; None if nothing that is free there fits.

    What a lease takes besides its own slot comes with its unit, if that is warm. So the pools of types come first; and
    where that is all there is of it, warm units are taken first, whoever misses them.
    """
    chosen_from = [name for name in found.rows if stocks[name].is_chosen_from]
    for name in sorted(chosen_from, key=lambda name: all(name != next(iter(takes)) for takes in found.takes)):
        slots = _choose(found, stocks[name], turns, warm_leases(found, stocks), warm_first=warm_first)
        if slots is None:
            return None
        found = replace(found, chosen={**found.chosen, name: slots})
    return found


def _choose(
    found: Pick, stock: Stock, turns: Turns, warm: Collection[int], *, warm_first: bool
) -> dict[int, Slots] | None:
    """What a claim takes of one pool: what is reserved for nobody, if there is that; of that, what those ahead of it
    miss least, and then those behind it.
    """
    row = found.rows[stock.name]
    offer = stock.offer(row)
    wished = [wish for wish in matching.wishes(row, stock.name) if wish.lease not in warm]
    if not choosing.may_fit(offer, wished):
        return None
    ahead, behind = _before(row, stock, turns), _behind(row, stock, turns)

    def harm(slots: Sequence[Slot]) -> tuple[int, int] | None:
        harmed = stock.overtaken([*ahead, *behind], slots, row.owner)
        before = [claim for claim in harmed if claim in ahead]
        if any(map(has_reservation, before)):
            return None
        return (0, 0) if warm_first else (len(before), len(harmed) - len(before))

    others = matching.choosing([*ahead, *behind], stock.name)
    return choosing.choose(offer, wished, harm, others)


def warm_leases(found: Pick, stocks: Mapping[str, Stock]) -> set[int]:
    """Which of a claim's leases get warm units, by number; as far as it is known which slots they take."""
    warm = {name: len(stocks[name].warm_for(row)) for name, row in found.rows.items()}
    got: set[int] = set()
    for at, takes in enumerate(found.reuses):
        own = next(iter(takes))
        if own in found.chosen:
            is_warm = found.chosen[own][at][0].unit is not None
        else:
            is_warm = warm.get(own, 0) > 0 and not stocks[own].is_chosen_from
            warm[own] = warm.get(own, 0) - is_warm
        got |= {at} if is_warm else set()
    return got


def cold_demand(found: Pick, stocks: Mapping[str, Stock]) -> dict[str, int]:
    """What a claim takes from each of its pools beyond what the warm units for it bring."""
    warm = warm_leases(found, stocks)
    brought = [takes for at, takes in enumerate(found.takes) if at in warm]
    return {
        name: sum(slot.unit is None for slot in found.taken(name))
        if name in found.chosen
        else row.count - sum(takes.get(name, 0) for takes in brought)
        for name, row in found.rows.items()
    }


def _reused(found: Pick, pool: str) -> int:
    """How many warm units of a pool a claim may get."""
    return sum(next(iter(takes)) == pool for takes in found.reuses)


def units_to_evict(pool: str, stocks: Mapping[str, Stock]) -> tuple[str, list[str]]:
    """The kept units to destroy so that the first claim that waits only for them can be granted, and its own pool.

    No units if what is leaving already is enough, whatever a claim would rather choose, or if no claim could be granted
    even then. Units that are not made yet go first, then those that were idle for longest.
    """
    turns, roomy = _turns(stocks), [{name: stock.emptied() for name, stock in stocks.items()}]
    if any(slot.leaving for stock in stocks.values() for slot in stock.idle):
        roomy = [{name: stock.without_leaving() for name, stock in stocks.items()}, *roomy]
    for claim in stocks[pool].claims:
        rows = _rows(claim, stocks)
        for then in roomy:
            found = rows and _with_choice(rows, then, turns)
            units = _room(found, stocks) if found and _passing(found, stocks, turns) else None
            if units is not None:
                return claim.pools[0], units
    return pool, []


def _room(claim: Pick, stocks: Mapping[str, Stock]) -> list[str] | None:
    """Kept units whose slots are enough, with what is free and what is leaving; None if there are not enough."""
    found: dict[str, None] = {}
    for name, count in cold_demand(claim, stocks).items():
        stock = stocks[name]
        if stock.pool.is_closed:
            return None
        kept = [slot for slot in (*stock.idle, *stock.warm) if not slot.leaving]
        if name in claim.chosen:
            taken = {slot.name for slot in claim.taken(name)}
            found |= dict.fromkeys(str(slot.unit) for slot in kept if slot.name in taken)
            continue
        given = stock.warm_for(claim.rows[name])[: _reused(claim, name)]
        short = count - stock.left - sum(slot.count for slot in stock.idle if slot.leaving)
        for slot in sorted(kept, key=lambda slot: (slot.unit not in found, *_loss(slot))):
            if short > 0 and slot not in given:
                found[str(slot.unit)] = None
                short -= slot.count
        if short > 0:
            return None
    return list(found)


def _loss(slot: Slot) -> tuple[bool, str, str]:
    """The cost of losing a kept unit, by its slot: least for one that is not made yet, then for the longest idle."""
    return slot.since is not None, str(slot.since), slot.name


def _rows(claim: Claim, stocks: Mapping[str, Stock]) -> Pick | None:
    """A claim's rows in all of its queues; None if it is not among the first in each."""
    rows: dict[str, Claim] = {}
    for name in claim.pools:
        place = stocks[name].places.get(_whose(claim)) if name in stocks else None
        if place is None:
            return None
        rows[name] = stocks[name].claims[place]
    return Pick(rows, ())


def _passing(found: Pick, stocks: Mapping[str, Stock], turns: Turns) -> Pick | None:
    """A claim with those that it would overtake; None if it must not be granted, whatever its pools have."""
    overtaken: list[Claim] = []
    for name, row in found.rows.items():
        ahead = _before(row, stocks[name], turns)
        overtaken += overtaken_by(row, ahead, stocks[name], found.taken(name))
    if len(overtaken) > WINDOW or any(map(has_reservation, overtaken)):
        return None
    return replace(found, overtaken=overtaken)


def _before(claim: Claim, stock: Stock, turns: Turns) -> list[Claim]:
    """The claims ahead of one in a pool's queue that something may be reserved for."""
    ahead = stock.claims[: stock.places[_whose(claim)]]
    return list(compress(ahead, turns(stock.name))) if ahead else []


def _behind(claim: Claim, stock: Stock, turns: Turns) -> list[Claim]:
    """The claims behind one in a pool's queue that could be granted beside those before them."""
    at = stock.places[_whose(claim)] + 1
    return list(compress(stock.claims[at:], turns(stock.name)[at:]))


def _turns(stocks: Mapping[str, Stock]) -> Turns:
    return cache(lambda pool: satisfiable(stocks[pool].claims, stocks))


def overtaken_by(claim: Claim, ahead: Sequence[Claim], stock: Stock, taken: Sequence[Slot]) -> list[Claim]:
    """The claims ahead in one queue that this claim would take from: no room is left for them and those before
    them.

    Room is everything without a lease; each claim uses the same amount of it, with or without a warm unit. Where
    somebody chooses, it depends on which slots are `taken`.
    """
    if stock.is_chosen_from:
        return stock.overtaken(ahead, taken, claim.owner)
    room = stock.room - claim.count
    found: list[Claim] = []
    for other in ahead:
        room -= other.count
        if room < 0:
            found.append(other)
    return found


def satisfiable(queue: Sequence[Claim], stocks: Mapping[str, Stock]) -> list[bool]:
    """Which claims of a queue could all be granted together if nobody held anything, as far as their pools are
    known.

    Nothing is reserved for the others: they wait for one of these, or for an operator, whatever is freed. A claim with
    unknown pools may be such a one, so no other claim counts as waiting for it. The result for the first claims does
    not depend on those behind.
    """
    asked: dict[str, int] = {}
    maybe = {name: _prospect(stock, choosing_among(queue, name)) for name, stock in stocks.items()}
    prospects = {name: prospect for name, prospect in maybe.items() if prospect}
    found: list[bool] = []
    for claim in queue:
        known = [name for name in claim.pools if name in stocks]
        wanted = _wanted(claim)
        found.append(
            all(
                prospects[name].has(claim)
                if name in prospects
                else asked.get(name, 0) + wanted.get(name, 0) <= stocks[name].most
                for name in known
            )
        )
        if found[-1] and len(known) == len(claim.pools):
            _add(wanted, asked)
            for name in prospects.keys() & set(known):
                prospects[name].add(claim)
    return found


def _prospect(stock: Stock, choices: Sequence[Choice]) -> Prospect | packing.Prospect | None:
    """What could be granted of a pool together; None where only the number counts."""
    if stock.pool.share:
        return packing.Prospect(stock.pool, stock.names)
    return Prospect(stock.pool, choices, stock.names, stock.lacking) if choices else None


def _wanted(claim: Claim) -> dict[str, int]:
    """How much a claim wants of each of its pools."""
    total: dict[str, int] = {}
    for takes in claim.takes:
        _add(takes, total)
    return {**total, claim.pool: claim.count}


def _add(more: Mapping[str, int], total: dict[str, int]) -> None:
    for pool, count in more.items():
        total[pool] = total.get(pool, 0) + count


def has_reservation(claim: Claim) -> bool:
    """Whether a claim was overtaken so often that nobody may take from it again."""
    return claim.overtaken >= MAX_OVERTAKEN


def reserved_claims(queue: Sequence[Claim]) -> Sequence[Claim]:
    """The last claim with a reservation in a queue, and all before it. Empty if there is none."""
    last = max((place for place, claim in enumerate(queue, 1) if has_reservation(claim)), default=0)
    return queue[:last]


def _whose(claim: Claim) -> tuple[str, int, int]:
    """Which of the claims of a queue it is: an attempt has one for each of its steps."""
    return claim.job, claim.attempt, claim.step


NONE_CHOSEN: Mapping[str, Slots] = {}
"""Of a lease that takes whichever slots come first."""


class Allocator:
    """Takes from stocks what claims are granted, lease by lease, and collects the changes. [SLOT-1] [SLOT-2]

    `made`: what becomes of a new unit that has its slots.
    """

    def __init__(self, stocks: Mapping[str, Stock], made: Callable[[Unit], Unit] = lambda unit: unit) -> None:
        self.stocks, self._made = stocks, made
        self._before = {name: stock.pool for name, stock in stocks.items()}
        self._pools = dict(self._before)
        self._free = {name: list(stock.free) for name, stock in stocks.items()}
        self._warm = {name: list(stock.warm) for name, stock in stocks.items()}
        self._had = {name: list(stock.had or ()) for name, stock in stocks.items()}
        self._changes: list[Change] = []
        self._checked: list[Check] = []

    def warm(self, claim: Claim, pool: str, chosen: Mapping[str, Slots] = NONE_CHOSEN) -> Slot | None:
        """The next slot of a pool with a warm unit for a claim, or that which was chosen for its lease; None if there
        is none, and for a fresh claim.
        """
        if pool in chosen:
            found = chosen[pool][0] if chosen[pool][0].unit else None
        else:
            found = None if claim.fresh else next(iter(self._stock(pool).warm_for(claim)), None)
        if found:
            self._warm[pool] = [slot for slot in self._warm[pool] if slot.name != found.name]
        return found

    def _keeps(self, pool: str) -> bool:
        warm = self._pools[pool].warm
        return warm is not None and warm.keeps

    def _stock(self, pool: str) -> Stock:
        return replace(self.stocks[pool], warm=self._warm[pool])

    def over(self, claim: Claim, unit: Unit, own: Slot, others: Sequence[Slot], order: int, now: datetime) -> Unit:
        """Hand a warm unit over to its next lease, with everything that it takes."""
        taken = pools.take(own, claim, order, unit.id, now)
        lent = reuse.lend(unit, claim.job, claim.attempt, order, taken.fence, now)
        given = replace(lent, cleaning=replace(lent.cleaning, is_kept=self._keeps(own.pool)))
        self._changes += [*pools.move(own, taken), Replace(unit, given)]
        for slot in others:
            self._changes += pools.move(slot, pools.hand_over(slot, claim, order, now))
        return given

    def order(self, claim: Claim, unit: Unit, need: Need, chosen: Mapping[str, Slots] = NONE_CHOSEN) -> Unit:
        """Give a unit that will be made its own slots, those that were chosen for it if some were, and all that its
        type uses.

        What a thing has as a whole, and who may share a machine, changes with its pool's row only. So a commit that
        gives one of these checks that. [SLOT-1] Where jobs of one owner only may be on a machine, it also checks the
        parts beside those that it gives. [SEC-2]
        """
        own, *others = [
            slot
            for pool, count in need.takes.items()
            for slot in self._take(claim, pool, count, unit, chosen.get(pool, ()))
        ]
        pool = self._before[need.pool]
        if need.is_exclusive or pool.share:
            self._checked.append(Check(pool))
        if pool.keeps_apart:
            self._checked += map(Check, self._beside(own))
        also = tuple((other.pool, other.name) for other in others)
        is_kept = self._keeps(need.pool) and not claim.fresh and not need.is_exclusive
        given = replace(
            unit,
            lease=replace(unit.lease, slot=own.name, fence=own.fence, also=also),
            cleaning=replace(unit.cleaning, is_kept=is_kept),
        )
        made = self._made(given)
        self._changes.append(Create(made))
        return made

    def _beside(self, own: Slot) -> list[Slot]:
        """The other slots of the machine that a slot is of, free or not, as far as nobody here takes them."""
        return [slot for slot in (*self._free[own.pool], *self._had[own.pool]) if slot.thing == own.thing]

    def _take(self, claim: Claim, pool: str, count: int, unit: Unit, chosen: Slots) -> list[Slot]:
        if self._pools[pool].is_amount:
            left, held = pools.take_amount(self._pools[pool], claim, unit.lease.order, count, unit.id, unit.since)
            self._pools[pool] = left
            self._changes.append(Create(held))
            return [held]
        free = chosen or self._free[pool][:count]
        names = {slot.name for slot in free}
        self._free[pool] = [slot for slot in self._free[pool] if slot.name not in names]
        taken = [pools.take(slot, claim, unit.lease.order, unit.id, unit.since) for slot in free]
        self._changes += [change for was, now in zip(free, taken, strict=True) for change in pools.move(was, now)]
        self._had[pool] += [replace(slot, version=slot.version + 1) for slot in taken]  # as the commit writes them
        return taken

    @property
    def is_stale(self) -> bool:
        """Whether a slot would be taken twice: read as free, and later as a warm unit's."""
        return len(set(map(key_of, self._changes))) < len(self._changes)

    def changes(self) -> list[Change]:
        """All changes since the last commit, for one commit."""
        pooled = [Replace(was, self._pools[name]) for name, was in self._before.items() if was != self._pools[name]]
        written = [*self._changes, *pooled]
        known = set(map(key_of, written))
        checked = {check.was.key: check for check in self._checked if check.was.key not in known}
        return [*written, *checked.values()]

    def committed(self) -> None:
        """The changes are made. What is taken after that is for another commit."""
        for name, was in self._before.items():
            if was != self._pools[name]:
                self._before[name] = self._pools[name] = replace(self._pools[name], version=was.version + 1)
        self._changes = []
        self._checked = []
