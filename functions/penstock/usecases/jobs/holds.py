"""Holding a job's worker and resources when its script has ended: requested, withdrawn, shown. [UNIT-3]

Called by the API, and with each report of an agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from penstock.domain.jobs import holds
from penstock.domain.jobs.holds import HeldUnits
from penstock.domain.jobs.jobs import HoldRequest, Job
from penstock.domain.site.site import Site
from penstock.domain.units import maintenance as rules
from penstock.domain.units.units import HOLD_MOST, Unit, unit_key
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Replace
from penstock.system import System, current_site, transact
from penstock.usecases.jobs import flow, jobs
from penstock.usecases.logs import logs
from penstock.usecases.units import maintenance

FAILED = "its script failed: to look at it"


def check(site: Site, user: User, seconds: int) -> None:
    """Raises Refused 422 for a hold that this user may not request: others wait for what is held."""
    most = HOLD_MOST if user.is_admin else site.limits.hold
    if seconds > most:
        text = f"this site holds what a job has for at most {most} s" if most else "this site holds nothing for users"
        raise Refused(422, "hold-too-long", f"{text} (limits.hold); ask an operator for more")


def request(on: System, user: User, job_id: str, reason: str, seconds: int | None, *, whatever: bool) -> Job:
    """Hold what a job has when its script has ended. Raises Refused 400, 404, 409 or 422."""
    rules.check(reason, seconds, required=True)
    site = current_site(on)
    kept = HoldRequest(user.name, reason, seconds or min(site.limits.hold, HOLD_MOST) or HOLD_MOST, whatever)
    check(site, user, kept.seconds)

    def decide() -> tuple[Sequence[Change], Job]:
        job = jobs.find(on, user, job_id)
        if job.is_lease:
            raise Refused(409, "is-a-lease", f"{job_id} is a lease without a job: whoever has it keeps what it has")
        if job.is_settled or job.run.report:
            why = f"the script of job {job_id} has ended, and what it had is being put back"
            raise Refused(409, "too-late-to-hold", f"{why}; `job run --hold-on-failure` asks for it in time")
        asked = replace(job, keep=kept)
        return [Replace(job, asked)], asked

    job = transact(on, decide)
    when = "when its script has ended" if whatever else "if its script fails"
    logs.append(on, job.id, job.attempt, f"its worker and resources are to be held {when}, by {user.name}: {reason}")
    return job


def on_reported(on: System, job: Job, keep: HoldRequest) -> list[tuple[Unit, Unit]]:
    """The units of a job that requested a hold, before and after its report, if they are to be held now."""
    now = on.world.now()
    return holds.hold_units(keep, units_of(on, job), now) if holds.is_wanted(keep, job, now) else []


def units_of(on: System, job: Job) -> list[Unit]:
    """The units of a job's present attempt; none of leases that wait, nor units whose rows have expired."""
    names = dict.fromkeys(str(lease.unit) for lease in flow.leases_of(on, job))
    found = (on.store.get(unit_key(name), Unit) for name in names)
    return [unit for unit in found if unit and (unit.lease.job, unit.lease.attempt) == (job.id, job.attempt)]


def held_units(on: System, job: Job) -> HeldUnits | None:
    """The units of a job that are held now at its request."""
    return holds.held_units(job.keep, units_of(on, job), on.world.now()) if job.keep else None


def release(on: System, user: User, job_id: str) -> Job:
    """Withdraw a job's hold, now and for when its script ends. Raises Refused 404, or 409 if there is none."""

    def decide() -> tuple[Sequence[Change], tuple[Job, HoldRequest]]:
        job = jobs.find(on, user, job_id)
        if job.keep is None:
            raise Refused(409, "not-held", f"nothing of job {job_id} is held, or to be held, for its sake")
        return ([] if job.is_settled else [Replace(job, replace(job, keep=None))]), (job, job.keep)

    job, keep = transact(on, decide)
    for unit in units_of(on, job):
        if holds.is_for_job(keep, unit.hold):
            with suppress(Refused):  # the hold expired, or somebody else released it
                maintenance.release(on, user, unit.is_a, unit.id)
    logs.append(on, job.id, job.attempt, f"nothing is held for its sake any more, by {user.name}")
    return job
