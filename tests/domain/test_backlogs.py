"""Backlogs: the order in which jobs stand there, and how many may go on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.domain.jobs import backlogs
from penstock.domain.jobs.jobs import Job, State
from penstock.domain.pools import why
from penstock.domain.site.site import Limits
from penstock.domain.users.users import Tally
from tests.domain.helpers import NOW
from tests.domain.helpers import job as made_job

TALLY = Tally(owner="ada", at=NOW)


def job(id: str, priority: int = 0) -> Job:
    made = made_job()
    return replace(made, id=id, owner="ada", request=replace(made.request, priority=priority))


def test_a_higher_priority_stands_before_an_older_job() -> None:
    made = [job("B"), job("A"), job("D", 10), job("C", -10)]
    rows = [backlogs.note(each, NOW) for each in made]
    assert [row.job for row in sorted(rows, key=lambda row: row.key.sk)] == ["D", "A", "B", "C"]
    assert [row.key for row in rows] == [backlogs.key_of(each) for each in made]
    assert {row.key.pk for row in rows} == {"backlog#ada"}


@pytest.mark.parametrize(
    ("begun", "at_once", "room"), [(0, 3, 3), (2, 3, 1), (3, 3, 0), (5, 3, 0), (0, 40, 9), (7, 0, 9)]
)
def test_how_many_may_go_on(begun: int, at_once: int, room: int) -> None:
    assert backlogs.room(replace(TALLY, begun=begun), Limits(at_once=at_once), 9) == room


def test_a_job_that_goes_on_is_counted_and_one_that_is_put_off_waits() -> None:
    on, tally = backlogs.begin(job("A"), TALLY)
    assert (on.usage.begun, tally.begun) == (True, 1)
    off = backlogs.put_off(job("A"))
    assert (off.state, off.times.ready, off.usage.begun) == (State.WAITING, None, False)


@pytest.mark.parametrize(
    ("before", "said"), [(0, "none of its other jobs stands"), (1, "1 of its jobs stands"), (7, "7 of its jobs stand")]
)
def test_who_waits_is_told_how_many_stand_before(before: int, said: str) -> None:
    assert why.explain_backlog(job("A"), 3, 2, before).summary == (
        f"the job waits until fewer jobs of ada are under way: 3 are, and 2 may be (limits.at_once); {said} before it"
    )
