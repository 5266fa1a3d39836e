"""A store that looks, after every commit, whether rows moved only as they may."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from penstock.domain.artifacts.artifacts import Artifact, ArtifactState
from penstock.domain.cooldowns import CoolDown
from penstock.domain.jobs.jobs import Job, State
from penstock.domain.pools.pools import Claim, Lease, LeaseState, Pool, Slot, SlotName, SlotState
from penstock.domain.units.comparison import Missing
from penstock.domain.units.units import Unit, UnitState, unit_key
from penstock.kernel.rows import Change, Key, Replace, Row, key_of
from penstock.testing.store import MemoryStore, lease_now

Kinds = dict[type[Row], list[Any]]
HOLDING = (LeaseState.GRANTED, LeaseState.READY, LeaseState.RELEASING)


class WatchedStore(MemoryStore):
    """Rows in memory. `operator` says that an operator is at work: only then may what a pool shall be change."""

    def __init__(self) -> None:
        super().__init__()
        self.operator = False

    def commit(self, changes: Sequence[Change]) -> bool:
        before, slots = {key: self.rows.get(key) for key in map(key_of, changes)}, _slots(_kinds(self.rows))
        if not super().commit(changes):
            return False
        kinds = _kinds(self.rows)
        for place, slot in _slots(kinds).items():
            _slot(slots.get(place), slot)
        for key, was in before.items():
            now = self.rows.get(key)
            if was is not now:
                self._moved(was, now)
        self._look(kinds)
        return True

    def _moved(self, was: Row | None, now: Row | None) -> None:
        if was is None or now is None:
            gone = was if now is None else None
            mortal = Slot | Claim | CoolDown | Missing | Artifact
            assert gone is None or isinstance(gone, mortal), f"{gone} was deleted"
            assert not isinstance(gone, Artifact) or gone.state is ArtifactState.DESTROYING, f"{gone} was deleted"
            return
        checks: dict[type[Row], Callable[..., None]] = {
            Job: _job, Unit: _unit, Lease: _lease, Artifact: _artifact, Claim: _claim, Pool: self._pool,
        }  # fmt: skip
        if type(now) in checks:
            checks[type(now)](was, now)

    def _pool(self, was: Pool, now: Pool) -> None:
        """SLOT-1: what an operator said of a pool stands."""
        said = [(row.limit, row.names, row.is_amount, row.paused) for row in (was, now)]
        assert said[0] == said[1] or self.operator, f"{now.name} went from {said[0]} to {said[1]}"

    def _look(self, kinds: Kinds) -> None:
        """SLOT-1, SLOT-3, JOB-2: what must be so at every moment."""
        slots, places = kinds[Slot], _slots(kinds)
        assert len(places) == len(slots), "a slot is there twice"
        pools = {row.name: row for row in kinds[Pool]}
        named = {(row.pool, row.name) for row in kinds[SlotName]}
        assert named == {place for place in places if not pools[place[0]].is_amount}, "a slot lost its name"
        for pool in pools.values():
            held = sum(slot.count for slot in slots if slot.pool == pool.name)
            assert not pool.is_amount or pool.used == held, f"{pool.name} says {pool.used}, and {held} are used"
        _look_at_holders(self.rows, kinds, places)


def _kinds(rows: dict[Key, Row]) -> Kinds:
    """Rows by their class, all in one go: this is done with every commit, of millions."""
    kinds: Kinds = defaultdict(list)
    for row in dict.values(rows):  # of a dict, not of a sorted one: its order is not asked for
        kinds[type(row)].append(row)
    return kinds


def _slots(kinds: Kinds) -> dict[tuple[str, str], Slot]:
    return {(row.pool, row.name): row for row in kinds[Slot]}


def _slot(was: Slot | None, now: Slot) -> None:
    """SLOT-3: whoever takes a slot has the next fence, and nothing else changes it."""
    taken = now.state is SlotState.HELD and (was is None or was.state is not SlotState.HELD)
    before = was.fence if was else 0
    assert now.fence == before + taken, f"the fence of {now.pool}/{now.name} went from {before} to {now.fence}"
    same = was is not None and was.state is now.state is SlotState.HELD
    assert not same or (was and was.unit == now.unit), f"{now.name} went from {was} to {now}"


def _look_at_holders(rows: dict[Key, Row], kinds: Kinds, places: dict[tuple[str, str], Slot]) -> None:
    """Who holds a lease holds its slot with this fence; its unit knows; and nobody else has one."""
    held = [lease for lease in (lease_now(rows, row) for row in kinds[Lease]) if lease.state in HOLDING]
    for lease in held:
        slot, unit = places[lease.pool, str(lease.slot)], rows[unit_key(str(lease.unit))]
        assert isinstance(unit, Unit)
        assert (slot.state, slot.fence, slot.unit) == (SlotState.HELD, lease.fence, lease.unit), f"{lease} lost {slot}"
        dirty, ready = unit.state is UnitState.DIRTY, unit.state is UnitState.READY
        assert (lease.state is LeaseState.RELEASING) == dirty, f"{lease.state} and {unit.state}"
        assert (lease.state is LeaseState.READY) == ready, f"{lease.state} and {unit.state}"
    units = {lease.unit for lease in held}
    for unit in (row for row in kinds[Unit] if row.state is not UnitState.GONE):
        assert unit.id in units, f"{unit.id} has no lease"
    for slot in places.values():
        assert slot.state is not SlotState.HELD or slot.unit in units, f"{slot} is held by nobody"
    waiting = {(row.job, row.attempt, row.step) for row in kinds[Lease] if row.state is LeaseState.WAITING}
    for claim in kinds[Claim]:
        assert (claim.job, claim.attempt, claim.step) in waiting, f"nobody waits with {claim}"
    jobs = {row.id: row for row in kinds[Job]}
    assert all(jobs[job].attempt == attempt and not jobs[job].is_settled for job, attempt, _ in waiting), "it is over"
    workers = Counter(row.lease.job for row in kinds[Unit] if row.id in units and not row.lease.order)
    assert set(workers.values()) <= {1}, f"JOB-2: {workers}"


def _job(was: Job, now: Job) -> None:
    """JOB-1: an end, a report and a cancellation stay."""
    if was.is_settled:
        assert replace(now, version=0, due=None, flow=replace(now.flow, stop_from=None)) == replace(
            was, version=0, due=None, flow=replace(was.flow, stop_from=None)
        )
    assert now.cancellation.cancelled_by == was.cancellation.cancelled_by or not was.cancellation.cancelled_by, (
        f"the cancellation of {now.id} was forgotten"
    )
    assert now.attempt in (was.attempt, was.attempt + 1), f"{now.id}: from attempt {was.attempt} to {now.attempt}"
    if now.attempt == was.attempt:
        assert now.run.report == was.run.report or not was.run.report, (
            f"{now.id} ended otherwise than its agent said first"
        )
        order = list(State)
        assert order.index(now.state) >= order.index(was.state), f"{now.id} went from {was.state} to {now.state}"
        assert now.run.worker == was.run.worker or not was.run.worker, f"{now.id} has another worker"
    assert now.flow.stop_from in (was.flow.stop_from, None) or was.flow.stop_from is None, (
        "a flow that is to be stopped was forgotten"
    )


def _unit(was: Unit, now: Unit) -> None:
    """UNIT-2, SEC-1: what is dirty stays so until it is gone, and a token that is dead stays dead."""
    order = list(UnitState)
    assert order.index(now.state) >= order.index(was.state), f"{now.id} went from {was.state} to {now.state}"
    assert was.state is not UnitState.GONE, f"{now.id} was gone, and changed"
    assert (
        now.session.token_hash == was.session.token_hash
        or was.state is UnitState.CREATING
        or now.session.token_hash is None
    )
    assert now.creation.made or not was.creation.made, f"that {now.id} was made was forgotten"
    assert (now.state is UnitState.GONE) == (now.cleaning.proof is not None), (
        f"{now.id} is {now.state} with {now.cleaning.proof}"
    )


def _lease(was: Lease, now: Lease) -> None:
    order = list(LeaseState)
    assert order.index(now.state) >= order.index(was.state), f"a lease went from {was.state} to {now.state}"
    assert (now.slot, now.fence, now.unit) == (was.slot, was.fence, was.unit) or was.state is LeaseState.WAITING


def _artifact(was: Artifact, now: Artifact) -> None:
    """ART-1: bytes that are there are destroyed with the last owner only, and are never there again after."""
    order = list(ArtifactState)
    assert order.index(now.state) >= order.index(was.state), f"{now} was {was.state}"
    assert (now.state is ArtifactState.CREATED) == bool(now.owners), f"{now} is owned by {now.owners}"
    doomed = (was.state, now.state) == (ArtifactState.CREATED, ArtifactState.DESTROYING)
    assert not doomed or len(was.owners) == 1, f"{was} is destroyed, and was owned"


def _claim(was: Claim, now: Claim) -> None:
    """QUEUE-2: how often it was overtaken is never forgotten."""
    assert now.overtaken >= was.overtaken, f"{now} was overtaken {was.overtaken} times"


def _kind(change: Change) -> tuple[str, ...]:
    if not isinstance(change, Replace):
        return (type(change).__name__, key_of(change).sk.partition("#")[0])
    was, now = change.was, change.row
    differ = [each.name for each in fields(now) if getattr(was, each.name) != getattr(now, each.name)]
    return (now.kind, str(getattr(now, "state", "")), *differ)
