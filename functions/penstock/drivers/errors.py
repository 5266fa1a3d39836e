"""Reports error codes of providers that no table of a driver knows, so that somebody adds them."""

from __future__ import annotations

from aws_lambda_powertools import Logger

log = Logger(child=True)


def report_unknown(driver: str, code: str, call: str = "") -> None:
    """Log an unknown code, and count it in the metric `UnknownDriverErrors`."""
    from aws_lambda_powertools.metrics import MetricUnit, single_metric

    log.error("unknown error code: add it to the driver's table", extra={"driver": driver, "call": call, "code": code})
    with single_metric(name="UnknownDriverErrors", unit=MetricUnit.Count, value=1, namespace="Penstock") as metric:
        metric.add_dimension(name="driver", value=driver)
        metric.add_metadata(key="code", value=code)
