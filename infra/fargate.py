"""Tasks of ECS on Fargate: what functions may do with them, and the rule that sends events about them.

It comes on top with `cdk deploy -c fargate=CLUSTER`, the ARNs of the clusters in which factories may run tasks. What
belongs to a deployment is known by the names of its task definitions, which begin with its own name. ECS takes no
narrower permission than "*" to read, list and deregister task definitions, and to list a cluster's tasks; the last is
bound to the clusters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Aws
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.grants import REQUEST_TAG, SITE, Permission
from infra.machine_events import to_queue

CLUSTERS = "{clusters}"
IN_CLUSTER = {"ArnEquals": {"ecs:cluster": CLUSTERS}}

LIST = (
    Permission(("ecs:ListTasks",), ("*",), IN_CLUSTER),
    Permission(("ecs:DescribeTasks",), ("task",), IN_CLUSTER),
    Permission(("ecs:ListTaskDefinitionFamilies",), ("*",)),
)
STOP = Permission(("ecs:StopTask",), ("task",), IN_CLUSTER)
"""By its cluster alone: ECS deletes a task's tags when it stops it, so a repeated call could not name them."""

FARGATE_GRANTS: Mapping[str, tuple[Permission, ...]] = {
    "factory": (
        *LIST,
        STOP,
        Permission(
            ("ecs:RunTask",),
            ("task definition",),
            {
                **IN_CLUSTER,
                "StringEquals": REQUEST_TAG,
                "StringNotEquals": {"ecs:enable-execute-command": "true"},
            },
        ),
        Permission(("ecs:RegisterTaskDefinition",), ("task definition",), {"StringEquals": REQUEST_TAG}),
        Permission(("ecs:TagResource",), ("task",), {"StringEquals": {**REQUEST_TAG, "ecs:CreateAction": "RunTask"}}),
        Permission(
            ("ecs:TagResource",),
            ("task definition",),
            {"StringEquals": {**REQUEST_TAG, "ecs:CreateAction": "RegisterTaskDefinition"}},
        ),
        Permission(("ecs:DescribeTaskDefinition", "ecs:ListTaskDefinitions", "ecs:DeregisterTaskDefinition"), ("*",)),
    ),
    "sweep": (*LIST, STOP),
}


@dataclass(frozen=True)
class Fargate:
    """Where a deployment's factories run tasks, the role that ECS may take to start them, and where they write logs."""

    site: str
    stack: str
    clusters: Sequence[str]
    role: str = ""
    logs: str = ""

    def arn(self, name: str) -> str:
        """The ARN of a resource in FARGATE_GRANTS. It covers all regions, because each factory's settings name one."""
        start = f"arn:{Aws.PARTITION}:ecs:*:{Aws.ACCOUNT_ID}"
        return {
            "*": "*",
            "task": f"{start}:task/*",
            "task definition": f"{start}:task-definition/penstock_{self.stack}-{Aws.REGION}_*:*",
        }[name]

    @property
    def streams(self) -> str:
        """The ARN of the log streams of tasks."""
        return f"arn:{Aws.PARTITION}:logs:*:{Aws.ACCOUNT_ID}:log-group:{self.logs}:log-stream:penstock/worker/*"

    def statements(self, function: str) -> Sequence[iam.PolicyStatement]:
        """What a function may do."""
        found = [self._statement(each) for each in FARGATE_GRANTS[function]]
        if function == "factory" and self.role:
            to_tasks = {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}
            found.append(iam.PolicyStatement(actions=["iam:PassRole"], resources=[self.role], conditions=to_tasks))
        if function == "factory" and self.logs:
            found.append(iam.PolicyStatement(actions=["logs:GetLogEvents"], resources=[self.streams]))
        return found

    def _statement(self, permission: Permission) -> iam.PolicyStatement:
        known = {SITE: self.site, CLUSTERS: list(self.clusters)}
        return iam.PolicyStatement(
            actions=list(permission.actions),
            resources=[self.arn(name) for name in permission.resources],
            conditions={
                test: {key: known.get(value, value) for key, value in keys.items()}
                for test, keys in permission.conditions.items()
            },
        )

    def reasons(self) -> Mapping[str, str]:
        """The wildcards, each with its reason."""
        why = "tasks and their definitions have no name before they are made; they are bound by cluster, name and tag"
        logs = {self.streams: "one stream for each task"} if self.logs else {}
        return {**{self.arn(name): why for name in ("task", "task definition")}, **logs}


class TaskEvents(Construct):
    """A rule for tasks of some clusters that ECS ends, or is about to end: of this region only."""

    def __init__(
        self, scope: Construct, name: str, *, clusters: Sequence[str], queue: sqs.IQueue, dead: sqs.IQueue
    ) -> None:
        super().__init__(scope, name)
        detail = {"clusterArn": list(clusters), "desiredStatus": ["STOPPED"]}
        pattern = events.EventPattern(source=["aws.ecs"], detail_type=["ECS Task State Change"], detail=detail)
        events.Rule(self, "Ended", event_pattern=pattern, targets=[to_queue(queue, dead)])
