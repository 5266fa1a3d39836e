"""Factory tests: submit a job that shows whether a factory works, and report its progress. For operators."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain import cooldowns as cooling_rules
from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Job, Proves
from penstock.domain.pools.pools import WORKER, Lease, Pool, lease_key, pool_key
from penstock.domain.probes import factory_test
from penstock.domain.probes.factory_test import Check, Facts
from penstock.domain.site.site import Site, Target
from penstock.domain.units import units, visibility
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.frozen import dataclass
from penstock.system import System, current_site
from penstock.usecases import cooldowns
from penstock.usecases.artifacts import outputs
from penstock.usecases.jobs import flow, jobs, submit
from penstock.usecases.logs import logs
from penstock.usecases.units import driver_calls as looking

TIMEOUT = 300
"""Seconds that the script may run."""


@dataclass(frozen=True)
class Started:
    """A test that was begun: its job, its target, and what it will wait for, as far as that is known."""

    job: str
    target: str
    waits: Sequence[str]


@dataclass(frozen=True)
class Progress:
    """How far a test is. When it is over, nothing more happens by itself."""

    job: Job
    unit: Unit | None
    checks: Sequence[Check]
    waits: str | None
    is_over: bool

    @property
    def is_passed(self) -> bool:
        """Whether all checks passed."""
        return self.is_over and all(check.ok for check in self.checks)


def start(on: System, user: User, name: str, target: str | None, keep: int | None, key: str | None) -> Started:
    """Submit the job that tests a factory. Raises Refused if there is nothing to test, or it could not begin."""
    if keep is not None and not 1 <= keep <= units.HOLD_MOST:
        raise Refused(400, "bad-request", f"keep_on_failure is 1 second to {units.HOLD_MOST // 86400} days")
    site = current_site(on)
    chosen = _target(site, name, target)
    ask = SubmitJob(
        script=factory_test.SCRIPT, path="factory-test.sh", name=f"test of factory {name}"[: limits.NAME_CHARS],
        target=chosen.name, output_rules=[factory_test.OUTPUT], tags={factory_test.TAG: name},
        env={"TEST_TARGET": chosen.name, "TEST_FACTORY": name}, priority=limits.PRIORITY, timeout=TIMEOUT, retries=0,
    )  # fmt: skip

    def make() -> str:
        _check_open(on, chosen)
        return submit.submit(on, user, ask, key, Proves(name, keep))

    job = submit.once(on, user, submit.given(ask), key, make)
    now, scopes = on.world.now(), cooldowns.cooldowns_of(on, cooling_rules.maker_of(UnitKind.WORKER, name))
    mine = [row for row in scopes if row.stops or row.scope == cooling_rules.type_scope(chosen.name)]
    return Started(job, chosen.name, [cooling_rules.describe(row, now) for row in mine])


def _target(site: Site, name: str, wanted: str | None) -> Target:
    """The requested target, or the factory's first by name that has a limit."""
    if name not in site.factories:
        there = ", ".join(sorted(site.factories)) or "none"
        raise Refused(404, "factory-not-found", f"there is no factory {name[:64]!r}; there are: {there}")
    served = sorted((one for one in site.targets.values() if one.factory == name), key=lambda one: one.name)
    names = ", ".join(one.name for one in served)
    if not served:
        why = f"factory {name} serves no target, so nobody could get a worker of it: give a target `factory = ...`"
        raise Refused(422, "no-target", why)
    if wanted is None:
        return next((one for one in served if one.limit), served[0])
    led = site.resolve(wanted)
    if led is None:
        raise Refused(422, "unknown-target", f"there is no target {wanted[:64]!r}; factory {name} serves: {names}")
    members = site.members(led)
    found = next((one for one in members if one in served), None)
    if found is None:
        by = " and ".join(sorted({str(one.factory) for one in members}))
        why = f"target {led.name} is served by factory {by}; factory {name} serves: {names}"
        raise Refused(422, "other-factory", why)
    return found


def _check_open(on: System, target: Target) -> None:
    """Raises Refused 409 for a target that is paused or has no limit: the test would only wait."""
    pool = on.store.get(pool_key(target.pool), Pool)
    if pool and pool.stops:
        why = f"{pool.name} is paused {pool.stops[0]}; the test would wait until that is over"
        raise Refused(409, "would-wait", why)
    if pool and pool.paused:
        why = f"{pool.name} is paused by an operator, and the test would wait until it is resumed"
        raise Refused(409, "would-wait", f"{why}: `penstock pool resume {pool.name}`")
    if pool and not pool.limit:
        why = f"{pool.name} has a limit of 0, and the test would wait until it is raised"
        raise Refused(409, "would-wait", f"{why}: `penstock pool resize {pool.name} 1`")


def progress(on: System, user: User, name: str, job_id: str, version: str) -> Progress:
    """How far a test is; `version` is that of the agent that the service serves. Raises Refused 404."""
    job = jobs.find(on, user, job_id)
    if job.provenance.proves is None or job.provenance.proves.factory != name:
        raise not_found("test", job_id[:64])
    lease = on.store.get(lease_key(job.id, job.attempt, WORKER), Lease)
    unit = flow.unit_of(on, lease) if lease else None
    if unit:
        looking.resume_visibility(on, unit)
    waits = None if job.is_settled or job.times.started else jobs.explain(on, job).summary
    checks = factory_test.checks(_facts(on, job, unit, version, waits))
    return Progress(job, unit, checks, waits, job.is_settled and _is_gone(unit))


def _facts(on: System, job: Job, unit: Unit | None, version: str, waits: str | None) -> Facts:
    maker = current_site(on).factories.get(job.provenance.proves.factory if job.provenance.proves else "")
    lines = [event.line for event in logs.read(on, job.id, 0, 1000)]
    kept = {row.path: row.sha256 for row in outputs.list_outputs(on, job.id)[0]}
    return Facts(
        job=job,
        unit=unit,
        complaints=on.drivers.complaints("factory", maker.driver, maker.settings) if maker else ["it is gone"],
        said=[line.payload for line in lines if line.stream == "stdout"],
        evidence=[line.payload for line in lines if line.stream == "worker"],
        output=kept.get(factory_test.OUTPUT),
        version=version,
        waits=waits,
    )


def _is_gone(unit: Unit | None) -> bool:
    return unit is None or (unit.state is UnitState.GONE and visibility.expected(unit) is None)
