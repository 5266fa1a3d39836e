"""What a worker's agent may do, and only for the attempt that its worker was made for. [SEC-2]

The agents' API calls this for every call of an agent. A worker between two jobs says that it has cleaned up, and polls
until it gets the next job or is sent home. The bootstrap key shows who read the machine's user data; where a factory
can tell, the machine's identity document shows besides which machine it is.

The answer to hello is all that the agent needs to run its job, and nothing else. [SEC-1]
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

from penstock.domain import metrics
from penstock.domain.artifacts import volumes
from penstock.domain.commands import AgentLine, Hello
from penstock.domain.jobs import failures, jobs, origins
from penstock.domain.jobs.failures import Failure, Kind
from penstock.domain.jobs.jobs import Job, Report, Result, Spec, State, job_key
from penstock.domain.jobs.origins import Origin
from penstock.domain.logs import logs as domain_logs
from penstock.domain.logs.logs import Line
from penstock.domain.pools import pools
from penstock.domain.pools.pools import Lease, lease_key
from penstock.domain.replies import (
    AgentLimits,
    AssignedTask,
    Assignment,
    HealthChecks,
    Idle,
    Instructions,
    LeaseRenewed,
    LinesReceived,
    ResourceAccess,
    ResourceList,
    ResultReceived,
)
from penstock.domain.site.site import GitHubApp, Health, Limits, Site
from penstock.domain.units import reuse as units_reuse
from penstock.domain.units import units
from penstock.domain.units.units import CleanProof, Unit, UnitKind, UnitState, add_entry, unit_key
from penstock.domain.users import users
from penstock.domain.users.users import User
from penstock.kernel import limits, rows
from penstock.kernel.errors import DriverError, Refused
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Replace
from penstock.ports import IdentityDriver
from penstock.system import System, check_unchanged, current_site, measure, transact
from penstock.toml.checks import CONTROL
from penstock.usecases.artifacts import outputs, owners
from penstock.usecases.github import hints
from penstock.usecases.jobs import flow, holds, leases, settle
from penstock.usecases.jobs.flow import LeaseGone, spec_of
from penstock.usecases.logs import logs
from penstock.usecases.probes import canaries
from penstock.usecases.units import bells, broken, drivers, prewarm, reuse
from penstock.usecases.units import broken as units_broken
from penstock.usecases.units.drivers import bootstrap_key

CLOCKS_DIFFER = timedelta(minutes=5)
"""How far the clock of a worker may be from ours."""

COPIES = 64
"""How many copies an agent may ask about at once."""

POLL_SECONDS = 5
"""How many seconds an agent waits whose job is being settled, unless the site's heartbeat is shorter."""

IDENTITY_SETTING = "identity"
"""The factory's setting that requires an identity check. Only such a factory's driver is loaded for it."""


@dataclass(frozen=True)
class Caller:
    """A worker that has shown its token, and its job."""

    unit: Unit
    job: Job


def hello(on: System, ask: Hello) -> Assignment | Idle:
    """Exchange the bootstrap key for the agent's own token, once, and start the job. A repeat gets the same answer.

    An agent that has cleaned up after a job exchanges that job's token instead, and may have to poll again. One that
    has copies learns which of them still exist. [ART-2]
    """
    if len(ask.copies) > COPIES:
        raise Refused(413, "too-many-copies", f"ask for at most {COPIES} copies at once")
    answer = _answer_hello(on, ask)
    return replace(answer, copies=owners.existing(on, ask.copies)) if ask.copies else answer


def _answer_hello(on: System, ask: Hello) -> Assignment | Idle:
    if not users.is_strong(ask.token):
        raise Refused(422, "weak-token", "the token must be 43 to 128 characters of A-Z a-z 0-9 - _")
    site = current_site(on)
    if ask.previous:
        _check_returning(on, site, ask)
    if ask.previous and ask.broken:
        broken.report_uncleanable(on, ask.worker, users.digest(ask.previous), ask.broken)
        raise LeaseGone
    if ask.previous and wait_for_job(on, ask.worker, users.digest(ask.previous), ask.cleaned, site.limits):
        return _no_job(on, ask.worker, site.limits)
    digest = users.digest(ask.token)
    try:
        found = transact(on, lambda: _start_changes(on, ask, digest, site))
    except LeaseGone:
        waiting = _no_job(on, ask.worker, site.limits)
        if waiting.held_seconds is not None:  # there is no job for it, but its machine is held
            return waiting
        raise
    job, before = found
    if before:
        measure(on, metrics.worker_booted(before, on.world.now()))
    if job is None:
        return _no_job(on, ask.worker, site.limits)
    return _job_started(on, ask, site, job, before)


def _check_returning(on: System, site: Site, ask: Hello) -> None:
    """A worker that comes back with its last job's token shows again which machine it is, whatever it says. [SEC-2]

    That job may have given the token to another machine. Raises Refused 401 or 429.
    """
    if not any(IDENTITY_SETTING in maker.settings for maker in site.factories.values()):
        return
    unit = on.store.get(unit_key(ask.worker), Unit)
    if unit and _is_authentic(on, unit, ask):
        check_identity(on, site, unit, {"document": ask.document, "signature": ask.signature})


def _no_job(on: System, worker: str, bounds: Limits) -> Idle:
    """There is no job: when to poll again, and whether the machine is held."""
    unit = on.store.get(unit_key(worker), Unit)
    held = held_seconds(on, unit)
    is_idle = unit is not None and unit.state is UnitState.IDLE and not held
    bell = bells.url(on, bells.of_worker(unit)) if unit and is_idle else None
    most = bounds.heartbeat if held else bells.IDLE_SECONDS if is_idle else POLL_SECONDS
    return Idle(seconds=min(most, bounds.heartbeat), lease_seconds=bounds.lease, bell=bell, held_seconds=held)


def _start_changes(
    on: System, ask: Hello, digest: str, site: Site
) -> tuple[Sequence[Change], tuple[Job | None, Unit | None]]:
    """The start of a worker's job; none while it was made ahead of need and is idle. With the unit as it was before."""
    unit = on.store.get(unit_key(ask.worker), Unit)
    if unit is None or unit.is_a is not UnitKind.WORKER or not _is_authentic(on, unit, ask):
        raise Refused(401, "wrong-key", "this is not the key of that worker")
    lease_ = timedelta(seconds=site.limits.lease)
    if unit.state is UnitState.IDLE:
        return _arrival_changes(on, ask, digest, site, unit), (None, unit)
    job = on.store.get(job_key(unit.lease.job), Job)
    if unit.state not in (UnitState.CREATING, UnitState.READY) or job is None or job.attempt != unit.lease.attempt:
        check_unchanged(on, unit)
        raise LeaseGone
    if unit.session.token_hash and not hmac.compare_digest(unit.session.token_hash, digest):
        raise Refused(409, "token-taken", "this worker has said hello already, with another token")
    if unit.session.token_hash:
        if job.run.report:
            raise LeaseGone
        return [], (job, None)
    if job.state is not State.ACQUIRING:
        check_unchanged(on, unit)  # a repeated call may have started the job meanwhile
        raise LeaseGone
    if job.cancellation.cancelled_by:
        raise LeaseGone
    if not ask.previous:
        check_identity(on, site, unit, {"document": ask.document, "signature": ask.signature})
    now = on.world.now()
    begun = jobs.start(job, unit.id, now, health_check(site, job).seconds)
    there = units.hello(unit, digest, now, lease_, ask.version)
    return [Replace(unit, there), Replace(job, begun)], (begun, unit)


def _is_authentic(on: System, unit: Unit, ask: Hello) -> bool:
    """Whether the agent showed the worker's key; after its first job, the token of its last or present job.

    By then a job may have read the key, so it no longer counts. An agent that said hello ahead of its first job keeps
    the token that it chose, and no other agent can replace it.
    """
    if ask.previous:
        return (
            users.digest(ask.previous) == unit.session.past_hash or users.digest(ask.token) == unit.session.token_hash
        )
    is_done = unit.lease.leases == 1 and unit.state in (UnitState.CLEANING, UnitState.IDLE)
    if (
        unit.lease.leases > 1
        or is_done
        or (unit.session.past_hash and not hmac.compare_digest(unit.session.past_hash, users.digest(ask.token)))
    ):
        return False
    return hmac.compare_digest(bootstrap_key(on.signing_key(), ask.worker).encode(), ask.key.encode())


def _arrival_changes(on: System, ask: Hello, digest: str, site: Site, unit: Unit) -> Sequence[Change]:
    """A worker that nobody leases says hello: it was made ahead of need, or is still idle."""
    lease = timedelta(seconds=site.limits.lease)
    if unit.session.past_hash:
        return idle_renewal(on, unit, lease)
    check_identity(on, site, unit, {"document": ask.document, "signature": ask.signature})
    return prewarm.arrival_changes(on, unit, digest, lease)


def _job_started(on: System, ask: Hello, site: Site, job: Job, before: Unit | None) -> Assignment:
    """A worker's job starts, unless its agent repeats the call; the answer is all that the agent needs."""
    lease = on.store.get(lease_key(job.id, job.attempt, pools.WORKER), Lease)
    if lease:
        flow.lease_ready(on, lease)
    unit = before or on.store.get(unit_key(ask.worker), Unit)
    if before:
        measure(on, metrics.job_started(job, on.world.now()))
        if job.provenance.check:
            hints.job_changed(on, job)
        host = f", host {ask.host[:64]}" if ask.host else ""
        took = int((on.world.now() - before.since).total_seconds())
        text = f"running on {ask.worker} (target {job.request.target_resolved}{host}), ready after {took} s"
        logs.append(on, job.id, job.attempt, text)
    health = health_check(site, job)
    if before and not health.before and before.creation.is_probe:
        broken.mark_working(on, before)
    return assignment(on, job, site, ask.worker, lease, is_kept=unit is not None and unit.cleaning.is_kept)


def wait_for_job(on: System, worker: str, shown: str, cleaned: str, bounds: Limits) -> bool:
    """Whether a worker that shows its last job's token (hashed) is to poll again, since there is no next job yet.

    A held worker touches nothing meanwhile; it cleans up when the hold has ended. [UNIT-3]
    """
    unit = on.store.get(unit_key(worker), Unit)
    if unit is None or unit.is_a is not UnitKind.WORKER:
        return False
    if (
        unit.state is UnitState.READY
        and unit.session.token_hash
        and hmac.compare_digest(unit.session.token_hash, shown)
    ):
        return True  # it has reported; its attempt is not settled yet
    if unit.session.past_hash is None or not hmac.compare_digest(unit.session.past_hash, shown):
        return False
    if units.is_held(unit, on.world.now()) or (unit.state is UnitState.CLEANING and not cleaned):
        return True
    lease = timedelta(seconds=bounds.lease)
    if unit.state is UnitState.CLEANING:
        proof = CleanProof(by=f"the agent of {worker}", time=on.world.now(), checked=cleaned)
        reuse.unit_cleaned(on, worker, proof, lease)
    return transact(on, lambda: _renew_idle(on, worker, lease))


def _renew_idle(on: System, worker: str, lease: timedelta) -> tuple[Sequence[Change], bool]:
    """Record that an idle worker polled, at most twice a lease."""
    unit = on.store.get(unit_key(worker), Unit)
    if unit is None or unit.state is not UnitState.IDLE:
        return [], False
    return idle_renewal(on, unit, lease), True


def authenticate(on: System, job_id: str, token: str) -> Caller:
    """The worker that a token belongs to, if it may act for a job. Raises Refused 403 or 410."""
    job = on.store.get(job_key(job_id), Job) if rows.is_ulid(job_id) else None
    unit = on.store.get(unit_key(job.run.worker), Unit) if job and job.run.worker else None
    if job is None or unit is None:
        raise Refused(403, "not-your-job", "this token is not of the worker of that job")
    if (
        unit.session.token_hash is None
        or unit.state is not UnitState.READY
        or (unit.lease.job, unit.lease.attempt) != (job.id, job.attempt)
    ):
        raise LeaseGone
    if not hmac.compare_digest(unit.session.token_hash, users.digest(token)):
        raise Refused(403, "not-your-job", "this token is not of the worker of that job")
    return Caller(unit, job)


def heartbeat(on: System, caller: Caller) -> LeaseRenewed:
    """Renew the worker's lease."""
    seconds = current_site(on).limits.lease
    _renew_lease(on, caller, seconds)
    return LeaseRenewed(**vars(_instructions(on, caller)), lease_seconds=seconds)


def _renew_lease(on: System, caller: Caller, seconds: int) -> None:
    """Write that the worker was heard from. Raises LeaseGone if its lease ended meanwhile."""

    read = [caller.unit]  # as it was read when the call was authenticated; anew if somebody wrote it since

    def decide() -> tuple[Sequence[Change], None]:
        unit = read.pop() if read else on.store.get(caller.unit.key, Unit)
        if unit is None or unit.state is not UnitState.READY or unit.lease.fence != caller.unit.lease.fence:
            raise LeaseGone
        return [Replace(unit, units.renew(unit, on.world.now(), timedelta(seconds=seconds)))], None

    transact(on, decide)


def _instructions(on: System, caller: Caller) -> Instructions:
    """What an agent learns with each answer: whether to cancel, who watches, whether it is held, how long it has."""
    job = caller.job
    return Instructions(
        cancel=job.cancellation.cancelled_by is not None,
        watched=logs.is_watched(on, job.id),
        held_seconds=held_seconds(on, caller.unit),
        timeout_seconds=job.limits.timeout if job.limits.extended else None,
    )


def append_events(on: System, caller: Caller, first: int, lines: Sequence[Line]) -> LinesReceived:
    """Add lines to the job's log, and say whether it has room for more output. They also serve as a heartbeat."""
    bounds = current_site(on).limits
    lines = [_credible(on, caller.job, line) for line in lines]
    full = logs.append_output(on, caller.job, first, lines, bounds) if caller.job.run.report is None else None
    is_near = units.is_renewal_near(caller.unit, on.world.now(), timedelta(seconds=bounds.heartbeat))
    if is_near:
        _renew_lease(on, caller, bounds.lease)
    lease = bounds.lease if is_near else None
    return LinesReceived(**vars(_instructions(on, caller)), lease_seconds=lease, full=full)


def _credible(on: System, job: Job, line: Line) -> Line:
    """A line that is not from before its attempt, nor from the future. A worker's clock may be wrong by minutes.

    Raises Refused 400 for a stream of the service's own decisions: nobody else says what it decided. [SEC-2]
    """
    if line.stream in domain_logs.SERVICE_STREAMS or re.search(CONTROL, line.stream):
        raise Refused(400, "bad-stream", f"{line.stream[:64]!r} is not a stream that a worker writes to")
    since = job.times.started or job.times.submitted
    return domain_logs.within(line, since - CLOCKS_DIFFER, on.world.now() + CLOCKS_DIFFER)


def resources(on: System, caller: Caller) -> ResourceList:
    """What the worker's job may know of its resources now; metadata may have been renewed. [SEC-1]"""
    return ResourceList(accesses(on, caller.job))


def lease_resources(on: System, user: User, lease: str) -> ResourceList:
    """What the owner of a held lease without a job may know of what it has. [SEC-1]

    Raises Refused 403 for anybody else who may see the lease, 404, and 409 if it is not held.
    """
    job = leases.find(on, user, lease)
    if not user.may_act_for(job.owner):
        raise Refused(403, "privilege-missing", f"only {job.owner} is told the credentials of what its lease has")
    leases.require_held(job)
    return ResourceList(accesses(on, job))


def report_finished(
    on: System,
    caller: Caller,
    result: Result,
    reason: str,
    exit_code: int | None,
    broken: str = "",
    failure: Failure | None = None,
    uploaded: Sequence[str] = (),
) -> ResultReceived:
    """Record how the script ended, why it failed, and what is wrong with the machine. The first report counts.

    `uploaded` are the last outputs, which are recorded with it, or nothing is: who sees the end finds them. The answer
    says whether the machine is held, as read after the report is written. [JOB-1] [SLOT-3] [UNIT-3] [ART-1]
    """
    if result is Result.LOST:
        raise Refused(422, "bad-result", "an agent that can say that it is lost, is not")
    if uploaded:
        outputs.check_arrived(on, caller.job, uploaded)
    if not broken:
        _note_working(on, caller, result)
    report = Report(result, reason, on.world.now(), exit_code)
    return _end(on, caller, report, broken, failure, uploaded)


def _note_working(on: System, caller: Caller, result: Result) -> None:
    """What a script that ended shows: its machine works, and what a canary tested does. Safe to repeat."""
    if caller.unit.creation.is_probe:
        units_broken.mark_working(on, caller.unit)
    if caller.job.provenance.canary and result is Result.SUCCEEDED:
        canaries.on_succeeded(on, caller.job)


def _end(
    on: System, caller: Caller, report: Report, broken: str, failure: Failure | None, uploaded: Sequence[str] = ()
) -> ResultReceived:
    """Write an attempt's report and its end, and begin to release what it had.

    Whatever is interrupted, the agent repeats its call, or else the sweep goes on. A job that publishes has its report
    written first: only what has succeeded is published. [JOB-1]
    """
    job, ended = transact(on, lambda: _report_changes(on, caller, report, broken, failure, uploaded))
    if broken and report.result is not Result.LOST:
        logs.append(on, job.id, job.attempt, f"worker {caller.unit.id} is broken: {broken}")
    if ended:
        settle.attempt_ended(on, *ended)
        settle.go_on(on, job.id, job.attempt)
    else:
        settle.settle(on, job.id, job.attempt, None, None)
    return ResultReceived(held_seconds(on, on.store.get(caller.unit.key, Unit)))


def _report_changes(
    on: System, caller: Caller, report: Report, broken: str, failure: Failure | None, uploaded: Sequence[str]
) -> tuple[Sequence[Change], tuple[Job, settle.Ended | None]]:
    job = on.store.get(caller.job.key, Job)
    unit = on.store.get(caller.unit.key, Unit) if broken else None
    if job is None or job.attempt != caller.job.attempt or job.state is not State.RUNNING:
        raise LeaseGone
    reported = jobs.report(job, report, failure)
    kept = outputs.reported_changes(on, job, uploaded) if uploaded else []
    marked = [(unit, units.mark_broken(unit, broken, on.world.now()))] if unit else _marked(on, job, reported)
    if not job.request.publishes:
        changes, ended = settle.report_changes(on, job, reported, {was.id: (was, now) for was, now in marked})
        return [*changes, *kept], (job, ended)
    written = [Replace(was, now) for was, now in ((job, reported), *marked) if was != now]
    return [*written, *kept], (job, None)


def _marked(on: System, was: Job, job: Job) -> list[tuple[Unit, Unit]]:
    """The units that the first report of an attempt changes: those to be held, and those on which a canary failed."""
    if was.run.report:
        return []
    if job.keep:
        return holds.on_reported(on, job, job.keep)
    return canaries.on_reported(on, job) if job.provenance.canary else []


def report_broken(on: System, caller: Caller, why: str, failure: Failure | None = None) -> ResultReceived:
    """Record that a machine is broken, found before its job's script began: the attempt is lost. [JOB-1]"""
    cause = f"worker {caller.unit.id} is broken: {why}"
    explained = failure or failures.failure(Kind.MACHINE_BROKEN, {"worker": caller.unit.id, "error": why})
    return _end(on, caller, Report(Result.LOST, cause, on.world.now(), is_unbegun=True), why, explained)


def report_unprepared(on: System, caller: Caller, why: str, failure: Failure | None = None) -> ResultReceived:
    """Record that a job's inputs could not be fetched, so its script was not begun: the attempt is lost. [JOB-1]"""
    explained = failure or failures.failure(Kind.INPUT_FAILED, {"error": why})
    return _end(on, caller, Report(Result.LOST, why, on.world.now()), "", explained)


def held_seconds(on: System, unit: Unit | None) -> int | None:
    """For how many seconds the agent must leave the machine of a held unit as it is; None if not held. [UNIT-3]"""
    now = on.world.now()
    if unit is None or unit.hold is None or not units.is_held(unit, now):
        return None
    return max(1, int((unit.hold.until - now).total_seconds()))


def idle_renewal(on: System, unit: Unit, lease: timedelta) -> list[Change]:
    """The change for an idle worker that polled again. A held one is due when its hold ends, polling or not."""
    now = on.world.now()
    heard = units_reuse.renew(unit, now, lease)
    is_fresh = unit.due is not None and heard.due is not None and heard.due - unit.due < lease / 2
    return [] if is_fresh or units.is_held(unit, now) else [Replace(unit, heard)]


def check_identity(on: System, site: Site, unit: Unit, shown: Mapping[str, str]) -> None:
    """Raises Refused 401 for another machine, 429 while it is not known which machine was made. [SEC-2]

    The document is not fresh, so it counts only together with the key, and for the one worker whose machine it names.
    """
    maker = site.factories.get(unit.maker)
    if maker is None or IDENTITY_SETTING not in maker.settings:
        return
    try:
        driver = drivers.driver_named(on, site, UnitKind.WORKER, unit.maker)
        if not isinstance(driver, IdentityDriver):
            return
        if unit.creation.made is None:
            raise Refused(429, "not-yet", "which machine was made is not written yet; try again in a moment")
        why = drivers.identity_mismatch(on, unit, driver, shown)
    except DriverError as error:
        raise Refused(429, "not-yet", f"nobody can tell whose machine this is: {error}") from error
    if why is None:
        return
    _journal_once(on, unit, f"a machine that had its key was refused: {why}")
    raise Refused(401, "no-identity" if not any(shown.values()) else "wrong-machine", f"not this machine: {why}")


def _journal_once(on: System, unit: Unit, what: str) -> None:
    """Write it into the journal once for all tries, or whoever has the key could fill the journal."""
    if what not in (entry.what for entry in unit.journal.entries):
        on.store.commit([Replace(unit, add_entry(unit, on.world.now(), what))])


def parse_lines(given: Sequence[AgentLine]) -> list[Line]:
    """Lines as an agent sent them. Raises Refused 413 for too many, 400 for an invalid time."""
    size = sum(len(line.payload.encode()) for line in given)
    if len(given) > limits.EVENTS_PER_BATCH or size > limits.EVENT_BATCH_BYTES or _row_bytes(given) > limits.ROW_BYTES:
        most = f"{limits.EVENTS_PER_BATCH} lines and {limits.EVENT_BATCH_BYTES} bytes (a control character counts six)"
        raise Refused(413, "batch-too-big", f"send at most {most}")
    return [Line(_parse_time(line.time), line.stream, line.payload, line.task) for line in given]


def _row_bytes(given: Sequence[AgentLine]) -> int:
    """The bytes that lines take in their row: JSON writes a control character as six."""
    return sum(len(json.dumps(asdict(line), ensure_ascii=False).encode()) for line in given)


def _parse_time(text: str) -> datetime:
    """A time in UTC, whatever the machine's zone. Raises Refused 400, also for a time before the year 1."""
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise Refused(400, "bad-request", f"{text!r} is not a time as in RFC 3339") from None


def assignment(on: System, job: Job, site: Site, worker: str, lease: Lease | None, *, is_kept: bool) -> Assignment:
    """All that an agent needs to run a job, given its worker's lease."""
    bounds, checks = site.limits, health_check(site, job)
    spec = spec_of(on, job)
    if spec is None:
        raise Refused(410, "spec-gone", "the job's script is no longer kept")
    need = next(need for need in job.request.needs if need.order == pools.WORKER)
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
        tasks=_tasks(spec, origin),
        posts=list(spec.posts),
        output_rules=list(spec.output_rules),
        resources=accesses(on, job),
        inputs=job.request.has_downloads,
        caches=list(spec.caches),
        reuse=is_kept,
        health=HealthChecks(checks.before, checks.after, checks.timeout),
        sudo=_may_become_root(site, job),
        env=dict(spec.env),
        timeout_seconds=job.limits.timeout,
        grace_seconds=job.limits.grace,
        heartbeat_seconds=bounds.heartbeat,
        lease_seconds=bounds.lease,
        deadline=due.isoformat(),
        limits=_limits(bounds),
    )


def _tasks(spec: Spec, origin: Origin | None) -> list[AssignedTask]:
    """The script, which starts in the clone of its repository, if there is one; or the job's own tasks."""
    folder = f"/work/{origin.name}" if origin and origin.clone else "/work"
    if not spec.tasks:
        return [AssignedTask("build", spec.script, env={}, env_clear=False, workdir=folder)]
    return [
        AssignedTask(each.name, each.script, dict(each.env), each.env_clear, each.workdir or folder, each.uid, each.gid)
        for each in spec.tasks
    ]


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


def accesses(on: System, job: Job) -> dict[str, ResourceAccess]:
    """What the job may know of each resource that it holds, by the name that the job gave it."""
    found: dict[str, ResourceAccess] = {}
    if all(need.order == pools.WORKER for need in job.request.needs):
        return found
    for lease in flow.lease_rows(on, job.id, job.attempt):
        unit = flow.unit_of(on, lease) if lease.order else None
        if unit and unit.lease.fence == lease.fence:
            known = drivers.metadata_of(on, unit)
            metadata, public = dict(known.metadata), list(known.public)
            found[lease.name] = ResourceAccess(lease.type, metadata, public, _fresh_seconds(on, unit))
    return found


def _fresh_seconds(on: System, unit: Unit) -> int | None:
    """For how many seconds the metadata will not change; None if it never changes."""
    if unit.access.renews is None:
        return None
    return max(0, int((unit.access.renews - on.world.now()).total_seconds()))


def _may_become_root(site: Site, job: Job) -> bool:
    """Whether the job's target gives its jobs root. [SEC-2]"""
    target = site.targets.get(job.request.target_resolved)
    return target is None or target.sudo


def health_check(site: Site, job: Job) -> Health:
    """The scripts that check whether the machine is fit; none for a target that the site no longer has."""
    target = site.targets.get(job.request.target_resolved)
    return (target.health if target else None) or Health()
