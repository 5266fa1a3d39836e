"""A user's jobs: find and explain them. Called by the API, and by the other use cases of jobs."""

from __future__ import annotations

from dataclasses import replace

from penstock.domain import cooldowns as cooling_rules
from penstock.domain.artifacts.inputs import Input
from penstock.domain.cooldowns import CoolDown
from penstock.domain.jobs import plans, prerequisites
from penstock.domain.jobs.jobs import Job, State, job_key
from penstock.domain.jobs.prerequisites import Verdict
from penstock.domain.pools import delays, pools, why
from penstock.domain.pools.delays import Delay
from penstock.domain.pools.forecast import Action
from penstock.domain.pools.pools import Lease, LeaseState, lease_key
from penstock.domain.pools.why import Stopped, Why
from penstock.domain.units import units
from penstock.domain.units.units import Unit, unit_key
from penstock.domain.users.users import User
from penstock.kernel import limits, rows
from penstock.kernel.errors import not_found
from penstock.system import System, current_site
from penstock.usecases import budgets, cooldowns
from penstock.usecases.jobs import backlogs, flow
from penstock.usecases.pools import forecast


def find(on: System, user: User, job_id: str) -> Job:
    """A job that the user may see. Another's job is treated as nonexistent. Raises Refused 404. [SEC-2]"""
    job = by_id(on, job_id)
    if job is None or not user.may_see(job.owner):
        raise not_found("job", job_id[:64])
    return job


def by_id(on: System, job_id: str) -> Job | None:
    """A job, whoever's; None if there is none."""
    return on.store.get(job_key(job_id), Job) if rows.is_ulid(job_id) else None


def explain(on: System, job: Job) -> Why:
    """Why a job is where it is, when it may continue, what has to happen before; and what its owner is warned of."""
    is_waiting = job.state is State.WAITING
    found = _explain_waiting(on, job, why.MAX_DEPTH) if is_waiting else _explain_attempt(on, job)
    if job.is_settled or any(each.way is Action.BUDGET for each in found.unblocks):
        return found
    return replace(found, warning=budgets.warning(on, current_site(on), job.owner), chosen=job.request.chosen or None)


def _explain_waiting(on: System, job: Job, deep: int) -> Why:
    """What a dependent job waits for, and what the first of those waits for in turn."""
    verdict, priors = check_prerequisites(on, job)
    backlogged = _explain_backlog(on, job) if verdict.is_ready else None
    if backlogged:
        return backlogged
    reviewed = current_site(on).environments.get(verdict.review.environment) if verdict.review else None
    first = priors[verdict.waiting[0].job] if verdict.waiting and deep else None
    if first is None:
        return why.explain_dependencies(job, verdict, priors, None, reviewed)
    next_ = _explain_waiting(on, first, deep - 1) if first.state is State.WAITING else _explain_attempt(on, first)
    return why.explain_dependencies(job, verdict, priors, next_, reviewed)


def _explain_backlog(on: System, job: Job) -> Why | None:
    """Why a job that waits for nothing else does not go on yet; None if it is about to."""
    site, mine = current_site(on), backlogs.place_of(job)
    begun, most = backlogs.tally_of(on, job.owner).begun, site.limits.at_once
    spent = budgets.spent(on, site, job.owner)
    if not spent and (not most or begun < most):
        return None
    before = sum(each.key.sk < mine for each in backlogs.first(on, job.owner, limits.PAGE))
    if spent:
        return why.explain_budget(job, spent, before)
    return why.explain_backlog(job, begun, most, before)


def _explain_attempt(on: System, job: Job) -> Why:
    had = flow.leases_of(on, job)
    waiting = next((lease for lease in had if lease.state is LeaseState.WAITING), None)
    granted = next((lease for lease in had if lease.state is LeaseState.GRANTED), None)
    unit = on.store.get(unit_key(granted.unit), Unit) if granted and granted.unit else None
    now, later = on.world.now(), plans.steps_of(job)
    found = forecast.forecast_step(on, job, waiting.step) if waiting else None
    if waiting is None or found is None:
        stopped = _blocking_cooldowns(on, unit) if unit else []
        kept = delays.delay_of(unit, now) if unit else _kept_worker(on, job)
        reason, is_made = (unit.step.reason, unit.creation.made is not None) if unit else (None, True)
        missing = forecast.missing_pool(on, *forecast.pools_of(job, waiting.step)) if waiting else None
        return why.explain(
            job, had, None, reason, now=now, stopped=stopped, kept=kept, is_made=is_made, missing=missing
        )
    rest = [forecast.forecast_step(on, job, step) for step in later[later.index(waiting.step) + 1 :]]
    forecasts = [found[0], *(one[0] for one in rest if one)]
    return why.explain(job, had, found[1], None, forecasts, now)


def _blocking_cooldowns(on: System, unit: Unit) -> list[Stopped]:
    """The cool-downs that keep a unit from being made."""
    return [_stopped(on, row, unit) for row in cooldowns.blocking(on, unit)]


def _stopped(on: System, row: CoolDown, unit: Unit) -> Stopped:
    """A cool-down as it concerns a unit: another may try first. If that is gone, its time to try has to pass."""
    now = on.world.now()
    says = cooling_rules.describe(row, now)
    if row.probe == unit.id or not row.is_probed(now):
        return Stopped(says, row.why, row.until)
    probe = on.store.get(unit_key(str(row.probe)), Unit)
    if probe and (probe.is_leased or units.is_prewarming(probe)):
        return Stopped(says, row.why, row.until, probe.id)
    return Stopped(says, row.why, row.probe_until or row.until)


def _kept_worker(on: System, job: Job) -> Delay | None:
    """What keeps the worker of a queued job's last attempt while its lease is not over: the next one waits. [JOB-2]"""
    if job.state is not State.QUEUED:
        return None
    lease = on.store.get(lease_key(job.id, job.attempt - 1, pools.WORKER), Lease)
    return delays.first_delay([(lease, flow.unit_of(on, lease))], on.world.now()) if lease else None


def check_prerequisites(on: System, job: Job) -> tuple[Verdict, dict[str, Job]]:
    """The state of a job's dependencies, input files and review; and the jobs that it depends on, by id."""
    found = (on.store.get(job_key(each.job), Job) for each in job.request.dependencies)
    priors = {prior.id: prior for prior in found if prior}
    files = on.store.find(f"job#{job.id}", "input#", Input) if job.request.inputs else []
    return prerequisites.judge(job.request.dependencies, priors, files, on.world.now(), job.review), priors
