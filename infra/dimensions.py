"""The dimensions that CloudWatch knows a metric of ours by. One that is misspelt is looked at in vain."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.domain.metrics import Level, Metric
from penstock.domain.site.site import Site

SERVICE = "service"
"""The dimension that every metric of ours has: the deployment's name."""


def of_site(metric: Metric, service: str, by: Mapping[str, str]) -> dict[str, str]:
    """The dimensions of a metric that is told of the site. Raises ValueError when it is never told by these."""
    if by not in list(metric.combinations(Site(), Level.SITE)):
        raise ValueError(f"{metric.name} is not told by {dict(by)}")
    return {SERVICE: service, **by}
