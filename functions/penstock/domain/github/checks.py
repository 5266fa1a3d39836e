"""One job of a commit, and the GitHub check run that shows it.

The second half writes the text of the check run: what a person reads first, and no more than GitHub accepts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.github.commits import KEPT_FOR, CheckSet, set_key
from penstock.domain.jobs.jobs import Job, Outcome, Result, State
from penstock.kernel import limits
from penstock.kernel.errors import Fault, Problem
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

CONTROL = 0
"""The number of the check that speaks of the whole commit: what is wrong with its files, or that it awaits approval."""

CONTROL_NAME = "penstock"


MAX_CHECKS = 100
"""How many jobs one commit may have."""

CALL_WITHIN = timedelta(minutes=2)
"""How long one call may take to show a check; after that another does."""


@dataclass(frozen=True, kw_only=True)
class CheckRun(Row):
    """One job of a commit. `run` counts its re-runs, `needs` are the checks whose jobs its own waits for.

    `told` is what it says when there is no job: why none was accepted, or that approval is awaited. It is Markdown, in
    which the texts of others are escaped; of a check that waits it is plain text. `waits`: its job is submitted later,
    when its owner is within a limit again. `run_id` is the check run, once it is made; `begun` that it may have been.
    `shown` is a digest of what it says already, and `over` that this is how it ended. `past` are runs before this one
    whose check runs have not ended at GitHub yet. `reads` are the ids of other repositories that its job's token reads.
    """

    kind: ClassVar[str] = "check"
    repository: str
    repository_id: int
    installation: int
    sha: str
    number: int
    name: str
    since: datetime
    needs: tuple[str, ...] = ()
    run: int = 1
    job: str = ""
    told: str = ""
    waits: bool = False
    annotations: tuple[Annotation, ...] = ()
    begun: bool = False
    run_id: int = 0
    shown: str = ""
    over: bool = False
    past: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    busy: datetime | None = None
    tries: int = 0
    due: datetime | None = None

    @property
    def key(self) -> Key:
        return check_key(self.repository_id, self.sha, self.number)

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def expiry(self) -> datetime:
        return self.since + KEPT_FOR

    @property
    def id(self) -> str:
        """What it is known by in a job's row."""
        return f"{self.repository_id}/{self.sha}/{self.number}"

    @property
    def external_id(self) -> str:
        """What it is known by at GitHub: another with each run, so that an old button presses nothing."""
        return self.external_id_of(self.run)

    def external_id_of(self, run: int) -> str:
        """What one of its runs is known by there."""
        return f"{self.id}/{run}"


def check_key(repository_id: int, sha: str, number: int) -> Key:
    """Where a check is."""
    return Key(set_key(repository_id, sha).pk, f"check#{number:03}")


def key_of(id: str) -> Key:
    """Where the check of an id is. Raises ValueError for what is no id."""
    repository_id, sha, number = id.split("/")[:3]
    return check_key(int(repository_id), sha, int(number))


def new_check(of: CheckSet, number: int, name: str, needs: Sequence[str], now: datetime) -> CheckRun:
    """A check that is new: it is to be shown."""
    return CheckRun(
        repository=of.repository, repository_id=of.repository_id, installation=of.installation, sha=of.sha,
        number=number, name=name, since=of.since, needs=tuple(needs), due=now,
    )  # fmt: skip


def rerun(check: CheckRun, now: datetime) -> CheckRun:
    """A check whose job is to be run again: with a check run of its own. The one before it is to end, if it has not."""
    past = (*check.past, check.run) if check.begun and not check.over else check.past
    return replace(
        check, run=check.run + 1, job="", told="", waits=False, annotations=(), begun=False, run_id=0, shown="",
        over=False, past=past, tries=0, due=now,
    )  # fmt: skip


def submitted(check: CheckRun, job: str, now: datetime) -> CheckRun:
    """A check whose job was accepted."""
    return replace(check, job=job, told="", waits=False, due=now)


def refused(check: CheckRun, told: str, now: datetime, annotations: Sequence[Annotation] = ()) -> CheckRun:
    """A check that has no job, and says why."""
    return replace(check, told=told, waits=False, annotations=tuple(annotations), due=now)


def postponed(check: CheckRun, told: str, now: datetime) -> CheckRun:
    """A check whose job is submitted later, because of a limit."""
    return replace(check, told=f"{told}. The job is submitted as soon as the limit allows it.", waits=True, due=now)


def with_dependents(checks: Iterable[CheckRun], first: CheckRun) -> list[CheckRun]:
    """A check and all whose jobs wait for it, however many are between."""
    found, names = {first.number: first}, {first.name}
    rest = [check for check in checks if check.number != first.number]
    while more := [check for check in rest if check.number not in found and names.intersection(check.needs)]:
        found |= {check.number: check for check in more}
        names |= {check.name for check in more}
    return [found[number] for number in sorted(found)]


def submit_key(check: CheckRun) -> str:
    """The Idempotency-Key of a check's job: of commit, name and run, so that nothing is submitted twice."""
    name = hashlib.sha256(check.name.encode()).hexdigest()
    return f"github-{check.repository_id}-{check.sha}-{check.run}-{name}"


def own_key(check: CheckRun) -> str:
    """A key for the job of a check whose usual one somebody else used: longer than the API takes one from anybody."""
    return submit_key(check).ljust(limits.IDEMPOTENCY_KEY_CHARS + 1)


MAX_LINES = 20
MAX_COLUMNS = 90
MAX_OUTPUTS = 25


MAX_ANNOTATIONS = 50
"""How many one call may bring. Source: GitHub, REST API, check runs."""

MAX_TEXT = 60_000
"""GitHub takes 65,535 characters of a summary."""

ESCAPES = r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]|[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"


LINKS = r"(?i)(\b[a-z]{2,10}:(?=//)|\bwww(?=\.))"
"""Where GitHub makes a link of plain text: after this."""


MARKS = r"([\\`*_{}\[\]<>()#+!|@~&])"

APPROVE = {"label": "Approve", "description": "Run the jobs of this commit", "identifier": "approve"}


CANCEL = {"label": "Cancel", "description": "Cancel this job", "identifier": "cancel"}


REVIEW = {"label": "Approve", "description": "Let this job have its environment", "identifier": "review"}


RERUN = {"label": "Re-run", "description": "Run it again, and what depends on it", "identifier": "rerun"}

CONCLUSIONS = {Outcome.SUCCEEDED: "success", Outcome.CANCELLED: "cancelled"}
"""All else is a failure."""

TITLES = {
    State.WAITING: "Waiting for other jobs",
    State.QUEUED: "Queued",
    State.ACQUIRING: "Waiting for what it needs",
    State.RUNNING: "Running",
}


@dataclass(frozen=True)
class Annotation:
    """What is wrong at a place in a file."""

    path: str
    line: int
    column: int
    message: str


def annotation(problem: Problem | Fault, path: str = "") -> Annotation:
    """A problem of a job file, or a fault of a policy or a request, at its place."""
    hint = f" ({problem.hint})" if problem.hint else ""
    return Annotation(problem.file or path, problem.line or 1, problem.column or 1, problem.message + hint)


def message_output(told: str, annotations: Sequence[Annotation], *, approval: bool) -> dict[str, Any]:
    """What a check without a job says, in Markdown: that it failed, or that somebody is to approve the commit."""
    title = "Waiting for approval" if approval else "This cannot be run"
    summary = told
    if annotations:
        rest = "\n".join(
            f"- {escape(f'{each.path}:{each.line}:{each.column}: {each.message}')}" for each in annotations
        )
        summary = f"{told}\n\n{rest}"
    output = {"title": title, "summary": summary[:MAX_TEXT], "annotations": [_note(each) for each in annotations]}
    conclusion = "action_required" if approval else "failure"
    actions = [APPROVE] if approval else [RERUN]
    return {"status": "completed", "conclusion": conclusion, "output": output, "actions": actions}


def postponed_output(told: str, *, superseded: bool) -> dict[str, Any]:
    """What a check says whose job is submitted later; or never, if a newer commit came first."""
    if superseded:
        output = {"title": "Cancelled", "summary": "A newer commit came before the job could be submitted."}
        return {"status": "completed", "conclusion": "cancelled", "output": output, "actions": [RERUN]}
    return {"status": "queued", "output": {"title": "Waiting for a limit", "summary": escape(told)}, "actions": []}


def _note(each: Annotation) -> dict[str, Any]:
    """Columns are left out: GitHub takes them only for what begins and ends in one line, and shows none."""
    return {
        "path": each.path, "start_line": each.line, "end_line": each.line, "annotation_level": "failure",
        "message": each.message[:1000], "title": f"line {each.line}, column {each.column}",
    }  # fmt: skip


def job_output(
    job: Job, lines: Sequence[str], outputs: Sequence[Artifact], url: str, reviewers: str = ""
) -> dict[str, Any]:
    """What a job's check says. The log that the last lines are of was masked where it was written. [SEC-1]

    `reviewers` are those who may approve the job for the environment that it asks for, as a part of a sentence.
    """
    said: dict[str, Any] = {"status": "queued", "actions": [CANCEL], "details_url": f"{url}/jobs/{job.id}"}
    title = TITLES.get(job.state, "")
    if job.awaits_review:
        title = "Waiting for a review"
        said |= {"actions": [REVIEW, CANCEL]}
    if job.times.started:
        said |= {"status": "in_progress", "started_at": _time(job.times.started)}
    if job.is_settled:
        title = str(job.end.outcome).capitalize()
        said |= {"status": "completed", "conclusion": conclusion(job), "actions": [RERUN]}
        said |= {"completed_at": _time(job.times.settled)} if job.times.settled else {}
    summary = _summary(job, outputs, url, reviewers)
    return said | {"output": {"title": title, "summary": summary[:MAX_TEXT], "text": tail(lines)}}


def conclusion(job: Job) -> str:
    """What GitHub calls a job's end."""
    if job.end.outcome is Outcome.FAILED and job.run.report and job.run.report.result is Result.TIMED_OUT:
        return "timed_out"
    return CONCLUSIONS.get(job.end.outcome, "failure") if job.end.outcome else "neutral"


def _summary(job: Job, outputs: Sequence[Artifact], url: str, reviewers: str) -> str:
    said = [f"Job `{job.id}`, attempt {job.attempt}, on {escape(job.request.target_resolved)}."]
    if job.review and job.awaits_review:
        asked = f"the environment {job.review.environment}"
        said += [escape(f"Waits until {reviewers} approves it for {asked}." if reviewers else f"{asked} is gone.")]
    said += [escape(job.end.reason)] if job.end.reason else []
    said += ["", f"Follow it with `penstock job tail {job.id}`."]
    if outputs:
        said += ["", f"Outputs, with `penstock job copy {job.id}` or a token:", ""]
        said += [f"- [{escape(one.path)}]({url}/jobs/{job.id}) ({one.size} bytes)" for one in outputs[:MAX_OUTPUTS]]
        more = len(outputs) - MAX_OUTPUTS
        said += [f"- and {more} more"] if more > 0 else []
    return "\n".join(said)


def tail(lines: Sequence[str]) -> str:
    """The last lines of a log, as a block of code that no line can end: each is indented."""
    clean = (re.sub(ESCAPES, "", line)[:MAX_COLUMNS] for line in lines[-MAX_LINES:])
    return "".join(f"    {line}\n" for line in clean)


def escape(text: str) -> str:
    """A text in which nothing acts: neither Markdown, nor HTML, nor a mention of somebody."""
    quiet = re.sub(MARKS, r"\\\1", re.sub(ESCAPES, " ", text)).replace("\\@", "@\u200b")
    return re.sub(LINKS, "\\1\u200b", quiet)


def _time(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def next_check(job: Job, now: datetime) -> datetime | None:
    """When a check is looked at again, if nobody says that its job moved: at longer intervals, the longer it takes."""
    if job.is_settled:
        return None
    took = now - job.times.submitted
    return now + min(max(took / 10, timedelta(minutes=1)), timedelta(minutes=10))
