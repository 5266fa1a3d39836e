"""One RunInstances call: all its parameters, and the token that makes asking twice the same as asking once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from penstock.drivers.factories.ec2.alternatives import Alternative
from penstock.drivers.factories.ec2.settings import Disk, Market, Settings
from penstock.drivers.factories.ec2.tags import Tags
from penstock.ports import Order

TAGGED = ("instance", "volume", "network-interface")


def request(order: Order, way: Alternative, settings: Settings, tags: Tags, user_data: str) -> dict[str, Any]:
    """The parameters of one try."""
    wanted: dict[str, Any] = {
        "MinCount": 1,
        "MaxCount": 1,
        "InstanceType": way.type,
        "UserData": user_data,
        "InstanceInitiatedShutdownBehavior": "terminate",
        # A token is needed to read the metadata, and it does not leave the machine: nothing that relays, reads it.
        "MetadataOptions": {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "TagSpecifications": _tagged(tags.of(order.id, settings.tags), way.market),
        **_image(settings),
        **_network(way, settings),
        **_market(way, settings),
        **_rest(settings),
    }
    return {**wanted, "ClientToken": token(order.id, way, wanted)}


def token(worker: str, way: Alternative, wanted: Mapping[str, Any]) -> str:
    """The same for the same worker and way. 64 characters are all that EC2 takes.

    The parameters are in it: after an upgrade or a change of settings a request differs, and EC2 would refuse it under
    the old token for as long as it remembers that. docs/decisions/0012-launch-tokens.md
    """
    what = json.dumps([worker, str(way), way.subnet.id if way.subnet else None, wanted], sort_keys=True)
    return hashlib.sha256(what.encode()).hexdigest()


def _tagged(tags: Mapping[str, str], market: Market) -> list[dict[str, Any]]:
    kinds = (*TAGGED, "spot-instances-request") if market is Market.SPOT else TAGGED
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    return [{"ResourceType": kind, "Tags": pairs} for kind in kinds]


def _image(settings: Settings) -> dict[str, Any]:
    if settings.image is None:
        return {}
    return {"ImageId": f"resolve:ssm:{settings.image}" if settings.image.startswith("/") else settings.image}


def _network(way: Alternative, settings: Settings) -> dict[str, Any]:
    groups = list(settings.security_groups)
    if settings.public_ip is None or way.subnet is None:
        subnet = {"SubnetId": way.subnet.id} if way.subnet else {}
        return {**subnet, **({"SecurityGroupIds": groups} if groups else {})}
    card = {
        "DeviceIndex": 0,
        "SubnetId": way.subnet.id,
        "AssociatePublicIpAddress": settings.public_ip,
        "DeleteOnTermination": True,
    }
    return {"NetworkInterfaces": [{**card, **({"Groups": groups} if groups else {})}]}


def _market(way: Alternative, settings: Settings) -> dict[str, Any]:
    if way.market is Market.ON_DEMAND:
        return {}
    spot: dict[str, Any] = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
    if settings.max_price:
        spot["MaxPrice"] = f"{settings.max_price:.6f}"
    return {"InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": spot}}


def _rest(settings: Settings) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if settings.key_name:
        found["KeyName"] = settings.key_name
    if settings.profile:
        by = "Arn" if settings.profile.startswith("arn:") else "Name"
        found["IamInstanceProfile"] = {by: settings.profile}
    if settings.disk:
        found["BlockDeviceMappings"] = [{"DeviceName": settings.disk.device, "Ebs": _volume(settings.disk)}]
    if settings.template:
        found["LaunchTemplate"] = {
            "LaunchTemplateId": settings.template.id,
            "Version": settings.template.version,
        }
    return found


def _volume(disk: Disk) -> dict[str, Any]:
    given = {"Iops": disk.iops, "Throughput": disk.throughput, "Encrypted": disk.encrypted}
    chosen = {key: value for key, value in given.items() if value is not None}
    return {"VolumeSize": disk.size, "VolumeType": disk.type, "DeleteOnTermination": True, **chosen}
