"""Serving pools: what they have is granted to those who wait. [QUEUE-1] [QUEUE-2]

Whatever frees slots, or joins a queue, writes first and then asks for this by a message. The messages of pools that
share a quota form a group, of which one call at a time serves: so those who serve do not fight for the same slots. That
saves lost races. That nothing is granted twice rests on commits alone, since a group may have two calls after all.
docs/decisions/0059-one-server-at-a-time.md
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

from penstock.domain import metrics
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.pools import grants, pools
from penstock.domain.pools.grants import Allocator, Pick, Stock
from penstock.domain.pools.pools import Claim, Lease, LeaseState, Pool, Slot, lease_key, pool_key
from penstock.domain.units.units import Unit, unit_key
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Delete, Key, Replace, Row
from penstock.listings import rows_at
from penstock.system import System
from penstock.usecases.pools import aside, scheduler
from penstock.usecases.pools.forecast import first_waiting
from penstock.usecases.units import prewarm, retire
from penstock.usecases.users import privileges
from penstock.usecases.workers import power

R = TypeVar("R", bound=Row)

ROUNDS = 25
"""How often one call reads a pool. If more can be granted after that, it leaves it to another call."""

AT_ONCE = 100
"""How many claims are granted by what was read once. It bounds what is read for them: their jobs, and leases."""


FAILED = 3
"""After how many failures in a row to destroy it a unit no longer counts as leaving. A driver that is not done says so,
and does not fail.
"""


@dataclass(frozen=True)
class Turn:
    """A claim whose turn it is, its job, and its leases that wait. Without a job or leases it no longer waits."""

    pick: Pick
    job: Job | None
    waiting: Sequence[Lease]

    @property
    def claim(self) -> Claim:
        """The claim, by its row in one of its queues."""
        return next(iter(self.pick.rows.values()))

    @property
    def is_waiting(self) -> bool:
        """Whether it waits still."""
        return bool(self.waiting) and all(lease.state is LeaseState.WAITING for lease in self.waiting)

    @property
    def wanted(self) -> set[str]:
        """The privileges that its owner needs."""
        return self.job.privileges_of(self.claim.step) if self.job else set()

    @property
    def rows(self) -> int:
        """The most rows that its grant names, but for the pools: those of its claims, leases, units and slots."""
        chosen = [self.pick.slots_of(lease) for lease in range(len(self.takes))]
        moved = sum(
            1 if pools.is_quota(name) else len(mine.get(name, ())) or count
            for takes, mine in zip(self.takes, chosen, strict=True)
            for name, count in takes.items()
        )
        checked = sum(choice.exclusive for choice in self.claim.choices) + self.beside
        return len(self.pick.rows) + 2 * len(self.takes) + 2 * moved + checked

    @property
    def beside(self) -> int:
        """How many parts are checked beside those that it takes of a machine that jobs share."""
        needs = self.job.request.needs if self.job else ()
        return sum(need.beside for need in needs if need.step == self.claim.step)

    @property
    def takes(self) -> Sequence[Mapping[str, int]]:
        """What each of its leases takes."""
        return self.pick.takes

    @property
    def is_alone(self) -> bool:
        """Whether it has a commit of its own: the owner's row, or that of one whom it overtakes, may be in others."""
        return bool(self.pick.overtaken or self.wanted) or not self.is_waiting


def serve(on: System, names: Sequence[str], group: str = "") -> None:
    """Grant what some pools have to those who wait for it. What then may be granted elsewhere is left to others."""
    left: dict[str, None] = {}
    for name in pools.serving_order(names):
        left |= serve_pool(on, name)
    _serve_waiting(on, left, group or pools.group_of(names))


def serve_pool(on: System, name: str) -> dict[str, None]:
    """Grant what can be granted to those who wait for a pool. The pools that are to be served then. [QUEUE-1]

    It ends when nobody can be granted anything: by what was read last, or because all is given. Who gives something
    back after that, or is the first of a line, asks anew. After a lost race, or where a commit has no room for many,
    one claim is granted, and then many again: somebody else serves, and takes less of what is read.
    """
    left: dict[str, None] = {}
    most = AT_ONCE
    for tries in range(ROUNDS):
        stocks = stocks_of(on, name)
        found = grants.picks(name, stocks, most) if stocks else []
        if not found:
            _make_room(on, name, stocks)
            return left
        left |= dict.fromkeys(each for pick in found for each in pick.rows if each != name)
        granted = _grant_all(on, found, stocks)
        rest = grants.after(found, stocks) if granted == len(found) else stocks
        if rest[name].claims and rest[name].is_used_up:
            _make_room(on, name, rest)
            return left
        most = 1 if granted is None else AT_ONCE
        if granted is None:
            on.world.pause(min(tries, 4))
    return left | {name: None}


def stocks_of(on: System, name: str) -> dict[str, Stock]:
    """What a pool has, and the others that its claims want; with what is aside in the pools of those that something is
    reserved for, perhaps in vain, and of what is known to be held. [QUEUE-2]
    """
    found = scheduler.read_stocks(on, name)
    reserved = (claim for stock in found.values() for claim in grants.reserved_claims(stock.claims))
    wanted = {each for claim in reserved for each in claim.pools}
    return {each: _with_aside(on, stock, is_reserved=each in wanted) for each, stock in found.items()}


def _with_aside(on: System, stock: Stock, *, is_reserved: bool) -> Stock:
    """What a pool has, with what of it is aside. Of a paused one nobody is granted anything anyway."""
    if stock.pool.is_paused:
        return stock
    return replace(stock, aside=aside.read(on, stock.pool) if is_reserved else aside.among(on, stock.had or ()))


def _make_room(on: System, name: str, stocks: Mapping[str, Stock]) -> None:
    """Nobody can be granted anything: have what may go make room, or what nobody waits for be made ahead of need."""
    evict(on, name, stocks)
    _resize_what_is_over(on, stocks)
    power.switch_on(on, name, stocks)
    if not stocks and _has_min_warm(on, name):
        prewarm.fill(on, name)


def _resize_what_is_over(on: System, stocks: Mapping[str, Stock]) -> None:
    """A slot came back to a pool of which more may be held than its limit: a resize decides which one is free."""
    for name, stock in stocks.items():
        if stock.free and stock.pool.is_closed:
            on.queues.schedule({"do": "resize", "pool": name})


def _has_min_warm(on: System, name: str) -> bool:
    """Whether units of a pool are made ahead of need."""
    pool = on.store.get(pool_key(name), Pool)
    return pool is not None and pool.min_warm > 0


def _grant_all(on: System, found: Sequence[Pick], stocks: Mapping[str, Stock]) -> int | None:
    """Grant claims in their order, many in each commit. How many were granted together; None if one was not."""
    hand = Allocator(stocks)
    room = limits.TRANSACTION_ITEMS - sum(_is_named_once(stock.pool) for stock in stocks.values())
    turns = _turns(on, found)
    is_done = all(_grant(on, batch, hand, stocks) for batch in _batches(turns, room))
    return sum(not turn.is_alone for turn in turns) if is_done else None


def _is_named_once(pool: Pool) -> bool:
    """Whether a commit names the row of a pool, however many it grants: it writes an amount's, and checks one whose
    machines jobs share.
    """
    return pool.is_amount or pool.share is not None


def _turns(on: System, found: Sequence[Pick]) -> list[Turn]:
    """Claims with their jobs, and with their leases that wait; all are read in a few requests."""
    claims = [next(iter(pick.rows.values())) for pick in found]
    rows = rows_at(on, [job_key(claim.job) for claim in claims])
    jobs = [_row(on, job_key(claim.job), rows, Job) for claim in claims]
    keys = [_lease_keys(claim, job) for claim, job in zip(claims, jobs, strict=True)]
    rows |= rows_at(on, [key for of in keys for key in of])
    leases = [[lease for key in of if (lease := _row(on, key, rows, Lease))] for of in keys]
    return [Turn(*turn) for turn in zip(found, jobs, leases, strict=True)]


def _row(on: System, key: Key, rows: Mapping[Key, Row], shape: type[R]) -> R | None:
    """A row. One that was not found among others is read by itself, which raises: what cannot be read is not gone."""
    row = rows.get(key)
    return row if isinstance(row, shape) else on.store.get(key, shape)


def _lease_keys(claim: Claim, job: Job | None) -> list[Key]:
    needs = job.request.needs if job else ()
    return [lease_key(claim.job, claim.attempt, need.order) for need in needs if need.step == claim.step]


def _batches(turns: Sequence[Turn], room: int) -> Iterator[list[Turn]]:
    """Claims that one commit grants, which has room for so many rows; or one that has a commit of its own."""
    batch: list[Turn] = []
    for turn in turns:
        is_full = sum(other.rows for other in [*batch, turn]) > room
        if batch and (is_full or turn.is_alone or batch[-1].is_alone):
            yield batch
            batch = []
        batch.append(turn)
    yield batch


def _grant(on: System, batch: Sequence[Turn], hand: Allocator, stocks: Mapping[str, Stock]) -> bool:
    """Grant claims in all their pools at once, or drop one that no longer waits. False if the pools are to be read
    anew, for what was taken in `hand` is not committed then: after a lost race, or where a commit has no room. [SLOT-2]

    What needs a privilege is granted only while the owner has it. [SEC-2]
    """
    first = batch[0]
    why, owner = _check_owner(on, first) if first.is_waiting else ("it no longer waits", [])
    if why:
        return on.store.commit(_dropped(first))
    granted = [_granted(on, turn, hand) for turn in batch]
    changes = [change for turn, (leases, _) in zip(batch, granted, strict=True) for change in (*_passed(turn), *leases)]
    changes += [*owner, *hand.changes()]
    has_room = len(changes) <= limits.TRANSACTION_ITEMS  # those that are too many together are granted one by one
    if not has_room and len(batch) == 1:
        privileges.end_waiting(on, first.claim.job, _too_many(first.claim, len(changes)))
        on.store.commit(_dropped(first))
        return False
    if not has_room or not all(units for _, units in granted) or not on.store.commit(changes):
        return False
    hand.committed()
    _tell(on, batch, [units for _, units in granted], scheduler.ready_units(stocks))
    return True


def _check_owner(on: System, turn: Turn) -> tuple[str | None, list[Change]]:
    """Why a claim's owner may not have what it is for, whose job is ended then; or what makes sure of that."""
    if turn.job is None or not turn.wanted:
        return None, []
    why, owner = privileges.check_owner(on, turn.job.owner, turn.wanted)
    if why:
        privileges.end_waiting(on, turn.job.id, why)
    return why, owner


def _granted(on: System, turn: Turn, hand: Allocator) -> tuple[list[Change], list[Unit]]:
    assert turn.job
    return scheduler.grant_changes(on, turn.job, {turn.claim.step: turn.pick}, turn.waiting, hand)


def _dropped(turn: Turn) -> list[Change]:
    """A claim leaves all its queues."""
    return [Delete(row) for row in turn.pick.rows.values()]


def _passed(turn: Turn) -> list[Change]:
    """A claim leaves all its queues, and those that it overtakes count it. [QUEUE-2]"""
    overtaken = turn.pick.overtaken
    return [*_dropped(turn), *(Replace(other, replace(other, overtaken=other.overtaken + 1)) for other in overtaken)]


def _tell(on: System, batch: Sequence[Turn], given: Sequence[Sequence[Unit]], ready: Collection[str | None]) -> None:
    """What follows from grants: of several, another call does it, and this one goes on to serve."""
    warm = [unit.id for units in given for unit in units if unit.id in ready]
    if len(batch) == 1:
        _tell_one(on, given[0], batch[0].waiting, warm)
    else:
        on.queues.schedule({"do": "granted", "units": [unit.id for units in given for unit in units], "warm": warm})


def granted(on: System, unit_ids: Sequence[str], warm: Collection[str]) -> None:
    """What follows for units that were granted with others, `warm` those that were kept for it."""
    units = [row for row in rows_at(on, [unit_key(each) for each in unit_ids]).values() if isinstance(row, Unit)]
    leased = [unit for unit in units if unit.lease.job]
    rows = rows_at(on, [lease_key(unit.lease.job, unit.lease.attempt, unit.lease.order) for unit in leased])
    leases = {row.unit: row for row in rows.values() if isinstance(row, Lease)}
    mine = sorted((unit for unit in leased if unit.id in leases), key=_attempt_of)
    for _, group in groupby(mine, _attempt_of):
        given = list(group)
        _tell_one(on, given, [leases[unit.id] for unit in given], warm)


def _tell_one(on: System, given: Sequence[Unit], waiting: Sequence[Lease], warm: Collection[str]) -> None:
    scheduler.claim_granted(on, given, waiting, warm)
    scheduler.log_granted(on, given, waiting, warm)


def _attempt_of(unit: Unit) -> tuple[str, int]:
    return unit.lease.job, unit.lease.attempt


def _too_many(claim: Claim, rows: int) -> str:
    """Why a claim can never be granted, although its job was accepted: by an older version, which counted otherwise."""
    most = limits.TRANSACTION_ITEMS
    return f"{claim.pool}: to grant all that the job wants at once takes {rows} rows, and a commit has room for {most}"


def _serve_waiting(on: System, left: Iterable[str], group: str) -> None:
    """A granted claim left all its queues: what was reserved for it there may be granted to others. [QUEUE-1]

    Who waits is read after the grant: a claim that came just before it, and was behind it, would not be served
    otherwise.
    """
    names = [name for name in left if on.store.find(pools.collection(name), pools.WAITING, Claim, limit=1)]
    if names:
        on.queues.serve(names, group)


def evict(on: System, pool_name: str, stocks: Mapping[str, Stock]) -> None:
    """Have idle units destroyed if nothing else keeps a claim waiting. It is granted when they are gone. [QUEUE-1]"""
    idle = _going_or_kept(on, {name: scheduler.read_idle(on, name) for name in stocks})
    if any(idle.values()) or any(stock.warm for stock in stocks.values()):
        known = {name: replace(stock, idle=idle[name]) for name, stock in stocks.items()}
        own, found = grants.units_to_evict(pool_name, known)
        for unit in found:
            was_idle = retire.retire(on, unit, "it made room for others")
            on.metrics.add(metrics.EVICTIONS, int(was_idle), pool=own)


def _going_or_kept(on: System, idle: Mapping[str, Sequence[Slot]]) -> dict[str, list[Slot]]:
    """Idle slots without those of units that do not go: others make room in their place. [QUEUE-1]"""
    leaving = dict.fromkeys(str(slot.unit) for slots in idle.values() for slot in slots if slot.leaving)
    rows = rows_at(on, [unit_key(unit) for unit in leaving]).values()
    stays = {row.id for row in rows if isinstance(row, Unit) and row.step.tries >= FAILED}
    return {name: [slot for slot in slots if slot.unit not in stays] for name, slots in idle.items()}


def with_others(on: System, pool_name: str) -> list[str]:
    """A pool, and the others of those who wait for it. When it is paused or lowered, nothing is reserved there any more
    for claims that cannot be granted now: others may get it. [QUEUE-1]
    """
    waiting = first_waiting(on, pool_name)
    return list(dict.fromkeys((pool_name, *(name for claim in waiting for name in claim.pools))))
