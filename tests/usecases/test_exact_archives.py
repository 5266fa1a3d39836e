"""What each condition of the archive is there for: the case that only it tells from the others. [ART-1] [ART-2]"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.jobs.jobs import job_key
from penstock.domain.logs import archives
from penstock.domain.logs.logs import Archive, ArchiveState, Batch
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Replace
from penstock.testing.twin import Twin
from penstock.usecases.logs import archives as logs_archives
from tests.usecases.archives import ended, is_archived, look, paged, row_of
from tests.usecases.exact import drop
from tests.usecases.races import before_the_next_commit
from tests.usecases.retained_jobs import of

pytestmark = pytest.mark.usefixtures("no_log_is_short")

SMALL = pytest.mark.usefixtures("small")


def written(twin: Twin) -> list[Archive]:
    """The rows of archives that are written from now on."""
    commit, found = twin.store.commit, list[Archive]()

    def noting(changes: Sequence[Change]) -> bool:
        done = commit(changes)
        found.extend(
            each.row for each in changes if done and isinstance(each, Replace) and isinstance(each.row, Archive)
        )
        return done

    twin.store.commit = noting  # type: ignore[method-assign]
    return found


def begin(twin: Twin, job: str, monkeypatch: pytest.MonkeyPatch, parts: int) -> Archive:
    """Look step by step until so many parts are written."""
    with monkeypatch.context() as patched:
        patched.setattr(logs_archives, "STEPS", 1)
        for _ in range(40):
            logs_archives.advance(twin.on, job)
            row = row_of(twin, job)
            if len(row.parts) >= parts and row.upload:
                return row
            twin.world.time = max(twin.world.time, row.due or twin.world.time)
    raise AssertionError("it never writes")


def test_what_is_done_is_written_once(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    rows = written(twin)
    look(twin, job)
    assert [row.due for row in rows].count(None) == 1


def test_a_job_that_is_gone_has_no_log_to_archive(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    del twin.store.rows[job_key(job)]
    look(twin, job)
    assert row_of(twin, job).state is ArchiveState.WAITING
    assert not of(twin, Artifact)


@SMALL
def test_an_upload_that_is_gone_is_begun_anew(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    job = ended(twin, ada, 30)
    before = paged(twin, job)
    row = begin(twin, job, monkeypatch, 1)
    twin.objects.uploads.clear()
    send, tags = twin.objects.part, list[str | None]()
    twin.objects.part = lambda *given: tags.append(send(*given)) or tags[-1]  # type: ignore[method-assign, func-returns-value]
    look(twin, job)
    assert tags.count(None) == 1, "no more is sent to what is gone"
    assert row_of(twin, job).artifact != row.artifact
    assert paged(twin, job) == before


@SMALL
def test_lines_that_do_not_follow_are_not_written(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    job = ended(twin, ada, 30)
    row = begin(twin, job, monkeypatch, 1)
    (lost,) = (each for each in of(twin, Batch) if each.first == row.next)
    drop(twin, lost)
    twin.world.time = max(twin.world.time, row.due or twin.world.time)
    logs_archives.advance(twin.on, job)
    assert row_of(twin, job).parts == row.parts


def test_a_part_that_is_just_full_takes_no_more(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    job = ended(twin, ada, 30)
    first = min(of(twin, Batch), key=lambda batch: batch.first)
    _, content = archives.encode_batch(row_of(twin, job), first, 0)
    monkeypatch.setattr(archives, "PART_BYTES", len(content))
    look(twin, job)
    assert row_of(twin, job).parts[0].size == len(content)


@SMALL
def test_an_object_is_made_of_its_parts_once(twin: Twin, ada: User) -> None:
    job = ended(twin, ada, 30)
    complete, calls = twin.objects.complete, list[Any]()
    twin.objects.complete = lambda *given: calls.append(given) or complete(*given)  # type: ignore[method-assign, func-returns-value]
    look(twin, job)
    assert len(row_of(twin, job).parts) > logs_archives.CHECKED
    assert len(calls) == 1


@SMALL
def test_every_part_is_read_back_also_the_last(twin: Twin, ada: User) -> None:
    job = ended(twin, ada, 30)
    before = paged(twin, job)
    complete = twin.objects.complete

    def spoilt(name: str, upload: str, tags: Sequence[str]) -> None:
        twin.objects.complete = complete  # type: ignore[method-assign]
        complete(name, upload, tags)
        twin.objects.objects[name] = twin.objects.objects[name][:-2] + b"?\n"

    twin.objects.complete = spoilt  # type: ignore[method-assign]
    look(twin, job)
    assert is_archived(twin, job)
    assert paged(twin, job) == before


def test_a_log_that_is_archived_after_its_retention_ended_has_no_owner(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    before_the_next_commit(twin, lambda: look(twin, job))
    logs_archives.delete(twin.on, job)
    assert row_of(twin, job).state is ArchiveState.GONE
    assert not [row for row in of(twin, Artifact) if row.owners]
