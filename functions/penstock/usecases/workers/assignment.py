"""What a worker's agent gets when its job starts: all that it needs to run the job, and nothing else. [SEC-1]"""

from __future__ import annotations

from datetime import timedelta

from penstock.domain.artifacts import volumes
from penstock.domain.jobs import origins
from penstock.domain.jobs.jobs import Job, Spec
from penstock.domain.jobs.origins import Origin
from penstock.domain.pools import leases
from penstock.domain.pools.leases import Lease
from penstock.domain.replies import AgentLimits, AssignedTask, Assignment, HealthChecks, ResourceAccess
from penstock.domain.site.site import GitHubApp, Health, Limits, Site
from penstock.domain.units.units import Unit
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.system import System
from penstock.usecases.jobs import flow
from penstock.usecases.jobs.flow import spec_of
from penstock.usecases.units import secrets


def assignment(on: System, job: Job, site: Site, worker: str, lease: Lease | None, *, is_kept: bool) -> Assignment:
    """All that an agent needs to run a job, given its worker's lease."""
    bounds, checks = site.limits, health(site, job)
    spec = spec_of(on, job)
    if spec is None:
        raise Refused(410, "spec-gone", "the job's script is no longer kept")
    need = next(need for need in job.request.needs if need.order == leases.WORKER)
    origin = origins.origin(job, spec, site.github or GitHubApp(0)) if job.provenance.check else None
    due = (job.times.started or on.world.now()) + timedelta(seconds=job.limits.timeout)
    return Assignment(
        job=job.id,
        name=job.name,
        owner=job.owner,
        attempt=job.attempt,
        fence=lease.fence if lease and lease.fence else 0,
        target=job.request.target_resolved,
        worker=worker,
        factory=need.maker,
        repository=origin,
        toolchain=spec.toolchain,
        tasks=[_task(spec, origin)],
        posts=list(spec.posts),
        output_rules=list(spec.output_rules),
        resources=resources(on, job),
        inputs=job.request.has_downloads,
        caches=list(spec.caches),
        reuse=is_kept,
        health=HealthChecks(checks.before, checks.after, checks.timeout),
        env=dict(spec.env),
        timeout_seconds=job.limits.timeout,
        grace_seconds=job.limits.grace,
        heartbeat_seconds=bounds.heartbeat,
        lease_seconds=bounds.lease,
        deadline=due.isoformat(),
        limits=_limits(bounds),
    )


def _task(spec: Spec, origin: Origin | None) -> AssignedTask:
    """The script. It starts in the clone of its repository, if there is one."""
    folder = f"/work/{origin.name}" if origin and origin.clone else "/work"
    return AssignedTask("build", spec.script, env={}, env_clear=False, workdir=folder)


def _limits(bounds: Limits) -> AgentLimits:
    return AgentLimits(
        output_bytes=bounds.output_bytes,
        part_bytes=volumes.PART_BYTES,
        cache_bytes=bounds.archive_bytes,
        unpacked_bytes=bounds.unpacked_bytes,
        unpacked_entries=bounds.unpacked_entries,
        unpacked_depth=bounds.unpacked_depth,
        unpacked_ratio=bounds.unpacked_ratio,
        outputs=limits.OUTPUTS,
        line_bytes=limits.EVENT_LINE_BYTES,
        batch_bytes=limits.EVENT_BATCH_BYTES,
        batch_events=limits.EVENTS_PER_BATCH,
    )


def resources(on: System, job: Job) -> dict[str, ResourceAccess]:
    """What the job may know of each resource that it holds, by the name that the job gave it."""
    found: dict[str, ResourceAccess] = {}
    if all(need.order == leases.WORKER for need in job.request.needs):
        return found
    for lease in flow.lease_rows(on, job.id, job.attempt):
        unit = flow.unit_of(on, lease) if lease.order else None
        if unit and unit.lease.fence == lease.fence:
            known = secrets.metadata_of(on, unit)
            metadata, public = dict(known.metadata), list(known.public)
            found[lease.name] = ResourceAccess(lease.type, metadata, public, _fresh_seconds(on, unit))
    return found


def _fresh_seconds(on: System, unit: Unit) -> int | None:
    """For how many seconds the metadata will not change; None if it never changes."""
    if unit.access.renews is None:
        return None
    return max(0, int((unit.access.renews - on.world.now()).total_seconds()))


def health(site: Site, job: Job) -> Health:
    """The scripts that check whether the machine is fit; none for a target that the site no longer has."""
    target = site.targets.get(job.request.target_resolved)
    return (target.health if target else None) or Health()
