"""One job on Fargate through the whole core, with every call to ECS in turn crashed or refused. [JOB-1] [JOB-2]
[UNIT-1]

The core is the real one on its twin's store and queues; the container's part is played from the overrides that its task
was given. Whatever happens, the job settles, at most one task runs it, and nothing is left.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.domain.commands import Hello
from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.domain.pools.pools import SlotState
from penstock.domain.users.users import User
from penstock.drivers import MAKER
from penstock.drivers.factories.aws.tags import SITE
from penstock.drivers.factories.fargate import boot
from penstock.drivers.factories.fargate.factory import FargateFactory
from penstock.kernel.errors import Refused
from penstock.testing.site import site_toml
from penstock.testing.twin import TestDrivers, Twin
from penstock.usecases import sweep
from penstock.usecases.jobs import jobs
from penstock.usecases.logs import logs
from penstock.usecases.site import apply
from penstock.usecases.units import cloud_events
from penstock.usecases.workers import agents
from tests.fargate.fake import INTERRUPTED, Ecs, Made
from tests.fargate.helpers import HERE, IMAGE, OWN, SETTINGS, event
from tests.played import Crash
from tests.usecases.steps import job_of, slots, submit

ADA = User(name="ada", created=datetime(2026, 1, 1, tzinfo=UTC), version=1)
CONFIG = site_toml(
    factories={"tasks": {"driver": "fargate", **SETTINGS, "market": "spot-first"}},
    targets={"default": {"factory": "tasks"}},
)
CALLS = ("ListTasks", "DescribeTasks", "DescribeTaskDefinition", "RegisterTaskDefinition", "RunTask", "StopTask")


class Serverless(TestDrivers):
    """The real driver, at the fake."""

    __test__ = False

    def __init__(self, ecs: Ecs) -> None:
        super().__init__()
        self.ecs = ecs

    def factory(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Any:
        return FargateFactory(settings, {SITE: HERE, MAKER: name}, self.ecs.at)


@dataclass
class Whole:
    """A site, its cluster, and those who pass the time in both."""

    ecs: Ecs
    twin: Twin
    welcome: list[tuple[str, str]] = field(default_factory=list)

    def go_on(self, seconds: int) -> None:
        """Some time passes; whatever is due is done, and dies where it must."""
        self.twin.pass_time(seconds)
        self.ecs.now += seconds
        for step in (self.twin.run, lambda: sweep.sweep(self.twin.on), self.twin.run):
            with suppress(Crash):
                step()

    def boot(self) -> None:
        """Every container that runs says hello, as it was told to; one that is refused ends."""
        for task in list(self.ecs.alive()):
            if self.ecs.state(task) != "RUNNING" or any(task.arn == one for _, one in self.welcome):
                continue
            config = config_of(task)
            try:
                agents.hello(self.twin.on, Hello(config["worker"], config["key"], f"{task.id:t>43}"))
            except Refused as refused:
                if refused.status != 429:
                    self.ecs.end(task.arn, "EssentialContainerExited", "Essential container in task exited")
            else:
                self.welcome.append((config["worker"], task.arn))

    def work(self, job: str) -> None:
        """The task that was welcome runs the job to its end."""
        for _, arn in self.welcome:
            with suppress(Refused, Crash):
                caller = agents.authenticate(self.twin.on, job, f"{self.ecs.tasks[arn].id:t>43}")
                agents.report_finished(self.twin.on, caller, Result.SUCCEEDED, "the script ended", 0)


def config_of(task: Made) -> dict[str, str]:
    (overrides,) = task.wanted["overrides"]["containerOverrides"]
    given = {each["name"]: each["value"] for each in overrides["environment"]}
    read: dict[str, str] = json.loads(given[boot.GIVEN])["config"]
    return read


@pytest.fixture
def whole(ecs: Ecs) -> Whole:
    twin = Twin()
    twin.drivers = Serverless(ecs)
    object.__setattr__(twin.on, "drivers", twin.drivers)
    apply.apply(twin.on, "admin", CONFIG, "site.toml")
    twin.run()
    return Whole(ecs, twin)


def live(whole: Whole, **ask: object) -> str:
    """A job from its submission until nothing is left of it."""
    job = submit(whole.twin, ADA, **ask)
    with suppress(Crash):
        whole.twin.run()
    return see_off(whole, job)


def see_off(whole: Whole, job: str) -> str:
    """Half an hour, and as long again as it takes to put back what a settled job has left."""
    for _ in range(60):
        whole.go_on(31)
        whole.boot()
        whole.work(job)
        if job_of(whole.twin, job).state is State.SETTLED and slots(whole.twin, "target/default", SlotState.FREE):
            break
    for _ in range(12):
        whole.go_on(31)
    return job


def assert_it_went_well(whole: Whole, job: str) -> None:
    settled = job_of(whole.twin, job)
    assert (settled.state, settled.end.outcome) == (State.SETTLED, Outcome.SUCCEEDED), jobs.explain(
        whole.twin.on, settled
    )
    workers = [worker for worker, _ in whole.welcome]
    assert len(workers) == len(set(workers)), "two tasks were welcome as one worker"
    assert list(whole.ecs.alive()) == []
    assert slots(whole.twin, "target/default", SlotState.FREE) == ["1"]


def test_nothing_goes_wrong(whole: Whole) -> None:
    assert_it_went_well(whole, live(whole))
    assert len(whole.ecs.tasks) == 1


@pytest.mark.parametrize("lag", [0, 40])
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("call", CALLS)
def test_a_crash_beside_every_call(whole: Whole, call: str, nth: int, side: str, lag: int) -> None:
    whole.ecs.lag = lag
    whole.ecs.crashes[call, side] = nth
    assert_it_went_well(whole, live(whole))
    assert len(whole.ecs.tasks) == 1


@pytest.mark.parametrize("code", ["ThrottlingException", "ServerException", "NeverHeardOf", "AccessDeniedException"])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_is_refused_for_a_while(whole: Whole, call: str, code: str) -> None:
    whole.ecs.fail(call, code, times=4)
    assert_it_went_well(whole, live(whole))


def test_a_shortage_that_passes(whole: Whole) -> None:
    """The job waits, and says for what; ECS's memory of the refusal does not keep it waiting."""
    whole.ecs.short = {("*", "*")}
    job = submit(whole.twin, ADA)
    whole.twin.run()
    whole.go_on(31)
    assert any("Capacity is unavailable" in line.line.payload for line in logs.read(whole.twin.on, job, 0, 99))
    whole.ecs.short = {("spot", "*")}
    assert_it_went_well(whole, see_off(whole, job))
    assert [each.market for each in whole.ecs.tasks.values()] == ["on-demand"]


def test_a_task_that_is_interrupted_is_replaced(whole: Whole) -> None:
    job = submit(whole.twin, ADA)
    whole.twin.run()
    whole.go_on(5)
    whole.boot()
    (task,) = whole.ecs.tasks.values()
    whole.ecs.end(task.arn, "SpotInterruption", INTERRUPTED)
    warned = event(task, lastStatus="RUNNING", stopCode="SpotInterruption", stoppedReason=INTERRUPTED)
    cloud_events.handle(whole.twin.on, warned)
    assert any("ECS interrupts the spot task" in line.line.payload for line in logs.read(whole.twin.on, job, 0, 99))
    whole.ecs.now += 30
    cloud_events.handle(whole.twin.on, event(task, lastStatus="STOPPED", stopCode="SpotInterruption"))
    whole.twin.run()
    assert_it_went_well(whole, see_off(whole, job))
    assert len(whole.ecs.tasks) == 2


def test_a_jobs_own_image(whole: Whole) -> None:
    whole.ecs.boot = 40
    assert_it_went_well(whole, live(whole, image=OWN))
    assert len(whole.ecs.tasks) == 1
    (definition,) = whole.ecs.definitions.values()
    assert definition["containerDefinitions"][0]["image"] == OWN


def test_a_jobs_own_image_that_there_is_not_fails_the_job_and_nothing_else(whole: Whole) -> None:
    whole.ecs.missing = {OWN: "manifest unknown"}
    job = live(whole, image=OWN)
    settled = job_of(whole.twin, job)
    assert (settled.state, settled.end.outcome) == (State.SETTLED, Outcome.FAILED)
    assert "cannot be had" in str(jobs.explain(whole.twin.on, settled))
    assert list(whole.ecs.alive()) == []
    assert_it_went_well(whole, live(whole))


def test_an_image_of_the_site_that_there_is_not_is_told_in_the_jobs_log(whole: Whole) -> None:
    whole.ecs.missing = {IMAGE: "manifest unknown"}
    job = submit(whole.twin, ADA)
    whole.twin.run()
    whole.go_on(5)
    (task,) = whole.ecs.tasks.values()
    detail = {"lastStatus": "STOPPED", "stopCode": "TaskFailedToStart", "stoppedReason": task.why}
    cloud_events.handle(whole.twin.on, event(task, **detail))
    said = [line.line.payload for line in logs.read(whole.twin.on, job, 0, 99)]
    assert any("CannotPullContainerError: manifest unknown" in each for each in said)
