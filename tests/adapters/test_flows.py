"""What Step Functions answers to a start, and what that is taken for."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from penstock.aws.stepfunctions import StepFlows
from penstock.kernel.errors import Unreached

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:attempt"
EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:attempt:J1-2"
GIVEN = {
    "stateMachineArn": MACHINE,
    "name": "J1-2",
    "input": '{"form": 1, "job": "J1", "attempt": 2, "needs": [{"step": 1}]}',
}


@pytest.fixture
def stub() -> Iterator[Stubber]:
    client = boto3.client("stepfunctions", "us-east-1", aws_access_key_id="test", aws_secret_access_key="test")
    with Stubber(client) as made:
        yield made
        made.assert_no_pending_responses()


def test_a_flow_is_started_with_the_same_name_and_input_each_time(stub: Stubber) -> None:
    """So that AWS takes the second for the first while it is open: it answers both alike."""
    for _ in range(2):
        stub.add_response("start_execution", {"executionArn": EXECUTION, "startDate": 0}, GIVEN)
        StepFlows(stub.client, MACHINE).start("J1", 2, [1])


def test_a_flow_that_is_over_is_not_started_again(stub: Stubber) -> None:
    stub.add_client_error("start_execution", "ExecutionAlreadyExists", expected_params=GIVEN)
    StepFlows(stub.client, MACHINE).start("J1", 2, [1])


def test_a_flow_that_cannot_be_started_now_is_unreached(stub: Stubber) -> None:
    stub.add_client_error("start_execution", "ExecutionLimitExceeded", expected_params=GIVEN)
    with pytest.raises(Unreached, match="the flow of J1-2 could not be started"):
        StepFlows(stub.client, MACHINE).start("J1", 2, [1])


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"])
def test_a_step_that_no_longer_waits_is_answered_in_vain(stub: Stubber, code: str) -> None:
    """A second answer, one that comes too late, and one of another deployment."""
    flows = StepFlows(stub.client, MACHINE)
    stub.add_client_error("send_task_success", code, expected_params={"taskToken": "t", "output": "{}"})
    assert flows.succeed("t") is False
    told = {"taskToken": "t", "error": "e" * 256, "cause": "c" * 2000}
    stub.add_client_error("send_task_failure", code, expected_params=told)
    flows.fail("t", "e" * 300, "c" * 3000)


def test_a_step_that_waits_is_answered(stub: Stubber) -> None:
    stub.add_response("send_task_success", {}, {"taskToken": "t", "output": "{}"})
    assert StepFlows(stub.client, MACHINE).succeed("t") is True


def test_an_answer_that_is_refused_for_another_reason_is_raised(stub: Stubber) -> None:
    stub.add_client_error("send_task_success", "AccessDeniedException")
    with pytest.raises(ClientError, match="AccessDenied"):
        StepFlows(stub.client, MACHINE).succeed("t")
