"""What comes out of the driver: errors that the core knows, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aws_lambda_powertools import Logger

from penstock.drivers.factories.libcloud.codes import Failure
from penstock.drivers.factories.libcloud.nodes import CallFailed
from penstock.drivers.metrics import count_unknown

log = Logger(child=True)


@contextmanager
def told() -> Iterator[None]:
    """Around everything that a driver does: what comes out of it is an error that the core knows."""
    try:
        yield
    except CallFailed as failed:
        noted(failed.failure)
        raise failed.failure.error() from failed


def noted(failure: Failure) -> None:
    """What is in no table is logged and counted: somebody should put it there."""
    if not failure.meaning.is_known:
        log.error("a cloud said what is in no table", extra={"call": failure.call, "code": failure.code})
        count_unknown("libcloud", failure.code)
