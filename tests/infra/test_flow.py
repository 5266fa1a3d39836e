"""The flow of an attempt, as a person would check it by reading."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from infra.flow import DEFINITION
from penstock.kernel.rows import FORM

FLOW: dict[str, Any] = json.loads(DEFINITION.read_text())
PARKED = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"


def states(machine: dict[str, Any] = FLOW) -> Iterator[tuple[str, dict[str, Any]]]:
    """All states, those inside a Map too."""
    for name, state in machine["States"].items():
        yield name, state
        if "ItemProcessor" in state:
            yield from states(state["ItemProcessor"])


STATES = dict(states())


def test_every_state_says_what_it_is_for() -> None:
    assert not [name for name, state in STATES.items() if len(state.get("Comment", "")) < 20]


def test_resources_come_first_and_the_worker_last() -> None:
    order, at = [], FLOW["StartAt"]
    while at:
        order.append(at)
        at = FLOW["States"][at].get("Next")
    assert order == ["AcquireResources", "AcquireWorker"]
    assert STATES["AcquireWorker"]["End"], "the agent's report ends the attempt, and costs no transition"


def test_resources_are_acquired_one_at_a_time() -> None:
    assert STATES["AcquireResources"]["MaxConcurrency"] == 1


@pytest.mark.parametrize("name", ["AcquireResources", "AcquireWorker"])
def test_any_failure_settles_and_keeps_the_ids(name: str) -> None:
    (catch,) = STATES[name]["Catch"]
    assert catch == {"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Settle"}
    assert STATES[name]["ResultPath"] is None


def test_settling_is_tried_again_whatever_happens() -> None:
    (retry,) = STATES["Settle"]["Retry"]
    assert retry["ErrorEquals"] == ["States.ALL"]
    assert STATES["Settle"]["End"]


@pytest.mark.parametrize(
    ("name", "does", "more"),
    [
        ("AcquireResource", "acquire", {"step.$": "$.step"}),
        ("AcquireWorker", "acquire", {"step": 0}),
    ],
)
def test_a_parked_step_tells_the_schedule_ids_and_its_token(name: str, does: str, more: dict[str, Any]) -> None:
    ids = {"job.$": "$.job", "attempt.$": "$.attempt", "token.$": "$$.Task.Token"}
    assert STATES[name]["Resource"] == PARKED
    assert STATES[name]["Parameters"] == {
        "QueueUrl": "${schedule_queue_url}",
        "MessageBody": {"form": FORM, "do": does, **ids, **more},
    }


def test_there_is_no_timer_but_the_machines_own() -> None:
    text = DEFINITION.read_text()
    assert "HeartbeatSeconds" not in text
    assert text.count("TimeoutSeconds") == 1
    assert FLOW["TimeoutSeconds"] == 31 * 24 * 3600


def test_everything_substituted_is_given_and_used(stack: Any) -> None:
    machine = stack.one("StepFunctions::StateMachine")[1]
    assert set(re.findall(r"\$\{(\w+)}", DEFINITION.read_text())) == set(machine["DefinitionSubstitutions"])


def test_an_attempt_costs_two_transitions_and_one_per_resource_and_one_more_if_it_fails() -> None:
    outside, inside = FLOW["States"], STATES["AcquireResources"]["ItemProcessor"]["States"]
    assert (list(outside), len(inside)) == (["AcquireResources", "AcquireWorker", "Settle"], 1)
