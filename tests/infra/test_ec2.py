"""A deployment that makes machines may make and end its own, and touch no other. [UNIT-1] [SEC-2]"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.grants import EC2_GRANTS, SITE
from infra.settings import Settings
from penstock.drivers.factories.aws import tags
from penstock.drivers.factories.ec2 import events, factory, machines
from penstock.drivers.factories.ec2.launch import TAGGED
from tests.infra.stacks import ROLE
from tests.infra.template import Template, listed, text

HERE = "Penstock.<AWS::Region>"
OURS = ("ec2:", "ssm:", "iam:")

CALLS = {
    "describe_instances": "ec2:DescribeInstances",
    "run_instances": "ec2:RunInstances",
    "terminate_instances": "ec2:TerminateInstances",
    "describe_volumes": "ec2:DescribeVolumes",
    "describe_network_interfaces": "ec2:DescribeNetworkInterfaces",
    "describe_spot_instance_requests": "ec2:DescribeSpotInstanceRequests",
    "delete_volume": "ec2:DeleteVolume",
    "get_console_output": "ec2:GetConsoleOutput",
    "describe_spot_price_history": "ec2:DescribeSpotPriceHistory",
}
"""What the driver calls, and what it needs for it."""

OF_THE_DIFF = {"ec2:DescribeNetworkInterfaces", "ec2:DescribeSpotInstanceRequests"}
"""What only the account diff calls, which the sweep's function makes."""


@pytest.fixture(scope="module")
def made(stacks_with_settings: Mapping[str, Path]) -> Template:
    """The stack of `cdk deploy -c ec2=true -c ec2_role=…`."""
    return Template.of_assembly(stacks_with_settings["ec2"])


def leave(stack: Template, name: str) -> list[dict[str, Any]]:
    """What a function may do in EC2, one entry per action and statement."""
    found = []
    for statement in stack.statements(stack.functions()[name]["Role"]):
        for action in listed(statement["Action"]):
            if action.startswith(OURS):
                on = {text(each) for each in listed(statement["Resource"])}
                found.append({"action": action, "on": on, "if": statement.get("Condition", {})})
    return found


def test_no_other_deployment_may_touch_a_machine(stack: Template) -> None:
    for name in stack.functions():
        assert leave(stack, name) == []
    assert Settings.of({}).ec2 is False


def test_only_who_makes_and_who_sweeps_may(made: Template) -> None:
    assert {name for name in made.functions() if leave(made, name)} == set(EC2_GRANTS) == {"factory", "sweep"}


def test_functions_know_their_site_by_the_name_that_policies_do(made: Template) -> None:
    for function in made.functions().values():
        assert text(function["Environment"]["Variables"][factory.SITE]) == HERE


@pytest.mark.parametrize("name", EC2_GRANTS)
def test_what_exists_is_touched_only_with_our_tag(made: Template, name: str) -> None:
    for each in leave(made, name):
        if each["action"] in ("ec2:TerminateInstances", "ec2:DeleteVolume", "ec2:GetConsoleOutput"):
            (given,) = each["if"]["StringEquals"].values()
            assert list(each["if"]["StringEquals"]) == [f"aws:ResourceTag/{tags.SITE_TAG}"]
            assert text(given) == HERE


def test_what_is_made_has_our_tag_and_hides_its_metadata(made: Template) -> None:
    asked = f"aws:RequestTag/{tags.SITE_TAG}"
    runs = [each for each in leave(made, "factory") if each["action"] == "ec2:RunInstances"]
    kinds = {resource.split(":")[-1].partition("/")[0]: each["if"] for each in runs for resource in each["on"]}
    for kind in ("instance", "volume", "network-interface", "spot-instances-request"):
        assert text(kinds[kind]["StringEquals"][asked]) == HERE, kind
    assert kinds["instance"]["StringEquals"]["ec2:MetadataHttpTokens"] == "required"
    assert not any(kinds[kind] for kind in ("image", "snapshot", "subnet", "security-group", "key-pair"))


def test_tags_are_given_at_birth_only(made: Template) -> None:
    """Or whoever may tag could make any machine ours, and then end it."""
    (tagging,) = (each for each in leave(made, "factory") if each["action"] == "ec2:CreateTags")
    assert tagging["if"]["StringEquals"]["ec2:CreateAction"] == "RunInstances"


def test_one_role_may_be_given_and_to_machines_only(made: Template) -> None:
    (passing,) = (each for each in leave(made, "factory") if each["action"] == "iam:PassRole")
    assert passing["on"] == {ROLE}
    assert passing["if"] == {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}


def test_the_driver_may_do_all_that_it_does_and_nothing_more() -> None:
    source = Path(machines.__file__).read_text()
    called = {action for call, action in CALLS.items() if f'"{call}"' in source or f"client.{call}(" in source}
    assert called == set(CALLS.values())
    allowed = {action for each in EC2_GRANTS["factory"] for action in each.actions}
    assert allowed == called - OF_THE_DIFF | {"ec2:CreateTags", "ssm:GetParameters"}


def test_the_sweep_may_list_every_kind_that_a_launch_makes_and_end_what_is_ours() -> None:
    listed = {f"ec2:{kind.call}" for kind in machines.KINDS}
    allowed = {action for each in EC2_GRANTS["sweep"] for action in each.actions}
    assert allowed == listed | {"ec2:TerminateInstances", "ec2:DeleteVolume"}
    assert listed > OF_THE_DIFF
    kinds = {kind.name.replace(" ", "-").replace("spot-", "spot-instances-") for kind in machines.KINDS}
    assert kinds == {*TAGGED, "spot-instances-request"}


def test_the_tag_of_the_table_is_the_drivers() -> None:
    conditions = [
        key for each in EC2_GRANTS["factory"] for test in each.conditions.values() for key in test if "Tag/" in key
    ]
    assert {key.partition("/")[2] for key in conditions} == {tags.SITE_TAG}
    assert SITE not in HERE


def allowed(stack: Template, queue: str) -> list[dict[str, Any]]:
    """What a queue's own policy lets others do."""
    (policy,) = (
        each["Properties"]["PolicyDocument"]["Statement"]
        for each in stack.of("SQS::QueuePolicy").values()
        if each["Properties"]["Queues"] == [{"Ref": queue}]
    )
    return [each for each in policy if each["Effect"] == "Allow"]


def rules(stack: Template) -> dict[str, dict[str, Any]]:
    """The rules that bring events of EC2."""
    found = {name: each["Properties"] for name, each in stack.of("Events::Rule").items()}
    return {name: each for name, each in found.items() if each.get("EventPattern", {}).get("source") == ["aws.ec2"]}


def test_what_rules_send_is_what_the_driver_understands(made: Template) -> None:
    patterns = [each["EventPattern"] for each in rules(made).values()]
    kinds = {kind: each.get("detail", {}).get("state") for each in patterns for kind in each["detail-type"]}
    assert kinds == {events.STATE: list(events.ENDING), events.INTERRUPTION: None, events.REBALANCE: None}
    assert {source for each in patterns for source in each["source"]} == {events.SOURCE}


def test_events_go_to_the_factorys_queue_and_are_set_aside_with_what_it_failed_on(made: Template) -> None:
    name, queue = made.queue("factory")
    for rule in rules(made).values():
        (target,) = rule["Targets"]
        assert text(target["Arn"]) == f"<{name}.Arn>"
        assert target["DeadLetterConfig"]["Arn"] == queue["RedrivePolicy"]["deadLetterTargetArn"]
        assert target["RetryPolicy"]["MaximumRetryAttempts"] == 5
        assert "InputTransformer" not in target
        assert "InputPath" not in target


def test_these_rules_and_nobody_else_may_send_to_a_queue_from_outside(made: Template) -> None:
    """SEC-2: whoever could send to it could say that any machine has ended."""
    name, queue = made.queue("factory")
    dead = queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
    for each in made.of("SQS::Queue"):
        given = allowed(made, each)
        assert bool(given) == (each in (name, dead)), each
        for one in given:
            assert one["Principal"] == {"Service": "events.amazonaws.com"}
            assert set(listed(one["Action"])) <= {"sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"}
        senders = {each["Condition"]["ArnEquals"]["aws:SourceArn"]["Fn::GetAtt"][0] for each in given}
        assert senders == (set(rules(made)) if given else set())


def test_a_deployment_without_machines_hears_of_none(stack: Template) -> None:
    assert rules(stack) == {}
    assert not [name for name in stack.of("SQS::Queue") if allowed(stack, name)]
