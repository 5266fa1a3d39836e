"""What EventBridge's events mean, by the shapes that the EC2 User Guide shows, and for which worker. [JOB-2]"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.drivers.factories.ec2.events import read_event
from penstock.kernel.errors import Misconfigured
from penstock.ports import EventDriver, MachineFate, MachineNotice
from tests.ec2.events import HERE, ID, ends, event
from tests.ec2.fake import Ec2
from tests.ec2.helpers import WORKER, factory, only, order


@pytest.mark.parametrize("state", ["stopping", "stopped", "shutting-down", "terminated"])
def test_a_machine_that_ends_is_lost(state: str) -> None:
    found = read_event(event("EC2 Instance State-change Notification", state=state))
    assert found
    assert (found.instance, found.region, found.fate, found.until) == (ID, HERE, MachineFate.LOST, None)
    assert state in found.why


@pytest.mark.parametrize("state", ["pending", "running"])
def test_a_machine_that_begins_is_no_news(state: str) -> None:
    assert read_event(event("EC2 Instance State-change Notification", state=state)) is None


@pytest.mark.parametrize(
    ("action", "until"), [("terminate", "21:31:54"), ("stop", "21:31:54"), ("hibernate", "21:29:54")]
)
def test_a_spot_machine_that_is_taken_back_has_two_minutes_from_the_event_on(action: str, until: str) -> None:
    found = read_event(event("EC2 Spot Instance Interruption Warning", **{"instance-action": action}))
    assert found
    assert (found.instance, found.fate) == (ID, MachineFate.DRAINING)
    assert found.until == datetime.fromisoformat(f"2026-11-11T{until}+00:00")
    assert action in found.why


@pytest.mark.parametrize("time", [None, "soon", 5, ""])
def test_a_warning_that_does_not_say_when_says_no_time(time: Any) -> None:
    found = read_event({**event("EC2 Spot Instance Interruption Warning"), "time": time})
    assert found
    assert (found.fate, found.until) == (MachineFate.DRAINING, None)


def test_a_recommendation_says_no_time() -> None:
    found = read_event(event("EC2 Instance Rebalance Recommendation"))
    assert found
    assert (found.instance, found.fate, found.until) == (ID, MachineFate.DRAINING, None)


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"source": "aws.ec2", "detail": None},
        {"source": "aws.ec2", "detail": {"instance-id": 5}},
        {**event("EC2 Instance State-change Notification", state="terminated"), "source": "my.app"},
        {**event("EC2 Instance State-change Notification", state="terminated"), "region": None},
        event("EBS Volume Notification"),
        event("EC2 Instance State-change Notification"),
    ],
)
def test_what_is_not_about_a_machine_is_passed_over(other: dict[str, Any]) -> None:
    assert read_event(other) is None


class TestWhose:
    """Which worker a machine is: only EC2 knows, by its tags."""

    def test_a_worker_of_this_site(self, ec2: Ec2) -> None:
        factory(ec2).create(order())
        name = only(ec2).id
        why = f"EC2 reports that {name} is terminated"
        assert factory(ec2).read_event(ends(name)) == MachineNotice(WORKER, MachineFate.LOST, why)
        warning = event("EC2 Spot Instance Interruption Warning", **{"instance-id": name})
        until = datetime(2026, 11, 11, 21, 31, 54, tzinfo=UTC)
        why = f"EC2 interrupts the spot machine {name} (terminate)"
        assert factory(ec2).read_event(warning) == MachineNotice(WORKER, MachineFate.DRAINING, why, until)

    def test_also_one_whose_factory_is_called_otherwise_by_now(self, ec2: Ec2) -> None:
        factory(ec2, name="aws").create(order())
        assert factory(ec2, name="cloud").read_event(ends(only(ec2).id))

    def test_also_one_that_is_gone_as_long_as_it_is_listed(self, ec2: Ec2) -> None:
        factory(ec2).create(order())
        ec2.end(only(ec2).id, "Server.SpotInstanceTermination")
        ec2.now += 60
        assert ec2.state(only(ec2)) == "terminated"
        assert factory(ec2).read_event(ends(only(ec2).id))

    def test_no_worker_of_another_deployment_and_no_strangers_machine(self, ec2: Ec2) -> None:
        factory(ec2, site="Penstock.us-east-1").create(order())
        assert factory(ec2).read_event(ends(only(ec2).id)) is None
        given = {"MinCount": 1, "MaxCount": 1, "ImageId": "ami-0a", "InstanceType": "m7g.large"}
        stranger = ec2.client(HERE).run_instances(**given)["Instances"][0]["InstanceId"]
        assert factory(ec2).read_event(ends(stranger)) is None
        assert factory(ec2).read_event(ends("i-0")) is None

    def test_nothing_of_another_region_is_asked_for(self, ec2: Ec2) -> None:
        """Factories of several regions hear of every event that is forwarded here."""
        factory(ec2).create(order())
        asked = len(ec2.calls)
        assert factory(ec2).read_event(ends(only(ec2).id, "eu-north-1")) is None
        assert factory(ec2).read_event(event("EBS Volume Notification")) is None
        assert len(ec2.calls) == asked

    def test_a_worker_that_has_another_machine_is_not_lost_with_this_one(self, ec2: Ec2) -> None:
        """JOB-2: a launch whose answer was lost, repeated under other settings, made two; one is refused, and ends."""
        ec2.lag = 100
        factory(ec2).create(order())
        factory(ec2, linger=5).create(order())
        first, second = ec2.instances
        ec2.lag = 0
        ec2.end(first, "Client.InstanceInitiatedShutdown")
        ec2.now += 60
        assert factory(ec2).read_event(ends(first)) is None
        ec2.end(second, "Server.SpotInstanceTermination")
        assert factory(ec2).read_event(ends(second))

    def test_what_ec2_does_not_say_is_an_error_that_the_core_knows(self, ec2: Ec2) -> None:
        ec2.fail("DescribeInstances", "UnauthorizedOperation")
        with pytest.raises(Misconfigured):
            factory(ec2).read_event(ends(ID))

    def test_the_core_can_see_that_it_may_ask(self, ec2: Ec2) -> None:
        assert isinstance(factory(ec2), EventDriver)
