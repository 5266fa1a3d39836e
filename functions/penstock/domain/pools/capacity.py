"""Changing the number or names of a pool's slots to what its row says, while others claim and hold them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from penstock.domain.pools.pools import Pool, Slot, SlotName, SlotState, move, thing_of
from penstock.kernel.rows import Change, Create

AT_REST = (SlotState.FREE, SlotState.AWAY)
"""The states of a slot that nobody has. Which of the two depends on whether its host is connected."""


def fit(pool: Pool, slots: Iterable[Slot], here: Collection[str] = ()) -> list[tuple[Change, ...]]:
    """The steps that change a pool's slots to what its row says; each is one commit. Holders keep what they hold.

    Warm slots are left to `surplus`. `here`: the connected hosts; no slot of any other host is free. Those that a host
    has from now on come when it is not `in_transition` any more. Commit every step with a write of the pool's row, so
    that two resizes cannot mix.
    """
    everything = list(slots)
    named = {slot.name: slot for slot in everything}
    late = in_transition(pool, everything)
    wanted = [name for name in _wanted(pool, everything) if thing_of(name) not in late]
    leaving = [slot for slot in everything if slot.name not in wanted and _is_on(slot) and not _is_warm(slot)]
    steps = [_off(slot) for slot in leaving]
    for name in wanted:
        slot = named.get(name)
        state = SlotState.AWAY if pool.hosts and thing_of(name) not in here else SlotState.FREE
        if slot is None:
            new = Slot(pool=pool.name, name=name, state=state)
            steps.append((Create(SlotName(pool=pool.name, name=name)), Create(new)))
        elif not _is_on(slot) or (slot.state in AT_REST and slot.state is not state and not _is_warm(slot)):
            steps.append(_on(slot, state))
    return steps


def surplus(pool: Pool, slots: Iterable[Slot]) -> list[Slot]:
    """Slots whose kept units must be destroyed first: more than the pool keeps warm, and what the site took out, as a
    unit's own slot or beside it.

    Units that are not made yet come first.
    """
    everything = list(slots)
    wanted = _wanted(pool, everything)
    warm = sorted((slot for slot in everything if _is_warm(slot)), key=lambda slot: slot.since is None)
    kept = [slot for slot in warm if slot.name in wanted][: pool.warm.most if pool.warm else 0]
    beside = [slot for slot in everything if slot.state is SlotState.IDLE and slot.withdrawn and not slot.leaving]
    return [*(slot for slot in warm if slot not in kept), *beside]


def in_transition(pool: Pool, slots: Iterable[Slot]) -> set[str]:
    """The hosts of which somebody has a slot of the last division: all of a host that jobs share now, or a part of one
    that they share no longer. A host runs jobs in one of the two ways at a time. [JOB-2]
    """
    return {slot.thing for slot in slots if _is_had(slot) and pool.is_of_last_division(slot)}


def after_transition(pool: Pool, gone: Slot, had: Iterable[Slot]) -> list[Slot]:
    """The slots that a host has, free, once a slot of its last division is gone; none while somebody has another."""
    if not pool.is_of_last_division(gone) or gone.thing in in_transition(pool, had):
        return []
    names = (pool.names or ())[: pool.limit]
    return [Slot(pool=pool.name, name=name, state=SlotState.FREE) for name in names if thing_of(name) == gone.thing]


def _is_had(slot: Slot) -> bool:
    """Whether a unit is in a slot."""
    return slot.state in (SlotState.HELD, SlotState.IDLE) or _is_warm(slot)


def _is_warm(slot: Slot) -> bool:
    return slot.state is SlotState.FREE and slot.unit is not None


def _is_on(slot: Slot) -> bool:
    return slot.state is not SlotState.OFF and not slot.withdrawn


def _wanted(pool: Pool, slots: list[Slot]) -> list[str]:
    """The names that a pool should have: its own names; for a number, as many as possible of those in use."""
    if pool.names is not None:
        return list(pool.names)[: pool.limit]
    rank = {SlotState.HELD: 0, SlotState.IDLE: 1, SlotState.FREE: 2, SlotState.AWAY: 3, SlotState.OFF: 3}
    kept = sorted(slots, key=lambda slot: (rank[slot.state], slot.withdrawn, not slot.unit, len(slot.name), slot.name))
    names = [slot.name for slot in kept]
    fresh = (str(number) for number in range(1, pool.limit + len(names) + 1) if str(number) not in names)
    while len(names) < pool.limit:
        names.append(next(fresh))
    return names[: pool.limit]


def _off(slot: Slot) -> tuple[Change, ...]:
    if slot.state in (SlotState.HELD, SlotState.IDLE):
        return move(slot, replace(slot, withdrawn=True))
    return move(slot, replace(slot, state=SlotState.OFF))


def _on(slot: Slot, state: SlotState) -> tuple[Change, ...]:
    if slot.state in (SlotState.HELD, SlotState.IDLE):
        return move(slot, replace(slot, withdrawn=False))
    return move(slot, replace(slot, state=state))
