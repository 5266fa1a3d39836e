"""Nobody acts for an attempt that is over. [SLOT-3]"""

from __future__ import annotations

from penstock.domain.jobs.jobs import Job
from penstock.domain.pools.leases import WORKER, Lease, LeaseState, lease_key
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Check
from penstock.system import System


class Gone(Refused):
    """The attempt is over. Made anew each time: an exception that is kept keeps every frame that it was raised in."""

    def __init__(self) -> None:
        super().__init__(410, "lease-gone", "this worker is no longer wanted: stop, and exit")


def fence(on: System, job: Job) -> Check:
    """What a commit for an attempt's worker must name: that its lease is still its own. Raises Refused 410.

    The lease is written when it is settled and never between, so heartbeats do not get in the way.
    """
    lease = on.store.get(lease_key(job.id, job.attempt, WORKER), Lease)
    if lease is None or lease.state is not LeaseState.READY:
        raise Gone
    return Check(lease)
