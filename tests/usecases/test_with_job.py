"""What is free, and need not be made, is granted in the commit that creates its job: its attempt has no flow. [QUEUE-2]

[JOB-1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import START_WITHIN, Job, Outcome, Spec, State
from penstock.domain.jobs.submissions import Submission
from penstock.domain.pools.pools import Claim, Lease, LeaseState, Slot, SlotState
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.domain.users import users as user_rules
from penstock.domain.users.users import Tally, User
from penstock.kernel import limits
from penstock.kernel.errors import Throttled, Unreached, Unsatisfiable
from penstock.kernel.rows import Change, Create, Replace, Row
from penstock.ports import NotYet
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel, flow, settle, submit
from penstock.usecases.pools import scheduler
from penstock.usecases.site import apply
from penstock.usecases.units import advance, maintenance
from penstock.usecases.users import users
from penstock.usecases.workers import agents
from tests.usecases.exact import site
from tests.usecases.quotas import used
from tests.usecases.races import before_the_next_write_of
from tests.usecases.steps import TOKEN, finish, hello, job_of, sweep, told, worker_of
from tests.usecases.steps import submit as submit_job
from tests.usecases.warm import worker_at_rest

SITE = site_toml(
    targets={
        "linux": {"limit": 2, "uses": {"vcpus": 2}},
        "small": {"limit": 9, "uses": {"vcpus": 1}},
        "default": "linux",
        "lab": {"privilege": "target.lab", "limit": 1},
        "ahead": {"limit": 3, "warm": {"min": 1, "max": 1}},
    },
    wells={"locks": "lock", "spring": "hand"},
    resources={
        "bench": {"well": "locks", "names": ["bench-1"], "settings": {"port": "tty0"}},
        "database": {"well": "spring", "limit": 1},
        "rack": {"well": "locks", "limit": 1, "privilege": "resource.rack"},
    },
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


def created(changes: Sequence[Change]) -> list[Row]:
    return [change.row for change in changes if isinstance(change, Create)]


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


def test_who_submits_cannot_read_the_key_that_signs_and_has_the_bench_at_once(twin: Twin, ada: User) -> None:
    """SEC-1: the function behind the HTTP API may not read that secret."""

    def denied() -> str:
        raise PermissionError("AccessDenied: secretsmanager:GetSecretValue")

    ask = replace(ASK, resources={"bench": {"type": "bench"}})
    job = submit.submit(replace(twin.on, signing_key=denied), ada, ask, None)
    assert leases(twin, job) == {"bench": LeaseState.READY, "worker": LeaseState.GRANTED}
    assert not began_flow(twin, job)


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


def leases(twin: Twin, job: str) -> dict[str, LeaseState]:
    """The states of a job's leases, by name."""
    return {lease.name: lease.state for lease in flow.leases_of(twin.on, job_of(twin, job))}


def test_what_is_only_a_slot_is_granted_and_ready_in_the_same_commit(twin: Twin, ada: User) -> None:
    found = commits(twin)
    job = submit_job(twin, ada, resources=["bench"])
    made = [type(change.row) for change in found[0] if isinstance(change, Create)]
    assert {kind: made.count(kind) for kind in (Job, Lease, Unit)} == {Job: 1, Lease: 2, Unit: 2}
    assert leases(twin, job) == {"bench": LeaseState.READY, "worker": LeaseState.GRANTED}
    assert not began_flow(twin, job)
    assert [kind for _, kind, _ in twin.queues.messages] == ["factory"], "nobody is asked for the bench"
    assert [line.partition(": got")[0] for line in told(twin, job)[1:]] == ["resource/bench", "target/linux"]


def test_its_job_runs_with_what_its_well_says_and_puts_it_back(twin: Twin, ada: User) -> None:
    job = submit_job(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, job)
    (bench,) = agents.resources(twin.on, agents.authenticate(twin.on, job, TOKEN)).resources.values()
    assert bench.metadata == {"name": "bench-1", "type": "bench", "port": "tty0"}
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert not twin.flows.executions
    assert {unit.state for unit in rows(twin, Unit) if unit.lease.job == job} == {UnitState.GONE}


def test_who_needs_a_resource_that_is_to_be_made_claims_by_the_steps_of_its_flow(twin: Twin, ada: User) -> None:
    job = submit_job(twin, ada, resources=["bench", "database"])
    assert job_of(twin, job).state is State.QUEUED
    assert began_flow(twin, job)
    assert not rows(twin, Lease)
    twin.run()
    assert all(told(twin, job)), "no line is empty"


def test_who_cannot_have_all_at_once_holds_nothing_until_its_flow_takes_its_steps(twin: Twin, ada: User) -> None:
    """QUEUE-3: the worker is acquired last."""
    first, second = (submit_job(twin, ada, resources=["bench"]) for _ in range(2))
    assert began_flow(twin, second)
    twin.run()
    assert leases(twin, second) == {"bench": LeaseState.WAITING}
    hello(twin, first)
    finish(twin, first)
    twin.run()
    assert leases(twin, second) == {"bench": LeaseState.READY, "worker": LeaseState.GRANTED}


@pytest.mark.parametrize("target", [{"target": "lab"}, {}], ids=["no worker is free", "the bench is taken"])
def test_of_several_things_all_are_granted_or_none(twin: Twin, target: dict[str, str]) -> None:
    """SLOT-2"""
    eve = users.create(twin.on, "eve", ["target.lab"])
    submit_job(twin, eve, **(target or {"resources": ["bench"]}))
    before = [slot for slot in rows(twin, Slot) if slot.state is SlotState.HELD]
    submit_job(twin, eve, resources=["bench"], **target)
    assert [slot for slot in rows(twin, Slot) if slot.state is SlotState.HELD] == before


def test_a_privilege_that_the_owner_lost_meanwhile_is_missed_in_the_commit(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-2: for each step, not only for the worker's."""
    eve = users.create(twin.on, "eve", ["resource.rack"])
    claim = scheduler.claim_with_job

    def late(*given: Any) -> Any:
        users.change_privilege(twin.on, "eve", "resource.rack", grant=False)
        return claim(*given)

    monkeypatch.setattr(scheduler, "claim_with_job", late)
    job = submit_job(twin, eve, resources=["rack"])
    assert not rows(twin, Lease)
    monkeypatch.undo()
    twin.run()
    assert "revoked 'resource.rack'" in str(job_of(twin, job).end.reason)


class Slow:
    """A well that is not done at once, although it should be."""

    def create(self, order: Any) -> NotYet:
        return NotYet(5)


def fails(*_: object) -> Any:
    raise Unreached("the service that encrypts is away")


@pytest.mark.parametrize("what", ["the well is not done", "its answer cannot be sealed"])
def test_where_it_is_not_there_at_once_the_flow_asks_for_it(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    with monkeypatch.context() as patch:
        if what == "the well is not done":
            patch.setattr(twin.drivers, "well", lambda *_: Slow())
        else:
            patch.setattr(type(twin.on.vault), "seal", fails)
        job = submit_job(twin, ada, resources=["bench"])
    assert began_flow(twin, job)
    assert not rows(twin, Lease)
    twin.run()
    assert leases(twin, job) == {"bench": LeaseState.READY, "worker": LeaseState.GRANTED}


def test_a_worker_is_no_slot_though_its_factory_has_the_name_of_such_a_well(ada: User) -> None:
    twin = site(SITE.replace("factories.hand", "factories.locks").replace('factory = "hand"', 'factory = "locks"'))
    job = submit_job(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, job)
    finish(twin, job)
    assert worker_of(twin, job).cleaning.begun, "what is only a slot is not destroyed, so nothing says so before"


def test_what_it_holds_is_given_back_if_its_worker_does_not_come(ada: User) -> None:
    """QUEUE-3: as by the steps of a flow."""
    twin = site(SITE + "[limits]\nidle_hold = 600\n")
    twin.drivers.hand.says = [NotYet(60, "it boots")] * 99
    job = submit_job(twin, ada, resources=["bench"])
    assert job_of(twin, job).due == rows(twin, Lease)[0].since + timedelta(minutes=10)
    for _ in range(11):
        sweep(twin)
    assert job_of(twin, job).history.given_back == 1
    assert job_of(twin, job).attempt == 2


@pytest.mark.parametrize("end", ["it is cancelled", "its worker says nothing", "its owner's bench is recycled"])
def test_an_attempt_without_a_flow_ends_and_puts_all_back(twin: Twin, ada: User, root: User, end: str) -> None:
    """JOB-1, UNIT-2"""
    job = submit_job(twin, ada, resources=["bench"], retries=0)
    twin.run()
    if end == "it is cancelled":
        cancel.cancel(twin.on, ada, job)
    elif end == "its worker says nothing":
        sweep(twin, 3600)
    else:
        (bench,) = (unit for unit in rows(twin, Unit) if unit.is_a is UnitKind.RESOURCE)
        maintenance.recycle(twin.on, root, UnitKind.RESOURCE, bench.id, "it is broken")
    for _ in range(3):
        sweep(twin)
    assert job_of(twin, job).is_settled
    assert {unit.state for unit in rows(twin, Unit) if unit.lease.job == job} == {UnitState.GONE}
    assert SlotState.HELD not in {slot.state for slot in rows(twin, Slot)}


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


@pytest.mark.parametrize("claims", [0, submit.CLAIM_TRIES])
def test_a_hello_that_comes_after_its_step_failed_wins(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch, claims: int
) -> None:
    """JOB-1: with a flow as without one, only who comes first when it is written decides."""
    monkeypatch.setattr(submit, "CLAIM_TRIES", claims)
    job = submit_job(twin, ada, retries=0)
    twin.run()
    twin.pass_time(2000)
    before_the_next_write_of(twin, Job, lambda: hello(twin, job))
    advance.advance(twin.on, worker_of(twin, job).id)
    hello(twin, job)
    twin.run()
    assert (job_of(twin, job).state, job_of(twin, job).attempt) == (State.RUNNING, 1)


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


def test_a_bench_that_is_held_just_before_it_is_given_back_stays_held(twin: Twin, ada: User, root: User) -> None:
    """UNIT-3: no write says before that one that it is too late to hold it."""
    job = submit_job(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, job)
    (bench,) = (unit for unit in rows(twin, Unit) if unit.is_a is UnitKind.RESOURCE)

    def hold() -> None:
        maintenance.hold(twin.on, root, UnitKind.RESOURCE, bench.id, "looking", 600)

    before_the_next_write_of(twin, Unit, hold, lambda unit: unit.id == bench.id and unit.state is UnitState.GONE)
    finish(twin, job)
    held = twin.store.get(bench.key, Unit)
    assert held
    assert (held.state, bool(held.hold)) == (UnitState.DIRTY, True)
    assert SlotState.HELD in {slot.state for slot in rows(twin, Slot)}
    for _ in range(12):
        sweep(twin)
    assert {unit.state for unit in rows(twin, Unit) if unit.lease.job == job} == {UnitState.GONE}


def test_a_bench_that_nobody_cleans_is_given_back_by_one_write(twin: Twin, ada: User) -> None:
    job = submit_job(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, job)
    found = commits(twin)
    finish(twin, job)
    written = [
        row
        for changes in found
        for change in changes
        if isinstance(change, Replace) and isinstance(row := change.row, Unit) and row.is_a is UnitKind.RESOURCE
    ]
    assert [unit.state for unit in written] == [UnitState.DIRTY, UnitState.GONE]
    assert not [line for line in told(twin, job) if line.startswith("resource/bench") and "is clean" in line]


def test_an_idle_worker_is_lent_with_what_is_only_a_slot(ada: User) -> None:
    """The only slot of its target is the idle worker's: what a step takes is reckoned by that step's claim."""
    twin = site(
        site_toml(
            targets={"linux": {"limit": 1, "warm": {"max": 1, "idle": "1h"}}, "default": "linux"},
            wells={"locks": "lock"},
            resources={"bench": {"well": "locks", "limit": 1}},
        )
    )
    agent = worker_at_rest(twin, ada)
    job = submit_job(twin, ada, resources=["bench"])
    assert leases(twin, job) == {"bench": LeaseState.READY, "worker": LeaseState.GRANTED}
    assert worker_of(twin, job).id == agent.worker


def test_who_is_asked_for_a_worker_is_named(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages of one maker never stand behind another's."""
    asked = list[str]()
    monkeypatch.setattr(twin.queues, "advance", lambda *_, maker: asked.append(maker))
    submit_job(twin, ada)
    assert asked == ["hand"]


@pytest.mark.parametrize("less", [0, 1])
def test_a_job_is_granted_with_its_commit_if_that_has_room_for_all_that_may_stand_in_it(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch, less: int
) -> None:
    """Also for a script that has a row of its own, a request with a key, and an owner whose jobs are counted."""
    monkeypatch.setattr(user_rules, "weight_of", lambda job, limits: 1)
    long = SubmitJob("#!/bin/sh\n" + "#" * 5000, resources=["bench"])
    done = commits(twin)
    first = submit.submit(twin.on, ada, long, "one")
    (made,) = (changes for changes in done if any(isinstance(row, Job) for row in created(changes)))
    beside = [row for row in created(made) if isinstance(row, Job | Spec | Submission | Tally)]
    assert len(beside) == scheduler.ROWS_OF_JOB
    cancel.cancel(twin.on, ada, first)
    twin.run()
    room = limits.TRANSACTION_ITEMS - (len(made) - len(beside))
    monkeypatch.setattr(scheduler, "ROWS_OF_JOB", room + less)
    second = submit.submit(twin.on, ada, long, "two")
    assert (job_of(twin, second).state is State.ACQUIRING) is not bool(less)
    assert began_flow(twin, second) is bool(less)
