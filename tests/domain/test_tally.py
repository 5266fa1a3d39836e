"""How many jobs an owner has and submits: the limits, one job counted for many, and a bucket that leaks."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.site.site import Limits
from penstock.domain.users import users
from penstock.domain.users.users import Tally
from penstock.kernel import rows
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Key
from tests.domain.helpers import NOW, SECOND

FEW = Limits(jobs=5, submits=4)


def row(jobs: int = 0, submits: float = 0.0) -> Tally:
    return Tally(owner="ada", jobs=jobs, submits=submits, at=NOW)


def refused(found: Tally, limits: Limits = FEW, after: timedelta = timedelta()) -> str:
    try:
        users.check_tally(found, limits, NOW + after)
    except Refused as why:
        return why.code if why.status == 429 else f"{why.status}"
    return ""


def test_a_tally_is_a_row_of_its_owners() -> None:
    assert Tally(owner="oxide:hubris", at=NOW).key == Key("tally#oxide:hubris", "tally")


@pytest.mark.parametrize(("jobs", "code"), [(0, ""), (4, ""), (5, "too-many-jobs"), (6, "too-many-jobs")])
def test_an_owner_has_so_many_jobs_at_most(jobs: int, code: str) -> None:
    assert refused(row(jobs)) == code


@pytest.mark.parametrize(
    ("submits", "seconds", "code"),
    [
        (3, 0, ""), (3.1, 0, "too-many-submits"), (4, 0, "too-many-submits"), (4, 14, "too-many-submits"), (4, 15, ""),
        (7, 59, "too-many-submits"), (7, 60, ""), (4, -60, "too-many-submits"), (1e9, 0, "too-many-submits"),
    ],
)  # fmt: skip
def test_an_owner_submits_so_many_a_minute_at_most(submits: float, seconds: int, code: str) -> None:
    """Four a minute: one place comes free each 15 seconds."""
    assert refused(row(submits=submits), after=seconds * SECOND) == code


def test_what_is_refused_says_what_to_do() -> None:
    with pytest.raises(Refused, match=r"ada has about 5 jobs .* the limit is 5 \(limits.jobs\): wait for some of them"):
        users.check_tally(row(5), FEW, NOW)
    with pytest.raises(Refused, match=r"too many jobs in the last minute; the limit is 4 \(limits.submits\): wait"):
        users.check_tally(row(submits=4), FEW, NOW)


def test_a_submit_is_added_and_an_end_taken_away() -> None:
    late = NOW + 15 * SECOND
    assert users.with_job(row(2, 3.0), 1, 0, FEW, late) == Tally(owner="ada", jobs=3, submits=3.0, at=late)
    assert users.with_job(row(0, 0.5), 20, 7, FEW, late) == Tally(
        owner="ada", jobs=20, submits=20.0, scripts=7.0, at=late
    )
    assert users.without_job(row(3, 2.0), 1, begun=False) == row(2, 2.0)
    assert users.without_job(row(1), 20, begun=False) == row(0)


@pytest.mark.parametrize(
    ("jobs", "submits", "weight"), [(1, 1000, 1), (99, 1000, 1), (100, 1000, 2), (10_000, 1000, 20), (10_000, 50, 1)]
)
def test_where_limits_are_low_every_job_is_counted(jobs: int, submits: int, weight: int) -> None:
    limits, dice = Limits(jobs=jobs, submits=submits), random.Random(1)
    found = [users.weight_of(rows.ulid(NOW, dice.randbytes(10)), limits) for _ in range(4000)]
    assert set(found) == ({1} if weight == 1 else {0, weight})
    assert sum(found) == pytest.approx(4000, rel=0.15), "right on average"


def test_who_is_counted_for_many_is_not_told_apart_by_chance() -> None:
    """The same job always is, or never: a commit that is tried again counts the same."""
    job = rows.ulid(NOW, bytes(10))
    assert len({users.weight_of(job, Limits()) for _ in range(5)}) == 1
    assert replace(row(), owner="bea").key != row().key


def test_a_job_under_way_is_taken_away_when_it_ends() -> None:
    assert users.without_job(Tally(owner="ada", at=NOW, jobs=2, begun=2), 1, begun=True).begun == 1
    assert users.without_job(Tally(owner="ada", at=NOW), 0, begun=True).begun == 0


def test_bytes_are_refused_above_the_limit_and_submits_at_it() -> None:
    limits, full = Limits(stored_bytes=100), Tally(owner="ada", at=NOW, stored=100)
    users.check_bytes(Tally(owner="ada", at=NOW, stored=60), 40, limits)
    with pytest.raises(
        Refused, match=r"take about 100 bytes; the limit is 100 \(limits.stored_bytes\): `penstock job discard"
    ):
        users.check_bytes(full, 1, limits)
    users.check_tally(users.with_bytes(full, -1), limits, NOW)
    with pytest.raises(Refused) as told:
        users.check_tally(full, limits, NOW)
    assert (told.value.status, told.value.code) == (429, "too-many-bytes")
    assert users.with_bytes(full, -101).stored == 0


@pytest.mark.parametrize("size", [1, 100, 1999, 2000, 5000])
def test_small_files_are_counted_for_each_other_and_large_ones_exactly(size: int) -> None:
    most = 10**7  # a step of 2,000 bytes
    counted = [users.bytes_counted(f"{number:026d}.J", size, most) for number in range(20_000)]
    assert set(counted) <= {0, max(size, 2000)}
    assert sum(counted) == pytest.approx(size * 20_000, rel=0.5 if size == 1 else 0.05)
    assert size < 2000 or min(counted) == size


def test_scripts_of_a_day_have_a_limit_that_comes_back_little_by_little() -> None:
    limits = Limits(script_bytes=2400)
    full = users.with_job(Tally(owner="ada", at=NOW), 0, 2400, limits, NOW)
    with pytest.raises(Refused, match=r"the limit is 2400 bytes \(limits.script_bytes\): wait an hour") as told:
        users.check_tally(full, limits, NOW)
    assert (told.value.status, told.value.code) == (429, "too-many-bytes")
    users.check_tally(full, limits, NOW + SECOND)
    after = users.with_job(full, 0, 50, limits, NOW + 3600 * SECOND)
    assert after.scripts == pytest.approx(2400 - 100 + 50)
    assert users.with_job(full, 0, 0, limits, NOW + 48 * 3600 * SECOND).scripts == 0
