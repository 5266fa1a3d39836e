"""The sweep: moves on everything that is overdue, and compares what exists outside with the rows. [UNIT-1]

The sweep function calls it each minute. It decides nothing itself: it repeats a message that was lost, or takes a step
that nobody else can take. Each part has its time. What is then left of rows and pools goes on by messages, which the
function takes too: at the same time, each for a part of its own, until the next sweep begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from aws_lambda_powertools import Logger

from penstock.domain import metrics
from penstock.domain.jobs import unused
from penstock.domain.jobs.jobs import FLOW_WITHIN, START_WITHIN, STEP_WITHIN, Job, State, flows_stopped, job_key
from penstock.domain.jobs.jobs import nudge as nudge_flow
from penstock.domain.jobs.outcome import STALLED
from penstock.domain.pools.pools import WAITING, Claim, Lease, LeaseState, Pool, collection
from penstock.domain.units.units import Unit, UnitKind
from penstock.kernel.rows import Key, Replace
from penstock.system import System, current_site
from penstock.usecases import account
from penstock.usecases.artifacts import expire
from penstock.usecases.github import hints
from penstock.usecases.isolation import Isolation
from penstock.usecases.jobs import flow, jobs, leases, prerequisites, settle
from penstock.usecases.overdue import Walk
from penstock.usecases.pools import serving
from penstock.usecases.probes import canaries
from penstock.usecases.rotation import rotate
from penstock.usecases.site import apply, stops
from penstock.usecases.telemetry import gauges, series
from penstock.usecases.units import prewarm, reconcile
from penstock.usecases.units.reconcile import Reconciled
from penstock.usecases.users import lifecycle
from penstock.usecases.workers import power, presence

PERIOD = timedelta(minutes=1)
"""The time from one sweep to the next, which finds anew what the messages of this one have not done."""

WITHIN = timedelta(seconds=20)
"""How long a sweep moves rows on, and how long it serves pools, before it leaves the rest to messages."""

WHOLE = timedelta(seconds=110)
"""After how long a sweep begins nothing more, if nobody says: ten seconds before its function is killed."""

POOLS = 100
"""How many pools a sweep serves itself, and how many one of its messages names."""

CALLS = 100
"""How many calls of the function take those messages at a time."""

log = Logger(child=True)


@dataclass
class SweepResult:
    """The counts of one sweep. `failed` are the rows, pools, flows and units that it could not move on."""

    overdue: int = 0
    nudged: int = 0
    failed: int = 0
    flows: int = 0
    strays: int = 0
    lost: int = 0
    unlisted: int = 0
    tidied: int = 0
    untidied: int = 0


def sweep(on: System, within: timedelta = WHOLE) -> SweepResult:
    """Sweep once. Whatever fails costs only itself: the other rows, and the other parts of the sweep, go on.

    Drivers are called last, since a call may take all of the time, or end the process.
    """
    done, rows, start = SweepResult(), Isolation(), on.world.now()
    left = start + PERIOD
    with rows.step("moving on what is overdue"):
        walk = Walk(on, nudge, start + WITHIN, left)
        walk.take(on.store.shards(later=False))
        _report_walk(on, walk, is_later=False)
        done.overdue, done.nudged = walk.overdue, walk.overdue - walk.rows.failed
        rows.failed += walk.rows.failed
    pools: list[Pool] = []
    waited_for: list[str] = []
    with rows.step("serving the pools"):
        pools, waited_for = serve_all(on, rows)
    with rows.step("counting what the pools have"):
        series.record(on, pools, rows, min(left, on.world.now() + WITHIN))
    with rows.step("settling what ended"):
        done.flows = settle_ended(on, rows)
    with rows.step("deleting what nobody owns"):
        tidied = expire.expire_overdue(on, left)
        done.tidied, done.untidied = tidied.moved, tidied.failed
    with rows.step("the account diff"):
        account.remind(on)
    with _reporting():
        gauges.report(on, current_site(on), pools, waited_for, min(left, on.world.now() + WITHIN))
    compared = _reconcile(on, rows, start + within)
    done.strays, done.lost, done.unlisted = compared.strays, compared.lost, compared.unlisted
    done.failed = rows.failed + compared.failed
    _report(on, done, start)
    return done


def _reconcile(on: System, rows: Isolation, until: datetime) -> Reconciled:
    compared = Reconciled()
    with rows.step("comparing what exists outside"):
        compared = reconcile.reconcile(on, until)
    with _reporting():
        site = current_site(on)
        gauges.report_makers(on, site)
        gauges.report_units(on, site, compared.rows)
    return compared


def go_on(on: System, message: Mapping[str, Any], until: datetime) -> int:
    """Take what a sweep left to a message, until its time is over. Returns how much could not be moved on."""
    rows = Isolation()
    match message:
        case {"until": str(end)} if on.world.now() >= datetime.fromisoformat(end):
            return 0  # another sweep has begun, and found anew what is left
        case {"diff": str(id)}:
            account.go_on(on, id, until)
        case {"shard": str(shard), "part": int(part), "until": str(end)}:
            end_of_time = min(until, datetime.fromisoformat(end))
            walk = Walk(on, nudge, end_of_time, end_of_time, rows)
            walk.take_part(shard, part)
            _report_walk(on, walk, is_later=shard in on.store.shards(later=True))
        case {"pools": [str(after), str(last)], "until": str(end)}:
            found = list(takewhile(lambda pool: pool.name <= last, apply.every_pool(on, after)))
            end_of_time = min(until, datetime.fromisoformat(end))
            waited_for = serve_pools(on, found, rows, end_of_time)
            series.record(on, found, rows, end_of_time)
            gauges.report_pools(on, current_site(on), found, waited_for, end_of_time)
        case {"stop": str(scope), "version": int(version), "page": str(page), "failed": int(failed)}:
            _spread_stop(on, scope, stops.Reached(version, page, failed))
        case {"stop": str(scope)}:
            _spread_stop(on, scope)
        case {"rollout": str()}:
            _roll_out(on)
        case _:
            log.error("unknown message")
    on.metrics.add(metrics.FAILED_NUDGES, rows.failed)
    return rows.failed


@contextmanager
def _reporting() -> Iterator[None]:
    """What goes wrong with gauges costs only them."""
    try:
        yield
    except Exception:
        log.exception("the gauges could not be reported")


def _report_walk(on: System, walk: Walk, *, is_later: bool) -> None:
    on.metrics.add(metrics.TIDY_LATE if is_later else metrics.SWEEP_LATE, walk.late)
    if not is_later:
        on.metrics.add(metrics.OVERDUE_ROWS, walk.overdue)


def _report(on: System, done: SweepResult, start: datetime) -> None:
    on.metrics.add(metrics.SWEEPS)
    on.metrics.add(metrics.SWEEP_TIME, (on.world.now() - start).total_seconds())
    on.metrics.add(metrics.FAILED_NUDGES, done.failed + done.untidied)


NUDGES: Mapping[str, Callable[[System, Key], object]] = {
    "unit": lambda on, key: _nudge_unit(on, key),
    "pool": lambda on, key: on.queues.schedule({"do": "resize", "pool": _name_in(key)}),
    "stop": lambda on, key: _spread_stop(on, key.sk.partition("#")[2]),
    "rollout": lambda on, _: _roll_out(on),
    "host": lambda on, key: presence.mark_silent(on, _name_in(key)),
    "power": lambda on, key: on.queues.power(_name_in(key)),
    "user": lambda on, key: lifecycle.advance(on, key),
    "canary": lambda on, key: canaries.advance(on, key),
    "job": lambda on, key: _nudge_job(on, key),
}
"""What moves on an overdue row that somebody waits for, by its kind. `expire` has it for the others."""

HINTS = ("delivery", "checkset", "check", "minted")
"""The kinds of which a message of the front end for GitHub is repeated."""


def nudge(on: System, kind: str, key: Key) -> None:
    """Move on an overdue row, by its kind."""
    if kind in NUDGES:
        NUDGES[kind](on, key)
    elif kind in HINTS:
        hints.resend(on, kind, key)
    else:
        expire.nudge(on, kind, key)


def _name_in(key: Key) -> str:
    return key.pk.partition("#")[2]


def _nudge_unit(on: System, key: Key) -> None:
    unit = on.store.get(key, Unit)
    if unit and unit.due:
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER)


def _spread_stop(on: System, scope: str, reached: stops.Reached | None = None) -> None:
    """Bring pools to a stop; after a while, another call of the function goes on from there."""
    left = stops.spread(on, scope, reached)
    if left:
        on.queues.sweep({"stop": scope, "version": left.version, "page": left.page, "failed": left.failed})


def _roll_out(on: System) -> None:
    """Do what is left of a site's rollout; after a while, another call of the function goes on."""
    if not apply.go_on(on):
        on.queues.sweep({"rollout": "site"})


def _nudge_job(on: System, key: Key) -> None:
    """An overdue job, by its state: it is judged, ended, or its flow is started or answered again."""
    now = on.world.now()
    job = on.store.get(key, Job)
    if job is None or job.due is None or job.due > now:
        return
    if job.is_settled:
        _go_on_settled(on, job)
    elif job.state is State.WAITING:
        prerequisites.judge(on, job.id)
    elif job.run.report or job.cancellation.cancelled_by:
        _end(on, job, "Cancelled", "")
    elif job.state is State.RUNNING and job.is_lease:
        leases.expire(on, job)
    elif job.state is State.RUNNING:
        _end(on, job, "Lost", f"worker {job.run.worker} neither finished nor stopped in the time that the job had")
    elif job.flow.queue_until and job.flow.queue_until <= now:
        _end(on, job, "QueueDeadline", f"it waited longer than the queue deadline: {jobs.explain(on, job).summary}")
    elif job.state is State.QUEUED:
        _resume_queued(on, job)
    else:
        _resume_acquiring(on, job)


def _go_on_settled(on: System, job: Job) -> None:
    """Do what keeps a settled job due; of two things, the next nudge does the other."""
    if job.flow.stop_from:
        _stop_flows(on, job)
    else:
        settle.forget_secrets(on, job)


def _stop_flows(on: System, job: Job) -> None:
    """Stop the flows of attempts that the sweep ended. Until that is done, the job stays due."""
    if job.flow.stop_from is None:
        return
    for attempt in range(job.flow.stop_from, job.attempt + job.is_settled):
        on.flows.stop(job.id, attempt)
    on.store.commit([Replace(job, flows_stopped(job))])


def _end(on: System, job: Job, error: str, cause: str) -> None:
    """Settle an attempt that is still overdue when its end is written, and stop its flow, which nothing moves on."""
    settle.settle(on, job.id, job.attempt, error, cause, overdue=on.world.now())
    fresh = on.store.get(job.key, Job)
    if fresh:
        _stop_flows(on, fresh)


def _resume_queued(on: System, job: Job) -> None:
    """Start a queued attempt's flow. One that takes no first step for long enough is lost: its message is. [JOB-1]

    Whether it was open already, nobody can tell. docs/decisions/0043-a-lost-first-step-costs-no-retry.md
    """
    settle.start_release(on, job.id, job.attempt - 1)
    now = on.world.now()
    if job.flow.nudged:
        _end(on, job, "Lost", "the flow never took its first step")
    elif flow.start(on, job.id):
        on.store.commit([Replace(job, nudge_flow(job, now, FLOW_WITHIN * (1 + job.history.spared)))])
    else:
        on.store.commit([Replace(job, replace(job, due=now + START_WITHIN))])


def _resume_acquiring(on: System, job: Job) -> None:
    """Answer what a flow may wait for, in case the answer was lost. Otherwise its next message was. [JOB-1]

    AWS says which: it refuses the answer to a step that was answered. Nobody else has the token of that message.
    """
    held = flow.leases_of(on, job)
    if any(lease.state in (LeaseState.WAITING, LeaseState.GRANTED) for lease in held):
        _extend_wait(on, job, held)
    elif job.flow.nudged or not _answer_again(on, held):
        _end(on, job, STALLED, "the flow stopped between two steps")
    else:
        on.store.commit([Replace(job, nudge_flow(job, on.world.now(), STEP_WITHIN))])


def _answer_again(on: System, held: Sequence[Lease]) -> bool:
    """Answer each step that has all its leases. Returns whether one of them still waited."""
    steps = {lease.step: [other for other in held if other.step == lease.step] for lease in held}
    return any([flow.answer_step(on, of_step) for of_step in steps.values()])


def _extend_wait(on: System, job: Job, held: Sequence[Lease]) -> None:
    """Let a job wait on; or end the attempt, if it held for too long what it cannot use, or holds what the site puts
    behind what it waits for. [QUEUE-3]
    """
    now = on.world.now()
    names = ", ".join(lease.name for lease in held if lease.state is LeaseState.READY)
    if unused.is_give_back_due(job, held, now):
        cause = f"it held {names} and got no further for {job.limits.idle_hold} s: {jobs.explain(on, job).summary}"
        _end(on, job, unused.IDLE_HOLD_ERROR, cause)
    elif unused.is_out_of_order(job, held, current_site(on)):
        cause = f"it held {names}, which the site now has jobs acquire with or after what it waited for"
        _end(on, job, unused.REORDERED_ERROR, cause)
    else:
        due = unused.next_check(job, held, now)
        on.store.commit([Replace(job, replace(job, due=due, flow=replace(job.flow, nudged=False)))])


def serve_all(on: System, rows: Isolation) -> tuple[list[Pool], list[str]]:
    """Serve every pool that somebody waits for, since a message may be lost, or that has too few units. [QUEUE-1]

    Of many pools, the sweep serves some itself and leaves the others to messages. Returns those that it served itself,
    and the names of those of them that somebody waits for.
    """
    now, pools = on.world.now(), list(apply.every_pool(on))
    for at in range(POOLS, len(pools), POOLS):
        _leave_pools(on, pools[at - 1].name, pools[at : at + POOLS], now + PERIOD)
    return pools[:POOLS], serve_pools(on, pools[:POOLS], rows, now + WITHIN)


def _leave_pools(on: System, after: str, pools: Sequence[Pool], until: datetime) -> None:
    on.queues.sweep({"pools": [after, pools[-1].name], "until": until.isoformat()})


def serve_pools(on: System, pools: Sequence[Pool], rows: Isolation, until: datetime) -> list[str]:
    """Serve some pools, if need be; the names of those that somebody waits for.

    A pool that cannot be served keeps nobody of another pool waiting. Each minute another is the first, so that none is
    always behind others that take all the time.
    """
    waited_for = []
    for pool in rotate(pools, on.world.now(), PERIOD):
        if on.world.now() >= until:
            break
        with rows.step("serving a pool", pool=pool.name):
            is_waited_for = bool(on.store.find(collection(pool.name), WAITING, Claim, limit=1))
            waited_for += [pool.name] if is_waited_for else []
            if is_waited_for or pool.min_warm:
                serving.serve(on, [pool.name])
            prewarm.replace_outdated(on, pool)
            power.switch_idle_off(on, pool)
    return waited_for


def settle_ended(on: System, rows: Isolation) -> int:
    """Settle attempts whose flow ended without doing so, before their scripts began: later, no flow counts."""
    count = 0
    for job_id, attempt, status in on.flows.ended():
        with rows.step("settling an attempt", job=job_id, attempt=attempt):
            job = on.store.get(job_key(job_id), Job)
            if job and job.attempt == attempt and not job.is_settled and job.state is not State.RUNNING:
                settle.settle(on, job_id, attempt, status, None, unbegun=True)
                count += 1
    return count
