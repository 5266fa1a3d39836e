"""A job's store: what is put there, by whom, until when, and who reads it. [SEC-1]"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from penstock.domain.jobs.jobs import Job
from penstock.domain.jobs.store import Value
from penstock.domain.replies import NoValue, StoredValue
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Delete, Replace
from penstock.testing.twin import Twin
from penstock.usecases.jobs import settle, store
from penstock.usecases.jobs.flow import fenced
from penstock.usecases.jobs.store import NewValue
from tests.rows import changed
from tests.usecases.exact import commits, running
from tests.usecases.objects import gets
from tests.usecases.races import before_the_next_commit, before_the_next_write_of
from tests.usecases.steps import finish, job_of, submit, sweep, told


def put(twin: Twin, job: str, name: str, text: str, *, secret: bool = False, by: str = "ada") -> Value:
    return store.put(twin.on, job_of(twin, job), NewValue(name, text, secret, by))


def read(twin: Twin, job: str, name: str) -> StoredValue | NoValue:
    return store.read(twin.on, job_of(twin, job), name)


def refused(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(Refused) as told_:
        call()
    return told_.value.status, told_.value.code


def rows(twin: Twin) -> list[Value]:
    return [row for row in twin.store.rows.values() if isinstance(row, Value)]


def test_what_is_put_is_read_by_the_job_and_shown(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    assert read(twin, job, "url") == NoValue()
    put(twin, job, "url", "http://x")
    put(twin, job, "url", "http://y", by="")
    assert read(twin, job, "url") == StoredValue("http://y", secret=False)
    (shown,) = store.list_values(twin.on, job_of(twin, job))
    assert (shown.text, shown.by, shown) == ("http://y", "", store.show(twin.on, job_of(twin, job), "url"))
    assert [line for line in told(twin, job) if "store" in line] == ["ada put url into the job's store"]
    assert job_of(twin, job).usage.has_secrets is False


def test_a_secret_is_read_by_the_job_alone_and_stays_one(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    put(twin, job, "key", "hunter2", secret=True)
    put(twin, job, "key", "hunter3")
    assert read(twin, job, "key") == StoredValue("hunter3", secret=True)
    assert refused(lambda: store.show(twin.on, job_of(twin, job), "key")) == (403, "secret-value")
    assert [row.text for row in rows(twin)] == [""]
    assert [line for line in told(twin, job) if "store" in line] == ["ada put key (secret) into the job's store"]
    put(twin, job, "open", "x")
    put(twin, job, "open", "y", secret=True)
    assert [row.is_secret for row in rows(twin)] == [True, True]


def test_what_is_sealed_opens_for_its_job_and_name_alone(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    sealed = put(twin, job, "key", "hunter2", secret=True).sealed
    for of in ({"job": "J", "value": "key"}, {"job": job, "value": "other"}):
        with pytest.raises(ValueError, match="not sealed for this use"):
            twin.on.vault.open(sealed, of)


def test_secrets_go_when_the_job_settles_and_the_rest_stays(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    put(twin, job, "key", "hunter2", secret=True)
    put(twin, job, "url", "http://x")
    finish(twin, job)
    assert [row.name for row in rows(twin)] == ["url"]
    assert refused(lambda: put(twin, job, "url", "z")) == (409, "job-settled")
    settle.settle(twin.on, job, 1, None, None)
    assert len(rows(twin)) == 1


def test_nothing_is_due_when_the_secrets_are_gone(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    put(twin, job, "key", "hunter2", secret=True)
    finish(twin, job)
    settled = job_of(twin, job)
    assert (settled.due, settled.usage.has_secrets) == (None, False)


@pytest.mark.parametrize(("flow_is_left", "minutes"), [(False, 3), (True, 2)])
def test_secrets_that_a_function_left_when_it_died_go_with_a_later_sweep(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch, *, flow_is_left: bool, minutes: int
) -> None:
    job = running(twin, ada, retries=0)
    put(twin, job, "key", "hunter2", secret=True)
    with monkeypatch.context() as dying:
        dying.setattr(settle, "job_settled", lambda *_: None)
        overdue = twin.world.now() + timedelta(days=2) if flow_is_left else None
        settle.settle(twin.on, job, 1, "Lost", "it is gone", overdue)
    assert len(rows(twin)) == 1
    assert job_of(twin, job).flow.stop_from == (1 if flow_is_left else None)
    for _ in range(minutes):
        sweep(twin)
    settled = job_of(twin, job)
    assert rows(twin) == []
    assert (settled.due, settled.usage.has_secrets, settled.flow.stop_from) == (None, False, None)


def test_what_deletes_the_secrets_writes_over_nothing_that_moved_meanwhile(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    put(twin, job, "key", "hunter2", secret=True)

    def save() -> None:
        was = job_of(twin, job)
        twin.store.commit([Replace(was, changed(was, cache_saves=7))])

    before_the_next_write_of(twin, Job, save, lambda row: row.is_settled and not row.usage.has_secrets)
    finish(twin, job)
    assert job_of(twin, job).usage.cache_saves == 7
    for _ in range(3):
        sweep(twin)
    settled = job_of(twin, job)
    assert (settled.due, settled.usage.has_secrets, settled.usage.cache_saves, rows(twin)) == (None, False, 7, [])


def test_an_attempt_that_is_followed_by_another_keeps_them(twin: Twin, ada: User) -> None:
    job = running(twin, ada, retries=1)
    put(twin, job, "key", "hunter2", secret=True)
    settle.settle(twin.on, job, 1, "Lost", "its worker was lost")
    assert not job_of(twin, job).is_settled
    assert read(twin, job, "key") == StoredValue("hunter2", secret=True)


def test_a_job_without_secrets_is_not_asked_for_any(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    find, asked = twin.store.find, list[str]()

    def noting(pk: str, prefix: str, *more: object, **how: object) -> object:
        asked.append(prefix)
        return find(pk, prefix, *more, **how)  # type: ignore[arg-type]

    twin.store.find = noting  # type: ignore[method-assign, assignment]
    finish(twin, job)
    assert "value#" not in asked


def test_who_puts_while_the_job_settles_is_refused_or_forgotten(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    before_the_next_commit(twin, lambda: finish(twin, job))
    assert refused(lambda: put(twin, job, "key", "hunter2", secret=True)) == (409, "job-settled")
    assert rows(twin) == []


def test_a_secret_is_dropped_once_despite_a_concurrent_drop(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    put(twin, job, "key", "hunter2", secret=True)
    found = job_of(twin, job)
    before_the_next_commit(twin, lambda: store.delete_secrets(twin.on, found))
    store.delete_secrets(twin.on, found)
    assert rows(twin) == []


def test_a_secret_whose_row_another_writes_goes_with_a_later_sweep(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store refuses a delete while a put of that name, which is refused in the end, is under way."""
    job = running(twin, ada)
    for name in ("a", "b"):
        put(twin, job, name, "hunter2", secret=True)
    commit = twin.store.commit
    with monkeypatch.context() as patch:
        patch.setattr(twin.store, "commit", lambda changes: not _deletes(changes, "a") and commit(changes))
        finish(twin, job)
    assert ([row.name for row in rows(twin)], job_of(twin, job).usage.has_secrets) == (["a"], True)
    for _ in range(3):
        sweep(twin)
    settled = job_of(twin, job)
    assert (rows(twin), settled.usage.has_secrets, settled.due) == ([], False, None)


def _deletes(changes: Sequence[Change], name: str) -> bool:
    return any(isinstance(one, Delete) and isinstance(one.was, Value) and one.was.name == name for one in changes)


def test_secrets_beyond_the_limit_go_with_the_others(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that come at once all find room."""
    job = running(twin, ada)
    with monkeypatch.context() as patch:
        patch.setattr(store, "_check_room", lambda *given: None)
        for number in range(limits.VALUES + 2):
            put(twin, job, f"v{number:03}", "x", secret=True)
    assert len(store.list_values(twin.on, job_of(twin, job))) == limits.VALUES + 2
    finish(twin, job)
    assert (rows(twin), job_of(twin, job).usage.has_secrets) == ([], False)


def test_the_later_of_two_concurrent_values_stays_and_a_secret_stays_secret(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    before_the_next_commit(twin, lambda: put(twin, job, "key", "hunter2", secret=True))
    put(twin, job, "key", "plain")
    assert read(twin, job, "key") == StoredValue("plain", secret=True)


def test_a_worker_whose_lease_is_over_puts_nothing(twin: Twin, ada: User) -> None:
    """SLOT-3"""
    job = running(twin, ada, retries=1)
    mine = job_of(twin, job)
    settle.settle(twin.on, job, 1, "Lost", "its worker was lost")
    assert refused(lambda: store.put(twin.on, mine, NewValue("a", "b"), fenced))[0] == 410


def test_each_commit_is_one(twin: Twin, ada: User) -> None:
    job, written = submit(twin, ada), commits(twin)
    put(twin, job, "a", "1", secret=True)
    put(twin, job, "a", "2", secret=True)
    kinds = [[type(change).__name__ for change in changes] for changes in written]
    assert [each for each in kinds if len(each) > 1] == [["Create", "Replace"], ["Replace", "Check"]]


@pytest.mark.parametrize("name", ["", "a/b", "a" * 65, "ä", "a\n"])
def test_what_is_no_name(twin: Twin, ada: User, name: str) -> None:
    job = submit(twin, ada)
    assert refused(lambda: put(twin, job, name, "x")) == (400, "bad-request")
    assert refused(lambda: store.show(twin.on, job_of(twin, job), name))[0] == 404
    assert read(twin, job, name) == NoValue()


def test_what_is_no_name_is_not_looked_up(twin: Twin, ada: User) -> None:
    found = job_of(twin, submit(twin, ada))
    asked = gets(twin, Value)
    assert store.read(twin.on, found, "x" * 5000) == NoValue()
    assert refused(lambda: store.show(twin.on, found, "x" * 5000))[0] == 404
    assert asked == []


def test_what_is_no_value(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    most = limits.VALUE_BYTES
    put(twin, job, "a" * 64, "x" * most)
    put(twin, job, "empty", "")
    assert read(twin, job, "empty") == StoredValue("", secret=False)
    assert refused(lambda: put(twin, job, "a", "x" * (most - 1) + "ä")) == (413, "value-too-big")
    assert refused(lambda: put(twin, job, "a", "\ud800")) == (400, "bad-request")
    assert refused(lambda: put(twin, job, "a", "", secret=True)) == (400, "bad-request")


def test_there_is_room_for_as_many_as_the_limit_says(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    for number in range(limits.VALUES):
        put(twin, job, f"v{number}", "x")
    assert refused(lambda: put(twin, job, "one-more", "x")) == (409, "too-many-values")
    put(twin, job, "v7", "y")
    assert len(store.list_values(twin.on, job_of(twin, job))) == limits.VALUES
