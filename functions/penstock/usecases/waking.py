"""Those that wait for a job that has settled are told to look."""

from __future__ import annotations

from penstock.domain.jobs.dependencies import Dependent, dependent_key
from penstock.system import System

AT_ONCE = 100
"""How many are told by one call; the rest by the next, so that nobody's settling takes longer for them."""


def wake(on: System, job_id: str, after: str = "") -> None:
    """Tell those that wait for a job, which has settled, that they are to be judged; behind the one of an id.

    Who settles a job writes first and reads after, and so does whoever submits one that depends on it: of two that
    race, one sees the other. A message that is lost is made good when the sweep looks at who waits. [JOB-1]
    """
    behind = dependent_key(job_id, after).sk
    found = on.store.find(f"job#{job_id}", "dependent#", Dependent, limit=AT_ONCE, after=behind)
    for row in found:
        on.queues.schedule({"do": "judge", "job": row.dependent})
    if len(found) == AT_ONCE:
        on.queues.schedule({"do": "wake", "job": job_id, "after": found[-1].dependent})
