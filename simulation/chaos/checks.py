"""The additional invariants of a chaos run, which faults happened, and what the run cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from penstock.domain.jobs.jobs import Job, State
from penstock.domain.pools.pools import WORKER, Lease, SlotState, lease_key, thing_of
from penstock.domain.units.units import Unit, UnitState, unit_key
from penstock.kernel.rows import Change, Check, Delete, Key, Row, key_of
from penstock.testing.fake import Machine as Thing
from simulation.chaos.interfaces import BadAgent, ChaosRun
from simulation.chaos.scenario import HOST_VCPUS, LAB_POOL, WELLS
from simulation.hosts import HAPPENINGS
from simulation.ports import slots_of
from simulation.tasks import Task

HOW = {
    "did not say hello": "no hello until the boot deadline",
    "nothing was heard": "no heartbeat until the lease's end",
    "recycled": "an operator's script recycled it",
    "does not list it": "three lists did not have it",
}
"""How a lost machine was noticed, by what its attempt's reason says."""


DEADLINE = "settled at the queue deadline"


@dataclass(frozen=True)
class Loss:
    """An attempt that was lost with its machine: how it was noticed, and how many seconds after; the same of what
    followed, the start of the next attempt.
    """

    how: str
    noticed: float
    followed: float


@dataclass
class Machinery:
    """The machines of one unit."""

    things: list[Thing] = field(default_factory=list)
    hurt: datetime | None = None
    gone: datetime | None = None


class Watch:
    """Checks every commit, and every machine that is made or destroyed."""

    def __init__(self, engine: ChaosRun, booked: int) -> None:
        self._engine, self._booked = engine, booked
        self.counts: Counter[str] = Counter()
        self.settled: Counter[str] = Counter()
        self.losses: list[Loss] = []
        self.first = self.last = engine.world.now()
        self.attempts = self.made_workers = 0
        self.calls: dict[str, int] = {}
        self.paid = self.worked = self.unknown = self.late = 0.0
        self._units: defaultdict[str, Machinery] = defaultdict(Machinery)
        self._pending: dict[str, tuple[str, datetime, datetime]] = {}
        self._begun: dict[tuple[str, int], datetime] = {}

    # Invariants.

    def made(self, thing: Thing) -> None:
        """SLOT-1: no more of anything than the site says, and the account allows. UNIT-1: and a row knows each."""
        engine = self._engine
        self._units[thing.unit].things.append(thing)
        self.made_workers += thing.order.is_worker
        there = {each.unit for each in engine.cloud.machines.values() if each.order.is_worker == thing.order.is_worker}
        limit = self._booked if thing.order.is_worker else sum(WELLS.values())
        self._must("SLOT-1", len(there) <= limit, f"{len(there)} like {thing.unit} exist, and the site has {limit}")
        is_known = isinstance(engine.store.rows.get(unit_key(thing.unit)), Unit)
        self._must("UNIT-1", is_known, f"{thing.id} is made, and no row knows it")

    def committed(self, changes: Sequence[Change], before: Mapping[Key, Row | None]) -> None:
        """After a commit."""
        for was, now in self._moves(changes, before):
            if isinstance(now, Unit) and now.state is UnitState.GONE:
                self._ends(now)
            if isinstance(now, Unit) and was is None and now.lease.pool == LAB_POOL:
                self._comes_to_a_host(now)
            if isinstance(now, Job) and isinstance(was, Job):
                self._moves_on(was, now)

    def _moves(self, changes: Sequence[Change], before: Mapping[Key, Row | None]) -> Iterator[tuple[Row | None, Row]]:
        for change in changes:
            if not isinstance(change, Check | Delete):
                key = key_of(change)
                yield before[key], self._engine.store.rows[key]

    def _ends(self, unit: Unit) -> None:
        """UNIT-2: what is gone by its row is gone outside."""
        now = self._engine.world.now()
        self._units[unit.id].gone = now
        left = [each.id for each in self._units[unit.id].things if each.exists(now)]
        self._must("UNIT-2", not left, f"{unit.id} is gone, says its row, and {left} exist")

    def _comes_to_a_host(self, unit: Unit) -> None:
        """Record whether a job came to a host that others have, or one that is its own."""
        slots = slots_of(self._engine.store, LAB_POOL)
        taken = [slot for slot in slots if slot.state is SlotState.HELD and slot.thing == thing_of(unit.lease.slot)]
        is_shared = any(slot.unit != unit.id for slot in taken)
        self.counts["a job beside another on its host"] += is_shared
        self.counts["a job with all of its host"] += len(taken) == HOST_VCPUS and not is_shared

    def _moves_on(self, was: Job, now: Job) -> None:
        """Record what a commit means for a job."""
        time = self._engine.world.now()
        if now.is_settled and not was.is_settled:
            self.settled[now.id] += 1
            self.counts[f"settled: {now.end.outcome}"] += 1
            if "queue deadline" in (now.end.reason or ""):
                self.counts[DEADLINE] += 1
            else:
                self.last, self.calls = time, dict(self._engine.cloud.calls)
            self._pending.pop(now.id, None)
        self.attempts += now.state is State.ACQUIRING and was.state is State.QUEUED
        if now.attempt > was.attempt:
            self._loses(was, now, time)
        if now.state is State.RUNNING and was.state is not State.RUNNING and now.id in self._pending:
            how, lost, noticed = self._pending.pop(now.id)
            self.losses.append(Loss(how, (noticed - lost).total_seconds(), (time - lost).total_seconds()))

    def _must(self, label: str, holds: bool, says: str) -> None:
        self._engine.promises.must(label, holds, says)

    # What happened.

    def _loses(self, was: Job, now: Job, time: datetime) -> None:
        reason = now.history.attempts[-1].reason
        how = next((told for part, told in HOW.items() if part in reason), "otherwise")
        self.counts[f"lost: {how}"] += 1
        lease = self._engine.store.rows.get(lease_key(was.id, was.attempt, WORKER))
        unit = lease.unit if isinstance(lease, Lease) else None
        lost = self._lost_at(self._units[unit], time) if unit else None
        if lost:
            self._pending[was.id] = (how, lost, time)

    def _lost_at(self, unit: Machinery, until: datetime) -> datetime | None:
        """When a unit's machine became useless, if the machine caused the loss."""
        died = [time for thing in unit.things for time in _died_at(thing) if time <= until]
        return min(died) if died else unit.hurt

    def hurts(self, thing: Thing, time: datetime) -> None:
        """A machine is cut off, or says that it is broken: its job may be lost, or may not."""
        self._units[thing.unit].hurt = time

    def gone(self, thing: Thing) -> None:
        """A machine is gone: what it cost, and whether a row knew it all the time. [UNIT-1]"""
        ends = thing.ends or self._engine.world.now()
        unit = self._units[thing.unit]
        row = self._engine.store.rows.get(unit_key(thing.unit))
        life = (ends - thing.born).total_seconds()
        self.paid += life if thing.order.is_worker else 0.0
        self.unknown += 0.0 if isinstance(row, Unit) else life
        self.late += max(0.0, (ends - max(thing.born, unit.gone)).total_seconds()) if unit.gone else 0.0

    def is_gone(self, unit: str) -> bool:
        """Whether a unit is gone by its row."""
        return self._units[unit].gone is not None

    def begins(self, machine: BadAgent) -> None:
        """A script begins."""
        self._begun[machine.job, machine.attempt] = self._engine.world.now()

    def finishes(self, machine: BadAgent) -> None:
        """A script has ended, and its end was heard."""
        begun = self._begun.pop((machine.job, machine.attempt), None)
        self.worked += min(machine.works, timedelta(seconds=900)).total_seconds() if begun else 0.0

    def count_done(self, what: str) -> Callable[[Task], None]:
        """Counts what was done, once it is."""

        def done(task: Task) -> None:
            self.counts[what] += task.error is None

        return done


def _died_at(thing: Thing) -> Iterator[datetime]:
    ailment = thing.ailment
    if ailment.is_mute:
        yield thing.born
    if ailment.breaks is not None:
        yield thing.after(ailment.breaks)
    if thing.ends and thing.why != "destroyed":
        yield thing.ends


ALWAYS = (
    "create refused", "destroy refused", "create too soon", "no capacity", "quota reached", "destroyed", "crashed",
    "the agent crashed", "a machine said: it is broken", "settled: succeeded", "settled: failed", "settled: errored",
    DEADLINE, *(f"lost: {how}" for part, how in HOW.items() if "list" not in part),
)  # fmt: skip
"""What must really have happened in a run of 200 jobs with Arvados' figures."""

HARDER = (
    *(what for what in ALWAYS if what != DEADLINE),  # what would wait for it, is recycled by some operator before
    "list refused", "clean refused", "not done yet", "answer lost", "made twice", "did not die at first", "stale list",
    "not listed yet", "listed after its end", "list too soon", "taken back", "everything was restarted",
    "handlers that a restart killed", "machines that were cut off", "an agent reached nobody", "the clock leapt",
    "an agent that was cut off stopped its job", "machines that a spot storm took", "a machine said: it is taken back",
    "an operator's hold", "an operator's release", "an operator's drain", "an operator's recycle",
    "an answer to an agent was lost", "a job was cancelled", "settled: cancelled",
    *HAPPENINGS, "a job beside another on its host", "a job with all of its host",
)  # fmt: skip
"""What must really have happened in a run of 1,000 jobs with the harder figures."""
