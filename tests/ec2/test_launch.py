"""One RunInstances call, parameter by parameter, and its token."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.session import get_session
from botocore.validate import validate_parameters

from penstock.drivers.factories.aws.settings import Market, Subnet
from penstock.drivers.factories.aws.tags import Tags
from penstock.drivers.factories.ec2 import settings as ec2_settings
from penstock.drivers.factories.ec2.alternatives import Alternative, alternatives
from penstock.drivers.factories.ec2.launch import request
from penstock.drivers.factories.ec2.settings import Settings
from tests.ec2.helpers import FULL, LEAST, OTHER, WORKER, order

TAGS = Tags("Penstock.eu-west-1", "aws")
SHAPE = get_session().get_service_model("ec2").operation_model("RunInstances").input_shape


def made(given: dict[str, Any], way: Alternative | None = None, worker: str = WORKER) -> dict[str, Any]:
    """A request, as EC2's description of itself allows it."""
    found = ec2_settings.read(given)
    wanted = request(order(worker), way or alternatives(found)[0], found, TAGS, "#!/bin/bash\n")
    validate_parameters(wanted, SHAPE)
    return wanted


def test_the_least_is_safe() -> None:
    """SEC-1: metadata with a token only, and from the machine only."""
    wanted = made(LEAST)
    assert wanted["MetadataOptions"] == {
        "HttpEndpoint": "enabled",
        "HttpTokens": "required",
        "HttpPutResponseHopLimit": 1,
    }
    assert wanted["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert (wanted["MinCount"], wanted["MaxCount"]) == (1, 1)
    for absent in ("KeyName", "IamInstanceProfile", "SubnetId", "NetworkInterfaces", "InstanceMarketOptions"):
        assert absent not in wanted


def test_everything_that_can_be_said() -> None:
    wanted = made(FULL)
    assert wanted["ImageId"] == "resolve:ssm:/penstock/worker"
    assert wanted["KeyName"] == "ops"
    assert wanted["IamInstanceProfile"] == {"Arn": FULL["profile"]}
    assert wanted["LaunchTemplate"] == {"LaunchTemplateId": "lt-1", "Version": "3"}
    assert wanted["InstanceMarketOptions"] == {
        "MarketType": "spot",
        "SpotOptions": {
            "SpotInstanceType": "one-time",
            "InstanceInterruptionBehavior": "terminate",
            "MaxPrice": "60.000000",
        },
    }
    (disk,) = wanted["BlockDeviceMappings"]
    assert disk == {
        "DeviceName": "/dev/xvda",
        "Ebs": {
            "VolumeSize": 40,
            "VolumeType": "gp3",
            "Iops": 3000,
            "Throughput": 250,
            "Encrypted": True,
            "DeleteOnTermination": True,
        },
    }
    (card,) = wanted["NetworkInterfaces"]
    assert card == {
        "DeviceIndex": 0,
        "SubnetId": "subnet-1",
        "AssociatePublicIpAddress": False,
        "DeleteOnTermination": True,
        "Groups": ["sg-1"],
    }
    assert "SecurityGroupIds" not in wanted, "EC2 takes them in one of the two places"


def test_the_network_without_a_word_on_addresses() -> None:
    wanted = made({**LEAST, "subnets": ["subnet-1"], "security_groups": ["sg-1", "sg-2"]})
    assert (wanted["SubnetId"], wanted["SecurityGroupIds"]) == ("subnet-1", ["sg-1", "sg-2"])


def test_a_profile_by_name_and_a_template_instead_of_an_image() -> None:
    given = {"region": "eu-west-1", "types": ["m7g.large"], "template": {"id": "lt-1"}, "profile": "workers"}
    wanted = made(given)
    assert wanted["IamInstanceProfile"] == {"Name": "workers"}
    assert wanted["LaunchTemplate"]["Version"] == "$Default"
    assert "ImageId" not in wanted


def test_a_site_cannot_take_our_tags_away() -> None:
    found = replace(ec2_settings.read(LEAST), tags={"penstock:worker": "x"})
    wanted = request(order(), alternatives(found)[0], found, TAGS, "")
    for spec in wanted["TagSpecifications"]:
        assert {"Key": "penstock:worker", "Value": WORKER} in spec["Tags"]


class TestToken:
    """The same for the same, and for nothing else."""

    WAY = Alternative("eu-west-1", Market.SPOT, "m7g.large", "standard", Subnet("subnet-1"))

    def test_the_same_request_has_the_same_token_wherever_it_is_made(self) -> None:
        assert made(FULL) == made(FULL)

    @pytest.mark.parametrize(
        "way",
        [
            replace(WAY, market=Market.ON_DEMAND),
            replace(WAY, type="m7a.large"),
            replace(WAY, subnet=Subnet("subnet-2")),
            replace(WAY, subnet=None),
        ],
        ids=str,
    )
    def test_another_alternative_has_another(self, way: Alternative) -> None:
        assert made(LEAST, way)["ClientToken"] != made(LEAST, self.WAY)["ClientToken"]

    def test_another_worker_has_another(self) -> None:
        assert made(LEAST, self.WAY)["ClientToken"] != made(LEAST, self.WAY, OTHER)["ClientToken"]

    @pytest.mark.parametrize(
        "gone", ["key_name", "profile", "disk", "template", "tags", "security_groups", "public_ip"]
    )
    def test_no_change_of_settings_goes_under_an_old_token(self, gone: str) -> None:
        """EC2 would refuse it, for as long as it remembers the token."""
        changed = {name: value for name, value in FULL.items() if name != gone}
        assert made(FULL)["ClientToken"] != made(changed)["ClientToken"]

    def test_it_fits(self) -> None:
        token = made(FULL)["ClientToken"]
        assert len(token) <= 64
        assert token.isascii()


def test_the_defaults_are_those_of_the_dataclass() -> None:
    assert Settings("eu-west-1", ()).market == "on-demand"
