"""What a check run says of a job: as much as a person looks at first, and no more than GitHub takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from penstock.domain.jobs import Job, Outcome, Result, State
from penstock.domain.outputs import Output
from penstock.kernel.errors import Fault, Problem

LINES = 20
COLUMNS = 90
OUTPUTS = 25
ANNOTATIONS = 50
"""How many one call may bring. Source: GitHub, REST API, check runs."""

TEXT = 60_000
"""GitHub takes 65,535 characters of a summary."""

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]|[\x00-\x08\x0a-\x1f\x7f-\x9f]")
MARKS = re.compile(r"([\\`*_{}\[\]<>()#+!|@~&])")

APPROVE = {"label": "Approve", "description": "Run the jobs of this commit", "identifier": "approve"}
CANCEL = {"label": "Cancel", "description": "Cancel this job", "identifier": "cancel"}
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


def of_words(told: str, annotations: Sequence[Annotation], *, approval: bool) -> dict[str, Any]:
    """What a check without a job says: that it failed, or that somebody is to approve the commit."""
    title = "Waiting for approval" if approval else "This cannot be run"
    summary = told
    if annotations:
        rest = "\n".join(
            f"- {escape(f'{each.path}:{each.line}:{each.column}: {each.message}')}" for each in annotations
        )
        summary = f"{told}\n\n{rest}"
    output = {"title": title, "summary": summary[:TEXT], "annotations": [_note(each) for each in annotations]}
    conclusion = "action_required" if approval else "failure"
    actions = [APPROVE] if approval else [RERUN]
    return {"status": "completed", "conclusion": conclusion, "output": output, "actions": actions}


def _note(each: Annotation) -> dict[str, Any]:
    """Columns are left out: GitHub takes them only for what begins and ends in one line, and shows none."""
    return {
        "path": each.path, "start_line": each.line, "end_line": each.line, "annotation_level": "failure",
        "message": each.message[:1000], "title": f"line {each.line}, column {each.column}",
    }  # fmt: skip


def of_job(job: Job, lines: Sequence[str], outputs: Sequence[Output], url: str) -> dict[str, Any]:
    """What a job's check says. The log that the last lines are of was masked where it was written. [SEC-1]"""
    said: dict[str, Any] = {"status": "queued", "actions": [CANCEL], "details_url": f"{url}/v1/jobs/{job.id}"}
    title = TITLES.get(job.state, "")
    if job.times.started:
        said |= {"status": "in_progress", "started_at": _time(job.times.started)}
    if job.is_settled:
        title = str(job.outcome).capitalize()
        said |= {"status": "completed", "conclusion": conclusion(job), "actions": [RERUN]}
        said |= {"completed_at": _time(job.times.settled)} if job.times.settled else {}
    return said | {"output": {"title": title, "summary": _summary(job, outputs, url)[:TEXT], "text": tail(lines)}}


def conclusion(job: Job) -> str:
    """What GitHub calls a job's end."""
    if job.outcome is Outcome.FAILED and job.report and job.report.result is Result.TIMED_OUT:
        return "timed_out"
    return CONCLUSIONS.get(job.outcome, "failure") if job.outcome else "neutral"


def _summary(job: Job, outputs: Sequence[Output], url: str) -> str:
    said = [f"Job `{job.id}`, attempt {job.attempt}, on {escape(job.target_resolved)}."]
    said += [escape(job.reason)] if job.reason else []
    said += ["", f"Follow it with `penstock job tail {job.id}`."]
    if outputs:
        said += ["", f"Outputs, with `penstock job copy {job.id}` or a token:", ""]
        said += [
            f"- [{escape(one.path)}]({url}/v1/jobs/{job.id}/outputs) ({one.size} bytes)" for one in outputs[:OUTPUTS]
        ]
        more = len(outputs) - OUTPUTS
        said += [f"- and {more} more"] if more > 0 else []
    return "\n".join(said)


def tail(lines: Sequence[str]) -> str:
    """The last lines of a log, as a block of code that no line can end: each is indented."""
    clean = (ESCAPES.sub("", line)[:COLUMNS] for line in lines[-LINES:])
    return "".join(f"    {line}\n" for line in clean)


def escape(text: str) -> str:
    """A text in which nothing acts: neither Markdown, nor HTML, nor a mention of somebody."""
    return MARKS.sub(r"\\\1", ESCAPES.sub(" ", text)).replace("\\@", "@\u200b")


def _time(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def look_after(job: Job, now: datetime) -> datetime | None:
    """When a check is looked at again, if nobody says that its job moved: at longer intervals, the longer it takes."""
    if job.is_settled:
        return None
    took = now - job.times.submitted
    return now + min(max(took / 10, timedelta(minutes=1)), timedelta(minutes=10))
