"""What jobs are given: what other jobs kept, by reference, and what their users send."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.artifacts.inputs import ARRIVE_WITHIN
from penstock.domain.artifacts.retention import Retention
from penstock.domain.commands import NewInput, SubmitJob
from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.domain.replies import InputDownload, InputDownloads
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Delete, Replace
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import inputs
from penstock.usecases.jobs import cancel, jobs, prerequisites, settle
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.workers import agents
from tests.usecases.dependencies import depends
from tests.usecases.inputs import all_inputs, digest, run, send
from tests.usecases.steps import hello, job_of, submit, sweep, told


def bytes_of(twin: Twin, told_: InputDownload) -> bytes:
    return twin.objects.objects[told_.url.removeprefix("memory://")]


def test_outputs_of_other_jobs_are_inputs_and_nothing_is_copied(twin: Twin, ada: User) -> None:
    first, second = submit(twin, ada), submit(twin, ada)
    last = submit(
        twin,
        ada,
        dependencies={
            "one": {"job": first},
            "none": {"job": first, "copy_outputs": False},
            "two": {"job": second, "on": "always"},
        },
    )
    run(twin, first, "/work/a", "/work/b")
    run(twin, second, "/work/../../etc/c", result=Result.FAILED)
    kept = dict(twin.objects.objects)
    twin.run()
    assert hello(twin, last)
    found = all_inputs(twin, last)
    assert [each.path for each in found] == ["/input/one/work/a", "/input/one/work/b", "/input/two/etc/c"]
    assert bytes_of(twin, found[0]) == b"/work/a"
    assert (found[0].size, found[0].sha256) == (7, digest(b"/work/a"))
    assert twin.objects.objects == kept


def test_the_agent_is_told_whether_there_is_anything_to_fetch(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    run(twin, first, "/work/a")
    assert job_of(twin, submit(twin, ada, **depends(first))).request.has_downloads
    assert not job_of(twin, submit(twin, ada, **depends(first, copy_outputs=False))).request.has_downloads
    assert job_of(twin, submit(twin, ada, inputs=["a"])).request.has_downloads


@pytest.mark.parametrize("count", [99, 100, 101, 250])
def test_there_may_be_many(twin: Twin, ada: User, count: int) -> None:
    first, second, third = submit(twin, ada), submit(twin, ada), submit(twin, ada)
    last = submit(twin, ada, **depends(first, second, third))
    run(twin, first, *(f"/work/{number}" for number in range(count)))
    run(twin, second)
    run(twin, third, "/work/last")
    found = all_inputs(twin, last)
    assert len(found) == len({each.path for each in found}) == count + 1
    assert found[-1].path == "/input/n2/work/last"


def test_only_what_the_last_attempt_kept_is_an_input(twin: Twin, ada: User) -> None:
    script = "#!/bin/bash\n#: name='a'\n#: variety='basic'\n#: on_failure='retry'\n#: retries=1\n"
    first = jobs_submit.submit(twin.on, ada, SubmitJob(script), None)
    last = submit(twin, ada, **depends(first))
    run(twin, first, "/work/early", result=Result.FAILED)
    run(twin, first, "/work/late")
    assert [each.path for each in all_inputs(twin, last)] == ["/input/n0/work/late"]


@pytest.mark.parametrize("after", ["x", "-1:", "1:x", "9999:", ":", "²:"])
def test_a_page_that_nobody_named_is_refused(twin: Twin, ada: User, after: str) -> None:
    job = job_of(twin, submit(twin, ada, inputs=["a"]))
    with pytest.raises(Refused, match="after must be what `next`"):
        inputs.list_for_agent(twin.on, job, after)


def test_a_page_behind_the_last_is_empty(twin: Twin, ada: User) -> None:
    job = job_of(twin, submit(twin, ada, inputs=["a"]))
    assert inputs.list_for_agent(twin.on, job, "7:") == InputDownloads([], None)


def retention(twin: Twin, job: str) -> Retention:
    found, _ = settle.find_retention(twin.on, job)
    assert found
    return found


def test_inputs_are_pinned_until_the_job_settles(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    run(twin, first, "/work/a")
    last = submit(twin, ada, **depends(first))
    only_after = submit(twin, ada, **depends(first, copy_outputs=False))
    assert retention(twin, first).dependents == (last,)
    run(twin, last)
    assert retention(twin, first).dependents == ()
    assert job_of(twin, only_after).state is not State.SETTLED


def test_a_job_cannot_depend_on_deleted_outputs(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    run(twin, first)
    found = job_of(twin, first)
    twin.store.commit([Replace(found, replace(found, end=replace(found.end, outputs_gone=twin.world.now())))])
    with pytest.raises(Refused, match=f"n0: the outputs of job {first} are gone") as refused:
        submit(twin, ada, **depends(first))
    assert refused.value.code == "outputs-gone"


def test_what_goes_while_one_waits_fails_it_with_a_sentence(twin: Twin, ada: User) -> None:
    first, other = submit(twin, ada), submit(twin, ada)
    last = submit(twin, ada, **depends(first, other))
    run(twin, first)
    row = retention(twin, first)
    assert row.dependents == (last,)
    twin.store.commit([Replace(row, replace(row, ended=twin.world.now()))])
    run(twin, other)
    found = job_of(twin, last)
    assert found.end.outcome is Outcome.FAILED
    assert (found.end.reason or "").startswith(f"this job needs what job {first} (n0) kept, but the outputs of job")
    assert f"settled: failed: {found.end.reason}; took 0 s" in told(twin, last)


def test_inputs_that_cannot_be_had_lose_the_attempt_and_then_the_job(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, retries=1)
    for _ in range(2):
        twin.run()
        agents.report_unprepared(twin.on, hello(twin, job), "the input a is not what it was")
        twin.run()
    found = job_of(twin, job)
    assert (found.end.outcome, found.end.reason) == (Outcome.ERRORED, "tried 2 times: the input a is not what it was")


# What users send


def test_a_job_waits_for_what_is_sent(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, inputs=["a.txt", "b.txt"])
    twin.run()
    assert job_of(twin, job).state is State.WAITING
    assert "it waits for input a.txt, input b.txt; then" in told(twin, job)[0]
    send(twin, job, "a.txt", b"aaa")
    assert told(twin, job)[-1] == "the input a.txt has arrived (3 bytes)"
    why = jobs.explain(twin.on, job_of(twin, job))
    assert "waits for its user to send b.txt (until" in why.summary
    assert (why.waiting_for, why.next_steps) == ("input b.txt", "its input b.txt arrives")
    send(twin, job, "b.txt", b"b")
    twin.run()
    assert job_of(twin, job).state is State.ACQUIRING
    hello(twin, job)
    found = all_inputs(twin, job)
    assert [(each.path, bytes_of(twin, each)) for each in found] == [
        ("/input/a.txt", b"aaa"),
        ("/input/b.txt", b"b"),
    ]
    assert {row.owners for row in twin.store.rows.values() if isinstance(row, Artifact)} == {(f"job#{job}",)}
    inputs.commit(twin.on, job_of(twin, job), "a.txt")
    assert send(twin, job, "a.txt", b"aaa", arrives=False).there is True


def test_what_was_not_sent_whole_is_not_taken(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, inputs=["a"])
    with pytest.raises(Refused, match="of a 0 of 0 bytes"):
        inputs.commit(twin.on, job_of(twin, job), "a")
    leave = send(twin, job, "a", b"abc", arrives=False)
    twin.objects.objects[leave.url.removeprefix("memory://")] = b"ab"
    with pytest.raises(Refused, match="of a 2 of 3 bytes") as refused:
        inputs.commit(twin.on, job_of(twin, job), "a")
    assert refused.value.status == 409


def test_asking_again_is_asking_once_and_other_bytes_are_another_file(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, inputs=["a"])
    first = send(twin, job, "a", b"abc", arrives=False)
    assert send(twin, job, "a", b"abc", arrives=False) == first
    assert send(twin, job, "a", b"xyz", arrives=False).url != first.url
    send(twin, job, "a", b"xyz")
    with pytest.raises(Refused, match="there already, with other bytes"):
        send(twin, job, "a", b"abc")


@pytest.mark.parametrize(
    ("ask", "status"),
    [
        (NewInput("b", size=1, sha256="0" * 64), 404),
        (NewInput("a", size=1, sha256="x" * 64), 400),
        (NewInput("a", size=2**30 + 1, sha256="0" * 64), 413),
    ],
)
def test_what_cannot_be_sent(twin: Twin, ada: User, ask: NewInput, status: int) -> None:
    job = submit(twin, ada, inputs=["a"])
    with pytest.raises(Refused) as refused:
        inputs.begin(twin.on, job_of(twin, job), ask)
    assert refused.value.status == status


def test_a_settled_job_takes_no_more(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, inputs=["a"])
    leave = send(twin, job, "a", b"abc", arrives=False)
    twin.objects.objects[leave.url.removeprefix("memory://")] = b"abc"
    cancel.cancel(twin.on, ada, job)
    for late in (lambda: inputs.commit(twin.on, job_of(twin, job), "a"), lambda: send(twin, job, "a", b"abc")):
        with pytest.raises(Refused, match="does not wait for its inputs any more"):
            late()
    assert not any("has arrived" in line for line in told(twin, job))


def test_what_was_forgotten_meanwhile_is_to_be_sent_again(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, inputs=["a"])
    leave = send(twin, job, "a", b"abc", arrives=False)
    twin.objects.objects[leave.url.removeprefix("memory://")] = b"abc"
    for row in [row for row in twin.store.rows.values() if isinstance(row, Artifact)]:
        twin.store.commit([Delete(row)])
    with pytest.raises(Refused, match="send it again"):
        inputs.commit(twin.on, job_of(twin, job), "a")
    send(twin, job, "a", b"abc")
    assert job_of(twin, job).state is State.QUEUED


@pytest.mark.parametrize(("begun", "said"), [(False, "nobody began to send it"), (True, "begun and not finished")])
def test_what_never_comes_fails_the_job(twin: Twin, ada: User, begun: bool, said: str) -> None:
    job = submit(twin, ada, inputs=["a"])
    if begun:
        sweep(twin, 1800)
        send(twin, job, "a", b"abc", arrives=False)
    sweep(twin, ARRIVE_WITHIN.total_seconds() - 60)
    assert job_of(twin, job).state is State.WAITING
    sweep(twin, 600)
    found = job_of(twin, job)
    assert found.end.outcome is Outcome.FAILED
    assert (found.end.reason or "").startswith("the input a did not arrive within 60 min: ")
    assert said in (found.end.reason or "")


def test_a_late_file_is_noticed_when_it_is_late(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, inputs=["a"])
    until = job_of(twin, job).times.submitted + ARRIVE_WITHIN
    for _ in range(70):
        sweep(twin)
        if job_of(twin, job).is_settled:
            break
        assert job_of(twin, job).due <= until  # type: ignore[operator]
    assert job_of(twin, job).is_settled


def test_a_retry_needs_nothing_sent_again(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, inputs=["a"])
    send(twin, job, "a", b"abc")
    run(twin, job, result=Result.FAILED)
    again = jobs_submit.retry(twin.on, ada, job_of(twin, job))
    twin.run()
    assert job_of(twin, again).state is State.ACQUIRING
    (found,) = all_inputs(twin, again)
    assert bytes_of(twin, found) == b"abc"
    (artifact,) = [row for row in twin.store.rows.values() if isinstance(row, Artifact)]
    assert artifact.owners == tuple(sorted((f"job#{job}", f"job#{again}")))


def test_an_input_has_only_so_many_owners(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """They all stand in one row, and a row has a limit."""
    monkeypatch.setattr(limits, "OWNERS", 3)
    job = submit(twin, ada, inputs=["a", "b"])
    send(twin, job, "b", b"abc")
    again = job
    for key in ("k", "l"):
        again = jobs_submit.retry(twin.on, ada, job_of(twin, again), key=key)
    before = dict(twin.store.rows)
    with pytest.raises(Refused, match="the input b has 3 owners") as refused:
        jobs_submit.retry(twin.on, ada, job_of(twin, again))
    assert (refused.value.status, refused.value.code) == (409, "too-many-owners")
    assert twin.store.rows == before
    assert jobs_submit.retry(twin.on, ada, job_of(twin, job), key="k"), "a repeated retry adds none"


def test_a_retry_of_what_is_gone_waits_for_it(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, inputs=["a"])
    cancel.cancel(twin.on, ada, job)
    again = jobs_submit.retry(twin.on, ada, job_of(twin, job))
    assert job_of(twin, again).state is State.WAITING
    prerequisites.judge(twin.on, again)
    send(twin, again, "a", b"abc")
    assert job_of(twin, again).state is State.QUEUED


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a/b"], "no `/`"),
        (["."], "cannot be"),
        ([""], "is empty"),
        (["a", "a"], "there twice"),
        (["n0"], "there twice"),
        ([f"f{number}" for number in range(26)], "at most 25"),
    ],
)
def test_names_that_cannot_be(twin: Twin, ada: User, names: list[str], said: str) -> None:
    first = submit(twin, ada)
    with pytest.raises(Refused) as refused:
        submit(twin, ada, inputs=names, **depends(first))
    assert said in refused.value.faults[0].message


def test_all_that_may_be_waited_for_fits_one_commit(twin: Twin, ada: User) -> None:
    priors = [submit(twin, ada) for _ in range(limits.DEPENDENCIES)]
    sizes = []
    was = twin.store.commit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.store, "commit", lambda changes: sizes.append(len(changes)) or was(changes))
        submit(twin, ada, inputs=[f"f{number}" for number in range(limits.INPUTS)], **depends(*priors))
    assert 90 < max(sizes) <= 100


def test_inputs_go_with_all_else_that_a_job_owned(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, inputs=["a", "b"])
    send(twin, job, "a", b"abc")
    cancel.cancel(twin.on, ada, job)
    sweep(twin, 8 * 24 * 3600)
    for _ in range(4):
        sweep(twin)
    assert job_of(twin, job).end.outputs_gone
    assert not inputs.list_inputs(twin.on, job_of(twin, job))
    assert not twin.objects.objects
