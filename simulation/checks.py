"""Runs all checks: at commits, at drivers' calls, in quiet moments, and at the end."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.pools import grants, matching
from penstock.domain.pools.pools import (
    WAITING,
    Claim,
    Lease,
    LeaseState,
    Pool,
    Slot,
    SlotState,
    collection,
    lease_prefix,
    pool_key,
    thing_of,
)
from penstock.domain.pools.stops import Stop
from penstock.domain.replies import Assignment, Idle
from penstock.domain.units.units import Unit, UnitState, is_held, unit_key
from penstock.kernel.errors import PenstockError
from penstock.kernel.rows import Change, Key, Row
from penstock.ports import Order
from penstock.system import parse_site
from penstock.testing.store import lease_now
from penstock.usecases import isolation, sweep
from penstock.usecases.artifacts import expire, owners
from penstock.usecases.pools.scheduler import read_stock
from penstock.usecases.pools.serving import stocks_of
from penstock.usecases.units import quarantine, reconcile
from simulation import choices, packings
from simulation.commits import Facts, Moment, moves_of, remember
from simulation.errors import Broken
from simulation.interfaces import Agent, Run
from simulation.invariants import AFTER_A_COMMIT, GONE
from simulation.operators import held_is_held
from simulation.ports import SimulatedStore, slots_of
from simulation.share_invariants import portions
from simulation.tasks import Died, Task

NO_LONGER = r"the site no longer has (?P<pool>\S+)"
"""Why a step fails whose pool is not there, and comes no more."""


def _is_told_to_wait(reply: object) -> bool:
    """Whether a reply says no more than that the machine is held, which whoever has the agent's token may know."""
    return isinstance(reply, Idle) and reply.held_seconds is not None and reply.copies is None


class Swallowed(logging.Handler):
    """Errors of single steps that a handler logs before it continues. A service that refuses, or a lost race, is
    allowed, and may have lost a hint; any other error is a bug.
    """

    def __init__(self, harm: Callable[[], None]) -> None:
        super().__init__()
        self.found, self._harm = "", harm
        for log in (isolation.log, reconcile.log, quarantine.log, expire.log, owners.log, sweep.log):
            log.handlers[:] = [self]
            logging.getLogger(log.name).propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Look at one record."""
        error = record.exc_info[1] if record.exc_info else None
        if error and not isinstance(error, PenstockError):
            self.found = f"{type(error).__name__}: {error}"
        elif error and record.name == isolation.log.name:
            self._harm()


class Promises:
    """All promises over one run. `blind` are the labels that are not looked at; where nothing is `watched`, all that
    holds of every commit: the end is looked at in any case."""

    def __init__(self, engine: Run, blind: Collection[str], *, watched: bool = True) -> None:
        self._engine = engine
        self._blind = frozenset(blind)
        self._is_watched = watched
        self.facts = Facts()
        self._called: set[str] = set()
        self._swallowed = Swallowed(engine.harm)
        engine.outside.before_create = self._creates
        engine.outside.before_clean = self._cleans
        engine.outside.before_destroy = self._destroys

    def must(self, label: str, holds: bool, says: str) -> None:
        if not holds and label not in self._blind:
            raise Broken(label, says)

    def committed(self, changes: Sequence[Change], before: Mapping[Key, Row | None]) -> None:
        """After a commit."""
        engine = self._engine
        moves = moves_of(changes, before, engine.store.rows)
        moment = Moment(
            engine.store, self.facts, moves, before, engine.task, engine.outside.proofs, engine.outside.cleanings,
            self._rests, self._running,
        )  # fmt: skip
        for was, now in moves:
            said = _said(was, now)
            if said:
                engine.tell(said)
        if not self._is_watched:
            return
        remember(moment)
        self.facts.portions.update(portions(moment))
        for check in AFTER_A_COMMIT:
            for label, says in check(moment):
                self.must(label, False, says)
        for label, says in held_is_held(moment, engine.world.now(), self._called):
            self.must(label, False, says)

    def fails(self, cause: str) -> None:
        """JOB-1: a job that fails because the site has not what it needs, was looked at by a site that has it not."""
        task, named = self._engine.task, re.fullmatch(NO_LONGER, cause)
        if named and task:
            lacked = any(row is None or named["pool"] not in parse_site(row.toml).pools() for row in task.sites)
            self.must("JOB-1", lacked, f"a job fails because {cause}, and every site that was read has it")

    def _running(self) -> Iterator[tuple[str, int, str]]:
        """Job, attempt and machine of every script that may be running."""
        for machine in self._engine.machines.values():
            if machine.is_running():
                yield machine.job, machine.attempt, machine.id

    def _rests(self, unit: str) -> bool:
        """Whether an agent has cleaned up after its last job."""
        return any(one.id == unit and one.state == "resting" for one in self._engine.machines.values())

    def _creates(self, order: Order) -> None:
        """UNIT-1: before anything is made there is a row that knows it. SEC-1: only workers get a key."""
        unit = self._engine.store.rows.get(unit_key(order.id))
        self.must("UNIT-1", isinstance(unit, Unit), f"{order.id} is made, and no row knows it")
        is_late = isinstance(unit, Unit) and unit.state is UnitState.IDLE and unit.lease.leases > 0
        self.must("UNIT-2", not is_late, f"{order.id} is made for its last lease, and is clean and idle by now")

    def _cleans(self, unit_id: str) -> None:
        """UNIT-2: what a well makes as new is nobody's, and is not the next one's yet."""
        unit = self._engine.store.rows.get(unit_key(unit_id))
        state = unit.state if isinstance(unit, Unit) else None
        is_nobodys = state in (UnitState.CLEANING, *GONE)
        self.must("UNIT-2", is_nobodys, f"{unit_id} is made as new while it is {state}")

    def _destroys(self, unit_id: str) -> None:
        """UNIT-1: what is destroyed is ours, and nobody's any more."""
        unit = self._engine.store.rows.get(unit_key(unit_id))
        self.must("UNIT-1", unit_id not in self._engine.outside.untagged, f"{unit_id} is not ours, and is destroyed")
        self._called.add(unit_id)
        is_held_ = isinstance(unit, Unit) and is_held(unit, self._engine.world.now())
        self.must("UNIT-3", not is_held_, f"{unit_id} is destroyed while an operator holds it")
        is_wanted = isinstance(unit, Unit) and unit.state not in GONE
        self.must("UNIT-1", not is_wanted, f"{unit_id} is destroyed while it is in use")

    def begins(self, machine: Agent, told: Assignment) -> None:
        """JOB-2: a script begins while no other of its job may run. SEC-1: it is told of its own resources only."""
        running = [one for one in self._engine.machines.values() if one.is_running() and one is not machine]
        others = [one.id for one in running if one.job == told.job]
        self.must("JOB-2", not others, f"{machine.id} begins {told.job} while {others} may still run it")
        held = self._engine.store.scan(f"job#{told.job}", lease_prefix(told.attempt), Lease)
        mine = {lease.unit for lease in held}
        seen = {about.metadata["id"] for about in told.resources.values() if "id" in about.metadata}
        self.must("SEC-1", seen <= mine, f"{machine.id} was told of {sorted(seen - mine)}, which its job does not have")

    def accepted(self, job: str) -> None:
        """JOB-1: who got the id of a job has a job."""
        self.must("JOB-1", job_key(job) in self._engine.store.rows, f"{job} was accepted, and no row knows it")

    def ended(self, task: Task) -> None:
        """RULE-3: a handler ends well, is refused, or says that it lost a race; SEC-2: intruders are refused."""
        error = task.error
        fine = error is None or isinstance(error, PenstockError | Died)
        self.must("RULE-3", fine, f"{task.name} ended with {type(error).__name__}: {error}")
        self.must("RULE-3", not self._swallowed.found, f"{task.name} went on after {self._swallowed.found}")
        if task.intruder:
            waits = _is_told_to_wait(task.result)
            self.must("SEC-2", waits or isinstance(error, PenstockError | Died), f"{task.name} was let in")

    def quiet(self) -> None:
        """QUEUE-1: with nothing under way and no hint lost, no claim waits that could be granted.

        That is of pools, slots and claims alone: while none is written, it is as it was.
        """
        if not (self._is_watched and self._engine.store.is_pools_news):
            return
        self._engine.store.is_pools_news = False
        for pool in self._pools():
            for claim in self._queue(pool.name)[:1]:
                has_room = all(self._has_room(claim, name) for name in claim.pools)
                says = f"{claim.job} waits for {claim.count} of {pool.name}, there is room, and nobody will serve"
                self.must("QUEUE-1", not has_room, says)
            is_open = self._may_be_granted(pool.name)
            self.must("QUEUE-1", not is_open, f"somebody who waits for {pool.name} could have it")

    def _may_be_granted(self, name: str) -> bool:
        """Whether the rule allows to grant anybody in a pool's queue, the first or not: of those that a server reads,
        and of all.
        """
        names = dict.fromkeys(pool for claim in self._queue(name) for pool in claim.pools)
        found = {each: read_stock(self._engine.on, each, self._queue(each)) for each in names}
        whole = {each: stock for each, stock in found.items() if stock}
        read = stocks_of(self._engine.on, name)
        return any(stocks and grants.pick(name, stocks) for stocks in (read, whole))

    def _queue(self, name: str) -> list[Claim]:
        return sorted(self._engine.store.scan(collection(name), WAITING, Claim), key=lambda claim: claim.order)

    def _has_room(self, claim: Claim, name: str) -> bool:
        """Whether the claim is the first in that pool's queue, and what it wants there is to be had.

        What is idle is to be had: it is used, or destroyed to make room. What is leaving will be. While a resize of
        hosts that jobs share is due, nobody knows what is free of one.
        """
        store, pool = self._engine.store, self._engine.store.rows.get(pool_key(name))
        first = self._queue(name)[:1]
        if not isinstance(pool, Pool) or pool.is_paused or not first or first[0].job != claim.job:
            return False
        if pool.share and pool.due is not None:
            return False
        if pool.share:
            slots = slots_of(store, name)
            there = [slot.name for slot in slots if slot.state is SlotState.FREE]
            had = {slot.name: slot.owner for slot in slots if slot.state is SlotState.HELD}
            return bool(packings.Hosts(pool, there, had).fit(first[0]))
        if matching.choosing(first, name):
            names = [slot.name for state in ("free#", "idle#") for slot in store.scan(collection(name), state, Slot)]
            return choices.can_have(first[0], pool, names) and not _is_going(store, first[0], name)
        free = pool.limit - pool.used if pool.is_amount else len(store.scan(collection(name), "free#", Slot))
        idle = store.scan(collection(name), "idle#", Slot)
        return first[0].count <= free + sum(slot.count for slot in idle) and not any(slot.leaving for slot in idle)

    def _pools(self) -> list[Pool]:
        return [row for row in self._engine.store.rows.values() if isinstance(row, Pool)]

    def is_over(self, *, is_warm: bool) -> bool:
        """Whether everything has come to its end; where `is_warm`, but for what the site keeps warm."""
        return next(self._left(is_warm=is_warm), None) is None

    def over(self, *, is_warm: bool) -> None:
        """What must hold after the calm: nothing waits forever, and everything is returned."""
        for label, says in self._left(is_warm=is_warm):
            self.must(label, False, says)

    def _left(self, *, is_warm: bool) -> Iterator[tuple[str, str]]:
        """What is not at its end yet: jobs first, for whose sake the rest may be kept."""
        rows = sorted(self._engine.store.rows.values(), key=lambda row: not isinstance(row, Job))
        kept = self._kept() if is_warm else set()
        for row in rows:
            if isinstance(row, Job) and not row.is_settled:
                held = self._engine.store.scan(f"job#{row.id}", lease_prefix(row.attempt), Lease)
                waits = [lease.pool for lease in held if lease.state is LeaseState.WAITING]
                has = [lease.pool for lease in held if lease.state is not LeaseState.WAITING]
                label = "QUEUE-3" if waits else "JOB-1"
                yield label, f"{row.id}/{row.attempt} never settles: {row.state}, has {has}, waits for {waits}"
            if isinstance(row, Unit) and row.state is not UnitState.GONE and row.id not in kept:
                yield (
                    "UNIT-1",
                    f"{row.id} of {row.lease.job}/{row.lease.attempt} is never put back: "
                    f"{row.state}, {row.step.reason}",
                )
            if isinstance(row, Stop | Pool) and (isinstance(row, Stop) or row.stops):
                yield "QUEUE-1", f"{row.key} is stopped, though every stop was lifted"
            if isinstance(row, Claim):
                yield "QUEUE-3", f"a claim of {row.job}/{row.attempt} on {row.pool} stands for ever"
            if isinstance(row, Lease) and lease_now(self._engine.store.rows, row).state is not LeaseState.RELEASED:
                yield "JOB-1", f"a lease of {row.job}/{row.attempt} on {row.pool} is never released"
        for unit in sorted(self._engine.outside.things.keys() - kept):
            yield "UNIT-1", f"{unit} exists, and is never destroyed"
        yield from self._misfits(kept)
        for flow in self._engine.flows.executions.values():
            if not flow.ended and not self._said_hello(flow.job, flow.attempt):
                yield "JOB-1", f"the flow of {flow.job}/{flow.attempt} is parked for ever"

    def _said_hello(self, job: str, attempt: int) -> bool:
        """Whether an attempt's worker was there: a flow that was not told so is of no use, and ends at its limit."""
        row = self._engine.store.rows.get(job_key(job))
        if not isinstance(row, Job):
            return False
        past = next((each for each in row.history.attempts if each.attempt == attempt), None)
        return (past.started if past else row.started) is not None

    def _kept(self) -> set[str]:
        """The idle units that the site keeps: no more of a pool than it says."""
        found: set[str] = set()
        for pool in self._pools():
            warm = self._engine.store.scan(collection(pool.name), "free#warm#", Slot)
            found |= {str(slot.unit) for slot in warm[: pool.warm.most if pool.warm else 0]}
        return found

    def _misfits(self, kept: Collection[str]) -> Iterator[tuple[str, str]]:
        for pool in self._pools():
            if pool.is_amount:
                used = sum(slot.count for slot in slots_of(self._engine.store, pool.name) if slot.unit not in kept)
                if used:
                    yield "SLOT-1", f"{used} of {pool.name} are used for ever"
                continue
            on = {slot.name for slot in slots_of(self._engine.store, pool.name) if slot.state is not SlotState.OFF}
            fits = on == set(pool.names[: pool.limit]) if pool.names is not None else len(on) == pool.limit
            away = [slot.name for slot in slots_of(self._engine.store, pool.name) if slot.state is SlotState.AWAY]
            yield from self._left_on(pool)
            if any(self._has_power(name) for name in away):
                yield "QUEUE-1", f"{away} of {pool.name} are away, though their hosts' agents call"
            if not fits or pool.due:
                yield "SLOT-1", f"{pool.name} has slots {sorted(on)}; its limit is {pool.limit}, names {pool.names}"

    def _has_power(self, slot: str) -> bool:
        """Whether the host of a slot has power: all have, where no controller switches them."""
        controller = self._engine.outside.controller
        return controller is None or controller.is_on(thing_of(slot))

    def _left_on(self, pool: Pool) -> Iterator[tuple[str, str]]:
        """Hosts that have power, though nobody needs them and their site has them switched off."""
        is_switched = pool.hosts and "idle" in self._engine.plan.shape.power
        on = [name for name in pool.names or () if self._has_power(name)] if is_switched else []
        if on:
            yield "UNIT-1", f"{on} of {pool.name} are never switched off"


def _is_going(store: SimulatedStore, claim: Claim, name: str) -> bool:
    """Whether a slot leaves, or comes, that matters to who chooses: an idle one, or one that the site took out."""
    slots = slots_of(store, name)
    alone = any(choice.exclusive for choice in matching.choosing([claim], name))
    pool = store.rows.get(pool_key(name))
    is_resized = isinstance(pool, Pool) and pool.due is not None
    return any(slot.leaving or (alone and slot.withdrawn) for slot in slots) or (alone and is_resized)


def _said(was: Row | None, now: Row | None) -> str:
    """A commit's move of one row, for the story."""
    row = now or was
    if isinstance(row, Job):
        state = [f"{side.state}/{side.attempt}" for side in (was, now) if isinstance(side, Job)]
        return f"{row.id}: {' -> '.join(state)} {row.end.outcome or ''} {row.end.reason or ''}".rstrip()
    if isinstance(row, Lease | Slot | Unit):
        state = [str(getattr(side, "state", "none")) for side in (was, now)]
        name = (
            row.id
            if isinstance(row, Unit)
            else f"{row.pool}/{row.name}"
            if isinstance(row, Slot)
            else f"lease {row.job}/{row.attempt} {row.name}"
        )
        return f"{name}: {state[0]} -> {state[1]}" if state[0] != state[1] else ""
    if isinstance(row, Claim):
        return f"{row.job}/{row.attempt} {'waits' if now else 'no longer waits'} for {row.count} of {row.pool}"
    if isinstance(row, Pool):
        return f"{row.name}: limit {row.limit}, names {row.names}, paused {row.paused}"
    return ""
