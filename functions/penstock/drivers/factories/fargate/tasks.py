"""The tasks and task definitions of one cluster that are of this site. All calls to ECS are here.

ECS deletes the tags of a task when it is told to stop it. So whose a task is, its family says, and of which worker it
is, its `startedBy`. [UNIT-1]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from botocore.config import Config

from penstock.drivers.factories.aws.errors import CallFailed
from penstock.drivers.factories.fargate.definition import CONTAINER, STREAMS
from penstock.drivers.factories.fargate.errors import CODES, failure_of
from penstock.drivers.factories.fargate.events import STOPPED, family_of
from penstock.kernel.frozen import dataclass

CALL = Config(retries={"mode": "standard", "total_max_attempts": 2}, connect_timeout=5, read_timeout=20)
"""One immediate retry. All further retries are the use case's, with growing pauses."""

PAGE = 100
"""The most tasks that ECS lists, or describes, in one call."""

STARTING = ("PROVISIONING", "PENDING", "ACTIVATING")
"""The states of a task whose container does not run yet."""

RUNNING = "RUNNING"


@cache
def connect(service: str, region: str) -> Any:
    """The client of a service in a region. Cached: loading a service's description takes a while.

    It has no type: ECS has few calls here, and each is checked against botocore's description in tests.
    """
    import boto3

    client: Any = boto3.client  # the type stubs accept only literal names of services
    return client(service, region_name=region, config=CALL)


@dataclass(frozen=True)
class Task:
    """A task of ECS. `wanted` is the state that ECS brings it to, `state` that in which it was last."""

    arn: str
    worker: str
    family: str
    wanted: str
    state: str
    zone: str = ""
    market: str = ""
    stop_code: str = ""
    reason: str = ""
    made: datetime | None = None

    @staticmethod
    def read(task: Mapping[str, Any]) -> Task:
        """A task in ECS's answer. Of one that stopped long ago, it may say little more than its ARN."""
        said = (task.get("stoppedReason"), *(each.get("reason") for each in task.get("containers", ())))
        return Task(
            arn=task["taskArn"],
            worker=task.get("startedBy", ""),
            family=family_of(task.get("taskDefinitionArn", "")),
            wanted=task.get("desiredStatus", RUNNING),
            state=task.get("lastStatus", STARTING[0]),
            zone=task.get("availabilityZone", ""),
            market=task.get("capacityProviderName") or task.get("launchType", ""),
            stop_code=task.get("stopCode", ""),
            reason="; ".join(dict.fromkeys(each for each in said if each)),
            made=task.get("createdAt"),
        )

    @property
    def id(self) -> str:
        """The task's id, which is the end of its ARN."""
        return self.arn.rpartition("/")[2]

    @property
    def is_gone(self) -> bool:
        """Whether nothing of it is left. A task that is to stop still runs its container, for two minutes at most."""
        return self.state == STOPPED

    @property
    def is_ending(self) -> bool:
        """Whether ECS brings it to its end already."""
        return self.wanted == STOPPED


class Tasks:
    """The tasks of a cluster that are of this site, and the definitions that they are made of."""

    def __init__(self, client: Any, cluster: str, site: str) -> None:
        self._client, self._cluster, self._site = client, cluster, site

    def of_worker(self, worker: str, noted: Iterable[str] = ()) -> list[Task]:
        """The tasks of a worker: those that ECS does not end yet, and those that are known by their ids."""
        listed = (arn.rpartition("/")[2] for arn in self._arns(startedBy=worker))
        known = dict.fromkeys((*noted, *listed))
        return [each for each in self._described(list(known)) if each.worker == worker]

    def ending(self, worker: str) -> list[Task]:
        """The tasks of a worker that ECS ends, or has ended within the last hour.

        ECS takes no other filter beside that for a worker, which leaves these out. So all of the cluster are read.
        """
        found = (self._described(arns) for arns in _chunks(self._arns(desiredStatus=STOPPED)))
        return [each for tasks in found for each in tasks if each.worker == worker]

    def alive(self) -> Iterator[Task]:
        """The tasks of this site that ECS does not end yet."""
        for arns in _chunks(self._arns(desiredStatus=RUNNING)):
            yield from self._described(arns)

    def _arns(self, **filters: str) -> Iterator[str]:
        """ARNs of tasks, page by page; by `startedBy` only of those that ECS does not end."""
        with CODES.call_errors("ListTasks"):
            for page in self._client.get_paginator("list_tasks").paginate(
                cluster=self._cluster, PaginationConfig={"PageSize": PAGE}, **filters
            ):
                yield from page["taskArns"]

    def _described(self, tasks: Sequence[str]) -> list[Task]:
        """Tasks by their ids or ARNs, at most PAGE; those that ECS does not know, or not yet, are left out."""
        if not tasks:
            return []
        with CODES.call_errors("DescribeTasks"):
            found = self._client.describe_tasks(cluster=self._cluster, tasks=list(tasks))["tasks"]
        read = [Task.read(each) for each in found]
        return [each for each in read if each.family.startswith(self._site)]

    def run(self, parameters: Mapping[str, Any]) -> Task:
        """Run one task with these parameters. Raises Refused if ECS answers that it could not."""
        with CODES.call_errors("RunTask"):
            answer = self._client.run_task(**parameters)
        if not answer.get("tasks"):
            raise Refused(failure_of("RunTask", next(iter(answer.get("failures", ())), {})))
        return Task.read(answer["tasks"][0])

    def stop(self, task: Task) -> None:
        """Stop a task: its container gets a signal, and is ended 30 seconds later. It may be gone already."""
        try:
            with CODES.call_errors("StopTask"):
                self._client.stop_task(cluster=self._cluster, task=task.arn, reason="Penstock destroys this worker")
        except CallFailed as failed:
            if "not found" not in failed.failure.message:
                raise

    def has_definition(self, family: str) -> bool:
        """Whether a family has an active definition."""
        try:
            with CODES.call_errors("DescribeTaskDefinition"):
                self._client.describe_task_definition(taskDefinition=family)
        except CallFailed as failed:
            if failed.failure.code != "ClientException":
                raise
            return False
        return True

    def register(self, parameters: Mapping[str, Any]) -> None:
        """Register a definition. Two calls that do so at once make two revisions of the same content."""
        with CODES.call_errors("RegisterTaskDefinition"):
            self._client.register_task_definition(**parameters)

    def families(self, prefix: str) -> list[str]:
        """The families with an active definition whose names begin so."""
        with CODES.call_errors("ListTaskDefinitionFamilies"):
            pages = self._client.get_paginator("list_task_definition_families")
            found = pages.paginate(familyPrefix=prefix, status="ACTIVE", PaginationConfig={"PageSize": PAGE})
            return [family for page in found for family in page["families"]]

    def is_used(self, family: str) -> bool:
        """Whether a task of a family is there that ECS does not end."""
        return next(self._arns(family=family, desiredStatus=RUNNING), None) is not None

    def deregister(self, family: str) -> None:
        """Deregister the active definitions of a family."""
        with CODES.call_errors("ListTaskDefinitions"):
            pages = self._client.get_paginator("list_task_definitions")
            found = pages.paginate(familyPrefix=family, PaginationConfig={"PageSize": PAGE})
            arns = [arn for page in found for arn in page["taskDefinitionArns"]]
        for arn in arns:
            with CODES.call_errors("DeregisterTaskDefinition"):
                self._client.deregister_task_definition(taskDefinition=arn)


class Refused(CallFailed):
    """ECS answered that it could not run a task. It gives the same answer to the same request for an hour."""


def printed(client: Any, group: str, task: Task, most: int) -> str:
    """The end of what a task printed, up to so many characters; "" if its log has nothing of it."""
    try:
        with CODES.call_errors("GetLogEvents"):
            stream = f"{STREAMS}/{CONTAINER}/{task.id}"
            found = client.get_log_events(logGroupName=group, logStreamName=stream, limit=200, startFromHead=False)
    except CallFailed as failed:
        if failed.failure.code == "ResourceNotFoundException":
            return ""
        raise
    return "\n".join(each["message"] for each in found["events"]).strip()[-most:]


def _chunks(arns: Iterable[str]) -> Iterator[list[str]]:
    """The same, at most PAGE at once."""
    chunk: list[str] = []
    for arn in arns:
        chunk.append(arn)
        if len(chunk) == PAGE:
            yield chunk
            chunk = []
    yield chunk
