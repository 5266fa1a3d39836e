"""What went wrong in the Jenkins plugin Lockable Resources."""

from __future__ import annotations

from datetime import timedelta

from penstock.domain.commands import Hello
from penstock.domain.jobs.jobs import Outcome, State
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured
from penstock.usecases.pools import scheduler, serving
from penstock.usecases.site import apply
from penstock.usecases.units import drivers
from penstock.usecases.workers import agents
from tests.known import breaks, breaks_later
from tests.known.caught import fails_with
from tests.known.races import always_before, grants, just_before
from tests.known.site import TWO, Known, assert_nothing_is_left, holders, set_limit, units_of
from tests.usecases.steps import TOKEN, hello, job_of, run_to_end, submit, sweep, worker_of

WEEK = 7 * 24 * 3600


@fails_with(breaks.slot_stays_free)
def test_two_builds_with_one_label_get_the_same_resource(twin: Known, ada: User) -> None:
    """JENKINS lockable-resources#123: both chose among the free ones before either had locked. SLOT-1"""
    made = [submit(twin, ada, resources=["licence"]) for _ in range(3)]
    with always_before(twin, grants, lambda: serving.serve(twin.on, ["resource/licence"])):
        twin.run()
    assert sorted(holders(twin, "resource/licence").items()) == [("1", made[0]), ("2", made[1])]


@fails_with(breaks.claims_again)
def test_one_build_reserves_twice(twin: Known, ada: User) -> None:
    """lockable-resources#549: asked twice, it had two. Here the second asking is whole inside the first. SLOT-1"""
    job = submit(twin, ada, resources=["licence"])
    token = str(twin.flows.executions[job, 1].token)

    def again() -> None:
        scheduler.acquire(twin.on, job, 1, 1, token)

    with just_before(twin, grants, again):
        twin.run()
    again()
    twin.run()
    assert list(holders(twin, "resource/licence").values()) == [job]
    assert [unit.type for unit in units_of(twin, job)] == ["licence", "wide"]


@fails_with(breaks.as_named)
def test_two_locks_nested_in_opposite_orders_deadlock(twin: Known, ada: User) -> None:
    """lock(a) { lock(b) } against lock(b) { lock(a) }: no order, no detection. QUEUE-3"""
    made = [submit(twin, ada, resources=names) for names in (["bench", "board"], ["board", "bench"])]
    twin.run()
    for job in made:
        assert job_of(twin, job).run.worker or units_of(twin, job)[-1].lease.order == 0, (
            "nothing keeps it from its worker"
        )
        run_to_end(twin, job)
    assert {job_of(twin, job).end.outcome for job in made} == {Outcome.SUCCEEDED}
    assert_nothing_is_left(twin)


@fails_with(breaks_later.resizes_without_serving)
def test_an_edited_label_is_not_looked_at_again(twin: Known, ada: User) -> None:
    """Editing labels wakes nobody, and the documentation says so. Limits and names change while jobs wait. QUEUE-1"""
    many = [submit(twin, ada, target="linux") for _ in range(3)]
    named = [submit(twin, ada, resources=["bench"]) for _ in range(2)]
    twin.run()
    apply.resize(twin.on, "target/linux", 3)
    twin.run()
    set_limit(twin, "resource/bench", 2, ("bench-1", "bench-2"))
    twin.run()
    assert sorted(holders(twin, "target/linux").values()) == sorted(many), "without any sweep"
    assert holders(twin, "resource/bench") == {"bench-1": named[0], "bench-2": named[1]}


@fails_with(breaks.waits_without_deadline)
def test_nobody_gives_up_waiting(twin: Known, ada: User) -> None:
    """lockable-resources#668: a build waited until somebody looked. JOB-1"""
    first, second = (submit(twin, ada, resources=["bench"]) for _ in range(2))
    twin.run()
    twin.well.unclean = [Misconfigured("its power switch does not answer")] * 100
    run_to_end(twin, first)
    sweep(twin, WEEK)
    assert job_of(twin, second).end.outcome is Outcome.ERRORED
    reason = str(job_of(twin, second).end.reason)
    assert "waits for bench: resource r-" in reason
    assert "is not clean since" in reason
    assert "Misconfigured: its power switch does not answer" in reason


@fails_with(breaks.counts_waiting_as_running)
def test_time_in_the_queue_counts_as_time_of_the_build(twin: Known, ada: User) -> None:
    """lockable-resources#740: a build timed out before it had begun. JOB-1"""
    first, second = (submit(twin, ada, resources=["bench"], timeout="1h") for _ in range(2))
    twin.run()
    hello(twin, first)
    twin.pass_time(1800)
    agents.heartbeat(twin.on, agents.authenticate(twin.on, first, TOKEN))
    run_on = twin.world.now() + timedelta(hours=1)
    run_to_end(twin, first)
    worker = worker_of(twin, second).id
    given = agents.hello(twin.on, Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN))
    assert given.deadline >= run_on.isoformat()
    assert job_of(twin, second).state is State.RUNNING
    assert (job_of(twin, second).due or run_on) > run_on


@fails_with(breaks.head_of_the_line)
def test_a_lock_blocks_the_queue_while_another_resource_is_free(twin: Known, ada: User) -> None:
    """lockable-resources#88: who could not be served kept all behind it from what they could have had. QUEUE-2"""
    holder = submit(twin, ada, resources=["licence"])
    twin.run()
    large = submit(twin, ada, resources=TWO)
    small = submit(twin, ada, resources=["licence"])
    twin.run()
    assert sorted(holders(twin, "resource/licence").values()) == sorted([holder, small])
    run_to_end(twin, holder)
    run_to_end(twin, small)
    run_to_end(twin, large)
    assert_nothing_is_left(twin)


@fails_with(breaks.passes_without_end)
def test_small_requests_pass_a_large_one_for_ever(twin: Known, ada: User) -> None:
    """The first entry that fits is served, so that one that wants several at once may never be. QUEUE-2"""
    running = [submit(twin, ada, resources=["licence"])]
    twin.run()
    large = submit(twin, ada, resources=TWO)
    twin.run()
    for _ in range(12):
        running.append(submit(twin, ada, resources=["licence"]))
        twin.run()
        if running[-1] in holders(twin, "resource/licence").values():
            run_to_end(twin, running.pop(0))
    waiting = [job for job in running if job not in holders(twin, "resource/licence").values()]
    assert len(waiting) == 12 - 8, "overtaken eight times, and not once more"
    run_to_end(twin, next(job for job in running if job not in waiting))
    assert list(holders(twin, "resource/licence").values()) == [large, large]


@fails_with(breaks.worker_first)
def test_an_executor_is_held_while_its_build_waits_for_a_lock(twin: Known, ada: User) -> None:
    """Executors were used up by builds that only waited; a page of its documentation is about it. QUEUE-3"""
    made = [submit(twin, ada, target="linux", resources=["bench"]) for _ in range(3)]
    twin.run()
    assert list(holders(twin, "target/linux").values()) == [made[0]]
    other = submit(twin, ada, target="linux")
    twin.run()
    assert other in holders(twin, "target/linux").values()


@fails_with(breaks_later.silence_is_not_noticed)
def test_a_build_that_was_killed_keeps_its_lock(twin: Known, ada: User) -> None:
    """Locks of dead builds stood until the controller was restarted. QUEUE-1 JOB-1"""
    first = submit(twin, ada, resources=["bench"], retries=0)
    second = submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, first)
    sweep(twin, 121)
    assert job_of(twin, first).end.outcome is Outcome.ERRORED
    assert holders(twin, "resource/bench") == {"bench-1": second}
