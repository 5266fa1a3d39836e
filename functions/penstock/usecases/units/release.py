"""Putting units back once their lease has ended: each is destroyed or, if it cannot be, quarantined. [UNIT-2]

`advance` calls `destroy` for each dirty unit; hosts' agents report their own machines clean with `unit_destroyed`. A
slot is free only after that. Units that stay for the next lease are those of `reuse`.

What follows when something happened to a unit stands at the end: one function per event, one effect per line, in order.
Each event has been committed before its function runs. A crash between two effects loses the rest of them; the sweep
makes up for each. Repeating an event changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from math import ceil

from aws_lambda_powertools import Logger

from penstock.domain import metrics
from penstock.domain.cooldowns import maker_of
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.logs.logs import DETAIL
from penstock.domain.pools import pools
from penstock.domain.pools.pools import WORKER, HoldTimes, Pool, Slot, SlotState, pool_key
from penstock.domain.site.site import Site
from penstock.domain.units import hosts, quarantine, retries, units, visibility
from penstock.domain.units.hosts import Host, host_key
from penstock.domain.units.units import CleanProof, Unit, UnitKind, UnitState, unit_key
from penstock.domain.users.users import User
from penstock.kernel.errors import DriverError, RateLimited
from penstock.kernel.rows import Change, Check, Create, Delete, Replace
from penstock.ports import NotYet
from penstock.system import System, current_site, measure, transact
from penstock.usecases import cooldowns
from penstock.usecases.jobs import flow
from penstock.usecases.jobs.flow import slots_of
from penstock.usecases.logs import logs
from penstock.usecases.pools import scheduler
from penstock.usecases.units import broken, driver_calls, drivers
from penstock.usecases.workers import presence

WORTH_TELLING = timedelta(minutes=1)
"""How long cleaning takes that a job's log tells of. A line is a write, and the unit's journal says it in any case."""

SAMPLED = 8
"""Of one in so many holders that give back it is recorded how long they kept what they had."""

log = Logger(child=True)


def destroy(on: System, unit: Unit) -> bool:
    """Destroy a unit when it is its turn among the attempt's releases; then free its slots. [UNIT-2]

    Whether its driver was asked, and is not done.
    """
    pause = flow.turn_pause(on, unit)
    if pause:  # whoever is released before it wakes it; the sweep makes up for a lost message
        on.store.commit([Replace(unit, retries.retry_later(unit, unit.step.reason, on.world.now(), pause))])
        return False
    if unit.health.broken and drivers.quarantines(on, current_site(on), unit):
        enter_quarantine(on, unit, f"it is broken: {unit.health.broken}")
        return False
    site = _site(on)
    begun = _begin(on, site, unit)
    if not begun:
        return False
    is_under_way = _call_destroy(on, begun, site)
    drivers.unlock(on, begun)
    return is_under_way


def _begin(on: System, site: Site | None, unit: Unit) -> Unit | None:
    """A unit that only the caller may have destroyed, if that matters. What is only a slot is freed by one write."""
    if units.is_late(unit, on.world.now()) or _is_named_outside(on, site, unit):
        return driver_calls.lock(on, unit, is_to_clean=True)
    return unit if drivers.makes_nothing(on, site, unit) else _record_destroy(on, unit)


def _call_destroy(on: System, unit: Unit, site: Site | None) -> bool:
    """Ask the driver, if its maker may be called, and record its answer. Whether that is that it is not done."""
    try:
        site = site or current_site(on)
        wait = cooldowns.take_call(on, site, unit)
        if wait is not None:
            driver_calls.retry_later(
                on, unit, f"no more calls a second are made to {unit.maker} than its `rate` says", wait
            )
            return False
        driver = drivers.driver_of(on, site, unit)
        proof = drivers.destroy(on, maker_of(unit.is_a, unit.maker), driver, unit.id)
    except DriverError as error:
        cooldowns.destroy_failed(on, unit, error)
        _destroy_failed(on, unit, error)
        return False
    if isinstance(proof, NotYet):
        _not_yet(on, unit, proof, timedelta(seconds=site.limits.lease))
        return True
    wait = visibility.wait_for_absence(unit, proof) if proof.lag else 0
    if wait:
        driver_calls.retry_later(on, unit, visibility.NOT_LISTED_YET, wait)
    else:
        if unit.is_a is UnitKind.WORKER and site.of_host(unit.lease.slot):
            presence.mark_cleaned(on, unit.lease.slot)
        unit_destroyed(on, unit, proof, site)
    return False


def _site(on: System) -> Site | None:
    """The site; None if it no longer parses, which is reported where the driver would be called."""
    try:
        return current_site(on)
    except DriverError:
        return None


def _is_named_outside(on: System, site: Site | None, unit: Unit) -> bool:
    """Whether a well's things have names that outlive the unit: a late call would reach the next lease's."""
    return site is not None and unit.is_a is UnitKind.RESOURCE and drivers.quarantines(on, site, unit)


def _record_destroy(on: System, unit: Unit) -> Unit | None:
    """Record that the driver is about to destroy the unit: from now on it is too late to hold it. [UNIT-3]

    None if another process changed the unit. A worker's row says so since its lease ended, so only resources, and units
    that were held, cost a write here.
    """
    if unit.cleaning.begun:
        return unit
    begun = units.begin_end(unit, on.world.now())
    if on.store.commit([Replace(unit, begun)]):
        return replace(begun, version=unit.version + 1)
    on.queues.advance(
        unit.id, unit.is_a is UnitKind.WORKER, 1
    )  # a lost race: read the unit again now, not only when it is due
    return None


def _destroy_failed(on: System, unit: Unit, error: DriverError) -> None:
    """The driver could not destroy a unit: retry later, or quarantine it when that no longer helps. [UNIT-1]"""
    unit = units.with_notes(unit, error.notes)
    counted = quarantine.count_failure(unit, error)
    if quarantine.is_stuck(counted, error):
        why = f"tried {counted.health.stuck} times to destroy it: {type(error).__name__}: {error}"
        enter_quarantine(on, unit, why)
        return
    after = error.seconds if isinstance(error, RateLimited) else None
    driver_calls.retry_later(on, counted, f"cleaning failed: {type(error).__name__}: {error}", after)


def _not_yet(on: System, unit: Unit, answer: NotYet, lease: timedelta) -> None:
    """Retry later. If the job stops itself, its lease may end before the machine is clean. [JOB-2]"""
    left = ceil((unit.since + lease - on.world.now()).total_seconds())
    if answer.stops_itself and left > 0:
        driver_calls.retry_later(on, unit, unit.step.reason, min(answer.after, left))
        return
    if answer.stops_itself:
        unit = _end_lease_early(on, unit)
    driver_calls.retry_later(on, units.with_notes(unit, answer.notes), answer.reason, answer.after)


def _end_lease_early(on: System, unit: Unit) -> Unit:
    """End the lease of a worker whose job certainly runs no more. Its slot stays taken until it is clean. [JOB-2]
    [UNIT-2]

    Its agent could not renew the lease after the worker was given up, and stopped the job by itself before the lease
    ran out. So neither the next attempt nor this one's resources wait until somebody repairs a machine.
    """
    ended = units.release_lease(unit)
    if not units.ends_lease(unit) or not on.store.commit([Replace(unit, ended)]):
        return unit
    lease_ended_early(on, unit)
    return replace(ended, version=unit.version + 1)


def unit_destroyed(on: System, unit: Unit, proof: CleanProof, site: Site | None = None) -> None:
    """Commit that a unit is gone and its slots are free, then do what follows from it. Called by hosts' agents too."""
    released = transact(on, lambda: _gone_changes(on, unit.id, proof))
    unit_gone(on, unit, proof, released, site)


def _gone_changes(on: System, unit_id: str, proof: CleanProof) -> tuple[Sequence[Change], bool | None]:
    """The one write that frees a slot: with the proof, and only for the holder with this fence. [SLOT-3] [UNIT-2]"""
    unit = on.store.get(unit_key(unit_id), Unit)
    if unit is None or unit.state is not UnitState.DIRTY or units.is_held(unit, on.world.now()):  # [UNIT-3]
        return [], None
    return free_slots(on, unit, units.mark_gone(unit, proof, proof.time))


def free_slots(on: System, unit: Unit, gone: Unit) -> tuple[list[Change], bool]:
    """The changes by which a unit is gone, with the proof, and its slots are free; and whether they end its lease.
    [UNIT-2]
    """
    if gone.cleaning.proof is None:
        raise ValueError(f"unit {unit.id} has no proof")
    return [Replace(unit, gone), *_give_back(on, unit)], units.ends_lease(unit)


def _give_back(on: System, unit: Unit) -> list[Change]:
    """Give everything that the unit held back to its pools, except what another unit has by now. [SLOT-3]"""
    held: dict[str, list[Slot]] = {}
    for slot in slots_of(on, unit):
        held.setdefault(slot.pool, []).append(slot)
    return [change for pool, slots in held.items() for change in _to_pool(on, unit, pool, slots)]


def _to_pool(on: System, unit: Unit, name: str, slots: list[Slot]) -> list[Change]:
    """Give slots back. A limit that was lowered meanwhile is kept by whoever grants them. [SLOT-1]"""
    pool = on.store.get(pool_key(name), Pool)
    back = _free(on, pool, slots)
    if pool is None:
        return back
    learned = _count_broken(pool, unit, slots)
    is_awaited = any(pool.is_of_last_division(slot) for slot in slots)
    if pool.is_above_limit or is_awaited:  # a resize sees whether it still is
        learned = replace(learned, due=on.world.now())
    if pool.is_amount:
        left = replace(learned, used=pool.used - sum(slot.count for slot in slots))
        return [Replace(pool, left), *map(Delete, slots)]
    return [Replace(pool, learned), *back] if learned != pool else back


def _free(on: System, pool: Pool | None, slots: Sequence[Slot]) -> list[Change]:
    """Give slots back: as away, if they are of a host that is away, until its agent connects. [SLOT-1]"""
    names = dict.fromkeys(slot.thing for slot in slots) if pool and pool.hosts else ()
    found = {host.name: host for name in names if (host := on.store.get(host_key(name), Host))}
    back = [change for slot in slots for change in pools.move(slot, pools.give_back(slot, _rest(found, slot)))]
    return [*back, *map(Check, found.values())]


def _rest(known: Mapping[str, Host], slot: Slot) -> SlotState:
    """The state of a slot that nobody has: away, if its host is."""
    host = known.get(slot.thing)
    return SlotState.FREE if host is None or hosts.is_available(host, slot.pool) else SlotState.AWAY


def _count_broken(pool: Pool, unit: Unit, slots: Sequence[Slot]) -> Pool:
    """A lease that ends says whether its worker was broken; a unit that nobody leased says nothing."""
    return pools.count_broken(pool, unit) if any(slot.job for slot in slots) else pool


def enter_quarantine(on: System, unit: Unit, reason: str) -> None:
    """Put a unit that cannot be put back into quarantine, with all its slots. Does nothing if the unit has changed."""
    if not on.store.commit(_quarantine_changes(on, unit, reason)):
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER, 1)
        return
    unit_quarantined(on, unit, reason)


def _quarantine_changes(on: System, unit: Unit, reason: str) -> list[Change]:
    """No job holds its slots any more: it counts towards nobody's usage, and is not evicted. [UNIT-1]"""
    now = on.world.now()
    slots = slots_of(on, unit)
    changes: list[Change] = [Replace(unit, quarantine.enter(unit, reason, now))]
    changes += [change for slot in slots for change in pools.move(slot, pools.set_aside(slot, now))]
    return [*changes, *(_broken_changes(on, unit) if any(slot.job for slot in slots) else ())]


def _broken_changes(on: System, unit: Unit) -> list[Change]:
    """A broken worker is counted when its lease ends, which is now."""
    pool = on.store.get(pool_key(unit.lease.pool), Pool)
    if pool is None:
        return []
    counted = pools.count_broken(pool, unit)
    return [Replace(pool, counted)] if counted != pool else []


def unit_gone(on: System, unit: Unit, proof: CleanProof, released: bool | None, site: Site | None) -> None:
    """A unit's driver proved that it is gone. `released` is None if another process committed that before."""
    measure(on, metrics.unit_gone(unit, proof, released))
    if released:
        _record_hold(on, unit, _pools_of(unit))
    cooldowns.unit_destroyed(on, unit, site)
    if unit.is_broken:
        broken.check_broken_in_a_row(on, unit)
    slot_freed(on, unit)
    if released:
        _log_clean(on, unit, proof, "given back")


def _record_hold(on: System, unit: Unit, names: Iterable[str]) -> None:
    """Record now and then how long a unit was leased and waited for, for some of its pools, after its lease ended.

    A lost race loses one time of many, so it is not tried again.
    """
    lease = None
    if not on.world.draw(SAMPLED):
        lease = flow.lease_of_unit(on, unit)
    if lease is None or lease.granted is None:
        return
    kept, waited = on.world.now() - lease.granted, units.waited(unit, lease.granted)
    for name in names:
        fresh = HoldTimes(pool=name)
        was = on.store.get(fresh.key, HoldTimes)
        now = pools.record_hold(was or fresh, kept, waited)
        now = pools.record_boot(now, waited) if waited and units.is_made_for(unit, lease.granted) else now
        on.store.commit([Replace(was, now) if was else Create(now)])


def _log_clean(on: System, unit: Unit, proof: CleanProof, then: str) -> None:
    """Tell the job that had a unit how long it took to clean, if that was long."""
    took = proof.time - unit.since
    if took >= WORTH_TELLING:
        what = f"{unit.lease.pool}: slot {unit.lease.slot} (unit {unit.id})"
        text = f"{what} is clean after {took.total_seconds():.0f} s and {then}"
        logs.append(on, unit.lease.job, unit.lease.attempt, text, DETAIL)


def unit_removed(on: System, unit: Unit, user: User, checked: str, site: Site) -> None:
    """An operator confirmed that they removed a quarantined unit by hand."""
    logs.append(on, unit.lease.job, unit.lease.attempt, f"{unit.is_a} {unit.id} was removed by {user.name}: {checked}")
    cooldowns.unit_destroyed(on, unit, site)
    slot_freed(on, unit)


def unit_cleaned(on: System, unit: Unit, proof: CleanProof) -> None:
    """A unit was cleaned and stays in its slot, idle, for the next lease. What it uses besides, it keeps."""
    _record_hold(on, unit, [unit.lease.pool])
    slot_freed(on, unit)
    _log_clean(on, unit, proof, "kept warm")


def unit_quarantined(on: System, unit: Unit, reason: str) -> None:
    """A unit was put into quarantine with all its slots."""
    _report_quarantine(on, unit, reason)
    if unit.is_broken:
        broken.check_broken_in_a_row(on, unit)
    slot_freed(on, unit)


def _report_quarantine(on: System, unit: Unit, reason: str) -> None:
    """Write a warning for operators and a line into the job's log."""
    text = f"{unit.is_a} {unit.id} is quarantined, until an operator has seen to it: {reason}"
    log.warning(text, extra={"unit": unit.id, "maker": unit.maker, "pool": unit.lease.pool, "slot": unit.lease.slot})
    logs.append(on, unit.lease.job, unit.lease.attempt, text, "worker")


def lease_ended_early(on: System, unit: Unit) -> None:
    """A worker's lease ended before its slot is clean, because its job certainly runs no more."""
    text = f"nothing runs on {unit.lease.slot} any more, which is still to be cleaned"
    logs.append(on, unit.lease.job, unit.lease.attempt, text, DETAIL)
    slot_freed(on, unit)


def slot_freed(on: System, unit: Unit) -> None:
    """A unit gave up its slots, or its lease on them. [QUEUE-1]"""
    _serve_pools(on, unit)
    _release_next_lease(on, unit)
    _start_next_attempt(on, unit)


def _serve_pools(on: System, unit: Unit) -> None:
    """Grant the slots that the unit gave up, in its own pool and in those of everything else that it took; and have
    those made that a host has in their place, if jobs share it from now on, or no longer.
    """
    for pool in scheduler.freed(on, _pools_of(unit)):
        if pool.hosts and pool.due:
            on.queues.schedule({"do": "resize", "pool": pool.name})


def _pools_of(unit: Unit) -> list[str]:
    return list(dict.fromkeys((unit.lease.pool, *(pool for pool, _ in unit.lease.also))))


def _release_next_lease(on: System, unit: Unit) -> None:
    """Wake the unit of the attempt's next lease: leases of one attempt are released one after the other."""
    left = flow.release_after(on, unit)
    if left and left.unit:
        on.queues.advance(left.unit, is_worker=False)


def _start_next_attempt(on: System, unit: Unit) -> None:
    """Let the job's next attempt start, if there is one: it waits until this worker is released."""
    job = on.store.get(job_key(unit.lease.job), Job) if unit.lease.order == WORKER and unit.lease.job else None
    if job and not job.is_settled:
        on.queues.schedule({"do": "start", "job": job.id})
