"""What a metric is: a name, a unit, and how what is told of it within one invocation is put together.

Each metric has one or two sets of dimensions: the one that every site is told of, and a finer one with the names of
pools, targets, factories and wells. A dimension's values are known from the code or from the site, and never an id:
whoever charges for metrics charges for every combination.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from penstock.domain.site import Site


class Level(StrEnum):
    """How much is told."""

    OFF = "off"  # nothing
    SITE = "site"  # of the site as a whole
    POOLS = "pools"  # and by pool, target, factory and well


class Measure(StrEnum):
    """Units, as CloudWatch names them. Source: the CloudWatch API reference, MetricDatum."""

    COUNT = "Count"
    SECONDS = "Seconds"
    PERCENT = "Percent"


class Fold(StrEnum):
    """How values are put together that one invocation tells of the same metric with the same dimensions."""

    SUM = "sum"
    MOST = "most"
    EACH = "each"  # all are kept, for percentiles and means


@dataclass(frozen=True, eq=False)
class Dimension:
    """Something that a metric is told by, and the values that it has at a site."""

    name: str
    values: Callable[[Site], Collection[str]]


Dimensions = tuple[Dimension, ...]


@dataclass(frozen=True, eq=False)
class Metric:
    """One line of the table. `site` is None for what is told by pool alone, `pools` for what has nothing finer.

    `never` says which combinations there cannot be.
    """

    name: str
    measure: Measure
    fold: Fold
    meaning: str
    site: Dimensions | None = ()
    pools: Dimensions | None = None
    never: Callable[[Mapping[str, str]], bool] = lambda by: False

    def sets(self, level: Level) -> list[Dimensions]:
        """The sets of dimensions that are told at a level."""
        told = {Level.OFF: (), Level.SITE: (self.site,), Level.POOLS: (self.site, self.pools)}[level]
        return [each for each in told if each is not None]

    def combinations(self, site: Site, level: Level) -> Iterator[dict[str, str]]:
        """Every combination of values that can be told, known from the site."""
        for dimensions in self.sets(level):
            for values in product(*(each.values(site) for each in dimensions)):
                by = {each.name: value for each, value in zip(dimensions, values, strict=True)}
                if not self.never(by):
                    yield by


def among(words: Iterable[str]) -> Callable[[Site], Collection[str]]:
    """The values of a dimension that are the same at every site."""
    told = tuple(words)
    return lambda site: told
