"""What a cloud said that is in no table of ours is counted: somebody should put it there."""

from __future__ import annotations


def count_unknown(driver: str, code: str) -> None:
    """One more for the metric `UnknownDriverErrors`."""
    from aws_lambda_powertools.metrics import MetricUnit, single_metric

    with single_metric(name="UnknownDriverErrors", unit=MetricUnit.Count, value=1, namespace="Penstock") as metric:
        metric.add_dimension(name="driver", value=driver)
        metric.add_metadata(key="code", value=code)
