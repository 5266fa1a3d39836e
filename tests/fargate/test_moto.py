"""A second opinion: the same driver against moto's ECS, over botocore's real wire format.

moto knows no client tokens, failures, lags or pages. Without a filter for it, it lists tasks that are to stop as well.
Its tasks run at once, and stop a bit more each time that they are described. All of that is asked of the fake. What
moto is good for is the shape of every request and answer, which are written and read here as they would be for ECS.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from penstock.drivers import MAKER
from penstock.drivers.factories.aws.tags import SITE
from penstock.drivers.factories.fargate import boot
from penstock.drivers.factories.fargate.factory import FargateFactory
from penstock.drivers.factories.fargate.tasks import connect
from penstock.ports import Ready
from tests.fargate.helpers import HERE, IMAGE, KEY, OTHER, SETTINGS, WORKER, clean, order

REGION = "eu-west-1"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        connect.cache_clear()
        made = boto3.client("ecs", REGION)
        made.create_cluster(clusterName="jobs")
        yield made
        connect.cache_clear()


def factory(**more: Any) -> FargateFactory:
    ec2 = boto3.client("ec2", REGION)
    subnets = ec2.describe_subnets()["Subnets"][:2]
    group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
    here = {
        **SETTINGS,
        "subnets": [{"id": each["SubnetId"], "zone": each["AvailabilityZone"]} for each in subnets],
        "security_groups": [group],
    }
    return FargateFactory({**here, **more}, {SITE: HERE, MAKER: "tasks"})


def test_a_task_from_first_to_last(client: Any) -> None:
    made = factory()
    done = made.create(order())
    assert isinstance(done, Ready)
    assert made.create(order()).metadata["task"] == done.metadata["task"]  # type: ignore[union-attr]
    assert list(made.list()) == [WORKER]
    assert [(each.kind, each.id, each.unit) for each in made.things()] == [("task", done.metadata["task"], WORKER)]
    assert done.metadata["task"] in str(made.evidence(WORKER))
    proof = clean(made)
    assert done.metadata["task"] in proof.checked
    (task,) = client.describe_tasks(cluster="jobs", tasks=[done.metadata["task"]])["tasks"]
    assert (task["desiredStatus"], task["lastStatus"]) == ("STOPPED", "STOPPED")
    assert task["stoppedReason"] == "Penstock destroys this worker"


@pytest.mark.parametrize("more", [{}, {"market": "spot"}, {"public_ip": True, "storage": 30, "arch": "arm64"}], ids=str)
def test_the_task_is_what_was_asked_for(client: Any, more: dict[str, Any]) -> None:
    task = factory(**more).create(order()).metadata["task"]  # type: ignore[union-attr]
    (found,) = client.describe_tasks(cluster="jobs", tasks=[task], include=["TAGS"])["tasks"]
    assert found["startedBy"] == WORKER
    assert {each["key"] for each in found["tags"]} == {"Name", "penstock:site", "penstock:factory", "penstock:worker"}
    ((entry,),) = (each["environment"] for each in found["overrides"]["containerOverrides"])
    assert (entry["name"], json.loads(entry["value"])["config"]["key"]) == (boot.GIVEN, KEY)
    definition = client.describe_task_definition(taskDefinition=found["taskDefinitionArn"])["taskDefinition"]
    assert (definition["cpu"], definition["memory"], definition["networkMode"]) == ("1024", "2048", "awsvpc")
    assert definition["runtimePlatform"]["cpuArchitecture"] == {"arm64": "ARM64"}.get(more.get("arch", ""), "X86_64")
    (container,) = definition["containerDefinitions"]
    assert (container["image"], container["user"]) == (IMAGE, "0")
    assert "taskRoleArn" not in definition


def test_many(client: Any) -> None:
    made = factory()
    for worker in (WORKER, OTHER):
        made.create(order(worker))
    assert set(made.list()) == {WORKER, OTHER}
    assert len(client.list_task_definitions()["taskDefinitionArns"]) == 1
    clean(made, OTHER)
    assert list(client.list_tasks(cluster="jobs", desiredStatus="RUNNING")["taskArns"])
