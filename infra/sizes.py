"""Memory and timeouts of the functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Size:
    """The timeout of a function, and its memory in MB.

    At most a quarter of the memory is used by a call without rows (tests/figures/coldstarts.py): the rest is for a page
    of rows, a long log and a driver's libraries. The processor comes with the memory: docs/decisions/0049.
    """

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

WAITED_FOR = ("api", "agent_api", "schedule", "factory", "well")
"""The functions between a user's call and the first line of a job: somebody waits for their cold starts."""

GITHUB_SIZES: Mapping[str, Size] = {
    "github_webhook": Size(timedelta(seconds=9)),  # GitHub itself gives up after 10 s
    "github_work": Size(timedelta(seconds=120)),
}
"""The functions of the front end for GitHub, which is optional."""
