"""The races that Drydock (Phabricator) knows and handles, each forced here. Numbers are of its diffs."""

from __future__ import annotations

import pytest

from penstock.domain.commands import Hello
from penstock.domain.jobs.jobs import Outcome, State
from penstock.domain.pools.pools import SlotState
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.ports import NotYet
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.jobs import cancel, settle
from penstock.usecases.jobs import cancel as jobs_cancel
from penstock.usecases.pools import scheduler, serving
from penstock.usecases.units import advance, drivers
from penstock.usecases.workers import agents
from tests.known import breaks, breaks_later
from tests.known.caught import fails_with
from tests.known.races import always_before, claims, dying, ends, frees, grants, just_before, starts, withdraws
from tests.known.site import Known, assert_nothing_is_left, held, holders, set_limit, units_of
from tests.simulation import plants as planted
from tests.usecases.steps import TOKEN, finish, hello, job_of, run_to_end, slots, submit, sweep, worker_of


@fails_with(breaks.writes_without_condition)
def test_race_1_two_allocators_build_the_same_host(twin: Known, ada: User) -> None:
    """D14118: both saw the host free. The second runs whole between the first's look and its write. SLOT-1"""
    first, second = (submit(twin, ada, resources=["bench"]) for _ in range(2))
    with just_before(twin, grants, twin.run):
        twin.run()
    assert holders(twin, "resource/bench") == {"bench-1": second}
    assert len(twin.well.asked) == 1
    run_to_end(twin, second)
    run_to_end(twin, first)
    assert_nothing_is_left(twin)


@fails_with(breaks.writes_without_condition)
def test_race_2_more_is_built_than_the_limit_allows(twin: Known, ada: User) -> None:
    """A count is only a hint: somebody else takes what is left before each grant. SLOT-1"""
    for _ in range(5):
        submit(twin, ada, target="linux")
    with always_before(twin, grants, twin.deliver):
        twin.run()
    assert sorted(holders(twin, "target/linux")) == ["1", "2"]
    assert len(twin.factory.made) == 2


@fails_with(breaks.slot_stays_free)
def test_race_3_two_leases_share_an_exclusive_working_copy(twin: Known, ada: User) -> None:
    """A working copy was leased twice until a lease took a lock of its own. A server here has two leases. SLOT-1"""
    first, second, third = (submit(twin, ada, resources=["server"]) for _ in range(3))
    twin.run()
    assert sorted(holders(twin, "resource/server").values()) == sorted([first, second])
    run_to_end(twin, second)
    assert sorted(holders(twin, "resource/server").values()) == sorted([first, third])


@fails_with(breaks.writes_without_condition)
def test_race_4_a_resource_is_acquired_while_it_is_reclaimed(twin: Known, ada: User) -> None:
    """D19080: the lease got a resource that was just taken away. SLOT-1"""
    job = submit(twin, ada, resources=["bench"])
    with just_before(twin, grants, lambda: set_limit(twin, "resource/bench", 0, ())):
        twin.run()
    assert slots(twin, "resource/bench", SlotState.OFF) == ["bench-1"]
    assert not held(twin, "resource/bench")
    set_limit(twin, "resource/bench", 1, ("bench-1",))
    run_to_end(twin, job)
    assert_nothing_is_left(twin)


@fails_with(breaks.writes_without_condition)
def test_race_4_a_resource_is_reclaimed_while_it_is_acquired(twin: Known, ada: User) -> None:
    """D19080, the other way round: what was idle when looked at, is in use by the time it is reclaimed. SLOT-1"""
    job = submit(twin, ada, resources=["bench"])
    with just_before(twin, withdraws, twin.run):
        set_limit(twin, "resource/bench", 0, ())
    assert holders(twin, "resource/bench") == {"bench-1": job}
    assert not slots(twin, "resource/bench", SlotState.OFF)
    run_to_end(twin, job)
    assert slots(twin, "resource/bench", SlotState.OFF) == ["bench-1"]


@fails_with(planted.release_without_fence)
def test_race_5_several_releases_at_once(twin: Known, ada: User) -> None:
    """D14143: the second release of a lease freed what somebody else had got meanwhile. SLOT-3"""
    first, second, third = (submit(twin, ada, resources=["bench"]) for _ in range(3))
    twin.run()
    bench = units_of(twin, first)[0]

    def released() -> None:
        advance.advance(twin.on, bench.id)
        serving.serve(twin.on, [bench.lease.pool])

    with just_before(twin, frees_bench, released):
        run_to_end(twin, first)
    assert [(slot.job, slot.fence) for slot in held(twin, "resource/bench")] == [(second, 2)]
    run_to_end(twin, second)
    run_to_end(twin, third)
    assert_nothing_is_left(twin)


def frees_bench(change: object) -> bool:
    return frees(change) and change.row.pool == "resource/bench"  # type: ignore[arg-type,attr-defined]


@fails_with(breaks_later.unit_is_never_due)
def test_race_6_a_crash_between_the_record_and_the_making(twin: Known, ada: User) -> None:
    """D14234: nobody cleaned up after it. The id is written first; the sweep takes the step again. UNIT-1"""
    job = submit(twin, ada)
    with dying(twin.queues, "advance"):
        twin.run()
    assert not twin.factory.made
    sweep(twin)
    assert twin.factory.asked == [worker_of(twin, job).id]
    run_to_end(twin, job)
    assert_nothing_is_left(twin)


@fails_with(breaks_later.unit_is_never_due)
def test_race_6_a_crash_between_the_making_and_the_record(twin: Known, ada: User) -> None:
    """D14234: what was made was never found again. It carries the id that was written before. UNIT-1"""
    job = submit(twin, ada)
    with dying(twin.factory, "create", after=True):
        twin.run()
    assert worker_of(twin, job).creation.made is None
    sweep(twin)
    assert list(twin.factory.made) == [worker_of(twin, job).id]
    assert set(twin.factory.asked) == set(twin.factory.made)
    assert worker_of(twin, job).creation.made
    run_to_end(twin, job)
    assert_nothing_is_left(twin)


@fails_with(breaks_later.hands_over_unasked)
def test_race_7_a_resource_dies_between_acquire_and_activate(twin: Known, ada: User) -> None:
    """D19076: a lease was activated on what was being destroyed. Here it ends while its well works. UNIT-2"""
    job = submit(twin, ada, resources=["bench"])

    def cancel() -> None:
        jobs_cancel.cancel(twin.on, ada, job)
        twin.run()

    twin.well.meanwhile["create"] = cancel
    twin.run()
    assert job_of(twin, job).end.outcome is Outcome.CANCELLED
    assert_nothing_is_left(twin)


def key_of(twin: Known, worker: str) -> str:
    """What a worker proves itself with."""
    return drivers.bootstrap_key(twin.on.signing_key(), worker)


@fails_with(planted.start_at_once)
def test_race_8_a_worker_says_hello_in_the_moment_in_which_it_is_given_up(twin: Known, ada: User) -> None:
    """Drydock accepts that a lease becomes active on what just died. Here one of the two is first. JOB-2"""
    first = submit(twin, ada)
    twin.run()
    worker = worker_of(twin, first).id
    twin.pass_time(601)
    usecases_sweep.sweep(twin.on)
    with just_before(twin, ends, lambda: agents.hello(twin.on, Hello(worker, key_of(twin, worker), TOKEN))):
        twin.run()
    assert (job_of(twin, first).state, job_of(twin, first).attempt) == (State.RUNNING, 1)
    finish(twin, first)
    job = submit(twin, ada)
    twin.run()
    old = worker_of(twin, job).id
    twin.factory.unclean = [NotYet(5, "it is still going down")] * 4
    key = key_of(twin, old)
    twin.pass_time(601)
    usecases_sweep.sweep(twin.on)
    twin.run()
    assert (job_of(twin, job).state, job_of(twin, job).attempt) == (State.QUEUED, 2)
    assert list(twin.factory.made) == [old], "no second worker while the first may still run"
    with pytest.raises(Refused):
        agents.hello(twin.on, Hello(old, key, TOKEN))
    for _ in range(5):
        sweep(twin)
    assert list(twin.factory.made) == [worker_of(twin, job).id] != [old]


@fails_with(breaks_later.made_for_anybody)
def test_race_9_a_new_resource_is_snatched_by_another_lease(twin: Known, ada: User) -> None:
    """Who had it built yielded for 15 s, and found it taken. Here it is its lease's from before it exists. QUEUE-2"""
    twin.well.says = [NotYet(5, "it is being built")]
    first = submit(twin, ada, resources=["bench"])
    twin.run()
    urgent = submit(twin, ada, resources=["bench"], priority=100)
    twin.run()
    twin.pass_time(6)
    twin.run()
    assert holders(twin, "resource/bench") == {"bench-1": first}
    run_to_end(twin, first)
    assert holders(twin, "resource/bench") == {"bench-1": urgent}


@fails_with(breaks.claims_again)
def test_race_10_one_lease_starts_many_builds(twin: Known, ada: User) -> None:
    """D19753, D21806: each time that a lease's task ran, it ordered one more. SLOT-1"""
    job = submit(twin, ada, target="linux")
    twin.run()
    token = str(twin.flows.executions[job, 1].token)
    for _ in range(3):
        scheduler.acquire(twin.on, job, 1, 0, token)
        twin.queues.advance(worker_of(twin, job).id, is_worker=True)
        twin.run()
    assert list(holders(twin, "target/linux").values()) == [job]
    assert len(twin.factory.made) == 1


@fails_with(breaks.makes_before_it_is_granted)
def test_race_12_jobs_hold_what_can_never_become_active(twin: Known, ada: User) -> None:
    """D14236, D14272: N jobs, limit 1: N - 1 resources pended for ever, each with a lease on it. QUEUE-3"""
    made = [submit(twin, ada, resources=["bench"]) for _ in range(5)]
    twin.run()
    assert len(twin.well.asked) == 1
    assert [len(units_of(twin, job)) for job in made[1:]] == [0] * 4
    for job in made:
        run_to_end(twin, job)
    assert {job_of(twin, job).end.outcome for job in made} == {Outcome.SUCCEEDED}
    assert_nothing_is_left(twin)


@fails_with(planted.serve_before_write)
def test_race_13_the_wake_up_comes_before_the_sleeper_sleeps(twin: Known, ada: User) -> None:
    """The awakening was ignored, and a poll made up for it. Here it comes before the claim is written. QUEUE-1"""
    first = submit(twin, ada, resources=["bench"])
    for _ in range(3):
        sweep(twin)
    hello(twin, first)
    second = submit(twin, ada, resources=["bench"])
    with just_before(twin, claims, lambda: finish(twin, first)):
        twin.run()
    assert holders(twin, "resource/bench") == {"bench-1": second}, "and that without any sweep"


@fails_with(breaks_later.unit_is_never_due)
def test_race_14_a_task_that_fails_drops_its_clean_up(twin: Known, ada: User) -> None:
    """D14818: the queued clean-up of a failed task was thrown away with it. UNIT-1"""
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, job)
    with dying(settle, "start_release"):
        finish(twin, job)
    assert job_of(twin, job).is_settled
    for _ in range(3):
        sweep(twin)
    assert_nothing_is_left(twin)


@fails_with(breaks.writes_without_condition)
def test_race_15_a_command_arrives_while_a_lease_is_activated(twin: Known, ada: User) -> None:
    """DrydockLease didActivate: a release that came meanwhile was not looked for again. JOB-1"""
    job = submit(twin, ada)
    twin.run()
    worker = worker_of(twin, job).id
    ask = Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN)
    with just_before(twin, starts, lambda: cancel.cancel(twin.on, ada, job)), pytest.raises(Refused):
        agents.hello(twin.on, ask)
    twin.run()
    assert job_of(twin, job).end.outcome is Outcome.CANCELLED
    assert_nothing_is_left(twin)
