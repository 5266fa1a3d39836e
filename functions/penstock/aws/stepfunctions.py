"""Flows on Step Functions. An execution is named after its attempt, so it cannot be started twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from botocore.exceptions import BotoCoreError, ClientError

from penstock.kernel.errors import Unreached
from penstock.kernel.rows import FORM

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


MAX_ERROR_NAME = 256
"""The longest error name. Source: the Step Functions API reference, SendTaskFailure."""

MAX_CAUSE = 2000


_ENDINGS: tuple[Literal["FAILED", "TIMED_OUT", "ABORTED"], ...] = ("FAILED", "TIMED_OUT", "ABORTED")


class StepFlows:
    """The state machine of attempts."""

    def __init__(self, client: SFNClient, machine: str) -> None:
        self._client = client
        self._machine = machine

    def start(self, job: str, attempt: int, steps: Sequence[int]) -> None:
        """Start the flow of an attempt.

        It is given ids only: an execution's history is kept for 90 days. [SEC-1] Who starts it again while it is open
        is answered as if it were new; only one that is over is refused. So no answer shows whether it takes its steps.
        """
        data = {"form": FORM, "job": job, "attempt": attempt, "needs": [{"step": step} for step in steps]}
        name = f"{job}-{attempt}"
        try:
            self._client.start_execution(stateMachineArn=self._machine, name=name, input=json.dumps(data))
        except self._client.exceptions.ExecutionAlreadyExists:
            return
        except (BotoCoreError, ClientError) as error:
            raise Unreached(f"the flow of {name} could not be started: {error}") from error

    def stop(self, job: str, attempt: int) -> None:
        """Stop the flow of an attempt."""
        arn = f"{self._machine.replace(':stateMachine:', ':execution:')}:{job}-{attempt}"
        try:
            self._client.stop_execution(executionArn=arn, cause="its attempt is over")
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("ExecutionDoesNotExist", "ValidationException"):
                raise

    def succeed(self, token: str) -> bool:
        """Answer a parked step, and return whether it was parked."""
        return self._answer(lambda: self._client.send_task_success(taskToken=token, output="{}"))

    def fail(self, token: str, error: str, cause: str) -> None:
        """Answer a parked step with an error."""
        name, why = error[:MAX_ERROR_NAME], cause[:MAX_CAUSE]
        self._answer(lambda: self._client.send_task_failure(taskToken=token, error=name, cause=why))

    def _answer(self, send: Callable[[], object]) -> bool:
        """Whether a step took its answer. One that was answered, or whose execution is over, is closed."""
        known = self._client.exceptions
        try:
            send()
        except (known.TaskTimedOut, known.TaskDoesNotExist, known.InvalidToken):
            return False
        return True

    def ended(self) -> Iterable[tuple[str, int, str]]:
        """The latest hundred flows for each status other than success."""
        for status in _ENDINGS:
            listed = self._client.list_executions(stateMachineArn=self._machine, statusFilter=status, maxResults=100)
            for execution in listed["executions"]:
                job, _, attempt = execution["name"].rpartition("-")
                if job and attempt.isdigit():
                    yield job, int(attempt), status
