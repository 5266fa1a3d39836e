"""From a request to an accepted job: every check that can be made before anything waits.

Called by the API, by the front end for GitHub, by canaries and by factory tests. `job_file` puts the request's own
values over the file; `plan` makes every check of a submit and reads the queues, without writing anything.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from pathlib import PurePosixPath
from typing import Any, TypeVar

from penstock.domain import caches, metrics, published
from penstock.domain.commands import AcquireLease, SubmitJob
from penstock.domain.jobfile import (
    TOOLCHAIN_FILE,
    JobFile,
    Problem,
    Problems,
    ResourceAsk,
    check_asked,
    check_inputs,
    check_key,
    parse,
    variant,
)
from penstock.domain.jobfile.machine import Machine
from penstock.domain.jobs import admission, members, origins, plans
from penstock.domain.jobs.dependencies import Dependency
from penstock.domain.jobs.jobs import (
    START_WITHIN,
    HoldRequest,
    Job,
    JobLimits,
    Provenance,
    Proves,
    Publication,
    Request,
    Spec,
    State,
    Times,
    job_key,
)
from penstock.domain.jobs.plans import Plan
from penstock.domain.jobs.reviews import Review
from penstock.domain.jobs.submissions import Submission, submission_key
from penstock.domain.jobs.tasks import check_tasks
from penstock.domain.logs.logs import CONTROL, DETAIL
from penstock.domain.pools import why
from penstock.domain.pools.pools import WORKER, Need
from penstock.domain.site import sharing
from penstock.domain.site.site import Environment, Site, Target, step_numbers
from penstock.domain.users import oidc
from penstock.domain.users.users import User, digest, is_repository
from penstock.kernel import limits
from penstock.kernel.errors import DriverError, Fault, Refused, Throttled, Unreached
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Create
from penstock.system import System, current_site, transact
from penstock.usecases import budgets
from penstock.usecases.artifacts import inputs
from penstock.usecases.jobs import backlogs, flow, holds, prerequisites
from penstock.usecases.logs import logs
from penstock.usecases.pools import forecast, machines, scheduler, shares
from penstock.usecases.pools.scheduler import Claimed
from penstock.usecases.units import drivers
from penstock.usecases.users import users

T = TypeVar("T")

CHECKED = (
    "name",
    "target",
    "host",
    "image",
    "services",
    "machine",
    "resources",
    "output_rules",
    "tags",
    "env",
    "priority",
    "timeout",
    "max_wait",
    "retries",
    "hold_on_failure",
)
"""The values of a request that are checked as if they stood in the file."""


NO_SOURCE = Provenance()
"""Of a script nobody says where it comes from."""

AS_BEFORE: Mapping[str, str] = {}
"""That a job which is retried depends on the same jobs as before."""

CLAIM_TRIES = 2
"""How often a new job tries to get its worker in the commit that creates it. Then it claims by the step of its flow, as
it does when its pool is throttled: its user's call takes no longer for that.
"""

SHORT_BYTES = 1040
"""How many bytes a job and what it runs may take to stand in one row, as compressed JSON with every default.

What its place says beside its id counts too. Stored without, such a row takes 1 KB at most to a first attempt's end:
one write unit.
"""


@dataclass(frozen=True)
class Draft:
    """A request that could be accepted: the rows that it would become, and what they were made from.

    `priors` are the jobs that it depends on, by id.
    """

    job: Job
    spec: Spec
    file: JobFile
    site: Site
    priors: dict[str, Job]


def submit(
    on: System,
    user: User,
    ask: SubmitJob,
    key: str | None,
    proves: Proves | None = None,
    *,
    canary: str = "",
    before: Job | None = None,
    commit: Provenance | None = None,
) -> str:
    """Accept a job and return its id; the same key and the same request return the same job. Raises Refused.

    `canary` is the pool that it is a canary of, `commit` what the front end says of the commit that it checks;
    `before`, the job that is submitted once more.
    """

    def make() -> str:
        source = commit or _said_provenance(user, ask, before)
        made = prepare(on, user, ask, source)
        came = replace(source, proves=proves, canary=canary)
        new = replace(made, job=replace(made.job, provenance=came, review=_authored(made.job, user, before)))
        return accept(on, user, new, given(ask), key)

    return once(on, user, given(ask), key, make)


def once(on: System, user: User, asked: Mapping[str, Any], key: str | None, make: Callable[[], str]) -> str:
    """The id of what `make` accepts; where it refuses, of what was accepted before with the same key and request.

    What a check looks at may have changed since: a limit is reached, a dependency's outputs are gone. Only a refusal
    looks for the answer of before, so that what is accepted costs no read for that. Raises Refused.
    """
    try:
        return make()
    except Refused:
        known = on.store.get(submission_key(user.name, digest(key)), Submission) if key else None
        if known is None:
            raise
        return _repeated_job(known, _request_digest(asked))


def accept(on: System, user: User, new: Draft, asked: Mapping[str, Any], key: str | None) -> str:
    """Accept what was prepared, and return its id; with the same key and the same that was `asked`, the id of before.

    Raises Refused 409 if something else was asked with that key, and 429 over a limit.
    """
    memory = _submission(user, asked, key, new.job)
    new, accepted = _with_turn(on, new, memory), ""
    try:
        accepted, claimed, state = _accept_soon(on, new, memory)
    finally:
        if accepted != new.job.id and new.job.usage.expected:  # else a refused submit costs its owner's share
            shares.give_back_turn(on, new.job)
    if accepted == new.job.id:
        new = replace(new, job=replace(new.job, state=state))
        on.metrics.add(metrics.JOBS_SUBMITTED, target=new.job.request.shown_target)
        _begin(on, new, claimed, _accepted_line(new.job, new.priors, by=user.name))
        logs.append(on, accepted, 1, "\n".join(f"warning: {each}" for each in _warnings(on, new)))
    return accepted


def _with_turn(on: System, new: Draft, memory: Submission | None) -> Draft:
    """What was prepared, with its turn on a site with shares. Raises Refused 429 over a limit, and counts nothing then.

    A canary has none, and what was accepted before has its own. [QUEUE-2]
    """
    is_canary = bool(new.job.provenance.canary)
    if not new.site.shares or is_canary or (memory and on.store.get(memory.key, Submission)):
        return new
    users.check_may_submit(on, new.job.owner, new.site)
    return replace(new, job=shares.take_turn(on, new.job, new.site.shares))


def _accept_soon(on: System, new: Draft, memory: Submission | None) -> tuple[str, Claimed, State]:
    """As `_accept`. If its pool has too much to do, the job's own rows do not wait for that."""
    try:
        return _accept(on, new, memory, CLAIM_TRIES)
    except Throttled:
        return _accept(on, new, memory, 0)


def _warnings(on: System, new: Draft) -> list[str]:
    """What the log of a new job begins with: keys of its file without effect, and a budget that is nearly spent."""
    has_budget = new.site.budgets is not None and not new.job.provenance.canary
    near = budgets.warning(on, new.site, new.job.owner) if has_budget else None
    return [*map(str, new.file.ignored), *([near] if near else [])]


def _said_provenance(user: User, ask: SubmitJob, before: Job | None) -> Provenance:
    """Where a job comes from, as its submitter says, who may vouch for that or not. A job that is submitted once more
    is still of who wrote its script. [SEC-2]
    """
    source = before.provenance.vouched if before else ask.tags
    outsider = before is not None and before.provenance.outsider
    return Provenance(vouched=oidc.vouched(source) if user.may_vouch else {}, outsider=outsider)


def _authored(job: Job, user: User, before: Job | None) -> Review | None:
    """The review that a job waits for, with whose job it is besides its owner's: nobody approves their own. [SEC-2]"""
    if job.review is None:
        return None
    earlier = {before.owner, *(before.review.authors if before.review else ())} if before else set()
    return replace(job.review, authors=tuple(sorted({user.name, *earlier} - {job.owner})))


def _accept(on: System, made: Draft, memory: Submission | None, claims: int) -> tuple[str, Claimed, State]:
    """Write the rows of a new job, and the id of the one that was accepted; the first `claims` tries also claim.

    The state is that of the new one.
    """
    tries = count()

    def decide() -> tuple[Sequence[Change], tuple[str, Claimed, State]]:
        known = on.store.get(memory.key, Submission) if memory else None
        if known and memory:
            return [], (_repeated_job(known, memory.request_digest), Claimed(), made.job.state)
        new, counted = users.count_job(on, made.job, made.spec.source, made.site)
        job, granted, claimed = _claim(on, new) if next(tries) < claims else (new, [], Claimed())
        begun = (
            [Create(replace(job, spec=made.spec))] if _is_short(job, made.spec) else [Create(job), Create(made.spec)]
        )
        waiting = prerequisites.waiting_rows(job, made.priors) if job.state is State.WAITING else []
        of_set = members.member_of(job, made.spec.request.get("matrix") or {}) if job.request.tags else None
        beside = [Create(row) for row in (memory, of_set) if row]
        return [*begun, *granted, *waiting, *beside, *counted], (
            job.id,
            claimed,
            job.state,
        )

    return transact(on, decide)


def _claim(on: System, job: Job) -> tuple[Job, list[Change], Claimed]:
    """A job with its claims, if it gets all that it needs at once."""
    try:
        return scheduler.claim_with_job(on, job, partial(drivers.ready_at_once, on, job))
    except (DriverError, Unreached):  # its flow asks its wells, and asks again
        return job, [], Claimed()


def _submission(user: User, asked: Mapping[str, Any], key: str | None, job: Job) -> Submission | None:
    if key is None:
        return None
    said = _request_digest(asked)
    return Submission(
        owner=user.name, key_digest=digest(key), request_digest=said, job=job.id, time=job.times.submitted
    )


def _request_digest(asked: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def given(ask: SubmitJob | AcquireLease) -> dict[str, Any]:
    """What a request says. What it does not is left out, so that a release with more to say takes it for the same."""
    return {name: value for name, value in asdict(ask).items() if value not in (None, [], {})}


def _repeated_job(known: Submission, request_digest: str) -> str:
    if known.request_digest != request_digest:
        raise Refused(409, "idempotency-key-reused", "this Idempotency-Key was used for another request")
    return known.job


def _accepted_line(job: Job, priors: Mapping[str, Job], by: str) -> str:
    wanted = ", ".join(need.said for need in job.request.needs if need.order != WORKER)
    aliased = f" ({job.request.came_by})" if job.request.came_by else ""
    named = [
        *(f"job {prior.id} ({prior.name})" for prior in priors.values()),
        *(f"input {name}" for name in job.request.inputs),
        *([f"a review for the environment {job.review.environment}"] if job.review else []),
    ] or [f"other jobs of {job.owner}, or its budget"] * (job.state is State.WAITING)
    waits = ", ".join(named)
    whose = f" for {job.owner}, from {by}" if by != job.owner else ""
    worker = f"{f'first {wanted}, then ' if wanted else ''}a worker of {job.request.target_resolved}{aliased}"
    first = f"it waits for {waits}; then " if waits else ""
    return f"{job.noun} {job.id} accepted{whose}: {first}{wanted if job.is_lease else worker}"


def _begin(on: System, made: Draft, claimed: Claimed, accepted: str) -> None:
    """What follows once a job is accepted: it is granted what it needs, or its flow is to get it that.

    Of one that waits for others, judge first whether they have settled meanwhile.
    """
    job = made.job
    if claimed.given:
        scheduler.granted_at_once(on, claimed, accepted)
        scheduler.lease_begun(on, claimed)
        return
    if job.state is State.WAITING:
        prerequisites.start_waiting(on, job)
    else:
        with suppress(Unreached):  # the job is accepted, and its row is due: the sweep starts it
            on.flows.start(job.id, 1, flow.steps(job.request.needs))
    logs.append(on, job.id, 1, accepted, CONTROL if job.state is State.WAITING else DETAIL)


def retry(on: System, user: User, job: Job, instead: Mapping[str, str] = AS_BEFORE, key: str | None = None) -> str:
    """Submit a job's request again as a new job: of the user, or of the same repository if it was one's before.

    `instead`: for names of its dependencies, the jobs that it depends on this time. The same key with the same job and
    the same request return the same job. Raises Refused.
    """
    if job.is_lease:
        raise Refused(409, "is-a-lease", f"{job.id} is a lease without a job: `penstock lease acquire` gets another")
    spec = flow.kept_spec(on, job)
    if origins.is_cloned(job, spec):
        raise Refused(409, "run-by-its-forge", f"job {job.id} is of a commit: press Re-run at its check on GitHub")
    request = {**spec.request, "owner": job.owner if is_repository(job.owner) else None}
    if instead:
        request["dependencies"] = _depending(job, spec.request.get("dependencies") or {}, instead)
    ask = SubmitJob(script=spec.script or None, tasks=list(spec.tasks), **request)
    of_job = f"retry {job.id} {key}" if key else None

    def make() -> str:
        inputs.check_room(on, job)
        return submit(on, user, ask, of_job, before=job)

    again = once(on, user, given(ask), of_job, make)
    fresh = on.store.get(job_key(again), Job) if job.request.inputs else None
    if fresh:
        inputs.adopt(on, fresh, job)
    return again


def _depending(job: Job, given: Mapping[str, Any], instead: Mapping[str, str]) -> dict[str, Any]:
    """A request's dependencies with other jobs in the place of some. Raises Refused 400 for names that it has not."""
    there = [each.name for each in job.request.dependencies]
    hint = f"it has: {', '.join(there)}" if there else "it depends on no job"
    faults = [
        Fault(f"job {job.id} has no dependency {name[:100]!r}", where="dependencies", hint=hint)
        for name in instead
        if name not in there
    ]
    if faults:
        raise Refused(400, "bad-request", f"{faults[0].message}; {hint}", faults[: limits.DEPENDENCIES])
    return {**given, **{name: {**given[name], "job": other} for name, other in instead.items()}}


def plan(on: System, user: User, ask: SubmitJob) -> Plan:
    """What would become of a request if it were submitted now. Raises Refused if it would be refused."""
    made = prepare(on, user, ask, _said_provenance(user, ask, None), planned=True)
    job = shares.foresee_turn(on, made.job, made.site.shares) if made.site.shares else made.job
    found = [forecast.forecast_step(on, job, step) for step in plans.steps_of(job)]
    privileges = list(admission.privileges(made.site, made.file, job.request.needs))
    waits = [*why.planned_waits(made.job, made.priors), *backlogs.foresee(on, job.owner)]
    return plans.plan(made.job, privileges, [one[0] for one in found if one], waits)


def prepare(on: System, user: User, ask: SubmitJob, source: Provenance = NO_SOURCE, *, planned: bool = False) -> Draft:
    """The rows that a request would become. Raises Refused if it cannot be accepted. Writes nothing.

    A request that is only `planned` may depend on jobs of other files, which do not exist yet. `source` is where its
    script comes from: an outsider's job has none of its owner's privileges, whoever submits it. [SEC-2]
    """
    user, file, site = users.resolve_owner(on, user, ask.owner), job_file(ask), current_site(on)
    if source.outsider:
        user = replace(user, privileges=())  # what needs one is for who may write to the repository
    refuse_without_repository(file, source.check)
    if not planned:
        refuse_unresolved(ask, file)
    asked = accepted_or_raise(admission.check_names(site, file))
    environment = accepted_or_raise(admission.check_environment(site, user, file, source))
    target, chosen = _target(on, site, user, file, asked, environment)
    needs = (*resources(site, file.resources), _worker(site, file, target))
    accepted_or_raise(admission.check_satisfiable(site, user, file, needs, on.drivers.objections, environment))
    if file.hold_on_failure:
        holds.check(site, user, file.hold_on_failure)
    named = [each for each in _waits_for(file) if each.name in (ask.dependencies or {})]
    priors = prerequisites.priors(on, user, named) if named else {}
    job, spec = _job_rows(on, user, ask, file, target, needs, site)
    job = replace(job, request=replace(job.request, chosen=chosen))
    check_fits(job, spec)
    return Draft(job, spec, file, site, priors)


def _target(
    on: System, site: Site, user: User, file: JobFile, asked: Target, environment: Environment | None
) -> tuple[Target, str]:
    """The target that the job is to run on, and why that one, if it was chosen. Raises Refused."""
    if not asked.machines and file.machine is None:
        return asked, ""
    given = environment.privileges if environment else ()
    asker = machines.Asker(
        user.name,
        lambda each: user.may(each.privilege) or each.privilege in given,
        fresh=bool(file.worker_options),
        needs=file.machine or Machine(),
    )
    taken = accepted_or_raise(machines.choose(on, site, asker, asked))
    return taken.target, taken.why


def accepted_or_raise(found: T | Refused) -> T:
    """What a check found. Raises Refused if it refuses."""
    if isinstance(found, Refused):
        raise found
    return found


def resources(site: Site, asks: Sequence[ResourceAsk]) -> Iterator[Need]:
    """The resources in lexicographic order of their types, which is the order of acquisition. [QUEUE-3]"""
    asked = sorted(asks, key=lambda ask: (ask.type, ask.name))
    steps = step_numbers(site, {ask.type for ask in asked})
    for order, ask in enumerate(asked, 1):
        kind = site.resources[ask.type]
        uses = site.takes(kind.uses)
        yield Need(
            order, steps[ask.type], ask.name, ask.type, kind.pool, kind.well, dict(ask.options), uses,
            (kind.privilege,) if kind.privilege else (), ask.choice,
            slots=kind.leases if ask.choice and ask.choice.exclusive else 1,
        )  # fmt: skip


def _worker(site: Site, file: JobFile, target: Target) -> Need:
    """The worker. A target's alias, or its family, may require a privilege of its own."""
    uses = site.takes(target.uses)
    asked = {each.privilege for each in site.asked_for(file.target, target)}
    need = Need(
        WORKER, WORKER, "worker", target.name, target.pool, target.factory or "", file.worker_options, uses,
        tuple(sorted(filter(None, asked))), file.host,
    )  # fmt: skip
    return sharing.of_shared(need, target, file.machine or Machine()) if target.share else need


def _waits_for(file: JobFile) -> tuple[Dependency, ...]:
    return tuple(Dependency(each.name, each.job, each.on, each.copy_outputs) for each in file.dependencies)


def _job_rows(
    on: System, user: User, ask: SubmitJob, file: JobFile, target: Target, needs: tuple[Need, ...], site: Site
) -> tuple[Job, Spec]:
    """The rows of a new job: the job and its spec. Raises Refused for names to publish that are invalid."""
    now = on.world.now()
    waits_for = _waits_for(file)
    id = on.world.ulid()
    publish = published.resolve(file.publish, file.env, id) if file.publish else ()
    if isinstance(publish, Refused):
        raise publish
    review = _review(site, file, now)
    is_waiting = bool(waits_for or ask.inputs or review)
    job = Job(
        id=id,
        name=file.name or "job",
        owner=user.name,
        request=Request(
            target=file.target,
            target_resolved=target.name,
            needs=needs,
            dependencies=waits_for,
            inputs=tuple(ask.inputs or ()),
            priority=file.priority,
            tags=file.tags,
            publishes=bool(publish),
            cache_scope=_scope(user, ask),
        ),
        state=State.WAITING if is_waiting else State.QUEUED,
        times=Times(submitted=now, ready=None if is_waiting else now),
        limits=JobLimits(
            timeout=min(file.timeout or site.limits.timeout, site.limits.timeout_most),
            queue_seconds=min(file.max_wait or site.limits.queue, site.limits.queue),
            grace=site.limits.grace,
            idle_hold=site.limits.idle_hold,
            retries=file.retries if file.retries is not None else site.limits.retries,
            retry_failed=file.retry_failed,
        ),
        keep=HoldRequest(user.name, holds.FAILED, file.hold_on_failure) if file.hold_on_failure else None,
        review=review,
        due=now + START_WITHIN,
    )
    return job, _spec(job.id, ask, file, publish)


def _review(site: Site, file: JobFile, now: datetime) -> Review | None:
    """The review that a job waits for, if it asks for an environment: for as long as it may wait in its queues."""
    found = site.environments.get(file.environment)
    return Review(found.name, now + timedelta(seconds=site.limits.queue), found.privileges) if found else None


def _scope(user: User, ask: SubmitJob) -> str:
    """Which caches a job adds to: only the request decides, never the job file. [SEC-2]

    By default a user's job adds to the trunk's; a repository's job adds to none, because it may be of a branch.
    """
    if ask.cache_scope is None:
        return "" if is_repository(user.name) else caches.TRUNK
    if not caches.is_scope(ask.cache_scope):
        why = f"a scope is 1 to {limits.CACHE_SCOPE_CHARS} printable ASCII characters without spaces or #"
        raise Refused(400, "bad-request", why, [Fault(why, where="cache_scope")])
    return ask.cache_scope


def _spec(job: str, ask: SubmitJob, file: JobFile, publish: tuple[Publication, ...]) -> Spec:
    """The row with a job's script, and all that only its agent and a retry need."""
    rules = tuple(rule.text for rule in file.output_rules)
    request = {name: value for name, value in given(ask).items() if name not in ("script", "tasks")}
    return Spec(
        job=job, path=file.path, script=file.script, output_rules=rules, publish=publish, env=file.env,
        posts=file.post, toolchain=file.toolchain, skip_clone=file.skip_clone,
        request=request, caches=file.cache, tasks=tuple(ask.tasks),
    )  # fmt: skip


def check_fits(job: Job, spec: Spec) -> None:
    """Raises Refused 413 if the job's rows would be too big. Its own row grows with every attempt and needs room."""
    for row, most, what in ((job, limits.ROW_BYTES // 2, "tags and resources"), (spec, limits.ROW_BYTES, "script")):
        size = len(_json(row))
        if size > most:
            raise Refused(413, "job-too-big", f"the job's {what} take {size} bytes as JSON; there is room for {most}")


def _is_short(job: Job, spec: Spec) -> bool:
    """Whether the job's row has room for what it runs. Else a second row costs less than to write it each time."""
    both = _json(job) + _json(spec)
    most = SHORT_BYTES - len(job.place.sort.encode()) + len(job.id)
    return len(both) <= 4 * SHORT_BYTES and len(zlib.compress(both)) <= most


def _json(row: Job | Spec) -> bytes:
    return json.dumps(asdict(row), default=str, ensure_ascii=False).encode()


def job_file(ask: SubmitJob) -> JobFile:
    """The job file with the request's values over it."""
    if not ask.path.isprintable():
        fault = Fault("path holds a character that cannot be printed", where="path", hint="rename the file")
        raise Refused(400, "bad-request", fault.message, [fault])
    path = ask.path[: limits.NAME_CHARS]
    script = _script(ask)
    found = JobFile(path, "") if ask.tasks else parse(script, path)
    if isinstance(found, Problems):
        too_big = len(script.encode()) > limits.SCRIPT_BYTES
        code = (413, "script-too-big") if too_big else (400, "bad-job-file")
        raise Refused(*code, f"{path} is not a job file that can run", [_fault(item) for item in found.items])
    found = _without_dependencies(ask, _select_variant(ask, found))
    values = {name: getattr(ask, name) for name in CHECKED if getattr(ask, name) not in (None, [], {})}
    values |= _matrix_values(found) if ask.matrix else {}
    checked: dict[str, Any] = {name: check_key(name, value) for name, value in values.items()}
    if ask.dependencies:
        values["dependencies"] = None
        checked["dependencies"] = check_asked(_requested_dependencies(ask, found))
    if ask.tasks:
        checked["tasks"] = None, check_tasks(ask.tasks)
    if ask.inputs:
        folders = [*(ask.dependencies or {}), *(each.name for each in found.dependencies)]
        checked["inputs"] = None, check_inputs(ask.inputs, folders)
    faults = [
        Fault(fault.message, where=fault.where, hint=fault.hint) for _, wrong in checked.values() for fault in wrong
    ]
    if faults:
        raise Refused(400, "bad-request", "some values of the request cannot be", faults)
    _refuse_disabled(found)
    return _merge(found, {name: checked[name][0] for name in values})


def _script(ask: SubmitJob) -> str:
    """The job file; empty for a job with tasks. Raises Refused 400 for a request with both, or neither."""
    if (ask.script is None) != bool(ask.tasks):
        fault = Fault("a job has either `script`, which is its job file, or `tasks`", where="script")
        raise Refused(400, "bad-request", fault.message, [fault])
    return ask.script or ""


def _fault(problem: Problem) -> Fault:
    return Fault(problem.message, file=problem.file, line=problem.line, column=problem.column, hint=problem.hint)


def _without_dependencies(ask: SubmitJob, file: JobFile) -> JobFile:
    """The file without the dependencies to skip. Raises Refused 400 for one that the file does not have."""
    there = [each.name for each in file.dependencies]
    faults = [
        Fault(f"{file.path} has no dependency {name[:100]!r}", where="without", hint=f"it has: {', '.join(there)}")
        for name in ask.without or ()
        if name not in there
    ]
    if faults:
        raise Refused(400, "bad-request", "the job cannot go without what its file does not have", faults)
    left = tuple(each for each in file.dependencies if each.name not in (ask.without or ()))
    return replace(file, dependencies=left)


def _select_variant(ask: SubmitJob, file: JobFile) -> JobFile:
    """The requested one of a file's jobs. Raises Refused 400 or 422."""
    if file.matrix is None and ask.matrix is None:
        return file
    axes = list(file.matrix.axes) if file.matrix else []
    if file.matrix is None or (ask.matrix is not None and ask.matrix not in file.matrix.combinations):
        why = f"{file.path} has no such combination" if file.matrix else f"{file.path} has no matrix"
        raise Refused(400, "bad-request", why, [Fault(why, where="matrix", hint=f"a value for each of {axes}")])
    if ask.matrix is None:
        why = f"{file.path} stands for {len(file.matrix.combinations)} jobs, and none of them is named"
        hint = "`penstock job run FILE` submits all of them; over HTTP, `matrix` says which"
        raise Refused(422, "matrix-without-values", why, [Fault(why, file=file.path, line=1, column=1, hint=hint)])
    return variant(file, ask.matrix)


def _matrix_values(file: JobFile) -> dict[str, Any]:
    """The values that a matrix was filled into, to be checked again."""
    named = {"name": file.name, "target": file.target, **file.worker_options}
    return {key: value for key, value in named.items() if value}


def _requested_dependencies(ask: SubmitJob, file: JobFile) -> dict[str, Any]:
    """The dependencies that the request names jobs for. Request or file say how those must end."""
    declared = {each.name: {"on": each.on.value, "copy_outputs": each.copy_outputs} for each in file.dependencies}
    return {
        name: {**declared.get(name.partition("/")[0], {}), **given} if isinstance(given, dict) else given
        for name, given in (ask.dependencies or {}).items()
    }


def _refuse_disabled(file: JobFile) -> None:
    if not file.enable:
        raise Refused(
            422,
            "job-disabled",
            f"{file.path} says enable = false",
            [Fault("the job is disabled", file=file.path)],
        )


def _merge(file: JobFile, values: Mapping[str, Any]) -> JobFile:
    merged = dict(values)
    merged["tags"] = {**file.tags, **values.get("tags", {})}
    merged["env"] = {**file.env, **values.get("env", {})}
    if "dependencies" in values:
        given = {each.name.partition("/")[0] for each in values["dependencies"]}
        others = (each for each in file.dependencies if each.name not in given)
        merged["dependencies"] = (*values["dependencies"], *others)
    merged["output_rules"] = (*file.output_rules, *values.get("output_rules", ()))
    merged.setdefault("name", file.name or PurePosixPath(file.path).stem or "job")
    for key in ("tags", "env", "output_rules"):
        most = {"tags": limits.TAGS, "env": limits.ENV_ENTRIES, "output_rules": limits.OUTPUT_RULES}[key]
        if len(merged[key]) > most:
            raise Refused(400, "bad-request", f"there are more than {most} {key}")
    return replace(file, **merged)


def refuse_unresolved(ask: SubmitJob, file: JobFile) -> None:
    """Raises Refused 422 for dependencies on jobs of other files, unless the request names their jobs."""
    faults = []
    for each in file.dependencies:
        if each.name not in (ask.dependencies or {}):  # else it stands there, or all that it stands for
            line, column = each.spot or (1, 1)
            why = f"the dependency {each.name!r} is the job of another file, {each.job!r}, of which no job is named"
            hint = f"submit the folder: penstock job run DIR; or name its job: -d {each.name}=JOB"
            faults.append(Fault(why, file=file.path, line=line, column=column, hint=hint))
    if faults:
        raise Refused(422, "dependency-without-job", f"{file.path} depends on the jobs of other files", faults)


def refuse_without_repository(file: JobFile, check: str) -> None:
    """Raises Refused 422 if the file needs a repository and the job comes from none."""
    if file.access_repos and not check:
        why = "a job that is submitted by hand has no repository, whose token could read others"
        hint = "push it, and the front end for GitHub runs it; or take `access_repos` out"
        raise Refused(422, "no-repository", why, [Fault("`access_repos` names some", file=file.path, hint=hint)])
    if file.toolchain == TOOLCHAIN_FILE and not check:
        hint = 'name the channel: rust_toolchain = "stable"'
        why = "no repository comes with a job that is submitted by hand, and so nothing that names a toolchain"
        raise Refused(422, "no-repository", why, [Fault("`rust_toolchain` is true", file=file.path, hint=hint)])
