"""Makes clients of AWS raise Unreached when a service does not answer, fails, or has too much to do."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from botocore.exceptions import ConnectionError, HTTPClientError

from penstock.kernel.errors import Unreached

C = TypeVar("C")

TOO_MUCH = {
    "KMSInternalException", "LimitExceededException", "OverLimit", "RequestThrottled", "SlowDown", "Throttling",
    "ThrottlingException", "TooManyRequestsException",
}  # fmt: skip
"""Codes with which services refuse what comes too fast. Source: the API references of SQS, Step Functions, S3, KMS and
Secrets Manager, Common errors.
"""

ITS_OWN_FAULT = 500
"""The lowest HTTP status with which a service says that it failed, and not the call."""


def watched(client: C) -> C:
    """The client, whose calls raise Unreached where its service failed, after botocore has tried them again.

    A call that is refused for what it says raises ClientError as before. DynamoDB's refusals are more than that, and
    `penstock.aws.dynamodb` reads them; drivers have clients of their own, whose errors they translate.
    """
    events = client.meta.events  # type: ignore[attr-defined]
    events.register("after-call", _look_at_answer)
    events.register("after-call-error", _look_at_error)
    return client


def _look_at_answer(http_response: Any, parsed: Any, model: Any, **_: object) -> None:
    code = parsed.get("Error", {}).get("Code", "") if http_response.status_code >= 300 else ""
    if http_response.status_code >= ITS_OWN_FAULT or code in TOO_MUCH:
        _raise(model.service_model.service_name, model.name, f"{http_response.status_code} {code}".strip())


def _look_at_error(exception: Exception, event_name: str, **_: object) -> None:
    if isinstance(exception, ConnectionError | HTTPClientError):
        name, operation = event_name.split(".")[1:]
        _raise(name, operation, str(exception), exception)


def _raise(name: str, operation: str, why: str, cause: Exception | None = None) -> NoReturn:
    raise Unreached(f"{name} did not take {operation}: {why}") from cause
