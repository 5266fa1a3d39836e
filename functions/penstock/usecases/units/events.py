"""What follows when something happens to a unit: one function per event, one effect per line, in order.

Each event has been committed before its function runs. A crash between two effects loses the rest of them; the sweep
makes up for each. Repeating an event changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from aws_lambda_powertools import Logger

from penstock.domain.logs.logs import DETAIL
from penstock.domain.pools import pools
from penstock.domain.pools.pools import WORKER, HoldTimes
from penstock.domain.site.site import Site
from penstock.domain.units.units import CleanProof, Unit
from penstock.domain.users.users import User
from penstock.kernel.rows import Create, Replace
from penstock.system import System
from penstock.usecases import cooldowns
from penstock.usecases.jobs import flow
from penstock.usecases.logs import logs
from penstock.usecases.pools import scheduler
from penstock.usecases.telemetry import counters
from penstock.usecases.units import broken

SAMPLED = 8
"""Of one in so many holders that give back it is recorded how long they kept what they had."""

log = Logger(child=True)


def unit_gone(on: System, unit: Unit, proof: CleanProof, released: bool | None, site: Site | None) -> None:
    """A unit's driver proved that it is gone. `released` is None if another process committed that before."""
    counters.unit_gone(on, unit, proof, released)
    if released:
        _record_hold(on, unit, _pools_of(unit))
        _log_gone(on, unit, proof)
    cooldowns.unit_destroyed(on, unit, site)
    if unit.is_broken:
        broken.check_broken_in_a_row(on, unit)
    slot_freed(on, unit)


def _record_hold(on: System, unit: Unit, names: Iterable[str]) -> None:
    """Record now and then how long a unit was leased, for some of its pools, after its lease ended.

    A lost race loses one time of many, so it is not tried again.
    """
    lease = None
    if not on.world.draw(SAMPLED):
        lease = flow.lease_of_unit(on, unit)
    if lease is None or lease.granted is None:
        return
    kept = on.world.now() - lease.granted
    for name in names:
        fresh = HoldTimes(pool=name)
        was = on.store.get(fresh.key, HoldTimes)
        now = pools.record_hold(was or fresh, kept)
        on.store.commit([Replace(was, now) if was else Create(now)])


def _log_gone(on: System, unit: Unit, proof: CleanProof) -> None:
    took = int((proof.time - unit.since).total_seconds())
    text = f"{unit.lease.pool}: slot {unit.lease.slot} (unit {unit.id}) is clean after {took} s and given back"
    logs.append(on, unit.lease.job, unit.lease.attempt, text, DETAIL)


def unit_removed(on: System, unit: Unit, user: User, checked: str, site: Site) -> None:
    """An operator confirmed that they removed a quarantined unit by hand."""
    logs.append(on, unit.lease.job, unit.lease.attempt, f"{unit.is_a} {unit.id} was removed by {user.name}: {checked}")
    cooldowns.unit_destroyed(on, unit, site)
    slot_freed(on, unit)


def unit_cleaned(on: System, unit: Unit, proof: CleanProof) -> None:
    """A unit was cleaned and stays in its slot, idle, for the next lease. What it uses besides, it keeps."""
    _record_hold(on, unit, [unit.lease.pool])
    _log_kept(on, unit, proof)
    slot_freed(on, unit)


def _log_kept(on: System, unit: Unit, proof: CleanProof) -> None:
    took = int((proof.time - unit.since).total_seconds())
    text = f"{unit.lease.pool}: slot {unit.lease.slot} (unit {unit.id}) is clean after {took} s and kept warm"
    logs.append(on, unit.lease.job, unit.lease.attempt, text, DETAIL)


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
    """Grant the slots that the unit gave up, in its own pool and in those of everything else that it took."""
    scheduler.freed(on, _pools_of(unit))


def _pools_of(unit: Unit) -> list[str]:
    return list(dict.fromkeys((unit.lease.pool, *(pool for pool, _ in unit.lease.also))))


def _release_next_lease(on: System, unit: Unit) -> None:
    """Wake the unit of the attempt's next lease: leases of one attempt are released one after the other."""
    left = flow.release_after(on, unit)
    if left and left.unit:
        on.queues.advance(left.unit, is_worker=False)


def _start_next_attempt(on: System, unit: Unit) -> None:
    """Let the job's next attempt start, which waits until the worker of this one is released."""
    if unit.lease.order == WORKER and unit.lease.job:
        on.queues.schedule({"do": "start", "job": unit.lease.job})
