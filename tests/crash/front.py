"""Scenarios of the front end for GitHub: what is pushed is run, each job once, and GitHub shows how each ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.domain.jobs.jobs import Job, State
from tests.crash.hub import NAME
from tests.crash.life import Life
from tests.crash.own import user
from tests.crash.scenarios import Steps, scenario
from tests.crash.sitefile import FRONT
from tests.github.payloads import check_run, pull_request, push
from tests.github.rig import JOBS
from tests.github.rig import job as file

A, B = "a" * 40, "b" * 40


def begin(life: Life) -> None:
    """A site that serves a repository, which is one of its users."""
    life.configure(FRONT)
    user(life, NAME.replace("/", ":"))


def commit(life: Life, sha: str, **files: bytes) -> None:
    """A commit with job files."""
    life.site.hub.repo.files[sha] = {f"{JOBS}/{name}.sh": text for name, text in files.items()}


def say(life: Life, name: str, payload: Mapping[str, Any], *, lost: bool = False) -> None:
    """GitHub says something, once; or nobody hears it."""
    body, headers = life.site.hub.sends(name, payload)
    if not lost:
        life.runtime.hook("user", body, headers)


def jobs(life: Life, name: str, *states: State) -> list[Job]:
    """The jobs of a name that are in one of some states, or settled."""
    return [job for job in life.jobs() if job.name == name and job.state in (*states, State.SETTLED)]


def settled(life: Life, **count: int) -> Callable[[], bool]:
    """Asks whether so many jobs of each name are settled."""
    return lambda: all(len(jobs(life, name)) >= wanted for name, wanted in count.items())


def shown(life: Life, name: str) -> Callable[[], bool]:
    """Asks whether the latest check run of a name is complete."""

    def is_complete() -> bool:
        runs = [run for run in life.site.hub.fake.runs.values() if run["name"] == name]
        return bool(runs) and runs[-1]["status"] == "completed"

    return is_complete


@scenario()
def github_push(life: Life) -> Steps:
    """A push: a job, and one that waits for it."""
    begin(life)
    life.writes_outputs = True
    commit(life, A, first=file("first"), second=file("second", "first"))
    say(life, "push", push(A))
    yield settled(life, first=1, second=1)


@scenario()
def github_token(life: Life) -> Steps:
    """A job asks for its token, and is told it; when it is over, nobody takes it any more."""
    begin(life)
    life.asks = True
    commit(life, A, build=file("build"))
    say(life, "push", push(A))
    yield settled(life, build=1)


@scenario(minutes=1)
def github_missed(life: Life) -> Steps:
    """A push that nobody heard of, as in an outage: it is found in GitHub's list."""
    begin(life)
    commit(life, A, build=file("build"))
    say(life, "push", push(A), lost=True)
    yield settled(life, build=1)


@scenario(minutes=1)
def github_again(life: Life) -> Steps:
    """A job is run again by its button while the one that waits for it runs, which ends, and is run again as well."""
    begin(life)
    life.writes_outputs = True
    life.held_names.add("second")
    commit(life, A, first=file("first"), second=file("second", "first"))
    say(life, "push", push(A))
    yield shown(life, "first")
    yield lambda: bool(jobs(life, "second", State.RUNNING))
    say(life, "check_run", check_run(life.site.hub.fake.shown("first"), "ada", "rerun"))
    yield settled(life, second=1)
    life.held_names.clear()
    yield settled(life, first=2, second=2)


@scenario(minutes=5)
def github_newer(life: Life) -> Steps:
    """A pull request gets a newer commit while a job of the older one runs, which is cancelled."""
    begin(life)
    life.held_names.add("old")
    commit(life, A, old=file("old"))
    commit(life, B, new=file("new"))
    life.site.hub.repo.ends["pull/12"] = A
    say(life, "pull_request", pull_request(A, author="ada"))
    yield lambda: bool(jobs(life, "old", State.RUNNING))
    life.site.hub.repo.ends["pull/12"] = B
    say(life, "pull_request", pull_request(B, author="ada", action="synchronize"))
    yield settled(life, old=1, new=1)


@scenario()
def github_approved(life: Life) -> Steps:
    """An outsider's commit waits until somebody approves it."""
    begin(life)
    commit(life, A, build=file("build"))
    life.site.hub.repo.ends["pull/12"] = A
    say(life, "pull_request", pull_request(A))
    yield shown(life, "penstock")
    say(life, "check_run", check_run(life.site.hub.fake.shown("penstock"), "ada", "approve"))
    yield settled(life, build=1)
