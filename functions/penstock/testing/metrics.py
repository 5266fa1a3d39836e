"""Metrics that are kept, and refuse what the real ones would put on the bill without a word."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache

from penstock.domain.metrics import METRICS, Level, Metric
from penstock.domain.site.site import Site

ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
"""What every id of ours has in it."""

By = frozenset[tuple[str, str]]


class WrongMetric(BaseException):
    """What the real metrics would put on the bill without a word. No `except Exception` of a sweep hides it."""


class RecordedMetrics:
    """All that was told, by metric and dimensions. What would be wrong fails the step that tells it."""

    def __init__(self, *, wanted: bool = True) -> None:
        self._wanted = wanted
        self.told: dict[str, dict[By, list[float]]] = defaultdict(lambda: defaultdict(list))

    def add(self, metric: Metric, value: float = 1, **by: str) -> None:
        whose = frozenset(by.items())
        try:
            assert value >= 0, (metric.name, value)
            check(metric, whose, is_zero=value == 0)
        except AssertionError as error:
            raise WrongMetric(str(error)) from error
        self.told[metric.name][whose].append(value)

    def wants(self, metric: Metric) -> bool:
        return self._wanted

    def of(self, metric: Metric, **by: str) -> list[float]:
        """The values that were told with these dimensions, among others; zeros are left out."""
        found = (values for key, values in self.told[metric.name].items() if key >= by.items())
        return [value for values in found for value in values if value]

    def last(self, metric: Metric, **by: str) -> float:
        """The last value that was told with just these dimensions."""
        return self.told[metric.name][frozenset(by.items())][-1]


@cache
def check(metric: Metric, whose: By, *, is_zero: bool) -> None:
    """A metric is of the table, its dimensions are all there and no others, and no value is an id. [SEC-1]"""
    by = dict(whose)
    assert metric in METRICS, metric.name
    sets = [{each.name for each in dimensions} for dimensions in metric.sets(Level.POOLS)]
    whole = set().union(*sets)
    assert set(by) == whole or (is_zero and set(by) in sets), f"{metric.name} is told by {sorted(whole)}, not {by}"
    assert not [each for each in by.values() if ID.search(each) or not each], by
    for dimension in {each for dimensions in metric.sets(Level.POOLS) for each in dimensions}:
        known = dimension.values(Site())
        assert not known or by.get(dimension.name, "") in ("", *known), (metric.name, by)
