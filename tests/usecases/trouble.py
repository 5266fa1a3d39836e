"""A whole life of jobs with one thing going wrong: a hint lost, doubled or late, or a function dying after an effect.

An effect is a commit, a message, a flow started or answered, or a driver's call: whatever leaves the function.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from penstock.domain.commands import Hello, SubmitJob
from penstock.domain.jobs.jobs import Job, Outcome, Result
from penstock.domain.pools.pools import Claim, Slot, SlotState, collection
from penstock.domain.units.units import Unit, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.twin import START, Twin
from penstock.usecases import sweep
from penstock.usecases.jobs import settle, submit
from penstock.usecases.site import apply
from penstock.usecases.units import drivers
from penstock.usecases.workers import agents
from tests.usecases.conftest import SITE
from tests.usecases.races import Died

ADA = User(name="ada", created=START, version=1)
TOKEN = "t" * 43
SWEEPS = 40
"""How many minutes of sweeping may pass before whatever went wrong must be made good."""


@dataclass
class Trouble:
    """Counts effects and hints, and makes one of them go wrong."""

    dies_after: int = -1
    loses: int = -1
    doubles: int = -1
    delays: int = -1
    echoes: int = -1
    effects: int = 0
    hints: int = 0
    happened: bool = False
    log: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def effect(self, name: str, call: Callable[[], Any]) -> Any:
        """An effect that takes place, after which the function may die."""
        result = call()
        self.effects += 1
        self.log.append(name)
        if self.effects - 1 == self.dies_after:
            self.happened = True
            raise Died(name)
        return result

    def hint(self, name: str, send: Callable[[int], Any]) -> None:
        """A hint: sent once, not at all, twice, ten minutes late, or once more after ten minutes."""
        number, self.hints = self.hints, self.hints + 1
        self.names.append(name)
        self.happened |= number in (self.loses, self.doubles, self.delays, self.echoes)
        if number != self.loses:
            self.effect(name, lambda: send(600 if number == self.delays else 0))
        if number in (self.doubles, self.echoes):
            send(600 if number == self.echoes else 0)


class Life:
    """A twin whose effects are counted, with agents that do their work as soon as they can."""

    def __init__(self, trouble: Trouble, *, redelivers: bool = True) -> None:
        self.twin, self.trouble, self.redelivers = Twin(), trouble, redelivers
        self.greeted: set[str] = set()
        self.ended: set[str] = set()
        self.most_held: dict[str, int] = {}
        apply.apply(self.twin.on, "root", SITE, "site.toml")
        self.twin.run()
        self._plug()

    def _plug(self) -> None:
        twin, trouble = self.twin, self.trouble
        store, flows, hand = twin.store, twin.flows, twin.drivers.hand
        commit, start, create, destroy = store.commit, flows.start, hand.create, hand.destroy
        twin.queues.messages = _Hints(trouble, twin.queues.messages)

        def checked(changes: Any) -> bool:
            done = commit(changes)
            self._check()
            return done

        store.commit = lambda changes: trouble.effect("commit", lambda: checked(changes))  # type: ignore[method-assign]
        flows.start = lambda *given: trouble.effect("start", lambda: start(*given))  # type: ignore[method-assign]
        hand.create = lambda order: trouble.effect("create", lambda: create(order))  # type: ignore[method-assign]
        hand.destroy = lambda *given: trouble.effect("clean", lambda: destroy(*given))  # type: ignore[method-assign]
        for name in ("succeed", "fail"):
            self._reply(name, getattr(flows, name))

    def _reply(self, name: str, answer: Callable[..., None]) -> None:
        flows, trouble = self.twin.flows, self.trouble

        def reply(*given: str) -> None:
            trouble.hint(name, lambda _: answer(*given))

        setattr(flows, name, reply)

    def _check(self) -> None:
        """SLOT-1 and JOB-2, after every commit: no slot is there twice, and no job has two workers that run."""
        rows = list(self.twin.store.rows.values())
        names = [(row.pool, row.name) for row in rows if isinstance(row, Slot)]
        assert len(names) == len(set(names)), "a slot is there twice"
        live = [
            row for row in rows if isinstance(row, Unit) and row.lease.order == 0 and row.state is not UnitState.GONE
        ]
        assert len({unit.lease.job for unit in live}) == len(live), "a job has two workers"
        holders = [(row.job, row.pool, row.order) for row in rows if isinstance(row, Slot) and row.job]
        assert len(holders) == len(set(holders)), "a claim was granted twice"

    def submit(self, **ask: Any) -> str:
        """Submit as a client does who tries again with the same key."""
        request = SubmitJob("#!/bin/sh\n", **ask)
        key = str(len(self.jobs()))
        try:
            return submit.submit(self.twin.on, ADA, request, key)
        except Died:
            return submit.submit(self.twin.on, ADA, request, key)

    def jobs(self) -> list[Job]:
        return [row for row in self.twin.store.rows.values() if isinstance(row, Job)]

    def live(self) -> bool:
        """Let everything happen until nothing is left to do. False when that took until the last deadlines."""
        if self._sweep_until_over(SWEEPS, 61):
            return True
        if not self._sweep_until_over(10, 24 * 3600):
            self._time_out()
            assert self._sweep_until_over(10, 61), [(job.state, job.end.reason) for job in self.jobs()]
        return False

    def _sweep_until_over(self, most: int, seconds: int) -> bool:
        for _ in range(most):
            self._settle_down()
            if self.is_over():
                return True
            self.twin.pass_time(seconds)
            with suppress(Died):
                sweep.sweep(self.twin.on)
        return False

    def _time_out(self) -> None:
        """After 31 days a flow ends by itself, and EventBridge tells."""
        for flow in self.twin.flows.executions.values():
            if not flow.ended:
                flow.ended, flow.token = True, None
                self.twin.flows.settling.append((flow.job, flow.attempt, "TIMED_OUT", None))

    def _settle_down(self) -> None:
        for _ in range(2000):
            if not (self._deliver() or self._act()):
                return
        raise AssertionError("the messages never end")

    def _deliver(self) -> bool:
        twin = self.twin
        if twin.flows.settling:
            given = twin.flows.settling.popleft()
            try:
                settle.settle(twin.on, *given)
            except Died:
                twin.flows.settling.append(given)  # the flow's last step is tried again
            return True
        before = list(twin.queues.messages)
        try:
            return twin.deliver()
        except Died:
            if self.redelivers:
                taken = next(message for message in before if message[0] <= twin.world.now())
                deque.append(twin.queues.messages, taken)
            return True

    def _act(self) -> bool:
        """Let the agent of one machine take its next step; one that is told to go, goes."""
        twin = self.twin
        for worker in list(twin.drivers.hand.made):
            unit = next(row for row in twin.store.rows.values() if isinstance(row, Unit) and row.id == worker)
            done, step = (self.ended, self._finish) if worker in self.greeted else (self.greeted, self._hello)
            if worker in done:
                continue
            try:
                step(unit)
            except Refused:
                self.greeted.add(worker)
                self.ended.add(worker)
            except Died:
                return True  # it gets a 5xx and tries again
            done.add(worker)
            return True
        return False

    def _hello(self, unit: Unit) -> None:
        key = drivers.bootstrap_key(self.twin.on.signing_key(), unit.id)
        agents.hello(self.twin.on, Hello(unit.id, key, TOKEN))

    def _finish(self, unit: Unit) -> None:
        caller = agents.authenticate(self.twin.on, unit.lease.job, TOKEN)
        agents.report_finished(self.twin.on, caller, Result.SUCCEEDED, "the script ended", 0)

    def is_over(self) -> bool:
        """Every job is settled and everything is put back. [UNIT-1]"""
        rows = list(self.twin.store.rows.values())
        left = [row for row in rows if isinstance(row, Unit) and row.state is not UnitState.GONE]
        return (
            all(job.is_settled for job in self.jobs())
            and not left
            and not self.twin.drivers.hand.made
            and not [row for row in rows if isinstance(row, Claim)]
            and not [row for row in rows if isinstance(row, Slot) and row.state is SlotState.HELD]
            and len(self.twin.store.find(collection("resource/bench"), "free#", Slot)) == 1
        )

    def outcomes(self) -> set[Outcome | None]:
        return {job.end.outcome for job in self.jobs()}


class _Hints(deque[Any]):
    """The queue, each message of which is a hint."""

    def __init__(self, trouble: Trouble, given: deque[Any]) -> None:
        super().__init__(given)
        self._trouble = trouble

    def append(self, item: Any) -> None:
        due, queue, message = item
        put = super().append
        self._trouble.hint(
            f"{queue} {message.get('do', '')}", lambda late: put((due + timedelta(0, late), queue, message))
        )
