"""No commit writes over, or deletes, a row that moved since it was read.

[SLOT-1] [SLOT-3] [JOB-1] [JOB-2] [UNIT-2] [UNIT-3]

Somebody else writes one row that a commit is about to change, just before it, and nothing besides: so each row of a
commit must be guarded by a condition of its own, not by that of another. Then the story goes on to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from penstock.domain.commands import Hello
from penstock.domain.jobs.jobs import Job, Result
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured
from penstock.kernel.rows import Change, Create, Replace, Row, key_of
from penstock.ports import NotYet, Order, Ready
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases import sweep
from penstock.usecases.jobs import cancel
from penstock.usecases.pools import scheduler
from penstock.usecases.site import apply
from penstock.usecases.units import advance, drivers, maintenance
from penstock.usecases.workers import agents
from tests.usecases.steps import submit, worker_of
from tests.usecases.warm import unit_of, worker_at_rest
from tests.usecases.watched import _kind

SITE = site_toml(
    targets={
        "default": {"limit": 2, "uses": {"cores": 2}, "warm": {"max": 1, "idle": "10m", "reuse": 3, "life": "1h"}}
    },
    wells={"spring": "hand"},
    resources={"bench": {"well": "spring", "limit": 1}, "licence": {"well": "spring", "limit": 2}},
    quotas={"cores": 6},
)
TWO = {"a": {"type": "licence"}, "b": {"type": "licence"}, "bench": {"type": "bench"}}


class Meddler:
    """Writes each row of each kind of commit once, just before that commit."""

    def __init__(self, twin: Twin) -> None:
        self.twin, self.commit, self.done = twin, twin.store.commit, set[Any]()
        self.wrong: list[str] = []  # noted, for the sweep goes on whatever is raised
        twin.store.commit = self.meddle  # type: ignore[method-assign]

    def meddle(self, changes: Sequence[Change]) -> bool:
        kind = tuple(_kind(each) for each in changes)
        for at, change in enumerate(changes):
            if (kind, at) not in self.done and not isinstance(change, Create):
                self.done.add((kind, at))
                return self.between(change, changes)
        return self.commit(changes)

    def between(self, change: Change, changes: Sequence[Change]) -> bool:
        key = key_of(change)
        row = self.twin.store.get(key, Row)
        assert row
        assert self.commit([Replace(row, row)])
        written = self.commit(changes)
        now = self.twin.store.get(key, Row)
        if written or now is None or now.version != row.version + 1:
            self.wrong.append(f"{row} became {now}, as if nobody had written it in between")
        return written


class Site:
    """A site with its jobs, agents and sweeps."""

    def __init__(self, ada: User) -> None:
        self.twin, self.ada, self.made = Twin(), ada, list[str]()
        self.on = self.twin.on
        apply.apply(self.on, "root", SITE, "site.toml")
        self.twin.run()
        self.meddler = Meddler(self.twin)

    def submit(self, **ask: Any) -> str:
        self.made.append(submit(self.twin, self.ada, **ask))
        return self.made[-1]

    def rows(self, kind: type[Any]) -> list[Any]:
        return [row for row in self.twin.store.rows.values() if isinstance(row, kind)]

    def sweep(self, seconds: float) -> None:
        self.twin.pass_time(seconds)
        sweep.sweep(self.on)
        self.twin.run()

    def sweep_until(self, is_done: Callable[[], bool]) -> None:
        for _ in range(30):  # a nudge that comes to nothing is not repeated by the very next sweep
            if is_done():
                return
            self.sweep(21)
        raise AssertionError(self.rows(Unit))

    def agents_act(self, result: Result = Result.SUCCEEDED) -> None:
        """Whatever agents there are say hello, and that they ended."""
        for unit in self.rows(Unit):
            if unit.is_a is UnitKind.WORKER and unit.state is UnitState.CREATING and unit.creation.made:
                self.hello(unit)
        for job in self.rows(Job):
            if job.run.worker and not job.is_settled and not job.run.report:
                caller = agents.authenticate(self.on, job.id, _token(job.attempt, job.id))
                agents.heartbeat(self.on, caller)
                agents.report_finished(self.on, caller, result, "it ended", 0)
        self.twin.run()

    def hello(self, unit: Unit) -> None:
        key = drivers.bootstrap_key(self.on.signing_key(), unit.id)
        if unit.lease.leases == 1:
            agents.hello(self.on, Hello(unit.id, key, _token(unit.lease.attempt, unit.lease.job)))
        self.twin.run()

    def end(self) -> None:
        for _ in range(80):
            self.twin.run()
            if all(job.is_settled for job in self.rows(Job)) and self.is_empty():
                return
            self.agents_act()
            self.sweep(61)
        raise AssertionError(self.rows(Job))

    def is_empty(self) -> bool:
        return all(unit.state is UnitState.GONE for unit in self.rows(Unit)) and not self.twin.drivers.hand.made


def _token(attempt: int, job: str) -> str:
    return f"{attempt}{job}" + "t" * 43


def succeed(site: Site) -> None:
    """Three jobs, of which one waits for the others, and is overtaken."""
    for resources in (TWO, ["licence"], ["bench", "licence"]):
        site.submit(resources=resources)
    for _ in range(8):
        site.twin.run()
        site.agents_act()


def tell_again(site: Site) -> None:
    """A step is told again by another flow than the one that waits; and an agent is lost that reported."""
    job = site.submit()
    site.twin.drivers.hand.says = [NotYet(5, "it boots")] * 2
    site.twin.run()
    for token in ("one", "two", str(site.twin.flows.executions[job, 1].token)):
        scheduler.acquire(site.on, job, 1, 0, token)
    site.sweep(61)
    site.sweep(61)
    for unit in site.rows(Unit):
        site.hello(unit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site.twin.flows, "succeed", lambda token: None)
        site.agents_act()
        for _ in range(3):
            for unit in site.rows(Unit):
                if unit.state is UnitState.READY:
                    site.twin.pass_time(100)
                    advance.advance(site.on, unit.id)


def two_at_once(site: Site) -> None:
    """A step of two leases, of which one is ready and one is not, until its flow is reminded."""
    basin = site.twin.drivers.basin
    basin.says = [NotYet(5, "one"), Misconfigured("two")]
    site.submit(resources=TWO)
    site.twin.run()
    create, slow = basin.create, list[str]()

    def create_one(order: Order) -> Ready | NotYet:
        slow.extend([order.id] if not slow and order.type == "licence" else [])
        return NotYet(300, "three") if order.id in slow else create(order)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(basin, "create", create_one)
        for _ in range(4):
            site.sweep(121)
    for _ in range(6):
        site.sweep(121)


def fall_silent(site: Site) -> None:
    """Workers of which nothing is heard: before they say hello, while they run, and while they cancel."""
    site.twin.drivers.hand.says = [NotYet(5, "it boots"), Misconfigured("no image")]
    first, _ = (site.submit(retries=2) for _ in range(2))
    for seconds in (16, 46, 91, 1300, 61, 61):
        site.sweep(seconds)
    for unit in site.rows(Unit):
        if unit.state is UnitState.CREATING and unit.creation.made:
            site.hello(unit)
    cancel.cancel(site.on, site.ada, first)
    for seconds in (121, 46, 61, 1300):
        site.sweep(seconds)


def lose_messages(site: Site) -> None:
    """Nothing that is sent arrives: the sweep reminds everybody, and gives up flows that stand still."""
    site.submit(resources=["bench"])
    for seconds in (61, 61, 601, 61, 601):
        site.twin.queues.messages.clear()
        site.sweep(seconds)


def stand_still(site: Site) -> None:
    """A flow stops between two steps, after what it waited for was there."""
    site.submit(resources=["bench"])
    site.twin.flows.succeed = lambda token: None  # type: ignore[method-assign]
    for seconds in (1, 121, 121, 601, 61, 601):
        site.sweep(seconds)
    del site.twin.flows.succeed


def fail(site: Site) -> None:
    """Amounts and slots come back while the operator changes them."""
    for _ in range(3):
        site.submit(resources=["licence"])
    site.twin.run()
    apply.resize(site.on, "target/default", 1)
    apply.resize(site.on, "quota/cores", 3)
    for _ in range(3):
        site.agents_act(Result.FAILED)
    cancel.cancel(site.on, site.ada, site.made[-1])


def hold_and_release(site: Site) -> None:
    """Operators hold what runs and what is idle; a hold is released, runs out, and outlasts the unit's place."""
    job = site.submit(resources=["bench"])
    site.sweep_until(lambda: len(site.rows(Unit)) == 2)
    site.hello(worker_of(site.twin, job))
    for unit in site.rows(Unit):
        assert unit.state is UnitState.READY
        _hold(site, unit.is_a, unit.id)
        maintenance.release(site.on, site.ada, unit.is_a, unit.id)
    site.end()
    worker = worker_at_rest(site.twin, site.ada, "default").worker
    _hold(site, UnitKind.WORKER, worker)
    site.sweep_until(lambda: unit_of(site.twin, worker).hold is None)
    _hold(site, UnitKind.WORKER, worker)
    maintenance.release(site.on, site.ada, UnitKind.WORKER, worker)
    _hold(site, UnitKind.WORKER, worker)
    apply.resize(site.on, "target/default", 0)
    assert maintenance.release(site.on, site.ada, UnitKind.WORKER, worker).state is UnitState.DIRTY


def _hold(site: Site, is_a: UnitKind, unit: str) -> None:
    maintenance.hold(site.on, site.ada, is_a, unit, "looking", 20)


def drain_and_recycle(site: Site) -> None:
    """Operators drain and recycle workers that boot, run a script, and are idle."""
    for remove in (maintenance.drain, maintenance.recycle):
        for is_running in (False, True):
            job = site.submit()
            site.twin.run()
            worker = worker_of(site.twin, job)
            if is_running:
                site.hello(worker)
            remove(site.on, site.ada, UnitKind.WORKER, worker.id, "it swaps")
            site.end()
        idle = worker_at_rest(site.twin, site.ada, "default").worker
        assert remove(site.on, site.ada, UnitKind.WORKER, idle, "it swaps").state is UnitState.DIRTY
        site.end()


STORIES = (
    succeed, tell_again, two_at_once, fall_silent, lose_messages, stand_still, fail, hold_and_release,
    drain_and_recycle,
)  # fmt: skip


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_no_row_is_written_over_that_moved_since_it_was_read(story: Callable[[Site], None], ada: User) -> None:
    site = Site(ada)
    story(site)
    site.end()
    assert site.meddler.wrong == []
    assert len(site.meddler.done) > 15
