"""EC2, as far as a factory sees it: what no emulator does, and what the documentation says EC2 does.

It is played behind boto3's own client (tests/played.py). It has client tokens, lists that lag behind, pages, states
that take time, shortages by type, zone and market, vCPU limits, throttling, and crashes on either side of a call.

Time is a number of seconds that a test moves; every call takes one.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.played import Played, Refusal

ACCOUNT = "123456789012"
START = datetime(2026, 1, 1, tzinfo=UTC)
ZONES = {"subnet-a": "eu-west-1a", "subnet-b": "eu-west-1b", "subnet-c": "eu-west-1c"}
VCPUS = {"m7g.large": 2, "m7a.large": 2, "c7g.xlarge": 4, "t4g.small": 2, "g5.xlarge": 4}
IMAGES = ("ami-0a", "resolve:ssm:/penstock/worker")
TAGGABLE = {"instance", "volume", "network-interface", "spot-instances-request"}


@dataclass
class Instance:
    """A machine. Its state follows from the time."""

    id: str
    wanted: dict[str, Any]
    zone: str
    market: str
    launched: int
    tags: dict[str, str]
    ended: int | None = None
    why: str = ""


@dataclass
class Ec2(Played):
    """One region of one account. What is public may be set and read by tests."""

    service = "ec2"
    throttled = Refusal("RequestLimitExceeded", "Request limit exceeded.", 503)

    lag: int = 0
    boot: int = 2
    dying: int = 3
    page: int = 2
    keep_volumes: bool = False
    instances: dict[str, Instance] = field(default_factory=dict)
    volumes: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)
    tokens: dict[str, tuple[str, str]] = field(default_factory=dict)
    short: set[tuple[str, str, str]] = field(default_factory=set)
    vcpus: dict[tuple[str, str], int] = field(default_factory=dict)
    consoles: dict[str, str] = field(default_factory=dict)
    spot_prices: dict[tuple[str, str], str] = field(default_factory=dict)
    is_nitro: bool = True

    # The calls, by EC2's names.

    def RunInstances(self, params: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps({key: value for key, value in params.items() if key != "ClientToken"}, sort_keys=True)
        token = params["ClientToken"]
        assert 0 < len(token) <= 64
        if token in self.tokens:
            was, instance = self.tokens[token]
            if was != body:
                raise Refusal("IdempotentParameterMismatch")
            if self.state(self.instances[instance]) == "terminated":
                raise Refusal("IdempotentInstanceTerminated")
            return {"OwnerId": ACCOUNT, "Instances": [self._told(self.instances[instance])]}
        made = self._launch(params)
        self.tokens[token] = body, made.id
        return {"OwnerId": ACCOUNT, "Instances": [self._told(made)]}

    def _launch(self, params: dict[str, Any]) -> Instance:
        market = params.get("InstanceMarketOptions", {}).get("MarketType", "on-demand")
        cards = params.get("NetworkInterfaces", [{}])
        subnet = params.get("SubnetId") or cards[0].get("SubnetId", "subnet-a")
        self._check(params, subnet, market)
        number = len(self.instances) + 1
        tags = {each["ResourceType"]: {tag["Key"]: tag["Value"] for tag in each["Tags"]} for each in _specs(params)}
        made = Instance(f"i-{number:017x}", params, ZONES[subnet], market, self.now, tags.get("instance", {}))
        self.instances[made.id] = made
        self.volumes[f"vol-{number:017x}"] = made.id, tags.get("volume", {})
        return made

    def _check(self, params: dict[str, Any], subnet: str, market: str) -> None:
        kind = params["InstanceType"]
        if params.get("ImageId") not in IMAGES and "LaunchTemplate" not in params:
            raise Refusal("InvalidAMIID.NotFound", f"The image id '[{params.get('ImageId')}]' does not exist")
        if subnet not in ZONES:
            raise Refusal("InvalidSubnetID.NotFound", f"The subnet ID '{subnet}' does not exist")
        if kind not in VCPUS:
            raise Refusal("InvalidParameterValue", f"Invalid value '{kind}' for InstanceType.")
        assert {each["ResourceType"] for each in _specs(params)} <= TAGGABLE
        assert len(base64.b64decode(params.get("UserData", ""))) <= 16 * 1024
        if {(kind, ZONES[subnet], market), (kind, "*", market), ("*", "*", market)} & self.short:
            raise Refusal("InsufficientInstanceCapacity", f"We currently do not have sufficient {kind} capacity")
        group = "g" if kind.startswith("g") else "standard"
        used = sum(VCPUS[each.wanted["InstanceType"]] for each in self.alive() if each.market == market)
        if used + VCPUS[kind] > self.vcpus.get((market, group), 1000):
            code = "MaxSpotInstanceCountExceeded" if market == "spot" else "VcpuLimitExceeded"
            raise Refusal(code, f"You have requested more vCPU capacity than your limit of the {group} bucket")

    def DescribeInstances(self, params: dict[str, Any]) -> dict[str, Any]:
        seen = [each for each in self.instances.values() if each.launched + self.lag <= self.now]
        found = [each for each in seen if all(self._fits(each, one) for one in params.get("Filters", []))]
        start = int(params.get("NextToken", 0))
        end = start + self.page
        page = [
            {"ReservationId": "r-1", "OwnerId": ACCOUNT, "Instances": [self._told(each)]} for each in found[start:end]
        ]
        return {"Reservations": page, "NextToken": str(end) if end < len(found) else ""}

    def _fits(self, each: Instance, one: Mapping[str, Any]) -> bool:
        name = one["Name"]
        if name.startswith("tag:"):
            return each.tags.get(name[4:]) in one["Values"]
        return {"instance-state-name": self.state(each), "instance-id": each.id}[name] in one["Values"]

    def TerminateInstances(self, params: dict[str, Any]) -> dict[str, Any]:
        for name in params["InstanceIds"]:
            if name not in self.instances or self.instances[name].launched + self.lag > self.now:
                raise Refusal("InvalidInstanceID.NotFound", f"The instance ID '{name}' does not exist")
        for name in params["InstanceIds"]:
            self.end(name, "Client.UserInitiatedShutdown: User initiated shutdown")
        return {"TerminatingInstances": [{"InstanceId": name} for name in params["InstanceIds"]]}

    def DescribeSpotPriceHistory(self, params: dict[str, Any]) -> dict[str, Any]:
        """The present price of a type in a zone. EC2 says it with six decimals."""
        (kind,) = params["InstanceTypes"]
        price = self.spot_prices.get((kind, params["AvailabilityZone"]))
        return {"SpotPriceHistory": [{"InstanceType": kind, "SpotPrice": price}] if price else []}

    def DescribeVolumes(self, params: dict[str, Any]) -> dict[str, Any]:
        found = []
        for name, (owner, tags) in list(self.volumes.items()):
            if self.instances[owner].launched + self.lag > self.now:
                continue
            gone = self.state(self.instances[owner]) == "terminated"
            if gone and not self.keep_volumes:
                del self.volumes[name]
            elif all(tags.get(one["Name"][4:]) in one["Values"] for one in params.get("Filters", [])):
                found.append({"VolumeId": name, "State": "available" if gone else "in-use"})
        return {"Volumes": found}

    def DeleteVolume(self, params: dict[str, Any]) -> dict[str, Any]:
        if self.volumes.pop(params["VolumeId"], None) is None:
            raise Refusal("InvalidVolume.NotFound")
        return {}

    def GetConsoleOutput(self, params: dict[str, Any]) -> dict[str, Any]:
        if params.get("Latest") and not self.is_nitro:
            raise Refusal("UnsupportedOperation", "This instance type does not support retrieving the latest console")
        printed = self.consoles.get(params["InstanceId"])
        said = {"InstanceId": params["InstanceId"]}
        return {**said, "Output": base64.b64encode(printed.encode()).decode()} if printed else said

    # What tests ask and do.

    def state(self, each: Instance) -> str:
        if each.ended is not None:
            return "terminated" if self.now >= each.ended + self.dying else "shutting-down"
        return "running" if self.now >= each.launched + self.boot else "pending"

    def alive(self) -> Iterator[Instance]:
        return (each for each in self.instances.values() if each.ended is None)

    def end(self, name: str, why: str) -> None:
        """A machine ends, once."""
        each = self.instances[name]
        if each.ended is None:
            each.ended, each.why = self.now, why

    def made(self) -> Counter[str]:
        """How many machines were ever launched, by worker."""
        return Counter(each.tags.get("penstock:worker", "") for each in self.instances.values())

    def tries(self) -> list[str]:
        """The ways that were tried, as type, zone and market."""
        return [_way(params) for name, params in self.calls if name == "RunInstances"]

    def _told(self, each: Instance) -> dict[str, Any]:
        return {
            "InstanceId": each.id,
            "InstanceType": each.wanted["InstanceType"],
            "Placement": {"AvailabilityZone": each.zone},
            "LaunchTime": START + timedelta(seconds=each.launched),
            "State": {"Name": self.state(each), "Code": 0},
            "StateReason": {"Message": each.why},
            "Tags": [{"Key": key, "Value": value} for key, value in each.tags.items()],
        }


def _specs(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(params.get("TagSpecifications", []))


def _way(params: Mapping[str, Any]) -> str:
    market = params.get("InstanceMarketOptions", {}).get("MarketType", "on-demand")
    return f"{params['InstanceType']} {ZONES.get(params.get('SubnetId', ''), '-')} {market}"


Client = Callable[[str], Any]
