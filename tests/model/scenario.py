"""Scenarios by seed: jobs over a bad network, handlers that die, agents that fall silent."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from penstock.domain.commands import Hello, SubmitJob
from penstock.domain.jobs.jobs import Job, Result, job_key
from penstock.domain.pools.pools import Pool
from penstock.domain.units.units import Unit
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases import sweep
from penstock.usecases.jobs import cancel, settle, submit
from penstock.usecases.site import apply
from penstock.usecases.units import drivers
from penstock.usecases.workers import agents
from tests.model.observer import ObservedStore

SITE = site_toml(
    targets={"default": {"limit": 1}},
    wells={"locks": "lock"},
    resources={
        "bench": {"well": "locks", "limit": 1},
        "licence": {"well": "locks", "limit": 2},
        "database": {"well": "locks", "limit": 2, "uses": {"licence": 1, "tokens": 2}},
        "sandbox": {"well": "locks", "limit": 2, "uses": {"tokens": 1}},
        "rig": {
            "well": "locks",
            "leases": 2,
            "things": {"rig-1": {"labels": {"rack": "1"}}, "rig-2": {"labels": {"rack": "2"}}},
        },
    },
    quotas={"tokens": 3},
)
ASKS: Sequence[Sequence[Mapping[str, Any]]] = (
    [{"type": "licence"}, {"type": "bench"}],
    [],
    [{"type": "licence"}],
    [{"type": "database"}],
    [{"type": "database"}],
    [{"type": "sandbox"}],
    [{"type": "rig", "labels": "rack == 1"}],
    [{"type": "rig", "labels": "rack == 1", "exclusive": True}],
    [{"type": "rig"}, {"type": "rig", "labels": "rack == 2"}],
)
LIMITS = {"target/default": 1, "resource/licence": 2, "quota/tokens": 3}
PUBLISHING = """#!/bin/sh
#: name = "publishing"
#: variety = "basic"
#: output_rules = ["/work/*"]
#: [[publish]]
#: from_output = "/work/a"
#: series = "nightly"
#: name = "a"
"""
SCRIPTS = (*["#!/bin/sh\n"] * 3, PUBLISHING)
"""The last publishes: its report is a commit of its own."""
TOKEN = "t" * 43
ADA = User(name="ada", created=START, version=1)


class Died(Exception):
    """A handler ended in the middle of its work."""


class DyingStore(ObservedStore):
    """Dies at a commit when it is told to: before it, or when it is made."""

    dies: str = ""
    commits: int = 0

    def commit(self, changes: Sequence[Change]) -> bool:
        """Commit, unless this is the end."""
        how, self.dies = self.dies, ""
        self.commits += 1
        if how == "before":
            raise Died
        made = super().commit(changes)
        if how == "after":
            raise Died
        return made


class Scenario:
    """Four jobs, a budget of faults and an operator who sets limits and pauses pools, walked by the dice of a seed."""

    site = SITE
    scripts = SCRIPTS
    limits: Mapping[str, int] = LIMITS

    def __init__(self, seed: int, faults: int) -> None:
        self.dice = random.Random(seed)
        self.faults = faults
        self.orders = 8
        self.welcome: set[str] = set()
        self.over: set[str] = set()
        self.pause = 61
        self.twin = Twin(seed)
        self.store = DyingStore()
        self.twin.store = self.store
        self._answer = self.twin.flows.succeed
        self.twin.flows.succeed = self._answer_or_lose  # type: ignore[method-assign]
        object.__setattr__(self.twin.on, "store", self.store)
        apply.apply(self.twin.on, "admin", self.site, "site.toml")
        self._prepare()
        self.twin.run()
        self.jobs = [self._submit(script) for script in self.scripts]

    def _prepare(self) -> None:
        """What is there before any slot is made."""

    def _submit(self, script: str) -> str:
        wanted = {f"r{n}": dict(ask) for n, ask in enumerate(self.dice.choice(ASKS))}
        ask = SubmitJob(script, resources=wanted or None)
        return submit.submit(self.twin.on, ADA, ask, None)

    def _answer_or_lose(self, token: str) -> bool:
        """Answer a parked step; perhaps the answer never arrives."""
        if self.faults and self.dice.random() < 0.1:
            self.faults -= 1
            return True
        return self._answer(token)

    def walk(self) -> None:
        """Go on until every job is settled and nothing is held; time passes when nothing else happens."""
        for _ in range(2000):
            if not self._step() and self._is_over():
                return
        raise AssertionError(f"it never ends: {[self.job(job).state for job in self.jobs]}")

    def job(self, job: str) -> Job:
        """A job as it is."""
        found = self.store.get(job_key(job), Job)
        assert found
        return found

    def _is_over(self) -> bool:
        open_units = [row for row in self.store.rows.values() if isinstance(row, Unit) and row.state != "gone"]
        return all(self.job(job).is_settled for job in self.jobs) and not open_units

    def _step(self) -> bool:
        """One event; False when only time was left to pass."""
        messages, flows = self.twin.queues.messages, self.twin.flows
        due = [place for place, message in enumerate(messages) if message[0] <= self.twin.world.now()]
        if self.orders and self.dice.random() < 0.1:
            self._operate()
            return True
        events = ["message"] * (3 * len(due)) + ["settle"] * (3 * len(flows.settling)) + ["agent"] * len(self._agents())
        if self.faults and self.dice.random() < 0.05:
            self.faults -= 1
            self._cancel()
            return True
        if not events and self._reopen():
            return True
        if not events:
            self.twin.pass_time(self.pause)
            self._after_a_while()
            self.pause = min(2 * self.pause, 86_400)
            sweep.sweep(self.twin.on)
            return not self._is_over()
        self.pause = max(61, self.pause // 2)
        event = self.dice.choice(events)
        if event == "message":
            self._deliver(self.dice.choice(due))
        elif event == "settle":
            given = flows.settling[0]
            if self._alive(lambda: settle.settle(self.twin.on, *given, unbegun=True)):
                flows.settling.popleft()
        else:
            self._call(self.dice.choice(self._agents()))
        return True

    def _after_a_while(self) -> None:
        """Time passed, and nothing was swept yet."""

    def _operate(self) -> None:
        """Somebody sets a limit, pauses a pool or resumes it; the handler may die."""
        self.orders -= 1
        pool, most = self.dice.choice(sorted(self.limits.items()))
        if self.dice.random() < 0.3:
            self._alive(lambda: apply.pause(self.twin.on, pool, paused=self.dice.random() < 0.5))
        else:
            self._alive(lambda: apply.resize(self.twin.on, pool, self.dice.randint(0, most + 1)))

    def _reopen(self) -> bool:
        """Before time passes all is as the site says again; False when it was."""
        shut = [pool for pool in self.store.rows.values() if isinstance(pool, Pool) and self._is_shut(pool)]
        for pool in shut:
            apply.pause(self.twin.on, pool.name, paused=False)
            apply.resize(self.twin.on, pool.name, self.limits[pool.name])
        return bool(shut)

    def _is_shut(self, pool: Pool) -> bool:
        return pool.name in self.limits and (pool.paused or pool.limit < self.limits[pool.name])

    def _deliver(self, place: int) -> None:
        message = self.twin.queues.messages[place]
        fate = self.dice.random() if self.faults else 1
        if fate < 0.06:
            self.faults -= 1
            del self.twin.queues.messages[place]
            return
        if not self._alive(lambda: self.twin.take(message[1], message[2])):
            return
        if 0.06 <= fate < 0.12:
            self.faults -= 1
        else:
            self.twin.queues.messages.remove(message)

    def _alive(self, handler: object) -> bool:
        """Run a handler; perhaps it dies, and what woke it comes again."""
        if self.faults and self.dice.random() < 0.1:
            self.faults -= 1
            self.store.dies = self.dice.choice(["before", "after"])
        try:
            handler()  # type: ignore[operator]
        except Died:
            return False
        finally:
            self.store.dies = ""
        return True

    def _agents(self) -> list[str]:
        return sorted(set(self.twin.drivers.hand.made) - self.over)

    def _call(self, worker: str) -> None:
        """An agent makes its next call, until it is answered; or falls silent for ever."""
        if self.faults and self.dice.random() < 0.2:
            self.faults -= 1
            self.over.add(worker)
            return
        try:
            answered = self._alive(lambda: self._finish(worker) if worker in self.welcome else self._hello(worker))
        except Refused:
            self.over.add(worker)
            return
        if answered:
            (self.over if worker in self.welcome else self.welcome).add(worker)

    def _hello(self, worker: str) -> None:
        key = drivers.bootstrap_key(self.twin.on.signing_key(), worker)
        agents.hello(self.twin.on, Hello(worker, key, TOKEN))

    def _finish(self, worker: str) -> None:
        job = next(row.lease.job for row in self.store.rows.values() if isinstance(row, Unit) and row.id == worker)
        caller = agents.authenticate(self.twin.on, job, TOKEN)
        if caller.unit.id == worker:
            agents.report_finished(self.twin.on, caller, Result.SUCCEEDED, "it ended", 0)

    def _cancel(self) -> None:
        with suppress(Refused):
            self._alive(lambda: cancel.cancel(self.twin.on, ADA, self.dice.choice(self.jobs)))
