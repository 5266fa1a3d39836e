"""What comes out of the driver: errors that the core knows, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aws_lambda_powertools import Logger

from penstock.domain.errors import DriverError
from penstock.drivers.factories.ec2.codes import Failure
from penstock.drivers.factories.ec2.machines import CallFailed

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
        from aws_lambda_powertools.metrics import MetricUnit, single_metric

        log.error("EC2 said what is in no table", extra={"call": failure.call, "code": failure.code})
        with single_metric(name="UnknownDriverErrors", unit=MetricUnit.Count, value=1, namespace="Penstock") as metric:
            metric.add_dimension(name="driver", value="ec2")
            metric.add_metadata(key="code", value=failure.code)
    return failure.error()
