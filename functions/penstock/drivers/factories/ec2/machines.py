"""What there is: the machines of a site in one region. Every call to EC2 but one is here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from penstock.drivers.factories.ec2.codes import Failure, understood
from penstock.drivers.factories.ec2.tags import WORKER

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

RUNNING = ("pending", "running")
ALIVE = (*RUNNING, "stopping", "stopped")
GOING = "shutting-down"
GONE_STATE = "terminated"
PAGE = 1000
"""The most that EC2 lists at a time. Who does not say how many he wants at a time is throttled sooner."""

CALL = Config(retries={"mode": "standard", "total_max_attempts": 2}, connect_timeout=5, read_timeout=20)
"""One more try at once, for what a moment mends. The core does the waiting."""


class CallFailed(Exception):
    """A call to EC2 failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


@cache
def connect(region: str) -> EC2Client:
    """The client of a region. Made once in a function's life: EC2's description alone takes a third of a second."""
    import boto3

    return boto3.client("ec2", region_name=region, config=CALL)


@contextmanager
def calling(call: str) -> Iterator[None]:
    """Around every call. Raises CallFailed."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise CallFailed(understood(call, error)) from error


@dataclass(frozen=True)
class Machine:
    """An instance, and whose account it is in."""

    id: str
    state: str
    type: str
    zone: str
    worker: str | None
    reason: str
    account: str = ""

    @staticmethod
    def read(given: Mapping[str, Any], account: str = "") -> Machine:
        """One instance of an answer."""
        tags = {tag["Key"]: tag["Value"] for tag in given.get("Tags", [])}
        return Machine(
            id=given["InstanceId"],
            state=given.get("State", {}).get("Name", "pending"),
            type=given.get("InstanceType", ""),
            zone=given.get("Placement", {}).get("AvailabilityZone", ""),
            worker=tags.get(WORKER),
            reason=given.get("StateReason", {}).get("Message", ""),
            account=account,
        )

    @property
    def is_gone(self) -> bool:
        return self.state == GONE_STATE


class Machines:
    """The instances and volumes that carry tags of ours."""

    def __init__(self, client: EC2Client) -> None:
        self._client = client

    def tagged(self, tags: Mapping[str, str], states: Sequence[str] = ()) -> Iterator[Machine]:
        """Machines that carry all these tags; in some states, or in any. Page by page."""
        filters = _filters(tags) + ([{"Name": "instance-state-name", "Values": list(states)}] if states else [])
        with calling("DescribeInstances"):
            pages = self._client.get_paginator("describe_instances")
            for page in pages.paginate(Filters=filters, PaginationConfig={"PageSize": PAGE}):  # type: ignore[arg-type]
                for reservation in page["Reservations"]:
                    for each in reservation["Instances"]:
                        yield Machine.read(each, reservation.get("OwnerId", ""))

    def run(self, wanted: Mapping[str, Any]) -> Machine:
        """Launch one machine."""
        with calling("RunInstances"):
            made = self._client.run_instances(**wanted)
            return Machine.read(made["Instances"][0], made.get("OwnerId", ""))

    def terminate(self, machine: Machine) -> None:
        """Have a machine end, without waiting for what runs on it. One that is gone is fine."""
        try:
            with calling("TerminateInstances"):
                self._client.terminate_instances(InstanceIds=[machine.id], SkipOsShutdown=True)
        except CallFailed as failed:
            if not failed.failure.code.startswith("InvalidInstanceID"):
                raise

    def volumes(self, tags: Mapping[str, str]) -> list[tuple[str, str]]:
        """The ids and states of volumes that carry all these tags."""
        with calling("DescribeVolumes"):
            pages = self._client.get_paginator("describe_volumes").paginate(Filters=_filters(tags))  # type: ignore[arg-type]
            return [(each["VolumeId"], each["State"]) for page in pages for each in page["Volumes"]]

    def delete_volume(self, volume: str) -> None:
        """Delete a volume that no machine uses. One that is gone is fine."""
        try:
            with calling("DeleteVolume"):
                self._client.delete_volume(VolumeId=volume)
        except CallFailed as failed:
            if not failed.failure.code.startswith("InvalidVolume"):
                raise

    def named(self, instance: str, tags: Mapping[str, str]) -> Machine | None:
        """A machine by EC2's own id, if it carries these tags."""
        filters = [*_filters(tags), {"Name": "instance-id", "Values": [instance]}]
        with calling("DescribeInstances"):
            found = self._client.describe_instances(Filters=filters)["Reservations"]  # type: ignore[arg-type]
            return next((Machine.read(each) for every in found for each in every["Instances"]), None)

    def console(self, machine: Machine) -> str:
        """The end of what a machine printed. The latest where its type can tell, else what was kept at boot."""
        for latest in ({"Latest": True}, {}):
            try:
                with calling("GetConsoleOutput"):
                    return self._client.get_console_output(InstanceId=machine.id, **latest).get("Output", "")
            except CallFailed as failed:
                if not latest or failed.failure.code != "UnsupportedOperation":
                    raise
        return ""


def _filters(tags: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
