"""One job on EC2 through the whole core, with every call to EC2 in turn crashed or refused. [JOB-1] [JOB-2] [UNIT-1]

The core is the real one on its twin's store and queues; the machine's part is played from the user data that it was
given. Whatever happens, the job settles, at most one machine runs it, and nothing is left.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
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
from penstock.drivers.factories.ec2.factory import LISTING_LAG, Ec2Factory
from penstock.kernel.errors import Refused
from penstock.testing.site import site_toml
from penstock.testing.twin import TestDrivers, Twin
from penstock.usecases import sweep
from penstock.usecases.jobs import cancel, jobs
from penstock.usecases.logs import logs
from penstock.usecases.site import apply
from penstock.usecases.units import cloud_events
from penstock.usecases.workers import agents
from tests.ec2.authority import authority
from tests.ec2.events import ends, event
from tests.ec2.fake import Ec2, Instance
from tests.ec2.helpers import HERE
from tests.played import Crash
from tests.usecases.steps import job_of, slots, submit

ADA = User(name="ada", created=datetime(2026, 1, 1, tzinfo=UTC), version=1)
CONFIG = site_toml(
    factories={
        "aws": {
            "driver": "ec2",
            "region": "eu-west-1",
            "image": "ami-0a",
            "types": ["m7g.large", "m7a.large"],
            "subnets": ["subnet-a", "subnet-b"],
            "market": "spot-first",
        }
    },
    targets={"default": {"factory": "aws"}},
)
CALLS = ("DescribeInstances", "RunInstances", "TerminateInstances", "DescribeVolumes")


class Elastic(TestDrivers):
    """The real driver, at the fake."""

    __test__ = False

    def __init__(self, ec2: Ec2) -> None:
        super().__init__()
        self.ec2, self.slowness = ec2, 0

    def factory(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Any:
        """For it, each call to EC2 takes so many seconds."""
        here = {SITE: HERE, MAKER: name}
        return Ec2Factory(settings, here, self.ec2.client, lambda: float(self.ec2.now * self.slowness))


@dataclass
class Whole:
    """A site, its cloud, and those who pass the time in both."""

    ec2: Ec2
    twin: Twin
    welcome: list[tuple[str, str]] = field(default_factory=list)

    def go_on(self, seconds: int) -> None:
        """Some time passes; whatever is due is done, and dies where it must."""
        self.twin.pass_time(seconds)
        self.ec2.now += seconds
        for step in (self.twin.run, lambda: sweep.sweep(self.twin.on), self.twin.run):
            with suppress(Crash):
                step()

    def boot(self) -> None:
        """Every machine that runs says hello, as its user data tells it to; one that is refused powers itself off.

        One that is told to come again does that.
        """
        for machine in list(self.ec2.alive()):
            if self.ec2.state(machine) != "running" or any(machine.id == one for _, one in self.welcome):
                continue
            config = config_of(machine)
            token = f"{machine.id:t>43}"
            shown = authority().shown(instanceId=machine.id) if "identity" in config else {}
            try:
                agents.hello(self.twin.on, Hello(config["worker"], config["key"], token, **shown))
            except Refused as refused:
                if refused.status != 429:
                    self.ec2.end(machine.id, "Client.InstanceInitiatedShutdown")
            else:
                self.welcome.append((config["worker"], machine.id))

    def work(self, job: str) -> None:
        """The machine that was welcome runs the job to its end."""
        for _, machine in self.welcome:
            with suppress(Refused, Crash):
                caller = agents.authenticate(self.twin.on, job, f"{machine:t>43}")
                agents.report_finished(self.twin.on, caller, Result.SUCCEEDED, "the script ended", 0)


def config_of(machine: Instance) -> dict[str, str]:
    data = base64.b64decode(machine.wanted["UserData"]).decode()
    found = re.search(r"<<'CONFIG'\n(.*)\nCONFIG\n", data)
    assert found
    read: dict[str, str] = json.loads(found[1])
    return read


@pytest.fixture
def whole(ec2: Ec2) -> Whole:
    twin = Twin()
    twin.drivers = Elastic(ec2)
    object.__setattr__(twin.on, "drivers", twin.drivers)
    apply.apply(twin.on, "admin", CONFIG, "site.toml")
    twin.run()
    return Whole(ec2, twin)


def live(whole: Whole) -> str:
    """A job from its submission until nothing is left of it."""
    job = submit(whole.twin, ADA)
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
    for _ in range(5):
        whole.go_on(31)
    return job


def assert_it_went_well(whole: Whole, job: str) -> None:
    settled = job_of(whole.twin, job)
    assert (settled.state, settled.end.outcome) == (State.SETTLED, Outcome.SUCCEEDED), jobs.explain(
        whole.twin.on, settled
    )
    workers = [worker for worker, _ in whole.welcome]
    assert len(workers) == len(set(workers)), "two machines were welcome as one worker"
    assert list(whole.ec2.alive()) == []
    assert slots(whole.twin, "target/default", SlotState.FREE) == ["1"]
    whole.ec2.DescribeVolumes({})
    assert whole.ec2.volumes == {}


def test_nothing_goes_wrong(whole: Whole) -> None:
    assert_it_went_well(whole, live(whole))
    assert len(whole.ec2.instances) == 1


@pytest.mark.parametrize("lag", [0, 40])
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("call", CALLS)
def test_a_crash_beside_every_call(whole: Whole, call: str, nth: int, side: str, lag: int) -> None:
    whole.ec2.lag = lag
    whole.ec2.crashes[call, side] = nth
    assert_it_went_well(whole, live(whole))
    assert len(whole.ec2.instances) == 1


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "InternalError", "NeverHeardOf", "UnauthorizedOperation"])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_is_refused_for_a_while(whole: Whole, call: str, code: str) -> None:
    whole.ec2.fail(call, code, times=4)
    assert_it_went_well(whole, live(whole))


def test_shortages_that_pass(whole: Whole) -> None:
    """The job waits, and says for what."""
    whole.ec2.short = {("*", "*", "spot"), ("*", "*", "on-demand")}
    job = submit(whole.twin, ADA)
    whole.twin.run()
    whole.go_on(31)
    assert any("InsufficientInstanceCapacity" in event.line.payload for event in logs.read(whole.twin.on, job, 0, 99))
    whole.ec2.short = {("*", "*", "spot")}
    assert_it_went_well(whole, see_off(whole, job))
    assert [each.market for each in whole.ec2.instances.values()] == ["on-demand"]


def test_one_create_has_no_time_for_all_and_the_next_goes_on_at_once(whole: Whole) -> None:
    """Also for a job that is alone: nobody else goes on behind what it met."""
    assert isinstance(whole.twin.drivers, Elastic)
    whole.twin.drivers.slowness = 10
    whole.ec2.short = {("*", "*", "spot")}
    job = submit(whole.twin, ADA)
    whole.twin.run()
    whole.go_on(31)
    assert [each.market for each in whole.ec2.instances.values()] == ["on-demand"]
    assert len(whole.ec2.tries()) == len(set(whole.ec2.tries())) == 5
    assert_it_went_well(whole, see_off(whole, job))


def test_a_shortage_that_lasts_costs_its_probes_and_no_other_call(whole: Whole) -> None:
    """Jobs that wait for what there is none of do not list machines each time that they look."""
    apply.apply(whole.twin.on, "admin", f"{CONFIG}limit = 4\n", "site.toml")
    whole.ec2.short = {("*", "*", "spot"), ("*", "*", "on-demand")}
    found = [submit(whole.twin, ADA) for _ in range(4)]
    whole.twin.run()
    for _ in range(20):
        whole.go_on(31)
    before = Counter(name for name, _ in whole.ec2.calls)
    for _ in range(60):
        whole.go_on(31)
    calls = Counter(name for name, _ in whole.ec2.calls) - before
    lists = calls["DescribeInstances"] - 31 * 60 // 180  # the sweep's own
    assert calls["RunInstances"] == 8, "one probe, of two types in two subnets on two markets"
    assert lists <= len(found), "not one for each in half an hour, but for who probes"
    assert all(job_of(whole.twin, job).state is State.ACQUIRING for job in found)


def test_a_machine_that_dies_at_boot_is_reported_and_replaced(whole: Whole) -> None:
    job = submit(whole.twin, ADA)
    whole.twin.run()
    (first,) = whole.ec2.instances
    whole.ec2.end(first, "Server.InternalError: the host failed")
    assert_it_went_well(whole, see_off(whole, job))
    assert job_of(whole.twin, job).attempt == 2
    assert any("the host failed" in event.line.payload for event in logs.read(whole.twin.on, job, 0, 99))


def test_a_machine_whose_end_is_announced_is_replaced_at_once(whole: Whole) -> None:
    """And not when its lease runs out; events come twice, and for what we end ourselves as well."""
    job = submit(whole.twin, ADA)
    whole.twin.run()
    whole.go_on(31)
    whole.boot()
    (first,) = whole.ec2.instances
    whole.ec2.end(first, "Server.SpotInstanceTermination")
    for _ in range(2):
        cloud_events.handle(whole.twin.on, ends(first))
    whole.twin.run()
    assert job_of(whole.twin, job).attempt == 2
    assert f"EC2 reports that {first} is terminated" in job_of(whole.twin, job).history.attempts[0].reason
    assert_it_went_well(whole, see_off(whole, job))
    for machine in whole.ec2.instances:
        cloud_events.handle(whole.twin.on, ends(machine))
    assert_it_went_well(whole, job)


def test_what_a_machine_printed_that_ended_at_boot_is_told_when_its_end_is(whole: Whole) -> None:
    job = submit(whole.twin, ADA)
    whole.twin.run()
    (first,) = whole.ec2.instances
    whole.ec2.consoles[first] = "kernel panic"
    whole.ec2.end(first, "Client.InstanceInitiatedShutdown")
    cloud_events.handle(whole.twin.on, ends(first))
    assert "kernel panic" in [event.line.payload for event in logs.read(whole.twin.on, job, 0, 99)]
    assert_it_went_well(whole, see_off(whole, job))


def test_a_spot_machine_that_is_taken_back_finishes_what_it_can(whole: Whole) -> None:
    job = submit(whole.twin, ADA)
    whole.twin.run()
    (first,) = whole.ec2.instances
    cloud_events.handle(whole.twin.on, event("EC2 Spot Instance Interruption Warning", **{"instance-id": first}))
    assert_it_went_well(whole, see_off(whole, job))
    assert job_of(whole.twin, job).attempt == 1


@pytest.fixture
def strict(whole: Whole) -> Whole:
    """A site that lets only the machines in that it launched."""
    papers = CONFIG.replace("[targets", f'identity = """\n{authority().pem}"""\n[targets', 1)
    apply.apply(whole.twin.on, "admin", papers, "site.toml")
    whole.twin.run()
    return whole


def test_a_machine_that_shows_what_it_is_is_let_in(strict: Whole) -> None:
    assert_it_went_well(strict, live(strict))
    assert len(strict.ec2.instances) == 1


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_crash_beside_the_launch_lets_no_other_machine_in_and_this_one_in_the_end(strict: Whole, side: str) -> None:
    """Its hello may come before its row says which machine was made: it is told to come again."""
    strict.ec2.crashes["RunInstances", side] = 1
    assert_it_went_well(strict, live(strict))
    assert len(strict.ec2.instances) == 1


def test_who_stole_the_user_data_is_not_let_in(strict: Whole) -> None:
    """SEC-2: with the key, and with an identity that AWS signed, of a machine of the thief's own."""
    job = submit(strict.twin, ADA)
    strict.twin.run()
    (machine,) = strict.ec2.instances.values()
    config = config_of(machine)
    for shown in ({}, authority().shown(instanceId="i-0"), authority(1024, 2).shown(instanceId=machine.id)):
        with pytest.raises(Refused) as refused:
            agents.hello(strict.twin.on, Hello(config["worker"], config["key"], "s" * 43, **shown))
        assert refused.value.status == 401
    assert_it_went_well(strict, see_off(strict, job))
    assert job_of(strict.twin, job).attempt == 1


def test_a_job_that_is_cancelled_at_once_leaves_no_machine(whole: Whole) -> None:
    """While EC2's lists do not show yet what was just launched."""
    whole.ec2.lag = 40
    job = submit(whole.twin, ADA)
    whole.twin.run()
    cancel.cancel(whole.twin.on, ADA, job)
    for _ in range(20):
        whole.go_on(11)
    assert job_of(whole.twin, job).end.outcome is Outcome.CANCELLED
    assert list(whole.ec2.alive()) == []
    assert slots(whole.twin, "target/default", SlotState.FREE) == ["1"]


@pytest.mark.parametrize("lag", [50, 280])
@pytest.mark.parametrize("is_lost", [False, True], ids=["answered", "answer lost"])
def test_a_machine_that_was_waited_for_is_not_taken_for_gone(whole: Whole, is_lost: bool, lag: int) -> None:
    """UNIT-1: the lists lag behind the launch, by minutes, and not behind the order, which was ten minutes before."""
    whole.ec2.short = {("*", "*", "spot"), ("*", "*", "on-demand")}
    job = submit(whole.twin, ADA)
    for _ in range(20):
        whole.go_on(31)
    whole.ec2.short, whole.ec2.lag = set(), lag
    whole.ec2.crashes["RunInstances", "after"] = int(is_lost)
    while not whole.ec2.instances:
        with suppress(Crash):
            whole.go_on(31)
    cancel.cancel(whole.twin.on, ADA, job)
    for _ in range(40):
        whole.go_on(11)
        if slots(whole.twin, "target/default", SlotState.FREE):
            break
        assert whole.ec2.made().total() == 1
    assert list(whole.ec2.alive()) == [], "its slot was given back, and it was there"
    assert slots(whole.twin, "target/default", SlotState.FREE) == ["1"]


def test_a_machine_that_shows_up_after_its_worker_was_put_back_is_ended(whole: Whole) -> None:
    """UNIT-1: launched after a long wait for capacity, cancelled at once, and listed later than EC2 says."""
    whole.ec2.short = {("*", "*", "spot"), ("*", "*", "on-demand")}
    job = submit(whole.twin, ADA)
    for _ in range(20):
        whole.go_on(31)
    whole.ec2.short, whole.ec2.lag = set(), 2 * LISTING_LAG
    while not whole.ec2.instances:
        whole.go_on(31)
    cancel.cancel(whole.twin.on, ADA, job)
    for _ in range(11):
        whole.go_on(31)
    assert slots(whole.twin, "target/default", SlotState.FREE) == ["1"]
    assert len(list(whole.ec2.alive())) == 1
    for _ in range(25):
        whole.go_on(31)
    assert list(whole.ec2.alive()) == []
