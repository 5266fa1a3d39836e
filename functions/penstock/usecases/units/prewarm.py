"""Units that are made ahead of need where the site says `min`. What one takes is written before it is made. [UNIT-1]"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from penstock import transaction
from penstock.domain.cooldowns import maker_of
from penstock.domain.pools import pools
from penstock.domain.pools.pools import Claim, Pool, Slot, pool_key
from penstock.domain.site.site import ResourceType, Site, Target
from penstock.domain.units import prewarm
from penstock.domain.units.prewarm import FreeCapacity
from penstock.domain.units.units import Unit, UnitKind, UnitState, is_held, unit_key
from penstock.kernel.errors import Unknown
from penstock.kernel.rows import Change, Replace
from penstock.system import System
from penstock.usecases import cooldowns
from penstock.usecases.site import configuration
from penstock.usecases.units import driver_calls, retire

NO_HELLO_CODE = "NoHello"
"""The code under which workers that were made ahead of need and never heard of are counted with their factory."""

NO_HELLO = "its agent did not say hello in time after it was made"


SILENT = "nothing was heard from its agent while it was idle"


TOO_OLD = "it was idle for as long as it may be, or is too old"


def fill(on: System, pool_name: str) -> None:
    """Have as many units made as a pool is to have ahead of need, and has room for that nobody waits for.

    Called whenever a pool was served and nobody waits for it, and by the sweep. A claim that comes in between finds the
    unit on its slot, and is handed it; or finds it in its way, and has it destroyed. [QUEUE-1]
    """
    for tries in range(prewarm.ORDERS_PER_CHECK):
        found = _order_one(on, pool_name)
        if found is None:
            return
        unit, changes = found
        if on.store.commit(changes):
            on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER)
        else:
            on.world.pause(min(tries, 4))


def _order_one(on: System, name: str) -> tuple[Unit, list[Change]] | None:
    """One more unit for a pool, and the commit that gives it its slots; None when none is wanted, or has room.

    Each pool's row is read before everything else of it, and is the one that the commit names. [SLOT-1]
    """
    pool = on.store.get(pool_key(name), Pool)
    if pool is None or pool.warm is None or not pool.warm.least:
        return None
    now = on.world.now()
    warm = on.store.find(pools.collection(name), "free#warm#", Slot, limit=pool.warm.least)
    site = configuration.current(on)
    kind = _kind(site, name)
    if kind is None or not prewarm.is_short(pool, len(warm), now):
        return None
    uses = site.takes(kind.uses)
    found = {name: pool} | {each: on.store.get(pool_key(each), Pool) for each in uses}
    takes = {name: 1, **uses}
    rooms = {each: room for each, count in takes.items() if (room := _room(on, found[each], count))}
    if len(rooms) < len(takes):
        return None
    is_a = UnitKind.WORKER if isinstance(kind, Target) else UnitKind.RESOURCE
    id = f"{'w' if is_a is UnitKind.WORKER else 'r'}-{on.world.ulid()}"
    return prewarm.reserve(prewarm.new_unit(id, is_a, site.maker(kind).name, kind.name, now), takes, rooms)


def _kind(site: Site, pool: str) -> Target | ResourceType | None:
    """The target or resource type that a pool has the slots of."""
    real = (target for target in site.targets.values() if target.redirect is None)
    kinds: list[Target | ResourceType] = [*real, *site.resources.values()]
    return next((kind for kind in kinds if kind.pool == pool), None)


def _room(on: System, pool: Pool | None, count: int) -> FreeCapacity | None:
    """What a pool has for a unit that nobody asked for; None while anybody waits for it. [QUEUE-2]"""
    if pool is None or not prewarm.is_open(pool):
        return None
    pk = pools.collection(pool.name)
    if on.store.find(pk, "wait#", Claim, limit=1):
        return None
    return FreeCapacity(pool, () if pool.is_amount else on.store.find(pk, "free#cold#", Slot, limit=count))


def arrival_changes(on: System, unit: Unit, token_hash: str | None, lease: timedelta) -> list[Change]:
    """The commit by which a unit that was coming is there: by its well's word, or by its agent's first."""
    now = on.world.now()
    pool = on.store.get(pool_key(unit.pool), Pool)
    come = prewarm.arrive(unit, pool.warm if pool else None, token_hash, now, lease)
    changes: list[Change] = [Replace(unit, come)]
    if not is_held(unit, now):
        changes += [Replace(slot, pools.mark_ready(slot, now)) for slot in retire.slots_of(on, unit)]
    if pool and pool.setback:
        changes.append(Replace(pool, prewarm.succeeded(pool)))
    return changes


def resource_ready(on: System, unit: Unit, lease: timedelta) -> None:
    """A resource that nobody has asked for yet is there. Who was granted it meanwhile has it made with its options."""

    def decide() -> tuple[Sequence[Change], None]:
        fresh = on.store.get(unit.key, Unit)
        return (arrival_changes(on, unit, None, lease) if fresh == unit else []), None

    transaction.run(on, decide)


def unlock(on: System, begun: Unit) -> None:
    """A well's call that its unit was granted, or held, under is over: the next may be made at once, and is asked for.

    Until then nobody makes another, for this one could come late, and undo what that was asked for.
    """

    def decide() -> tuple[Sequence[Change], Unit | None]:
        fresh = on.store.get(begun.key, Unit)
        if fresh is None or fresh.busy is None or fresh.busy != begun.busy:
            return [], None
        return [Replace(fresh, prewarm.end_call(fresh))], fresh

    unit = transaction.run(on, decide)
    if unit:
        on.queues.advance(unit.id, is_worker=False)


def hello_missed(on: System, unit: Unit, hide: str) -> None:
    """A worker that was made ahead of need was never heard of. No job's log can say why, so an operator is told.

    What its driver knows is asked before it is destroyed, and is in its own journal and with its factory's failures.
    """
    said = driver_calls.evidence(on, unit, hide)
    why = driver_calls.shorten(f"worker {unit.id}: {NO_HELLO}{f': {said}' if said else ''}")
    if retire.retire(on, unit.id, NO_HELLO, is_setback=True, if_coming=True, known=why):
        cooldowns.count_failure(on, maker_of(unit.is_a, unit.maker), Unknown(why, NO_HELLO_CODE))


def idle_ended(on: System, unit: Unit) -> None:
    """What becomes of an idle unit whose time is over: it is destroyed, unless it is one of those the pool wants."""
    if unit.until and unit.until > on.world.now():
        retire.retire(on, unit.id, SILENT, is_setback=True)
    elif not transaction.run(on, lambda: _stay_changes(on, unit.id)):
        retire.retire(on, unit.id, TOO_OLD)


def _stay_changes(on: System, unit_id: str) -> tuple[Sequence[Change], bool]:
    """Keep an idle unit for longer if the pool would have too few without it, and the site would have it made so."""
    unit = on.store.get(unit_key(unit_id), Unit)
    pool = on.store.get(pool_key(unit.pool), Pool) if unit else None
    if unit is None or unit.state is not UnitState.IDLE or pool is None or pool.warm is None:
        return [], False
    site, now = configuration.current(on), on.world.now()
    if is_held(unit, now):  # [UNIT-3]
        return [], False
    warm = on.store.find(pools.collection(pool.name), "free#warm#", Slot, limit=pool.warm.least + 1)
    kept = prewarm.extend_idle(unit, pool.warm, now, timedelta(seconds=site.limits.lease))
    if kept is None or len(warm) > pool.warm.least or not _matches_site(on, site, unit):
        return [], False
    return [Replace(unit, kept)], True


def _matches_site(on: System, site: Site, unit: Unit) -> bool:
    """Whether the site would have a unit made by the same maker, and take the same besides."""
    kind = _kind(site, unit.pool)
    if kind is None or site.maker(kind).name != unit.maker:
        return False
    return pools.amounts(retire.slots_of(on, unit)[1:]) == site.takes(kind.uses)
