"""Broken workers: what their agents report, and types whose workers break one after the other.

After several broken workers in a row, the type cools down, and only one probe is made at a time, so that no more
machines are paid for than needed. Called when units are released, and by agents and canaries.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import replace

from penstock.domain import cooldowns as domain_cooldowns
from penstock.domain.cooldowns import Cause, Obstacle, broken_scope, cool_down_key, maker_of
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.units import quarantine, units
from penstock.domain.units.units import Unit, UnitKind, UnitState, unit_key
from penstock.kernel.rows import Change, Check, Replace
from penstock.system import System, transact
from penstock.usecases import cooldowns as remembering


def check_broken_in_a_row(on: System, unit: Unit) -> None:
    """Start a cool-down of the unit's type if this broken worker was the last of too many in a row."""
    pool = on.store.get(pool_key(unit.lease.pool), Pool)
    if pool and pool.broken >= quarantine.MAX_BROKEN_IN_A_ROW:
        why = f"{pool.broken} in a row; the last: {quarantine.why_broken(unit)}"[: domain_cooldowns.WHY_CHARS]
        remembering.start(
            on, maker_of(unit.is_a, unit.maker), Obstacle(broken_scope(unit.type), Cause.BROKEN, why), unit
        )


def mark_working(on: System, unit: Unit) -> None:
    """A probe works, or a unit on which a canary succeeded: its type is made again without limits.

    This lifts the type's cool-down, and restarts the count of broken workers. Ignored for a unit whose lease has ended
    meanwhile. [SLOT-3]
    """
    leased = on.store.get(unit.key, Unit)
    if leased is None or (leased.state, leased.lease.fence) != (UnitState.READY, unit.lease.fence):
        return
    remembering.lift(on, cool_down_key(maker_of(unit.is_a, unit.maker), broken_scope(unit.type)), unit)
    pool = on.store.get(pool_key(unit.lease.pool), Pool)
    if pool and pool.broken:
        on.store.commit([Check(leased), Replace(pool, replace(pool, broken=0))])


def report_uncleanable(on: System, worker: str, shown: str, why: str) -> None:
    """An agent that shows its last job's token (hashed) reports that it cannot clean its machine. [UNIT-2]"""
    unit = transact(on, lambda: _uncleanable_changes(on, worker, shown, why))
    if unit and unit.state is UnitState.DIRTY:
        on.queues.advance(unit.id, is_worker=True)


def _uncleanable_changes(on: System, worker: str, shown: str, why: str) -> tuple[Sequence[Change], Unit | None]:
    unit, now = on.store.get(unit_key(worker), Unit), on.world.now()
    if unit is None or unit.is_a is not UnitKind.WORKER:
        return [], None
    token = unit.session.token_hash if unit.state is UnitState.READY else unit.session.past_hash
    if unit.state not in (UnitState.READY, UnitState.CLEANING) or not hmac.compare_digest(token or "", shown):
        return [], None
    marked = units.mark_broken(unit, why, now)
    if unit.state is UnitState.CLEANING and not units.is_held(unit, now):  # [UNIT-3]
        marked = units.give_up(marked, f"it could not be cleaned: {why}", now)
    return ([Replace(unit, marked)] if marked != unit else []), marked
