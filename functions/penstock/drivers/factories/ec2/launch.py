"""Launches a worker's machine: tries one alternative after the other with RunInstances. [JOB-2]

A client token makes a repeated call harmless: EC2 then returns the machine that the first call made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from aws_lambda_powertools import Logger

from penstock.domain.money import DOLLAR_PRICE, PRICE
from penstock.drivers.factories import userdata
from penstock.drivers.factories.aws.errors import CallFailed
from penstock.drivers.factories.aws.settings import Market
from penstock.drivers.factories.aws.tags import Tags
from penstock.drivers.factories.ec2.alternatives import Alternative, alternatives
from penstock.drivers.factories.ec2.identity import METADATA
from penstock.drivers.factories.ec2.machines import Machine, Machines
from penstock.drivers.factories.ec2.settings import Disk, Settings
from penstock.drivers.factories.shortages import Met, final_error, shared
from penstock.kernel.errors import QuotaReached, Shortage
from penstock.ports import Order, Ready

TAGGED = ("instance", "volume", "network-interface")


def request(order: Order, way: Alternative, settings: Settings, tags: Tags, user_data: str) -> dict[str, Any]:
    """The parameters of RunInstances for one alternative."""
    wanted: dict[str, Any] = {
        "MinCount": 1,
        "MaxCount": 1,
        "InstanceType": way.type,
        "UserData": user_data,
        "InstanceInitiatedShutdownBehavior": "terminate",
        # IMDSv2 with one hop: a proxy or container on the machine cannot read the metadata for somebody else.
        "MetadataOptions": {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "TagSpecifications": _tag_specifications(tags.of(order.id, settings.tags), way.market),
        **_image(settings),
        **_network(way, settings),
        **_market(way, settings),
        **_optional(settings),
    }
    return {**wanted, "ClientToken": token(order.id, way, wanted)}


def token(worker: str, way: Alternative, wanted: Mapping[str, Any]) -> str:
    """The client token: the same for the same worker, alternative and parameters. EC2 takes at most 64 characters.

    The parameters are part of it. After an upgrade or a change of settings they differ, and EC2 refuses an old token
    with new parameters for as long as it remembers it. docs/decisions/0012-launch-tokens.md
    """
    text = json.dumps([worker, str(way), way.subnet.id if way.subnet else None, wanted], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _tag_specifications(tags: Mapping[str, str], market: Market) -> list[dict[str, Any]]:
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


def _optional(settings: Settings) -> dict[str, Any]:
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


def user_data_of(order: Order, settings: Settings) -> str:
    """The user data of one worker. Raises Misconfigured if it is too long for EC2."""
    return userdata.script(
        order, settings.user_data, settings.python, settings.linger, METADATA if settings.identity else ""
    )


ALREADY_TERMINATED = "IdempotentInstanceTerminated"
"""EC2's code if the machine that a request with this token made is terminated."""

log = Logger(child=True)


def launch(order: Order, machines: Machines, settings: Settings, tags: Tags, is_late: Callable[[], bool]) -> Ready:
    """Launch a worker's machine by the first alternative that works. Raises CallFailed or DriverError.

    When it is late, those that are left are for the next `create`, which begins behind the shortages that were met.

    If it is not clear whether a call made a machine, the error ends the search. The next `create` begins with the same
    call, and the same token.
    """
    user_data = user_data_of(order, settings)
    failures: list[Met] = []
    last = ""
    avoid = set(order.avoid)
    for way in alternatives(settings):
        if avoid & way.scopes:
            continue
        if failures and is_late():
            raise final_error(failures, last, untried=True)
        try:
            machine = machines.run(request(order, way, settings, tags, user_data))
        except CallFailed as failed:
            if failed.failure.code == ALREADY_TERMINATED:
                return Ready(shortages=shared(failures), proves=())
            shortage = _shortage(failed, way)
            failures.append((shortage, failed.failure.meaning))
            last = f". EC2's last message: {failed.failure.message}"
            avoid.add(shortage.scope)
        else:
            shown = metadata(machine) | {"market": str(way.market)} | _price(machine, way, machines)
            return Ready(shown, shortages=shared(failures), proves=way.scopes)
    raise final_error(failures, last)


def _price(machine: Machine, way: Alternative, machines: Machines) -> dict[str, str]:
    """The price per hour of a machine that was launched: the present one of its spot market, or that of the settings.

    Nothing if it is not known: the site may say a price of the target.
    """
    if way.market is Market.SPOT:
        found = machines.spot_price(machine)
        return {DOLLAR_PRICE: found} if found else {}
    return {PRICE: f"{Decimal(str(way.price)):.6f}"} if way.price is not None else {}


def _shortage(failed: CallFailed, way: Alternative) -> Shortage:
    """The shortage that an alternative met. Raises CallFailed if all other alternatives would fail alike."""
    reach = failed.failure.meaning.reach
    if reach is None:
        raise failed
    log.warning("EC2 has no machine for this alternative", extra={"alternative": str(way), "code": failed.failure.code})
    is_quota = failed.failure.meaning.kind is QuotaReached
    return Shortage(way.scope(reach), f"{way}: {failed.failure.code}", is_quota)


def metadata(machine: Machine) -> dict[str, str]:
    """The metadata of a machine that its worker's row shows."""
    return {"instance": machine.id, "type": machine.type, "zone": machine.zone, "account": machine.account}
