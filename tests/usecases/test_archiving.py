"""A settled job's log becomes one object, and whoever reads it misses and doubles nothing. [ART-1] [ART-2]"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest

from penstock.domain.artifacts.artifacts import Artifact, ArtifactState
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.logs import archives
from penstock.domain.logs.logs import Archive, ArchiveState, Batch, Event, Line, archive_key
from penstock.domain.pools.pools import Lease, LeaseState
from penstock.domain.replies import LogFull
from penstock.domain.site.site import Limits
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import expire
from penstock.usecases.logs import archives as logs_archives
from penstock.usecases.logs import logs
from penstock.usecases.site import apply
from penstock.usecases.workers import agents
from tests.usecases.archives import HOUR, ended, is_archived, look, paged, row_of
from tests.usecases.conftest import SITE
from tests.usecases.exact import drop, put, running
from tests.usecases.races import before_the_next_commit
from tests.usecases.retained_jobs import end_of, nothing_is_left, of, tidy
from tests.usecases.steps import TOKEN, finish, job_of, submit, worker_of

pytestmark = pytest.mark.usefixtures("no_log_is_short")


def test_a_log_is_one_object_an_hour_after_its_job_has_settled(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    before = paged(twin, job)
    twin.world.time -= timedelta(seconds=1)
    tidy(twin)
    assert not twin.objects.objects
    twin.pass_time(1)
    tidy(twin)
    assert is_archived(twin, job)
    assert paged(twin, job) == before
    assert [event.seq for event in before] == list(range(1, len(before) + 1))
    (artifact,) = of(twin, Artifact)
    content = twin.objects.objects[object_name(artifact.id)]
    assert (artifact.path, artifact.sha256) == ("/log.jsonl", sha256(content).hexdigest())
    assert archives.decode(content) == before
    assert row_of(twin, job).due is None


def test_a_job_that_goes_on_has_nothing_to_archive(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    assert twin.store.get(archive_key(job), Archive) is None
    logs_archives.advance(twin.on, job)
    assert twin.store.get(archive_key(job), Archive) is None


def test_an_attempt_that_is_followed_by_another_settles_no_log(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    assert logs.on_settled(twin.on, job_of(twin, job)) == []


@pytest.mark.usefixtures("small")
def test_a_log_in_parts_is_the_same(twin: Twin, ada: User) -> None:
    job = ended(twin, ada, 30)
    before = paged(twin, job)
    look(twin, job)
    assert is_archived(twin, job)
    row = row_of(twin, job)
    assert len(row.parts) > 4, "more than one step reads back"
    (artifact,) = of(twin, Artifact)
    assert artifact.sha256 == row.digest == "", "nobody computed the digest of the whole"
    for limit in (1, 7, 1000):
        assert paged(twin, job, limit=limit) == before
    for after in range(len(before) + 1):
        assert logs.read(twin.on, job, after, 1) == before[after : after + 1]
    assert not twin.objects.uploads


class Steps:
    """Calls something before and after every write of rows and every call of the object store."""

    def __init__(self, twin: Twin, act: Callable[[int], object]) -> None:
        self.count = 0
        self.is_acting = False
        for port, names in (
            (twin.store, ("commit",)), (twin.objects, ("store", "begin", "part", "complete", "read", "size"))
        ):  # fmt: skip
            for name in names:
                setattr(port, name, self._around(getattr(port, name), act))

    def _around(self, call: Callable[..., Any], act: Callable[[int], object]) -> Callable[..., Any]:
        def acting(*given: Any) -> Any:
            if self.is_acting:
                return call(*given)
            self._act(act)
            found = call(*given)
            self._act(act)
            return found

        return acting

    def _act(self, act: Callable[[int], object]) -> None:
        self.is_acting, self.count = True, self.count + 1
        try:
            act(self.count)
        finally:
            self.is_acting = False


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("after", [0, 5, 20])
def test_who_reads_at_any_step_reads_the_same(twin: Twin, ada: User, after: int) -> None:
    job = ended(twin, ada)
    before = paged(twin, job, after, 1000)
    steps = Steps(twin, lambda _: checked.append(paged(twin, job, after) == before))
    checked: list[bool] = []
    look(twin, job)
    assert is_archived(twin, job)
    assert len(checked) == steps.count > 20
    assert all(checked)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("limit", [1, 4, 9])
def test_who_is_in_the_middle_of_paging_misses_and_doubles_nothing(twin: Twin, ada: User, limit: int) -> None:
    """Readers begin at every step, and read a page at each of those that follow."""
    job = ended(twin, ada)
    before = paged(twin, job)
    readers: list[list[Event]] = []

    def read_on(_: int) -> None:
        readers.append([])
        for found in readers:
            found += logs.read(twin.on, job, found[-1].seq if found else 0, limit)

    steps = Steps(twin, read_on)
    look(twin, job)
    steps.is_acting = True
    for found in readers:
        found += paged(twin, job, found[-1].seq, limit)
        assert found == before


@pytest.mark.usefixtures("small")
def test_what_is_archived_between_two_reads_of_one_page_is_no_gap(twin: Twin, ada: User) -> None:
    """The log is archived, rows and all, before the first, the second, … row that a reader asks for."""
    for after in (0, 5, 6):
        for at in range(4):
            twin = _anew(twin)
            job = ended(twin, ada)
            before = paged(twin, job)
            _at_call(twin, at, lambda twin=twin, job=job: look(twin, job))  # type: ignore[misc]
            found = logs.read(twin.on, job, after, 1000)
            assert found == before[after:][: len(found)] != []
            assert logs.read(twin.on, job, after, 1) == before[after : after + 1]
            assert paged(twin, job) == before


def _anew(twin: Twin) -> Twin:
    from tests.usecases.conftest import new_twin

    made = new_twin()
    for row in of(twin, User):
        made.store.rows.setdefault(row.key, row)
    return made


def _at_call(twin: Twin, at: int, act: Callable[[], object]) -> None:
    """Let `act` run whole before the read of this number; at the latest with the next page."""
    calls: Iterator[int] = iter(range(at + 1))
    find, get = twin.store.find, twin.store.get

    def before(call: Callable[..., Any]) -> Callable[..., Any]:
        def reading(*given: Any, **how: Any) -> Any:
            if next(calls, None) == at:
                act()
            return call(*given, **how)

        return reading

    twin.store.find, twin.store.get = before(find), before(get)  # type: ignore[method-assign]


def test_a_page_ends_where_rows_were_deleted_while_it_was_read(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    third = sorted(of(twin, Batch), key=lambda batch: batch.first)[3]
    drop(twin, third)
    assert [event.seq for event in logs.read(twin.on, job, 0, 1000)] == list(range(1, third.first))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("batches", [2, 6])
def test_a_crash_at_any_step_costs_nothing_but_time(twin: Twin, ada: User, batches: int) -> None:
    def dies(at: int) -> Callable[[int], None]:
        def act(number: int) -> None:
            if number == at:
                raise ConnectionError

        return act

    for at in range(1, 1000):
        twin = _anew(twin)
        job = ended(twin, ada, batches)
        before = paged(twin, job)
        steps = Steps(twin, dies(at))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(logs_archives.log, "warning", lambda *_, **__: None)
            _survive(twin, job)
        if steps.count < at:
            break
        assert paged(twin, job) == before
        assert is_archived(twin, job)
    assert at > 15


def _survive(twin: Twin, job: str) -> None:
    try:
        look(twin, job)
    except ConnectionError:
        look(twin, job)


@pytest.mark.usefixtures("small")
def test_two_who_archive_at_once_write_one_object(twin: Twin, ada: User) -> None:
    for at in range(1, 1000):
        twin = _anew(twin)
        job = ended(twin, ada, 5)
        before = paged(twin, job)
        steps = Steps(twin, lambda number, at=at, twin=twin, job=job: look(twin, job) if number == at else None)  # type: ignore[misc]
        look(twin, job)
        if steps.count < at:
            break
        assert paged(twin, job) == before
        assert is_archived(twin, job)
    assert at > 15


def test_it_waits_for_what_is_not_given_back_but_not_for_ever(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    (lease,) = of(twin, Lease)
    put(twin, lease, state=LeaseState.RELEASING)
    logs_archives.advance(twin.on, job)
    row = row_of(twin, job)
    assert (row.state, row.due) == (ArchiveState.WAITING, twin.world.now() + HOUR)
    look(twin, job)
    assert is_archived(twin, job)
    settled = job_of(twin, job).times.settled
    assert settled
    assert timedelta(days=1) <= row_of(twin, job).since - settled < timedelta(days=1, seconds=1)


def test_a_site_says_how_long_a_log_is_rows(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    apply.apply(twin.on, "admin", SITE + '[retention]\nlog = "2m"\n', "site.toml")
    finish(twin, job)
    twin.pass_time(119)
    logs_archives.advance(twin.on, job)
    assert not twin.objects.objects
    twin.pass_time(1)
    logs_archives.advance(twin.on, job)
    assert is_archived(twin, job)


def test_what_is_said_after_it_stays_in_rows_behind_it(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    before = paged(twin, job)
    look(twin, job)
    for text in ("later", "later still"):
        logs.append(twin.on, job, 1, text)
    after = paged(twin, job)
    assert after[:-2] == before
    assert [(event.seq, event.line.payload) for event in after[-2:]] == [
        (len(before) + 1, "later"), (len(before) + 2, "later still")
    ]  # fmt: skip
    assert len(of(twin, Batch)) == 2


@pytest.mark.usefixtures("small")
def test_what_is_said_while_it_is_written_stays_in_rows_behind_it(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    Steps(twin, lambda number: logs.append(twin.on, job, 1, f"said {number}"))
    look(twin, job)
    found = paged(twin, job, 0, 1000)
    assert [event.seq for event in found] == list(range(1, len(found) + 1))
    said = [event.line.payload for event in found if event.line.payload.startswith("said ")]
    assert said == [f"said {number}" for number in range(1, len(said) + 1)]
    assert row_of(twin, job).state is ArchiveState.ARCHIVED


def test_a_job_of_which_nothing_was_said_has_no_object(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    for batch in of(twin, Batch):
        drop(twin, batch)
    logs_archives.advance(twin.on, job)
    assert row_of(twin, job).due is None
    assert not of(twin, Artifact)
    assert logs.read(twin.on, job, 0, 10) == []


def test_an_object_that_is_not_as_it_was_written_is_written_anew(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    before = paged(twin, job)
    store = twin.objects.store
    for wrong in (lambda content: content[:-1], lambda content: content + b"x", lambda content: b"y" + content[1:]):
        twin.objects.store = lambda name, content, wrong=wrong: store(name, wrong(content))  # type: ignore[method-assign, misc]
        twin.world.time = max(twin.world.time, row_of(twin, job).due or twin.world.time)
        logs_archives.advance(twin.on, job)
        assert row_of(twin, job).state is ArchiveState.WAITING
        assert paged(twin, job) == before
        assert not any(artifact.owners for artifact in of(twin, Artifact))
    assert row_of(twin, job).tries == 6
    twin.objects.store = store  # type: ignore[method-assign]
    look(twin, job)
    assert is_archived(twin, job)
    twin.pass_time(12 * 3600)
    tidy(twin, 3)
    assert len(twin.objects.objects) == len(of(twin, Artifact)) == 1, "what nobody owned is gone"


@pytest.mark.usefixtures("small")
def test_an_upload_that_the_store_forgot_is_begun_anew(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    job = ended(twin, ada)
    before = paged(twin, job)
    monkeypatch.setattr(logs_archives, "STEPS", 3)
    logs_archives.advance(twin.on, job)
    assert len(row_of(twin, job).parts) == 1
    twin.objects.uploads.clear()
    look(twin, job)
    assert is_archived(twin, job)
    assert paged(twin, job) == before


def test_an_artifact_that_was_forgotten_meanwhile_is_begun_anew(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)

    def forget() -> None:
        for artifact in of(twin, Artifact):
            drop(twin, artifact)

    store = twin.objects.store
    twin.objects.store = lambda name, content: (store(name, content), forget())[0]  # type: ignore[method-assign, func-returns-value]
    logs_archives.advance(twin.on, job)
    assert row_of(twin, job).state is ArchiveState.WAITING
    twin.objects.store = store  # type: ignore[method-assign]
    look(twin, job)
    assert is_archived(twin, job)


def test_a_failing_store_is_retried_with_growing_pauses(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    store, asked = twin.objects.store, list[Any]()

    def down(*_: object) -> None:
        asked.append(twin.world.now())
        raise ConnectionError

    twin.objects.store = down  # type: ignore[method-assign]
    for _ in range(40):
        expire.expire_overdue(twin.on)
        twin.pass_time(60)
    waits = [int((later - now).total_seconds()) // 60 for now, later in pairwise(asked)]
    assert waits == [1, 2, 4, 8, 16]
    assert paged(twin, job)
    twin.objects.store = store  # type: ignore[method-assign]
    look(twin, job)
    assert is_archived(twin, job)


def test_a_log_is_gone_with_the_retention_of_its_job(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    look(twin, job)
    twin.world.time = end_of(twin, job)
    tidy(twin, 4)
    assert nothing_is_left(twin)
    assert job_of(twin, job).end.outputs_gone
    with pytest.raises(Refused) as refused:
        logs.read(twin.on, job, 0, 10)
    since = f"{job_of(twin, job).end.outputs_gone:%Y-%m-%d %H:%M} UTC"
    assert (refused.value.status, refused.value.code) == (410, "log-gone")
    assert refused.value.detail == (
        f"the log of job {job} is gone since {since}: the site keeps what a job had for a limited time"
    )
    logs.append(twin.on, job, 1, "too late")
    assert not of(twin, Batch)
    assert (
        logs.append_output(twin.on, job_of(twin, job), 1, [Line(twin.world.now(), "stdout", "too late", 0)], Limits())
        is None
    )
    assert not of(twin, Batch)


@pytest.mark.usefixtures("small")
def test_a_retention_that_ends_at_any_step_leaves_nothing(twin: Twin, ada: User) -> None:
    def ends(twin: Twin, job: str) -> None:
        twin.world.time = end_of(twin, job)
        expire.end_retention(twin.on, job)
        expire.end_retention(twin.on, job)

    for at in range(1, 1000):
        twin = _anew(twin)
        job = ended(twin, ada, 6)
        steps = Steps(twin, lambda number, at=at, twin=twin, job=job: ends(twin, job) if number == at else None)  # type: ignore[misc]
        logs_archives.advance(twin.on, job)
        if steps.count < at:
            break
        look(twin, job)
        tidy(twin)
        twin.pass_time(12 * 3600)
        tidy(twin, 3)
        assert not of(twin, Batch)
        assert not [row for row in of(twin, Artifact) if row.state is not ArtifactState.DESTROYING]
        assert row_of(twin, job).state is ArchiveState.GONE
    assert at > 10


def test_what_was_being_said_as_a_log_went_is_looked_for_once_more(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    (late,) = [batch for batch in of(twin, Batch) if batch.first == 1]
    logs_archives.delete(twin.on, job)
    logs_archives.advance(twin.on, job)
    assert not of(twin, Batch)
    assert row_of(twin, job).due == twin.world.now() + archives.LATE_ROWS_WITHIN
    twin.store.rows[late.key] = late
    look(twin, job)
    assert not of(twin, Batch)
    ends = row_of(twin, job)
    logs_archives.delete(twin.on, job)
    assert row_of(twin, job) == ends


def test_a_pinned_log_outlives_its_job(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    look(twin, job)
    (artifact,) = of(twin, Artifact)
    put(twin, artifact, owners=(*artifact.owners, "pin#ada"))
    logs_archives.delete(twin.on, job)
    (left,) = of(twin, Artifact)
    assert left.owners == ("pin#ada",)
    assert twin.objects.objects


def test_a_log_whose_bytes_are_lost_is_told(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    look(twin, job)
    (name,) = twin.objects.objects
    for content in (b"", twin.objects.objects[name][:-1]):
        twin.objects.objects[name] = content
        with pytest.raises(Refused) as refused:
            logs.read(twin.on, job, 0, 10)
        assert (refused.value.status, refused.value.code) == (410, "log-lost")
        assert refused.value.detail == f"the log of job {job} is lost: its bytes are no longer in the store"


def test_no_step_holds_much_and_no_look_takes_long(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "PART_BYTES", 4000)
    job = ended(twin, ada, 250)
    before = paged(twin, job, 0, 1000)
    find, most, written = twin.store.find, list[int](), list[int]()

    def finding(*given: Any, **how: Any) -> Any:
        found = find(*given, **how)
        most.append(len([row for row in found if isinstance(row, Batch)]))
        return found

    part = twin.objects.part
    twin.store.find = finding  # type: ignore[method-assign]
    twin.objects.part = lambda *given: (written.append(len(given[3])), part(*given))[1]  # type: ignore[method-assign, func-returns-value]
    looks = 0
    while row_of(twin, job).due:
        most.clear()
        logs_archives.advance(twin.on, job)
        twin.pass_time(60)
        assert max(most) <= logs_archives.AT_ONCE
        assert sum(most) <= logs_archives.STEPS * logs_archives.DELETED
        looks += 1
    assert max(written) < 4000 + 1000
    assert min(written[:-1]) >= 4000
    assert looks > 3
    twin.store.find = find  # type: ignore[method-assign]
    assert is_archived(twin, job)
    assert paged(twin, job, 0, 1000) == before


def test_rows_go_from_the_first_on_and_some_at_a_step(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs_archives, "DELETED", 20)
    monkeypatch.setattr(logs_archives, "STEPS", 3)
    job = ended(twin, ada, 40)
    rows = len(of(twin, Batch))
    logs_archives.advance(twin.on, job)
    left = sorted(batch.first for batch in of(twin, Batch))
    assert len(left) == rows - 20
    assert left[0] > 20
    assert row_of(twin, job).due is not None
    look(twin, job)
    assert is_archived(twin, job)


def test_a_look_before_its_time_does_nothing(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    before_the_next_commit(twin, lambda: logs_archives.advance(twin.on, job))
    logs_archives.advance(twin.on, job)
    assert is_archived(twin, job)
    rows = dict(twin.store.rows)
    logs_archives.advance(twin.on, job)
    assert dict(twin.store.rows) == rows


def test_a_sweep_stops_in_time(twin: Twin, ada: User) -> None:
    jobs = [submit(twin, ada) for _ in range(3)]
    looked: list[str] = []

    def slow(_: object, job: str) -> None:
        looked.append(job)
        del twin.store.rows[archive_key(job)]
        twin.pass_time(15)

    twin.pass_time(10**5)
    for job in jobs:
        settled = twin.world.now()
        twin.store.rows[archive_key(job)] = replace(
            Archive(job=job, state=ArchiveState.WAITING, since=settled, settled=settled, due=settled), version=1
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs_archives, "advance", slow)
        expire.expire_overdue(twin.on)
        assert len(looked) == 2
        expire.expire_overdue(twin.on)
    assert sorted(looked) == sorted(jobs)


@pytest.mark.usefixtures("by_flow")
def test_a_full_log_is_told_to_the_agent(twin: Twin, ada: User) -> None:
    apply.apply(twin.on, "admin", SITE + "[limits]\nlog_events = 100\n", "site.toml")
    job = running(twin, ada)
    caller = agents.authenticate(twin.on, job, TOKEN)
    lines = [Line(twin.world.now(), "stdout", "xx", 0) for _ in range(120)]
    assert agents.append_events(twin.on, caller, 1, lines[:10]).full is None
    kept = 100 - len(of(twin, Batch)) + 1 - 10
    for _ in range(2):
        told = agents.append_events(twin.on, caller, 11, lines[10:])
        assert told.full == LogFull(lines=110 - kept, bytes=2 * (110 - kept))
    assert worker_of(twin, job).id
    finish(twin, job)
    assert job_of(twin, job).is_settled
    assert sum("reached its limit of 100 lines" in event.line.payload for event in paged(twin, job)) == 1
