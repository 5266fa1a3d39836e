"""What jobs cost: told at any time, and closed by the sweep once all that a job had is given back.

The rules are in domain/prices.py. A job's end opens its bill, in the job's own row, on a site with prices. Nothing that
a job waits for writes anything for its bill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.domain import prices
from penstock.domain.artifacts.artifacts import INPUT, OUTPUT, ArtifactState
from penstock.domain.jobs.jobs import Bill, Job, job_key
from penstock.domain.pools.pools import Lease
from penstock.domain.prices import Files
from penstock.domain.site.site import Site
from penstock.domain.units.units import Unit, unit_key
from penstock.kernel.rows import Change, Replace
from penstock.listings import rows_at
from penstock.system import System, current_site, transact
from penstock.usecases import costs
from penstock.usecases.artifacts import owners


def bill_of(on: System, job: Job) -> Bill:
    """A job's bill: as it was closed, or as it is so far."""
    return job.bill if job.bill and job.bill.due is None else _reckon(on, job, current_site(on))[0]


def is_due(on: System, job: Job | None) -> bool:
    """Whether a job's bill is to be closed."""
    return job is not None and job.bill is not None and job.bill.due is not None and job.bill.due <= on.world.now()


def close(on: System, job_id: str) -> None:
    """Close a job's bill, if it is due, and add it to its owner's costs; later, while something of the job is not given
    back. Safe to repeat.
    """
    transact(on, lambda: _close_changes(on, job_id))


def _close_changes(on: System, job_id: str) -> tuple[Sequence[Change], None]:
    job = on.store.get(job_key(job_id), Job)
    if job is None or not is_due(on, job):
        return [], None
    now = on.world.now()
    bill, is_complete = _reckon(on, job, current_site(on))
    if not is_complete and job.times.settled and now < job.times.settled + prices.CLOSE_AT_LAST:
        return [Replace(job, replace(job, bill=Bill(due=now + prices.CLOSE_AGAIN)))], None
    return [Replace(job, replace(job, bill=bill)), *costs.add(on, job, bill)], None


def _reckon(on: System, job: Job, site: Site) -> tuple[Bill, bool]:
    """A job's bill as it is now, and whether all is given back."""
    leases = on.store.find(f"job#{job.id}", "lease#", Lease)
    return prices.reckon(job, leases, _units(on, leases), _files(on, job, site), site, on.world.now())


def _units(on: System, leases: Sequence[Lease]) -> dict[str, Unit]:
    """The units of some leases, by id. Those whose rows have expired are missing."""
    found = rows_at(on, [unit_key(lease.unit) for lease in leases if lease.unit])
    return {row.id: row for row in found.values() if isinstance(row, Unit)}


def _files(on: System, job: Job, site: Site) -> Files:
    """The bytes of a job. What workers downloaded is only read where it costs something."""
    made = [each for each in owners.made_for(on, job.id) if each.state is ArtifactState.CREATED]
    stored = sum(each.size for each in made if each.sort in (INPUT, OUTPUT))
    if site.prices is None or not site.prices.sent:
        return Files(stored)
    copied = [each.job for each in job.request.dependencies if each.copy_outputs]
    inputs = sum(each.size for each in made if each.sort == INPUT)
    once = inputs + sum(output.size for prior in copied for output in owners.outputs_of(on, prior))
    return Files(stored, once * _downloads(job))


def _downloads(job: Job) -> int:
    """How many attempts downloaded the files: those whose agent said hello."""
    return sum(past.started is not None for past in job.history.attempts) + (job.started is not None)
