"""A commit's jobs are submitted, each once; cancelled when a newer commit has come; and run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from penstock.domain import users as user_rules
from penstock.domain.commands import SubmitJob
from penstock.domain.errors import Refused
from penstock.domain.github import checks, checksets, reports
from penstock.domain.github.checks import CONTROL, Check
from penstock.domain.github.checksets import CheckSet, Stage
from penstock.domain.jobs import Job, job_key
from penstock.domain.jobset import Member
from penstock.domain.rows import Change, Create, Replace
from penstock.domain.rows import Check as Still
from penstock.domain.submissions import Submission, submission_key
from penstock.domain.users import User
from penstock.system import System
from penstock.usecases import jobs, logs, race, submitting, users
from penstock.usecases.github.reading import wanted

ONCE_MORE = timedelta(minutes=5)
"""When a superseded set is looked at again: whoever submitted jobs of it meanwhile has noted them, or died, by then."""


def of(on: System, found: CheckSet) -> list[Check]:
    """A commit's checks, in the order of their numbers."""
    return on.store.find(found.key.pk, "check#", Check)


def submit(
    on: System, found: CheckSet, members: Sequence[Member], others: Mapping[str, int], *, outsider: bool
) -> None:
    """Submit a commit's jobs, those first that others wait for. Whoever dies here is followed by one who goes on.

    `others` are the ids of the repositories that they may read besides their own, by name.

    The check's row comes first and its key is that of commit, name and run, so that no job is submitted twice. [JOB-1]
    """
    user = users.find(on, found.owner)
    known = {check.name: check for check in of(on, found) if check.number != CONTROL}
    ids: dict[str, str] = {}
    for member in members:
        check = known.get(member.name) or _begin(on, found, member, known)
        if check is None:
            return  # the set is another by now, and due
        known[member.name] = check
        if not (check.job or check.told):
            reads = [others[name] for name in others if name in wanted(member.file, found.repository)]
            check = _note(on, check, replace(_submit(on, user, found, member, check, ids), reads=tuple(reads)))
        ids |= {member.name: check.job} if check.job else {}
    on.store.commit([Replace(found, checksets.moved(found, Stage.SUBMITTED, outsider=outsider))])
    fresh = on.store.get(found.key, CheckSet)
    if fresh and fresh.stage is Stage.SUPERSEDED:  # both write first and read after: one of the two sees the other
        _cancel_all(on, fresh)


def _begin(on: System, found: CheckSet, member: Member, known: Mapping[str, Check]) -> Check | None:
    """The row of a new check, as long as the set stands."""
    number = 1 + max((check.number for check in known.values()), default=CONTROL)
    check = checks.begin(found, number, member.name, [each.job for each in member.dependencies], on.world.now())
    made = on.store.commit([Create(check), Still(found)])
    return on.store.get(check.key, Check) if made else None


def _submit(on: System, user: User, found: CheckSet, member: Member, check: Check, ids: Mapping[str, str]) -> Check:
    """A check with its job, or with why there is none."""
    lacking = next((each.job for each in member.dependencies if each.job not in ids), None)
    if lacking is not None:
        why = f"it waits for the job {lacking!r}, and none was accepted"
        return checks.refused(check, why, on.world.now())
    try:
        job = submitting.submit(on, user, ask(found, member, ids), checks.submit_key(check), check=check.id)
    except Refused as refused:
        notes = [reports.annotation(fault, member.file.path) for fault in refused.faults[: reports.ANNOTATIONS]]
        return checks.refused(check, refused.detail, on.world.now(), notes)
    return checks.submitted(check, job, on.world.now())


def _note(on: System, was: Check, now: Check) -> Check:
    """Write what became of a check, over whatever was noted meanwhile of how it is shown."""

    def decide() -> tuple[Sequence[Change], Check]:
        fresh = on.store.get(was.key, Check) or was
        after = replace(fresh, job=now.job, told=now.told, annotations=now.annotations, reads=now.reads, due=now.due)
        return ([Replace(fresh, after)] if fresh.run == was.run else []), after

    noted = race.run(on, decide)
    on.forge.tell({"check": noted.id})
    return noted


def ask(found: CheckSet, member: Member, ids: Mapping[str, str]) -> SubmitJob:
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


def supersede(on: System, found: CheckSet) -> None:
    """Cancel what is left of a commit's jobs. It is looked at once more, for what was being submitted meanwhile."""
    again = found.stage is not Stage.SUPERSEDED
    after = checksets.moved(found, Stage.SUPERSEDED, "a newer commit has come")
    due = on.world.now() + ONCE_MORE if again else None
    if on.store.commit([Replace(found, replace(after, due=due))]):
        _cancel_all(on, found)


def _cancel_all(on: System, found: CheckSet) -> None:
    for check in of(on, found):
        cancel(on, check, "a newer commit")


def cancel(on: System, check: Check, by: str) -> str:
    """Cancel a check's job; what depends on it settles with it. Also one whose submit was not noted yet."""
    owner = check.repository.replace("/", ":")
    job = job_of(on, check)
    if job is None or job.is_settled or job.cancelled_by:
        return "ignored: there is nothing to cancel"
    logs.say(on, job.id, job.attempt, f"to be cancelled at GitHub: by {by}")
    with suppress(Refused):  # it has settled meanwhile
        jobs.cancel(on, users.find(on, owner), job.id)
    return f"cancelled by {by}"


def job_of(on: System, check: Check) -> Job | None:
    """The job of a check; also one that was accepted while nobody was left to note it."""
    key = submission_key(check.repository.replace("/", ":"), user_rules.digest(checks.submit_key(check)))
    known = None if check.job or check.number == CONTROL else on.store.get(key, Submission)
    job = check.job or (known.job if known else "")
    return on.store.get(job_key(job), Job) if job else None


def run_again(on: System, found: CheckSet, first: Check | None = None) -> str:
    """Run a check's job again, and all that wait for it; without one, all of the commit's.

    The check that was asked for comes last, in one commit with the set: until then the same may be asked again, and who
    asks finds it as it was.
    """
    rows = of(on, found)
    wanted = [check for check in (checks.behind(rows, first) if first else rows) if check.number != CONTROL]
    last: list[Check] = []
    for check in wanted:
        if check.job or check.told or job_of(on, check):
            cancel(on, check, "a re-run")
            if first and check.number == first.number:
                last.append(check)
            else:
                race.run(on, partial(_again, on, check))
    race.run(on, partial(_plan_again, on, found, last))
    on.forge.tell({"set": [found.repository_id, found.sha]})
    return f"{len(wanted)} to be run again"


def _again(on: System, was: Check) -> tuple[Sequence[Change], None]:
    fresh = on.store.get(was.key, Check)
    is_same = fresh is not None and fresh.run == was.run
    return [Replace(fresh, checks.again(fresh, on.world.now()))] if fresh and is_same else [], None


def _plan_again(on: System, found: CheckSet, last: Sequence[Check]) -> tuple[Sequence[Change], None]:
    was = on.store.get(found.key, CheckSet)
    now = checksets.plan_again(was, on.world.now()) if was else was
    again = [change for check in last for change in _again(on, check)[0]]
    return [*again, *([Replace(was, now)] if was and now and now != was else [])], None
