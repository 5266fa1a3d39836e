"""Outputs: how many there may be, and for whom. [SLOT-3] [ART-1] [ART-2]"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.artifacts.artifacts import Artifact, ArtifactState, is_output, stray
from penstock.domain.artifacts.content import Content
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.commands import AgentFile
from penstock.domain.jobs.jobs import Job, Result
from penstock.domain.replies import Empty
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Check, Create
from penstock.system import current_site
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import discard, expire, outputs, owners
from penstock.usecases.site import apply
from penstock.usecases.workers import agents
from tests.usecases.conftest import SITE
from tests.usecases.exact import commits, put
from tests.usecases.objects import gets
from tests.usecases.outputs import files
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import TOKEN, finish, hello, job_of, submit, sweep


def running(twin: Twin, ada: User) -> Job:
    job = submit(twin, ada)
    twin.run()
    return hello(twin, job).job


def rows(twin: Twin) -> list[Artifact]:
    return [row for row in twin.store.rows.values() if isinstance(row, Artifact)]


def committed(twin: Twin) -> list[bool]:
    return [is_output(row) for row in rows(twin)]


def arrive(twin: Twin) -> list[str]:
    """The bytes of every output are there."""
    for row in rows(twin):
        twin.objects.objects[object_name(row.id)] = b"x"
    return [row.id for row in rows(twin)]


def test_a_job_keeps_no_more_outputs_than_it_is_told(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    for first in range(0, limits.OUTPUTS, limits.OUTPUTS_PER_CALL):
        outputs.begin(twin.on, job, files(limits.OUTPUTS_PER_CALL, first))
    with pytest.raises(Refused, match="at most 1000 outputs"):
        outputs.begin(twin.on, job, files(1, limits.OUTPUTS))


def test_what_earlier_attempts_kept_takes_no_room_and_goes_with_the_rest(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    for attempt in (0, 1):
        for first in range(0, limits.OUTPUTS, limits.OUTPUTS_PER_CALL):
            outputs.begin(twin.on, job, files(limits.OUTPUTS_PER_CALL, first))
        for row in rows(twin):
            twin.store.rows[row.key] = replace(row, attempt=min(row.attempt, attempt))
    assert len(rows(twin)) == 2 * limits.OUTPUTS
    with pytest.raises(Refused, match="at most 1000 outputs"):
        outputs.begin(twin.on, job, files(1, limits.OUTPUTS))
    finish(twin, job.id)
    discard.discard(twin.on, ada, job_of(twin, job.id))
    for _ in range(100):
        twin.run()
        sweep(twin)
    assert rows(twin) == []


def test_an_output_that_has_arrived_is_committed_once(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    with pytest.raises(Refused, match="0 of 1 bytes have arrived"):
        outputs.commit(twin.on, job, [rows(twin)[0].id])
    names = arrive(twin)
    outputs.commit(twin.on, job, names)
    outputs.commit(twin.on, job, names)
    assert committed(twin) == [True]


def test_an_agent_whose_attempt_is_over_names_no_outputs(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    finish(twin, job.id)
    with pytest.raises(Refused, match="no longer wanted"):
        agents.authenticate(twin.on, job.id, TOKEN)


def test_what_is_named_as_its_attempt_ends_is_never_seen_and_goes_by_itself(twin: Twin, ada: User) -> None:
    """SLOT-3, ART-2: the attempt is settled between the agent's authentication and the naming of its output."""
    job = running(twin, ada)
    finish(twin, job.id)
    (told,) = outputs.begin(twin.on, job, files()).uploads
    arrive(twin)
    with pytest.raises(Refused, match="no longer wanted"):
        outputs.commit(twin.on, job, [told.id])
    assert (outputs.list_outputs(twin.on, job.id), outputs.find(twin.on, job, told.id)) == (([], None), None)
    twin.world.time = rows(twin)[0].time + timedelta(hours=12)
    expire.expire_overdue(twin.on)
    assert nothing_is_left(twin)


def test_a_name_whose_write_was_answered_with_its_own_repetition_is_there_once(twin: Twin, ada: User) -> None:
    """A plain write that the SDK sends again fails as a lost race, and its row is there."""
    job = running(twin, ada)
    commit = twin.store.commit

    def twice(changes: list[Change]) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        return commit(changes) and commit(changes)

    twin.store.commit = twice  # type: ignore[method-assign]
    (told,) = outputs.begin(twin.on, job, files()).uploads
    assert [row.id for row in rows(twin)] == [told.id]


def test_an_archive_of_a_cache_counts_as_no_output(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OUTPUTS", 1)
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    put(twin, rows(twin)[0], sort="cache")
    assert outputs.begin(twin.on, job, files()).uploads
    assert len(rows(twin)) == 2


def test_one_file_is_named_in_one_write_without_a_transaction(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    written = commits(twin)
    outputs.begin(twin.on, job, files())
    outputs.begin(twin.on, job, files())
    assert [[type(change).__name__ for change in changes] for changes in written] == [["Create"]]


def test_an_output_is_not_committed_for_an_attempt_that_ends_meanwhile(twin: Twin, ada: User) -> None:
    """SLOT-3: the attempt is settled between the agent's authentication and the commit of its output."""
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    names, commit = arrive(twin), twin.store.commit

    def late(changes: list[Change]) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        assert any(isinstance(change, Check) for change in changes)
        finish(twin, job.id)
        return commit(changes)

    twin.store.commit = late  # type: ignore[method-assign]
    with pytest.raises(Refused, match="no longer wanted"):
        outputs.commit(twin.on, job, names)
    assert committed(twin) == [False]


def test_a_heartbeat_is_no_reason_to_refuse_an_output(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    commit = twin.store.commit

    def beating(changes: list[Change]) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        agents.heartbeat(twin.on, agents.authenticate(twin.on, job.id, TOKEN))
        return commit(changes)

    twin.store.commit = beating  # type: ignore[method-assign]
    assert outputs.begin(twin.on, job, files()).uploads


def again(twin: Twin, row: Artifact) -> Artifact:
    """The row as it is now."""
    found = twin.store.get(row.key, Artifact)
    assert found
    return found


def nothing_is_left(twin: Twin) -> bool:
    return not twin.objects.objects and not rows(twin)


def test_bytes_are_owned_when_they_are_committed_and_not_before(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    (row,) = rows(twin)
    assert (row.owners, row.by, row.job, row.attempt) == ((), "ada", job.id, 1)
    assert (row.state, row.due) == (ArtifactState.CREATING, row.time + timedelta(hours=12))
    outputs.commit(twin.on, job, arrive(twin))
    (row,) = rows(twin)
    assert (row.state, row.owners, row.due, row.size) == (ArtifactState.CREATED, (f"job#{job.id}",), None, 1)


def test_files_are_named_and_committed_in_as_few_writes_as_there_is_room_for(twin: Twin, ada: User) -> None:
    """One item of each commit is the check that the attempt is not over."""
    job = running(twin, ada)
    written = commits(twin)
    for first in range(0, 100, limits.OUTPUTS_PER_CALL):
        outputs.begin(twin.on, job, files(limits.OUTPUTS_PER_CALL, first))
    outputs.commit(twin.on, job, arrive(twin))
    assert [len(changes) for changes in written] == [50, 50, 100, 2]
    assert all(committed(twin))


def test_what_has_arrived_is_committed_though_another_has_not(twin: Twin, ada: User) -> None:
    """Whatever is wrong with one file, its neighbours are kept, and the agent hears of it."""
    job = running(twin, ada)
    outputs.begin(twin.on, job, files(3))
    names = arrive(twin)
    del twin.objects.objects[object_name(names[1])]
    with pytest.raises(Refused, match="of /work/1 0 of 1 bytes have arrived"):
        outputs.commit(twin.on, job, names)
    assert committed(twin) == [True, False, True]


def test_what_goes_meanwhile_leaves_its_neighbours_to_be_committed(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job, files(2))
    names, (first, _) = arrive(twin), rows(twin)
    before_the_next_commit(twin, lambda: twin.store.rows.pop(first.key))
    with pytest.raises(Refused) as told:
        outputs.commit(twin.on, job, names)
    assert (told.value.status, committed(twin)) == (404, [True])


def test_what_is_no_output_is_neither_committed_nor_signed_as_one(twin: Twin, ada: User) -> None:
    """An archive of a cache is made for a job too, and is none of its outputs."""
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    put(twin, rows(twin)[0], sort="cache")
    with pytest.raises(Refused) as told:
        outputs.commit(twin.on, job, arrive(twin))
    assert told.value.status == 404
    put(twin, rows(twin)[0], state=ArtifactState.CREATED, owners=(f"job#{job.id}",))
    assert outputs.find(twin.on, job, rows(twin)[0].id) is None
    assert outputs.list_outputs(twin.on, job.id) == ([], None)


def test_another_jobs_output_is_not_committed(twin: Twin, ada: User) -> None:
    """SEC-2: a worker acts only for the attempt that it was made for."""
    first = running(twin, ada)
    outputs.begin(twin.on, first, files())
    names = arrive(twin)
    second = running(twin, ada)
    with pytest.raises(Refused) as told:
        outputs.commit(twin.on, second, names)
    assert told.value.status == 404
    assert committed(twin) == [False]


def test_an_output_that_expired_meanwhile_is_not_said_to_be_committed(twin: Twin, ada: User) -> None:
    """ART-1: the bytes went with the row; the agent must hear of it."""
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    (name,) = arrive(twin)
    content = twin.objects.content

    def expiring_meanwhile(object_name: str) -> Content | None:
        found = content(object_name)
        twin.objects.content = content  # type: ignore[method-assign]
        twin.pass_time(86_400)
        expire.expire_overdue(twin.on)
        return found

    twin.objects.content = expiring_meanwhile  # type: ignore[method-assign]
    with pytest.raises(Refused, match="output"):
        outputs.commit(twin.on, job, [name])
    assert nothing_is_left(twin)


def overdue(twin: Twin, job: Job) -> Artifact:
    """An output whose bytes have arrived, and whose time has come."""
    outputs.begin(twin.on, job, files())
    arrive(twin)
    (row,) = rows(twin)
    twin.world.time = row.time + timedelta(hours=12)
    return row


def test_an_upload_expires_when_it_is_due_and_not_before(twin: Twin, ada: User) -> None:
    """ART-2, and ART-1 before that."""
    job = running(twin, ada)
    overdue(twin, job)
    twin.pass_time(-1)
    expire.expire_overdue(twin.on)
    assert (len(rows(twin)), len(twin.objects.objects)) == (1, 1)
    twin.pass_time(1)
    expire.expire_overdue(twin.on)
    expire.expire_overdue(twin.on)
    assert nothing_is_left(twin)


def test_a_site_says_how_long_an_upload_may_take(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    apply.apply(twin.on, "admin", SITE + '[retention]\nupload = "3h"\n', "site.toml")
    outputs.begin(twin.on, job, files())
    twin.world.time = rows(twin)[0].time + timedelta(hours=3)
    expire.expire_overdue(twin.on)
    assert nothing_is_left(twin)


def test_what_is_committed_never_expires(twin: Twin, ada: User) -> None:
    """ART-1"""
    job = running(twin, ada)
    row = overdue(twin, job)
    outputs.commit(twin.on, job, [row.id])
    owners.move_on(twin.on, row.id)
    assert committed(twin) == [True]
    assert twin.objects.objects


def test_an_output_that_is_committed_just_before_it_expires_keeps_its_bytes(twin: Twin, ada: User) -> None:
    """ART-1: whoever deletes read it before it was committed."""
    job = running(twin, ada)
    row = overdue(twin, job)
    before_the_next_commit(twin, lambda: outputs.commit(twin.on, job, [row.id]))
    expire.expire_overdue(twin.on)
    assert committed(twin) == [True]
    assert twin.objects.objects


def test_bytes_that_come_late_are_not_destroyed_when_their_commit_comes_first(twin: Twin, ada: User) -> None:
    """ART-1: they were found to be late, and are owned before that is written."""
    job = running(twin, ada)
    row = overdue(twin, job)
    before_the_next_commit(twin, lambda: outputs.commit(twin.on, job, [row.id]))
    owners.move_on(twin.on, row.id)
    assert again(twin, row).state is ArtifactState.CREATED


def test_a_commit_that_is_late_by_days_finds_no_row_that_it_read(twin: Twin, ada: User) -> None:
    """ART-1: the name expired, and its bytes came back and were adopted, after the commit had read its row."""
    job = running(twin, ada)
    row = overdue(twin, job)

    def days() -> None:
        expire.expire_overdue(twin.on)
        assert nothing_is_left(twin)
        twin.store.commit([Create(stray(row.id, 1, twin.world.now()))])

    before_the_next_commit(twin, days)
    with pytest.raises(Refused) as told:
        outputs.commit(twin.on, job, [row.id])
    assert (told.value.status, again(twin, row).state) == (404, ArtifactState.DESTROYING)


def test_an_output_whose_bytes_are_being_deleted_is_not_committed(twin: Twin, ada: User) -> None:
    """ART-1: the agent looks at the bytes just before they go, and its word comes too late."""
    job = running(twin, ada)
    row = overdue(twin, job)
    delete, said = twin.objects.delete, []

    def slowly(name: str) -> None:
        with pytest.raises(Refused, match="output") as told:
            outputs.commit(twin.on, job, [row.id])
        said.append(told.value.status)
        delete(name)

    twin.objects.delete = slowly  # type: ignore[method-assign]
    expire.expire_overdue(twin.on)
    assert (nothing_is_left(twin), said) == (True, [404])


def test_an_output_that_begins_to_expire_while_it_is_committed_is_not(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    row = overdue(twin, job)
    before_the_next_commit(twin, lambda: owners.delete_unowned(twin.on, row.id))
    with pytest.raises(Refused) as told:
        outputs.commit(twin.on, job, [row.id])
    assert told.value.status == 404


def test_what_is_no_id_is_not_looked_for(twin: Twin, ada: User) -> None:
    """A client's text is no key of ours until it looks like one."""
    job = running(twin, ada)
    asked = gets(twin, Artifact)
    for odd in ("no-id", f"x.{job.id}"):
        with pytest.raises(Refused) as told:
            outputs.commit(twin.on, job, [odd])
        assert told.value.status == 404
    assert asked == []


def test_what_is_committed_is_not_looked_at_again(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    names = arrive(twin)
    outputs.commit(twin.on, job, names)
    twin.objects.objects.clear()
    assert outputs.commit(twin.on, job, names) == Empty()


def test_nobody_acts_for_an_attempt_without_a_lease(twin: Twin, ada: User) -> None:
    """SLOT-3: its worker was never granted."""
    job = job_of(twin, submit(twin, ada))
    with pytest.raises(Refused) as told:
        outputs.commit(twin.on, job, [outputs.begin(twin.on, job, files()).uploads[0].id, *arrive(twin)])
    assert told.value.status == 410


def test_who_deletes_and_dies_is_followed_by_another(twin: Twin, ada: User) -> None:
    """ART-2: what could not be deleted is tried again, and again, each time later; nothing else waits for it."""
    job = running(twin, ada)
    row = overdue(twin, job)
    delete, tries = twin.objects.delete, []

    def dies(name: str) -> None:
        tries.append(twin.world.now())
        raise KeyError(name)

    twin.objects.delete = dies  # type: ignore[method-assign]
    start = twin.world.now()
    for _ in range(8):
        assert expire.expire_overdue(twin.on).failed == (tries[-1:] == [twin.world.now()])
        twin.pass_time(60)
    assert [(at - start).total_seconds() for at in tries] == [0, 120, 300]
    there = again(twin, row)
    assert (there.state, there.tries) == (ArtifactState.DESTROYING, 3)
    twin.objects.delete = delete  # type: ignore[method-assign]
    twin.pass_time(3600)
    expire.expire_overdue(twin.on)
    assert nothing_is_left(twin)


def test_the_row_stays_while_the_bytes_are_still_there(twin: Twin, ada: User) -> None:
    """ART-1: the store says that it deleted them, and lies."""
    job = running(twin, ada)
    row = overdue(twin, job)
    twin.objects.delete, delete = lambda name: None, twin.objects.delete  # type: ignore[method-assign]
    expire.expire_overdue(twin.on)
    assert again(twin, row)
    twin.objects.delete = delete  # type: ignore[method-assign]
    expire.expire_overdue(twin.on)
    assert again(twin, row)
    twin.pass_time(90)
    expire.expire_overdue(twin.on)
    assert nothing_is_left(twin)


def test_two_that_delete_the_same_upload_delete_it(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    row = overdue(twin, job)
    delete = twin.objects.delete

    def again(name: str) -> None:
        twin.objects.delete = delete  # type: ignore[method-assign]
        twin.pass_time(60)
        owners.delete_bytes(twin.on, row.id)
        delete(name)

    twin.objects.delete = again  # type: ignore[method-assign]
    expire.expire_overdue(twin.on)
    assert nothing_is_left(twin)


def test_who_loses_the_race_to_delete_leaves_it_to_the_winner(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    row = overdue(twin, job)
    owners.delete_unowned(twin.on, row.id)
    delete, deleted = twin.objects.delete, []

    def counting(name: str) -> None:
        deleted.append(name)
        delete(name)

    twin.objects.delete = counting  # type: ignore[method-assign]
    before_the_next_commit(twin, lambda: owners.delete_bytes(twin.on, row.id))
    owners.delete_bytes(twin.on, row.id)
    assert (deleted, nothing_is_left(twin)) == ([object_name(row.id)], True)


def test_how_big_outputs_may_be_and_how_many(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    most = current_site(twin.on).limits.output_bytes
    for size in (0, most):
        assert outputs.begin(twin.on, job, [AgentFile("/work/it", size=size, sha256="0" * 64)]).uploads
    for size, status in ((-1, 400), (most + 1, 413)):
        with pytest.raises(Refused) as told:
            outputs.begin(twin.on, job, [AgentFile("/work/it", size=size, sha256="0" * 64)])
        assert told.value.status == status
    with pytest.raises(Refused, match="at most 50 files at once"):
        outputs.begin(twin.on, job, files(limits.OUTPUTS_PER_CALL + 1))


def test_pages_of_outputs_follow_each_other_and_show_only_what_has_arrived(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    for first in range(0, limits.PAGE, limits.OUTPUTS_PER_CALL):
        outputs.begin(twin.on, job, files(limits.OUTPUTS_PER_CALL, first))
    outputs.begin(twin.on, job, files(2, limits.PAGE))
    arrive(twin)
    names = [row.id for row in rows(twin)]
    outputs.commit(twin.on, job, names[1:])
    first, after = outputs.list_outputs(twin.on, job.id)
    assert [row.id for row in first] == names[1 : limits.PAGE]
    assert after == names[limits.PAGE - 1]
    rest, end = outputs.list_outputs(twin.on, job.id, after)
    assert ([row.id for row in rest], end) == (names[limits.PAGE :], None)


def test_only_what_has_arrived_is_fetched(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    (name,) = arrive(twin)
    for wrong in (name, "no id"):
        with pytest.raises(Refused) as told:
            outputs.sign(twin.on, job, wrong, 60)
        assert told.value.status == 404
    with pytest.raises(Refused) as told:
        outputs.commit(twin.on, job, ["no id"])
    assert told.value.status == 404
    outputs.commit(twin.on, job, [name])
    signed = outputs.sign(twin.on, job, name, 60)
    assert (signed.size, signed.composite) == (1, None)


def test_an_output_that_two_commit_is_committed_once(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    names = arrive(twin)
    before_the_next_commit(twin, lambda: outputs.commit(twin.on, job, names))
    outputs.commit(twin.on, job, names)
    written = commits(twin)
    outputs.commit(twin.on, job, names)
    assert written == []


def test_the_outcome_of_a_finished_job_stands(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    finish(twin, job.id, Result.FAILED)
    assert job_of(twin, job.id).end.reason == "the script ended"
