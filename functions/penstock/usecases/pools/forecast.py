"""Forecasts: what jobs have before them, and the wait-for graph of the whole site. Read-only.

The API calls these to explain a job or a plan; the scheduler, to log what a job waits for. The rules are in the domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.jobs.jobs import Job
from penstock.domain.pools import forecast, grants, graph, pools, why
from penstock.domain.pools.delays import Delay
from penstock.domain.pools.forecast import ClaimId, Forecast, Queue
from penstock.domain.pools.grants import WINDOW, Stock, heads
from penstock.domain.pools.graph import Graph
from penstock.domain.pools.pools import (
    WAITING,
    Claim,
    HoldTimes,
    Pool,
    Slot,
    SlotState,
    behind,
    collection,
    pool_key,
)
from penstock.domain.pools.why import Block, MissingPool
from penstock.domain.units.units import Unit, UnitState, unit_key
from penstock.system import System, current_site
from penstock.usecases.pools import delays
from penstock.usecases.workers import presence

POOLS_READ = 32
"""How many pools are read at most: those that a step takes from, those that its rivals wait for, and so on."""

ROWS_READ = 1000
"""How many slots of a kind, and how many claims, are read of one pool."""

FORESEEN = 20
"""For how many claims of a queue it is estimated when they are granted: each takes a simulation of those before it."""

FORESEEN_AMONG = 100
"""How many claims of each line are read for that. Those behind them want the same, and stand behind all of these."""

POOLS = 1000
"""How many pools are read for the graph."""


def forecast_step(on: System, job: Job, step: int) -> tuple[Forecast, Block | None] | None:
    """What one step of a job has before it now, or would have if it were to wait already.

    None if one of its pools is not there.
    """
    now = on.world.now()
    claims = grants.claims(job, step, now)
    queues = _read_queues(on, claims)
    if any(claim.pool not in queues for claim in claims):
        return None
    for claim in claims:
        queues[claim.pool] = _with_claim(queues[claim.pool], claim)
    kept = delays.delays_of(on, [slot for queue in queues.values() for slot in queue.held])
    found = forecast.forecast(queues, claims[0], now, kept)
    blocked = _block(on, queues[found.pool], job, step, kept)
    place = _position(on, queues[found.pool], next(claim for claim in claims if claim.pool == found.pool))
    return replace(found, position=place), blocked and replace(blocked, position=place)


def expected_grants(on: System, claims: Sequence[Claim]) -> dict[ClaimId, datetime]:
    """When the first FORESEEN of some claims may be granted, of those for which that can be estimated."""
    now, some = on.world.now(), claims[:FORESEEN]
    queues = _read_queues(on, some, FORESEEN_AMONG)
    kept = delays.delays_of(on, [slot for queue in queues.values() for slot in queue.held])
    found: dict[ClaimId, datetime] = {}
    for claim in some:
        seconds = forecast.forecast(queues, claim, now, kept).seconds if queues.keys() >= set(claim.pools) else None
        if seconds is not None:
            found[ClaimId.from_claim(claim)] = now + timedelta(seconds=seconds)
    return found


def _read_queues(on: System, claims: Sequence[Claim], most: int = ROWS_READ) -> dict[str, Queue]:
    """The queues of some claims, and of everything that the claims in these queues wait for, and those who hold
    something; of each line at most so many claims.
    """
    found: dict[str, Queue] = {}
    wanted = list(dict.fromkeys(claim.pool for claim in claims))
    followed = delays.HOLDERS_READ
    for name in wanted:  # which grows
        queue = read_queue(on, name, most)
        if queue:
            found[name] = queue
            more = [pool for claim in queue.claims for pool in claim.pools]
            steps = delays.waiting_steps(on, queue.held, followed)
            followed -= len(steps)
            more += [need for job, step in steps for need in pools_of(job, step)]
            wanted += [pool for pool in dict.fromkeys(more) if pool not in wanted][: max(0, POOLS_READ - len(wanted))]
    return found


def pools_of(job: Job, step: int) -> list[str]:
    """The pools of which a step of a job takes something."""
    return [pool for need in job.request.needs if need.step == step for pool in need.takes]


def _with_claim(queue: Queue, claim: Claim) -> Queue:
    """A queue with a claim in its place, if it does not wait there yet."""
    if ClaimId.from_claim(claim) in map(ClaimId.from_claim, queue.claims):
        return queue
    return replace(queue, claims=sorted([*queue.claims, claim], key=lambda one: one.order))


def _position(on: System, queue: Queue, claim: Claim) -> int:
    """A claim's place in a queue that was read. One that is longer than what is read of it is counted."""
    if len(queue.claims) > ROWS_READ:
        return position(on, claim)
    return len(queue.before(ClaimId.from_claim(claim))) + 1


def _block(on: System, queue: Queue, job: Job, step: int, kept: Mapping[str, Delay]) -> Block | None:
    if why.is_granted(queue.slots, job, step):
        return None
    return why.block(queue.pool, queue.slots, queue.claims, job.id, kept, presence.absent_hosts(on, queue.pool))


def short_block(on: System, job: Job, step: int) -> Block | None:
    """What a waiting step's log says of it: the first of its pools that lacks something, and some of its holders.

    However long the queue and many the holders, few rows are read: a job that waits costs nothing, and `job why` tells
    the rest. None if a pool is not there.
    """
    waited_for = _waited_for(on, grants.claims(job, step, on.world.now()))
    if waited_for is None:
        return None
    pool, claim = waited_for
    most = ROWS_READ if grants.choosing_among([claim], pool.name) else why.MAX_HOLDERS + 1
    held = on.store.find(pools.collection(pool.name), f"{SlotState.HELD}#", Slot, limit=most)
    return why.short_block(pool, held, claim)


def missing_pool(on: System, *names: str) -> MissingPool | None:
    """The first of some pools of which there is no row; None if all are there.

    A site counts as soon as it is applied, and its rollout makes the rows of new pools after that, one by one.
    """
    name = next((name for name in names if on.store.get(pool_key(name), Pool) is None), None)
    return MissingPool(name, is_coming=name in current_site(on).pools()) if name else None


def _waited_for(on: System, claims: Sequence[Claim]) -> tuple[Pool, Claim] | None:
    """The first pool that has not what its claim wants, or else the first of all; None if one before is not there."""
    first: tuple[Pool, Claim] | None = None
    for claim in claims:
        pool = on.store.get(pool_key(claim.pool), Pool)
        if pool is None:
            return None
        if _is_short(on, pool, claim):
            return pool, claim
        first = first or (pool, claim)
    return first


def _is_short(on: System, pool: Pool, claim: Claim) -> bool:
    """Whether a claim's pool has not what the claim wants now."""
    if pool.is_amount:
        return pool.is_closed or pool.limit - pool.used < claim.count
    most = ROWS_READ if grants.choosing_among([claim], pool.name) else claim.count
    free = on.store.find(pools.collection(claim.pool), f"{SlotState.FREE}#", Slot, limit=most)
    held = on.store.find(collection(claim.pool), f"{SlotState.HELD}#", Slot, limit=ROWS_READ) if pool.share else ()
    return not grants.can_grant(claim, {pool.name: Stock(pool, [claim], free, had=held)})


def wait_graph(on: System) -> Graph:
    """Who waits for what, and who has it.

    Rows change while they are read, and two moments may look like a cycle that never was: then everything is read
    again.
    """
    found = _read_graph(on)
    return _read_graph(on) if found.cycle else found


def _read_graph(on: System) -> Graph:
    found = (read_queue(on, pool.name) for pool in on.store.listed("pools", Pool, limit=POOLS))
    return graph.graph([queue for queue in found if queue])


def read_queue(on: System, name: str, most: int = ROWS_READ) -> Queue | None:
    """What a pool has and who waits for it, of each line at most so many; None when there is no such pool."""
    pool = on.store.get(pool_key(name), Pool)
    if pool is None:
        return None
    pk = pools.collection(name)
    states = (SlotState.HELD,) if pool.is_amount else (SlotState.FREE, SlotState.HELD)
    slots = [slot for state in states for slot in on.store.find(pk, f"{state}#", Slot, limit=ROWS_READ)]
    idle = on.store.find(pk, f"{SlotState.IDLE}#", Slot, limit=ROWS_READ)
    claims = first_waiting(on, name, most)[:ROWS_READ]
    return Queue(*pools.as_free(pool, slots, idle), claims, on.store.get(HoldTimes(pool=name).key, HoldTimes))


def quarantined_of(on: System, slots: Sequence[Slot], most: int) -> list[Unit]:
    """The quarantined units in some of these slots; at most that many slots that no job holds are read."""
    aside = [slot.unit for slot in slots if pools.is_aside(slot) and slot.unit]
    found = (on.store.get(unit_key(unit), Unit) for unit in aside[:most])
    return [unit for unit in found if unit and unit.state is UnitState.QUARANTINED]


def line_lengths(on: System, pool: str) -> Iterator[tuple[Claim, int]]:
    """The first claim of each line of a pool's queue, and how many claims the line has. All of them are counted."""
    after = ""
    while found := on.store.find(collection(pool), WAITING, Claim, limit=1, after=after):
        first = found[0]
        yield first, on.store.count(collection(pool), f"{WAITING}{first.line}#")
        after = behind(first.line)


def queue_length(on: System, pool: str) -> int:
    """How many claims wait in a pool's queue."""
    return on.store.count(collection(pool), WAITING)


def position(on: System, claim: Claim) -> int:
    """A claim's place in its queue, or that which it would have, counted from 1. All before it are counted."""
    before = [replace(claim, line=first.line) for first, _ in line_lengths(on, claim.pool)]
    return 1 + sum(on.store.count(each.key.pk, f"{WAITING}{each.line}#", upto=each.before_it) for each in before)


def first_waiting(on: System, pool: str, most: int = 0) -> list[Claim]:
    """The first claims of each line of a pool's queue, in the order in which they are granted. [QUEUE-1] [QUEUE-2]

    Of each line at most WINDOW are read, or `most`; then its others are passed over. So this is one read for each line
    that is as long, and as many as the others fill.
    """
    most = most or WINDOW
    found: list[Claim] = []
    after = ""
    while True:
        page = on.store.find(collection(pool), WAITING, Claim, limit=most, after=after)
        found += page
        if len(page) < most:
            return heads(found, most)
        line = page[-1].line
        is_read = sum(claim.line == line for claim in found) >= most
        after = behind(line) if is_read else page[-1].key.sk
