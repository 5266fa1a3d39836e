"""Which of an owner's jobs may go on, where a site limits how many are under way at once, or what they cost.

The rules are in domain/jobs/backlogs.py.

Whoever ends a job writes first, and then wakes who stands first in the backlog. A job that joins the backlog is written
first, and then judged. So of two that race, one sees the other; the sweep makes up for lost messages. [QUEUE-1]
It also lets those go on that waited for a budget: it judges each after ten minutes at most.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.jobs import backlogs
from penstock.domain.jobs.backlogs import Backlogged
from penstock.domain.jobs.jobs import Job
from penstock.domain.site.site import Site
from penstock.domain.users.users import Tally, tally_key
from penstock.kernel.rows import Change, Create, Delete
from penstock.system import System, current_site
from penstock.usecases import budgets

AT_ONCE = 25
"""How many jobs one call wakes. Each that goes on wakes the next."""


def admit(on: System, job: Job, tally: Tally, site: Site) -> tuple[Job, Tally, list[Change]]:
    """A queued job as it goes on, or as it waits in the backlog; its owner's tally, and the changes of the backlog.

    It waits while its owner's budget is spent, or too many of its jobs are under way; then nobody passes a job that
    stands before it there.
    """
    stands = on.store.get(backlogs.key_of(job), Backlogged)
    leaves: list[Change] = [Delete(stands)] if stands else []
    has_budget = budgets.spent(on, site, job.owner) is None
    if has_budget and not site.limits.at_once:
        return job, tally, leaves
    if has_budget and backlogs.room(tally, site.limits, 1) and _is_next(first(on, job.owner, 1), job):
        return *backlogs.begin(job, tally), leaves
    return backlogs.put_off(job), tally, [] if stands else [Create(backlogs.note(job, on.world.now()))]


def _is_next(before: Sequence[Backlogged], job: Job) -> bool:
    return not before or before[0].key.sk >= place_of(job)


def place_of(job: Job) -> str:
    """A job's place in its owner's backlog: those before it have a lesser one."""
    return backlogs.key_of(job).sk


def first(on: System, owner: str, most: int) -> list[Backlogged]:
    """Who stands first in an owner's backlog."""
    return on.store.find(backlogs.collection(owner), backlogs.PREFIX, Backlogged, limit=most)


def foresee(on: System, owner: str) -> list[str]:
    """What a new job of an owner would wait for in its backlog, as a sentence; none if it would go on."""
    site = current_site(on)
    spent = budgets.spent(on, site, owner)
    if spent:
        return [f"first it would wait for its owner's budget: {spent}"]
    most, begun = site.limits.at_once, tally_of(on, owner).begun
    if not most or begun < most:
        return []
    return [f"first it would wait until fewer jobs of {owner} are under way: {begun} are, and {most} may be"]


def wake(on: System, owner: str) -> None:
    """Have those judged for whom there is room now. Safe to repeat. [QUEUE-1]"""
    most = backlogs.room(tally_of(on, owner), current_site(on).limits, AT_ONCE)
    for each in first(on, owner, most) if most else ():
        on.queues.schedule({"do": "judge", "job": each.job})


def tally_of(on: System, owner: str) -> Tally:
    """An owner's tally, which it may not have yet."""
    return on.store.get(tally_key(owner), Tally) or Tally(owner=owner, at=on.world.now())


def forget(on: System, job: Job) -> list[Change]:
    """The change by which a waiting job that ends leaves the backlog, if it stands there."""
    stands = on.store.get(backlogs.key_of(job), Backlogged)
    return [Delete(stands)] if stands else []
