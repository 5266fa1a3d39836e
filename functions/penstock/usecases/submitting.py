"""From a request to an accepted job: every check that can be made before anything waits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from penstock.domain import limits, looks, metrics
from penstock.domain.errors import Fault, Refused, Unreached
from penstock.domain.jobfile import JobFile, Problem, Problems, check_key, parse
from penstock.domain.jobs import START_WITHIN, Job, State, Times
from penstock.domain.leases import WORKER, Need
from penstock.domain.rows import Change, Create
from penstock.domain.site import Site, Target
from penstock.domain.specs import Keep, Proves, Spec, spec_key
from penstock.domain.steps import numbers
from penstock.domain.submissions import Submission
from penstock.domain.users import User, digest
from penstock.system import System
from penstock.usecases import acquiring, keeps, logs, race, sites
from penstock.wire import SubmitJob

CHECKED = (
    "name",
    "target",
    "resources",
    "output_rules",
    "tags",
    "env",
    "priority",
    "timeout",
    "retries",
    "hold_on_failure",
)
"""The values of a request that are checked as if they stood in the file."""


@dataclass(frozen=True)
class Made:
    """A request that could be accepted: the rows that it would become, and what they were made from."""

    job: Job
    spec: Spec
    file: JobFile
    site: Site


def make(on: System, user: User, ask: SubmitJob) -> Made:
    """What a request would become. Raises Refused for one that cannot be accepted. Nothing is written."""
    file, site = _file(ask), sites.current(on)
    target = looks.could_any(site, file)
    if isinstance(target, Refused):
        raise target
    needs = (*_resources(site, file), _worker(site, file, target))
    refused = looks.could_this(site, user, file, needs, on.drivers.objections)
    if refused:
        raise refused
    if file.hold_on_failure:
        keeps.check(site, user, file.hold_on_failure)
    job, spec = _rows(on, user, ask, file, target, needs, site)
    _check_fits(job, spec)
    return Made(job, spec, file, site)


def submit(
    on: System, user: User, ask: SubmitJob, key: str | None, proves: Proves | None = None, *, canary: str = ""
) -> str:
    """Accept a job and return its id; the same key and the same request return the same job. Raises Refused.

    `canary` is the pool that it is a canary of.
    """
    made = make(on, user, ask)
    job, spec = replace(made.job, proves=proves, canary=canary), made.spec
    memory = _memory(user, ask, key, job)

    def decide() -> tuple[Sequence[Change], str]:
        known = on.store.get(memory.key, Submission) if memory else None
        if known and memory:
            return [], _repeated(known, memory)
        return [Create(job), Create(spec), *([Create(memory)] if memory else [])], job.id

    accepted = race.run(on, decide)
    if accepted == job.id:
        on.metrics.add(metrics.JOBS_SUBMITTED, target=job.target_resolved)
        logs.say(on, job.id, 1, _welcome(job))
        with suppress(Unreached):  # the job is accepted, and its row is due: the sweep will start it
            on.flows.start(job.id, 1, acquiring.steps(job.needs))
    return accepted


def _welcome(job: Job) -> str:
    wanted = ", ".join(need.type for need in job.needs if need.order != WORKER)
    aliased = f" (asked for as {job.target})" if job.target != job.target_resolved else ""
    return (
        f"job {job.id} accepted: {f'first {wanted}, then ' if wanted else ''}a worker of {job.target_resolved}{aliased}"
    )


def _file(ask: SubmitJob) -> JobFile:
    """The job file with the request's own values over it."""
    if not ask.path.isprintable():
        fault = Fault("path holds a character that cannot be printed", where="path", hint="rename the file")
        raise Refused(400, "bad-request", fault.message, [fault])
    path = ask.path[: limits.NAME_CHARS]
    file = parse(ask.script, path)
    if isinstance(file, Problems):
        too_big = len(ask.script.encode()) > limits.SCRIPT_BYTES
        code = (413, "script-too-big") if too_big else (400, "bad-job-file")
        raise Refused(*code, f"{path} is not a job file that can run", [_fault(item) for item in file.items])
    values = {name: getattr(ask, name) for name in CHECKED if getattr(ask, name) not in (None, [], {})}
    checked = {name: check_key(name, value) for name, value in values.items()}
    faults = [
        Fault(fault.message, where=fault.where, hint=fault.hint) for _, found in checked.values() for fault in found
    ]
    if faults:
        raise Refused(400, "bad-request", "some values of the request cannot be", faults)
    _refuse_not_yet(ask, file)
    return _merge(file, {name: value for name, (value, _) in checked.items()})


def _fault(problem: Problem) -> Fault:
    return Fault(problem.message, file=problem.file, line=problem.line, column=problem.column, hint=problem.hint)


def _refuse_not_yet(ask: SubmitJob, file: JobFile) -> None:
    faults = [_fault(problem) for problem in file.not_yet]
    for name in ("inputs", "dependencies"):
        if getattr(ask, name):
            faults.append(Fault(f"{name} are not available yet", where=name, hint="leave them out for now"))
    if faults:
        raise Refused(422, "not-available-yet", "the job needs what is not built yet", faults)
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
    merged["output_rules"] = (*file.output_rules, *values.get("output_rules", ()))
    merged.setdefault("name", file.name or PurePosixPath(file.path).stem or "job")
    for key in ("tags", "env", "output_rules"):
        most = {"tags": limits.TAGS, "env": limits.ENV_ENTRIES, "output_rules": limits.OUTPUT_RULES}[key]
        if len(merged[key]) > most:
            raise Refused(400, "bad-request", f"there are more than {most} {key}")
    return replace(file, **merged)


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


def _rows(
    on: System, user: User, ask: SubmitJob, file: JobFile, target: Target, needs: tuple[Need, ...], site: Site
) -> tuple[Job, Spec]:
    now = on.world.now()
    job = Job(
        id=on.world.ulid(),
        name=file.name or "job",
        owner=user.name,
        target=file.target,
        target_resolved=target.name,
        state=State.QUEUED,
        needs=needs,
        times=Times(submitted=now, ready=now),
        timeout=min(file.timeout or site.limits.timeout, site.limits.timeout_most),
        queue_seconds=site.limits.queue,
        grace=site.limits.grace,
        idle_hold=site.limits.idle_hold,
        priority=file.priority,
        retries=file.retries if file.retries is not None else site.limits.retries,
        retry_failed=file.retry_failed,
        keep=Keep(user.name, keeps.FAILED, file.hold_on_failure) if file.hold_on_failure else None,
        tags=file.tags,
        due=now + START_WITHIN,
    )
    rules = tuple(rule.text for rule in file.output_rules)
    request = {key: value for key, value in asdict(ask).items() if key != "script" and value not in (None, [], {})}
    return job, Spec(job=job.id, path=file.path, script=file.script, output_rules=rules, env=file.env, request=request)


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
    """Submit a job's request once more, as a new job."""
    spec = on.store.get(spec_key(job.id), Spec)
    if spec is None:
        raise Refused(410, "spec-gone", f"the script of job {job.id} is no longer kept")
    return submit(on, user, SubmitJob(script=spec.script, **dict(spec.request)), None)
