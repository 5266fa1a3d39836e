"""How long what a job owns is kept: by its outcome, and for the jobs that depend on it. [ART-1] [ART-2]"""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.artifacts import retention
from penstock.domain.artifacts.retention import Retention, Spans, retention_key
from penstock.domain.jobs import jobs
from penstock.domain.jobs.jobs import Job, Outcome
from penstock.domain.site.sections import format_span
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Key
from tests.domain.helpers import NOW, job

OPEN = Retention(job="J")
HOUR = timedelta(hours=1)


def settled(outcome: Outcome) -> Job:
    return jobs.settle(job(), outcome, "it ended", NOW)


@pytest.mark.parametrize(
    ("outcome", "spans", "days"),
    [
        (Outcome.SUCCEEDED, Spans(), 30),
        (Outcome.FAILED, Spans(), 14),
        (Outcome.ERRORED, Spans(), 14),
        (Outcome.CANCELLED, Spans(), 7),
        (Outcome.CANCELLED, Spans(cancelled=2 * retention.DAY), 2),
    ],
)
def test_from_its_end_on_it_is_kept_for_as_long_as_its_outcome_says(outcome: Outcome, spans: Spans, days: int) -> None:
    row = retention.settled(OPEN, settled(outcome), spans)
    assert (row.until, row.deadline) == (NOW + timedelta(days=days),) * 2


def test_an_unsettled_job_keeps_what_it_owns() -> None:
    assert retention.settled(OPEN, job(), Spans()) is OPEN
    assert (OPEN.end, OPEN.deadline, OPEN.key) == (None, None, Key("job#J", "retention"))
    assert retention_key("J") == OPEN.key


def test_the_first_end_stands() -> None:
    row = replace(OPEN, until=NOW)
    assert retention.settled(row, settled(Outcome.FAILED), Spans()) is row


def test_a_jobs_own_row_tells_of_a_time_and_of_nothing_more() -> None:
    """ART-1: exactly one row tells at a time."""
    over = settled(Outcome.SUCCEEDED)
    row = retention.settled(Retention(job="J1"), over, Spans())
    told = retention.tell(over, row)
    assert retention.told_by(over) is None
    assert retention.told_by(told) == row
    assert (told.deadline, told.is_later, told.due) == (row.until, True, None)
    ended = retention.tell(told, replace(row, ended=NOW + HOUR))
    assert retention.told_by(ended) == replace(row, ended=NOW + HOUR)
    assert (ended.end.outputs_gone, retention.hand_over(ended).end.outputs_gone) == (NOW + HOUR,) * 2
    for over_now in (retention.hand_over(told), retention.hand_over(ended)):
        assert (retention.told_by(over_now), over_now.deadline) == (None, None)


def test_who_tells_of_a_retention() -> None:
    row = Retention(job="J1", until=NOW)
    over = settled(Outcome.SUCCEEDED)
    told = retention.tell(over, row)
    assert retention.teller(row, told) is told
    assert retention.teller(row, over) is row
    assert retention.teller(row, None) is row


@pytest.mark.parametrize(
    ("more", "short"), [({}, True), ({"dependents": ("D",)}, False), ({"longer": NOW}, False), ({"look": NOW}, False)]
)
def test_what_is_more_than_a_time_needs_a_row_of_its_own(more: dict[str, Any], short: bool) -> None:
    assert retention.is_short(replace(OPEN, until=NOW, **more)) is short


def test_the_longer_time_of_a_latest_failure_never_shortens() -> None:
    assert replace(OPEN, until=NOW, longer=NOW + HOUR).deadline == NOW + HOUR
    assert replace(OPEN, until=NOW, longer=NOW - HOUR).deadline == NOW


def test_what_others_depend_on_is_only_looked_at() -> None:
    row = replace(OPEN, until=NOW, dependents=("D",))
    assert row.deadline == NOW
    assert replace(row, look=NOW + HOUR).deadline == NOW + HOUR
    assert replace(row, look=NOW - HOUR).deadline == NOW
    assert replace(row, look=NOW + HOUR, dependents=()).deadline == NOW


def test_what_is_being_taken_apart_stays_due() -> None:
    assert replace(OPEN, until=NOW + HOUR, ended=NOW).deadline == NOW


def test_what_is_still_kept_cannot_be_ended() -> None:
    row = replace(OPEN, until=NOW)
    assert retention.end(row, NOW).ended == NOW
    for still in (OPEN, replace(row, until=NOW + HOUR), replace(row, dependents=("D",))):
        with pytest.raises(ValueError, match="still kept"):
            retention.end(still, NOW)


def test_what_is_looked_at_is_looked_at_again() -> None:
    row = retention.recheck(replace(OPEN, until=NOW, dependents=("D", "E")), ("E",), Spans(look=7200), NOW)
    assert (row.dependents, row.deadline) == (("E",), NOW + 2 * HOUR)


def test_only_a_failure_is_a_latest_failure() -> None:
    found = retention.failure(settled(Outcome.FAILED))
    assert found
    assert (found.key, found.job, found.settled) == (Key("latest#ada/build", "failure"), "J1", NOW)
    assert retention.longer(OPEN, found, Spans()).longer == NOW + timedelta(days=90)
    assert retention.failure(settled(Outcome.ERRORED)) is None
    assert retention.failure(job()) is None


def pinned(row: Retention, dependent: str) -> Retention:
    found = retention.pinned(row, dependent)
    assert isinstance(found, Retention)
    return found


def test_a_dependent_pins_once_and_leaves_once() -> None:
    row = pinned(pinned(OPEN, "D"), "E")
    assert row.dependents == ("D", "E")
    assert pinned(row, "D") is row
    row = retention.unpinned(row, "D")
    assert row.dependents == ("E",)
    assert retention.unpinned(row, "D") is row


def test_nobody_depends_on_what_is_being_taken_apart() -> None:
    found = retention.pinned(replace(OPEN, ended=NOW), "D")
    assert isinstance(found, Refused)
    assert (found.status, found.code) == (422, "outputs-gone")
    assert f"are gone since {NOW:%Y-%m-%d}" in found.detail


def test_no_more_depend_on_a_job_than_its_row_has_room_for() -> None:
    names = tuple(map(str, range(limits.DEPENDENTS)))
    row = replace(OPEN, dependents=names)
    assert pinned(row, "0") is row
    assert len(pinned(replace(row, dependents=names[1:]), "D").dependents) == limits.DEPENDENTS
    found = retention.pinned(row, "D")
    assert isinstance(found, Refused)
    assert (found.status, found.code) == (409, "too-many-dependents")
    assert "at most 1000 unsettled jobs may depend on one" in found.detail


@pytest.mark.parametrize(
    ("seconds", "text"), [(1, "1 second"), (90, "90 seconds"), (60, "1 minute"), (7200, "2 hours"), (86400, "1 day")]
)
def test_bounds_are_spelled_in_their_largest_unit(seconds: int, text: str) -> None:
    assert format_span(seconds) == text


def test_every_default_is_within_its_bounds() -> None:
    for each in fields(Spans):
        rule = each.metadata["rule"]
        assert 0 < rule.least <= each.default <= rule.most


def test_what_is_discarded_ends_at_once_whatever_keeps_it_longer() -> None:
    row = Retention(job="J", until=NOW + 24 * HOUR, longer=NOW + 99 * HOUR, dependents=("D",), look=NOW + HOUR)
    after = retention.discard(row, "ada", NOW)
    assert (after.ended, after.end, after.dependents, after.deadline) == (NOW, NOW, (), NOW)
    assert after.discarded_by == "ada"


@pytest.mark.parametrize(
    ("by", "says"),
    [("ada", "ada discarded what the job had"), (None, "the site keeps what a job had for a limited time")],
)
def test_what_is_gone_says_since_when_and_why(by: str | None, says: str) -> None:
    found = retention.outputs_gone("J1", NOW, by)
    assert found.detail == f"the outputs of job J1 are gone since {NOW:%Y-%m-%d %H:%M} UTC: {says}"
