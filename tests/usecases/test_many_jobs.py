"""Of a hundred thousand jobs, how many rows a list reads for those that it shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.jobs.jobs import Job
from penstock.domain.users.users import User
from penstock.kernel.rows import born
from penstock.system import System
from penstock.testing.twin import Twin
from penstock.usecases.jobs import listing
from penstock.usecases.jobs.listing import Wanted
from tests.usecases.manyjobs import MANY, CountedStore, store_of_many

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("many")]  # one process makes the rows, which takes 10 s


@pytest.fixture(scope="module")
def many() -> CountedStore:
    return store_of_many()


@pytest.fixture
def on(many: CountedStore) -> System:
    twin = Twin()
    twin.world.time = max(born(row.id) for row in many.rows.values() if isinstance(row, Job))
    many.read.clear()
    many.looked = 0
    return replace(twin.on, store=many)


QUERIES = [
    Wanted(),
    *(Wanted(state=word) for word in ("waiting", "running", "settled", "succeeded", "failed")),
    Wanted(name="build*"),
    Wanted(name="build-illumos", state="failed"),
    Wanted(target="lab"),
    Wanted(tags={"rare": "yes"}),
    Wanted(target="lab", state="cancelled"),
]


@pytest.mark.parametrize(
    ("owner", "wanted"),
    [*(("ada", wanted) for wanted in QUERIES), *((None, wanted) for wanted in QUERIES[:3])],
    ids=str,
)
def test_of_a_hundred_thousand_jobs_no_more_rows_are_read_than_twice_those_shown(
    wanted: Wanted, owner: str | None, on: System, many: CountedStore, root: User
) -> None:
    shown = _read_through(on, root, owner, wanted, pages=4)
    whole = sorted((job for job in _every(many, owner) if listing.is_wanted(on, job, wanted)), key=_id, reverse=True)
    assert shown, "else the test shows nothing"
    assert [job.id for job in shown] == [job.id for job in whole][: len(shown)]
    assert len(many.read) <= 2 * len(shown)
    assert len(many.rows) >= MANY


def test_since_ends_the_list_and_reads_nothing_before(on: System, many: CountedStore, root: User) -> None:
    now = on.world.now()
    wanted = Wanted(since=now - timedelta(hours=1))
    shown = _read_through(on, root, "ada", wanted, pages=1000)
    assert wanted.since
    assert {job.id for job in shown} == {
        job.id for job in _every(many, "ada") if born(job.id) >= wanted.since.replace(microsecond=0)
    }
    assert len(many.read) == len(shown)
    assert many.looked <= len(shown) + 4 * 20


def test_since_may_be_before_all_time(on: System, root: User) -> None:
    long_ago = on.world.now().replace(year=1900)
    assert listing.list_jobs(on, root, "ada", Wanted(since=long_ago), 3, "")[0]


def _read_through(on: System, user: User, owner: str | None, wanted: Wanted, pages: int) -> list[Job]:
    """The jobs of some pages of fifty."""
    shown: list[Job] = []
    page: str | None = ""
    for _ in range(pages):
        found, page = listing.list_jobs(on, user, owner, wanted, 50, page or "", everybody=owner is None)
        shown += found
        if page is None:
            break
    return shown


def _every(many: CountedStore, owner: str | None) -> list[Job]:
    return [row for row in many.rows.values() if isinstance(row, Job) and owner in (None, row.owner)]


def _id(job: Job) -> str:
    return job.id
