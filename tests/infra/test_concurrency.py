"""A storm of messages leaves executions to users and agents, and a flood of requests leaves some to agents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from infra.settings import Settings
from tests.infra.template import Template

ACCOUNT = 1000
"""The concurrency of an account. Source: Lambda Developer Guide, Lambda quotas."""


def most_calls(stack: Template) -> list[int]:
    mappings = stack.of("Lambda::EventSourceMapping").values()
    return sorted(each["Properties"]["ScalingConfig"]["MaximumConcurrency"] for each in mappings)


def test_messages_leave_a_quarter_of_the_accounts_concurrency_to_others(stack: Template) -> None:
    assert sum(most_calls(stack)) <= ACCOUNT * 3 / 4


def test_a_site_sets_how_many_calls_there_are_at_a_time(stacks_with_settings: Mapping[str, Path]) -> None:
    assert most_calls(Template.read(stacks_with_settings["few"] / "Penstock.template.json")) == [40, 40, 40, 50, 100]


@pytest.mark.parametrize("most", [2, 1000])
def test_the_setting_is_what_aws_takes(most: int) -> None:
    assert Settings.of({"at_once": str(most)}).at_once == most


@pytest.mark.parametrize("most", [1, 1001])
def test_other_settings_are_refused(most: int) -> None:
    with pytest.raises(ValueError, match=f"2 to 1000 calls, not {most}"):
        Settings.of({"at_once": str(most)})


def reserved(stack: Template) -> dict[str, int]:
    found = {name: each.get("ReservedConcurrentExecutions") for name, each in stack.functions().items()}
    return {name: most for name, most in found.items() if most is not None}


def test_a_site_reserves_executions_for_agents(stack: Template, stacks_with_settings: Mapping[str, Path]) -> None:
    assert reserved(stack) == {}, "an account may have too few: a new one has ten"
    assert reserved(Template.read(stacks_with_settings["few"] / "Penstock.template.json")) == {"agent_api": 300}


@pytest.mark.parametrize("most", [-1, 1001])
def test_what_cannot_be_reserved_is_refused(most: int) -> None:
    with pytest.raises(ValueError, match=f"agents_at_once must be 0 to 1000 calls, not {most}"):
        Settings.of({"agents_at_once": str(most)})


@pytest.mark.parametrize(("name", "hook"), [("plain", set()), ("github", {"POST /v1/github/webhook"})])
def test_each_route_has_a_throttle_of_its_own(
    stacks_with_settings: Mapping[str, Path], name: str, hook: set[str]
) -> None:
    """Who floods the API with unknown tokens, unknown paths or false deliveries is stopped at that route."""
    stack = Template.of_assembly(stacks_with_settings[name])
    _, stage = stack.one("ApiGatewayV2::Stage")
    routes = {each["Properties"]["RouteKey"]: key for key, each in stack.of("ApiGatewayV2::Route").items()}
    rates = {key: each["ThrottlingRateLimit"] for key, each in stage["RouteSettings"].items()}
    assert set(rates) == set(routes) == {"ANY /v1/agent/{proxy+}", "ANY /v1/{proxy+}", "$default", *hook}
    assert max(rates, key=lambda key: rates[key]) == "ANY /v1/agent/{proxy+}"
    assert all(each["ThrottlingBurstLimit"] <= 1250 for each in stage["RouteSettings"].values())
    made = next(each for each in stack.content["Resources"].values() if each["Type"] == "AWS::ApiGatewayV2::Stage")
    assert set(routes.values()) <= set(made["DependsOn"]), "a stage cannot name a route that is not there yet"
