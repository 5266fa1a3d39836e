"""Users of jobs and of leases without a job fight over one bench for an hour of virtual time."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from penstock.domain.commands import AcquireLease
from penstock.domain.jobs.jobs import Job, State
from penstock.domain.pools.pools import Lease
from penstock.domain.users.users import User
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.jobs import leases, submit_lease
from penstock.usecases.workers import agents
from tests.usecases.exact import lease_of_or_none, site
from tests.usecases.steps import TOKEN, finish, hello, job_of, submit, told

ADA, BEA = (User(name=name, created=START, version=1) for name in ("ada", "bea"))
EACH = 3
"""How many jobs, and how many leases, are asked for at any time."""


def bench(**more: dict[str, object]) -> Twin:
    return site(
        site_toml(
            targets={"linux": {"limit": 2 * EACH}, "default": "linux"},
            wells={"locks": "lock"},
            resources={"bench": {"well": "locks", "names": ["bench-1"]}},
            **more,
        )
    )


@dataclass
class Fight:
    """Ada has jobs, Bea has leases; each asks again as soon as it has had the bench."""

    twin: Twin
    dice: random.Random
    asked: list[str] = field(default_factory=list)
    held: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)
    fences: dict[str, int] = field(default_factory=dict)
    running: dict[str, datetime] = field(default_factory=dict)

    def ask(self, owner: str) -> None:
        if owner == "ada":
            self.asked.append(submit(self.twin, ADA, resources=["bench"]))
        else:
            self.asked.append(submit_lease.acquire(self.twin.on, BEA, AcquireLease(["bench"], for_="30m"), None))

    def lease(self, job: str) -> Lease | None:
        found = lease_of_or_none(self.twin, job, 1)
        return found if found and found.fence else None

    def step(self) -> None:
        """A minute passes: who got the bench begins, who has had it long enough gives it back and asks again."""
        self.twin.pass_time(60)
        for id in self.running:
            if not job_of(self.twin, id).is_lease:
                agents.heartbeat(self.twin.on, agents.authenticate(self.twin.on, id, TOKEN))
        usecases_sweep.sweep(self.twin.on)
        self.twin.run()
        for id in [each for each in self.asked if each not in self.fences]:
            found = self.lease(id)
            if found:
                self.begin(job_of(self.twin, id), found)
        for id in [each for each, until in self.running.items() if until <= self.twin.world.now()]:
            self.end(job_of(self.twin, id))

    def begin(self, job: Job, lease: Lease) -> None:
        assert lease.fence
        assert lease.granted
        self.fences[job.id] = lease.fence
        if not job.is_lease:
            hello(self.twin, job.id)
        assert job_of(self.twin, job.id).state is State.RUNNING, told(self.twin, job.id)
        self.running[job.id] = self.twin.world.now() + timedelta(minutes=self.dice.randint(0, 2))

    def end(self, job: Job) -> None:
        del self.running[job.id]
        granted = self.lease(job.id)
        assert granted
        assert granted.granted
        self.held[job.id] = granted.granted, self.twin.world.now()
        if job.is_lease:
            leases.release(self.twin.on, BEA, job.id)
        else:
            finish(self.twin, job.id)
        self.twin.run()
        self.ask(job.owner)
        self.twin.run()

    def last(self, minutes: int) -> None:
        for number in range(2 * EACH):
            self.ask("ada" if number % 2 else "bea")
        self.twin.run()
        for _ in range(minutes):
            self.step()

    def seconds(self, owner: str) -> float:
        spans = [span for id, span in self.held.items() if job_of(self.twin, id).owner == owner]
        return sum((end - begin).total_seconds() for begin, end in spans)


@pytest.mark.parametrize("seed", range(3))
def test_nobody_overtakes_and_every_grant_has_the_next_fence(seed: int) -> None:
    """QUEUE-2, SLOT-1, SLOT-3: they get the bench in the order in which they asked, one after the other."""
    fight = Fight(bench(), random.Random(seed))
    fight.last(60)
    got = sorted(fight.fences, key=lambda id: fight.fences[id])
    assert len(got) > 20
    assert got == fight.asked[: len(got)]
    assert [fight.fences[id] for id in got] == list(range(1, len(got) + 1))
    spans = [fight.held[id] for id in got if id in fight.held]
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert {job_of(fight.twin, id).is_lease for id in got} == {True, False}


def test_leases_and_jobs_share_by_weight() -> None:
    """QUEUE-2: whoever has the greater weight has it for longer, whatever they ask with."""
    parts = {}
    for weights in ({"ada": 3}, {"bea": 3}):
        fight = Fight(bench(shares={"half_life": "20m", "weights": weights}), random.Random(7))
        fight.last(120)
        parts[next(iter(weights))] = fight.seconds("ada") / (fight.seconds("ada") + fight.seconds("bea"))
        assert sorted(fight.fences.values()) == list(range(1, len(fight.fences) + 1))
    assert parts["bea"] < 0.45 < 0.55 < parts["ada"], parts
