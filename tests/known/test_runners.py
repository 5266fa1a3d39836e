"""What went wrong in dispatchers of CI runners: Terraform's and CDK's for GitHub, ARC, GitLab, Karpenter."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.commands import Hello
from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.users.users import User
from penstock.kernel.errors import QuotaReached, Refused, Unreached
from penstock.ports import Order
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.jobs import flow
from penstock.usecases.pools import scheduler
from penstock.usecases.site import apply
from penstock.usecases.units import drivers
from penstock.usecases.workers import agents
from tests.known import breaks, breaks_later
from tests.known.caught import fails_with
from tests.known.races import dying, frees, gives_up, grants, just_before, restart
from tests.known.site import Known, assert_nothing_is_left, held, holders, units_of
from tests.simulation import plants as planted
from tests.usecases.steps import finish, hello, job_of, run_to_end, submit, sweep, worker_of


def used(twin: Known, pool: str) -> tuple[int, int]:
    """What a pool's row says is used, and what is."""
    row = twin.store.get(pool_key(pool), Pool)
    assert row
    return row.used, sum(slot.count for slot in held(twin, pool))


@fails_with(breaks.counts_and_then_writes)
def test_runners_are_counted_and_then_started_so_that_the_maximum_is_exceeded(twin: Known, ada: User) -> None:
    """terraform-aws-github-runner#4710, and nodepool's quota, "a bit racey" by its docstring. SLOT-1"""
    submit(twin, ada, target="small")
    twin.run()
    submit(twin, ada, target="small")

    def another() -> None:
        submit(twin, ada, target="tiny", priority=10)
        twin.run()

    with just_before(twin, grants, another):
        twin.run()
    assert used(twin, "quota/vcpus") == (5, 5)
    assert len(twin.factory.made) == 2


@fails_with(breaks.writes_without_condition)
def test_a_busy_runner_is_killed_as_an_orphan(twin: Known, ada: User) -> None:
    """terraform-aws-github-runner#3802, #4391. It is heard of between the reaper's look and its write. JOB-1"""
    job = submit(twin, ada)
    twin.run()
    caller = hello(twin, job)
    twin.pass_time(121)
    usecases_sweep.sweep(twin.on)
    with just_before(twin, gives_up, lambda: agents.heartbeat(twin.on, caller)):
        twin.run()
    assert job_of(twin, job).state is State.RUNNING
    finish(twin, job)
    assert (job_of(twin, job).end.outcome, job_of(twin, job).attempt) == (Outcome.SUCCEEDED, 1)


@fails_with(breaks_later.rows_before_the_list)
def test_a_runner_that_is_started_during_the_clean_up_is_killed_by_it(twin: Known, ada: User) -> None:
    """terraform-aws-github-runner#4391. Karpenter: list the cloud before the ledger, for the ledger is first. UNIT-1"""
    job = submit(twin, ada)
    twin.factory.meanwhile["list"] = twin.run
    usecases_sweep.sweep(twin.on)
    assert list(twin.factory.made) == [worker_of(twin, job).id]
    run_to_end(twin, job)


@fails_with(breaks_later.new_id_each_time)
def test_a_launch_without_a_client_token_is_repeated_after_a_crash(twin: Known, ada: User) -> None:
    """No token in terraform-aws-github-runner, cdk-github-runners, Taskcluster; a random one in Evergreen. JOB-2"""
    job = submit(twin, ada)
    with dying(twin.factory, "create", after=True):
        twin.run()
    twin.queues.advance(worker_of(twin, job).id, is_worker=True)
    twin.run()
    assert len(twin.factory.asked) == 2
    assert list(twin.factory.made) == [worker_of(twin, job).id]


@fails_with(planted.old_agents_write)
def test_a_runner_is_stolen_by_another_job(twin: Known, ada: User) -> None:
    """terraform-aws-github-runner#3130, cdk-github-runners#974: whoever had the label took it. SEC-2 JOB-2"""
    one, other = submit(twin, ada), submit(twin, ada)
    twin.run()
    key = drivers.bootstrap_key(twin.on.signing_key(), worker_of(twin, one).id)
    with pytest.raises(Refused):
        agents.hello(twin.on, Hello(worker_of(twin, other).id, key, "u" * 43))
    hello(twin, other)
    agents.hello(twin.on, Hello(worker_of(twin, one).id, key, "u" * 43))
    with pytest.raises(Refused):
        agents.authenticate(twin.on, other, "u" * 43)


@fails_with(breaks_later.leaves_strays)
def test_orphans_are_never_removed(twin: Known, ada: User) -> None:
    """terraform-aws-github-runner#4724, #4786: 800 of them in one report. UNIT-1"""
    job = submit(twin, ada)
    twin.run()
    caller = hello(twin, job)
    twin.factory.create(Order("w-nobody-knows", "wide", "99"))
    strays = 0
    for _ in range(14):
        strays += sweep(twin).strays
        agents.heartbeat(twin.on, caller)
    assert strays == 1
    assert list(twin.factory.made) == [worker_of(twin, job).id]


@fails_with(breaks_later.silence_is_not_noticed)
def test_a_registration_without_a_machine_stays(twin: Known, ada: User) -> None:
    """terraform-aws-github-runner#5007, #4376: ghosts. Here a row whose machine vanished, busy or booting. UNIT-1"""
    busy, booting = submit(twin, ada, retries=0), submit(twin, ada, retries=0)
    twin.run()
    hello(twin, busy)
    twin.factory.made.clear()
    sweep(twin, 601)
    assert {job_of(twin, job).end.outcome for job in (busy, booting)} == {Outcome.ERRORED}
    assert_nothing_is_left(twin)


@fails_with(breaks_later.job_is_never_due)
def test_an_event_is_lost_and_its_job_hangs_until_the_provider_gives_up(twin: Known, ada: User) -> None:
    """terraform-aws-github-runner#4262, #3493: "no runner will be created", for 6 to 24 hours. JOB-1"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.flows, "start", unreached)
        job = submit(twin, ada)
    assert not twin.flows.executions
    sweep(twin)
    assert job_of(twin, job).state is State.ACQUIRING
    run_to_end(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def unreached(*_: Any) -> bool:
    raise Unreached("Step Functions cannot be reached")


@fails_with(breaks.claims_again)
def test_one_job_gets_two_runners(twin: Known, ada: User) -> None:
    """cdk-github-runners#382, #607: an event that came twice started two. JOB-2"""
    job = submit(twin, ada, target="linux")
    messages = list(twin.queues.messages)
    assert flow.start(twin.on, job)
    assert list(twin.queues.messages) == messages, "the flow is named after the attempt, and there is one"
    twin.run()
    twin.queues.messages.extend(messages)
    twin.run()
    assert list(holders(twin, "target/linux").values()) == [job]
    assert len(twin.factory.made) == 1


@fails_with(breaks_later.tries_without_end)
def test_errors_and_retries_never_end(twin: Known, ada: User) -> None:
    """cdk-github-runners#72: a runner that could not start was started for ever. JOB-1"""
    job = submit(twin, ada, retries=2)
    for _ in range(6):
        sweep(twin, 601)
    assert (job_of(twin, job).end.outcome, job_of(twin, job).attempt) == (Outcome.ERRORED, 3)
    assert "tried 3 times" in str(job_of(twin, job).end.reason)
    assert_nothing_is_left(twin)


@fails_with(breaks_later.nobody_looks_who_waits)
def test_a_job_waits_for_a_runner_while_there_is_capacity(twin: Known, ada: User) -> None:
    """actions-runner-controller#3649, #3953: the wake-up was lost, and nothing else woke. QUEUE-1"""
    first, second = (submit(twin, ada, resources=["bench"]) for _ in range(2))
    twin.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "freed", lambda *_: [])
        run_to_end(twin, first)
    restart(twin)
    assert not holders(twin, "resource/bench")
    sweep(twin)
    assert holders(twin, "resource/bench") == {"bench-1": second}


@fails_with(breaks.counts_and_then_writes)
def test_statistics_kept_apart_from_what_they_count_drift(twin: Known, ada: User) -> None:
    """actions-runner-controller#4138, #3821: phantom runners. Two release at once; each takes off its own. SLOT-1"""
    first, second = (submit(twin, ada, target="small") for _ in range(2))
    twin.run()
    hello(twin, first)
    hello(twin, second)
    with just_before(twin, frees, lambda: finish(twin, second)):
        finish(twin, first)
    assert used(twin, "quota/vcpus") == (0, 0)
    assert_nothing_is_left(twin)


@fails_with(breaks_later.outlives_its_lease)
def test_a_runner_stays_running_after_its_job_failed(twin: Known, ada: User) -> None:
    """actions-runner-controller#4203. It goes, whether its agent exits or not. UNIT-1"""
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    finish(twin, job, Result.FAILED)
    assert job_of(twin, job).end.outcome is Outcome.FAILED
    assert_nothing_is_left(twin)


@fails_with(breaks_later.errors_are_final)
def test_a_full_quota_is_an_error_for_good(twin: Known, ada: User) -> None:
    """actions-runner-controller#4305: "forbidden" by a resource quota failed what should have waited. JOB-1"""
    twin.factory.says = [QuotaReached("64 vCPUs of 64 are in use")] * 5
    job = submit(twin, ada)
    twin.run()
    while twin.factory.says:
        assert job_of(twin, job).state is State.ACQUIRING, "it waits, with what it has"
        sweep(twin, 301)
    run_to_end(twin, job)
    assert (job_of(twin, job).end.outcome, job_of(twin, job).attempt) == (Outcome.SUCCEEDED, 1)


@fails_with(breaks_later.starts_with_nothing)
def test_a_manager_that_starts_deletes_all_instances(twin: Known, ada: User) -> None:
    """GitLab's taskscaler does, "for safety reasons", for its state was in memory. UNIT-1 JOB-1"""
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    restart(twin)
    sweep(twin)
    assert list(twin.factory.made) == [worker_of(twin, job).id]
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


@fails_with(breaks.counts_and_then_writes)
def test_a_limit_that_is_lowered_meanwhile_is_passed(twin: Known, ada: User) -> None:
    """Karpenter's NodePool limits are soft: what was decided before a change is launched after it. SLOT-1"""
    job = submit(twin, ada, target="small")
    with just_before(twin, grants, lambda: apply.resize(twin.on, "quota/vcpus", 2)):
        twin.run()
    assert used(twin, "quota/vcpus") == (0, 0)
    assert not units_of(twin, job)
    apply.resize(twin.on, "quota/vcpus", 8)
    twin.run()
    run_to_end(twin, job)
    assert_nothing_is_left(twin)
