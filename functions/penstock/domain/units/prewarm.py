"""Units that are made ahead of need: when one is, what it takes, and what follows when it comes to nothing.

Such a unit is idle from the start. Its row, and its slot, which stays free and becomes warm, are one commit, before
anything is made; from there on a grant may take the slot, and with it the unit that is on its way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from penstock.domain.pools import pools
from penstock.domain.pools.leases import WORKER
from penstock.domain.pools.pools import Pool, Setback, Slot, Warm
from penstock.domain.units.reuse import renew
from penstock.domain.units.units import STEP_WITHIN, Unit, UnitKind, UnitState, add_entry, is_held
from penstock.kernel.rows import Change, Create, Replace

ORDERS_PER_CHECK = 10
"""How many units one look at a pool has made. The next look, a minute later at most, has more made."""

BACK_OFF = timedelta(minutes=1)


BACK_OFF_MOST = timedelta(hours=1)
"""After a unit that came to nothing none is made for so long, twice as long after the next, up to the most."""

_DOUBLINGS = 10


@dataclass(frozen=True)
class FreeCapacity:
    """What one pool has that nobody waits for: its row, and as many of its free slots without a unit as are wanted."""

    pool: Pool
    free: Sequence[Slot] = ()


def is_short(pool: Pool, warm: int, now: datetime) -> bool:
    """Whether a pool with so many warm units is to have one more, and may try now."""
    is_tried = pool.setback is not None and now < pool.setback.until
    return pool.warm is not None and warm < pool.warm.least and not is_tried


def is_open(pool: Pool) -> bool:
    """Whether anything may be taken from a pool that nobody asked for: not while it is paused, or brought to its size.

    An amount has no slots to be brought to anything.
    """
    is_as_said = pool.is_amount or not (pool.over or pool.due)
    return is_as_said and not pool.paused


def reserve(
    unit: Unit, takes: Mapping[str, int], rooms: Mapping[str, FreeCapacity]
) -> tuple[Unit, list[Change]] | None:
    """A unit with its slot, and all that its type uses; None when not all of it is there. [SLOT-1] [SLOT-2]

    Every pool's row is written, so that of two who look at once, one finds what the other has done.
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
    made = replace(unit, pool=own.pool, slot=own.name, fence=own.fence, also=also)
    return made, [Create(made), *changes]


def new_unit(id: str, is_a: UnitKind, maker: str, type: str, now: datetime) -> Unit:
    """A unit that nobody has asked for yet, to be given its slot by `order`."""
    fresh = Unit(
        id=id,
        is_a=is_a,
        maker=maker,
        type=type,
        state=UnitState.IDLE,
        job="",
        attempt=0,
        order=WORKER if is_a is UnitKind.WORKER else WORKER + 1,
        pool="",
        slot="",
        fence=0,
        since=now,
        born=now,
        due=now + STEP_WITHIN,
        is_kept=True,
        leases=0,
    )
    return add_entry(fresh, now, f"ordered from {maker} ahead of need")


def arrive(unit: Unit, warm: Warm | None, token_hash: str | None, now: datetime, lease: timedelta) -> Unit:
    """A unit that was coming and is there: a resource by its well's word, a worker by its agent's, with its token.

    Nobody has had it, so there is nothing to be clean of. [UNIT-2] One that is held stays due when its hold ends.
    """
    what = "ready" if token_hash is None else "its agent said hello"
    first = add_entry(unit, now, f"{what}; it waits for its first lease")
    until = _until(unit, warm, now)
    come = replace(
        first, made=unit.made or now, past_hash=token_hash, until=until, since=now, reason=None, tries=0, busy=None,
        next_look=None, is_making=False,
    )  # fmt: skip
    return replace(come, due=unit.due) if is_held(unit, now) else renew(come, now, lease)


def extend_idle(unit: Unit, warm: Warm, now: datetime, lease: timedelta) -> Unit | None:
    """A unit that has been idle for long, and is one of those that the pool wants: idle for as long again.

    None when it is too old.
    """
    until = _until(unit, warm, now)
    return renew(replace(unit, until=until), now, lease) if until > now else None


def _until(unit: Unit, warm: Warm | None, now: datetime) -> datetime:
    if warm is None:
        return now
    return min(now + timedelta(seconds=warm.idle), (unit.born or unit.since) + timedelta(seconds=warm.life))


def never_booted(unit: Unit) -> bool:
    """Whether nothing was ever heard of a worker that was made ahead of need, and that nobody asked for."""
    return unit.is_a is UnitKind.WORKER and not unit.leases and unit.until is None


def end_call(unit: Unit) -> Unit:
    """A unit that no call is under way for any more."""
    return replace(unit, busy=None)


def succeeded(pool: Pool) -> Pool:
    """A pool for which a unit that was made ahead of need is there."""
    return replace(pool, setback=None)


def failed(pool: Pool, why: str, now: datetime) -> Pool:
    """A pool for which a unit was to be made ahead of need, and came to nothing."""
    count = pool.setback.count + 1 if pool.setback else 1
    pause = min(BACK_OFF * 2 ** min(count - 1, _DOUBLINGS), BACK_OFF_MOST)
    return replace(pool, setback=Setback(count, now + pause, why))
