"""From a request to an accepted job: every check that can be made before anything waits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from penstock.domain import caches, identity, limits, looks, metrics, origins, published
from penstock.domain.commands import SubmitJob
from penstock.domain.dependencies import Dependency
from penstock.domain.errors import Fault, Refused, Unreached
from penstock.domain.jobfile import JobFile
from penstock.domain.jobs import START_WITHIN, Job, State, Times, job_key
from penstock.domain.leases import WORKER, Need
from penstock.domain.logs import CONTROL, DETAIL
from penstock.domain.rows import Change, Create
from penstock.domain.site import Site, Target
from penstock.domain.specs import Keep, Proves, Spec, spec_key
from penstock.domain.steps import numbers
from penstock.domain.submissions import Submission
from penstock.domain.users import User, digest, is_repository
from penstock.system import System
from penstock.usecases import acquiring, inputs, judging, keeps, logs, race, requests, retaining, sites, users


@dataclass(frozen=True)
class Made:
    """A request that could be accepted: the rows that it would become, and what they were made from.

    `priors` are the jobs that it depends on, by id.
    """

    job: Job
    spec: Spec
    file: JobFile
    site: Site
    priors: dict[str, Job]


def make(on: System, user: User, ask: SubmitJob, *, planned: bool = False, check: str = "") -> Made:
    """What a request would become. Raises Refused for one that cannot be accepted. Nothing is written.

    One that is only `planned` may depend on other files' jobs, which are not there yet.
    """
    user, file, site = users.acting(on, user, ask.owner), requests.file(ask), sites.current(on)
    requests.refuse_homeless(file, check)
    if not planned:
        requests.refuse_unnamed(ask, file)
    target = looks.could_any(site, file)
    if isinstance(target, Refused):
        raise target
    needs = (*_resources(site, file), _worker(site, file, target))
    refused = looks.could_this(site, user, file, needs, on.drivers.objections)
    if refused:
        raise refused
    if file.hold_on_failure:
        keeps.check(site, user, file.hold_on_failure)
    priors = judging.priors(on, user, [each for each in _waits_for(file) if each.name in (ask.dependencies or {})])
    job, spec = _rows(on, user, ask, file, target, needs, site)
    _check_fits(job, spec)
    return Made(job, spec, file, site, priors)


def submit(
    on: System,
    user: User,
    ask: SubmitJob,
    key: str | None,
    proves: Proves | None = None,
    *,
    canary: str = "",
    before: Job | None = None,
    check: str = "",
) -> str:
    """Accept a job and return its id; the same key and the same request return the same job. Raises Refused.

    `canary` is the pool that it is a canary of, `check` the check of a commit that shows it; `before`, the job that is
    submitted once more.
    """
    made = make(on, user, ask, check=check)
    vouched = identity.vouched(user, (ask.tags or {}) if before is None else before.vouched)
    job, spec = replace(made.job, proves=proves, canary=canary, vouched=vouched, check=check), made.spec
    memory = _memory(user, ask, key, job)

    def decide() -> tuple[Sequence[Change], str]:
        known = on.store.get(memory.key, Submission) if memory else None
        if known and memory:
            return [], _repeated(known, memory)
        begun = [Create(job), Create(spec), retaining.begin(job), *judging.rows(job, made.priors)]
        return [*begun, *([Create(memory)] if memory else [])], job.id

    accepted = race.run(on, decide)
    if accepted == job.id:
        on.metrics.add(metrics.JOBS_SUBMITTED, target=job.target_resolved)
        waits = made.priors or job.inputs
        logs.say(on, job.id, 1, _welcome(job, made.priors, by=user.name), CONTROL if waits else DETAIL)
        _begin(on, job)
    return accepted


def _begin(on: System, job: Job) -> None:
    """Start the job's flow; of one that waits for others, look first whether they have settled meanwhile."""
    if job.state is State.WAITING:
        judging.begin(on, job)
        return
    with suppress(Unreached):  # the job is accepted, and its row is due: the sweep will start it
        on.flows.start(job.id, 1, acquiring.steps(job.needs))


def _welcome(job: Job, priors: Mapping[str, Job], by: str) -> str:
    wanted = ", ".join(need.type for need in job.needs if need.order != WORKER)
    aliased = f" (asked for as {job.target})" if job.target != job.target_resolved else ""
    named = [
        *(f"job {prior.id} ({prior.name})" for prior in priors.values()),
        *(f"input {name}" for name in job.inputs),
    ]
    waits = ", ".join(named)
    whose = f" for {job.owner}, from {by}" if by != job.owner else ""
    return (
        f"job {job.id} accepted{whose}: {f'it waits for {waits}; then ' if waits else ''}"
        f"{f'first {wanted}, then ' if wanted else ''}a worker of {job.target_resolved}{aliased}"
    )


def _resources(site: Site, file: JobFile) -> Iterator[Need]:
    """The resources in lexicographic order of their type, which is the order of their acquisition. [QUEUE-3]"""
    asked = sorted(file.resources, key=lambda ask: (ask.type, ask.name))
    steps = numbers(site, {ask.type for ask in asked})
    for order, ask in enumerate(asked, 1):
        kind = site.resources[ask.type]
        uses = site.takes(kind.uses)
        yield Need(
            order, steps[ask.type], ask.name, ask.type, kind.pool, kind.well, dict(ask.options), uses,
            (kind.privilege,) if kind.privilege else (),
        )  # fmt: skip


def _worker(site: Site, file: JobFile, target: Target) -> Need:
    """The worker, which an alias may ask a privilege of its own for."""
    uses = site.takes(target.uses)
    asked = {site.targets[file.target].privilege, target.privilege} - {None}
    return Need(
        WORKER, WORKER, "worker", target.name, target.pool, target.factory or "", uses=uses,
        privileges=tuple(sorted(filter(None, asked))),
    )  # fmt: skip


def _waits_for(file: JobFile) -> tuple[Dependency, ...]:
    return tuple(Dependency(each.name, each.job, each.on, each.copy_outputs) for each in file.dependencies)


def _rows(
    on: System, user: User, ask: SubmitJob, file: JobFile, target: Target, needs: tuple[Need, ...], site: Site
) -> tuple[Job, Spec]:
    now = on.world.now()
    waits_for = _waits_for(file)
    id = on.world.ulid()
    publish = published.resolve(file.publish, file.env, id)
    if isinstance(publish, Refused):
        raise publish
    job = Job(
        id=id,
        name=file.name or "job",
        owner=user.name,
        target=file.target,
        target_resolved=target.name,
        state=State.WAITING if waits_for or ask.inputs else State.QUEUED,
        needs=needs,
        times=Times(submitted=now, ready=None if waits_for or ask.inputs else now),
        dependencies=waits_for,
        inputs=tuple(ask.inputs or ()),
        timeout=min(file.timeout or site.limits.timeout, site.limits.timeout_most),
        queue_seconds=site.limits.queue,
        grace=site.limits.grace,
        idle_hold=site.limits.idle_hold,
        priority=file.priority,
        retries=file.retries if file.retries is not None else site.limits.retries,
        retry_failed=file.retry_failed,
        keep=Keep(user.name, keeps.FAILED, file.hold_on_failure) if file.hold_on_failure else None,
        tags=file.tags,
        publishes=bool(publish),
        cache_scope=_scope(user, ask),
        due=now + START_WITHIN,
    )
    rules = tuple(rule.text for rule in file.output_rules)
    request = {key: value for key, value in asdict(ask).items() if key != "script" and value not in (None, [], {})}
    spec = Spec(
        job=job.id, path=file.path, script=file.script, output_rules=rules, publish=publish, env=file.env,
        posts=file.post, toolchain=origins.toolchain(file), skip_clone=file.skip_clone,
        request=request, caches=file.cache,
    )  # fmt: skip
    return job, spec


def _scope(user: User, ask: SubmitJob) -> str:
    """Whose caches a job adds to: what its request says, and nothing that stands in its file. [SEC-2]"""
    if ask.cache_scope is not None and not caches.is_scope(ask.cache_scope):
        why = f"a scope is 1 to {limits.CACHE_SCOPE_CHARS} printable ASCII characters without spaces or #"
        raise Refused(400, "bad-request", why, [Fault(why, where="cache_scope")])
    return caches.scope_of(user.name, ask.cache_scope)


def _check_fits(job: Job, spec: Spec) -> None:
    """Raises Refused 413 for a job whose rows would not fit; its own row grows with every attempt and needs room."""
    for row, most, what in ((job, limits.ROW_BYTES // 2, "tags and resources"), (spec, limits.ROW_BYTES, "script")):
        size = len(json.dumps(asdict(row), default=str, ensure_ascii=False).encode())
        if size > most:
            raise Refused(413, "job-too-big", f"the job's {what} take {size} bytes as JSON; there is room for {most}")


def _memory(user: User, ask: SubmitJob, key: str | None, job: Job) -> Submission | None:
    if key is None:
        return None
    asked = hashlib.sha256(json.dumps(asdict(ask), sort_keys=True).encode()).hexdigest()
    return Submission(
        owner=user.name, key_digest=digest(key), request_digest=asked, job=job.id, time=job.times.submitted
    )


def _repeated(known: Submission, now: Submission) -> str:
    if known.request_digest != now.request_digest:
        raise Refused(409, "idempotency-key-reused", "this Idempotency-Key was used for another request")
    return known.job


def retry(on: System, user: User, job: Job) -> str:
    """Submit a job's request once more, as a new job: of whoever asks, and of a repository where it was that before."""
    spec = on.store.get(spec_key(job.id), Spec)
    if spec is None:
        raise Refused(410, "spec-gone", f"the script of job {job.id} is no longer kept")
    if origins.is_cloned(job, spec):
        raise Refused(409, "run-by-its-forge", f"job {job.id} is of a commit: press Re-run at its check on GitHub")
    request = {**spec.request, "owner": job.owner if is_repository(job.owner) else None}
    again = submit(on, user, SubmitJob(script=spec.script, **request), None, before=job)
    fresh = on.store.get(job_key(again), Job) if job.inputs else None
    if fresh:
        inputs.adopt(on, fresh, job)
    return again
