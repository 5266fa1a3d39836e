"""What the ec2 factory makes, and which way. [UNIT-1] [JOB-2]"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.drivers.factories.shortages import SEARCH_SECONDS
from penstock.kernel.errors import Misconfigured, NoCapacity, QuotaReached, RateLimited, Unknown
from penstock.ports import Ready
from tests.ec2.fake import ACCOUNT, Ec2
from tests.ec2.helpers import HERE, OTHER, WORKER, clean, factory, only, order
from tests.played import Crash, Refusal


class TestMaking:
    """create."""

    def test_the_first_alternative_is_taken_and_told(self, ec2: Ec2) -> None:
        done = factory(ec2).create(order())
        assert isinstance(done, Ready)
        assert done.metadata == {
            "instance": only(ec2).id,
            "type": "m7g.large",
            "zone": "eu-west-1a",
            "account": ACCOUNT,
            "market": "on-demand",
        }
        assert ec2.tries() == ["m7g.large eu-west-1a on-demand"]

    def test_everything_made_carries_our_tags_from_its_first_moment(self, ec2: Ec2) -> None:
        """UNIT-1: in the call itself, so that no crash leaves anything untagged."""
        factory(ec2, market="spot", tags={"team": "tools"}).create(order())
        ours = {"penstock:site": HERE, "penstock:factory": "aws", "penstock:worker": WORKER, "team": "tools"}
        specs = {each["ResourceType"]: each["Tags"] for each in only(ec2).wanted["TagSpecifications"]}
        assert set(specs) == {"instance", "volume", "network-interface", "spot-instances-request"}
        for tags in specs.values():
            assert {tag["Key"]: tag["Value"] for tag in tags} == {**ours, "Name": f"aws {WORKER}"}
        assert [name for name, _ in ec2.calls] == ["DescribeInstances", "RunInstances", "DescribeSpotPriceHistory"]

    @pytest.mark.parametrize("lag", [0, 100])
    @pytest.mark.parametrize("side", ["before", "after"])
    def test_a_crash_on_either_side_of_the_launch_makes_no_second_machine(self, ec2: Ec2, side: str, lag: int) -> None:
        """JOB-2: whether EC2's lists show the machine already, or the token alone tells."""
        ec2.lag = lag
        ec2.crashes["RunInstances", side] = 1
        with pytest.raises(Crash):
            factory(ec2).create(order())
        assert len(ec2.instances) == (side == "after")
        for _ in range(3):
            assert isinstance(factory(ec2).create(order()), Ready)
        assert ec2.made() == {WORKER: 1}

    @pytest.mark.parametrize(
        ("call", "side", "nth"),
        [
            ("DescribeInstances", "after", 1),
            ("RunInstances", "before", 1),
            ("RunInstances", "before", 2),
            ("RunInstances", "after", 1),
            ("DescribeInstances", "after", 2),
        ],
    )
    def test_a_failure_halfway_leaves_nothing_unlisted(self, ec2: Ec2, call: str, side: str, nth: int) -> None:
        """UNIT-1: what exists is in the list, and the list leads to its end."""
        ec2.short = {("m7g.large", "eu-west-1a", "on-demand")}
        ec2.crashes[call, side] = nth
        with pytest.raises(Crash):
            twice(ec2)
        listed = list(factory(ec2).list())
        assert listed == ([WORKER] if ec2.instances else [])
        clean(factory(ec2))
        assert list(ec2.alive()) == []

    def test_two_workers_are_two_machines(self, ec2: Ec2) -> None:
        for worker in (WORKER, OTHER):
            factory(ec2).create(order(worker))
        assert ec2.made() == {WORKER: 1, OTHER: 1}
        assert list(factory(ec2).list()) == [WORKER, OTHER]

    def test_an_order_after_the_end_makes_nothing(self, ec2: Ec2) -> None:
        """JOB-2: a worker that was ended is not made again, seen in the list or by its token."""
        factory(ec2).create(order())
        clean(factory(ec2))
        assert isinstance(factory(ec2).create(order()), Ready)
        ec2.lag = 10_000
        assert isinstance(factory(ec2).create(order()), Ready)
        assert ec2.made() == {WORKER: 1}

    def test_an_upgrade_between_two_tries_is_not_refused(self, ec2: Ec2) -> None:
        """The token goes with the parameters: under the old one EC2 would refuse them, for a day."""
        ec2.fail("RunInstances", "InternalError", status=500)
        with pytest.raises(Unknown):
            factory(ec2).create(order())
        assert isinstance(factory(ec2, user_data="dnf install -y git").create(order()), Ready)
        assert ec2.made() == {WORKER: 1}

    @pytest.mark.parametrize("more", [{"user_data": "true"}, {"types": ["m7a.large"]}, {"market": "spot"}], ids=str)
    def test_what_was_made_is_found_again_whatever_would_be_asked_for_now(self, ec2: Ec2, more: dict[str, Any]) -> None:
        """JOB-2: by its tags, for its token goes with another request."""
        made = factory(ec2).create(order())
        again = factory(ec2, **more).create(order())
        assert isinstance(made, Ready)
        assert isinstance(again, Ready)
        assert again.metadata["instance"] == made.metadata["instance"]
        assert ec2.made() == {WORKER: 1}

    def test_a_way_that_opens_after_the_launch_is_not_taken(self, ec2: Ec2) -> None:
        ec2.short = {("m7g.large", "eu-west-1a", "on-demand")}
        factory(ec2).create(order())
        ec2.short = set()
        factory(ec2).create(order())
        assert ec2.made() == {WORKER: 1}


class TestAlternatives:
    """One shortage leads to the next alternative, and reaches no farther than it must."""

    def test_what_is_short_is_passed_over_and_told(self, ec2: Ec2) -> None:
        ec2.short = {("m7g.large", "eu-west-1a", "on-demand")}
        done = factory(ec2).create(order())
        assert isinstance(done, Ready)
        assert ec2.tries() == ["m7g.large eu-west-1a on-demand", "m7g.large eu-west-1b on-demand"]
        (shortage,) = done.shortages
        assert shortage.scope == "ec2/eu-west-1/on-demand/m7g.large/eu-west-1a"
        assert "InsufficientInstanceCapacity" in shortage.why

    def test_spot_falls_back_to_on_demand(self, ec2: Ec2) -> None:
        ec2.short = {("*", "*", "spot")}
        done = factory(ec2, market="spot-first").create(order())
        assert isinstance(done, Ready)
        assert done.metadata["market"] == "on-demand"
        assert len(ec2.tries()) == 5
        assert all(shortage.scope.startswith("ec2/eu-west-1/spot/") for shortage in done.shortages)

    def test_an_account_without_the_role_for_spot_gets_machines_on_demand(self, ec2: Ec2) -> None:
        message = "The provided credentials do not have permission to create the service-linked role for EC2 Spot"
        ec2.fail("RunInstances", "AuthFailure.ServiceLinkedRoleCreationNotPermitted", message)
        done = factory(ec2, market="spot-first").create(order())
        assert isinstance(done, Ready)
        assert done.metadata["market"] == "on-demand"
        assert [shortage.scope for shortage in done.shortages] == []
        assert len(ec2.tries()) == 2

    def test_without_that_role_there_is_nothing_on_spot_alone(self, ec2: Ec2) -> None:
        ec2.fail("RunInstances", "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "no permission", times=9)
        with pytest.raises(Misconfigured, match="ServiceLinkedRoleCreationNotPermitted"):
            factory(ec2, market="spot").create(order())
        assert len(ec2.tries()) == 1

    def test_there_is_no_time_for_all_so_the_next_create_goes_on_behind_them(self, ec2: Ec2) -> None:
        """A call that takes too long would be broken off, and what it met forgotten."""
        ec2.short = {("*", "*", "spot")}
        driver = factory(ec2, market="spot-first")
        driver._monotonic = lambda: 10.0 * ec2.now
        with pytest.raises(NoCapacity, match="no time for the other alternatives") as late:
            driver.create(order())
        assert late.value.untried
        assert ec2.now * 10 <= SEARCH_SECONDS
        assert len(ec2.tries()) == len(late.value.shortages) == 3
        done = driver.create(order(avoid=[each.scope for each in late.value.shortages]))
        assert isinstance(done, Ready)
        assert done.metadata["market"] == "on-demand"
        assert len(ec2.tries()) == len(set(ec2.tries())) == 5

    def test_what_is_wrong_takes_the_time_only_once(self, ec2: Ec2) -> None:
        """Such failures are no shortages, but met again each time they would keep the others from being tried."""
        ec2.fail("RunInstances", "Unsupported", "Your requested instance type is not supported", times=3)
        driver = factory(ec2)
        driver._monotonic = lambda: 10.0 * ec2.now
        with pytest.raises(NoCapacity, match=r"Unsupported.*no time for the other alternatives") as late:
            driver.create(order())
        assert late.value.untried
        assert len(late.value.shortages) == len(ec2.tries()) == 3
        assert isinstance(driver.create(order(avoid=[each.scope for each in late.value.shortages])), Ready)
        assert len(ec2.tries()) == len(set(ec2.tries())) == 4

    def test_one_is_tried_however_late_it_is(self, ec2: Ec2) -> None:
        driver = factory(ec2)
        driver._monotonic = lambda: 100.0 * ec2.now
        assert isinstance(driver.create(order()), Ready)

    def test_a_spot_limit_stops_spot_at_once_and_nothing_else(self, ec2: Ec2) -> None:
        ec2.vcpus["spot", "standard"] = 1
        done = factory(ec2, market="spot-first").create(order())
        assert isinstance(done, Ready)
        assert [shortage.scope for shortage in done.shortages] == ["ec2/eu-west-1/spot/group/standard"]
        assert ec2.tries() == ["m7g.large eu-west-1a spot", "m7g.large eu-west-1a on-demand"]

    def test_a_limit_of_one_family_leaves_the_others(self, ec2: Ec2) -> None:
        ec2.vcpus["on-demand", "standard"] = 1
        done = factory(ec2, types=["m7g.large", "g5.xlarge"]).create(order())
        assert isinstance(done, Ready)
        assert done.metadata["type"] == "g5.xlarge"

    def test_nothing_left_says_of_what(self, ec2: Ec2) -> None:
        ec2.short = {("*", "*", "on-demand")}
        with pytest.raises(
            NoCapacity, match=r"m7g.large on-demand in eu-west-1a: InsufficientInstanceCapacity"
        ) as none:
            factory(ec2).create(order())
        assert len(none.value.shortages) == len(ec2.tries()) == 4

    def test_nothing_but_limits_is_a_limit(self, ec2: Ec2) -> None:
        ec2.vcpus["on-demand", "standard"] = 1
        with pytest.raises(QuotaReached, match="VcpuLimitExceeded") as full:
            factory(ec2).create(order())
        assert [each.scope for each in full.value.shortages] == ["ec2/eu-west-1/on-demand/group/standard"]

    def test_what_was_short_of_late_is_not_asked_for(self, ec2: Ec2) -> None:
        avoid = {"ec2/eu-west-1/on-demand/m7g.large", "ec2/eu-west-1/subnet/subnet-a"}
        factory(ec2).create(order(avoid=avoid))
        assert ec2.tries() == ["m7a.large eu-west-1b on-demand"]

    def test_whether_there_is_a_way_is_known_without_asking(self, ec2: Ec2) -> None:
        every = ["ec2/eu-west-1/on-demand/m7g.large", "ec2/eu-west-1/on-demand/m7a.large"]
        driver = factory(ec2)
        assert driver.has_alternative(order())
        assert driver.has_alternative(order(avoid=every[:1]))
        assert not driver.has_alternative(order(avoid=every))
        assert ec2.calls == []

    def test_when_everything_was_short_of_late_nothing_is_asked_for(self, ec2: Ec2) -> None:
        with pytest.raises(NoCapacity, match="in a cool-down"):
            factory(ec2).create(order(avoid=["ec2/eu-west-1/all"]))
        assert ec2.tries() == []

    def test_a_type_that_a_zone_does_not_have_is_passed_over(self, ec2: Ec2) -> None:
        ec2.fail("RunInstances", "Unsupported", "Your requested instance type is not supported in eu-west-1a")
        done = factory(ec2).create(order())
        assert isinstance(done, Ready)
        assert done.metadata["zone"] == "eu-west-1b"
        assert done.shortages == [], "it comes of this factory's image or types, and is nobody else's business"

    def test_one_wrong_subnet_stops_no_other(self, ec2: Ec2) -> None:
        factory(ec2, subnets=["subnet-dead", "subnet-b"]).create(order())
        assert only(ec2).zone == "eu-west-1b"

    def test_when_all_are_wrong_somebody_must_act(self, ec2: Ec2) -> None:
        with pytest.raises(Misconfigured, match="'subnet-dead' does not exist"):
            factory(ec2, subnets=["subnet-dead"]).create(order())

    def test_an_image_that_is_none_is_not_tried_again_and_again(self, ec2: Ec2) -> None:
        with pytest.raises(Misconfigured, match="ami-0bad"):
            factory(ec2, image="ami-0bad").create(order())
        assert len(ec2.tries()) == 1

    @pytest.mark.parametrize(("code", "status"), [("InternalError", 500), ("Wat", 400), ("Unavailable", 503)])
    def test_when_it_is_not_clear_whether_a_machine_was_made_no_other_way_is_tried(
        self, ec2: Ec2, code: str, status: int
    ) -> None:
        """JOB-2: the same way is tried again, later, under the same token."""
        ec2.fail("RunInstances", code, status=status)
        with pytest.raises(Unknown, match=code) as found:
            factory(ec2).create(order())
        assert found.value.code == code
        factory(ec2).create(order())
        tokens = {params["ClientToken"] for name, params in ec2.calls if name == "RunInstances"}
        assert len(ec2.tries()) == 2
        assert len(tokens) == 1

    def test_throttling_stops_all_tries(self, ec2: Ec2) -> None:
        ec2.buckets["RunInstances"] = (0, 0)
        with pytest.raises(RateLimited, match="RequestLimitExceeded") as slow:
            factory(ec2).create(order())
        assert slow.value.calls == "RunInstances"
        assert slow.value.seconds > 0
        assert len(ec2.tries()) == 1

    def test_a_second_way_after_a_lost_answer_may_make_two_and_both_end(self, ec2: Ec2) -> None:
        """The one way to two machines: a lost answer, a list that lags, and capacity that came back meanwhile. Only
        the first to say hello is welcome; the other powers itself off; and cleaning ends both. [JOB-2] [UNIT-1]
        """
        ec2.lag, ec2.short = 10, {("m7g.large", "eu-west-1a", "on-demand")}
        ec2.crashes["RunInstances", "after"] = 1
        with pytest.raises(Crash):
            factory(ec2).create(order())
        ec2.short = set()
        factory(ec2).create(order())
        assert ec2.made() == {WORKER: 2}
        ec2.now += 20
        assert list(factory(ec2).list()) == [WORKER]
        proof = clean(factory(ec2))
        assert all(name in proof.checked for name in ec2.instances)
        assert list(ec2.alive()) == []


def twice(ec2: Ec2) -> None:
    """What a message that is delivered twice does."""
    for _ in range(2):
        factory(ec2).create(order())


class TestPrices:
    """What the metadata of a launched machine says of its price."""

    def test_a_machine_on_demand_costs_what_its_type_does(self, ec2: Ec2) -> None:
        types = [{"name": "m7a.large", "price": 0.1159}, {"name": "m7g.large", "price": 0.0816}]
        made = factory(ec2, types=types).create(order())
        assert isinstance(made, Ready)
        assert (made.metadata["type"], made.metadata["price"]) == ("m7g.large", "0.081600")
        assert "DescribeSpotPriceHistory" not in [call for call, _ in ec2.calls]

    def test_a_spot_machine_costs_what_its_market_asks_in_its_zone(self, ec2: Ec2) -> None:
        ec2.spot_prices = {("m7g.large", "eu-west-1a"): "0.031400", ("m7g.large", "eu-west-1b"): "0.9"}
        types = [{"name": "m7g.large", "price": 0.0816}]
        made = factory(ec2, types=types, market="spot").create(order())
        assert isinstance(made, Ready)
        assert made.metadata["price_usd"] == "0.031400"
        assert "price" not in made.metadata

    @pytest.mark.parametrize("code", [None, "UnauthorizedOperation", "RequestLimitExceeded"])
    def test_what_ec2_does_not_say_fails_no_launch(self, ec2: Ec2, code: str | None) -> None:
        ec2.answers = {"DescribeSpotPriceHistory": [Refusal(code)] * 5 if code else []}
        made = factory(ec2, market="spot").create(order())
        assert isinstance(made, Ready)
        assert made.metadata["market"] == "spot"
        assert not {"price", "price_usd"} & set(made.metadata)

    def test_a_type_without_a_price_says_none(self, ec2: Ec2) -> None:
        made = factory(ec2).create(order())
        assert isinstance(made, Ready)
        assert "price" not in made.metadata
