"""Hosts are switched on when jobs wait for them, and off when nobody does, by a controller of the site. [JOB-2]

Whoever serves a pool that has too little asks for hosts with `switch_on`, and the sweep does so each minute. The
sweep calls `switch_idle_off`. Both only write an order; the factory function carries it out with `step`, because nobody
else may call a controller. The sweep repeats a message that was lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import cast

from penstock.domain import cooldowns as cooling_rules
from penstock.domain.cooldowns import maker_of
from penstock.domain.pools import pools
from penstock.domain.pools.grants import Stock
from penstock.domain.pools.pools import WAITING, Claim, Pool, Slot, SlotState, collection, pool_key, thing_of
from penstock.domain.site.site import Maker, Site, Target
from penstock.domain.units import hosts, power
from penstock.domain.units.hosts import Host, host_key
from penstock.domain.units.power import Power, PowerOrder, power_key
from penstock.domain.units.units import STEP_WITHIN, Unit, UnitKind, UnitState, unit_key
from penstock.kernel.errors import DriverError, RateLimited, Unknown
from penstock.kernel.rows import Change, Create, Key, Replace, Row
from penstock.listings import every_of, rows_at
from penstock.ports import NotYet, Switching
from penstock.system import System, current_site
from penstock.usecases import cooldowns
from penstock.usecases.units import drivers

NOT_COME = "HostNotCome"
"""The code that counts hosts that did not come after they were switched on, among their factory's failures."""


def switch_on(on: System, name: str, stocks: Mapping[str, Stock]) -> None:
    """Have as many of a pool's hosts that are away switched on as its claims want, and have not. [QUEUE-1]

    A claim that lacks something else as well waits for that first. `stocks`: what its claims' pools have. A host that
    is in use stays as it is: its agent alone may be away.
    """
    stock = stocks.get(name)
    if stock is None or not stock.pool.hosts or stock.pool.is_closed:
        return
    site = current_site(on)
    maker, said = _switched(site, _target_of(site, name))
    if said is None:
        return
    found = list(every_of(on, collection(name), f"{SlotState.AWAY}#", Slot))
    names = list(dict.fromkeys(slot.thing for slot in found))
    rows = rows_at(on, [key for host in names for key in (host_key(host), power_key(host))])
    here = {row.name for row in rows.values() if isinstance(row, Host) and hosts.is_available(row, name)}
    orders = {row.host: row for row in rows.values() if isinstance(row, PowerOrder) and row.host not in here}
    in_use = _in_use(on, site, stock, set(names) - here, orders) | {
        row.name for row in rows.values() if isinstance(row, Host) and _is_in_use_elsewhere(on, site, row, name)
    }
    waiting = [claim for claim in stock.claims if _lacks_nothing_else(claim, name, stocks)]
    away = [host for host in names if host not in here and host not in in_use]
    there = [slot.thing for slot in (*stock.free, *(slot for slot in found if slot.thing in here))]
    while unread := _unread(on, rows, chosen := power.chosen(waiting, stock, there, away, orders, on.world.now())):
        away = [host for host in away if host not in unread]
    for host in chosen:
        _order_on(on, site, maker, host, orders.get(host))


def _unread(on: System, rows: Mapping[Key, Row], names: Iterable[str]) -> set[str]:
    """Which of some hosts have a row that is not among these, since it was left out or cannot be read. Such a host may
    be in use. [JOB-2]
    """
    keys = ((host, key) for host in names for key in (host_key(host), power_key(host)))
    return {host for host, key in keys if key not in rows and on.store.count(*key)}


def _in_use(on: System, site: Site, stock: Stock, names: Collection[str], orders: Mapping[str, PowerOrder]) -> set[str]:
    """Which of a pool's hosts that are away are in use: one that jobs share, or shared, has a part that nobody has
    besides. Where they share none any more, only those are looked at that their next order may cost their power.
    [JOB-2]
    """
    asked = {name for name in names if stock.pool.share or (name in orders and orders[name].missed)}
    if not asked:
        return set()
    held = stock.had if stock.had is not None else every_of(on, collection(stock.name), f"{SlotState.HELD}#", Slot)
    return _kept_on(on, site, [slot for slot in held if slot.thing in asked])


def _is_in_use_elsewhere(on: System, site: Site, host: Host, pool: str) -> bool:
    """Whether a host that the site moved to a pool is still in use in the last one. One that is away, and only to be
    cleaned up by its agent, is not: that can't without power, and the host serves nobody until then. [JOB-2] [UNIT-1]
    """
    held = _had(on, host.name, host.pool) if host.pool != pool else []
    return bool(held) and (host.away is None or bool(_kept_on(on, site, held)))


def _had(on: System, host: str, pool: str) -> list[Slot]:
    """The slots of a host that somebody has in a pool, also those that the site took out, and so in another number or
    shape than the site wants now.
    """
    held = every_of(on, collection(pool), f"{SlotState.HELD}#{host}", Slot)
    return [slot for slot in held if slot.thing == host]


def _kept_on(on: System, site: Site, held: Sequence[Slot]) -> set[str]:
    """The hosts of these slots that must not lose their power: a worker may be at work there, an operator, or the
    controller that cleans a whole host. [JOB-2] [UNIT-2]

    A host that did not come may be switched off first. It is away, so no worker begins there meanwhile.
    """
    units = cast("Iterable[Unit]", rows_at(on, [unit_key(str(slot.unit)) for slot in held]).values())
    ended = (unit for unit in units if unit.state is UnitState.DIRTY and not unit.hold)
    idle = {unit.id for unit in ended if not _is_cleaned_outside(site, unit)}
    return {slot.thing for slot in held if slot.unit not in idle}


def _is_cleaned_outside(site: Site, unit: Unit) -> bool:
    """Whether a controller cleans up after a worker, which had a whole host, whatever the power of that. [UNIT-2]"""
    maker = site.factories.get(unit.maker)
    return maker is not None and maker.has_controller and thing_of(unit.lease.slot) == unit.lease.slot


def switch_on_to_clean(on: System, unit: Unit) -> None:
    """Have the host of a worker that is to be cleaned up switched on, if it is away: nobody else cleans it. [UNIT-1]

    Of a host that jobs share, or whose last factory had no controller; else that cleans it, whatever its power.
    """
    if unit.is_a is not UnitKind.WORKER:
        return
    site, host = current_site(on), thing_of(unit.lease.slot)
    target = site.of_host(host)
    maker, said = _switched(site, target)
    if said is None or target is None or _is_cleaned_outside(site, unit):
        return
    row, order = on.store.get(host_key(host), Host), on.store.get(power_key(host), PowerOrder)
    if row is None or row.away is None or any(_is_paused(on, name) for name in {unit.lease.pool, target.pool}):
        return
    if power.may_be_switched_on(order, on.world.now()) and not _kept_on(on, site, _had(on, host, unit.lease.pool)):
        _order_on(on, site, maker, host, order)


def _is_paused(on: System, name: str) -> bool:
    """Whether an operator may work at the hosts of a pool; also if there is none."""
    pool = on.store.get(pool_key(name), Pool)
    return pool is None or pool.is_paused


def _lacks_nothing_else(claim: Claim, own: str, stocks: Mapping[str, Stock]) -> bool:
    """Whether all other pools of a claim have what it wants of them."""
    others = (name for name in claim.pools if name != own)
    wanted = {name: sum(takes.get(name, 0) for takes in claim.takes) for name in others}
    return all(name in stocks and stocks[name].has(count) for name, count in wanted.items())


def _target_of(site: Site, pool: str) -> Target | None:
    """The target that has a pool; None if the site has none any more, or an alias or a family in its place."""
    return next((each for each in site.targets.values() if each.pool == pool and each.has_workers), None)


def _switched(site: Site, target: Target | None) -> tuple[str, Power | None]:
    """The factory of a target, and what it says of power; None if it switches nothing."""
    maker = site.maker(target) if target else Maker("", "")
    return maker.name, power.power_of(maker)


def _order_on(on: System, site: Site, maker: str, host: str, was: PowerOrder | None) -> None:
    order = power.switch_on(was, host, on.world.now(), timedelta(seconds=site.limits.boot))
    if on.store.commit([Replace(was, order) if was else Create(order)]):
        on.queues.power(host, maker=maker)


def switch_idle_off(on: System, pool: Pool) -> None:
    """Have those of a pool's hosts switched off that were idle for long enough, while nobody waits for the pool: those
    that are free, and those that are on and away. Who is away may be about to come, so that is no less than a host may
    take to boot. All hosts of a paused pool stay on: an operator works at them.

    The pool's row is read before its slots: who makes more of them meanwhile writes it. [SLOT-1]
    """
    row = on.store.get(pool.key, Pool) if pool.hosts else None
    if row is None or row.is_paused:
        return
    site = current_site(on)
    maker, said = _switched(site, _target_of(site, pool.name))
    if said is None or said.idle is None or on.store.find(collection(pool.name), WAITING, Claim, limit=1):
        return
    for name, slots in _whole_hosts(on, row, SlotState.FREE).items():
        row = _off_if_idle(on, maker, row, name, slots, said.idle)
    away = rows_at(on, [power_key(name) for name in _whole_hosts(on, row, SlotState.AWAY)])
    idle = max(said.idle, timedelta(seconds=site.limits.boot))
    for order in cast("Iterable[PowerOrder]", away.values()):
        if power.is_left_on(order, None, idle, on.world.now()):
            _off_if_left_on(on, maker, order.host, idle)


def _whole_hosts(on: System, pool: Pool, state: SlotState) -> Mapping[str, list[Slot]]:
    """The slots of each of a pool's hosts of which all slots are in a state."""
    found: dict[str, list[Slot]] = {}
    for slot in every_of(on, collection(pool.name), f"{state}#", Slot):
        found.setdefault(slot.thing, []).append(slot)
    parts = pool.share.parts if pool.share else 1
    return {name: slots for name, slots in found.items() if len(slots) >= parts}


def _off_if_idle(on: System, maker: str, pool: Pool, name: str, slots: Sequence[Slot], idle: timedelta) -> Pool:
    """Note since when a host of which all slots are free is idle, or have it switched off; the pool's row after that.

    One that was divided otherwise may have a job on a slot that it has no more: that is read last. [JOB-2]
    """
    host, order = on.store.get(host_key(name), Host), on.store.get(power_key(name), PowerOrder)
    if not hosts.is_available(host, pool.name):
        return pool
    after = power.rest(order, name, sum(slot.fence for slot in slots), idle, on.world.now())
    if after is None or _had(on, name, pool.name):
        return pool
    written = Replace(order, after) if order else Create(after)
    if after.is_on:
        on.store.commit([written])
        return pool
    left = replace(pool, due=on.world.now() + STEP_WITHIN)
    if not on.store.commit([written, Replace(pool, left), *_leave(on, slots, host)]):
        return pool
    on.queues.power(name, maker=maker)
    on.queues.schedule({"do": "resize", "pool": pool.name})
    return replace(left, version=pool.version + 1)


def _off_if_left_on(on: System, maker: str, name: str, idle: timedelta) -> None:
    """Have a host switched off that is on and away, and of which nobody has a slot. Its agent that comes changes the
    order, so that is read first: then either this comes first, and the agent is not let in, or nothing is written.
    [JOB-2]
    """
    order = on.store.get(power_key(name), PowerOrder)
    host, now = on.store.get(host_key(name), Host), on.world.now()
    is_there = host is not None and host.away is None
    assert order, "its row is never deleted"
    if is_there or not power.is_left_on(order, host.away if host else None, idle, now):
        return
    if host and _had(on, name, host.pool):
        return
    if on.store.commit([Replace(order, power.switch_off(order, now))]):
        on.queues.power(name, maker=maker)


def _leave(on: System, slots: Sequence[Slot], host: Host | None) -> Iterator[Change]:
    """The changes after which nothing is granted on a host any more, in one commit with the order to switch it off:
    before anybody asks that it loses its power. [JOB-2] [SLOT-1]

    The pool's row is written with them, so that a resize that saw the host before frees nothing, and none makes more
    slots meanwhile; and its slots, so that either this or a grant comes first.
    """
    assert host, "it is there"
    yield Replace(host, hosts.disconnect(host, on.world.now()))
    for slot in slots:
        yield from pools.move(slot, replace(slot, state=SlotState.AWAY))


def step(on: System, name: str) -> None:
    """Take the next step of the order for a host's power. Safe to call twice, late, or without need."""
    order, now = on.store.get(power_key(name), PowerOrder), on.world.now()
    if order is None or not power.is_next(order, now):
        return
    site = current_site(on)
    maker, said = _switched(site, site.of_host(name))
    if said is None:
        on.store.commit([Replace(order, power.settle(order))])
    elif _is_there(on, order):
        on.store.commit([Replace(order, power.arrive(order, now))])
    elif power.is_missed(order, now):
        _note_missed(on, maker, order)
    else:
        _ask(on, site, site.factories[maker], order)


def _is_there(on: System, order: PowerOrder) -> bool:
    """Whether a host that is to be switched on is there: it came while the order was written. [JOB-2]"""
    host = on.store.get(host_key(order.host), Host)
    return host is not None and host.away is None and not order.is_shut


def _ask(on: System, site: Site, maker: Maker, order: PowerOrder) -> None:
    """Ask the controller, if it may be asked now. One process at a time does."""
    why = _hold(on, maker, order)
    if why:
        _later(on, maker.name, order, *why)
        return
    begun = power.begin(order, on.world.now())
    if on.store.commit([Replace(order, begun)]):
        _call(on, site, maker.name, replace(begun, version=order.version + 1))


def _note_missed(on: System, maker: str, order: PowerOrder) -> None:
    """A host did not come in time: count that with its factory for operators. Who waits has another switched on."""
    missed = power.miss(order, on.world.now())
    if on.store.commit([Replace(order, missed)]):
        error = Unknown(f"host {order.host}: {missed.why}", NOT_COME)
        cooldowns.count_failure(on, maker_of(UnitKind.WORKER, maker), error)


def _hold(on: System, maker: Maker, order: PowerOrder) -> tuple[str, int] | None:
    """Why the controller may not be asked now, and for how many seconds: it asks to slow down, or the `rate` does."""
    name, now = maker_of(UnitKind.WORKER, maker.name), on.world.now()
    for row in cooldowns.stopping(on, name):
        return cooling_rules.describe(row, now), cooling_rules.wait(row, order.host, now)
    seconds = cooldowns.take_call_for(on, name, maker.rate, order.host)
    why = f"no more calls a second are made to {maker.name} than its `rate` says"
    return None if seconds is None else (why, seconds)


def _later(on: System, maker: str, order: PowerOrder, why: str | None, seconds: int) -> None:
    """Take the step again later: by a message, and by the row's due time if that message is lost."""
    if on.store.commit([Replace(order, power.wait(order, why, seconds, on.world.now()))]):
        on.queues.power(order.host, seconds, maker)


def _call(on: System, site: Site, maker: str, order: PowerOrder) -> None:
    """Ask the controller, and record its answer, unless another order came meanwhile."""
    name = maker_of(UnitKind.WORKER, maker)
    try:
        driver = drivers.driver_named(on, site, UnitKind.WORKER, maker)
        done = drivers.switch(on, name, driver, order.host, Switching(order.is_on, order.serial, order.missed))
    except DriverError as error:
        _failed(on, name, order, error)
        return
    if isinstance(done, NotYet):
        _later(on, maker, order, done.reason, max(1, done.after))
    else:
        boot = timedelta(seconds=site.limits.boot)
        on.store.commit([Replace(order, power.confirm(order, on.world.now(), boot))])


def _failed(on: System, maker: str, order: PowerOrder, error: DriverError) -> None:
    """Count a failure; if the controller wants to be left alone, it is for all of its hosts."""
    cooldowns.count_failure(on, maker, error)
    for what in cooling_rules.obstacles(error, order.host) if isinstance(error, RateLimited) else ():
        cooldowns.start_for(on, maker, what, order.host)
    after = timedelta(seconds=error.seconds) if isinstance(error, RateLimited) else None
    why = f"{type(error).__name__}: {error}"
    on.store.commit([Replace(order, power.fail(order, why, on.world.now(), after))])
