"""Units that stay for the next lease: cleaned by their well or their agent, and only then in a free slot. [UNIT-2]

`advance` calls `clean`; agents and wells that are done lead to `unit_cleaned`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from penstock.domain.cooldowns import maker_of
from penstock.domain.pools import pools
from penstock.domain.pools.pools import Pool, Slot, pool_key
from penstock.domain.units import retries, reuse, units
from penstock.domain.units.retries import EARLY
from penstock.domain.units.units import CleanProof, Unit, UnitKind, UnitState, unit_key
from penstock.kernel.errors import DriverError
from penstock.kernel.rows import Change, Replace
from penstock.ports import CleaningDriver
from penstock.system import System, current_site, transact
from penstock.usecases import cooldowns
from penstock.usecases.jobs.flow import slots_of, turn_pause
from penstock.usecases.units import drivers, release
from penstock.usecases.units.driver_calls import lock

CLEAN_TRIES = 3
"""How often cleaning is tried before the unit is destroyed instead."""


def clean(on: System, unit: Unit) -> None:
    """Take the next step of a unit that is being cleaned: call its well, or give up on a silent agent."""
    now = on.world.now()
    if unit.is_a is UnitKind.WORKER:
        if units.is_due(unit, now):
            give_up(on, unit, "its agent did not say in time that it is clean")
    elif unit.step.next_look and now + EARLY < unit.step.next_look:
        return  # a message is on its way for then
    elif pause := turn_pause(on, unit):
        on.store.commit([Replace(unit, retries.retry_later(unit, unit.step.reason, now, pause))])
    elif unit.step.tries >= CLEAN_TRIES:
        give_up(on, unit, f"it could not be cleaned: {unit.step.reason}")
    else:
        begun = lock(on, unit, is_to_clean=True)
        if begun:
            _call_clean(on, begun)


def _call_clean(on: System, begun: Unit) -> None:
    """Let the well clean a unit."""
    try:
        well = drivers.driver_of(on, current_site(on), begun)
        if not isinstance(well, CleaningDriver):
            give_up(on, begun, "its well does not clean")
            return
        proof = drivers.clean(on, begun, well)
    except DriverError as error:
        cooldowns.count_failure(on, maker_of(begun.is_a, begun.maker), error)
        postponed = retries.retry_by_message(begun, f"{type(error).__name__}: {error}", on.world.now())
    else:
        if isinstance(proof, CleanProof):
            unit_cleaned(on, begun.id, proof, timedelta(0))
            return
        noted = units.with_notes(begun, proof.notes)
        postponed = retries.retry_by_message(noted, proof.reason, on.world.now(), timedelta(seconds=proof.after))
    _clean_later(on, begun, postponed)


def _clean_later(on: System, begun: Unit, postponed: Unit) -> None:
    """Send the message for the next try, since the one that led here was the last."""
    if on.store.commit([Replace(begun, replace(postponed, step=replace(postponed.step, busy=None)))]) and postponed.due:
        seconds = int((postponed.due - on.world.now()).total_seconds())
        after = max(1, min(seconds, retries.MAX_MESSAGE_SECONDS))
        on.queues.advance(postponed.id, is_worker=False, after=after, maker=postponed.maker)


def unit_cleaned(on: System, unit_id: str, proof: CleanProof, lease: timedelta) -> Unit | None:
    """Put a clean unit back into its slot for the next lease, or have it destroyed if there are too many.

    Returns the unit afterwards; None when it was not being cleaned.
    """
    found = transact(on, lambda: _cleaned_changes(on, unit_id, proof, lease))
    if found is None:
        return None
    before, unit = found
    if unit.state is UnitState.DIRTY:
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER)
        return unit
    release.unit_cleaned(on, before, proof)
    return unit


def _cleaned_changes(
    on: System, unit_id: str, proof: CleanProof, lease: timedelta
) -> tuple[Sequence[Change], tuple[Unit, Unit] | None]:
    """The one write that makes a slot free and warm: with the proof, and only for its holder. [SLOT-3] [UNIT-2]"""
    unit = on.store.get(unit_key(unit_id), Unit)
    now = on.world.now()
    if unit is None or unit.state is not UnitState.CLEANING or units.is_held(unit, now):  # [UNIT-3]
        return [], None
    pool = on.store.get(pool_key(unit.lease.pool), Pool)
    slots = slots_of(on, unit)
    reason = why_not_kept(on, unit, pool, slots)
    if reason or pool is None or pool.warm is None:
        changes, dirty = _give_up_changes(unit, reason or "", on)
        return changes, (unit, dirty)
    kept = reuse.keep_warm(unit, proof, pool.warm, now, lease)
    learned = pools.count_broken(pool, unit)
    back = [
        pools.move(slot, pools.keep_warm(slot, pool.warm, is_own=at == 0, now=now)) for at, slot in enumerate(slots)
    ]
    return [Replace(unit, kept), Replace(pool, learned), *(change for moves in back for change in moves)], (unit, kept)


def _give_up_changes(unit: Unit, reason: str, on: System) -> tuple[Sequence[Change], Unit]:
    dirty = units.give_up(unit, reason, on.world.now())
    return [Replace(unit, dirty)], dirty


def give_up(on: System, unit: Unit, reason: str) -> None:
    """Have a unit destroyed that did not get clean."""
    changes, dirty = _give_up_changes(unit, reason, on)
    if on.store.commit(changes):
        on.queues.advance(dirty.id, dirty.is_a is UnitKind.WORKER)


def why_not_kept(on: System, unit: Unit, pool: Pool | None, slots: Sequence[Slot]) -> str | None:
    """Why a clean unit does not stay for the next lease; None when it does."""
    if pool is None or pool.warm is None or not _fits(on, unit, pool, slots):
        return "its slot was withdrawn"
    others = on.store.find(pools.collection(pool.name), "free#warm#", Slot, limit=pool.warm.most)
    owned = sum(bool(slot.owner) for slot in others)
    return reuse.why_not_kept(unit, pool, len(others), owned, on.world.now())


def _fits(on: System, unit: Unit, pool: Pool, slots: Sequence[Slot]) -> bool:
    """Whether the site still has room for all that a unit takes."""
    amounts = (on.store.get(pool_key(name), Pool) for name, _ in unit.lease.also)
    is_over = pool.is_above_limit or any(
        one is None or one.is_above_limit or (one.is_amount and one.used > one.limit) for one in amounts
    )
    return not is_over and len(slots) == 1 + len(unit.lease.also) and not any(slot.withdrawn for slot in slots)
