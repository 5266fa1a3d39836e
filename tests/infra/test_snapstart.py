"""Functions that somebody waits for may start from a snapshot: docs/decisions/0060."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.settings import Settings
from infra.sizes import WAITED_FOR
from tests.infra.template import Template, aliases, mentions

NAMED = {"api", "schedule"}


@pytest.fixture(scope="module")
def snapshots(stacks_with_settings: Mapping[str, Path]) -> Template:
    """The stack in which two functions start from one."""
    return Template.of_assembly(stacks_with_settings["snapshots"])


def callers(stack: Template) -> list[dict[str, Any]]:
    """What calls functions: API Gateway, which also needs to be permitted, SQS and EventBridge."""
    kinds = ("ApiGatewayV2::Integration", "Lambda::EventSourceMapping", "Lambda::Permission", "Events::Rule")
    return [each["Properties"] for kind in kinds for each in stack.of(kind).values()]


def test_without_the_setting_there_is_none(stack: Template) -> None:
    assert Settings.of({}).snapstart == ()
    assert not stack.of("Lambda::Version")
    assert not [name for name, each in stack.functions().items() if "SnapStart" in each]


def test_the_named_functions_have_one(snapshots: Template) -> None:
    assert sorted(aliases(snapshots).values()) == sorted(NAMED)
    for name, function in snapshots.functions().items():
        wanted = {"ApplyOn": "PublishedVersions"} if name in NAMED else None
        assert function.get("SnapStart") == wanted, name


def test_they_are_called_by_their_alias_alone(snapshots: Template) -> None:
    made = snapshots.of("Lambda::Function")
    names = [name for name, each in made.items() if each["Properties"]["Handler"].removesuffix(".handler") in NAMED]
    assert len(names) == len(NAMED)
    for each in callers(snapshots):
        assert not [name for name in names if mentions(each, name)], each


def test_every_alias_has_the_calls_that_its_function_had(stack: Template, snapshots: Template) -> None:
    def counted(of: Template, targets: Mapping[str, str]) -> dict[str, int]:
        return {title: sum(mentions(each, name) for each in callers(of)) for name, title in targets.items()}

    made = stack.of("Lambda::Function")
    plain = {name: each["Properties"]["Handler"].removesuffix(".handler") for name, each in made.items()}
    before = {title: count for title, count in counted(stack, plain).items() if title in NAMED}
    assert counted(snapshots, aliases(snapshots)) == before
    assert min(before.values()) >= 2


def test_others_are_called_as_before(snapshots: Template) -> None:
    settle = next(name for name in snapshots.of("Lambda::Function") if "Settle" in name)
    assert mentions(snapshots.one("StepFunctions::StateMachine")[1], settle)


def test_every_function_that_somebody_waits_for_may_be_named() -> None:
    assert Settings.of({"snapstart": ", ".join([*WAITED_FOR, "api"])}).snapstart == WAITED_FOR


def test_others_may_not() -> None:
    with pytest.raises(ValueError, match=r"snapstart must be some of api, .*, well, not settle, sweep$"):
        Settings.of({"snapstart": "sweep,api,settle"})
