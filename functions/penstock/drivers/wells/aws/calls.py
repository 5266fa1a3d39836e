"""Every call to AWS goes through here: what comes out is an answer, or an error that the core knows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

from aws_lambda_powertools import Logger
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from penstock.drivers.metrics import count_unknown
from penstock.drivers.wells.aws.codes import code_of, is_known, understood

log = Logger(child=True)

CALL = Config(
    retries={"mode": "standard", "total_max_attempts": 2},
    connect_timeout=5,
    read_timeout=20,
    s3={"addressing_style": "path" if os.environ.get("AWS_ENDPOINT_URL") else "virtual"},
)
"""One more try at once, for what a moment mends: the core does the waiting. A local endpoint has no names below it."""


class Connect(Protocol):
    """Gives the client of a service in a region. For tests to replace."""

    def __call__(self, service: str, region: str) -> Any:
        """The client."""


@cache
def connect(service: str, region: str) -> Any:
    """The client of a service in a region. Made once in a function's life: that takes a tenth of a second."""
    import boto3

    client: Any = boto3.client  # the stubs know services by literal names only
    return client(service, region_name=region, config=CALL)


@contextmanager
def calling(call: str, *absent: str) -> Iterator[None]:
    """Around every call. Raises DriverError; or Absent, for codes that say that what was named is not there."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        if code_of(error) in absent:
            raise Absent(code_of(error)) from error
        _count(call, error)
        raise understood(call, error) from error


class Absent(Exception):
    """What a call named is not there."""


def _count(call: str, error: ClientError | BotoCoreError) -> None:
    """What is in no table is logged and counted: somebody should put it there."""
    if not isinstance(error, ClientError):
        return
    code, status = code_of(error), error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    if not is_known(code, status):
        log.error("AWS said what is in no table", extra={"call": call, "code": code})
        count_unknown("aws", code)


def check_each(call: str, answer: Mapping[str, Any]) -> None:
    """Of a call for many things: raise what the first that failed says."""
    for failed in answer.get("Errors", ()):
        error = {"Code": failed.get("Code", ""), "Message": f"{failed.get('Key')}: {failed.get('Message', '')}"}
        raise understood(call, ClientError({"Error": error}, call))  # type: ignore[typeddict-item]
