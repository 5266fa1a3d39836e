"""What GitHub shows of commits: each job once, and in the end as it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.domain.github import checks
from penstock.domain.github.checks import CheckRun
from penstock.domain.jobs.jobs import Job

if TYPE_CHECKING:
    from tests.crash.life import Life

Rows = Mapping[str, list[Any]]
DUE = ("delivery", "checkset", "check", "minted")


def look(rows: Rows) -> None:
    """What must be so at every moment: a job is submitted once for each run of its check. [JOB-1]"""
    jobs = Counter(job.provenance.check for job in rows.get("job", []) if job.provenance.check)
    for check in rows.get("check", []):
        assert jobs[check.id] <= check.run, f"JOB-1: {jobs[check.id]} jobs of {check.name}, which ran {check.run} times"


def left(rows: Rows) -> list[str]:
    """What is not over yet."""
    return [f"{row.kind} {row.key} is due" for kind in DUE for row in rows.get(kind, []) if row.due]


def over(life: Life) -> None:
    """What must be so in the end: a check run for each run of a check, and none that says what is not so."""
    runs = life.site.hub.fake.runs
    twice = [id for id, count in Counter(run["external_id"] for run in runs.values()).items() if count > 1]
    assert not twice, f"check runs that are there twice: {twice}"
    unfinished = [run["external_id"] for run in runs.values() if run["status"] != "completed"]
    assert not unfinished, f"check runs that never ended: {unfinished}"
    minted = life.site.hub.fake.tokens
    alive = [each for each in life.told if each in minted and minted[each].until > life.site.world.now()]
    assert not alive, f"SEC-1: {len(alive)} tokens of jobs that are over are taken still"
    jobs = {job.id: job for job in life.jobs()}
    for check in life.rows.get("check", []):
        assert isinstance(check, CheckRun)
        if check.job:
            _ended_as(check, jobs[check.job], runs)


def _ended_as(check: CheckRun, job: Job, runs: Mapping[int, Mapping[str, Any]]) -> None:
    assert check.run_id in runs, f"nothing shows {check.name}"
    said = runs[check.run_id]["conclusion"]
    assert said == checks.conclusion(job), f"{check.name} ended {job.end.outcome}, and GitHub shows {said}"
