"""No function is kept from its own messages after sixteen of a chain, and none recurs by mistake."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from infra import chains
from tests.infra.template import Template, aliases, listed, mentions, text

STACKS = ("plain", "ec2", "fargate", "github", "snapshots")


def calls(stack: Template) -> dict[str, set[str]]:
    """Which functions each may call by a message: it may send to a queue that they are called for."""
    called = callees(stack)
    return {
        name: {called[queue] for queue in sends_to(stack, function["Role"]) if queue in called}
        for name, function in stack.functions().items()
    }


def callees(stack: Template) -> dict[str, str]:
    """The function that is called for the messages of each queue, by itself or by an alias; by the queue's ARN."""
    names = {name: each["Properties"]["Handler"] for name, each in stack.of("Lambda::Function").items()}
    titles = {name: handler.removesuffix(".handler") for name, handler in names.items()} | aliases(stack)
    mappings = [each["Properties"] for each in stack.of("Lambda::EventSourceMapping").values()]
    return {
        text(each["EventSourceArn"]): next(titles[name] for name in titles if mentions(each["FunctionName"], name))
        for each in mappings
    }


def sends_to(stack: Template, role: Any) -> set[str]:
    """The ARNs of what a role may send messages to."""
    sending = [each for each in stack.statements(role) if "sqs:SendMessage" in listed(each["Action"])]
    return {text(resource) for each in sending for resource in listed(each["Resource"])}


def reached(found: Mapping[str, Collection[str]], name: str) -> set[str]:
    """The functions that one may call, by messages of any number of others too."""
    seen: set[str] = set()
    left = [*found[name]]
    while left:
        each = left.pop()
        if each not in seen:
            seen.add(each)
            left.extend(found[each])
    return seen


@pytest.mark.parametrize("name", STACKS)
def test_functions_that_may_call_themselves_are_allowed_to_and_no_others(
    stacks_with_settings: Mapping[str, Path], name: str
) -> None:
    stack = Template.of_assembly(stacks_with_settings[name])
    found = calls(stack)
    recurring = {each for each in found if each in reached(found, each)}
    allowed = {each for each, function in stack.functions().items() if function.get("RecursiveLoop") == "Allow"}
    assert {"schedule", "factory", "well", "sweep"} <= recurring, "or the test sees nothing"
    assert allowed == recurring


def test_of_each_is_said_why_its_chains_end(stacks_with_settings: Mapping[str, Path]) -> None:
    functions = Template.of_assembly(stacks_with_settings["github"]).functions()
    assert chains.ENDS.keys() <= functions.keys()
    assert all(chains.ENDS.values())


def test_a_loop_is_found_however_long_it_is() -> None:
    found = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert [name for name in found if name in reached(found, name)] == ["a", "b", "c"]
