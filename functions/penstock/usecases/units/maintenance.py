"""What operators do with units: hold, release, drain and recycle. [UNIT-3]

The domain decides what is refused and why. Every automatic step reads the unit's row and writes it, so it either sees a
hold that was committed before, or loses its race against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from penstock.domain.jobs.jobs import Job, Result, job_key
from penstock.domain.logs.logs import DETAIL
from penstock.domain.pools import pools
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.units import maintenance, units
from penstock.domain.units.units import Unit, UnitKind, UnitState, format_time, unit_key
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.rows import Change, Check, Replace
from penstock.system import System, current_site, transact
from penstock.usecases.jobs import settle
from penstock.usecases.jobs.flow import slots_of
from penstock.usecases.logs import logs
from penstock.usecases.units import retire, reuse
from penstock.usecases.users import audit

ID_CHARS = 64
"""No unit's id has more characters."""


def find(on: System, is_a: UnitKind, unit_id: str) -> Unit:
    """A worker or a resource. Raises Refused 404."""
    unit = on.store.get(unit_key(unit_id), Unit) if len(unit_id) <= ID_CHARS else None
    if unit is None or unit.is_a is not is_a:
        raise not_found(is_a, unit_id[:ID_CHARS])
    return unit


def hold(on: System, user: User, is_a: UnitKind, unit_id: str, reason: str, seconds: int) -> Unit:
    """Keep a unit as it is for some time. Raises Refused 400, 404 or 409."""
    maintenance.check(reason, seconds, required=True)

    def decide() -> tuple[Sequence[Change], Unit]:
        unit = find(on, is_a, unit_id)
        held = maintenance.hold(unit, user.name, reason, seconds, on.world.now())
        changes = [Replace(unit, held), *_check_script_runs(on, unit), *_withhold_slots(on, unit)]
        return audit.record(on, changes, user.name, "hold", f"{is_a} {unit_id}", f"for {seconds} s: {reason}"), held

    unit = transact(on, decide)
    logs.append(on, unit.lease.job, unit.lease.attempt, f"{unit.is_a} {unit.id} is {unit.hold}")
    return unit


def _check_script_runs(on: System, unit: Unit) -> list[Change]:
    """The check that the script of a worker's job still runs. Once it has reported, it is too late to hold.

    An agent learns of a hold from the answer to its report. Of the report and this hold, one is committed first.
    """
    if unit.is_a is UnitKind.RESOURCE or unit.state is not UnitState.READY or units.is_held(unit, on.world.now()):
        return []
    job = on.store.get(job_key(unit.lease.job), Job)
    if job is None or job.attempt != unit.lease.attempt:
        return []
    if job.run.report and (unit.health.broken or job.run.report.result is not Result.LOST):
        doing = "its agent cleans it" if unit.cleaning.is_kept else "its machine is on its way out"
        text = f"the job of worker {unit.id} has ended at {format_time(job.run.report.time)}, and {doing}"
        raise Refused(409, "too-late-to-hold", f"{text}: it is too late to hold it")
    return [Check(job)]


def _withhold_slots(on: System, unit: Unit) -> list[Change]:
    """Mark the slots of an idle unit as held by no job, so that it is not leased, nor evicted to make room."""
    if unit.state is not UnitState.IDLE or unit.hold:
        return []
    now = on.world.now()
    return [change for slot in slots_of(on, unit) for change in pools.move(slot, pools.set_aside(slot, now))]


def release(on: System, user: User, is_a: UnitKind, unit_id: str) -> Unit:
    """Take a hold off, or let a unit out of quarantine. Raises Refused 404 or 409."""

    def decide() -> tuple[Sequence[Change], Unit]:
        changes, free = _release_changes(on, find(on, is_a, unit_id), user.name)
        return audit.record(on, changes, user.name, "release", f"{is_a} {unit_id}"), free

    unit = transact(on, decide)
    logs.append(on, unit.lease.job, unit.lease.attempt, f"{unit.is_a} {unit.id} was released by {user.name}")
    _resume(on, unit)
    return unit


def _release_changes(on: System, unit: Unit, by: str | None) -> tuple[Sequence[Change], Unit]:
    now = on.world.now()
    free = maintenance.release(unit, by, now, timedelta(seconds=current_site(on).limits.lease))
    if unit.state is not UnitState.IDLE:
        return [Replace(unit, free)], free
    pool, slots = on.store.get(pool_key(unit.lease.pool), Pool), slots_of(on, unit)
    reason = reuse.why_not_kept(on, free, pool, slots)
    if reason or pool is None or pool.warm is None:
        dirty = units.give_up(free, reason or "", now)
        return [Replace(unit, dirty), *retire.withdraw_slots(on, unit)], dirty
    since = None if units.is_prewarming(free) else now
    back = [
        pools.move(slot, pools.keep_warm(slot, pool.warm, is_own=at == 0, now=since)) for at, slot in enumerate(slots)
    ]
    return [Replace(unit, free), Replace(pool, pool), *(change for moves in back for change in moves)], free


def _resume(on: System, unit: Unit) -> None:
    """Resume what the hold delayed: the unit's own next step, and grants of its slots. [QUEUE-1]"""
    if unit.state is UnitState.IDLE:
        names = list(dict.fromkeys((unit.lease.pool, *(pool for pool, _ in unit.lease.also))))
        on.queues.serve(names, pools.group_of(names))
    if unit.state is not UnitState.IDLE or units.is_prewarming(unit):
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER)


def wait_for_hold(on: System, unit: Unit) -> bool:
    """Whether a unit takes no step now because of its hold. [UNIT-3]

    A hold that has expired is taken off first; the step follows after that.
    """
    if units.is_held(unit, on.world.now()):
        return unit.state in maintenance.PARKED
    changes, free = _release_changes(on, unit, None)
    if on.store.commit(changes):
        _resume(on, free)
    return True


def ask_console(on: System, user: User, unit_id: str) -> Unit:
    """Have a worker's factory write its console output into its journal, soon. Raises Refused 404 or 409.

    The message may be lost: then nothing is written, and the operator asks again.
    """
    unit = find(on, UnitKind.WORKER, unit_id)
    maintenance.may_have_console(unit)
    on.queues.console(unit.id, user.name, unit.maker)
    return unit


def drain(on: System, user: User, is_a: UnitKind, unit_id: str, reason: str) -> Unit:
    """Lease a unit to nobody after its present lease. Raises Refused 400, 404 or 409."""
    maintenance.check(reason)

    def decide() -> tuple[Sequence[Change], Unit]:
        unit = find(on, is_a, unit_id)
        changes, after = drain_changes(on, unit, maintenance.drain(unit, user.name, reason, on.world.now()))
        return audit.record(on, changes, user.name, "drain", f"{is_a} {unit_id}", reason), after

    return _drained(on, transact(on, decide))


def drain_with_maker(on: System, unit: Unit, by: str, reason: str) -> None:
    """Drain a unit because its whole factory or well is drained, which the audit log has once for all."""

    def decide() -> tuple[Sequence[Change], Unit | None]:
        fresh = on.store.get(unit.key, Unit)
        if fresh is None or fresh.state in (UnitState.GONE, *maintenance.ENDING) or fresh.drain:
            return [], None
        return drain_changes(on, fresh, maintenance.drain(fresh, by, reason, on.world.now()))

    drained = transact(on, decide)
    if drained:
        _drained(on, drained)


def _drained(on: System, unit: Unit) -> Unit:
    """Log that a leased unit is drained; have one that nobody leases destroyed."""
    if unit.is_leased and not unit.is_recycled:
        logs.append(on, unit.lease.job, unit.lease.attempt, f"{unit.is_a} {unit.id} is {unit.drain}", DETAIL)
    elif unit.state is UnitState.DIRTY and not units.is_held(unit, on.world.now()):
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER)
    return unit


def recycle(on: System, user: User, is_a: UnitKind, unit_id: str, reason: str) -> Unit:
    """Have a unit destroyed now; the attempt that leases it is lost. Raises Refused 400, 404 or 409."""
    maintenance.check(reason)

    def decide() -> tuple[Sequence[Change], Unit]:
        unit = find(on, is_a, unit_id)
        changes, after = drain_changes(on, unit, maintenance.recycle(unit, user.name, reason, on.world.now()))
        return audit.record(on, changes, user.name, "recycle", f"{is_a} {unit_id}", reason), after

    unit = transact(on, decide)
    end_attempt(on, unit)
    return _drained(on, unit)


def drain_changes(on: System, unit: Unit, after: Unit) -> tuple[Sequence[Change], Unit]:
    """A unit that is neither leased nor held goes at once; but a well that cleans is not interrupted."""
    now = on.world.now()
    is_cleaned = after.state is UnitState.CLEANING and after.is_a is UnitKind.WORKER
    if not units.is_held(after, now) and (after.state is UnitState.IDLE or is_cleaned):
        after = units.give_up(after, str(after.drain), now)
        return [Replace(unit, after), *(retire.withdraw_slots(on, unit) if unit.state is UnitState.IDLE else ())], after
    return ([Replace(unit, after)] if after != unit else []), after


def end_attempt(on: System, unit: Unit) -> None:
    """End the attempt that leases a recycled unit, as if its worker were lost. Repeated until it has ended."""
    cause = f"{unit.is_a} {unit.id} was {unit.drain}"
    settle.lose(on, unit, cause, lambda fresh: fresh.is_recycled, unit.step.reason)
