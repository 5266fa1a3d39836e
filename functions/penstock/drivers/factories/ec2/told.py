"""What comes out of the driver: errors that the core knows, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aws_lambda_powertools import Logger

from penstock.drivers.factories.ec2.codes import Failure
from penstock.drivers.factories.ec2.machines import CallFailed
from penstock.drivers.metrics import count_unknown
from penstock.kernel.errors import DriverError

log = Logger(child=True)


@contextmanager
def told() -> Iterator[None]:
    """Around everything that a driver does: what comes out of it is an error that the core knows."""
    try:
        yield
    except CallFailed as failed:
        raise _told(failed.failure) from failed


def _told(failure: Failure) -> DriverError:
    """An error for the core. What is in no table is logged and counted: somebody should put it there."""
    if not failure.meaning.is_known:
        log.error("EC2 said what is in no table", extra={"call": failure.call, "code": failure.code})
        count_unknown("ec2", failure.code)
    return failure.error()
