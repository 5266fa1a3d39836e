"""The dimensions of Penstock's metrics in CloudWatch, checked, because a wrong one would match no data."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.domain.metrics import Level, Metric
from penstock.domain.site.site import Site

SERVICE = "service"
"""The dimension of every metric of Penstock: the deployment's name."""


def site_dimensions(metric: Metric, service: str, by: Mapping[str, str]) -> dict[str, str]:
    """The dimensions of a metric of the whole site. Raises ValueError if it does not have these."""
    if by not in list(metric.combinations(Site(), Level.SITE)):
        raise ValueError(f"{metric.name} does not have the dimensions {dict(by)}")
    return {SERVICE: service, **by}
