"""Incidents by the clock: restarts, partitions, spot interruptions, shortages, clock jumps, operators."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from itertools import count

from penstock.domain.units.units import Unit, UnitKind, UnitState, unit_key
from penstock.testing.fake import Machine as Thing
from penstock.usecases.jobs import cancel
from penstock.usecases.units import maintenance
from simulation import operators
from simulation.chaos.interfaces import ChaosRun
from simulation.users import owner

LEAPS = (100, 400, 1500)
DARK = (1, 20, 90, 400)
"""For how long nothing of ours answers after a restart."""

CUTS = (30, 70, 200, 600)
QUOTA = "the account's quota"
SHORTAGES = ("fake/market/spot", "fake/zone/a", "fake/type/8", "fake/spot/1/a", QUOTA)
KINDS = {
    "restart": 1500, "cut": 700, "storm": 1200, "leap": 2400, "shortage": 900, "operate": 60, "cancel": 1800,
}  # fmt: skip
"""Recurring incidents, and the average number of seconds between two."""

REPORTED_AFTER = 10
"""How long a site's own health check takes to look at what machines say of themselves."""


class Troubles:
    """A calendar of incidents; most of them recur."""

    def __init__(self, engine: ChaosRun) -> None:
        self._engine = engine
        self._calendar: list[tuple[datetime, int, Callable[[], None]]] = []
        self._numbers = count()
        self.dark_until: datetime | None = None
        self._is_doomed = False

    def start(self, without: Collection[str]) -> None:
        """Schedule the recurring incidents."""
        for kind, seconds in KINDS.items():
            if kind not in without:
                self._again(getattr(self, f"_{kind}"), seconds)

    def _again(self, act: Callable[[], None], seconds: float) -> None:
        def once_more() -> None:
            if self._engine.is_storm():
                act()
                self._again(act, seconds)

        self.at(self._engine.world.now() + timedelta(seconds=self._engine.dice.expovariate(1 / seconds)), once_more)

    def at(self, time: datetime, act: Callable[[], None]) -> None:
        """Schedule an incident."""
        heapq.heappush(self._calendar, (time, next(self._numbers), act))

    @property
    def next_at(self) -> datetime | None:
        """The time of the next incident."""
        return self._calendar[0][0] if self._calendar else None

    def act(self) -> None:
        """Run the incidents that are due."""
        while self._calendar and self._calendar[0][0] <= self._engine.world.now():
            heapq.heappop(self._calendar)[2]()
        if self._is_doomed and len(self._engine.tasks) > 1:
            self._die()

    def watch(self, thing: Thing) -> None:
        """A site's own health check: who says that it is broken, or taken back, is recycled by an operator's script."""
        ailment = thing.ailment
        seconds = [ailment.reports] if ailment.reports is not None else []
        seconds += [ailment.reclaimed - ailment.notice] if ailment.reclaimed is not None and ailment.notice else []
        if seconds:
            self.at(thing.after(min(seconds) + REPORTED_AFTER), lambda: self._recycle(thing))

    def _recycle(self, thing: Thing) -> None:
        engine = self._engine
        if engine.is_dark():
            self.at(engine.world.now() + timedelta(seconds=REPORTED_AFTER), lambda: self._recycle(thing))
            return
        unit, why = engine.store.rows.get(unit_key(thing.unit)), thing.says(engine.world.now())
        if thing.exists(engine.world.now()) and isinstance(unit, Unit) and unit.state is not UnitState.GONE:
            engine.watch.counts[f"a machine said: {why}"] += 1
            engine.watch.hurts(thing, engine.world.now() - timedelta(seconds=REPORTED_AFTER))
            whose = (engine.on, operators.ROOT, UnitKind.WORKER, thing.unit)
            engine.begin(
                f"root wants to recycle {thing.unit}", lambda: maintenance.recycle(*whose, why), lambda _: None
            )

    def _restart(self) -> None:
        """Kill all handlers as soon as several are in progress."""
        self._is_doomed = True

    def _die(self) -> None:
        """All handlers die at once, and nothing answers for a while. Their messages come again."""
        engine = self._engine
        self._is_doomed = False
        engine.watch.counts["everything was restarted"] += 1
        engine.watch.counts["handlers that a restart killed"] += len(engine.tasks)
        engine.tell("everything of ours is restarted")
        while engine.tasks:
            engine.kill(engine.tasks[0])
        engine.harm()
        self.dark_until = engine.world.now() + timedelta(seconds=engine.dice.choice(DARK))

    def _cut(self) -> None:
        """Some machines, or all of a zone, lose their network for a while."""
        engine = self._engine
        until = engine.world.now() + timedelta(seconds=engine.dice.choice(CUTS))
        found = [thing for thing in engine.cloud.machines.values() if thing.order.is_worker]
        cut = [thing for thing in found if thing.offer.zone == "b" or engine.dice.random() < 0.3]
        for thing in cut:
            thing.cut_until = until
            engine.watch.hurts(thing, engine.world.now())
        engine.watch.counts["machines that were cut off"] += len(cut)
        engine.tell(f"{len(cut)} machines are cut off until {until:%H:%M:%S}")

    def _storm(self) -> None:
        """The provider takes many spot machines back at once, and gives no notice."""
        engine = self._engine
        found = [
            thing for thing in engine.cloud.machines.values() if thing.order.is_worker and thing.offer.market == "spot"
        ]
        taken = [thing for thing in found if engine.dice.random() < 0.7]
        engine.watch.counts["machines that a spot storm took"] += len(taken)
        engine.tell(f"{len(taken)} machines vanish at once")
        for thing in taken:
            engine.cloud.take(thing, "taken back")

    def _leap(self) -> None:
        """The clock jumps. Time passed on the machines too: agents whose lease ran out have stopped their jobs."""
        engine = self._engine
        seconds = engine.dice.choice(LEAPS)
        engine.watch.counts["the clock leapt"] += 1
        engine.tell(f"the clock leaps by {seconds} s")
        engine.world.time += timedelta(seconds=seconds)
        engine.stop_overdue()
        engine.harm()

    def _shortage(self) -> None:
        """A market, a zone or a type is short for some minutes, or somebody else uses the account's quota."""
        engine = self._engine
        scope = engine.dice.choice(SHORTAGES)
        engine.short.add(scope)
        engine.watch.counts[f"none left of {scope}"] += 1
        over = engine.world.now() + timedelta(seconds=engine.dice.choice((120, 600)))
        self.at(over, lambda: engine.short.discard(scope))

    def _operate(self) -> None:
        found = operators.act(self._engine)
        if found and not self._engine.is_dark():
            name, call = found
            what = name.split()[1 if "wants" not in name else 3]
            then = self._engine.watch.count_done(f"an operator's {what.removesuffix('s')}")
            self._engine.begin(name, call, then)

    def _cancel(self) -> None:
        engine = self._engine
        found = [job for job in engine.jobs() if not job.is_settled]
        if found and not engine.is_dark():
            job = engine.dice.choice(found)
            then = engine.watch.count_done("a job was cancelled")
            engine.begin(f"{job.owner} cancels {job.id}", lambda: cancel.cancel(engine.on, owner(job), job.id), then)
