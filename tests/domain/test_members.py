"""Which jobs are of a set."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.jobs.jobs import Provenance
from penstock.domain.jobs.members import Member, is_set_id, member_of
from tests.domain.helpers import job

BY_HAND, CHECKED = Provenance(), Provenance(check="check#1")
SHA = "a" * 40


@pytest.mark.parametrize(
    ("tags", "provenance", "found"),
    [
        ({"set": "s-1"}, BY_HAND, "s-1"),
        ({"set": "s-1", "commit": "abc"}, CHECKED, "abc"),
        ({"set": "s-1"}, CHECKED, None),
        ({"commit": SHA}, CHECKED, SHA),
        ({"set": SHA}, BY_HAND, SHA),
        ({"commit": "abc"}, CHECKED, "abc"),
        ({"commit": "abc"}, BY_HAND, None),
        ({"branch": "main"}, CHECKED, None),
        ({}, BY_HAND, None),
        ({"set": ""}, BY_HAND, None),
        ({"set": "a/b"}, BY_HAND, None),
    ],
)
def test_a_job_is_of_the_set_that_its_submitter_or_the_front_end_says(
    tags: dict[str, str], provenance: Provenance, found: Any
) -> None:
    """SEC-2: of a commit it is only by the word of the front end."""
    row = member_of(job(tags=tags, provenance=provenance), {"os": "a"})
    assert (row and row.set) == found
    assert row is None or row == Member(owner="ada", set=str(found), job="J1", matrix={"os": "a"})


@pytest.mark.parametrize(("set", "is_of_it"), [(SHA, False), (SHA + "b" * 24, False), (SHA + "b", True), ("s-1", True)])
def test_nobody_puts_a_job_by_hand_into_the_set_of_a_repositorys_commit(set: str, is_of_it: bool) -> None:
    """SEC-2: that set is the commit's own checks."""
    row = member_of(job(owner="oxide:hubris", tags={"set": set}), {})
    assert (row is not None) == is_of_it


def test_the_check_of_a_repositorys_commit_is_of_its_set() -> None:
    row = member_of(job(owner="oxide:hubris", tags={"commit": SHA}, provenance=CHECKED), {})
    assert row
    assert row.set == SHA


@pytest.mark.parametrize("id", ["3f2a91c07b44", "a" * 100, "A-b.c_d:e@f"])
def test_an_id_can_stand_in_an_address(id: str) -> None:
    assert is_set_id(id)


@pytest.mark.parametrize("id", ["", "a" * 101, "a/b", "a#b", "a b", "ä", "a\n"])
def test_nothing_else_is_an_id(id: str) -> None:
    assert not is_set_id(id)
