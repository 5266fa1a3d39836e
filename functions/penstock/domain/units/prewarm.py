"""Prewarming: when to make a unit ahead of need, what it takes, and what follows when that fails.

A prewarmed unit is idle from the start. One commit writes its row and its slot, which stays free and becomes warm,
before anything is made. From then on a grant may take the slot, and with it the unit that is still being made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from penstock.domain.pools import pools
from penstock.domain.pools.pools import WORKER, Pool, Setback, Slot, Warm
from penstock.domain.units.reuse import renew
from penstock.domain.units.units import (
    STEP_WITHIN,
    Cleaning,
    Creation,
    Unit,
    UnitKind,
    UnitLease,
    UnitState,
    add_entry,
    is_held,
)
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Create, Replace

ORDERS_PER_CHECK = 10
"""How many units one check of a pool orders. The next check, at most a minute later, orders more."""

BACK_OFF = timedelta(minutes=1)


BACK_OFF_MOST = timedelta(hours=1)
"""After a failure none is ordered for this long; twice as long after the next, up to the maximum."""

_DOUBLINGS = 10


@dataclass(frozen=True)
class FreeCapacity:
    """What one pool has that nobody waits for: its row, and up to the wanted number of free slots without a unit."""

    pool: Pool
    free: Sequence[Slot] = ()


def is_short(pool: Pool, warm: int, now: datetime) -> bool:
    """Whether a pool with this many warm units should get one more, and may try now."""
    is_tried = pool.setback is not None and now < pool.setback.until
    return warm < pool.min_warm and not is_tried


PART = 4
"""What part of the units that a pool makes ahead of need is replaced at a time."""


def may_have_outdated(pool: Pool, now: datetime) -> bool:
    """Whether a unit may still be kept that was made before the settings changed: none outlives its pool's `life`."""
    if pool.renewed is None or pool.warm is None:
        return False
    return now - pool.renewed < timedelta(seconds=pool.warm.life)


def outdated(pool: Pool, warm: Sequence[Slot]) -> list[str]:
    """Which units of these warm slots are to be replaced now, since they are idle since before the settings changed.

    Of a pool that makes units ahead of need a part, and none while others are being made. Of any other all: nothing
    would be made in their place.
    """
    if pool.renewed is None:
        return []
    old = [slot.unit for slot in warm if slot.unit and slot.since is not None and slot.since <= pool.renewed]
    if not pool.min_warm:
        return old
    is_coming = any(slot.since is None for slot in warm) or len(warm) < pool.min_warm
    return [] if is_coming else old[: -(-len(warm) // PART)]


def is_open(pool: Pool) -> bool:
    """Whether a prewarmed unit may take from a pool: not while it is paused or being resized.

    An amount has no slots that could be resized.
    """
    is_as_said = pool.is_amount or not (pool.is_above_limit or pool.due)
    return is_as_said and not pool.is_paused


def reserve(
    unit: Unit, takes: Mapping[str, int], rooms: Mapping[str, FreeCapacity]
) -> tuple[Unit, list[Change]] | None:
    """Give a new unit its slot and all that its type uses; None if not all of it is free. [SLOT-1] [SLOT-2]

    Every pool's row is written, so that of two concurrent checks the second sees what the first did.
    """
    changes: list[Change] = []
    slots: list[Slot] = []
    for name, count in takes.items():
        pool = rooms[name].pool
        if pool.is_amount:
            if pool.used + count > pool.limit:
                return None
            used, idle = pools.reserve_amount(pool, count, unit.id)
            changes += [Replace(pool, used), Create(idle)]
            slots.append(idle)
            continue
        free = rooms[name].free[:count]
        if len(free) < count:
            return None
        changes.append(Replace(pool, pool))
        for slot in free:
            slots.append(pools.reserve(slot, unit.id, is_own=not slots))
            changes += pools.move(slot, slots[-1])
    own, *others = slots
    also = tuple((other.pool, other.name) for other in others)
    made = replace(unit, lease=replace(unit.lease, pool=own.pool, slot=own.name, fence=own.fence, also=also))
    return made, [Create(made), *changes]


def new_unit(id: str, is_a: UnitKind, maker: str, type: str, now: datetime) -> Unit:
    """A new prewarmed unit; `reserve` gives it its slot."""
    fresh = Unit(
        id=id,
        is_a=is_a,
        maker=maker,
        type=type,
        state=UnitState.IDLE,
        lease=UnitLease(
            job="",
            attempt=0,
            order=WORKER if is_a is UnitKind.WORKER else WORKER + 1,
            pool="",
            slot="",
            fence=0,
            leases=0,
        ),
        since=now,
        creation=Creation(born=now),
        due=now + STEP_WITHIN,
        cleaning=Cleaning(is_kept=True),
    )
    return add_entry(fresh, now, f"ordered from {maker} ahead of need")


def arrive(unit: Unit, warm: Warm | None, token_hash: str | None, now: datetime, lease: timedelta) -> Unit:
    """A prewarmed unit that has arrived: a resource when its well says so, a worker when its agent does, with its
    token.

    Nobody has used it, so it needs no cleaning. [UNIT-2] A held unit stays due when its hold ends.
    """
    what = "ready" if token_hash is None else "its agent said hello"
    first = add_entry(unit, now, f"{what}; it waits for its first lease")
    until = _until(unit, warm, now)
    come = replace(
        first,
        creation=replace(first.creation, made=unit.creation.made or now, is_making=False),
        session=replace(first.session, past_hash=token_hash),
        cleaning=replace(first.cleaning, until=until),
        since=now,
        step=replace(first.step, reason=None, tries=0, busy=None, next_look=None),
    )
    return come if is_held(unit, now) else renew(come, now, lease)


def extend_idle(unit: Unit, warm: Warm, now: datetime, lease: timedelta) -> Unit | None:
    """A unit that was idle for its time and that the pool still wants: idle for that long again. None if it is too
    old.
    """
    until = _until(unit, warm, now)
    return renew(replace(unit, cleaning=replace(unit.cleaning, until=until)), now, lease) if until > now else None


def _until(unit: Unit, warm: Warm | None, now: datetime) -> datetime:
    if warm is None:
        return now
    return min(now + timedelta(seconds=warm.idle), (unit.creation.born or unit.since) + timedelta(seconds=warm.life))


def never_booted(unit: Unit) -> bool:
    """Whether a prewarmed worker that no job was granted never said hello."""
    return unit.is_a is UnitKind.WORKER and not unit.lease.leases and unit.cleaning.until is None


def end_call(unit: Unit) -> Unit:
    """A unit whose driver call has ended."""
    return replace(unit, step=replace(unit.step, busy=None))


def succeeded(pool: Pool) -> Pool:
    """A pool after a prewarmed unit arrived."""
    return replace(pool, setback=None)


def failed(pool: Pool, why: str, now: datetime) -> Pool:
    """A pool after prewarming a unit failed."""
    count = pool.setback.count + 1 if pool.setback else 1
    pause = min(BACK_OFF * 2 ** min(count - 1, _DOUBLINGS), BACK_OFF_MOST)
    return replace(pool, setback=Setback(count, now + pause, why))
