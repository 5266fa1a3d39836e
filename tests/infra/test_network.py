"""Who calls wells may be in a network of the site's, and may read the secrets that are named; nobody else. [SEC-2]"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.grants import EC2_GRANTS, secret_statements
from infra.network import ATTACH, JOINED
from infra.settings import Settings
from tests.infra.stacks import GROUPS, NETWORK, SUBNETS
from tests.infra.template import Template, listed, text


@pytest.fixture(scope="module")
def joined(stacks_with_settings: Mapping[str, Path]) -> Template:
    """The stack with both."""
    return Template.of_assembly(stacks_with_settings["network"])


def attaching(stack: Template, name: str) -> list[dict[str, Any]]:
    """What a function's role says of network interfaces."""
    statements = stack.statements(stack.functions()[name]["Role"])
    return [each for each in statements if set(listed(each["Action"])) & set(ATTACH)]


def secrets(stack: Template, name: str) -> set[str]:
    """What a function may read by name."""
    return {
        text(resource)
        for each in stack.statements(stack.functions()[name]["Role"])
        for resource in listed(each["Resource"])
        if "penstock/" in text(resource)
    }


def test_without_settings_nobody_is_in_a_network_or_reads_a_secret(stack: Template) -> None:
    given = Settings.of({})
    assert (given.well_secrets, given.well_subnets, given.well_security_groups) == ((), (), ())
    for name, function in stack.functions().items():
        assert "VpcConfig" not in function
        assert not attaching(stack, name)
        assert not secrets(stack, name)


def test_only_who_calls_wells_is_in_it(joined: Template) -> None:
    for name, function in joined.functions().items():
        wanted = {"SubnetIds": SUBNETS, "SecurityGroupIds": GROUPS} if name in JOINED else None
        assert function.get("VpcConfig") == wanted, name
        assert bool(attaching(joined, name)) == (name in JOINED)


@pytest.mark.parametrize("name", JOINED)
def test_lambda_may_attach_it_and_our_code_may_not(joined: Template, name: str) -> None:
    allowed, denied = sorted(attaching(joined, name), key=lambda each: each["Effect"])
    assert (allowed["Effect"], denied["Effect"]) == ("Allow", "Deny")
    assert set(allowed["Action"]) == set(ATTACH) == {*denied["Action"], *JOINED[name]}
    source, version = denied["Condition"]["ArnEquals"]["lambda:SourceFunctionArn"]
    assert text(version) == f"{text(source)}:*"
    assert text(source) == f"arn:<AWS::Partition>:lambda:<AWS::Region>:<AWS::AccountId>:function:Penstock-{name}"
    assert joined.functions()[name]["FunctionName"] == f"Penstock-{name}"


@pytest.mark.parametrize("name", JOINED)
def test_nothing_is_denied_that_the_code_itself_calls(stacks_with_settings: Mapping[str, Path], name: str) -> None:
    """The sweep lists interfaces for the account diff: what is denied anywhere, no other statement allows."""
    both = Template.of_assembly(stacks_with_settings["machines-and-network"])
    statements = both.statements(both.functions()[name]["Role"])
    denied = {action for each in statements if each["Effect"] == "Deny" for action in listed(each["Action"])}
    assert denied
    assert not denied & {action for each in EC2_GRANTS.get(name, ()) for action in each.actions}


@pytest.mark.parametrize("name", JOINED)
def test_leave_to_attach_is_there_before_the_function(joined: Template, name: str) -> None:
    (function,) = (
        each for each in joined.of("Lambda::Function").values() if each["Properties"]["Handler"].startswith(f"{name}.")
    )
    role = function["Properties"]["Role"]["Fn::GetAtt"][0]
    policies = {key for key, each in joined.of("IAM::Policy").items() if {"Ref": role} in each["Properties"]["Roles"]}
    assert policies & set(function["DependsOn"])


def test_only_who_calls_wells_reads_what_is_named(joined: Template) -> None:
    here = "<AWS::Region>:<AWS::AccountId>"
    for name in joined.functions():
        wanted = {
            f"arn:<AWS::Partition>:secretsmanager:{here}:secret:penstock/postgres-??????",
            f"arn:<AWS::Partition>:ssm:{here}:parameter/penstock/pg/password",
        }
        assert secrets(joined, name) == (wanted if name in JOINED else set())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"well_subnets": "subnet-0a"}, "well_security_groups must be ids like sg-"),
        ({"well_security_groups": "sg-0a"}, "well_subnets must be ids like subnet-"),
        ({**NETWORK, "well_subnets": "subnet-0a, vpc-0a"}, "well_subnets must be ids like subnet-"),
    ],
)
def test_a_network_that_is_none_is_told(settings: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Settings.of(settings)


@pytest.mark.parametrize("option", ["well_secrets", "factory_secrets"])
@pytest.mark.parametrize("name", ["theirs/postgres", "/theirs/postgres", "penstock/*", "penstock/??"])
def test_a_secret_that_is_not_below_our_name_is_told(option: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"{option}.* must begin with penstock/"):
        secret_statements(option, [name])
