"""What the other tests rest on: the fake refuses what EC2 refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ec2.fake import START, Ec2
from tests.ec2.helpers import only


def test_the_fake_is_as_strict_as_ec2(ec2: Ec2) -> None:
    """What the tests above rest on."""
    client = ec2.client("eu-west-1")
    wanted: dict[str, Any] = {"MinCount": 1, "MaxCount": 1, "ImageId": "ami-0a", "InstanceType": "m7g.large"}
    one = client.run_instances(**wanted, ClientToken="t")
    assert client.run_instances(**wanted, ClientToken="t")["Instances"][0]["InstanceId"] == only(ec2).id
    with pytest.raises(client.exceptions.ClientError, match="IdempotentParameterMismatch"):
        client.run_instances(**{**wanted, "InstanceType": "m7a.large"}, ClientToken="t")
    assert one["Instances"][0]["LaunchTime"] >= START
    with pytest.raises(client.exceptions.ClientError, match="InvalidInstanceID"):
        client.terminate_instances(InstanceIds=["i-1"])
    client.terminate_instances(InstanceIds=[only(ec2).id])
    ec2.now += 10
    with pytest.raises(client.exceptions.ClientError, match="IdempotentInstanceTerminated"):
        client.run_instances(**wanted, ClientToken="t")
    with pytest.raises(Exception, match="NoSuchParameter"):
        client.run_instances(**wanted, NoSuchParameter=1)
