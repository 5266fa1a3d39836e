"""A second opinion: the same driver against moto's EC2, over botocore's real wire format.

moto knows no client tokens, shortages, lags or times that states take: those are asked of the fake. What it is good for
is the shape of every request and answer, which are written and read here as they would be for EC2.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from penstock.drivers import MAKER
from penstock.drivers.factories.aws.tags import SITE
from penstock.drivers.factories.ec2.factory import Ec2Factory
from penstock.drivers.factories.ec2.machines import connect
from penstock.ports import Ready
from tests.ec2.events import ends
from tests.ec2.helpers import HERE, KEY, MORE, OTHER, WORKER, clean, order

REGION = "eu-west-1"
IMAGE = "ami-12c6146b"
"""One that moto brings. It would make a thousand others, in each region, before and after each test."""


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from moto.ec2.models import amis  # which takes long to import, and which no other test needs

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setattr(amis, "AMIS", [each for each in amis.AMIS if each["ami_id"] == IMAGE])
    with mock_aws():
        connect.cache_clear()
        yield boto3.client("ec2", REGION)
        connect.cache_clear()


def settings(client: Any, **more: Any) -> dict[str, Any]:
    subnets = client.describe_subnets()["Subnets"][:2]
    group = client.describe_security_groups()["SecurityGroups"][0]["GroupId"]
    return {
        "region": REGION,
        "image": IMAGE,
        "types": ["m7g.large"],
        "subnets": [{"id": each["SubnetId"], "zone": each["AvailabilityZone"]} for each in subnets],
        "security_groups": [group],
        "disk": {"device": "/dev/xvda", "size": 40},
        **more,
    }


def made(client: Any, **more: Any) -> Ec2Factory:
    return Ec2Factory(settings(client, **more), {SITE: HERE, MAKER: "aws"})


def test_a_machine_from_first_to_last(client: Any) -> None:
    factory = made(client)
    done = factory.create(order())
    assert isinstance(done, Ready)
    known = {key: done.metadata[key] for key in ("instance", "type", "zone", "account")}
    assert factory.create(order()) == Ready(known, proves=())
    assert list(factory.list()) == [WORKER]
    assert factory.read_event(ends(done.metadata["instance"], REGION)).unit == WORKER  # type: ignore[union-attr]
    assert "running" in str(factory.evidence(WORKER))
    proof = clean(factory)
    assert done.metadata["instance"] in proof.checked
    assert list(factory.list()) == []
    assert factory.read_event(ends(done.metadata["instance"], REGION)).unit == WORKER  # type: ignore[union-attr]
    assert factory.read_event(ends("i-0", REGION)) is None
    assert client.describe_volumes()["Volumes"] == []


def test_the_machine_is_what_was_asked_for(client: Any) -> None:
    instance = made(client).create(order()).metadata["instance"]  # type: ignore[union-attr]
    (found,) = client.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"]
    assert found["InstanceType"] == "m7g.large"
    assert found["MetadataOptions"]["HttpTokens"] == "required"
    assert found["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
    assert {tag["Key"] for tag in found["Tags"]} == {"Name", "penstock:site", "penstock:factory", "penstock:worker"}
    (volume,) = client.describe_volumes()["Volumes"]
    assert volume["Size"] == 40
    assert {tag["Key"] for tag in volume["Tags"]} >= {"penstock:worker"}
    data = client.describe_instance_attribute(InstanceId=instance, Attribute="userData")["UserData"]["Value"]
    assert KEY in base64.b64decode(data).decode()
    told = client.describe_instance_attribute(InstanceId=instance, Attribute="instanceInitiatedShutdownBehavior")
    assert told["InstanceInitiatedShutdownBehavior"] == {"Value": "terminate"}


@pytest.mark.parametrize("more", [{"market": "spot"}, {"public_ip": True}], ids=str)
def test_other_ways_to_ask(client: Any, more: dict[str, Any]) -> None:
    factory = made(client, **more)
    factory.create(order())
    assert list(factory.list()) == [WORKER]
    clean(factory)


def test_many(client: Any) -> None:
    factory = made(client)
    for worker in (*MORE, OTHER):
        factory.create(order(worker))
    assert set(factory.list()) == {*MORE, OTHER}
    clean(factory, OTHER)
    assert list(factory.list()) == MORE


def tags(worker: str, site: str = HERE, factory: str = "aws") -> list[dict[str, str]]:
    found = {"penstock:site": site, "penstock:factory": factory, "penstock:worker": worker}
    return [{"Key": key, "Value": value} for key, value in found.items()]


def test_everything_that_a_launch_makes_is_listed_also_when_its_machine_is_gone(client: Any) -> None:
    factory = made(client)
    factory.create(order())
    subnet = client.describe_subnets()["Subnets"][0]

    def volume(worker: str, **more: str) -> str:
        of = [{"ResourceType": "volume", "Tags": tags(worker, **more)}]
        return str(client.create_volume(AvailabilityZone=f"{REGION}a", Size=1, TagSpecifications=of)["VolumeId"])

    def card(worker: str) -> str:
        of = [{"ResourceType": "network-interface", "Tags": tags(worker)}]
        found = client.create_network_interface(SubnetId=subnet["SubnetId"], TagSpecifications=of)
        return str(found["NetworkInterface"]["NetworkInterfaceId"])

    def request(worker: str) -> str:
        of = [{"ResourceType": "spot-instances-request", "Tags": tags(worker)}]
        wanted = {"ImageId": IMAGE, "InstanceType": "m7g.large"}
        found = client.request_spot_instances(LaunchSpecification=wanted, TagSpecifications=of)
        return str(found["SpotInstanceRequests"][0]["SpotInstanceRequestId"])

    planted = [("volume", volume(OTHER)), ("network interface", card(OTHER)), ("spot request", request(OTHER))]
    older = volume("w-older", factory="older")
    volume("w-elsewhere", site="Penstock.us-east-1")
    found = list(factory.things())
    assert [(each.kind, each.id) for each in found if each.unit == OTHER] == planted
    assert {each.maker for each in found if each.unit == OTHER} == {"aws"}
    assert [(each.id, each.maker) for each in found if each.unit == "w-older"] == [(older, "older")]
    assert {"instance", "volume"} <= {each.kind for each in found if each.unit == WORKER}
    assert {each.unit for each in found} == {WORKER, OTHER, "w-older"}
    for each in found:
        assert (each.made is None) == (each.kind == "network interface")
    clean(factory)
    assert {each.unit for each in factory.things()} == {OTHER, "w-older"}


def test_a_request_that_is_over_is_not_listed(client: Any) -> None:
    of = [{"ResourceType": "spot-instances-request", "Tags": tags(WORKER)}]
    wanted = {"ImageId": IMAGE, "InstanceType": "m7g.large"}
    (made_,) = client.request_spot_instances(LaunchSpecification=wanted, TagSpecifications=of)["SpotInstanceRequests"]
    client.cancel_spot_instance_requests(SpotInstanceRequestIds=[made_["SpotInstanceRequestId"]])
    assert "spot request" not in {each.kind for each in made(client).things()}
