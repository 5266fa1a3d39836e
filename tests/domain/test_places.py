"""Where jobs are listed, and what an entry says of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.jobs import jobs, places
from penstock.domain.jobs.jobs import Outcome, Request, State, settle, start
from penstock.kernel import limits
from penstock.kernel.rows import Look
from tests.domain.helpers import NOW, job

ID = "01KDVDNA02G83EFRTNJJN6PQ8A"
SET: Mapping[str, str] = {"set": "s1", "kind": "build"}


def sort(name: str = "build", tags: Mapping[str, str] = SET, target: str = "default") -> str:
    return jobs.place_sort(ID, name, Request(target, "ubuntu", (), tags=tags))


@pytest.mark.parametrize(
    ("outcome", "name"),
    [("", "jobs#ada"), ("succeeded", "jobs#ada"), *((word, f"jobs#ada#{word}") for word in jobs.APART)],
)
def test_who_did_not_succeed_is_listed_apart(outcome: str, name: str) -> None:
    assert jobs.listing("ada", outcome) == name
    assert name in places.listings("ada")
    assert len(places.listings("ada")) == 4
    assert set(jobs.APART) == set(Outcome) - {Outcome.SUCCEEDED}


def test_an_entry_has_the_id_first_and_says_what_never_changes() -> None:
    assert sort(tags={}) == f"{ID}##default,ubuntu#build"
    assert sort(tags={}, target="ubuntu") == f"{ID}##ubuntu#build"
    assert len(sort()) == len(sort(tags={})) + 8
    assert places.id_in(sort()) == ID


@pytest.mark.parametrize(
    ("name", "target", "tags", "may"),
    [
        ("", "", {}, True),
        ("build", "default", SET, True),
        ("b*", "ubuntu", {"set": "s1"}, True),
        ("test", "", {}, False),
        ("", "debian", {}, False),
        ("", "def", {}, False),
        ("", "", {"set": "s2"}, False),
        ("", "", {"set": "s1", "more": "1"}, False),
    ],
)
def test_an_entry_rules_out_what_is_not_looked_for(name: str, target: str, tags: Mapping[str, str], may: bool) -> None:
    assert places.may_match(sort(), name, target, tags) is may


def test_what_has_no_room_in_an_entry_only_the_row_says() -> None:
    fits, over = "n" * jobs.PLACED_NAME, "n" * (jobs.PLACED_NAME + 1)
    assert not places.may_match(sort(fits), "x", "", {})
    assert places.may_match(sort(over), "x", "", {})
    tags = {f"t{number}": "v" for number in range(jobs.PLACED_TAGS)}
    assert not places.may_match(sort(tags=tags), "", "", {"a": "b"})
    assert places.may_match(sort(tags={**tags, "one": "more"}), "", "", {"a": "b"})


def test_a_job_that_was_listed_before_listings_said_anything_is_found_by_its_row() -> None:
    assert places.may_match(ID, "build", "linux", {"a": "b"})


def test_a_name_may_have_what_divides_an_entry() -> None:
    assert places.may_match(sort("a#b,c"), "a#b,c", "default", SET)


def test_the_longest_place_is_no_longer_than_a_key_may_be() -> None:
    name, target = "🦀" * jobs.PLACED_NAME, "t" * 64
    tags = {f"t{number}": "v" for number in range(jobs.PLACED_TAGS)}
    place = jobs.place_sort(ID, name, Request(target, "u" * 64, (), tags=tags))
    assert len(place.encode()) <= limits.SORT_KEY_BYTES


MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("minutes", [4, 5, 6])
def test_an_entry_that_lasts_is_right_and_is_written_where_it_would_not_be(minutes: int) -> None:
    look, lasts = Look(NOW + minutes * MINUTE, tag="acquiring"), minutes > 5
    assert places.is_sure(look, NOW) is lasts
    queued = job(state=State.ACQUIRING)
    assert start(queued, "w-1", NOW).outgrew(look) is lasts
    assert not start(queued, "w-1", NOW).outgrew(replace(look, tag="running"))
    assert not queued.outgrew(replace(look, tag="queued"))
    assert not places.is_sure(Look(NOW + minutes * MINUTE), NOW)
    ended = settle(start(queued, "w-1", NOW - 9 * MINUTE), Outcome.SUCCEEDED, "it ended", NOW)
    assert ended.outgrew(look) is lasts, "it counts from its end, and no longer from its start"
