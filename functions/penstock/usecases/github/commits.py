"""The jobs of a commit: what to run, submitting each once, cancelling them for a newer commit, and running them again.

Policy comes from the default branch, job files from the commit. The front end's function calls `advance` for each
message that names a commit's set of checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from penstock.domain.commands import SubmitJob
from penstock.domain.github import checks, commits, policy
from penstock.domain.github.checks import (
    CONTROL,
    CONTROL_NAME,
    MAX_CHECKS,
    Annotation,
    CheckRun,
    annotation,
    check_key,
    escape,
)
from penstock.domain.github.commits import CheckSet, Stage, set_key
from penstock.domain.github.policy import JOBS, Policy
from penstock.domain.jobfile import JobFile, Problem, Problems, name_in, parse, sets
from penstock.domain.jobfile.sets import Member, Unfit
from penstock.domain.jobs.jobs import Job, Provenance, job_key
from penstock.domain.jobs.submissions import Submission, submission_key
from penstock.domain.users import users as user_rules
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Create, Replace
from penstock.kernel.rows import Check as Still
from penstock.system import System, transact
from penstock.usecases.github import client, repositories
from penstock.usecases.github.client import Repository
from penstock.usecases.github.repositories import People, Unreadable, requested_repositories
from penstock.usecases.jobs import cancel as jobs_cancel
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.logs import logs
from penstock.usecases.users import users

FILES_MOST = 32
"""How many job files a commit may have. Source: buildomat."""

JOB_FILE_SUFFIX = ".sh"

RECHECK_AFTER = timedelta(minutes=5)

OVER_LIMIT = 429
"""The status of a refusal that the same request may not meet again later."""
"""When a superseded set is checked again: a process that was submitting its jobs has recorded them, or died, by then.
"""


@dataclass(frozen=True)
class PlanError:
    """Why nothing of a commit can be run, and where that stands."""

    told: str
    annotations: Sequence[Annotation] = ()


@dataclass(frozen=True)
class Jobs:
    """The jobs of a commit in the order of their submits, and its files that cannot be run."""

    members: tuple[Member, ...]
    unfit: tuple[Unfit, ...]


def advance(on: System, repository_id: int, sha: str) -> None:
    """Take the next step of a commit's set. Safe to repeat."""
    found = on.store.get(set_key(repository_id, sha), CheckSet)
    if found is None or found.due is None:
        return
    of = Repository(found.installation, found.repository_id, found.repository)
    rules = _policy(on, of)
    moved = commits.to_trusted_line(found, rules) if isinstance(rules, Policy) else found
    if isinstance(rules, Policy) and commits.is_obsolete(found, rules):
        supersede(on, found)
    elif moved != found:
        _run_trusted(on, found, moved)
    elif found.stage is Stage.PLANNED:
        _plan(on, of, found, rules)
    else:
        _save(on, found, commits.move_to(found, found.stage, found.why))


def _policy(on: System, of: Repository) -> Policy | PlanError:
    """What the default branch says; never what the commit does. [SEC-2]"""
    raw = client.read_file(on, of, policy.PATH)
    if raw is None:
        return Policy()
    found = policy.parse(raw.decode("utf-8", "replace"))
    if isinstance(found, Policy):
        return found
    return PlanError(f"{policy.PATH} of the default branch cannot be read", [annotation(each) for each in found])


def _plan(on: System, of: Repository, found: CheckSet, rules: Policy | PlanError) -> None:
    if isinstance(rules, PlanError):
        _fail(on, found, rules)
    elif not rules.enable:
        _save(on, found, commits.move_to(found, Stage.SETTLED, "not enabled in the default branch"))
    elif not (trusted := _trusted(on, of, found, rules)) and not found.approved_by:
        _await_approval(on, found, _approval_text(found))
    else:
        plan = _jobs(on, of, found)
        if isinstance(plan, PlanError):
            _fail(on, found, plan)
        elif not (plan.members or plan.unfit):
            _save(on, found, commits.move_to(found, Stage.SETTLED, f"there is no job in {JOBS}"))
        else:
            insiders = any(_are_insiders(on, of, people, rules) for people in trusted)
            outsider = not (insiders and rules.trusts(found.line))
            _submit(on, of, found, plan, trusted, outsider=outsider)


def _run_trusted(on: System, found: CheckSet, moved: CheckSet) -> None:
    """Run a commit's jobs as those of a line that the repository trusts; those that ran before were not trusted."""
    if on.store.commit([Replace(found, moved)]):
        run_again(on, moved)


def _fail(on: System, found: CheckSet, wrong: PlanError) -> None:
    _halt(on, found, commits.move_to(found, Stage.SETTLED, wrong.told), wrong)


def _halt(on: System, found: CheckSet, to: CheckSet, wrong: PlanError) -> None:
    """Write the set's new stage and its check in one commit: a check may be shown at once, and has its button only
    while its set awaits approval. If another process was faster, the set is due.
    """

    def decide() -> tuple[Sequence[Change], CheckRun | None]:
        if on.store.get(found.key, CheckSet) != found:
            return [], None
        changes, check = _control_changes(on, found, wrong)
        return [*changes, Replace(found, to)], check

    check = transact(on, decide)
    if check:
        on.forge.enqueue({"check": check.id})


def _control_changes(on: System, found: CheckSet, wrong: PlanError | None) -> tuple[Sequence[Change], CheckRun | None]:
    was = on.store.get(check_key(found.repository_id, found.sha, CONTROL), CheckRun)
    if was is None and wrong is None:
        return [], None
    check = was or checks.new_check(found, CONTROL, CONTROL_NAME, (), on.world.now())
    text, notes = (wrong.told, wrong.annotations) if wrong else ("", ())
    now = checks.refused(check, text, on.world.now(), notes)
    return [Replace(was, now) if was else Create(now)], now


def _save(on: System, found: CheckSet, to: CheckSet) -> None:
    """Write the set's new stage. If another process was faster, the set is due."""
    on.store.commit([Replace(found, to)])


def _trusted(on: System, of: Repository, found: CheckSet, rules: Policy) -> list[People]:
    """The groups of people who brought the commit at one time, and all of whom may have jobs run. [SEC-2]"""

    return [
        people for people in found.people if all(rules.lets(login) or _is_insider(on, of, login) for login in people)
    ]


def _is_insider(on: System, of: Repository, login: str) -> bool:
    return client.is_member(on, of, login) or client.may_write(on, of, login)


def _are_insiders(on: System, of: Repository, trusted: People, rules: Policy) -> bool:
    """Whether trusted people belong here, all of them. Who is only let run unasked does not: what they get, reads.
    Of the others it was asked already. [SEC-2]
    """
    return all(_is_insider(on, of, login) for login in trusted if rules.lets(login))


def _await_approval(on: System, found: CheckSet, told: str) -> None:
    """Show the commit with an approval button; nothing of it is run before."""
    _halt(on, found, commits.move_to(found, Stage.AWAITING, told, outsider=True), PlanError(told))


def _approval_text(found: CheckSet) -> str:
    who = ", ".join(sorted({login for people in found.people for login in people}))
    return (
        f"{who} may not have jobs run here without asking. Somebody with the right to write looks at the commit "
        f"{found.sha} and approves it: that one, and no other."
    )


def _jobs(on: System, of: Repository, found: CheckSet) -> Jobs | PlanError:
    """The jobs of a commit in the order of their submits, and its files that are wrong; or why nothing can be run."""
    names = [(name, kind) for name, kind in client.list_folder(on, of, JOBS, found.sha) if kind != "dir"]
    files = [name for name, kind in names if kind == "file" and name.endswith(JOB_FILE_SUFFIX)]
    if len(files) > FILES_MOST:
        return PlanError(f"there are {len(files)} job files in {JOBS}; there may be {FILES_MOST}")
    owner = repositories.bind_owner(on, found.owner, found.repository_id)
    if isinstance(owner, str):
        return PlanError(owner)
    read = [_file(on, of, found, f"{JOBS}/{name}") for name in files]
    strange = [_strange(f"{JOBS}/{name}") for name, _ in names if name not in files]
    good = [file for file in read if isinstance(file, JobFile)]
    members, unfit = sets.arrange_fit(good, [*strange, *(file for file in read if isinstance(file, Unfit))])
    if len(members) + len(unfit) > MAX_CHECKS:
        return PlanError(f"these are {len(members) + len(unfit)} jobs; a commit may have {MAX_CHECKS}")
    return Jobs(members, unfit)


def _strange(path: str) -> Unfit:
    why = f"only job files, which end in {JOB_FILE_SUFFIX}, may be here"
    return Unfit(path, path, (Problem(path, 1, 1, why),))


def _file(on: System, of: Repository, found: CheckSet, path: str) -> JobFile | Unfit:
    raw = client.read_file(on, of, path, found.sha)
    if raw is None or len(raw) > limits.SCRIPT_BYTES:
        why = f"the file cannot be had, or has more than {limits.SCRIPT_BYTES} bytes"
        return Unfit(name_in((raw or b"")[: limits.SCRIPT_BYTES], path), path, (Problem(path, 1, 1, why),))
    file = parse(raw, path)
    return Unfit(name_in(raw, path), path, file.items) if isinstance(file, Problems) else file


def _submit(
    on: System, of: Repository, found: CheckSet, plan: Jobs, trusted: Sequence[People], *, outsider: bool
) -> None:
    """Submit the commit's jobs, if they may read the repositories that they request."""
    others = repositories.readable_ids(on, of, found, plan.members, trusted)
    if isinstance(others, Unreadable):
        if others.awaits:
            _await_approval(on, found, others.told)
        else:
            _fail(on, found, PlanError(others.told))
    else:
        _clear_control_check(on, found)
        submit(on, found, plan.members, others, unfit=plan.unfit, outsider=outsider)


def _clear_control_check(on: System, found: CheckSet) -> None:
    """The check of the whole commit, if there is one, passes again."""
    check = transact(on, partial(_control_changes, on, found, None))
    if check:
        on.forge.enqueue({"check": check.id})


def submit(
    on: System,
    found: CheckSet,
    members: Sequence[Member],
    others: Mapping[str, int],
    *,
    unfit: Sequence[Unfit] = (),
    outsider: bool,
) -> None:
    """Submit a commit's jobs, dependencies first, and fail the checks of `unfit` files. A call after a crash continues.

    `others` are the ids of the other repositories that they may read, by name. The check's row comes first, and the
    idempotency key is that of commit, name and run, so that no job is submitted twice. [JOB-1]
    """
    came = replace(found, outsider=outsider)
    user = users.find(on, found.owner)
    known = {check.name: check for check in checks_of(on, found) if check.number != CONTROL}
    ids: dict[str, str] = {}
    if not _fail_unfit(on, found, unfit, known):
        return  # the set has changed, and is due
    for member in members:
        check = _known_check(on, found, member.name, [each.job for each in member.dependencies], known)
        if check is None:
            return  # as above
        if check.waits or not (check.job or check.told):
            reads = [others[name] for name in others if name in requested_repositories(member.file, found.repository)]
            now = replace(_submit_check(on, user, came, member, check, ids), reads=tuple(reads))
            check = _record_submit(on, check, now)
        if check.waits:
            return  # the set is still due, and the next step goes on here
        ids |= {member.name: check.job} if check.job else {}
    on.store.commit([Replace(found, commits.move_to(found, Stage.SUBMITTED, outsider=outsider))])
    fresh = on.store.get(found.key, CheckSet)
    if fresh and fresh.stage is Stage.SUPERSEDED:  # both write first and read after, so one sees the other
        _cancel_all(on, fresh)


def _known_check(
    on: System, found: CheckSet, name: str, needs: Sequence[str], known: dict[str, CheckRun]
) -> CheckRun | None:
    """The check of a name. A new one is created, and then `known`, if the set has not changed."""
    if name in known:
        return known[name]
    number = 1 + max((check.number for check in known.values()), default=CONTROL)
    check = checks.new_check(found, number, name, needs, on.world.now())
    made = on.store.commit([Create(check), Still(found)])
    fresh = on.store.get(check.key, CheckRun) if made else None
    if fresh:
        known[name] = fresh
    return fresh


def _fail_unfit(on: System, found: CheckSet, unfit: Sequence[Unfit], known: dict[str, CheckRun]) -> bool:
    """Fail the check of each file that cannot be run. Returns false if the set has changed."""
    for file in unfit:
        check = _known_check(on, found, file.name, (), known)
        if check is None:
            return False
        if not check.told:
            notes = [annotation(each) for each in file.problems[: checks.MAX_ANNOTATIONS]]
            why = escape(f"{file.path} cannot be run")
            _record_submit(on, check, checks.refused(check, why, on.world.now(), notes))
    return True


def _record_submit(on: System, was: CheckRun, now: CheckRun) -> CheckRun:
    """Record what became of a check, whatever was recorded meanwhile of what GitHub shows."""

    def decide() -> tuple[Sequence[Change], CheckRun]:
        fresh = on.store.get(was.key, CheckRun) or was
        after = replace(
            fresh, job=now.job, told=now.told, waits=now.waits, annotations=now.annotations, reads=now.reads,
            due=now.due,
        )  # fmt: skip
        return ([Replace(fresh, after)] if fresh.run == was.run else []), after

    noted = transact(on, decide)
    on.forge.enqueue({"check": noted.id})
    return noted


def _submit_check(
    on: System, user: User, found: CheckSet, member: Member, check: CheckRun, ids: Mapping[str, str]
) -> CheckRun:
    """A check with its job, or with why there is none."""
    lacking = next((each.job for each in member.dependencies if each.job not in ids), None)
    if lacking is not None:
        why = escape(f"it waits for the job {lacking!r}, and none was accepted")
        return checks.refused(check, why, on.world.now())
    try:
        ask, commit = job_request(found, member, ids), commits.provenance(found, check.id)
        job = _accept(on, user, ask, check, commit)
    except Refused as refused:
        if refused.status == OVER_LIMIT and found.tries < commits.MAX_TRIES:
            return checks.postponed(check, refused.detail, on.world.now())
        notes = [checks.annotation(fault, member.file.path) for fault in refused.faults[: checks.MAX_ANNOTATIONS]]
        return checks.refused(check, escape(refused.detail), on.world.now(), notes)
    return checks.submitted(check, job, on.world.now())


def _accept(on: System, user: User, ask: SubmitJob, check: CheckRun, commit: Provenance) -> str:
    """Submit a check's job, once, and return its id. Raises Refused.

    Who has a token of the repository may have used its key for a job of theirs. That is not the check's. [SEC-2]
    """
    key = checks.submit_key(check)
    try:
        job = jobs_submit.submit(on, user, ask, key, commit=commit)
    except Refused:  # for whatever reason: the other key does not help against another one
        if not _is_anothers(on, check, key):
            raise
    else:
        if not _is_anothers(on, check, key):
            return job
    return jobs_submit.submit(on, user, ask, checks.own_key(check), commit=commit)


def _is_anothers(on: System, check: CheckRun, key: str) -> bool:
    """Whether the job that was accepted with a key was submitted by somebody else than this front end."""
    job = _job_with_key(on, check, key)
    return job is not None and job.provenance.check != check.id


def _job_with_key(on: System, check: CheckRun, key: str) -> Job | None:
    """The job that was accepted with a key, by this front end or with a token of the repository."""
    owner = check.repository.replace("/", ":")
    known = on.store.get(submission_key(owner, user_rules.digest(key)), Submission)
    return on.store.get(job_key(known.job), Job) if known else None


def _cancel_all(on: System, found: CheckSet) -> None:
    for check in checks_of(on, found):
        cancel(on, check, "a newer commit")
        if check.waits:
            _record_submit(on, check, replace(check, due=on.world.now()))  # so that it shows that there will be none


def supersede(on: System, found: CheckSet) -> None:
    """Cancel the rest of a commit's jobs. Checked once more later, for jobs that were being submitted meanwhile."""
    again = found.stage is not Stage.SUPERSEDED
    after = commits.move_to(found, Stage.SUPERSEDED, "a newer commit has come")
    due = on.world.now() + RECHECK_AFTER if again else None
    if on.store.commit([Replace(found, replace(after, due=due))]):
        _cancel_all(on, found)


def cancel(on: System, check: CheckRun, by: str) -> str:
    """Cancel a check's job; what depends on it settles with it. Also a job whose submit was not recorded yet."""
    owner = check.repository.replace("/", ":")
    job = job_of(on, check)
    if job is None or job.is_settled or job.cancellation.cancelled_by:
        return "ignored: there is nothing to cancel"
    logs.append(on, job.id, job.attempt, f"to be cancelled at GitHub: by {by}")
    with suppress(Refused):  # it has settled meanwhile
        jobs_cancel.cancel(on, users.find(on, owner), job.id)
    return f"cancelled by {by}"


def run_again(on: System, found: CheckSet, first: CheckRun | None = None) -> str:
    """Run a check's job again, and all that depend on it; without a check, all jobs of the commit.

    The requested check comes last, in one commit with the set: until then the same request may be repeated.
    """
    rows = checks_of(on, found)
    wanted = [check for check in (checks.with_dependents(rows, first) if first else rows) if check.number != CONTROL]
    last: list[CheckRun] = []
    for check in wanted:
        if check.job or check.told or job_of(on, check):
            cancel(on, check, "a re-run")
            if first and check.number == first.number:
                last.append(check)
            else:
                transact(on, partial(_rerun_changes, on, check))
    transact(on, partial(_plan_again, on, found, last))
    on.forge.enqueue({"set": [found.repository_id, found.sha]})
    return f"{len(wanted)} to be run again"


def _rerun_changes(on: System, was: CheckRun) -> tuple[Sequence[Change], None]:
    fresh = on.store.get(was.key, CheckRun)
    is_same = fresh is not None and fresh.run == was.run
    return [Replace(fresh, checks.rerun(fresh, on.world.now()))] if fresh and is_same else [], None


def _plan_again(on: System, found: CheckSet, last: Sequence[CheckRun]) -> tuple[Sequence[Change], None]:
    was = on.store.get(found.key, CheckSet)
    now = commits.plan_again(was, on.world.now()) if was else was
    again = [change for check in last for change in _rerun_changes(on, check)[0]]
    return [*again, *([Replace(was, now)] if was and now and now != was else [])], None


def checks_of(on: System, found: CheckSet) -> list[CheckRun]:
    """A commit's checks, in the order of their numbers."""
    return on.store.find(found.key.pk, "check#", CheckRun)


def job_of(on: System, check: CheckRun) -> Job | None:
    """The job of a check; also one that was accepted and not recorded."""
    if check.job:
        return on.store.get(job_key(check.job), Job)
    keys = () if check.number == CONTROL else (checks.submit_key(check), checks.own_key(check))
    found = (_job_with_key(on, check, key) for key in keys)
    return next((job for job in found if job and job.provenance.check == check.id), None)


def job_request(found: CheckSet, member: Member, ids: Mapping[str, str]) -> SubmitJob:
    """The request for one job: the same each time, so that it can be repeated."""
    tags = {"repository": found.repository, "commit": found.sha}
    env = {"CI": "true", "GITHUB_REPOSITORY": found.repository, "GITHUB_SHA": found.sha}
    if found.branch:
        tags["branch"] = found.branch
        env |= {"GITHUB_BRANCH": found.branch, "GITHUB_REF": f"refs/heads/{found.branch}"}
    if found.number:
        tags["pull_request"] = env["GITHUB_PULL_REQUEST"] = str(found.number)
    given: dict[str, Any] = {"script": member.file.script, "path": member.file.path, "tags": tags, "env": env}
    if member.values:
        given["matrix"] = dict(member.values)
    if member.dependencies:
        given["dependencies"] = {each.name: {"job": ids[each.job]} for each in member.dependencies}
    return SubmitJob(**given)
