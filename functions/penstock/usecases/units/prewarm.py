"""Units that are made ahead of need, where the site sets `min`. Their rows are written before they are made. [UNIT-1]

The scheduler calls `fill` after it has served a pool; `advance` takes the steps of idle units.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from penstock.domain.cooldowns import maker_of
from penstock.domain.pools import pools
from penstock.domain.pools.pools import WAITING, Claim, Pool, Slot, Warm, pool_key
from penstock.domain.site.site import ResourceType, Site, Target
from penstock.domain.units import prewarm, reuse
from penstock.domain.units.prewarm import FreeCapacity
from penstock.domain.units.units import PREFIXES, Unit, UnitKind, UnitState, is_held, unit_key
from penstock.kernel import limits
from penstock.kernel.errors import Unknown
from penstock.kernel.rows import Change, Replace
from penstock.system import System, current_site, transact
from penstock.usecases import cooldowns
from penstock.usecases.jobs.flow import slots_of
from penstock.usecases.units import driver_calls, retire

NO_HELLO_CODE = "NoHello"
"""The code that counts workers made ahead of need that never said hello, among their factory's failures."""

NO_HELLO = "its agent did not say hello in time after it was made"

SILENT = "nothing was heard from its agent while it was idle"

WARM = 1000
"""Among how many idle units of a pool those are looked for that are outdated."""

TOO_OLD = "it was idle for as long as it may be, or is too old"


def fill(on: System, pool_name: str) -> None:
    """Have units made until the pool has as many as it should, as far as nobody waits for the room.

    A claim that comes in between finds the unit in its slot and leases it; or has it destroyed, if it is in the way.
    [QUEUE-1]
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


def replace_outdated(on: System, pool: Pool) -> None:
    """Have some of the idle units destroyed that were made before the settings changed, unless others are coming.

    What a pool makes ahead of need is replaced a part at a time, so that it is never without.
    """
    if not prewarm.may_have_outdated(pool, on.world.now()):
        return
    warm = on.store.find(pools.collection(pool.name), "free#warm#", Slot, limit=WARM)
    for unit in prewarm.outdated(pool, warm):
        retire.retire(on, unit, reuse.OUTDATED)


def _order_one(on: System, name: str) -> tuple[Unit, list[Change]] | None:
    """One more unit for a pool, and the commit that takes its slots; None when none is wanted, or there is no room.

    Each pool's row is read before its slots and claims, and the commit names it. [SLOT-1]
    """
    pool = on.store.get(pool_key(name), Pool)
    if pool is None or pool.warm is None or not pool.warm.least:
        return None
    now = on.world.now()
    warm = _anybodys(on, name, pool.warm)
    site = current_site(on)
    kind = _kind(site, name)
    if kind is None or not prewarm.is_short(pool, warm, now):
        return None
    uses = site.takes(kind.uses)
    found = {name: pool} | {each: on.store.get(pool_key(each), Pool) for each in uses}
    takes = {name: 1, **uses}
    rooms = {each: room for each, count in takes.items() if (room := _room(on, found[each], count))}
    if len(rooms) < len(takes):
        return None
    is_a = UnitKind.WORKER if isinstance(kind, Target) else UnitKind.RESOURCE
    id = f"{PREFIXES[is_a]}{on.world.ulid()}"
    order = prewarm.reserve(prewarm.new_unit(id, is_a, site.maker(kind).name, kind.name, now), takes, rooms)
    if order and len(order[1]) > limits.TRANSACTION_ITEMS:  # no job may have one either
        return None
    return order


def _anybodys(on: System, pool: str, warm: Warm) -> int:
    """How many units a pool keeps that serve anybody's job."""
    found = on.store.find(pools.collection(pool), "free#warm#", Slot, limit=warm.most)
    return sum(not slot.owner for slot in found)


def _kind(site: Site, pool: str) -> Target | ResourceType | None:
    """The target or resource type that a pool has the slots of."""
    real = (target for target in site.targets.values() if target.has_workers)
    kinds: list[Target | ResourceType] = [*real, *site.resources.values()]
    return next((kind for kind in kinds if kind.pool == pool), None)


def _room(on: System, pool: Pool | None, count: int) -> FreeCapacity | None:
    """What a pool has for a unit that nobody asked for; None while anybody waits for it. [QUEUE-2]"""
    if pool is None or not prewarm.is_open(pool):
        return None
    pk = pools.collection(pool.name)
    if on.store.find(pk, WAITING, Claim, limit=1):
        return None
    return FreeCapacity(pool, () if pool.is_amount else on.store.find(pk, "free#cold#", Slot, limit=count))


def resource_ready(on: System, unit: Unit, lease: timedelta) -> None:
    """A resource made ahead of need is ready. If it was leased meanwhile, it is made again with the job's options."""

    def decide() -> tuple[Sequence[Change], None]:
        fresh = on.store.get(unit.key, Unit)
        return (arrival_changes(on, unit, None, lease) if fresh == unit else []), None

    transact(on, decide)


def hello_missed(on: System, unit: Unit, hide: str) -> None:
    """A worker made ahead of need never said hello: destroy it, and count that with its factory for operators.

    There is no job whose log could say why, so what its driver knows goes into its journal and the factory's failures.
    """
    known = driver_calls.evidence(on, unit, hide)
    why = driver_calls.shorten(f"worker {unit.id}: {NO_HELLO}{f': {known}' if known else ''}")
    if retire.retire(on, unit.id, NO_HELLO, is_setback=True, if_coming=True, known=why):
        cooldowns.count_failure(on, maker_of(unit.is_a, unit.maker), Unknown(why, NO_HELLO_CODE))


def idle_ended(on: System, unit: Unit) -> None:
    """An idle unit whose time is over: destroy it, unless the pool would have too few without it."""
    if unit.cleaning.until and unit.cleaning.until > on.world.now():
        retire.retire(on, unit.id, SILENT, is_setback=True)
    elif not transact(on, lambda: _stay_changes(on, unit.id)):
        retire.retire(on, unit.id, TOO_OLD)


def _stay_changes(on: System, unit_id: str) -> tuple[Sequence[Change], bool]:
    """Extend an idle unit's time if the pool needs it, and the site would have it made the same way."""
    unit = on.store.get(unit_key(unit_id), Unit)
    pool = on.store.get(pool_key(unit.lease.pool), Pool) if unit else None
    if unit is None or unit.state is not UnitState.IDLE or pool is None or pool.warm is None:
        return [], False
    site, now = current_site(on), on.world.now()
    if is_held(unit, now):  # [UNIT-3]
        return [], False
    is_anybodys = any(not slot.owner for slot in slots_of(on, unit)[:1])
    is_needed = is_anybodys and _anybodys(on, pool.name, pool.warm) <= pool.warm.least
    kept = prewarm.extend_idle(unit, pool.warm, now, timedelta(seconds=site.limits.lease)) if is_needed else None
    if kept is None or reuse.is_outdated(unit, pool) or not _matches_site(on, site, unit):
        return [], False
    return [Replace(unit, kept)], True


def _matches_site(on: System, site: Site, unit: Unit) -> bool:
    """Whether the site would have the unit made by the same maker, with the same quotas, and from what it still has."""
    kind, slots = _kind(site, unit.lease.pool), slots_of(on, unit)
    if kind is None or site.maker(kind).name != unit.maker or any(slot.withdrawn for slot in slots):
        return False
    return pools.amounts(slots[1:]) == site.takes(kind.uses)


def arrival_changes(on: System, unit: Unit, token_hash: str | None, lease: timedelta) -> list[Change]:
    """The commit that makes a coming unit idle: on its well's answer, or its agent's hello."""
    now = on.world.now()
    pool = on.store.get(pool_key(unit.lease.pool), Pool)
    come = prewarm.arrive(unit, pool.warm if pool else None, token_hash, now, lease)
    changes: list[Change] = [Replace(unit, come)]
    if not is_held(unit, now):
        changes += [Replace(slot, pools.mark_ready(slot, now)) for slot in slots_of(on, unit)]
    if pool and pool.setback:
        changes.append(Replace(pool, prewarm.succeeded(pool)))
    return changes
