"""Jobs: submit, list, show, cancel, hold, retry; what they run, and how long each step took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import Annotated, Any, Literal

from penstock.api.app import Also, Caller, IdempotencyKey, Limit, Pattern, Reply, Router, Tags, UlidPage
from penstock.api.conditional import Tag, tag_of_versions
from penstock.api.readers import Lister, Reader
from penstock.api.shapes import Created, JobOutcome, JobState, NextPage, view
from penstock.api.waiting import PlanView, show_plan
from penstock.domain import money
from penstock.domain.commands import SubmitJob
from penstock.domain.jobs import failures, states, unused
from penstock.domain.jobs.failures import Failure
from penstock.domain.jobs.holds import HeldUnits
from penstock.domain.jobs.jobs import Bill, Job, State
from penstock.domain.jobs.tasks import NewTask
from penstock.domain.jobs.unused import HeldTime
from penstock.domain.pools.pools import WORKER, Lease
from penstock.domain.units import units
from penstock.domain.units.units import CleanProof
from penstock.domain.users.users import READ, SUBMIT
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.kernel.rows import Key
from penstock.system import System
from penstock.usecases.artifacts import discard
from penstock.usecases.jobs import bills, cancel, extending, flow, holds, jobs, listing, proofs, readers, submit
from penstock.usecases.jobs.listing import Wanted

router = Router("jobs")

_PATTERN = Pattern(r"[^\n]{0,200}", "name is one line of at most 200 characters")


NO_PROOFS: Mapping[Key, CleanProof] = {}


@dataclass(frozen=True)
class JobResource:
    """A resource that a job asked for."""

    name: Annotated[str, "Its name in the job."]
    type: Annotated[str, "Its resource type, or quota."]
    state: Annotated[
        Literal["wanted", "waiting", "granted", "ready", "releasing", "released"],
        "How far it is: not asked for yet, in the queue, granted, ready for use, being given back, given back.",
    ]
    slot: Annotated[str | None, "The slot that the job holds; null until one is granted."]
    choice: Annotated[str, "What it chooses among the things of its type; empty if it takes any."] = ""


@dataclass(frozen=True)
class JobTimes:
    """When a job reached each of its states. Times are RFC 3339 in UTC."""

    submitted: Annotated[str, "When it was submitted."]
    ready: Annotated[str | None, "When it had all its inputs and dependencies, and joined its queues."]
    acquired: Annotated[str | None, "When it had all its slots."]
    started: Annotated[str | None, "When its script began."]
    settled: Annotated[str | None, "When it ended."]


@dataclass(frozen=True)
class JobAttempt:
    """An attempt that another attempt followed."""

    attempt: Annotated[int, "Its number. Attempts count from 1."]
    outcome: Annotated[str, "How it ended."]
    reason: Annotated[str, "Why it ended, in a sentence."]
    failure: Annotated[str | None, "The kind of failure; null where that is unknown."] = None


@dataclass(frozen=True)
class FailedTask:
    """The task that ended a job."""

    index: Annotated[int, "Its number. Tasks count from 0."]
    name: Annotated[str, "Its name."]


@dataclass(frozen=True)
class JobFailure:
    """Why a job did not succeed."""

    kind: Annotated[str, "The kind of failure, one of those in docs/users/failures.md."]
    what: Annotated[str, "What this kind means, in a sentence."]
    advice: Annotated[str, "What you can do about it."]
    evidence: Annotated[dict[str, Any], "What was observed, by name. Each kind has its own."]
    task: Annotated[FailedTask | None, "The task that ended the job; null if none did."]
    lines: Annotated[list[str], "The last lines of the log, or of the machine's console."]
    lines_of: Annotated[Literal["job", "console"], "Where `lines` come from."]


@dataclass(frozen=True)
class JobDependency:
    """A job that must end before this one begins."""

    name: Annotated[str, "The dependency's name in this job, and its folder below /input."]
    job: Annotated[str, "The id of the job to wait for."]
    on: Annotated[Literal["success", "failure", "always"], "How that job must end for this one to begin."]
    copy_outputs: Annotated[bool, "Whether that job's outputs are copied below /input."]


@dataclass(frozen=True)
class HoldJob:
    """A request to hold a job's worker and resources after its script ends, for somebody to look at them."""

    reason: Annotated[str, Bound(most=units.HOLD_REASON_CHARS), "Why, for others to read."]
    for_: Annotated[
        int | None, Bound(least=1, most=units.HOLD_MOST), "For how many seconds. By default as long as the site allows."
    ] = None
    whatever: Annotated[bool, "Whether to hold them also if the script succeeds."] = False


@dataclass(frozen=True)
class MoreTime:
    """For how long something may go on."""

    for_: Annotated[int | str, 'How long from now, in seconds, or as text like "30m". It never ends earlier for it.']


@dataclass(frozen=True)
class RetryJob:
    """How a job that is submitted once more differs from before."""

    dependencies: Annotated[
        dict[str, str],
        "For names of its dependencies, the ids of the jobs to wait for this time, such as their retries. How these "
        "must end and whether their outputs are copied stays as it was. By default it waits for the same jobs.",
    ] = field(default_factory=dict)


AS_BEFORE = RetryJob()


@dataclass(frozen=True)
class HeldUnit:
    """A worker or a resource that is held for a job."""

    kind: Annotated[Literal["worker", "resource"], "Which of both it is."]
    id: Annotated[str, "Its id."]
    pool: Annotated[str, "Its pool."]
    slot: Annotated[str, "Its slot."]


@dataclass(frozen=True)
class HeldJob:
    """What is held of a job."""

    by: Annotated[str, "The user who holds it."]
    reason: Annotated[str, "Why, for others to read."]
    until: Annotated[str, "When the hold ends, as RFC 3339."]
    unit_seconds: Annotated[float, "What the hold has cost so far: units times seconds."]
    units: Annotated[list[HeldUnit], "What is held."]


@dataclass(frozen=True)
class JobCost:
    """What a settled job cost."""

    total: Annotated[str, "All of it: a decimal number, like `0.002231`."]
    unused: Annotated[str, "The part for what it had while its script did not run."]
    currency: Annotated[str, "The site's currency, such as `USD`."]


@dataclass(frozen=True)
class JobView:
    """A job."""

    id: Annotated[str, "Its id, a ULID."]
    name: Annotated[str, "Its name, which need not be unique."]
    owner: Annotated[str, "The user or repository that owns it."]
    state: Annotated[JobState, "How far it is."]
    outcome: Annotated[JobOutcome | None, "How it ended; null until it is settled."]
    reason: Annotated[str | None, "Why it ended that way, in a sentence."]
    attempt: Annotated[int, "The number of its attempt. Attempts count from 1."]
    target: Annotated[str, "The target that was asked for."]
    target_resolved: Annotated[str, "The target that it runs on: where redirects lead, or one of a family."]
    resources: Annotated[list[JobResource], "The resources of its present attempt."]
    times: Annotated[JobTimes, "When it reached each of its states."]
    worker: Annotated[str | None, "The id of its worker; null before it has one."]
    exit_code: Annotated[int | None, "The exit code of its script; null if the script did not end by itself."]
    tags: Annotated[dict[str, str], "Its tags, by name."]
    priority: Annotated[int, "From -100 to 100. Jobs with a higher priority are served first."]
    timeout: Annotated[int, "How many seconds its script may run."]
    attempts: Annotated[list[JobAttempt], "The attempts before the present one, oldest first."]
    failure: Annotated[JobFailure | None, "Why it did not succeed; null until it is settled, and if it succeeded."] = (
        None
    )
    held: Annotated[HeldJob | None, "What is held of it. Lists of jobs leave it out."] = None
    dependencies: Annotated[list[JobDependency], "The jobs that it waits for, or waited for."] = field(
        default_factory=list
    )
    outputs_gone: Annotated[str | None, "When its outputs were deleted, as RFC 3339; null while they are kept."] = None
    cache_scope: Annotated[str | None, "The branch whose caches it adds to; null if it adds to none."] = None
    environment: Annotated[str | None, "The environment that it asks for; null if it asks for none."] = None
    approved_by: Annotated[
        str | None, "Who approved it for that; null until somebody has. `github/` stands before a login."
    ] = None
    waits_for: Annotated[
        str | None, "What it waits for, such as the pool `target/linux`; null if it does not wait."
    ] = None
    chosen: Annotated[
        str | None, "Why it runs on that target, in a sentence; null if that was not chosen among several."
    ] = None
    host: Annotated[str | None, "Which of the target's hosts it may be, if it asks for some; null for any."] = None
    cost: Annotated[
        JobCost | None,
        "What it cost; null until it is settled, and on a site without prices. Lists leave out new ones.",
    ] = None


@dataclass(frozen=True)
class JobScript:
    """What a job runs, as it was submitted. Whoever may read the job may read it, so no secret belongs into it."""

    job: Annotated[str, "The job's id."]
    path: Annotated[str, "The job file's path, as error messages name it."]
    script: Annotated[str | None, "The whole job file; null for a job that was submitted as tasks."]
    tasks: Annotated[list[NewTask], "The job's tasks; none for a job that was submitted as a job file."]
    matrix: Annotated[dict[str, str], "The combination of the file's matrix that this job is: a value for each axis."]


@dataclass(frozen=True)
class JobPage:
    """Some jobs, newest first."""

    items: Annotated[list[JobView], "The jobs."]
    next: NextPage


@dataclass(frozen=True)
class CleanView:
    """How it was made sure that nothing of a job is left on its worker, or in a resource."""

    by: Annotated[str, "Who did it: a driver, the machine's agent, or an operator."]
    time: Annotated[str, "When, as RFC 3339."]
    checked: Annotated[str, "What was checked."]


@dataclass(frozen=True)
class HeldView:
    """For how long an attempt held a resource or its worker."""

    attempt: Annotated[int, "The number of the attempt. Attempts count from 1."]
    name: Annotated[str, "The resource's name in the job, or `worker`."]
    type: Annotated[str, "Its resource type, or the worker's target."]
    seconds: Annotated[float, "For how many seconds the attempt held it."]
    unused_seconds: Annotated[float, "How many of them passed before the script began."]
    since: Annotated[str | None, "Since when, as RFC 3339."] = None
    pool: Annotated[str | None, "The pool."] = None
    slot: Annotated[str | None, "The slot."] = None
    unit: Annotated[str | None, "The id of the worker or resource."] = None
    fence: Annotated[int | None, "The number of this grant of the slot: the next one has a larger one."] = None
    clean: Annotated[CleanView | None, "How it was made sure that it is clean; null until then, or if forgotten."] = (
        None
    )


@dataclass(frozen=True)
class TimingsView:
    """How long a job took."""

    times: Annotated[JobTimes, "When it reached each of its states."]
    intervals: Annotated[dict[str, float], "Seconds spent `waiting`, `acquiring` and `running`, and in `total`."]
    held: Annotated[list[HeldView], "What its attempts held, and for how long."] = field(default_factory=list)


@router.post(
    "/v1/jobs",
    "Submit a job, or with plan=true show what would happen to it",
    SUBMIT,
    status=201,
    also=[Also(200, "planned: nothing was written", PlanView)],
)
def submit_job(
    on: System,
    user: Caller,
    ask: SubmitJob,
    *,
    plan: Annotated[bool, "Whether to only plan the job, and submit nothing."] = False,
    idempotency_key: IdempotencyKey = None,
) -> Created | Reply:
    if plan:
        return Reply(200, show_plan(submit.plan(on, user, ask)))
    return Created(submit.submit(on, user, ask, idempotency_key))


@router.get("/v1/jobs", "List your jobs, newest first", READ)
def list_jobs(
    on: System,
    user: Lister,
    *,
    state: Annotated[
        JobState | JobOutcome | None,
        "Only jobs in this state, or with this outcome. `waiting` are all that wait, those that are queued too.",
    ] = None,
    target: Annotated[str, "Only jobs that asked for this target."] = "",
    name: Annotated[
        str, _PATTERN, "Only jobs of this name; in it `*` is any text, `?` any character, `[ab]` one of these."
    ] = "",
    since: Annotated[datetime | None, "Only jobs that were submitted at this time or later, as RFC 3339."] = None,
    tag: Tags,
    owner: Annotated[
        str | None, "Only jobs of this owner; others' are for operators, or public. By default your own."
    ] = None,
    all: Annotated[bool, "Whether to list the jobs of every owner, which is for operators."] = False,
    limit: Limit = 50,
    page: UlidPage = "",
) -> JobPage:
    wanted = Wanted(state or "", target, name, tag, since)
    rows, following = listing.list_jobs(on, user, owner, wanted, limit, page, everybody=all)
    return JobPage([show(row, _shown_leases(on, row)) for row in rows], following)


def _job_tag(on: System, user: Reader, job: str) -> str:
    found = readers.find(on, user, job)
    return "" if readers.is_stranger(user, found) else _tag(found)


@router.get("/v1/jobs/{job}", "Show a job", READ, tag=Tag(_job_tag))
def get_job(on: System, user: Reader, job: str) -> JobView | Reply:
    found = readers.find(on, user, job)
    if readers.is_stranger(user, found):
        return show(found, flow.leases_of(on, found))
    return Reply(200, _whole(on, found), tag=_tag(found))


def _script_tag(on: System, user: Caller, job: str) -> str:
    return tag_of_versions(jobs.find(on, user, job).id)


@router.get("/v1/jobs/{job}/script", "Show the job file that a job was submitted with", READ, tag=Tag(_script_tag))
def get_script(on: System, user: Caller, job: str) -> JobScript | Reply:
    spec = flow.kept_spec(on, jobs.find(on, user, job))
    shown = view(JobScript, spec, script=spec.script or None, matrix=spec.request.get("matrix") or {})
    return Reply(200, shown, tag=tag_of_versions(spec.job))


@router.post("/v1/jobs/{job}/cancel", "Cancel a job", SUBMIT)
def cancel_job(on: System, user: Caller, job: str) -> JobView:
    return _whole(on, cancel.cancel(on, user, job))


@router.post("/v1/jobs/{job}/extend", "Let a job run for longer", SUBMIT)
def extend_job(on: System, user: Caller, job: str, ask: MoreTime) -> JobView:
    return _whole(on, extending.extend_job(on, user, job, ask.for_))


@router.post("/v1/jobs/{job}/hold", "Hold a job's worker and resources when its script ends", SUBMIT)
def hold_job(on: System, user: Caller, job: str, ask: HoldJob) -> JobView:
    return _whole(on, holds.request(on, user, job, ask.reason, ask.for_, whatever=ask.whatever))


@router.post("/v1/jobs/{job}/release", "Release what is held of a job", SUBMIT)
def release_job(on: System, user: Caller, job: str) -> JobView:
    return _whole(on, holds.release(on, user, job))


@router.post("/v1/jobs/{job}/discard", "Delete a settled job's files and log before their time", SUBMIT)
def discard_job(on: System, user: Caller, job: str) -> JobView:
    discard.discard(on, user, jobs.find(on, user, job))
    return _whole(on, jobs.find(on, user, job))


@router.post("/v1/jobs/{job}/retry", "Submit a job once more", SUBMIT, status=201)
def retry_job(
    on: System, user: Caller, job: str, ask: RetryJob = AS_BEFORE, *, idempotency_key: IdempotencyKey = None
) -> Created:
    return Created(submit.retry(on, user, jobs.find(on, user, job), ask.dependencies, idempotency_key))


@router.get("/v1/jobs/{job}/timings", "Show how long each step of a job took", READ)
def get_timings(on: System, user: Reader, job: str) -> TimingsView:
    found = readers.find(on, user, job)
    leases = flow.leases_of_job(on, found.id)
    known = {} if readers.is_stranger(user, found) else proofs.proofs_of(on, leases)
    return timings(found, leases, on.world.now(), known)


def _shown_leases(on: System, job: Job) -> list[Lease]:
    """The leases of a job, if a list shows anything of them: its resources, or that it stands in a queue."""
    has_resources = any(need.order != WORKER for need in job.request.needs)
    return flow.leases_of(on, job) if has_resources or job.state is State.ACQUIRING else []


def _tag(row: Job) -> str:
    """The tag of a job of which its row says everything: not that of one with resources, in a queue, or held, nor of
    one whose bill is open.
    """
    is_alone = all(need.order == WORKER for need in row.request.needs)
    is_billed = row.bill is None or row.bill.due is None
    is_told = is_alone and row.state is not State.ACQUIRING and not row.keep and is_billed
    return tag_of_versions(row.id, row.version) if is_told else ""


def _whole(on: System, job: Job) -> JobView:
    billed = replace(job, bill=bills.bill_of(on, job)) if job.bill else job
    return show(billed, flow.leases_of(on, job), holds.held_units(on, job))


def show(row: Job, leases: Sequence[Lease], kept: HeldUnits | None = None) -> JobView:
    """A job with the resources of its present attempt, what of it is held, and what it cost."""
    queue = states.queue_in(leases)
    return view(
        JobView,
        row,
        row.request,
        row.limits,
        row.history,
        row.run,
        row.end,
        state=states.shown(row.state, is_in_queue=queue is not None),
        waits_for=states.waits_for(row, queue),
        resources=_resources(row, leases),
        failure=show_failure(row.run.failure, row.owner) if row.is_settled and row.run.failure else None,
        held=view(HeldJob, row.keep, **_held(kept)) if row.keep and kept else None,
        cache_scope=row.request.cache_scope or None,
        chosen=row.request.chosen or None,
        host=_host(row),
        environment=row.review.environment if row.review else None,
        approved_by=(row.review.by or None) if row.review else None,
        cost=_cost(row.bill) if row.bill and row.bill.due is None else None,
    )


def _host(row: Job) -> str | None:
    choice = next((need.choice for need in row.request.needs if need.order == WORKER), None)
    return (choice.labels or None) if choice else None


def _cost(bill: Bill) -> JobCost:
    return JobCost(money.shown(bill.total), money.shown(bill.unused), bill.currency)


def _resources(row: Job, leases: Sequence[Lease]) -> list[JobResource]:
    leases_by_order = {lease.order: lease for lease in leases}
    found = []
    for need in row.request.needs:
        lease = leases_by_order.get(need.order)
        if need.order != WORKER:
            state: Any = lease.state.value if lease else "wanted"
            slot = lease.slot if lease else None
            found.append(JobResource(need.name, need.type, state, slot, str(need.choice or "")))
    return found


def show_failure(found: Failure, owner: str) -> JobFailure:
    """Why a job of `owner` did not succeed."""
    meaning = failures.meaning_of(found, owner)
    return view(
        JobFailure,
        found,
        what=meaning.what,
        advice=meaning.advice,
        task=None if found.task is None else FailedTask(found.task, found.task_name),
        lines_of="console" if found.is_console else "job",
    )


def _held(found: HeldUnits) -> dict[str, Any]:
    units = [view(HeldUnit, unit, unit.lease, kind=unit.is_a) for unit in found.units]
    return {"until": found.until, "unit_seconds": found.unit_seconds, "units": units}


def _held_view(one: HeldTime, clean: CleanProof | None) -> HeldView:
    since = one.lease.granted
    return view(HeldView, one, one.lease, seconds=one.held, unused_seconds=one.unused, since=since, clean=clean)


def timings(
    row: Job, leases: Sequence[Lease], now: datetime, clean: Mapping[Key, CleanProof] = NO_PROOFS
) -> TimingsView:
    """How long a job took, and what it held; what is not over yet is counted up to now."""
    end = row.times.settled or now
    ready, started = row.times.ready or end, row.times.started
    seconds = {
        "waiting": ready - row.times.submitted,
        "acquiring": (started or end) - ready,
        "running": (end - started) if started else end - end,
        "total": end - row.times.submitted,
    }
    times = unused.held_times(row, leases, now)
    spans = [_held_view(one, clean.get(one.lease.key)) for one in times]
    intervals = {name: span.total_seconds() for name, span in seconds.items()}
    return TimingsView(view(JobTimes, row.times), intervals, spans)
