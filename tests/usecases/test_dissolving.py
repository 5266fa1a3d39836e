"""What a job owns goes when its time has come and nobody depends on it: not before, and all of it. [ART-1] [ART-2]"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain import metrics
from penstock.domain.artifacts.artifacts import Artifact, ArtifactState, is_output
from penstock.domain.artifacts.inputs import Input, declare
from penstock.domain.artifacts.retention import LatestFailure, Retention
from penstock.domain.jobs.jobs import Job, Result
from penstock.domain.logs.archives import Archive
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create, Replace, Row
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import expire, owners
from penstock.usecases.jobs.prerequisites import pin
from penstock.usecases.jobs.settle import keep_from_now, keep_latest_failure, unpin
from tests.usecases.exact import commits, drop, put
from tests.usecases.races import before_the_next_commit, before_the_next_write_of
from tests.usecases.retained_jobs import end_of, ended, kept, nothing_is_left, of, tidy, with_a_row_of_its_own
from tests.usecases.steps import finish, hello, job_of, submit

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def outputs(twin: Twin) -> list[Artifact]:
    return [row for row in of(twin, Artifact) if is_output(row)]


def at_the_end(twin: Twin, job: str, after: timedelta = timedelta(0)) -> None:
    twin.world.time = end_of(twin, job) + after


def test_it_is_there_until_its_end_and_gone_after_it(twin: Twin, ada: User) -> None:
    job = ended(twin, ada, 2)
    at_the_end(twin, job, -SECOND)
    tidy(twin, 2)
    assert (len(outputs(twin)), len(twin.objects.objects)) == (2, 2)
    twin.pass_time(1)
    tidy(twin)
    row = kept(twin, job)
    assert row
    assert row.ended == twin.world.now()
    tidy(twin, 2)
    assert nothing_is_left(twin)
    assert kept(twin, job) is None
    assert job_of(twin, job).end.outputs_gone == row.ended


def test_an_unsettled_jobs_things_never_end(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.pass_time(10**9)
    expire.end_retention(twin.on, job)
    assert kept(twin, job) is None
    assert twin.store.commit(pin(twin.on, job, "D"))
    expire.end_retention(twin.on, job)
    row = kept(twin, job)
    assert row
    assert row.ended is None


def test_many_names_are_taken_apart_some_at_a_time(twin: Twin, ada: User) -> None:
    job = ended(twin, ada, expire.AT_ONCE + 1)
    at_the_end(twin, job)
    expire.end_retention(twin.on, job)
    expire.end_retention(twin.on, job)
    assert len(outputs(twin)) == 1
    assert kept(twin, job)
    expire.end_retention(twin.on, job)
    assert outputs(twin) == []
    assert kept(twin, job) is None
    assert job_of(twin, job).end.outputs_gone


@pytest.mark.parametrize("has_own_row", [False, True])
def test_what_is_gone_is_told_in_the_jobs_row_alone(twin: Twin, ada: User, has_own_row: bool) -> None:
    """Whoever told of it: the job's row from its end, or a row of its own since a job depended on it."""
    job = ended(twin, ada)
    until = end_of(twin, job)
    if has_own_row:
        with_a_row_of_its_own(twin, job)
        assert job_of(twin, job).end.kept_until is None
    assert end_of(twin, job) == until
    at_the_end(twin, job)
    tidy(twin, 2)
    assert (kept(twin, job), of(twin, Retention)) == (None, [])
    assert (job_of(twin, job).end.kept_until, job_of(twin, job).end.outputs_gone) == (None, until)
    assert job_of(twin, job).deadline is None


def test_each_output_goes_in_one_write_without_a_transaction(twin: Twin, ada: User) -> None:
    """ART-1: it is owned, or is being destroyed; a crash leaves nothing between."""
    job = ended(twin, ada, 2)
    at_the_end(twin, job)
    expire.end_retention(twin.on, job)
    written = commits(twin)
    expire.end_retention(twin.on, job)
    kinds = [sorted(type(getattr(change, "was", None)).__name__ for change in changes) for changes in written]
    assert kinds == [["Artifact"]] * 2 + [["NoneType"], ["Job"]]


def test_an_inputs_name_goes_with_its_ownership_in_one_write(twin: Twin, ada: User) -> None:
    """ART-1: a crash between two writes leaves nothing that is owned by a job that has no name for it."""
    job = ended(twin, ada)
    (artifact,) = of(twin, Artifact)
    put(twin, artifact, sort="input")
    name = replace(declare(job, "a", twin.world.now()), artifact=artifact.id)
    twin.store.commit([Create(name)])
    written = commits(twin)
    owners.release_input(twin.on, name, f"job#{job}")
    assert [sorted(type(change).__name__ for change in changes) for changes in written] == [["Delete", "Replace"]]
    assert (of(twin, Input), outputs(twin)) == ([], [])


def test_what_was_only_named_goes_with_the_job_and_what_is_committed_meanwhile_is_let_go(twin: Twin, ada: User) -> None:
    """ART-2: no agent can commit it any more, so nothing waits for its time."""
    job = ended(twin, ada, 2)
    named, _ = of(twin, Artifact)
    put(twin, named, state=ArtifactState.CREATING, owners=(), due=end_of(twin, job) + HOUR)
    at_the_end(twin, job)
    expire.end_retention(twin.on, job)
    owned = {"state": ArtifactState.CREATED, "owners": (f"job#{job}", "pin#ada"), "due": None}
    before_the_next_commit(twin, lambda: put(twin, of(twin, Artifact)[0], **owned))
    owners.release_output(twin.on, named.id, f"job#{job}")
    assert of(twin, Artifact)[0].owners == ("pin#ada",)
    put(twin, of(twin, Artifact)[0], state=ArtifactState.CREATING, owners=(), due=end_of(twin, job) + HOUR)
    expire.end_retention(twin.on, job)
    assert [row.state for row in of(twin, Artifact)] == [ArtifactState.DESTROYING] * 2


def test_inputs_and_outputs_share_what_one_call_releases(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expire, "AT_ONCE", 3)
    job = ended(twin, ada, 3)
    for name in "ab":
        twin.store.commit([Create(declare(job, name, twin.world.now()))])
    at_the_end(twin, job)
    expire.end_retention(twin.on, job)
    expire.end_retention(twin.on, job)
    assert (of(twin, Input), len(outputs(twin))) == ([], 2)
    assert kept(twin, job)
    expire.end_retention(twin.on, job)
    assert (outputs(twin), kept(twin, job)) == ([], None)


def test_what_somebody_else_owns_too_stays(twin: Twin, ada: User) -> None:
    """ART-1, I10: the job lets go, and frees no more than what it alone kept."""
    job = ended(twin, ada, 2)
    first, second = of(twin, Artifact)
    put(twin, first, owners=(*first.owners, "pin#ada"))
    at_the_end(twin, job)
    tidy(twin, 4)
    (left,) = of(twin, Artifact)
    assert (left.id, left.owners) == (first.id, ("pin#ada",))
    assert list(twin.objects.objects) == [f"artifacts/{first.id}"]
    assert second.id != first.id


def pinned(twin: Twin, ada: User) -> tuple[str, str]:
    """A job whose time has come, and one that depends on it and waits."""
    job = ended(twin, ada)
    dependent = submit(twin, ada)
    assert twin.store.commit(pin(twin.on, job, dependent))
    at_the_end(twin, job)
    return job, dependent


def settle(twin: Twin, job: str) -> None:
    twin.run()
    hello(twin, job)
    finish(twin, job)


def test_while_a_dependent_is_unsettled_nothing_ends(twin: Twin, ada: User) -> None:
    """ART-1, I6: what was there when it was accepted stays until it settles, whatever else runs out."""
    job, dependent = pinned(twin, ada)
    for _ in range(3):
        tidy(twin, 2)
        assert len(twin.objects.objects) == 1
        twin.pass_time(3600)
    unpin(twin.on, job, dependent)
    tidy(twin, 3)
    assert nothing_is_left(twin)


def test_an_unfinished_retention_is_checked_each_hour_at_most(twin: Twin, ada: User) -> None:
    job, _ = pinned(twin, ada)
    tidy(twin)
    row = kept(twin, job)
    assert row
    assert row.deadline == twin.world.now() + HOUR
    written = commits(twin)
    twin.pass_time(3599)
    tidy(twin)
    assert written == []
    twin.pass_time(1)
    tidy(twin)
    assert len(written) == 1


def test_a_dependent_whose_leaving_was_lost_keeps_nothing(twin: Twin, ada: User) -> None:
    """ART-2: the sweep sees that it has settled; one that was never accepted keeps nothing either."""
    job, dependent = pinned(twin, ada)
    row = kept(twin, job)
    assert row
    put(twin, row, dependents=("nothing", dependent))
    settle(twin, dependent)
    at_the_end(twin, job)
    tidy(twin, 3)
    assert not any(name.owners == (f"job#{job}",) for name in of(twin, Artifact))
    assert job_of(twin, job).end.outputs_gone


def test_those_that_have_settled_are_dropped_and_the_others_keep_it(twin: Twin, ada: User) -> None:
    job, dependent = pinned(twin, ada)
    row = kept(twin, job)
    assert row
    put(twin, row, dependents=("nothing", dependent, "not looked at"))
    tidy(twin)
    row = kept(twin, job)
    assert row
    assert (row.dependents, row.ended) == ((dependent, "not looked at"), None)


def test_who_comes_just_before_the_end_is_kept_for(twin: Twin, ada: User) -> None:
    """ART-1: the sweep read the row before the dependent's submit wrote it."""
    job = ended(twin, ada)
    dependent = submit(twin, ada)
    at_the_end(twin, job)
    before_the_next_commit(twin, lambda: twin.store.commit(pin(twin.on, job, dependent)))
    expire.end_retention(twin.on, job)
    row = kept(twin, job)
    assert row
    assert (row.ended, row.dependents) == (None, (dependent,))


def test_who_comes_just_after_the_end_is_refused(twin: Twin, ada: User) -> None:
    """ART-1: the dependent read the row before the sweep wrote it, and its write does not hold."""
    job = ended(twin, ada)
    at_the_end(twin, job)
    changes = pin(twin.on, job, "D")
    expire.end_retention(twin.on, job)
    assert not twin.store.commit(changes)
    with pytest.raises(Refused, match="are gone since") as told:
        pin(twin.on, job, "D")
    assert told.value.status == 422
    tidy(twin, 3)
    with pytest.raises(Refused, match="are gone since"):
        pin(twin.on, job, "D")


def test_two_sweeps_at_once_end_it_once(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    at_the_end(twin, job)
    before_the_next_commit(twin, lambda: expire.end_retention(twin.on, job))
    expire.end_retention(twin.on, job)
    for _ in range(2):
        before_the_next_commit(twin, lambda: expire.end_retention(twin.on, job))
        expire.end_retention(twin.on, job)
    tidy(twin, 2)
    assert nothing_is_left(twin)


def test_a_job_whose_row_is_gone_leaves_nothing_all_the_same(twin: Twin, ada: User) -> None:
    job = with_a_row_of_its_own(twin, ended(twin, ada))
    drop(twin, job_of(twin, job))
    at_the_end(twin, job)
    tidy(twin, 4)
    assert nothing_is_left(twin)
    assert kept(twin, job) is None


def test_a_name_without_an_artifact_goes_alone(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    (artifact,) = of(twin, Artifact)
    name = declare(job, "a", twin.world.now())
    twin.store.commit([Create(name)])
    for _ in range(2):
        owners.release_input(twin.on, name, f"job#{job}")
    assert (of(twin, Input), of(twin, Artifact)) == ([], [artifact])


def failed(twin: Twin, user: User, **ask: object) -> str:
    twin.pass_time(60)
    return ended(twin, user, result=Result.FAILED, **ask)


def days(twin: Twin, job: str) -> int:
    settled = job_of(twin, job).times.settled
    assert settled
    return (end_of(twin, job) - settled).days


def test_the_latest_failure_of_a_name_is_kept_longer(twin: Twin, ada: User) -> None:
    first, other = failed(twin, ada, name="build"), failed(twin, ada, name="test")
    ended(twin, ada, name="build")
    assert (days(twin, first), days(twin, other)) == (90, 90)
    second = failed(twin, ada, name="build")
    assert (days(twin, first), days(twin, second), days(twin, other)) == (14, 90, 90)


def test_of_another_owner_it_is_another(twin: Twin, ada: User, root: User) -> None:
    first, second = failed(twin, ada, name="build"), failed(twin, root, name="build")
    assert (days(twin, first), days(twin, second)) == (90, 90)


def test_the_failure_that_is_heard_of_late_does_not_take_the_place_of_a_later_one(twin: Twin, ada: User) -> None:
    first = failed(twin, ada, name="build")
    second = failed(twin, ada, name="build")
    keep_latest_failure(twin.on, job_of(twin, first))
    assert (days(twin, first), days(twin, second)) == (14, 90)
    written = commits(twin)
    keep_latest_failure(twin.on, job_of(twin, second))
    assert written == []


def test_a_failure_that_nobody_came_to_remember_is_remembered_before_anything_ends(twin: Twin, ada: User) -> None:
    job = failed(twin, ada, name="build")
    row, (latest,) = kept(twin, job), of(twin, LatestFailure)
    assert row
    put(twin, row, longer=None)
    drop(twin, latest)
    at_the_end(twin, job)
    tidy(twin, 3)
    assert days(twin, job) == 90
    assert len(twin.objects.objects) == 1


def test_who_was_named_and_is_not_kept_longer_is(twin: Twin, ada: User) -> None:
    """A crash is none here, for both are one write; a restored row is as good as one."""
    job = failed(twin, ada, name="build")
    row = kept(twin, job)
    assert row
    put(twin, row, longer=None)
    keep_latest_failure(twin.on, job_of(twin, job))
    assert days(twin, job) == 90


def test_a_latest_failure_ends_too_and_its_name_is_free(twin: Twin, ada: User) -> None:
    job = failed(twin, ada, name="build")
    at_the_end(twin, job)
    tidy(twin, 3)
    assert nothing_is_left(twin)
    assert of(twin, LatestFailure) == []
    keep_latest_failure(twin.on, job_of(twin, job))
    assert of(twin, LatestFailure) == []


def test_the_end_of_one_forgets_no_later_failure(twin: Twin, ada: User) -> None:
    first, second = failed(twin, ada, name="build"), failed(twin, ada, name="build")
    at_the_end(twin, first)
    tidy(twin, 3)
    (latest,) = of(twin, LatestFailure)
    assert latest.job == second
    assert len(twin.objects.objects) == 1


def test_a_failed_job_that_is_being_taken_apart_is_neither_remembered_nor_changed(twin: Twin, ada: User) -> None:
    first = failed(twin, ada, name="build")
    row = kept(twin, first)
    assert row
    put(twin, row, longer=None, until=twin.world.now(), ended=twin.world.now())
    keep_latest_failure(twin.on, job_of(twin, first))
    failed(twin, ada, name="build")
    row = kept(twin, first)
    assert row
    assert row.longer is None


def test_two_failures_at_once_keep_the_later_one(twin: Twin, ada: User) -> None:
    first, second = failed(twin, ada, name="a"), failed(twin, ada, name="b")
    for job in (first, second):
        found, row = job_of(twin, job), kept(twin, job)
        assert row
        twin.store.commit([Replace(found, replace(found, name="build"))])
        put(twin, row, longer=None)
    later: Job = job_of(twin, second)
    before_the_next_commit(twin, lambda: keep_latest_failure(twin.on, later))
    keep_latest_failure(twin.on, job_of(twin, first))
    assert (days(twin, first), days(twin, second)) == (14, 90)


def test_a_sweep_goes_on_at_once_with_a_job_that_owned_more_than_one_call_releases(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ART-2: something came of the call before, so the next sweep does not wait. The log goes last."""
    monkeypatch.setattr(expire, "AT_ONCE", 1)
    job = ended(twin, ada, 2)
    for name in "ab":
        twin.store.commit([Create(declare(job, name, twin.world.now()))])
    at_the_end(twin, job)
    tidy(twin, 4)
    assert (len(of(twin, Input)), len(outputs(twin)), of(twin, Archive)) == (0, 1, [])
    tidy(twin, 2)
    assert (outputs(twin), kept(twin, job)) == ([], None)
    assert len(of(twin, Archive)) == 1


@pytest.mark.parametrize("kind", [Retention, Job])
def test_what_another_call_has_closed_meanwhile_is_not_opened_again(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch, kind: type[Row]
) -> None:
    """ART-2: its job has recorded that its outputs are gone."""
    monkeypatch.setattr(expire, "AT_ONCE", 1)
    job = ended(twin, ada)
    if kind is Retention:
        with_a_row_of_its_own(twin, job)
    at_the_end(twin, job)
    expire.end_retention(twin.on, job)
    before_the_next_write_of(twin, kind, lambda: expire.end_retention(twin.on, job))
    expire.end_retention(twin.on, job)
    assert kept(twin, job) is None
    assert job_of(twin, job).end.outputs_gone


def test_what_a_job_saved_for_others_is_none_of_the_things_that_it_lets_go(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ART-1, ART-2: a cache's archive was made for the job and stays; the job's own things end without it."""
    monkeypatch.setattr(expire, "AT_ONCE", 1)
    job = ended(twin, ada)
    (row,) = of(twin, Artifact)
    put(twin, row, sort="cache", owners=("cache#ada/k",))
    at_the_end(twin, job)
    expire.end_retention(twin.on, job)
    expire.end_retention(twin.on, job)
    assert kept(twin, job) is None
    assert [each.owners for each in of(twin, Artifact)] == [("cache#ada/k",)]


def test_how_late_the_sweep_is_with_what_nobody_waits_for_is_measured(twin: Twin, ada: User) -> None:
    job = ended(twin, ada)
    at_the_end(twin, job, HOUR)
    tidy(twin)
    assert twin.metrics.last(metrics.TIDY_LATE) == HOUR.total_seconds()


def test_what_is_pinned_while_a_job_settles_stays_pinned(twin: Twin, ada: User) -> None:
    """ART-1: the job had no row of what it keeps, and a dependent makes one meanwhile."""
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    before_the_next_write_of(twin, Job, lambda: twin.store.commit(pin(twin.on, job, "D")))
    finish(twin, job)
    row = kept(twin, job)
    assert row
    assert list(row.dependents) == ["D"]
    assert job_of(twin, job).end.kept_until is None


def test_the_end_of_what_is_kept_is_set_once(twin: Twin, ada: User) -> None:
    job = with_a_row_of_its_own(twin, ended(twin, ada))
    assert keep_from_now(twin.on, job_of(twin, job)) == (job_of(twin, job), [])


def test_who_is_kept_longer_and_is_named_nowhere_is_named_again(twin: Twin, ada: User) -> None:
    job = failed(twin, ada, name="build")
    (latest,) = of(twin, LatestFailure)
    drop(twin, latest)
    keep_latest_failure(twin.on, job_of(twin, job))
    assert [each.job for each in of(twin, LatestFailure)] == [job]


def test_of_two_failures_at_once_the_later_one_is_the_latest(twin: Twin, ada: User) -> None:
    first, second, third = (failed(twin, ada, name="build") for _ in range(3))
    (latest,) = of(twin, LatestFailure)
    put(twin, latest, job=first, settled=job_of(twin, first).times.settled)
    row = kept(twin, first)
    assert row
    drop(twin, row)  # or that both change it would say who came too late
    before_the_next_write_of(twin, LatestFailure, lambda: keep_latest_failure(twin.on, job_of(twin, third)))
    keep_latest_failure(twin.on, job_of(twin, second))
    assert [each.job for each in of(twin, LatestFailure)] == [third]


def test_a_failure_that_ended_is_left_as_it_is(twin: Twin, ada: User) -> None:
    first = failed(twin, ada, name="build")
    row = kept(twin, first)
    assert row
    put(twin, row, ended=twin.world.now())
    over = kept(twin, first)
    failed(twin, ada, name="build")
    assert kept(twin, first) == over


def test_what_is_pinned_while_a_later_failure_takes_its_place_stays_pinned(twin: Twin, ada: User) -> None:
    """ART-1"""
    first = failed(twin, ada, name="build")
    before_the_next_write_of(
        twin,
        LatestFailure,
        lambda: twin.store.commit(pin(twin.on, first, "D")),
        when=lambda latest: latest.job != first,
    )
    second = failed(twin, ada, name="build")
    row = kept(twin, first)
    assert row
    assert list(row.dependents) == ["D"]
    assert (days(twin, first), days(twin, second)) == (14, 90)
