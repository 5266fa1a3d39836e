"""Which claim is next: the first in a pool's queue that all of its pools can grant now. [QUEUE-2]

Claims have the same order in every queue: by priority, then by the age of their job. A claim that is granted before
others overtakes those that it takes something from: those for which, together with the claims before them, the queue's
pool has no room left afterwards. A claim can be overtaken MAX_OVERTAKEN times in one queue. From then on, what it and
the claims before it want is reserved until they can be granted in all of their queues; the rest is free for those
behind. Because the order is the same everywhere, the first claim with a reservation never waits for what another
reserves. docs/decisions/0022-overtaking-counts-harm.md

`Allocator` does what a grant decides: it takes slots, parts of amounts, and the warm units that some slots carry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import compress

from penstock.domain.jobs.jobs import Job
from penstock.domain.pools import pools
from penstock.domain.pools.pools import Claim, Need, Pool, Slot, demand
from penstock.domain.units import reuse
from penstock.domain.units.units import Unit
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Create, Replace, key_of, ulid_time

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
    takes, fresh = tuple(need.takes for need in needs), job.provenance.proves is not None
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
            fresh=fresh,
            owner="" if job.provenance.canary else job.owner,
            line=pools.line_of(takes, fresh=fresh),
            turn=ulid_time(job.times.turn) if job.times.turn else "",
        )
        for pool, count in wanted.items()
    ]


def heads(queue: Iterable[Claim], most: int = WINDOW) -> list[Claim]:
    """The first claims of each line, in the order in which they are granted."""
    places: Counter[str] = Counter()
    found: list[Claim] = []
    for claim in sorted(queue, key=lambda claim: claim.order):
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
    each slot and amount.
    """
    moved = sum(_shares(need, amounts) for need in needs)
    return len(demand(needs)) + WINDOW + 1 + 2 * len(needs) + 2 * moved


def _shares(need: Need, amounts: Collection[str]) -> int:
    return sum(1 if pool in amounts else count for pool, count in need.takes.items())


@dataclass(frozen=True)
class Stock:
    """What a pool has, and the first claims on it: its `heads`.

    `free`: as many free slots without a unit as these claims want together; `warm`: those with a unit, whomever it
    serves. `idle`: slots that kept units take besides; they are read only to see who could make room, and what is
    reserved.
    """

    pool: Pool
    claims: Sequence[Claim]
    free: Sequence[Slot] = ()
    warm: Sequence[Slot] = ()
    idle: Sequence[Slot] = ()

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

    def warm_for(self, claim: Claim) -> list[Slot]:
        """The warm slots that a claim may get, those first whose units serve nobody else. [SEC-2]"""
        return sorted((slot for slot in self.warm if pools.serves(slot, claim)), key=lambda slot: not slot.owner)

    @property
    def is_short(self) -> bool:
        """Whether the claims want more than there is without a lease: who is granted takes from somebody."""
        return sum(claim.count for claim in self.claims) > self.room

    @property
    def most(self) -> int:
        """How much there would be if nobody held anything; 0 while an operator has paused the pool."""
        return 0 if self.pool.is_paused else self.pool.limit

    def has(self, count: int) -> bool:
        """Whether this many slots, or this much of the amount, can be granted."""
        return not self.pool.is_closed and count <= max(0, self.left)


@dataclass(frozen=True)
class Pick:
    """A claim that may be granted: its rows by pool, and the claims that it overtakes."""

    rows: Mapping[str, Claim]
    overtaken: Sequence[Claim]

    @property
    def takes(self) -> Sequence[Mapping[str, int]]:
        """What each of its leases takes."""
        return next(iter(self.rows.values())).takes

    @property
    def reuses(self) -> Sequence[Mapping[str, int]]:
        """What those of its leases take that may get warm units: all leases, or none of a fresh claim."""
        return () if next(iter(self.rows.values())).fresh else self.takes


def pick(pool: str, stocks: Mapping[str, Stock]) -> Pick | None:
    """The first claim in a pool's queue that all of its pools can grant; None if there is none."""
    turns = _turns(stocks)
    found = (_grantable(claim, stocks, turns) for claim in stocks[pool].claims)
    return next((each for each in found if each), None)


def picks(pool: str, stocks: Mapping[str, Stock]) -> list[Pick]:
    """The claims in a pool's queue that can be granted one after the other, as far as their stocks tell. [QUEUE-2]

    No more than one if it overtakes somebody, or if something is reserved: what comes after that is read anew. Nobody
    is granted before a claim that was not read: of each line the first are known, so what stands before its last is.
    """
    found: list[Pick] = []
    known = _known(stocks)
    while (next_ := pick(pool, stocks)) and (not found or _is_known(next_, known)) and not next_.overtaken:
        found.append(next_)
        if any(stock.idle for stock in stocks.values()):
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
        given = stock.warm_for(row)[: _reused(found, name)]
        left[name] = replace(
            stock,
            pool=replace(stock.pool, used=stock.pool.used + count) if stock.pool.is_amount else stock.pool,
            claims=[claim for claim in stock.claims if claim is not row],
            free=stock.free if stock.pool.is_amount else stock.free[count:],
            warm=[slot for slot in stock.warm if slot not in given],
        )
    return left


def has_all(claims: Sequence[Claim], stocks: Mapping[str, Stock]) -> bool:
    """Whether the pools have what a new claim wants, given by its rows for each of them, where nobody waits."""
    found = Pick({claim.pool: claim for claim in claims}, ())
    return all(stocks[name].has(count) for name, count in cold_demand(found, stocks).items())


def _grantable(claim: Claim, stocks: Mapping[str, Stock], turns: Turns) -> Pick | None:
    found = _rows(claim, stocks)
    if found and all(stocks[name].has(count) for name, count in cold_demand(found, stocks).items()):
        return _passing(found, stocks, turns)
    return None


def cold_demand(found: Pick, stocks: Mapping[str, Stock]) -> dict[str, int]:
    """What a claim takes from each of its pools beyond what the warm units for it bring."""
    total = {name: row.count for name, row in found.rows.items()}
    warm = {name: len(stocks[name].warm_for(row)) for name, row in found.rows.items()}
    for takes in found.reuses:
        own = next(iter(takes))
        if warm[own]:
            warm[own] -= 1
            for pool, count in takes.items():
                total[pool] -= count
    return total


def _reused(found: Pick, pool: str) -> int:
    """How many warm units of a pool a claim may get."""
    return sum(next(iter(takes)) == pool for takes in found.reuses)


def units_to_evict(pool: str, stocks: Mapping[str, Stock]) -> tuple[str, list[str]]:
    """The kept units to destroy so that the first claim that waits only for them can be granted, and its own pool.

    No units if what is leaving already is enough, or if no claim could be granted even then. Units that are not made
    yet go first, then those that were idle for longest.
    """
    turns = _turns(stocks)
    for claim in stocks[pool].claims:
        found = _rows(claim, stocks)
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
        given = stock.warm_for(claim.rows[name])[: _reused(claim, name)]
        kept = [slot for slot in (*stock.idle, *stock.warm) if not slot.leaving and slot not in given]
        short = count - stock.left - sum(slot.count for slot in stock.idle if slot.leaving)
        for slot in sorted(kept, key=lambda slot: (slot.unit not in found, *_loss(slot))):
            if short > 0:
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
        claims = stocks[name].claims if name in stocks else ()
        place = _place(claim, claims)
        if place is None:
            return None
        rows[name] = claims[place]
    return Pick(rows, ())


def _passing(found: Pick, stocks: Mapping[str, Stock], turns: Turns) -> Pick | None:
    """A claim with those that it would overtake; None if it must not be granted, whatever its pools have."""
    overtaken: list[Claim] = []
    for name, row in found.rows.items():
        ahead = stocks[name].claims[: _place(row, stocks[name].claims)]
        overtaken += overtaken_by(row, ahead, stocks, turns(name)) if ahead else []
    if len(overtaken) > WINDOW or any(map(has_reservation, overtaken)):
        return None
    return Pick(found.rows, overtaken)


def _turns(stocks: Mapping[str, Stock]) -> Turns:
    return cache(lambda pool: satisfiable(stocks[pool].claims, stocks))


def overtaken_by(
    claim: Claim, ahead: Sequence[Claim], stocks: Mapping[str, Stock], turns: Sequence[bool] | None = None
) -> list[Claim]:
    """The claims ahead in one queue that this claim would take from: no room is left for them and those before
    them.

    Room is everything without a lease; each claim uses the same amount of it, with or without a warm unit. `turns`:
    what `satisfiable` returns for the queue.
    """
    room = stocks[claim.pool].room - claim.count
    found: list[Claim] = []
    for other in compress(ahead, turns if turns is not None else satisfiable(ahead, stocks)):
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
    found: list[bool] = []
    for claim in queue:
        known = [name for name in claim.pools if name in stocks]
        wanted = _wanted(claim)
        found.append(all(asked.get(name, 0) + wanted.get(name, 0) <= stocks[name].most for name in known))
        if found[-1] and len(known) == len(claim.pools):
            _add(wanted, asked)
    return found


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


def _place(claim: Claim, claims: Sequence[Claim]) -> int | None:
    whose = (claim.job, claim.attempt, claim.step)
    return next((at for at, row in enumerate(claims) if (row.job, row.attempt, row.step) == whose), None)


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
        self._changes: list[Change] = []

    def warm(self, claim: Claim, pool: str) -> Slot | None:
        """The next slot of a pool with a warm unit for a claim; None if there is none, and for a fresh claim."""
        found = None if claim.fresh else next(iter(self._stock(pool).warm_for(claim)), None)
        if found:
            self._warm[pool].remove(found)
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

    def order(self, claim: Claim, unit: Unit, need: Need) -> Unit:
        """Give a unit that will be made its own slot, and all that its type uses."""
        own, *others = [slot for pool, count in need.takes.items() for slot in self._take(claim, pool, count, unit)]
        also = tuple((other.pool, other.name) for other in others)
        is_kept = self._keeps(need.pool) and not claim.fresh
        given = replace(
            unit,
            lease=replace(unit.lease, slot=own.name, fence=own.fence, also=also),
            cleaning=replace(unit.cleaning, is_kept=is_kept),
        )
        made = self._made(given)
        self._changes.append(Create(made))
        return made

    def _take(self, claim: Claim, pool: str, count: int, unit: Unit) -> list[Slot]:
        if self._pools[pool].is_amount:
            left, held = pools.take_amount(self._pools[pool], claim, unit.lease.order, count, unit.id, unit.since)
            self._pools[pool] = left
            self._changes.append(Create(held))
            return [held]
        free, self._free[pool] = self._free[pool][:count], self._free[pool][count:]
        taken = [pools.take(slot, claim, unit.lease.order, unit.id, unit.since) for slot in free]
        self._changes += [change for was, now in zip(free, taken, strict=True) for change in pools.move(was, now)]
        return taken

    @property
    def is_stale(self) -> bool:
        """Whether a slot would be taken twice: read as free, and later as a warm unit's."""
        return len(set(map(key_of, self._changes))) < len(self._changes)

    def changes(self) -> list[Change]:
        """All changes since the last commit, for one commit."""
        pooled = [Replace(was, self._pools[name]) for name, was in self._before.items() if was != self._pools[name]]
        return [*self._changes, *pooled]

    def committed(self) -> None:
        """The changes are made. What is taken after that is for another commit."""
        for name, was in self._before.items():
            if was != self._pools[name]:
                self._before[name] = self._pools[name] = replace(self._pools[name], version=was.version + 1)
        self._changes = []
