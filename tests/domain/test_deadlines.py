"""Until when a job may run, and more time for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.jobs import deadlines, jobs
from penstock.domain.jobs.jobs import SETTLE_WITHIN, State
from tests.domain.helpers import MINUTE, NOW, job

RUNNING = jobs.start(job(state=State.ACQUIRING), "w-1", NOW, health=5)


def test_a_running_job_ends_its_timeout_after_its_start() -> None:
    assert deadlines.ends(RUNNING) == NOW + timedelta(seconds=600)
    assert deadlines.ends(job()) is None
    assert deadlines.ends(replace(RUNNING, times=replace(RUNNING.times, started=None))) is None


def test_it_is_due_once_its_agent_must_have_ended_it() -> None:
    assert RUNNING.due == NOW + timedelta(seconds=600 + 30 + 5) + SETTLE_WITHIN


@pytest.mark.parametrize(("seconds", "timeout"), [(600, 900), (301, 601), (300, 600), (1, 600)])
def test_more_time_counts_from_now_and_is_never_less(seconds: int, timeout: int) -> None:
    after = deadlines.extend(RUNNING, seconds, NOW + 5 * MINUTE)
    assert (after.limits.timeout, after.limits.extended) == (timeout, timeout - 600)
    assert after.due == NOW + timedelta(seconds=timeout + 30 + 5) + SETTLE_WITHIN
    assert (after == RUNNING) == (timeout == 600)


def test_what_does_not_run_yet_has_it_from_its_start() -> None:
    after = deadlines.extend(job(due=NOW), 900, NOW + 5 * MINUTE)
    assert (after.limits.timeout, after.limits.extended, after.due) == (900, 300, NOW)
    again = deadlines.extend(replace(after, times=replace(after.times, started=NOW)), 1000, NOW + 5 * MINUTE)
    assert (again.limits.timeout, again.limits.extended) == (1000, 400)  # the start was of another attempt


def test_clocks_that_differ_shorten_nothing() -> None:
    assert deadlines.extend(RUNNING, 700, NOW - MINUTE).limits.timeout == 700
