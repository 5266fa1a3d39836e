"""Leases without a job: when they begin, how long they last, and how they end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from penstock.domain.jobfile import JobFile
from penstock.domain.jobs import admission, bare_leases, deadlines, jobs, outcome, places, plans
from penstock.domain.jobs.failures import Kind
from penstock.domain.jobs.jobs import Job, JobLimits, Outcome, Report, Request, Result, State
from penstock.domain.metrics import Count, attempt_ended
from penstock.domain.pools import shares, why
from penstock.domain.pools.pools import HoldTimes, Need
from penstock.testing.site import site
from tests.domain.helpers import NOW, job

BENCH = Need(1, 1, "bench", "bench", "resource/bench", "locks")
LICENCE = Need(2, 2, "licence", "licence", "resource/licence", "locks")
HOUR = timedelta(hours=1)


def lease(**changes: Any) -> Job:
    """A lease of two things, which has got both."""
    asked = Request(target="", target_resolved="", needs=(BENCH, LICENCE))
    limits = JobLimits(timeout=3600, queue_seconds=600, grace=0)
    return job(**{"state": State.ACQUIRING, "request": asked, "limits": limits, "name": "lease", **changes})


HELD = bare_leases.begin(lease(), NOW)


def test_it_is_held_from_its_begin_for_as_long_as_was_asked() -> None:
    assert (HELD.state, HELD.times.acquired, HELD.started) == (State.RUNNING, NOW, NOW)
    assert HELD.due == deadlines.ends(HELD) == NOW + HOUR
    assert deadlines.ends(lease()) is None
    assert deadlines.ends(replace(HELD, times=replace(HELD.times, started=None))) is None


def test_it_is_put_back_at_the_latest_when_it_has_waited_and_lasted_as_long_as_it_may() -> None:
    assert jobs.latest_end(lease(), NOW) == NOW + timedelta(seconds=600) + HOUR
    assert jobs.latest_end(HELD, NOW + timedelta(minutes=1)) == HELD.due


def test_a_renewal_moves_its_end_at_once() -> None:
    longer = deadlines.extend(HELD, 3600, NOW + timedelta(minutes=20))
    assert (longer.limits.timeout, longer.due) == (4800, NOW + timedelta(minutes=80))


def test_a_release_is_a_success_and_the_end_of_its_time_a_failure() -> None:
    done = outcome.conclude(bare_leases.released(HELD, "ada", NOW), None, None, NOW)
    assert (done.end.outcome, done.end.reason) == (Outcome.SUCCEEDED, "released by ada")
    late = outcome.conclude(bare_leases.expired(HELD, NOW + HOUR), None, None, NOW + HOUR)
    assert (late.end.outcome, late.run.failure and late.run.failure.kind) == (Outcome.FAILED, Kind.TIMED_OUT)
    assert late.end.reason == "it was neither released nor renewed by 2026-01-02 04:04:05Z"
    assert outcome.describe_duration(late) == "took 3600 s, 3600 s of it since it was held"
    waiting = bare_leases.expired(lease(), NOW)
    assert waiting.run.report
    assert waiting.run.report.reason.endswith("by 2026-01-02 03:04:05Z")


def test_what_is_lost_is_tried_again_only_until_it_is_held() -> None:
    lost = Report(Result.LOST, "it burnt", NOW)
    held = outcome.conclude(jobs.report(HELD, lost), None, None, NOW)
    assert held.end.outcome is Outcome.ERRORED
    assert outcome.conclude(lease(), "Lost", "it burnt", NOW).state is State.QUEUED


def test_it_is_listed_apart_from_jobs_and_known_by_its_noun() -> None:
    assert (HELD.place.name, job().place.name) == ("leases#ada", "jobs#ada")
    assert (HELD.noun, job().noun) == ("lease", "job")
    assert places.every_listing("ada") == [*places.listings("ada"), "leases#ada"]
    assert plans.steps_of(HELD) == [1, 2]


def test_metrics_name_no_target_of_it() -> None:
    done = outcome.conclude(bare_leases.released(HELD, "ada", NOW), None, None, NOW)
    assert (HELD.request.shown_target, job().request.shown_target) == ("(lease)", "ubuntu")
    (settled,) = attempt_ended(outcome.Ending(HELD, done, (), None, is_overdue=False))
    assert isinstance(settled, Count)
    assert settled.by == {"target": "(lease)", "outcome": "succeeded"}


def test_its_time_is_over_at_its_end() -> None:
    assert not bare_leases.is_over(HELD, NOW + HOUR - timedelta(seconds=1))
    assert bare_leases.is_over(HELD, NOW + HOUR)
    assert not bare_leases.is_over(lease(), NOW + HOUR)


def test_why_says_until_when_its_owner_has_it() -> None:
    assert why.explain(HELD, [], None).summary == "ada has it until 2026-01-02 04:04:05Z"
    cancelled = jobs.cancel(HELD, "root", NOW)
    assert why.explain(cancelled, [], None).summary.endswith("04:04:05Z and is being cancelled")
    assert why.explain(lease(), [], None).summary == "the lease is about to take its next step"


def test_its_use_is_expected_from_all_that_it_asks_for() -> None:
    assert shares.expected_seconds(HELD, HoldTimes(pool="resource/bench", holds=1, mean_hold=60.0)) == 120


def test_it_needs_the_privileges_of_its_types_and_of_no_target() -> None:
    found = site(
        targets={"linux": {"limit": 1, "privilege": "target.linux"}, "default": "linux"},
        wells={"locks": "lock"},
        resources={"bench": {"well": "locks", "limit": 1, "privilege": "resource.bench"}},
    )
    file = JobFile(path="", script="", target="", resources=())
    assert admission.privileges(found, file, HELD.request.needs) == {}
    assert admission.check_types(found, ()) is None
