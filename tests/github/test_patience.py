"""A GitHub that wants to be left alone is; one that fails is asked again; who dies half-way leaves nothing twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.github import checks
from penstock.domain.github.commits import MAX_TRIES, Stage
from penstock.domain.jobs.jobs import Outcome
from penstock.kernel.errors import Unknown
from penstock.kernel.rows import Replace
from penstock.usecases import sweep
from penstock.usecases.github import check_runs, commits
from tests.github.payloads import check_run, pull_request, push
from tests.github.rig import A, B, Rig, job


@pytest.mark.parametrize("how", ["primary", "secondary", "silent", "429"])
def test_a_limit_is_obeyed_by_everybody_and_then_all_goes_on(rig: Rig, how: str) -> None:
    rig.fake.limit(50, how)
    rig.say("push", push(A))
    rig.commit(B, build=job("build"))
    rig.say("push", push(B, "other"))
    rig.later(5)
    assert rig.fake.rude == 1
    assert not rig.all_jobs()
    for _ in range(5):
        rig.later(60)
    assert (rig.set(A).stage, rig.set(B).stage) == (Stage.SUBMITTED, Stage.SUBMITTED)
    assert rig.fake.rude == 1
    assert {run["name"] for run in rig.fake.runs.values()} == {"build", "test"}


def test_a_limit_while_jobs_are_shown_stops_no_job(rig: Rig) -> None:
    rig.say("push", push(A))
    rig.fake.limit(600)
    build = rig.jobs()["build"].id
    rig.hello(build)
    rig.finish(build)
    assert rig.fake.shown("build")["status"] == "queued"
    assert rig.jobs()["build"].end.outcome is Outcome.SUCCEEDED
    assert rig.checks()["build"].due is not None
    for _ in range(12):
        rig.later(60)
    assert rig.fake.shown("build")["conclusion"] == "success"
    assert rig.fake.rude == 1


def test_a_commit_above_a_limit_of_its_owner_goes_on_when_that_allows_it(rig: Rig) -> None:
    rig.limit(jobs=1)
    rig.say("push", push(A))
    assert set(rig.jobs()) == {"build"}
    assert (rig.set().stage, rig.checks()["test"].waits) == (Stage.PLANNED, True)
    shown = rig.fake.shown("test")
    assert (shown["status"], shown["output"]["title"]) == ("queued", "Waiting for a limit")
    assert "the limit is 1" in shown["output"]["summary"]
    assert shown["actions"] == []
    build = rig.jobs()["build"].id
    rig.hello(build)
    rig.finish(build)
    for _ in range(3):
        rig.later(61)
    assert (rig.set().stage, rig.checks()["test"].waits, rig.checks()["test"].told) == (Stage.SUBMITTED, False, "")
    assert rig.fake.shown("test")["actions"] == [checks.CANCEL]
    assert len(rig.all_jobs()) == 2


def test_a_commit_above_a_limit_for_too_long_is_refused(rig: Rig) -> None:
    rig.limit(jobs=1)
    rig.say("push", push(A))
    for _ in range(MAX_TRIES + 2):
        rig.later(1900)
    assert (rig.set().stage, rig.checks()["test"].waits) == (Stage.SUBMITTED, False)
    assert rig.fake.shown("test")["conclusion"] == "failure"
    rig.limit(jobs=9)
    rig.say("check_run", check_run(rig.fake.shown("test"), "ada", "rerun"))
    assert set(rig.jobs()) == {"build", "test"}


def test_a_commit_that_waits_for_a_limit_is_superseded_like_any_other(rig: Rig) -> None:
    rig.limit(jobs=1)
    rig.commit(B, build=job("build"))
    for sha in (A, B):
        rig.repo.ends["pull/12"] = sha
        rig.say("pull_request", pull_request(sha, author="ada", action="synchronize"))
    for _ in range(8):
        rig.later(301)
    assert rig.set(A).stage is Stage.SUPERSEDED
    assert set(rig.jobs(B)) == {"build"}
    assert len(rig.all_jobs()) == 2
    shown = rig.fake.shown("test")
    assert (shown["conclusion"], shown["actions"]) == ("cancelled", [checks.RERUN])


def test_a_github_that_fails_is_asked_again(rig: Rig) -> None:
    rig.fake.broken = 1
    rig.hook("push", push(A))
    with pytest.raises(Unknown):
        rig.twin.run()
    rig.twin.run()
    for _ in range(3):
        rig.later(60)
    assert len(rig.jobs()) == 2


def test_one_does_not_ask_for_ever(rig: Rig) -> None:
    rig.hook("push", push(A))
    rig.twin.run()
    rig.commit(B)
    rig.hook("push", push(B, "other"))
    rig.fake.limit(10**7)
    for _ in range(MAX_TRIES + 10):
        rig.later(1900)
    assert (rig.set(B).stage, rig.set(B).why) == (Stage.SETTLED, "GitHub could not be asked what to run")
    assert rig.set(B).due is None
    old = rig.set(B)
    assert old.tries == 0


def test_a_delivery_is_not_taken_for_ever(rig: Rig) -> None:
    rig.say("pull_request", pull_request(A, author="ada"))
    rig.fake.limit(10**7)
    rig.hook("pull_request", pull_request(B, author="ada"))
    for _ in range(MAX_TRIES + 10):
        rig.later(1900)
    assert (rig.delivery(rig.id).outcome, rig.delivery(rig.id).due) == ("given up", None)
    rig.step({"delivery": rig.id})
    assert rig.delivery(rig.id).tries == MAX_TRIES


class Died(Exception):
    """A function was ended."""


def test_who_dies_before_noting_a_check_run_makes_no_second(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> None:
        raise Died

    rig.commit(A, build=job("build"))
    rig.hook("push", push(A))
    with monkeypatch.context() as patch:
        patch.setattr(check_runs, "_next_look", die)
        with pytest.raises(Died):
            rig.twin.run()
    rig.twin.run()
    assert len(rig.fake.runs) == 1
    rig.fake.page = 1
    for _ in range(4):
        rig.later(130)
    assert len(rig.fake.runs) == 1
    assert rig.checks()["build"].run_id == 1000


def test_who_dies_between_submit_and_note_submits_no_second(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> None:
        raise Died

    rig.hook("push", push(A))
    with monkeypatch.context() as patch:
        patch.setattr(commits, "_record_submit", die)
        with pytest.raises(Died):
            rig.twin.run()
    assert len(rig.all_jobs()) == 1
    for _ in range(3):
        rig.later(130)
    assert len(rig.all_jobs()) == 2
    assert rig.set().stage is Stage.SUBMITTED


def test_a_job_that_was_not_recorded_is_superseded_all_the_same(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> None:
        raise Died

    rig.commit(B, build=job("build"))
    rig.hook("pull_request", pull_request(A, author="ada"))
    with monkeypatch.context() as patch:
        patch.setattr(commits, "_record_submit", die)
        with pytest.raises(Died):
            rig.twin.run()
    rig.repo.ends["pull/12"] = B
    rig.say("pull_request", pull_request(B, author="ada"))
    rig.twin.run()
    assert rig.set(A).stage is Stage.SUPERSEDED
    assert [each.end.outcome for each in rig.all_jobs() if each.request.tags["commit"] == A] == [Outcome.CANCELLED]


def test_who_submits_while_a_newer_commit_comes_cancels_what_it_submitted(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = commits._record_submit
    rig.commit(B, build=job("build"))

    def slowly(*given: object) -> object:
        monkeypatch.setattr(commits, "_record_submit", note)
        rig.repo.ends["pull/12"] = B
        rig.hook("pull_request", pull_request(B, author="ada"))
        rig.step({"delivery": rig.id})
        rig.step({"set": [55, A]})
        assert rig.set(A).stage is Stage.SUPERSEDED
        return note(*given)  # type: ignore[arg-type]

    rig.hook("pull_request", pull_request(A, author="ada"))
    monkeypatch.setattr(commits, "_record_submit", slowly)
    rig.twin.run()
    found = [each for each in rig.all_jobs() if each.request.tags["commit"] == A]
    assert {each.end.outcome for each in found} == {Outcome.CANCELLED}
    assert rig.jobs(B)["build"].end.outcome is None


def test_two_never_show_one_check_at_once(rig: Rig) -> None:
    rig.say("push", push(A))
    row = rig.checks()["build"]
    busy = replace(row, busy=rig.now() + timedelta(seconds=60))
    assert rig.on.store.commit([Replace(row, busy)])
    before = len(rig.fake.asked)
    rig.step({"check": row.id})
    assert len(rig.fake.asked) == before
    assert rig.twin.queues.messages[-1][1:] == ("github", {"check": row.id})
    rig.later(61)
    assert rig.checks()["build"].busy is None


def test_what_is_not_there_needs_no_step(rig: Rig) -> None:
    assert rig.step({"delivery": "none"})
    assert rig.step({"set": [55, A]})
    assert rig.step({"check": f"55/{A}/1"})
    assert rig.step({"token": "none"})
    assert not rig.step({"set": ["55", A]})
    assert not rig.step({})
    assert not rig.fake.asked
    sweep.sweep(rig.on)


def test_a_commit_that_github_takes_no_check_run_for(rig: Rig) -> None:
    rig.say("push", push(A))
    rig.hook("push", push(B))
    rig.commit(B, build=job("build"))
    rig.twin.run()
    assert len(rig.fake.runs) == 3
    rig.commit("e" * 40, build=job("build"))
    rig.hook("push", push("e" * 40))
    rig.step({"delivery": rig.id})
    rig.step({"set": [55, "e" * 40]})
    rig.repo.files.pop("e" * 40)
    rig.twin.run()
    assert len(rig.fake.runs) == 3
    assert rig.checks("e" * 40)["build"].due is None
