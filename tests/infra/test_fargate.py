"""A deployment that runs tasks may run and stop them in its clusters, from its own definitions. [UNIT-1] [SEC-2]"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.fargate import FARGATE_GRANTS
from penstock.drivers.factories.aws import tags
from penstock.drivers.factories.aws.tags import Tags
from penstock.drivers.factories.fargate import events, tasks
from penstock.drivers.factories.fargate.definition import Families
from tests.infra.stacks import CLUSTER, LOGS, PULL
from tests.infra.template import Template, listed, text

HERE = "Penstock.<AWS::Region>"
OURS = ("ecs:", "logs:Get", "iam:")
CALLS = {
    "list_tasks": "ecs:ListTasks",
    "describe_tasks": "ecs:DescribeTasks",
    "run_task": "ecs:RunTask",
    "stop_task": "ecs:StopTask",
    "describe_task_definition": "ecs:DescribeTaskDefinition",
    "register_task_definition": "ecs:RegisterTaskDefinition",
    "deregister_task_definition": "ecs:DeregisterTaskDefinition",
    "list_task_definitions": "ecs:ListTaskDefinitions",
    "list_task_definition_families": "ecs:ListTaskDefinitionFamilies",
}
"""What the driver calls, and what it needs for it."""

WIDE = {
    "ecs:DescribeTaskDefinition",
    "ecs:DeregisterTaskDefinition",
    "ecs:ListTaskDefinitions",
    "ecs:ListTaskDefinitionFamilies",
}
"""What ECS lets nobody narrow."""


@pytest.fixture(scope="module")
def made(stacks_with_settings: Mapping[str, Path]) -> Template:
    """The stack of `cdk deploy -c fargate=… -c fargate_role=… -c fargate_logs=…`."""
    return Template.of_assembly(stacks_with_settings["fargate"])


def leave(stack: Template, name: str) -> list[dict[str, Any]]:
    """What a function may do with tasks, one entry per action and statement."""
    found = []
    for statement in stack.statements(stack.functions()[name]["Role"]):
        for action in listed(statement["Action"]):
            if action.startswith(OURS):
                on = {text(each) for each in listed(statement["Resource"])}
                found.append({"action": action, "on": on, "if": statement.get("Condition", {})})
    return found


def test_no_other_deployment_may_touch_a_task(stack: Template) -> None:
    for name in stack.functions():
        assert leave(stack, name) == []


def test_only_who_makes_and_who_sweeps_may(made: Template) -> None:
    assert {name for name in made.functions() if leave(made, name)} == set(FARGATE_GRANTS) == {"factory", "sweep"}


@pytest.mark.parametrize("name", FARGATE_GRANTS)
def test_tasks_are_touched_in_the_clusters_alone(made: Template, name: str) -> None:
    for each in leave(made, name):
        if each["action"] in ("ecs:ListTasks", "ecs:DescribeTasks", "ecs:StopTask", "ecs:RunTask"):
            assert listed(each["if"]["ArnEquals"]["ecs:cluster"]) == [CLUSTER]


def test_what_is_made_has_our_tag_and_our_name(made: Template) -> None:
    for each in leave(made, "factory"):
        if each["action"] in ("ecs:RunTask", "ecs:RegisterTaskDefinition", "ecs:TagResource"):
            assert text(each["if"]["StringEquals"][f"aws:RequestTag/{tags.SITE_TAG}"]) == HERE
        if each["action"] in ("ecs:RunTask", "ecs:RegisterTaskDefinition"):
            (on,) = each["on"]
            assert on.endswith(":task-definition/penstock_Penstock-<AWS::Region>_*:*")
    ours = Families.by(Tags("Penstock.eu-west-1", "tasks"))
    assert ours.site == "penstock_Penstock-eu-west-1_"


def test_nobody_gets_a_shell_in_a_task(made: Template) -> None:
    (running,) = (each for each in leave(made, "factory") if each["action"] == "ecs:RunTask")
    assert running["if"]["StringNotEquals"] == {"ecs:enable-execute-command": "true"}


def test_tags_are_given_at_birth_only(made: Template) -> None:
    tagging = [each for each in leave(made, "factory") if each["action"] == "ecs:TagResource"]
    born = {each["if"]["StringEquals"]["ecs:CreateAction"] for each in tagging}
    assert born == {"RunTask", "RegisterTaskDefinition"}


def test_one_role_may_be_given_and_to_tasks_only(made: Template) -> None:
    (passing,) = (each for each in leave(made, "factory") if each["action"] == "iam:PassRole")
    assert passing["on"] == {PULL}
    assert passing["if"] == {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}


def test_of_all_logs_those_of_tasks_may_be_read(made: Template) -> None:
    (reading,) = (each for each in leave(made, "factory") if each["action"] == "logs:GetLogEvents")
    (on,) = reading["on"]
    assert on.endswith(f":log-group:{LOGS}:log-stream:penstock/worker/*")


def test_what_nobody_can_narrow_is_all_that_is_wide(made: Template) -> None:
    for name in FARGATE_GRANTS:
        wide = {each["action"] for each in leave(made, name) if each["on"] == {"*"} and not each["if"]}
        assert wide <= WIDE


def test_the_driver_may_do_all_that_it_does_and_nothing_more() -> None:
    source = Path(tasks.__file__).read_text()
    called = {action for call, action in CALLS.items() if f'"{call}"' in source or f"client.{call}(" in source}
    assert called == set(CALLS.values())
    allowed = {action for each in FARGATE_GRANTS["factory"] for action in each.actions}
    assert allowed == called | {"ecs:TagResource"}


def test_what_the_rule_sends_is_what_the_driver_understands(made: Template) -> None:
    found = [each["Properties"] for each in made.of("Events::Rule").values()]
    (rule,) = (each for each in found if each.get("EventPattern", {}).get("source") == [events.SOURCE])
    assert rule["EventPattern"]["detail-type"] == [events.KIND]
    assert rule["EventPattern"]["detail"] == {"clusterArn": [CLUSTER], "desiredStatus": [events.STOPPED]}
    name, queue = made.queue("factory")
    (target,) = rule["Targets"]
    assert text(target["Arn"]) == f"<{name}.Arn>"
    assert target["DeadLetterConfig"]["Arn"] == queue["RedrivePolicy"]["deadLetterTargetArn"]
