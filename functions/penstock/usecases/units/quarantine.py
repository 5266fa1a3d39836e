"""Units in quarantine: into it, reminders while they are there, and the way out that needs no driver. [UNIT-1]

Broken workers: what their agents say, and targets whose workers are broken one after the other.

Of those no more are made for a while, so that none is paid for.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import replace

from aws_lambda_powertools import Logger

from penstock import transaction
from penstock.domain import cooldowns as domain_cooldowns
from penstock.domain.cooldowns import Cause, Obstacle, broken_scope, cool_down_key, maker_of
from penstock.domain.pools import pools
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.units import maintenance, quarantine, units
from penstock.domain.units.units import Unit, UnitKind, UnitState, unit_key
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Check, Replace
from penstock.system import System
from penstock.usecases import cooldowns
from penstock.usecases import cooldowns as remembering
from penstock.usecases.logs import logs
from penstock.usecases.site import configuration
from penstock.usecases.units import retire, reuse
from penstock.usecases.units.maintenance import find
from penstock.usecases.users import audit

PAGE = 500

log = Logger(child=True)


def enter(on: System, unit: Unit, reason: str) -> None:
    """Keep a unit apart that cannot be put back, with all that it takes, and let go on what need not wait for it.

    Whoever moved it meanwhile knows more than who decided this: then nothing is done.
    """
    if not on.store.commit(_enter(on, unit, reason)):
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER, 1)
        return
    told = f"{unit.is_a} {unit.id} is quarantined, until an operator has seen to it: {reason}"
    log.warning(told, extra={"unit": unit.id, "maker": unit.maker, "pool": unit.pool, "slot": unit.slot})
    logs.say(on, unit.job, unit.attempt, told, "worker")
    came_back(on, unit)
    reuse.pass_turn(on, unit)


def _enter(on: System, unit: Unit, reason: str) -> list[Change]:
    """Its slots are held by no job: nobody's time is counted by it, and it makes room for nobody. [UNIT-1]"""
    now = on.world.now()
    slots = retire.slots_of(on, unit)
    changes: list[Change] = [Replace(unit, quarantine.enter(unit, reason, now))]
    changes += [change for slot in slots for change in pools.move(slot, pools.set_aside(slot, now))]
    changes += _counted(on, unit) if any(slot.job for slot in slots) else []
    return [*changes, *(retire.end_lease(on, unit) if quarantine.may_continue(unit) else ())]


def _counted(on: System, unit: Unit) -> list[Change]:
    """That a worker was bad is counted when its lease ends; here it does, for its pool."""
    pool = on.store.get(pool_key(unit.pool), Pool)
    if pool is None:
        return []
    told = quarantine.count_broken(pool, unit)
    return [Replace(pool, told)] if told != pool else []


def remind(on: System, unit: Unit) -> None:
    """Note that a unit is still in quarantine: its operator is the only one who moves it on."""
    now = on.world.now()
    if unit.due and unit.due > now:
        return
    told = quarantine.remind(unit, now)
    if on.store.commit([Replace(unit, told)]):
        extra = {"unit": unit.id, "maker": unit.maker, "pool": unit.pool, "reminders": told.reminders}
        log.warning(quarantine.describe(told), extra=extra)


def removed(on: System, user: User, is_a: UnitKind, unit_id: str, checked: str) -> Unit:
    """Forget a unit that an operator has removed by hand; what they say is the proof. Raises Refused 400, 404 or 409.

    This frees its slots as its driver's word would. [UNIT-2]
    """
    maintenance.check(checked, required=True)

    def decide() -> tuple[Sequence[Change], Unit]:
        unit = find(on, is_a, unit_id)
        gone = quarantine.removed(unit, user.name, checked, on.world.now())
        changes = retire.free(on, unit, gone)[0]
        return audit.note(on, changes, user.name, "remove", f"{is_a} {unit_id}", checked), gone

    unit = transaction.run(on, decide)
    logs.say(on, unit.job, unit.attempt, f"{unit.is_a} {unit.id} was removed by {user.name}: {checked}")
    cooldowns.destroyed(on, unit, configuration.current(on))
    reuse.pass_turn(on, unit)
    return unit


def of_maker(on: System, is_a: UnitKind, maker: str) -> list[Unit]:
    """The units of a factory or well that are in quarantine, the oldest first."""
    found: list[Unit] = []
    page, after = PAGE, ""
    while page == PAGE:
        units = on.store.listed(f"{is_a}s", Unit, limit=PAGE, after=after)
        found += [unit for unit in units if unit.maker == maker and unit.state is UnitState.QUARANTINED]
        page, after = len(units), units[-1].id if units else ""
    return found


def came_back(on: System, unit: Unit) -> None:
    """A worker's slot was given back, or its worker quarantined: one that was bad may be one too many."""
    pool = on.store.get(pool_key(unit.pool), Pool) if quarantine.is_broken(unit) else None
    if pool and pool.broken >= quarantine.MAX_BROKEN_IN_A_ROW:
        why = f"{pool.broken} in a row; the last: {quarantine.why_broken(unit)}"[: domain_cooldowns.WHY_CHARS]
        remembering.meet(
            on, maker_of(unit.is_a, unit.maker), Obstacle(broken_scope(unit.type), Cause.BROKEN, why), unit
        )


def works(on: System, unit: Unit) -> None:
    """The worker that was to show whether its target boots again does: others are made as well."""
    if unit.is_probe:
        proved(on, unit)


def proved(on: System, unit: Unit) -> None:
    """A unit works: others of its type are made as well, and none in a row was broken.

    It is not said any more of one whose lease has ended meanwhile. [SLOT-3]
    """
    leased = on.store.get(unit.key, Unit)
    if leased is None or (leased.state, leased.fence) != (UnitState.READY, unit.fence):
        return
    remembering.take_off(on, cool_down_key(maker_of(unit.is_a, unit.maker), broken_scope(unit.type)), unit)
    pool = on.store.get(pool_key(unit.pool), Pool)
    if pool and pool.broken:
        on.store.commit([Check(leased), Replace(pool, replace(pool, broken=0))])


def cannot_be_cleaned(on: System, worker: str, shown: str, why: str) -> None:
    """A worker's agent that shows the token of its last job (hashed) says that it cannot clean up after it. [UNIT-2]"""
    unit = transaction.run(on, lambda: _cannot_be_cleaned(on, worker, shown, why))
    if unit and unit.state is UnitState.DIRTY:
        on.queues.advance(unit.id, is_worker=True)


def _cannot_be_cleaned(on: System, worker: str, shown: str, why: str) -> tuple[Sequence[Change], Unit | None]:
    unit, now = on.store.get(unit_key(worker), Unit), on.world.now()
    if unit is None or unit.is_a is not UnitKind.WORKER:
        return [], None
    token = unit.token_hash if unit.state is UnitState.READY else unit.past_hash
    if unit.state not in (UnitState.READY, UnitState.CLEANING) or not hmac.compare_digest(token or "", shown):
        return [], None
    told = units.mark_broken(unit, why, now)
    if unit.state is UnitState.CLEANING and not units.is_held(unit, now):  # [UNIT-3]
        told = units.give_up(told, f"it could not be cleaned: {why}", now)
    return ([Replace(unit, told)] if told != unit else []), told
