"""Canaries: jobs that the site submits itself, to test targets and resources. The sweep submits those that are due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from aws_lambda_powertools import Logger

from penstock import listings
from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.probes import canaries
from penstock.domain.probes.canaries import TAG, USER, Canary, canary_key
from penstock.domain.site.site import CanaryScript, ResourceType, Site, Target
from penstock.domain.units.units import Unit
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.rows import Change, Create, Key, Replace
from penstock.system import System, current_site, transact
from penstock.usecases.jobs import submit
from penstock.usecases.jobs.holds import units_of
from penstock.usecases.units import broken

log = Logger(child=True)


def schedule_new(on: System, site: Site) -> list[str]:
    """Make every canary of a site due that is new; one that the site no longer has rests when it is due next."""
    now, changes = on.world.now(), []
    for pool in site.canaries():
        was = on.store.get(canary_key(pool), Canary)
        if was and was.due:
            continue
        if on.store.commit([Replace(was, replace(was, due=now)) if was else Create(Canary(pool=pool, due=now))]):
            changes.append(f"canary of {pool}: new")
    return changes


def advance(on: System, key: Key) -> None:
    """The next step of a due canary: submit its job, or record how that ended."""
    canary, now = on.store.get(key, Canary), on.world.now()
    if canary is None or canary.due is None or canary.due > now:
        return
    site = current_site(on)
    found = site.canaries().get(canary.pool)
    after = _next(on, site, canary, *found) if found else replace(canary, due=None, is_out=False)
    if on.store.commit([Replace(canary, after)]) and canary.is_out and not after.is_out:
        log.info("a canary is back", extra={"pool": canary.pool, "job": after.job, "outcome": after.outcome})


def _next(on: System, site: Site, canary: Canary, kind: Target | ResourceType, how: CanaryScript) -> Canary:
    now, every = on.world.now(), timedelta(seconds=how.every)
    job = _job(on, canary)
    if job is None:
        try:
            return canaries.submitted(canary, _submit(on, site, canary, kind, how), now)
        except Refused as refused:
            return canaries.refused(canary, str(refused), every, now)
    return canaries.settled(canary, job, every, now) if job.is_settled else canaries.recheck(canary, now)


def _job(on: System, canary: Canary) -> Job | None:
    """The job of a canary that is out."""
    return on.store.get(job_key(canary.job), Job) if canary.is_out and canary.job else None


def _submit(on: System, site: Site, canary: Canary, kind: Target | ResourceType, how: CanaryScript) -> str:
    """Submit a canary's job. The idempotency key is that of this try: repeated, it is one job."""
    is_target = isinstance(kind, Target)
    ask = SubmitJob(
        script=how.script, path="canary.sh", name=f"canary of {canary.pool}"[: limits.NAME_CHARS],
        target=kind.name if is_target else how.target,
        resources=None if is_target else {"canary": {"type": kind.name}},
        tags={TAG: canary.pool}, timeout=how.timeout, retries=0,
    )  # fmt: skip
    return submit.submit(on, _user(on, site), ask, f"{canary.pool}/{canary.version}", canary=canary.pool)


def _user(on: System, site: Site) -> User:
    """A user who may have everything that canaries test. Nobody can use it: it has no token."""
    kinds: list[Target | ResourceType] = [*site.targets.values(), *site.resources.values()]
    wanted = {each.privilege for each in kinds if each.privilege}
    return User(name=USER, privileges=tuple(sorted(wanted)), created=on.world.now())


def on_reported(on: System, job: Job) -> list[tuple[Unit, Unit]]:
    """The units of a canary's job, before and after its report: what it failed on is broken."""
    return canaries.mark_broken(job, units_of(on, job), on.world.now())


def on_succeeded(on: System, job: Job) -> None:
    """A canary's job succeeded: lift what failed ones have closed."""
    for unit in units_of(on, job):
        if unit.lease.pool == job.provenance.canary:
            broken.mark_working(on, unit)


def list_canaries(on: System) -> Sequence[Canary]:
    """All canaries of the site, by pool."""
    pools = current_site(on).canaries()
    return [row for row in listings.every(on, "canaries", Canary) if row.pool in pools]


def send(on: System, pool: str) -> Canary:
    """Send a canary now, unless it is out. Raises Refused 404 or 409.

    A canary that is due already is unchanged: a repeated call after a crash finds the same job.
    """

    def decide() -> tuple[Sequence[Change], Canary]:
        canary = on.store.get(canary_key(pool), Canary) if len(pool) <= limits.NAME_CHARS else None
        found = current_site(on).canaries().get(pool)
        if canary is None or found is None:
            raise not_found("canary", pool[: limits.NAME_CHARS])
        now, job = on.world.now(), _job(on, canary)
        if job and not job.is_settled:
            raise Refused(409, "canary-is-out", f"the canary of {pool} is out: job {canary.job}")
        if not job and canary.due and canary.due <= now:
            return [], canary
        back = canaries.settled(canary, job, timedelta(seconds=found[1].every), now) if job else canary
        asked = replace(back, due=now)
        return [Replace(canary, asked)], asked

    asked = transact(on, decide)
    advance(on, asked.key)
    return on.store.get(asked.key, Canary) or asked
