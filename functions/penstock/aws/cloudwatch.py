"""Metrics on CloudWatch, written to the function's log: this needs no call and no permission.

The values of one invocation are collected, and written when it ends: a block of the embedded metric format (EMF) for
each combination of dimensions. A process that dies before writes nothing of that invocation. Every block has the
dimension `service`, the deployment's name.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from penstock.domain.metrics import NAMESPACE, Fold, Level, Metric

By = tuple[tuple[str, str], ...]


class EmfMetrics(AmazonCloudWatchEMFProvider):
    """The metrics of one process, flushed by Powertools after each invocation."""

    def __init__(self, level: Level, service: str) -> None:
        super().__init__(namespace=NAMESPACE, service=service)
        self._level = level
        self.is_on = level is not Level.OFF
        self._values: dict[By, dict[Metric, list[float]]] = defaultdict(dict)

    def add(self, metric: Metric, value: float = 1, **by: str) -> None:
        """Add a value to every set of the metric's dimensions whose names are all in `by`."""
        for dimensions in metric.sets(self._level):
            names = [each.name for each in dimensions]
            if by.keys() >= {*names}:
                self._put(metric, tuple((name, by[name]) for name in names), value)

    def wants(self, metric: Metric) -> bool:
        """Whether the level reports the metric at all."""
        return bool(metric.sets(self._level))

    def wrap(self, handler: Any) -> Any:
        """The handler, followed by writing the metrics, among them Powertools' metric of cold starts."""
        return self.log_metrics(handler, capture_cold_start_metric=True)

    def _put(self, metric: Metric, by: By, value: float) -> None:
        values = self._values[by].setdefault(metric, [])
        values.append(value)
        if metric.fold is not Fold.EACH:
            values[:] = [sum(values) if metric.fold is Fold.SUM else max(values)]

    def flush_metrics(self, raise_on_empty_metrics: bool = False) -> None:
        """Write the values since the last call. Powertools splits blocks that are too large."""
        collected, self._values = self._values, defaultdict(dict)
        for by, values in collected.items():
            block = AmazonCloudWatchEMFProvider(dimension_set=dict(by), namespace=self.namespace, service=self.service)
            for metric, each in values.items():
                for value in each:
                    block.add_metric(metric.name, metric.measure.value, value)
            if block.metric_set:
                block.flush_metrics()
