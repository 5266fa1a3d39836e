"""A worker that is free is granted in the commit that creates its job; its attempt has no flow. [QUEUE-2] [JOB-1]"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import START_WITHIN, Job, Outcome, State, Submission
from penstock.domain.pools.pools import Claim, Lease, LeaseState, Slot
from penstock.domain.units.units import Unit, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Throttled, Unsatisfiable
from penstock.kernel.rows import Change, Create
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel, settle, submit
from penstock.usecases.site import apply
from penstock.usecases.units import advance
from tests.usecases.quotas import used
from tests.usecases.races import before_the_next_write_of
from tests.usecases.steps import finish, hello, job_of, sweep, told, worker_of
from tests.usecases.steps import submit as submit_job

SITE = site_toml(
    targets={
        "linux": {"limit": 2, "uses": {"vcpus": 2}},
        "small": {"limit": 9, "uses": {"vcpus": 1}},
        "default": "linux",
        "lab": {"privilege": "target.lab", "limit": 1},
        "ahead": {"limit": 3, "warm": {"min": 1, "max": 1}},
    },
    wells={"locks": "lock"},
    resources={"bench": {"well": "locks", "names": ["bench-1"]}},
    quotas={"vcpus": 4},
)
ASK = SubmitJob("#!/bin/sh\n")


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", SITE, "site.toml")
    made.run()
    return made


def commits(twin: Twin) -> list[Sequence[Change]]:
    """All commits from here on that were made."""
    found: list[Sequence[Change]] = []
    commit = twin.store.commit

    def recording(changes: Sequence[Change]) -> bool:
        done = commit(changes)
        found.extend([changes] if done else [])
        return done

    twin.store.commit = recording  # type: ignore[method-assign]
    return found


def rows(twin: Twin, kind: type[Any]) -> list[Any]:
    return [row for row in twin.store.rows.values() if isinstance(row, kind)]


def began_flow(twin: Twin, job: str) -> bool:
    return (job, 1) in twin.flows.executions


def test_job_lease_slot_share_and_unit_are_one_commit(twin: Twin, ada: User) -> None:
    found = commits(twin)
    job = submit.submit(twin.on, ada, ASK, "a-key")
    made = [change.row for change in found[0] if isinstance(change, Create)]
    assert {type(row) for row in made} == {Job, Submission, Lease, Slot, Unit}
    assert job_of(twin, job).state is State.ACQUIRING
    (lease,) = rows(twin, Lease)
    assert (lease.state, lease.token, lease.unit) == (LeaseState.GRANTED, "", worker_of(twin, job).id)
    assert used(twin, "quota/vcpus") == 2
    assert not rows(twin, Claim)
    assert not began_flow(twin, job)
    assert [kind for _, kind, _ in twin.queues.messages] == ["factory"]


def test_it_runs_and_ends_as_any_job(twin: Twin, ada: User) -> None:
    job = submit_job(twin, ada)
    twin.run()
    hello(twin, job)
    finish(twin, job)
    twin.run()
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert not twin.flows.executions
    assert used(twin, "quota/vcpus") == 0


def test_its_log_says_first_that_it_was_accepted(twin: Twin, ada: User) -> None:
    job = submit_job(twin, ada)
    accepted, got = told(twin, job)
    assert accepted == f"job {job} accepted: a worker of linux (asked for as default)"
    assert got.startswith("target/linux: got slot ")


def test_the_sweep_looks_as_soon_as_at_any_accepted_job(twin: Twin, ada: User) -> None:
    """So a short job's row is in the index once, from its begin to its end."""
    job = job_of(twin, submit_job(twin, ada))
    assert job.indexed
    assert job.indexed.at - job.times.submitted <= START_WITHIN
    assert job.due == job.flow.queue_until


def test_who_needs_a_resource_claims_by_the_steps_of_its_flow(twin: Twin, ada: User) -> None:
    job = submit_job(twin, ada, resources=["bench"])
    assert job_of(twin, job).state is State.QUEUED
    assert began_flow(twin, job)
    assert not rows(twin, Lease)
    twin.run()
    assert all(told(twin, job)), "no line is empty"


def test_who_waits_for_a_job_claims_when_that_is_over(twin: Twin, ada: User) -> None:
    first = submit_job(twin, ada)
    second = submit_job(twin, ada, dependencies={"a": {"job": first}})
    assert job_of(twin, second).state is State.WAITING
    assert [lease.job for lease in rows(twin, Lease)] == [first]


def test_nobody_is_granted_past_one_who_waits(twin: Twin, ada: User) -> None:
    """QUEUE-2: the third waits for a share; the fourth wants another target, and would fit into what is left of it."""
    apply.resize(twin.on, "quota/vcpus", 3)
    twin.run()
    submit_job(twin, ada)
    waits = submit_job(twin, ada)
    twin.run()
    assert job_of(twin, waits).state is State.ACQUIRING
    behind = submit_job(twin, ada, target="small")
    assert job_of(twin, behind).state is State.QUEUED
    assert began_flow(twin, behind)


def test_one_for_whom_too_little_is_free_waits(twin: Twin, ada: User) -> None:
    jobs = [submit_job(twin, ada) for _ in range(3)]
    assert [began_flow(twin, job) for job in jobs] == [False, False, True]
    twin.run()
    assert {claim.job for claim in rows(twin, Claim)} == {jobs[2]}


def test_who_lacks_the_privilege_is_not_granted(twin: Twin) -> None:
    """SEC-2: it was there when the request was checked, and is gone when the job is written."""
    eve = User(name="eve", privileges=("target.lab",), created=START, version=1)
    job = submit_job(twin, eve, target="lab")
    assert job_of(twin, job).state is State.QUEUED
    assert not rows(twin, Lease)


def test_what_is_taken_meanwhile_is_taken_from_anew_and_then_by_a_flow(twin: Twin, ada: User) -> None:
    """Two races are lost; the third commit is of the job alone. Its user does not wait for more."""
    commit, sizes = twin.store.commit, []

    def losing(changes: Sequence[Change]) -> bool:
        if any(isinstance(change, Create) and isinstance(change.row, Job) for change in changes):
            sizes.append(len(changes))
            return len(changes) == 1 and commit(changes)
        return commit(changes)

    twin.store.commit = losing  # type: ignore[method-assign]
    job = submit_job(twin, ada)
    assert len(sizes) == submit.CLAIM_TRIES + 1
    assert sizes[-1] == 1
    assert began_flow(twin, job)
    assert job_of(twin, job).state is State.QUEUED


@pytest.mark.parametrize("what", ["commit", "find"])
def test_a_job_is_accepted_while_its_pool_is_throttled(twin: Twin, ada: User, what: str) -> None:
    commit, find = twin.store.commit, twin.store.find

    def throttled_commit(changes: Sequence[Change]) -> bool:
        if any(isinstance(change, Create) and isinstance(change.row, Unit) for change in changes):
            raise Throttled
        return commit(changes)

    def throttled_find(pk: str, *more: Any, **how: Any) -> Any:
        if pk.startswith("pool#"):
            raise Throttled
        return find(pk, *more, **how)

    if what == "commit":
        twin.store.commit = throttled_commit  # type: ignore[method-assign]
    else:
        twin.store.find = throttled_find  # type: ignore[method-assign]
    job = submit_job(twin, ada)
    assert job_of(twin, job).state is State.QUEUED
    assert began_flow(twin, job)


def test_a_job_that_is_submitted_again_claims_nothing(twin: Twin, ada: User) -> None:
    job = submit.submit(twin.on, ada, ASK, "a-key")
    assert submit.submit(twin.on, ada, ASK, "a-key") == job
    assert len(rows(twin, Lease)) == 1


def test_what_is_made_ahead_of_need_is_made_anew(twin: Twin, ada: User) -> None:
    before = len(rows(twin, Unit))
    submit_job(twin, ada, target="ahead")
    assert len(rows(twin, Unit)) == before + 1


def test_a_function_that_dies_after_the_commit_costs_one_sweep(twin: Twin, ada: User) -> None:
    """JOB-1: nobody was sent for its worker, and no flow will ask: the unit's own due time does."""
    job = submit_job(twin, ada)
    twin.queues.messages.clear()
    sweep(twin)
    hello(twin, job)
    assert job_of(twin, job).state is State.RUNNING


def test_a_job_that_is_cancelled_while_its_worker_boots_ends_at_once(twin: Twin, ada: User) -> None:
    job = submit_job(twin, ada)
    twin.run()
    cancel.cancel(twin.on, ada, job)
    assert job_of(twin, job).end.outcome is Outcome.CANCELLED
    worker = worker_of(twin, job)
    twin.run()
    assert worker.id not in twin.drivers.hand.made


def test_a_job_whose_worker_can_never_be_made_ends_at_once(twin: Twin, ada: User) -> None:
    twin.drivers.hand.says = [Unsatisfiable("no such image")]
    job = submit_job(twin, ada)
    twin.run()
    ended = job_of(twin, job).end
    assert (ended.outcome, "no such image" in str(ended.reason)) == (Outcome.FAILED, True)


def test_a_job_whose_worker_says_no_hello_has_another_attempt_with_a_flow(twin: Twin, ada: User) -> None:
    job = submit_job(twin, ada)
    twin.run()
    twin.pass_time(2000)
    advance.advance(twin.on, worker_of(twin, job).id)
    assert job_of(twin, job).attempt == 2
    twin.run()
    assert (job, 2) in twin.flows.executions


def test_a_hello_that_comes_before_the_end_of_its_attempt_wins(twin: Twin, ada: User) -> None:
    """JOB-2: the end that was decided before is not written over a job that runs."""
    job = submit_job(twin, ada)
    twin.run()
    found = job_of(twin, job)
    before_the_next_write_of(twin, Job, lambda: hello(twin, job))
    settle.stop_waiting(twin.on, found, "Lost", "nobody heard of it")
    assert (job_of(twin, job).state, job_of(twin, job).attempt) == (State.RUNNING, 1)
    assert worker_of(twin, job).state is UnitState.READY


def test_nobody_answers_a_flow_that_there_is_not(twin: Twin, ada: User) -> None:
    """AWS refuses a token of no characters."""
    answered: list[str] = []
    twin.flows.succeed = lambda token: bool(answered.append(token))  # type: ignore[method-assign, func-returns-value]
    twin.flows.fail = lambda token, *_: answered.append(token)  # type: ignore[method-assign]
    job = submit_job(twin, ada)
    twin.run()
    hello(twin, job)
    other = submit_job(twin, ada)
    cancel.cancel(twin.on, ada, other)
    assert answered == []


def test_every_try_looks_anew(twin: Twin, ada: User) -> None:
    """A slot that another took between the look and the commit is not asked for again."""
    before_the_next_write_of(twin, Unit, lambda: submit_job(twin, ada))
    job = submit_job(twin, ada)
    assert job_of(twin, job).state is State.ACQUIRING
    assert len({unit.lease.slot for unit in rows(twin, Unit) if unit.type == "linux"}) == 2
