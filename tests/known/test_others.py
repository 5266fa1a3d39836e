"""What went wrong in Zuul's Nodepool, LAVA, labgrid, Volcano, Argo, Taskcluster and others."""

from __future__ import annotations

import pytest

from penstock.domain.jobs.jobs import Outcome, State
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.ports import NotYet
from penstock.usecases.jobs import cancel
from penstock.usecases.site import apply
from penstock.usecases.workers import agents
from tests.known import breaks, breaks_later
from tests.known.caught import fails_with
from tests.known.races import dying, just_before, renews, restart
from tests.known.site import SITE, TWO, Known, assert_nothing_is_left, holders, units_of
from tests.simulation import plants as planted
from tests.usecases.steps import dies_after_the_report, finish, hello, job_of, run_to_end, submit, sweep, worker_of

DAY = 24 * 3600


@fails_with(planted.one_by_one)
def test_two_gangs_each_hold_half_of_what_both_need(twin: Known, ada: User) -> None:
    """Volcano#3373: two jobs of 100 nodes each got some, and waited for each other. SLOT-2 QUEUE-3"""
    made = [submit(twin, ada, resources=TWO) for _ in range(2)]
    twin.run()
    assert list(holders(twin, "resource/licence").values()) == [made[0], made[0]]
    for job in made:
        run_to_end(twin, job)
    assert_nothing_is_left(twin)


@fails_with(breaks.as_named)
def test_two_multinode_jobs_of_different_priorities_take_one_device_each(twin: Known, ada: User) -> None:
    """LAVA: each sub-job takes a device as it falls free, and the two types are in two orders. QUEUE-3"""
    holder = submit(twin, ada, resources=["bench", "board"])
    twin.run()
    low = submit(twin, ada, resources={"x": {"type": "bench"}, "y": {"type": "board"}})
    high = submit(twin, ada, resources={"x": {"type": "board"}, "y": {"type": "bench"}}, priority=50)
    run_to_end(twin, holder)
    assert units_of(twin, high)[-1].lease.order == 0, "it has both, and its worker"
    run_to_end(twin, high)
    run_to_end(twin, low)
    assert {job_of(twin, job).end.outcome for job in (low, high)} == {Outcome.SUCCEEDED}
    assert_nothing_is_left(twin)


@fails_with(breaks.head_of_the_line)
def test_one_paused_request_keeps_its_provider_from_all_others(twin: Known, ada: User) -> None:
    """Nodepool: at quota one handler paused, and with it the pool, for whatever the others wanted. QUEUE-1 QUEUE-2"""
    for target in ("small", "tiny", "small", "tiny"):
        submit(twin, ada, target=target)
        twin.run()
    assert len(holders(twin, "target/small")) == 1, "5 vCPUs of 8 are used, and the second wants 4"
    assert len(holders(twin, "target/tiny")) == 2, "which keeps nobody from the 3 that are left"


@fails_with(planted.start_at_once)
def test_a_session_expires_and_with_it_the_lock_on_a_node_in_use(twin: Known, ada: User) -> None:
    """Nodepool's locks were ephemeral; Taskcluster's expired claim is tried again at once. JOB-2 UNIT-2"""
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, job)
    old = worker_of(twin, job).id
    twin.factory.unclean = [NotYet(60, "it is still going down")] * 100
    for _ in range(4):
        sweep(twin, 121)
        assert (job_of(twin, job).state, job_of(twin, job).attempt) == (State.QUEUED, 2)
        assert list(twin.factory.made) == [old], "it may still run: nothing else does"
        assert holders(twin, "resource/bench") == {"bench-1": job}
    twin.factory.unclean.clear()
    sweep(twin, 61)
    assert list(twin.factory.made) == [worker_of(twin, job).id] != [old]


@fails_with(breaks_later.unit_is_never_due)
def test_a_request_is_locked_by_a_launcher_that_is_no_more(twin: Known, ada: User) -> None:
    """Nodepool: requests that were pending, and nobody's. Here a grant whose message was lost. QUEUE-1 JOB-1"""
    job = submit(twin, ada, resources=["bench"])
    with dying(twin.queues, "advance"):
        twin.run()
    restart(twin)
    assert holders(twin, "resource/bench") == {"bench-1": job}
    sweep(twin)
    assert twin.factory.made
    run_to_end(twin, job)
    assert_nothing_is_left(twin)


@fails_with(breaks.head_of_the_line)
def test_who_wants_several_locks_blocks_all_who_want_one_of_them(twin: Known, ada: User) -> None:
    """Argo Workflows documents it: the front of the queue keeps what it cannot use yet from the rest. QUEUE-2"""
    made = [submit(twin, ada, resources=[kind]) for kind in ("database", "database", "cache", "cache")]
    twin.run()
    assert list(holders(twin, "resource/database").values()) == made[:1], "the second lacks tokens"
    assert sorted(holders(twin, "resource/cache").values()) == sorted(made[2:])


@fails_with(breaks_later.cleans_what_it_knows_of)
def test_an_instance_is_started_before_the_database_hears_of_it(twin: Known, ada: User) -> None:
    """Taskcluster: RunInstances and then worker.create; a crash between left what nobody knew. UNIT-1"""
    job = submit(twin, ada)
    with dying(twin.factory, "create", after=True):
        twin.run()
    assert list(twin.factory.made) == [worker_of(twin, job).id]
    assert worker_of(twin, job).creation.made is None
    cancel.cancel(twin.on, ada, job)
    twin.run()
    assert_nothing_is_left(twin)


@fails_with(breaks.forgets_who_waits_long)
def test_a_place_in_the_queue_is_lost_unless_it_is_renewed_each_minute(twin: Known, ada: User) -> None:
    """labgrid's reservations expire after 60 s, Boskos' ranks after 30 s, without a poll. QUEUE-2"""
    holder = submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, holder)
    waiting = submit(twin, ada, resources=["bench"])
    twin.run()
    restart(twin)
    twin.pass_time(6 * DAY)
    late = submit(twin, ada, resources=["bench"])
    twin.run()
    finish(twin, holder)
    assert holders(twin, "resource/bench") == {"bench-1": waiting}
    run_to_end(twin, waiting)
    assert holders(twin, "resource/bench") == {"bench-1": late}


@fails_with(breaks.writes_without_condition)
def test_an_account_is_put_back_whole_over_what_changed_meanwhile(twin: Known, ada: User) -> None:
    """Innovation Sandbox writes an account's row without a condition. A renewal comes after the end here. SLOT-3"""
    job = submit(twin, ada)
    twin.run()
    caller = hello(twin, job)
    twin.pass_time(30)
    with just_before(twin, renews, lambda: finish(twin, job)), pytest.raises(Refused):
        agents.heartbeat(twin.on, caller)
    assert_nothing_is_left(twin)


@fails_with(breaks.fails_when_nothing_is_free)
def test_there_is_no_waiting_only_an_error(twin: Known, ada: User) -> None:
    """Innovation Sandbox: NoAccountsAvailableError, and ask again yourself. QUEUE-1"""
    made = [submit(twin, ada, resources=["board"]) for _ in range(3)]
    twin.run()
    assert {job_of(twin, job).state for job in made} == {State.ACQUIRING}
    for job in made:
        run_to_end(twin, job)
    assert {job_of(twin, job).end.outcome for job in made} == {Outcome.SUCCEEDED}


@fails_with(breaks_later.takes_from_holders)
def test_editing_the_configuration_confuses_what_is_running(twin: Known, ada: User) -> None:
    """ec2-fleet: "can cause strange behavior". A target and a type go while a job has them. SLOT-1 JOB-1"""
    job = submit(twin, ada, target="linux", resources=["board"])
    twin.run()
    hello(twin, job)
    without = SITE.replace('names = ["board-1"]', 'names = ["board-2"]').replace("limit = 2", "limit = 1", 1)
    apply.apply(twin.on, "admin", without, "site.toml")
    twin.run()
    assert holders(twin, "resource/board") == {"board-1": job}
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    following = submit(twin, ada, target="linux", resources=["board"])
    twin.run()
    assert holders(twin, "resource/board") == {"board-2": following}
    run_to_end(twin, following)
    assert_nothing_is_left(twin)


@fails_with(breaks_later.job_is_never_due)
def test_an_execution_that_died_keeps_its_place_in_a_semaphore(twin: Known, ada: User) -> None:
    """AWS's semaphore for Step Functions is given back by an event, which may be lost. QUEUE-1 JOB-1"""
    first, second = submit(twin, ada, resources=["bench"], retries=0), submit(twin, ada, resources=["bench"])
    twin.run()
    caller = hello(twin, first)
    twin.flows.stop(first, 1)
    with dies_after_the_report(twin):
        finish(twin, first)
    assert holders(twin, "resource/bench") == {"bench-1": first}
    for _ in range(2):
        agents.heartbeat(twin.on, caller)
        sweep(twin)
    assert job_of(twin, first).end.outcome is Outcome.SUCCEEDED
    assert holders(twin, "resource/bench") == {"bench-1": second}
