"""Jobs that wait for other jobs, through the real use cases."""

from __future__ import annotations

import pytest

from penstock.domain.artifacts.retention import Retention, retention_key
from penstock.domain.commands import SubmitJob
from penstock.domain.jobs import prerequisites as domain_prerequisites
from penstock.domain.jobs.dependencies import Dependency, Dependent, On
from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused, Unreached
from penstock.kernel.rows import Create
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel, jobs, prerequisites, settle
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.jobs.flow import spec_of
from penstock.usecases.workers.agents import Caller
from tests.usecases.dependencies import depends
from tests.usecases.steps import SCRIPT, finish, hello, job_of, submit, sweep, told

BOB = User(name="bob", created=START, version=1)


def run(twin: Twin, job: str, result: Result = Result.SUCCEEDED) -> None:
    twin.run()
    caller: Caller = hello(twin, job)
    assert caller.job.id == job
    finish(twin, job, result)


def waking_is_lost(twin: Twin) -> None:
    kept = [each for each in twin.queues.messages if each[2].get("do") not in ("judge", "wake")]
    twin.queues.messages.clear()
    twin.queues.messages.extend(kept)


def test_a_job_waits_until_the_other_has_succeeded(twin: Twin, ada: User) -> None:
    first = submit(twin, ada, name="build")
    second = submit(twin, ada, **depends(first))
    twin.run()
    waiting = job_of(twin, second)
    assert (waiting.state, waiting.times.ready) == (State.WAITING, None)
    assert f"it waits for job {first} (build); then a worker of linux" in told(twin, second)[0]
    run(twin, first)
    begun = job_of(twin, second)
    assert (begun.state, begun.times.ready is not None) == (State.ACQUIRING, True)
    assert any(line.startswith("job dependencies complete; ready to run") for line in told(twin, second))
    run(twin, second)
    assert job_of(twin, second).end.outcome is Outcome.SUCCEEDED


def test_all_of_several_are_waited_for(twin: Twin, ada: User) -> None:
    first, second = submit(twin, ada), submit(twin, ada)
    last = submit(twin, ada, **depends(first, second))
    run(twin, second)
    assert job_of(twin, last).state is State.WAITING
    run(twin, first)
    assert job_of(twin, last).state is State.ACQUIRING


def test_what_has_settled_is_not_waited_for(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    run(twin, first)
    second = submit(twin, ada, **depends(first))
    twin.run()
    assert job_of(twin, second).state is State.ACQUIRING
    assert not [row for row in twin.store.rows.values() if isinstance(row, Dependent)]
    failing = submit(twin, ada, **depends(first, on="failure"))
    found = job_of(twin, failing)
    assert found.end.outcome is Outcome.FAILED
    assert found.end.reason == f"this job depends on job {first} (job) failing, but it has completed; failing job"


def test_a_failure_fails_those_that_depend_on_it_one_after_the_other(twin: Twin, ada: User) -> None:
    first = submit(twin, ada, name="build")
    second = submit(twin, ada, name="test", **depends(first))
    third = submit(twin, ada, **depends(second))
    cleaner = submit(twin, ada, **depends(second, on="failure", copy_outputs=False))
    run(twin, first, Result.FAILED)
    assert (job_of(twin, second).end.outcome, job_of(twin, third).end.outcome) == (Outcome.FAILED, Outcome.FAILED)
    said = f"this job depends on job {first} (build) completing, but it has failed; failing job"
    assert job_of(twin, second).end.reason == said
    assert f"settled: failed: {said}; took 0 s" in told(twin, second)
    assert "job " + second in (job_of(twin, third).end.reason or "")
    run(twin, cleaner)
    assert job_of(twin, cleaner).end.outcome is Outcome.SUCCEEDED


def test_a_waiting_job_is_cancelled_at_once_and_so_fails_those_behind_it(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    second = submit(twin, ada, **depends(first))
    third = submit(twin, ada, **depends(second))
    found = cancel.cancel(twin.on, ada, second)
    assert (found.state, found.end.outcome, found.end.reason) == (State.SETTLED, Outcome.CANCELLED, "cancelled by ada")
    twin.run()
    assert "completing, but it was cancelled" in (job_of(twin, third).end.reason or "")
    run(twin, first)
    assert job_of(twin, second).end.outcome is Outcome.CANCELLED


def test_an_interrupted_cancellation_is_finished_by_the_next_check(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    second = submit(twin, ada, **depends(first))
    was = settle.settle
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settle, "settle", lambda *_: None)
        cancel.cancel(twin.on, ada, second)
    assert settle.settle is was
    assert job_of(twin, second).state is State.WAITING
    sweep(twin, 200)
    assert job_of(twin, second).end.outcome is Outcome.CANCELLED


def test_a_lost_message_is_made_good_by_the_sweep(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    second = submit(twin, ada, **depends(first))
    twin.run()
    hello(twin, first)
    sweep(twin)
    assert job_of(twin, second).due
    settle.settle(twin.on, first, 1, "Cancelled", "stopped")
    waking_is_lost(twin)
    twin.run()
    assert job_of(twin, second).state is State.WAITING
    sweep(twin, 121)
    assert job_of(twin, second).is_settled


def test_who_settles_and_dies_before_waking_wakes_when_called_again(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    second = submit(twin, ada, **depends(first, on="always"))
    twin.run()
    hello(twin, first)
    finish_without_waking(twin, first)
    assert job_of(twin, second).state is State.WAITING
    settle.settle(twin.on, first, 1, None, None)
    twin.run()
    assert job_of(twin, second).state is State.ACQUIRING


def finish_without_waking(twin: Twin, job: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settle, "notify_dependents", lambda *_: None)
        finish(twin, job)


def test_an_attempt_that_is_retried_wakes_no_dependents(twin: Twin, ada: User) -> None:
    first = submit(twin, ada, retries=1)
    second = submit(twin, ada, **depends(first))
    twin.run()
    hello(twin, first)
    settle.settle(twin.on, first, 1, "Lost", "it was lost")
    assert not [each for each in twin.queues.messages if each[2].get("do") == "judge"]
    assert job_of(twin, second).state is State.WAITING


def test_many_dependents_are_told_page_by_page(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    for number in range(settle.AT_ONCE + 5):
        twin.store.commit([Create(Dependent(job=first, dependent=f"D{number:04}"))])
    twin.run()
    hello(twin, first)
    finish(twin, first)
    settle.notify_dependents(twin.on, first)
    assert sum(each[2]["do"] == "judge" for each in twin.queues.messages) == settle.AT_ONCE
    twin.queues.messages.rotate(1)
    more = twin.queues.messages.popleft()[2]
    twin.queues.messages.clear()
    settle.notify_dependents(twin.on, more["job"], more["after"])
    assert [each[2]["job"] for each in twin.queues.messages] == [f"D{number:04}" for number in range(100, 105)]


def test_a_flow_that_could_not_be_started_is_by_the_sweep(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = submit(twin, ada)
    second = submit(twin, ada, **depends(first))
    was = twin.flows.start

    def unreached(job: str, attempt: int, steps: object) -> None:
        if job == second:
            raise Unreached("no")
        was(job, attempt, steps)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(twin.flows, "start", unreached)
        run(twin, first)
    assert job_of(twin, second).state is State.QUEUED
    sweep(twin)
    assert job_of(twin, second).state is State.ACQUIRING


def test_another_s_job_is_as_good_as_none(twin: Twin, ada: User, root: User) -> None:
    first = submit(twin, ada)
    said = set()
    for job in (first, "0" * 26, "no id"):
        with pytest.raises(Refused, match=r"dependencies\.n0: there is no job") as refused:
            submit(twin, BOB, **depends(job))
        said.add((refused.value.status, refused.value.code, refused.value.detail.replace(job, "")))
    assert len(said) == 1
    assert job_of(twin, submit(twin, root, **depends(first))).state is State.WAITING


def test_nothing_depends_on_a_job_that_is_gone(twin: Twin) -> None:
    with pytest.raises(Refused, match="no job") as refused:
        prerequisites.pin(twin.on, "01JZZZZZZZZZZZZZZZZZZZZZZZ", "D")
    assert refused.value.status == 404


def test_too_many_wait_for_one_job(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WAITING_DEPENDENTS", 2)
    first = submit(twin, ada)
    submit(twin, ada, **depends(first))
    submit(twin, ada, **depends(first))
    with pytest.raises(Refused, match="at most 2 jobs may wait for one") as refused:
        submit(twin, ada, **depends(first))
    assert refused.value.status == 409
    run(twin, first)
    submit(twin, ada, **depends(first))


def test_a_job_that_ended_while_it_waited_waits_for_nobody(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WAITING_DEPENDENTS", 2)
    first, other = submit(twin, ada), submit(twin, ada)
    for _ in range(3):
        cancel.cancel(twin.on, ada, submit(twin, ada, **depends(first, other, first)))
    failed = submit(twin, ada, **depends(first, other))
    run(twin, other, result=Result.FAILED)
    assert job_of(twin, failed).end.outcome is Outcome.FAILED
    rows = [row for row in twin.store.rows.values() if isinstance(row, Dependent)]
    assert [row.job for row in rows] == [other], "it has settled, and nobody counts who waited for it"
    submit(twin, ada, **depends(first))


def test_settled_jobs_make_room_for_others_that_need_the_same(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whose removal was lost."""
    monkeypatch.setattr(limits, "DEPENDENTS", 3)
    monkeypatch.setattr(limits, "BATCH_KEYS", 2)
    first = submit(twin, ada)
    run(twin, first)
    jobs_ = [submit(twin, ada, **depends(first)) for _ in range(3)]
    with pytest.raises(Refused, match="at most 3 unsettled jobs may depend on one"):
        submit(twin, ada, **depends(first))
    with monkeypatch.context() as patch:
        patch.setattr(settle, "_unpin_dependencies", lambda on, job: None)
        for job in jobs_[1:]:
            run(twin, job)
    last = submit(twin, ada, **depends(first))
    row, _ = settle.find_retention(twin.on, first)
    assert row
    assert row.dependents == (jobs_[0], last)


def test_as_many_as_there_may_be_fit_one_commit(twin: Twin, ada: User) -> None:
    priors = [submit(twin, ada) for _ in range(limits.DEPENDENCIES)]
    sizes = []
    was = twin.store.commit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.store, "commit", lambda changes: sizes.append(len(changes)) or was(changes))
        last = submit(twin, ada, **depends(*priors))
    assert len(job_of(twin, last).request.dependencies) == 64
    assert max(sizes) <= 100


def test_the_same_job_twice_is_waited_for_once(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    second = submit(twin, ada, **depends(first, first))
    run(twin, first)
    assert job_of(twin, second).state is State.ACQUIRING


def test_why_says_for_what_and_what_that_is_waiting_for(twin: Twin, ada: User) -> None:
    first = submit(twin, ada, name="build", resources=["bench"])
    second = submit(twin, ada, name="test", **depends(first))
    third = submit(twin, ada, **depends(second))
    twin.run()
    why = jobs.explain(twin.on, job_of(twin, third))
    assert why.summary == (
        f"the job waits for 1 of the 1 that it depends on: job {second} (test) to succeed; "
        f"job {second}: the job waits for 1 of the 1 that it depends on: job {first} (build) to succeed; "
        f"job {first}: the job waits for its worker to say hello"
    )
    assert (why.state, why.waiting_for) == (State.WAITING, f"job {second}")
    for _ in range(7):
        third = submit(twin, ada, **depends(third))
    assert jobs.explain(twin.on, job_of(twin, third)).summary.count("the job waits for") == 6
    settle.settle(twin.on, first, 1, "Unsatisfiable", "so it is")
    assert "nothing any more" not in jobs.explain(twin.on, job_of(twin, third)).summary


HEADED = """#!/bin/bash
#: name = "test"
#: variety = "basic"
#: [dependencies.build]
#: job = "the build"
#: on = "failure"
#: copy_outputs = false
true
"""


def test_what_a_file_says_of_a_dependency_counts_for_the_job_that_is_named(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    ask = SubmitJob(HEADED, path="test.sh", dependencies={"build": {"job": first}})
    (found,) = job_of(twin, jobs_submit.submit(twin.on, ada, ask, None)).request.dependencies
    assert (found.name, found.job, found.on, found.copy_outputs) == ("build", first, "failure", False)
    ask = SubmitJob(HEADED, dependencies={"build": {"job": first, "on": "always"}})
    (found,) = job_of(twin, jobs_submit.submit(twin.on, ada, ask, None)).request.dependencies
    assert (found.on, found.copy_outputs) == ("always", False)


def test_a_file_s_dependency_needs_a_job(twin: Twin, ada: User) -> None:
    with pytest.raises(Refused, match="depends on the jobs of other files") as refused:
        jobs_submit.submit(twin.on, ada, SubmitJob(HEADED, path="test.sh"), None)
    (fault,) = refused.value.faults
    assert (fault.file, fault.line, fault.column) == ("test.sh", 5, 10)
    assert "penstock job run DIR" in (fault.hint or "")


@pytest.mark.usefixtures("by_flow")
def test_a_job_goes_without_what_was_left_out_of_its_set(twin: Twin, ada: User) -> None:
    script = (
        '#!/bin/bash\n#: name = "x"\n#: variety = "basic"\n'
        '#: [dependencies.one]\n#: job = "a"\n#: [dependencies.two]\n#: job = "b"\n'
    )
    first = submit(twin, ada)
    job = jobs_submit.submit(
        twin.on, ada, SubmitJob(script, without=["two"], dependencies={"one": {"job": first}}), None
    )
    assert [each.name for each in job_of(twin, job).request.dependencies] == ["one"]
    free = jobs_submit.submit(twin.on, ada, SubmitJob(script, without=["one", "two"]), None)
    assert job_of(twin, free).state is State.QUEUED
    assert job_of(twin, jobs_submit.retry(twin.on, ada, job_of(twin, free))).request.dependencies == ()
    with pytest.raises(Refused) as refused:
        jobs_submit.submit(twin.on, ada, SubmitJob(script, without=["two", "three"]), None)
    (fault,) = refused.value.faults
    assert (refused.value.status, fault.where, fault.hint) == (400, "without", "it has: one, two")
    assert fault.message == "job.sh has no dependency 'three'"
    with pytest.raises(Refused, match="depends on the jobs of other files"):
        jobs_submit.submit(twin.on, ada, SubmitJob(script, without=["two"]), None)


@pytest.mark.usefixtures("by_flow")
def test_a_plan_needs_none_and_says_for_what_it_would_wait(twin: Twin, ada: User) -> None:
    found = jobs_submit.plan(twin.on, ada, SubmitJob(HEADED))
    assert found.sentences[0] == "first it would wait for the job of 'the build' to fail"
    first = submit(twin, ada, name="build")
    found = jobs_submit.plan(twin.on, ada, SubmitJob(SCRIPT, dependencies={"build": {"job": first}}))
    assert found.sentences[0] == f"first it would wait for job {first} (build), which is queued, to succeed"
    assert (found.depends, found.seconds) == (True, None)


def test_a_job_that_depends_is_retried_with_what_it_depended_on(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    second = submit(twin, ada, **depends(first))
    run(twin, first)
    run(twin, second, Result.FAILED)
    again = jobs_submit.retry(twin.on, ada, job_of(twin, second))
    assert job_of(twin, again).request.dependencies == job_of(twin, second).request.dependencies
    run(twin, again)
    assert job_of(twin, again).end.outcome is Outcome.SUCCEEDED


def test_a_job_is_retried_after_the_retry_of_what_it_depended_on(twin: Twin, ada: User) -> None:
    """Only the job is another: how it must end, and whether its outputs are copied, stays."""
    first, other = submit(twin, ada), submit(twin, ada)
    asked = {"build": {"job": first, "copy_outputs": False}, "other": {"job": other, "on": "always"}}
    second = submit(twin, ada, dependencies=asked)
    run(twin, first, Result.FAILED)
    run(twin, other)
    twin.run()
    assert job_of(twin, second).end.outcome is Outcome.FAILED
    instead = jobs_submit.retry(twin.on, ada, job_of(twin, first))
    again = jobs_submit.retry(twin.on, ada, job_of(twin, second), {"build": instead})
    assert job_of(twin, again).request.dependencies == (
        Dependency("build", instead, copy_outputs=False),
        Dependency("other", other, On.ALWAYS),
    )
    assert job_of(twin, again).state is State.WAITING
    run(twin, instead)
    run(twin, again)
    assert job_of(twin, again).end.outcome is Outcome.SUCCEEDED
    third = jobs_submit.retry(twin.on, ada, job_of(twin, again))
    assert job_of(twin, third).request.dependencies == job_of(twin, again).request.dependencies


def test_a_retry_copies_the_outputs_of_the_job_that_it_was_given(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    second = submit(twin, ada, **depends(first))
    run(twin, first, Result.FAILED)
    instead = jobs_submit.retry(twin.on, ada, job_of(twin, first))
    again = jobs_submit.retry(twin.on, ada, job_of(twin, second), {"n0": instead})
    (dependency,) = job_of(twin, again).request.dependencies
    assert (dependency.job, dependency.copy_outputs) == (instead, True)
    assert keepers(twin, instead) == {again}
    assert again not in keepers(twin, first)


def keepers(twin: Twin, job: str) -> set[str]:
    """The jobs for which a job's outputs are kept."""
    row = twin.store.get(retention_key(job), Retention)
    return set(row.dependents) if row else set()


def test_a_retry_is_refused_for_a_dependency_that_the_job_has_not(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    second = submit(twin, ada, **depends(first))
    for job, hint in ((second, "it has: n0"), (first, "it depends on no job")):
        with pytest.raises(Refused) as refused:
            jobs_submit.retry(twin.on, ada, job_of(twin, job), {"other": first})
        (fault,) = refused.value.faults
        assert (refused.value.status, refused.value.code) == (400, "bad-request")
        assert (fault.message, fault.where, fault.hint) == (
            f"job {job} has no dependency 'other'",
            "dependencies",
            hint,
        )
        assert refused.value.detail == f"{fault.message}; {hint}"


def test_a_retry_depends_on_no_job_that_its_user_may_not_read(twin: Twin, ada: User) -> None:
    """SEC-2: the same rule as when a job is submitted, and the same words for what does not exist."""
    first = submit(twin, ada)
    second = submit(twin, ada, **depends(first))
    theirs = submit(twin, User(name="bob", created=START, version=1))
    for other in (theirs, "none", ""):
        with pytest.raises(Refused) as refused:
            jobs_submit.retry(twin.on, ada, job_of(twin, second), {"n0": other})
        assert (refused.value.status, refused.value.code) in ((422, "unknown-dependency"), (400, "bad-request"))
    assert refused.value.status == 400
    with pytest.raises(Refused, match=r"dependencies\.n0: there is no job"):
        jobs_submit.retry(twin.on, ada, job_of(twin, second), {"n0": theirs})


def test_a_retry_with_the_same_key_is_the_same_job(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    second = submit(twin, ada, **depends(first))
    jobs = [job_of(twin, each) for each in (first, second)]
    instead = {jobs_submit.retry(twin.on, ada, jobs[0], key="k") for _ in range(3)}
    assert len(instead) == 1
    (new,) = instead
    assert new != first
    again = {jobs_submit.retry(twin.on, ada, jobs[1], {"n0": new}, "k") for _ in range(3)}
    assert len(again) == 1, "a key counts for each job by itself"
    with pytest.raises(Refused, match="this Idempotency-Key was used for another request"):
        jobs_submit.retry(twin.on, ada, jobs[1], {"n0": first}, "k")
    assert jobs_submit.retry(twin.on, ada, jobs[0]) not in {first, new}


def test_who_was_judged_is_not_judged_again(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    second = submit(twin, ada, **depends(first))
    run(twin, first)
    hello(twin, second)
    before = job_of(twin, second)
    prerequisites.judge(twin.on, second)
    prerequisites.judge(twin.on, "0" * 26)
    settle.settle(twin.on, second, 1, domain_prerequisites.DEPENDENCY_ERROR, "late")
    assert job_of(twin, second) == before


MATRIX = """#!/bin/bash
#: name = "build"
#: variety = "basic"
#: target = "${{ matrix.os }}"
#: [dependencies.fetch]
#: job = "fetch"
#: [matrix]
#: os = ["linux", "lab"]
#: board = ["a", "b"]
true
"""


def test_one_job_of_a_file_with_a_matrix(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    named = {"fetch/x": {"job": first, "on": "always"}, "fetch/y": {"job": first}}
    ask = SubmitJob(MATRIX, path="build.sh", matrix={"os": "linux", "board": "b"}, dependencies=named)
    job = jobs_submit.submit(twin.on, ada, ask, None)
    found = job_of(twin, job)
    assert (found.name, found.request.target) == ("build (linux, b)", "linux")
    assert [each.name for each in found.request.dependencies] == ["fetch/x", "fetch/y"]
    spec = spec_of(twin.on, found)
    assert spec
    assert dict(spec.env) == {"MATRIX_OS": "linux", "MATRIX_BOARD": "b"}
    assert job_of(twin, jobs_submit.retry(twin.on, ada, found)).name == "build (linux, b)"


@pytest.mark.parametrize(
    ("script", "matrix", "status", "code"),
    [
        (MATRIX, None, 422, "matrix-without-values"),
        (MATRIX, {"os": "linux"}, 400, "bad-request"),
        (MATRIX, {"os": "linux", "board": "c"}, 400, "bad-request"),
        (SCRIPT, {"os": "linux"}, 400, "bad-request"),
        (MATRIX, {"os": "lab", "board": "a"}, 403, "privilege-missing"),
    ],
)
def test_a_combination_that_cannot_be(
    twin: Twin, ada: User, script: str, matrix: dict[str, str] | None, status: int, code: str
) -> None:
    first = submit(twin, ada)
    ask = SubmitJob(script, matrix=matrix, dependencies={"fetch": {"job": first}})
    with pytest.raises(Refused) as refused:
        jobs_submit.submit(twin.on, ada, ask, None)
    assert (refused.value.status, refused.value.code) == (status, code)


def test_the_log_warns_of_keys_of_a_dependency_that_have_no_effect(twin: Twin, ada: User) -> None:
    """Such a key was most likely meant for the job, as `target` here."""
    header = '#: name = "b"\n#: variety = "basic"\n#: [dependencies.x]\n#: job = "a"\n#: target = "lab"\n'
    first = submit(twin, ada, name="a")
    ask = SubmitJob(f"#!/bin/bash\n{header}\necho\n", path="b.sh", dependencies={"x": {"job": first}})
    job = jobs_submit.submit(twin.on, ada, ask, None)
    assert job_of(twin, job).request.target == "default"
    (warning,) = [line for line in told(twin, job) if "warning" in line]
    assert warning.startswith("warning: b.sh:6:4: the key `target` has no effect here (`target` is a key of the job:")
    assert not [line for line in told(twin, first) if "warning" in line]
