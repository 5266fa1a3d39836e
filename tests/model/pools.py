"""What a commit does to pools, in the model's words, and what the model promises of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeGuard

from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.pools import grants
from penstock.domain.pools.choices import ANY
from penstock.domain.pools.pools import Claim, Pool, Slot, pool_key, thing_of
from penstock.domain.units.units import Unit
from penstock.kernel.rows import Change, Create, Key, Replace, Row


def slot_state(slot: Slot) -> str:
    """A slot that is held although it was withdrawn is a state of its own."""
    return "withdrawn" if slot.withdrawn else str(slot.state)


def facts(was: Pool, now: Pool) -> set[str]:
    """What of a pool's row a commit changes. What is learned of how long it is held is no part of the model."""
    found = set()
    if now.used != was.used:
        found.add(f"used: {_way(was.used, now.used)}")
    if now.limit != was.limit:
        found.add(f"limit: {_way(was.limit, now.limit)}")
    if now.due and (now.due, now.limit) != (was.due, was.limit):
        found.add("due: set")
    if was.due and not now.due:
        found.add("due: cleared")
    for name in ("over", "paused"):
        before, after = getattr(was, name), getattr(now, name)
        if before != after:
            found.add(f"{name}: {_word(before)} -> {_word(after)}")
    return found


def _way(was: int, now: int) -> str:
    return "more" if now > was else "less"


def _word(is_so: bool) -> str:
    return "yes" if is_so else "no"


def check_guard(name: str, changes: Sequence[Change], before: Mapping[Key, Row], after: Mapping[Key, Row]) -> None:
    """What the model asks of pools beside the states that rows come from."""
    written = {change.was.name for change in changes if isinstance(change, Replace) and isinstance(change.was, Pool)}
    if name == "resize_slot":
        moved = {row.pool for row in _written(changes) if isinstance(row, Slot)}
        assert moved <= written, f"{name} moves slots and does not write their pool's row"
    if name in ("grant", "grant_at_once", "grant_with_job"):
        for slot in (row for row in _written(changes) if isinstance(row, Slot)):
            pool = before[pool_key(slot.pool)]
            assert isinstance(pool, Pool)
            assert not pool.paused, "granted from a paused pool"
            assert not pool.is_closed, "granted from a pool of which more than its limit may be held"
            assert pool.due or _held(after, pool) <= pool.limit, "granted beyond the limit"
        for unit in (row for row in _written(changes) if isinstance(row, Unit)):
            _check_choice(after, unit)
            _check_named(changes, before, unit)
        units = {row.lease.job for row in _written(changes) if isinstance(row, Unit)}
        left = [row for row in after.values() if isinstance(row, Claim) and row.job in units]
        assert not left, "granted, and left in a queue"


def _check_choice(rows: Mapping[Key, Row], unit: Unit) -> None:
    """[SLOT-2] A lease got what it chose; and of what it has for itself, nobody else has a part. [SLOT-1]"""
    job, pool = rows[job_key(unit.lease.job)], rows[pool_key(unit.lease.pool)]
    assert isinstance(job, Job)
    assert isinstance(pool, Pool)
    choice = next(need.choice for need in job.request.needs if need.order == unit.lease.order) or ANY
    slots = [row for row in rows.values() if isinstance(row, Slot) and row.pool == pool.name]
    mine = {slot.thing for slot in slots if slot.unit == unit.id}
    assert all(choice.fits(thing, pool.labels.get(thing, {})) for thing in mine), f"{mine} does not fit {choice}"
    beside = [slot for slot in slots if slot.thing in mine and slot.unit != unit.id and slot_state(slot) != "off"]
    assert not (choice.exclusive and beside), f"granted as a whole, beside {beside}"
    assert not choice.together or len(mine) == 1, f"granted parts of several things: {mine}"


def _check_named(changes: Sequence[Change], before: Mapping[Key, Row], unit: Unit) -> None:
    """[SEC-2] A grant of parts of a host that one owner has at a time names all its parts, and the pool's row."""
    pool = before[pool_key(unit.lease.pool)]
    assert isinstance(pool, Pool)
    if not pool.keeps_apart:
        return
    host, named = thing_of(unit.lease.slot), {change.was.key for change in changes if not isinstance(change, Create)}
    parts = [row for row in before.values() if isinstance(row, Slot) and (row.pool, row.thing) == (pool.name, host)]
    assert pool.key in named, "granted by a row that may be another by now"
    missing = [slot.name for slot in parts if slot.key not in named and slot_state(slot) != "off"]
    assert not missing, f"granted, whoever has {missing} by now"


def check_promises(rows: Collection[Row]) -> None:
    """[SLOT-1] [SLOT-2] [QUEUE-2] [SEC-2]: what pools/properties.pml checks after a step."""
    slots = [row for row in rows if isinstance(row, Slot)]
    pools = [row for row in rows if isinstance(row, Pool)]
    for pool in (pool for pool in pools if pool.is_amount):
        assert pool.used == sum(slot.count for slot in slots if slot.pool == pool.name), "what is used is what is held"
    for pool in (pool for pool in pools if not pool.is_amount and pool.due is None):
        own = [slot_state(slot) for slot in slots if slot.pool == pool.name]
        assert own.count("free") + own.count("held") == pool.limit, f"{pool.name} is not as its row says"
        assert pool.over or "withdrawn" not in own, f"a release would overlook what was withdrawn of {pool.name}"
    _check_apart(pools, slots)
    held = {(slot.pool, slot.name): slot.unit for slot in slots if slot.unit}
    wanted = {
        place: unit.id
        for unit in rows
        if _holds(unit)
        for place in ((unit.lease.pool, unit.lease.slot), *unit.lease.also)
    }
    assert held == wanted, "a unit has all that its lease takes, and nobody else has any of it"
    assert all(row.overtaken <= grants.MAX_OVERTAKEN for row in rows if isinstance(row, Claim)), "overtaken too often"


def _check_apart(pools: Iterable[Pool], slots: Sequence[Slot]) -> None:
    """[SEC-2] All who have parts of a host have one owner."""
    for pool in (pool for pool in pools if pool.keeps_apart):
        held = {(slot.thing, slot.owner) for slot in slots if slot.pool == pool.name and slot.unit}
        assert len({host for host, _ in held}) == len(held), f"several owners have parts of one host: {sorted(held)}"


def _holds(row: Row) -> TypeGuard[Unit]:
    return isinstance(row, Unit) and str(row.state) != "gone"


def _held(rows: Mapping[Key, Row], pool: Pool) -> int:
    held = [row for row in rows.values() if isinstance(row, Slot) and row.pool == pool.name and row.unit]
    return sum(slot.count for slot in held)


def _written(changes: Iterable[Change]) -> list[Row]:
    return [change.row for change in changes if isinstance(change, Create | Replace)]
