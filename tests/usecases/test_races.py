"""Somebody else moves between any reading and its write, and no row moves as it must not.

[SLOT-1] [SLOT-2] [SLOT-3] [QUEUE-1] [JOB-1] [JOB-2] [UNIT-1] [UNIT-2] [ART-1]

A story runs once for each of its commits and each intruder, who runs whole just before that commit. After every
commit WatchedStore looks at the rows; in the end everything is settled and put back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from penstock.domain.commands import Hello, SubmitJob
from penstock.domain.jobs.jobs import Job, Outcome, Result, job_key
from penstock.domain.pools.pools import Claim, Pool, Slot, collection, pool_key
from penstock.domain.units.units import Unit, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured, Refused
from penstock.kernel.rows import Change
from penstock.ports import NotYet
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases import sweep
from penstock.usecases.jobs import cancel, settle, submit
from penstock.usecases.pools import resize
from penstock.usecases.site import apply
from penstock.usecases.units import drivers
from penstock.usecases.workers import agents
from tests.usecases.watched import WatchedStore

pytestmark = pytest.mark.usefixtures("by_flow")

TOKEN = "t" * 43
ADA = User(name="ada", created=START, version=1)
SITE = site_toml(
    targets={"default": {"limit": 2, "uses": {"cores": 2}}},
    wells={"locks": "lock"},
    resources={"bench": {"well": "locks", "limit": 1}, "licence": {"well": "locks", "limit": 2, "uses": {"memory": 1}}},
    quotas={"memory": 3, "cores": 6},
)
LIMITS = {"target/default": 2, "resource/bench": 1, "resource/licence": 2, "quota/memory": 3, "quota/cores": 6}


class Tale:
    """A site, two jobs, and one moment at which somebody else moves."""

    def __init__(self, at: int, intruder: Intruder) -> None:
        self.twin, self.store = Twin(), WatchedStore()
        self.twin.store = self.store
        object.__setattr__(self.twin.on, "store", self.store)
        self.on, self.at, self.intruder, self.commits, self.came = self.twin.on, at, intruder, 0, False
        self.expected = dict(LIMITS)
        self.paused: set[str] = set()
        self.act: Callable[[], object] = lambda: None
        with self.operating():
            apply.apply(self.on, "root", SITE, "site.toml")
            self.twin.run()
        self.first, self.second = (self._submit(names) for names in (["bench", "licence"], ["bench"]))
        self.commit = self.store.commit
        self.store.commit = self._racing  # type: ignore[method-assign]

    def _racing(self, changes: Sequence[Change]) -> bool:
        self.commits += 1
        if self.commits - 1 == self.at:
            self.store.commit = self.commit  # type: ignore[method-assign]
            self.came = True
            self.intruder(self)
        return self.commit(changes)

    def operating(self) -> _Operating:
        return _Operating(self.store)

    def _submit(self, names: list[str]) -> str:
        ask = SubmitJob("#!/bin/sh\n", resources=names, retries=1)
        return submit.submit(self.on, ADA, ask, None)

    def do(self, act: Callable[[], object]) -> None:
        """One act of the story; an agent may be refused by what the intruder did."""
        self.act = act
        with suppress(Refused):
            act()

    def deliver(self) -> None:
        """Everything that is due, one after the other."""
        for _ in range(1000):
            flows, messages = self.twin.flows, self.twin.queues.messages
            due = next((each for each in messages if each[0] <= self.twin.world.now()), None)
            if flows.settling:
                given = flows.settling.popleft()
                self.do(lambda given=given: settle.settle(self.on, *given))  # type: ignore[misc]
            elif due:
                messages.remove(due)
                self.do(lambda due=due: self.twin.take(due[1], due[2]))  # type: ignore[misc]
            else:
                return
        raise AssertionError("the messages never end")

    def sweep(self, seconds: float) -> None:
        self.twin.pass_time(seconds)
        self.do(lambda: sweep.sweep(self.on))
        self.deliver()

    def job(self, job: str) -> Job:
        found = self.store.get(job_key(job), Job)
        assert found
        return found

    def worker(self, job: str) -> Unit | None:
        rows = [
            row
            for row in self.store.rows.values()
            if isinstance(row, Unit) and row.lease.job == job and not row.lease.order
        ]
        return max(rows, key=lambda unit: unit.lease.attempt, default=None)

    def hello(self, job: str) -> None:
        worker = self.worker(job)
        if worker:
            key = drivers.bootstrap_key(self.on.signing_key(), worker.id)
            self.do(lambda: agents.hello(self.on, Hello(worker.id, key, TOKEN)))

    def heartbeat(self, job: str) -> None:
        self.do(lambda: agents.heartbeat(self.on, agents.authenticate(self.on, job, TOKEN)))

    def finish(self, job: str, result: Result = Result.SUCCEEDED) -> None:
        self.do(
            lambda: agents.report_finished(self.on, agents.authenticate(self.on, job, TOKEN), result, "it ended", 0)
        )

    def calm(self) -> None:
        """The intruder is gone, agents do their work, time passes: all is to come to its end."""
        self.store.commit = self.commit  # type: ignore[method-assign]
        with self.operating():
            for pool in self.paused:
                apply.pause(self.on, pool, paused=False)
        for _ in range(30):
            self.deliver()
            if self.is_over():
                return
            for job in (self.first, self.second):
                self.hello(job)
                self.deliver()
                self.finish(job)
                self.deliver()
            self.sweep(61)
        raise AssertionError([self.store.rows[job_key(job)] for job in (self.first, self.second)])

    def is_over(self) -> bool:
        rows = list(self.store.rows.values())
        return (
            all(row.is_settled for row in rows if isinstance(row, Job))
            and not [row for row in rows if isinstance(row, Unit) and row.state is not UnitState.GONE]
            and not [row for row in rows if isinstance(row, Claim)]
            and not [row for row in rows if isinstance(row, Pool) and row.due]
            and not self.twin.drivers.hand.made
        )

    def check(self) -> None:
        """In the end everything is there again, and as much of it as the operator said."""
        for name, limit in self.expected.items():
            pool = self.store.get(pool_key(name), Pool)
            assert pool
            assert pool.limit == limit, f"{name} has limit {pool.limit}, not {limit}"
            assert not pool.paused
            free = self.store.find(collection(name), "free#", Slot)
            assert len(free) == (0 if pool.is_amount else limit), f"{name} has {len(free)} free, not {limit}"
            assert pool.used == 0
            assert not self.store.find(collection(name), "held#", Slot)
        for job in (self.first, self.second):
            end = self.job(job)
            assert end.end.reason
            assert not end.cancellation.cancelled_by or end.end.outcome is not Outcome.ERRORED


class _Operating:
    def __init__(self, store: WatchedStore) -> None:
        self._store = store

    def __enter__(self) -> None:
        self._was, self._store.operator = self._store.operator, True

    def __exit__(self, *_: object) -> None:
        self._store.operator = self._was


Intruder = Callable[[Tale], None]


def again(tale: Tale) -> None:
    """The same message, delivered twice: the second function is the faster one."""
    with suppress(Refused):
        tale.act()


def others(tale: Tale) -> None:
    """Everything else that is under way."""
    tale.twin.run()


def everything(tale: Tale) -> None:
    """The same message, and then all that follows."""
    again(tale)
    tale.twin.run()


def agents_act(tale: Tale) -> None:
    for job in (tale.first, tale.second):
        tale.hello(job)
        tale.finish(job)
    tale.twin.run()


def cancel_first(tale: Tale) -> None:
    with suppress(Refused):
        cancel.cancel(tale.on, ADA, tale.first)
    tale.twin.run()


def cancel_both(tale: Tale) -> None:
    for job in (tale.first, tale.second):
        with suppress(Refused):
            cancel.cancel(tale.on, ADA, job)


def lose_first(tale: Tale) -> None:
    settle.settle(tale.on, tale.first, tale.job(tale.first).attempt, "Lost", "its flow ended")
    tale.twin.run()


def lose_second(tale: Tale) -> None:
    settle.settle(tale.on, tale.second, tale.job(tale.second).attempt, "Lost", "its flow ended")
    tale.twin.run()


def lower(tale: Tale) -> None:
    with tale.operating():
        for pool, limit in (("target/default", 1), ("quota/cores", 4)):
            apply.resize(tale.on, pool, limit, "root")
            tale.expected[pool] = limit
            resize.resize(tale.on, pool)


def raise_(tale: Tale) -> None:
    with tale.operating():
        for pool, limit in (("target/default", 3), ("quota/cores", 9), ("resource/bench", 2)):
            apply.resize(tale.on, pool, limit, "root")
            tale.expected[pool] = limit
    tale.twin.run()


def pause(tale: Tale) -> None:
    with tale.operating():
        for pool in LIMITS:
            apply.pause(tale.on, pool, paused=True)
            tale.paused.add(pool)


def silence(tale: Tale) -> None:
    """Nobody hears of an agent, and a minute later the sweep comes."""
    tale.twin.pass_time(121)
    sweep.sweep(tale.on)
    tale.twin.run()


INTRUDERS = (
    again, others, everything, agents_act, cancel_first, cancel_both, lose_first, lose_second, lower, raise_, pause,
    silence,
)  # fmt: skip


def succeed(tale: Tale) -> None:
    """Both jobs, one after the other, as it should be."""
    for job in (tale.first, tale.second):
        tale.deliver()
        tale.hello(job)
        tale.deliver()
        tale.heartbeat(job)
        tale.finish(job)
        tale.deliver()


def fall_silent(tale: Tale) -> None:
    """A worker is heard of no more; another never says hello; a driver is not ready at once, and another fails."""
    hand = tale.twin.drivers.hand
    hand.says = [NotYet(5, "it boots"), Misconfigured("no image")]
    tale.deliver()
    tale.sweep(30)
    tale.sweep(61)
    tale.hello(tale.first)
    tale.deliver()
    tale.sweep(121)
    tale.sweep(61)
    tale.sweep(1300)


def change_minds(tale: Tale) -> None:
    """Operators resize while jobs come and go; a job is cancelled, and its agent obeys."""
    tale.deliver()
    for pool, limit in (("target/default", 1), ("target/default", 3), ("quota/cores", 7)):
        with tale.operating():
            if not tale.came:
                tale.do(lambda pool=pool, limit=limit: apply.resize(tale.on, pool, limit, "root"))  # type: ignore[misc]
                tale.expected[pool] = limit
            tale.deliver()
    tale.hello(tale.first)
    tale.deliver()
    tale.do(lambda: cancel.cancel(tale.on, ADA, tale.first))
    tale.deliver()
    tale.finish(tale.first, Result.CANCELLED)
    tale.deliver()


def name(function: Callable[..., None]) -> str:
    return function.__name__.strip("_")


STORIES = (succeed, fall_silent, change_minds)
HARD = [(fall_silent, silence), (change_minds, agents_act), (change_minds, lower), (change_minds, silence)]
STRIDE = 6
"""`make test` tries every sixth commit, with the shortest story and those that are HARD; other ones for the next
intruder. `make prove` tries every commit with all stories.
"""
SAMPLE = [
    pytest.param(story, intruder, range(number % STRIDE, 500, STRIDE), id=f"{name(story)}-{name(intruder)}-sample")
    for number, (story, intruder) in enumerate([*((succeed, intruder) for intruder in INTRUDERS), *HARD])
]
EVERY = [
    pytest.param(story, intruder, range(500), id=f"{name(story)}-{name(intruder)}", marks=pytest.mark.long)
    for story in STORIES
    for intruder in INTRUDERS
]


@pytest.mark.parametrize(("story", "intruder", "commits"), [*SAMPLE, *EVERY])
def test_whoever_moves_between_a_reading_and_its_write(
    story: Callable[[Tale], None], intruder: Intruder, commits: range
) -> None:
    for at in commits:
        tale = Tale(at, intruder)
        story(tale)
        tale.calm()
        tale.check()
        if not tale.came:
            assert at > 20
            return
    raise AssertionError("the story never ends")
