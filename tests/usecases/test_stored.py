"""The limit of what one owner's inputs and outputs take, over the real use cases: what goes makes room."""

from __future__ import annotations

import hashlib

import pytest

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.commands import AgentFile, NewInput, SubmitJob
from penstock.domain.jobs.jobs import Job
from penstock.domain.users.users import Tally, User, tally_key
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.artifacts import expire, inputs, outputs
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.site import apply
from penstock.usecases.workers import agents
from tests.usecases.outputs import files
from tests.usecases.races import before_the_next_write_of
from tests.usecases.retained_jobs import tidy
from tests.usecases.steps import SCRIPT, TOKEN, hello, job_of, run_to_end, submit

BEA = User(name="bea", created=START, version=1)
MOST = 1000


@pytest.fixture
def small(twin: Twin) -> Twin:
    """A site where an owner keeps a thousand bytes."""
    set_limit(twin, MOST)
    return twin


def set_limit(twin: Twin, most: int) -> None:
    text = site_toml(targets={"default": {"limit": 9}}, limits={"stored_bytes": most})
    apply.apply(twin.on, "root", text, "site.toml")
    twin.run()


def stored(twin: Twin, owner: str = "ada") -> int:
    row = twin.store.get(tally_key(owner), Tally)
    return row.stored if row else 0


def running(twin: Twin, user: User) -> Job:
    job = submit(twin, user)
    twin.run()
    hello(twin, job)
    return job_of(twin, job)


def file(size: int, name: str = "/work/it") -> AgentFile:
    return AgentFile(name, size=size, sha256=hashlib.sha256(b"x" * size).hexdigest())


def keep(twin: Twin, job: Job, size: int) -> None:
    """A running job's agent sends a file of so many bytes."""
    (upload,) = outputs.begin(twin.on, agents.authenticate(twin.on, job.id, TOKEN).job, [file(size)]).uploads
    twin.objects.store(object_name(upload.id), b"x" * size)
    outputs.commit(twin.on, job, [upload.id])


def test_an_owner_keeps_no_more_than_the_limit_and_others_are_not_in_its_way(small: Twin, ada: User) -> None:
    keep(small, running(small, ada), MOST - 1)
    other = running(small, ada)
    outputs.begin(small.on, other, [file(1)])
    with pytest.raises(Refused, match="take about 1000 bytes; the limit is 1000") as told:
        outputs.begin(small.on, other, [file(1, "/work/more")])
    assert (told.value.status, told.value.code) == (413, "too-many-bytes")
    outputs.begin(small.on, running(small, BEA), [file(MOST)])
    assert (stored(small), stored(small, "bea")) == (MOST, MOST)


def test_files_of_one_call_are_refused_together_and_leave_nothing(small: Twin, ada: User) -> None:
    job = running(small, ada)
    before = dict(small.store.rows)
    with pytest.raises(Refused, match=r"limits\.stored_bytes"):
        outputs.begin(small.on, job, [file(MOST // 2, f"/work/{n}") for n in range(3)])
    assert small.store.rows == before


def test_who_keeps_as_much_as_there_may_be_submits_nothing(small: Twin, ada: User) -> None:
    keep(small, running(small, ada), MOST)
    with pytest.raises(Refused) as told:
        submit(small, ada)
    assert (told.value.status, told.value.code) == (429, "too-many-bytes")
    assert submit(small, BEA)


def test_inputs_count_as_outputs_do_and_naming_them_again_counts_nothing(small: Twin, ada: User) -> None:
    job = job_of(small, jobs_submit.submit(small.on, ada, SubmitJob(SCRIPT, inputs=["a", "b"]), None))
    for _ in range(2):
        inputs.begin(small.on, job, NewInput("a", size=600, sha256="0" * 64))
        assert stored(small) == 600
    with pytest.raises(Refused) as told:
        inputs.begin(small.on, job, NewInput("b", size=401, sha256="0" * 64))
    assert told.value.code == "too-many-bytes"
    inputs.begin(small.on, job, NewInput("b", size=400, sha256="0" * 64))
    assert stored(small) == MOST


def test_naming_an_output_again_counts_nothing(small: Twin, ada: User) -> None:
    job = running(small, ada)
    for _ in range(3):
        outputs.begin(small.on, job, [file(MOST)])
    assert stored(small) == MOST


def test_what_is_deleted_makes_room_once_its_bytes_are_gone(small: Twin, ada: User) -> None:
    job = running(small, ada)
    keep(small, job, 900)
    outputs.begin(small.on, job, [file(100, "/work/never-sent")])
    assert stored(small) == MOST
    run_to_end(small, job.id)
    small.run()
    small.objects.delete, delete = lambda name: None, small.objects.delete  # type: ignore[method-assign]
    small.pass_time(31 * 24 * 3600)
    tidy(small, times=3)
    assert stored(small) >= 900, "its bytes are still there"
    small.objects.delete = delete  # type: ignore[method-assign]
    small.pass_time(3600)
    tidy(small)
    assert stored(small) == 0
    assert submit(small, ada)


@pytest.mark.parametrize("before", [0, 10])
def test_two_uploads_at_once_are_both_counted(small: Twin, ada: User, before: int) -> None:
    job = running(small, ada)
    if before:
        outputs.begin(small.on, job, [file(before)])
    other = file(600, "/work/other")
    before_the_next_write_of(small, Tally, lambda: outputs.begin(small.on, job, [other]))
    with pytest.raises(Refused):
        outputs.begin(small.on, job, [file(600, "/work/third")])
    outputs.begin(small.on, job, [file(300, "/work/fourth")])
    assert stored(small) == before + 900


def test_what_was_counted_is_taken_away_whatever_the_limit_is_by_then(small: Twin, ada: User) -> None:
    job = running(small, ada)
    outputs.begin(small.on, job, [file(500)])
    set_limit(small, 10**13)
    small.pass_time(2 * 24 * 3600)
    for _ in range(3):
        expire.expire_overdue(small.on)
    assert stored(small) == 0


def test_an_upload_whose_makers_tally_is_gone_is_deleted(small: Twin, ada: User) -> None:
    outputs.begin(small.on, running(small, ada), [file(500)])
    del small.store.rows[tally_key("ada")]
    small.pass_time(2 * 24 * 3600)
    assert expire.expire_overdue(small.on).failed == 0
    assert not small.store.rows.get(tally_key("ada"))


def test_with_a_high_limit_small_files_write_no_tally(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job, files(50))
    assert stored(twin) == 0


def test_an_upload_and_a_deletion_at_once_are_both_counted(small: Twin, ada: User) -> None:
    job = running(small, ada)
    outputs.begin(small.on, job, [file(500)])
    small.pass_time(2 * 24 * 3600)
    before_the_next_write_of(small, Tally, lambda: outputs.begin(small.on, job, [file(300, "/work/other")]))
    expire.expire_overdue(small.on)
    assert stored(small) == 300


def test_what_counts_for_nothing_goes_without_a_write_of_the_tally(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job, files(3))
    twin.store.commit([Create(Tally(owner="ada", at=START, stored=7))])
    twin.pass_time(2 * 24 * 3600)
    for _ in range(3):
        expire.expire_overdue(twin.on)
    assert not [row for row in twin.store.rows.values() if isinstance(row, Artifact)]
    row = twin.store.get(tally_key("ada"), Tally)
    assert row
    assert (row.stored, row.version) == (7, 1)
