"""Outputs: how many there may be, and for whom. [SLOT-3] [ART-1] [ART-2]"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.artifacts.artifacts import Artifact, artifact_key
from penstock.domain.artifacts.outputs import Output
from penstock.domain.artifacts.volumes import Volume, VolumeState, object_name, volume_key
from penstock.domain.commands import AgentFile
from penstock.domain.jobs.jobs import Job, Result
from penstock.domain.replies import Empty
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Check, Create, Replace
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import expire, outputs, owners
from penstock.usecases.site import apply, configuration
from penstock.usecases.workers import agents
from tests.usecases.conftest import SITE
from tests.usecases.exact import commits
from tests.usecases.outputs import files
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import TOKEN, finish, hello, job_of, submit


def running(twin: Twin, ada: User) -> Job:
    job = submit(twin, ada)
    twin.run()
    return hello(twin, job).job


def rows(twin: Twin) -> list[Output]:
    return [row for row in twin.store.rows.values() if isinstance(row, Output)]


def arrive(twin: Twin) -> list[str]:
    """The bytes of every output are there."""
    for row in rows(twin):
        twin.objects.objects[object_name(row.artifact)] = b"x"
    return [row.id for row in rows(twin)]


def test_a_job_keeps_no_more_outputs_than_it_is_told(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    for first in range(0, limits.OUTPUTS, limits.OUTPUTS_PER_CALL):
        outputs.begin(twin.on, job, files(limits.OUTPUTS_PER_CALL, first))
    with pytest.raises(Refused, match="at most 1000 outputs"):
        outputs.begin(twin.on, job, files(1, limits.OUTPUTS))


def test_an_output_that_has_arrived_is_committed_once(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    with pytest.raises(Refused, match="0 of 1 bytes have arrived"):
        outputs.commit(twin.on, job, [rows(twin)[0].id])
    names = arrive(twin)
    outputs.commit(twin.on, job, names)
    outputs.commit(twin.on, job, names)
    assert rows(twin)[0].is_committed


def test_an_agent_whose_attempt_is_over_names_no_outputs(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    finish(twin, job.id)
    with pytest.raises(Refused, match="no longer wanted"):
        outputs.begin(twin.on, job, files())
    assert rows(twin) == []


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
    assert not rows(twin)[0].is_committed


def test_a_heartbeat_is_no_reason_to_refuse_an_output(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    commit = twin.store.commit

    def beating(changes: list[Change]) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        agents.heartbeat(twin.on, agents.authenticate(twin.on, job.id, TOKEN))
        return commit(changes)

    twin.store.commit = beating  # type: ignore[method-assign]
    assert outputs.begin(twin.on, job, files()).uploads


def volume(twin: Twin, row: Output) -> Volume | None:
    return twin.store.get(volume_key(row.artifact), Volume)


def nothing_is_left(twin: Twin) -> bool:
    kinds = Artifact | Volume | Output
    return not twin.objects.objects and not any(isinstance(row, kinds) for row in twin.store.rows.values())


def test_bytes_are_owned_when_they_are_committed_and_not_before(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    (row,) = rows(twin)
    artifact = twin.store.get(artifact_key(row.artifact), Artifact)
    assert artifact
    assert (artifact.owners, artifact.by, artifact.job) == ((), "ada", job.id)
    assert (artifact.due, volume(twin, row).due) == (row.time + timedelta(hours=12),) * 2  # type: ignore[union-attr]
    outputs.commit(twin.on, job, arrive(twin))
    artifact, there = twin.store.get(artifact_key(row.artifact), Artifact), volume(twin, row)
    assert artifact
    assert there
    assert (artifact.owners, artifact.due) == ((f"job#{job.id}",), None)
    assert (there.state, there.due, there.size) == (VolumeState.CREATED, None, 1)


def test_files_are_named_in_as_few_writes_as_there_is_room_for(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    written = commits(twin)
    outputs.begin(twin.on, job, files(31))
    assert [len(changes) for changes in written] == [91, 4]


def test_another_jobs_output_is_not_committed(twin: Twin, ada: User) -> None:
    """SEC-2: a worker acts only for the attempt that it was made for."""
    first = running(twin, ada)
    outputs.begin(twin.on, first, files())
    names = arrive(twin)
    second = running(twin, ada)
    with pytest.raises(Refused) as told:
        outputs.commit(twin.on, second, names)
    assert told.value.status == 404
    assert not rows(twin)[0].is_committed


def test_an_output_that_expired_meanwhile_is_not_said_to_be_committed(twin: Twin, ada: User) -> None:
    """ART-1: the bytes went with the row; the agent must hear of it."""
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    (name,) = arrive(twin)
    size = twin.objects.size

    def expiring_meanwhile(object_name: str) -> int | None:
        found = size(object_name)
        twin.objects.size = size  # type: ignore[method-assign]
        twin.pass_time(86_400)
        expire.expire_overdue(twin.on)
        return found

    twin.objects.size = expiring_meanwhile  # type: ignore[method-assign]
    with pytest.raises(Refused, match="output"):
        outputs.commit(twin.on, job, [name])
    assert nothing_is_left(twin)


def overdue(twin: Twin, job: Job) -> Output:
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
    owners.delete_unowned(twin.on, row.artifact)
    owners.expire_upload(twin.on, row.artifact)
    owners.destroy(twin.on, row.artifact)
    assert rows(twin)[0].is_committed
    assert twin.objects.objects


def test_an_output_that_is_committed_just_before_it_expires_keeps_its_bytes(twin: Twin, ada: User) -> None:
    """ART-1: whoever deletes read it before it was committed."""
    job = running(twin, ada)
    row = overdue(twin, job)
    before_the_next_commit(twin, lambda: outputs.commit(twin.on, job, [row.id]))
    expire.expire_overdue(twin.on)
    assert rows(twin)[0].is_committed
    assert twin.objects.objects


def test_bytes_that_come_late_are_not_destroyed_when_their_commit_comes_first(twin: Twin, ada: User) -> None:
    """ART-1: the volume alone was found to be late, and its artifact is owned before that is written."""
    job = running(twin, ada)
    row = overdue(twin, job)
    artifact = twin.store.get(artifact_key(row.artifact), Artifact)
    assert artifact
    twin.store.commit([Replace(artifact, replace(artifact, due=twin.world.now() + timedelta(hours=1)))])
    before_the_next_commit(twin, lambda: outputs.commit(twin.on, job, [row.id]))
    owners.expire_upload(twin.on, row.artifact)
    there = volume(twin, row)
    assert there
    assert there.state is VolumeState.CREATED


@pytest.mark.parametrize(("early", "state"), [(1, VolumeState.CREATING), (0, VolumeState.DESTROYING)])
def test_a_volume_that_is_late_goes_alone_when_its_artifact_has_time(
    twin: Twin, ada: User, early: int, state: VolumeState
) -> None:
    job = running(twin, ada)
    row = overdue(twin, job)
    artifact = twin.store.get(artifact_key(row.artifact), Artifact)
    assert artifact
    twin.store.commit([Replace(artifact, replace(artifact, due=twin.world.now() + timedelta(hours=1)))])
    twin.pass_time(-early)
    owners.expire_upload(twin.on, row.artifact)
    there = volume(twin, row)
    assert there
    assert there.state is state
    if state is VolumeState.DESTROYING:
        with pytest.raises(Refused, match="output"):
            outputs.commit(twin.on, job, [row.id])


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
    before_the_next_commit(twin, lambda: owners.delete_unowned(twin.on, row.artifact))
    with pytest.raises(Refused) as told:
        outputs.commit(twin.on, job, [row.id])
    assert told.value.status == 404


def test_what_is_no_id_is_not_looked_for(twin: Twin, ada: User) -> None:
    """A client's text is no key of ours until it looks like one."""
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    (row,) = rows(twin)
    twin.store.commit([Create(replace(row, id="no-id", version=0))])
    twin.objects.objects[object_name(row.artifact)] = b"x"
    with pytest.raises(Refused) as told:
        outputs.commit(twin.on, job, ["no-id"])
    assert told.value.status == 404


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
        outputs.begin(twin.on, job, files())
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
    assert [(at - start).total_seconds() for at in tries] == [0, 60, 180, 420]
    there = volume(twin, row)
    assert there
    assert (there.state, there.tries) == (VolumeState.DESTROYING, 4)
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
    assert volume(twin, row)
    twin.objects.delete = delete  # type: ignore[method-assign]
    expire.expire_overdue(twin.on)
    assert volume(twin, row)
    twin.pass_time(60)
    expire.expire_overdue(twin.on)
    assert nothing_is_left(twin)


def test_two_that_delete_the_same_upload_delete_it(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    row = overdue(twin, job)
    delete = twin.objects.delete

    def again(name: str) -> None:
        twin.objects.delete = delete  # type: ignore[method-assign]
        twin.pass_time(60)
        owners.destroy(twin.on, row.artifact)
        delete(name)

    twin.objects.delete = again  # type: ignore[method-assign]
    expire.expire_overdue(twin.on)
    assert nothing_is_left(twin)


def test_who_loses_the_race_to_delete_leaves_it_to_the_winner(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    row = overdue(twin, job)
    owners.delete_unowned(twin.on, row.artifact)
    delete, deleted = twin.objects.delete, []

    def counting(name: str) -> None:
        deleted.append(name)
        delete(name)

    twin.objects.delete = counting  # type: ignore[method-assign]
    before_the_next_commit(twin, lambda: owners.destroy(twin.on, row.artifact))
    owners.destroy(twin.on, row.artifact)
    assert (deleted, nothing_is_left(twin)) == ([object_name(row.artifact)], True)


def test_how_big_outputs_may_be_and_how_many(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    most = configuration.current(twin.on).limits.output_bytes
    for size in (0, most):
        assert outputs.begin(twin.on, job, [AgentFile("/work/it", size=size, sha256="0" * 64)]).uploads
    for size, status in ((-1, 400), (most + 1, 413)):
        with pytest.raises(Refused) as told:
            outputs.begin(twin.on, job, [AgentFile("/work/it", size=size, sha256="0" * 64)])
        assert told.value.status == status
    with pytest.raises(Refused, match="at most 100 files at once"):
        outputs.begin(twin.on, job, files(limits.OUTPUTS_PER_CALL + 1))


def test_pages_of_outputs_follow_each_other_and_show_only_what_has_arrived(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job, files(limits.PAGE))
    outputs.begin(twin.on, job, files(2, limits.PAGE))
    arrive(twin)
    names = [row.id for row in rows(twin)]
    outputs.commit(twin.on, job, names[1:])
    first, after = outputs.list_outputs(twin.on, job)
    assert [row.id for row in first] == names[1 : limits.PAGE]
    assert after == names[limits.PAGE - 1]
    rest, end = outputs.list_outputs(twin.on, job, after)
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
    assert outputs.sign(twin.on, job, name, 60).size == 1


def test_an_output_that_two_commit_is_committed_once(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    outputs.begin(twin.on, job, files())
    names = arrive(twin)
    before_the_next_commit(twin, lambda: outputs.commit(twin.on, job, names))
    outputs.commit(twin.on, job, names)
    version = rows(twin)[0].version
    outputs.commit(twin.on, job, names)
    assert (version, rows(twin)[0].version) == (2, 2)


def test_the_outcome_of_a_finished_job_stands(twin: Twin, ada: User) -> None:
    job = running(twin, ada)
    finish(twin, job.id, Result.FAILED)
    assert job_of(twin, job.id).end.reason == "the script ended"
