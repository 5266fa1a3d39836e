"""The machines and volumes of one region that carry Penstock's tags. All calls to EC2 are here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from botocore.config import Config

from penstock.domain.account import Thing
from penstock.drivers.factories.aws.errors import CallFailed
from penstock.drivers.factories.aws.tags import FACTORY_TAG, WORKER_TAG
from penstock.drivers.factories.ec2.errors import call_errors
from penstock.kernel.frozen import dataclass

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client


RUNNING = ("pending", "running")
ALIVE = (*RUNNING, "stopping", "stopped")
SHUTTING_DOWN = "shutting-down"
TERMINATED = "terminated"
PAGE = 1000
"""EC2's maximum page size. EC2 throttles calls without a page size sooner."""

CALL = Config(retries={"mode": "standard", "total_max_attempts": 2}, connect_timeout=5, read_timeout=20)
"""One immediate retry. All further retries are the use case's, with growing pauses."""


@cache
def connect(region: str) -> EC2Client:
    """The client of a region. Cached: loading EC2's service description takes a third of a second."""
    import boto3

    return boto3.client("ec2", region_name=region, config=CALL)


@dataclass(frozen=True)
class Machine:
    """An EC2 instance, and the account that it is in."""

    id: str
    state: str
    type: str
    zone: str
    worker: str | None
    reason: str
    account: str = ""

    @staticmethod
    def read(instance: Mapping[str, Any], account: str = "") -> Machine:
        """A machine from an instance in EC2's answer."""
        tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
        return Machine(
            id=instance["InstanceId"],
            state=instance.get("State", {}).get("Name", "pending"),
            type=instance.get("InstanceType", ""),
            zone=instance.get("Placement", {}).get("AvailabilityZone", ""),
            worker=tags.get(WORKER_TAG),
            reason=instance.get("StateReason", {}).get("Message", ""),
            account=account,
        )

    @property
    def is_gone(self) -> bool:
        return self.state == TERMINATED


class Machines:
    """The instances and volumes that carry Penstock's tags."""

    def __init__(self, client: EC2Client) -> None:
        self._client = client

    def tagged(self, tags: Mapping[str, str], states: Sequence[str] = ()) -> Iterator[Machine]:
        """Machines that carry all these tags, in some states or in any, page by page."""
        filters = _filters(tags) + ([{"Name": "instance-state-name", "Values": list(states)}] if states else [])
        with call_errors("DescribeInstances"):
            pages = self._client.get_paginator("describe_instances")
            for page in pages.paginate(Filters=filters, PaginationConfig={"PageSize": PAGE}):  # type: ignore[arg-type]
                for reservation in page["Reservations"]:
                    for each in reservation["Instances"]:
                        yield Machine.read(each, reservation.get("OwnerId", ""))

    def run(self, parameters: Mapping[str, Any]) -> Machine:
        """Launch one machine with these parameters."""
        with call_errors("RunInstances"):
            answer = self._client.run_instances(**parameters)
            return Machine.read(answer["Instances"][0], answer.get("OwnerId", ""))

    def spot_price(self, machine: Machine) -> str | None:
        """The present spot price of a machine's type in its zone, in US dollars per hour; None if EC2 does not say it.

        No launch fails for that, and none without the permission to ask.
        """
        try:
            with call_errors("DescribeSpotPriceHistory"):
                found = self._client.describe_spot_price_history(
                    InstanceTypes=[machine.type],  # type: ignore[list-item]
                    AvailabilityZone=machine.zone,
                    ProductDescriptions=["Linux/UNIX"],
                    StartTime=datetime.now(UTC),
                    MaxResults=1,
                )["SpotPriceHistory"]
        except CallFailed:
            return None
        return found[0]["SpotPrice"] if found else None

    def terminate(self, machine: Machine) -> None:
        """Terminate a machine, without a shutdown of its operating system. It may be gone already."""
        try:
            with call_errors("TerminateInstances"):
                self._client.terminate_instances(InstanceIds=[machine.id], SkipOsShutdown=True)
        except CallFailed as failed:
            if not failed.failure.code.startswith("InvalidInstanceID"):
                raise

    def volumes(self, tags: Mapping[str, str]) -> list[tuple[str, str]]:
        """The ids and states of volumes that carry all these tags."""
        with call_errors("DescribeVolumes"):
            pages = self._client.get_paginator("describe_volumes").paginate(Filters=_filters(tags))  # type: ignore[arg-type]
            return [(each["VolumeId"], each["State"]) for page in pages for each in page["Volumes"]]

    def things(self, tags: Mapping[str, str]) -> Iterator[Thing]:
        """Everything that exists and carries all these tags, of every kind that a launch makes, page by page."""
        for kind in KINDS:
            filters = _filters(tags) + ([{"Name": kind.state, "Values": list(kind.states)}] if kind.state else [])
            with call_errors(kind.call):
                pages: Any = self._client.get_paginator(kind.paginator)  # type: ignore[call-overload]
                for page in pages.paginate(Filters=filters, PaginationConfig={"PageSize": THINGS_PAGE}):
                    yield from map(kind.read, kind.found(page))

    def delete_volume(self, volume: str) -> None:
        """Delete a volume that no machine uses. It may be gone already."""
        try:
            with call_errors("DeleteVolume"):
                self._client.delete_volume(VolumeId=volume)
        except CallFailed as failed:
            if not failed.failure.code.startswith("InvalidVolume"):
                raise

    def named(self, instance: str, tags: Mapping[str, str]) -> Machine | None:
        """A machine by its instance id, if it carries these tags."""
        filters = [*_filters(tags), {"Name": "instance-id", "Values": [instance]}]
        with call_errors("DescribeInstances"):
            found = self._client.describe_instances(Filters=filters)["Reservations"]  # type: ignore[arg-type]
            return next((Machine.read(each) for every in found for each in every["Instances"]), None)

    def console(self, machine: Machine) -> str:
        """The end of a machine's console output: the latest if its type supports that, else what EC2 kept at boot."""
        for latest in ({"Latest": True}, {}):
            try:
                with call_errors("GetConsoleOutput"):
                    return self._client.get_console_output(InstanceId=machine.id, **latest).get("Output", "")
            except CallFailed as failed:
                if not latest or failed.failure.code != "UnsupportedOperation":
                    raise
        return ""


@dataclass(frozen=True)
class Kind:
    """A kind of thing that RunInstances makes with our tags (launch.TAGGED), and how EC2 lists it.

    `states` are those of what exists, if EC2 also lists what does not any more.
    """

    name: str
    call: str
    paginator: str
    items: str
    id: str
    made: str = ""
    tags: str = "Tags"
    state: str = ""
    states: tuple[str, ...] = ()

    def found(self, page: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """The things on a page. Instances are grouped by the call that made them."""
        for group in page.get("Reservations", [page]):
            yield from group[self.items]

    def read(self, found: Mapping[str, Any]) -> Thing:
        """A thing in EC2's answer."""
        tags = {tag["Key"]: tag["Value"] for tag in found.get(self.tags, ())}
        return Thing(
            self.name, found[self.id], tags.get(WORKER_TAG, ""), found.get(self.made), maker=tags.get(FACTORY_TAG, "")
        )


THINGS_PAGE = 500
"""The largest page of DescribeVolumes. The others take 1,000."""

KINDS = (
    Kind(
        "instance", "DescribeInstances", "describe_instances", "Instances", "InstanceId", "LaunchTime",
        state="instance-state-name", states=(*ALIVE, SHUTTING_DOWN),
    ),
    Kind("volume", "DescribeVolumes", "describe_volumes", "Volumes", "VolumeId", "CreateTime"),
    Kind(
        "network interface", "DescribeNetworkInterfaces", "describe_network_interfaces", "NetworkInterfaces",
        "NetworkInterfaceId", tags="TagSet",
    ),
    Kind(
        "spot request", "DescribeSpotInstanceRequests", "describe_spot_instance_requests", "SpotInstanceRequests",
        "SpotInstanceRequestId", "CreateTime", state="state", states=("open", "active", "disabled"),
    ),
)  # fmt: skip
"""EC2 goes on listing terminated instances for an hour and closed spot requests for two days. It does not say when a
network interface was made. A launch template is the site's own: Penstock makes none.
"""


def _filters(tags: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
