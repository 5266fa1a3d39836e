"""A storm of messages leaves executions to users and agents: `at_once`."""

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


def test_a_site_sets_how_many_calls_there_are_at_a_time(made_stacks: Mapping[str, Path]) -> None:
    assert most_calls(Template.read(made_stacks["few"] / "Penstock.template.json")) == [40, 40, 40, 50, 100]


@pytest.mark.parametrize("most", [2, 1000])
def test_the_setting_is_what_aws_takes(most: int) -> None:
    assert Settings.of({"at_once": str(most)}).at_once == most


@pytest.mark.parametrize("most", [1, 1001])
def test_other_settings_are_refused(most: int) -> None:
    with pytest.raises(ValueError, match=f"2 to 1000 calls, not {most}"):
        Settings.of({"at_once": str(most)})
