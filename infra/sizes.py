"""Memory and timeouts of the functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Size:
    """The timeout of a function, and its memory in MB."""

    timeout: timedelta
    memory: int = 512


SIZES: Mapping[str, Size] = {
    "api": Size(timedelta(seconds=29)),  # API Gateway itself gives up after 30 s
    "agent_api": Size(timedelta(seconds=29)),
    "schedule": Size(timedelta(seconds=60)),
    "factory": Size(timedelta(seconds=120)),
    "well": Size(timedelta(seconds=120)),
    "settle": Size(timedelta(seconds=60)),
    "sweep": Size(timedelta(seconds=120)),
}

GITHUB_SIZES: Mapping[str, Size] = {
    "github_webhook": Size(timedelta(seconds=9)),  # GitHub itself gives up after 10 s
    "github_work": Size(timedelta(seconds=120)),
}
"""The functions of the front end for GitHub, which is optional."""
