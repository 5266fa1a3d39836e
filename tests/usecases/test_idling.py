"""What a job holds and cannot use yet: how long that was, and that it is given back when it is too long.

[QUEUE-1] [QUEUE-2] [QUEUE-3] [JOB-1] [JOB-2]
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from penstock.api.jobs import timings
from penstock.domain.jobs.jobs import MAX_GIVE_BACKS, Outcome, State
from penstock.domain.pools.pools import Claim, LeaseState, Slot, collection
from penstock.domain.units.units import UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import NoCapacity
from penstock.ports import NotYet
from penstock.testing.twin import Twin
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.jobs import cancel, flow, jobs, settle
from penstock.usecases.pools import serving
from tests.usecases.exact import lease_of, put, sent, site
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import finish, hello, job_of, live, submit, sweep
from tests.usecases.warm import unit_of as unit_by_id

UNUSED = tuple[int, str, str, float, float]


def held(twin: Twin, job: str) -> list[UNUSED]:
    """What `penstock job timings` shows, in whole seconds: making an id takes a millisecond."""
    row = job_of(twin, job)
    shown = timings(row, flow.leases_of_job(twin.on, row.id), twin.world.now()).held
    return [(one.attempt, one.name, one.type, round(one.seconds), round(one.unused_seconds)) for one in shown]


def test_a_job_shows_how_long_its_resources_were_idle(twin: Twin, ada: User) -> None:
    first, third = (submit(twin, ada, resources=["licence"]) for _ in range(2))
    second = submit(twin, ada, resources=["bench", "licence"])
    twin.run()
    twin.pass_time(100)
    hello(twin, first)
    twin.pass_time(20)
    assert held(twin, second) == [(1, "bench", "bench", 120, 120)]
    assert held(twin, third) == [(1, "licence", "licence", 120, 120), (1, "worker", "linux", 120, 120)]
    finish(twin, first)
    twin.pass_time(5)
    assert held(twin, first) == [(1, "licence", "licence", 120, 100), (1, "worker", "linux", 120, 100)]
    assert held(twin, second) == [
        (1, "bench", "bench", 125, 125), (1, "licence", "licence", 5, 5), (1, "worker", "linux", 5, 5)
    ]  # fmt: skip


def test_each_attempt_is_told_by_itself(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    twin.pass_time(60)
    settle.settle(twin.on, job, 1, "Lost", "its flow ended")
    twin.run()
    twin.pass_time(5)
    hello(twin, job)
    twin.pass_time(30)
    finish(twin, job)
    assert held(twin, job) == [
        (1, "bench", "bench", 60, 60), (1, "worker", "linux", 60, 60),
        (2, "bench", "bench", 35, 5), (2, "worker", "linux", 35, 5),
    ]  # fmt: skip


# What is held for too long is given back.

LIMIT = 3600
SITE = f"""
[factories.hand]
driver = "hand"
[targets.linux]
factory = "hand"
limit = 2
[targets.default]
redirect = "linux"
[wells.locks]
driver = "lock"
[resources.bench]
well = "locks"
limit = 1
[resources.licence]
well = "locks"
limit = 1
[limits]
boot = {LIMIT}
lease = 86400
idle_hold = {LIMIT}
"""


@pytest.fixture
def impatient() -> Twin:
    """A site where nothing is held idle for longer than an hour."""
    return site(SITE)


def waiting_for_a_licence(twin: Twin, ada: User, **ask: Any) -> tuple[str, str]:
    """A job that holds the bench, and another that has the licence that it waits for."""
    other = submit(twin, ada, resources=["licence"], timeout=86400)
    twin.run()
    hello(twin, other)
    job = submit(twin, ada, resources=["bench", "licence"], **ask)
    twin.run()
    return job, other


def holder(twin: Twin, pool: str) -> str | None:
    """Who has the only slot of a pool."""
    held = twin.store.find(collection(pool), "held#", Slot)
    return held[0].job if held else None


def wait(twin: Twin, seconds: int) -> None:
    """Let time pass in pieces, after each of which the sweep comes."""
    end = twin.world.now() + timedelta(seconds=seconds)
    while twin.world.now() < end:
        sweep(twin, min(900, (end - twin.world.now()).total_seconds()))


def test_what_is_held_for_too_long_goes_to_whoever_can_use_it(impatient: Twin, ada: User) -> None:
    """QUEUE-1: and the job that held it has its place when it queues again."""
    twin = impatient
    job, other = waiting_for_a_licence(twin, ada, retries=0)
    younger = submit(twin, ada, resources=["bench"])
    twin.run()
    deadline = job_of(twin, job).flow.queue_until
    wait(twin, LIMIT - 61)
    assert holder(twin, "resource/bench") == job
    wait(twin, 122)
    assert holder(twin, "resource/bench") == younger
    found = job_of(twin, job)
    assert (found.state, found.attempt, found.history.given_back, found.flow.queue_until) == (
        State.QUEUED,
        2,
        1,
        deadline,
    )
    assert found.history.attempts[0].outcome == "gave back"
    assert found.history.attempts[0].reason.startswith(
        f"it held bench and got no further for {LIMIT} s: the job waits for licence"
    )
    assert not twin.store.find(collection("resource/licence"), "wait#", Claim), "it stands in no queue"
    assert "and queues again at 2026-01-01 02:0" in jobs.explain(twin.on, found).summary
    hello(twin, younger)
    last = submit(twin, ada, resources=["bench"])
    wait(twin, LIMIT + 61)
    assert [claim.job for claim in twin.store.find(collection("resource/bench"), "wait#", Claim)] == [job, last]
    finish(twin, younger)
    finish(twin, other)
    assert (holder(twin, "resource/bench"), holder(twin, "resource/licence")) == (job, job)
    twin.run()
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert held(twin, job)[0][:3] == (1, "bench", "bench")
    assert held(twin, job)[0][3] == held(twin, job)[0][4] >= LIMIT


def test_it_is_not_taken_again_at_once(impatient: Twin, ada: User) -> None:
    """QUEUE-3: nobody else wants it, and the job does not give it back again and again."""
    twin = impatient
    job, _ = waiting_for_a_licence(twin, ada)
    wait(twin, LIMIT + 61)
    assert holder(twin, "resource/bench") is None
    wait(twin, LIMIT - 122)
    assert holder(twin, "resource/bench") is None
    wait(twin, 183)
    assert (holder(twin, "resource/bench"), job_of(twin, job).history.given_back) == (job, 1)
    assert job_of(twin, job).flow.parked_until is None


def test_after_so_many_times_it_keeps_what_it_holds(impatient: Twin, ada: User) -> None:
    """QUEUE-2: whoever takes what it waits for meanwhile does so a bounded number of times."""
    twin = impatient
    job, other = waiting_for_a_licence(twin, ada, retries=0)
    put(twin, job_of(twin, job), given_back=MAX_GIVE_BACKS - 1)
    wait(twin, LIMIT + 61)
    assert job_of(twin, job).history.given_back == MAX_GIVE_BACKS
    wait(twin, 5 * LIMIT)
    assert (holder(twin, "resource/bench"), job_of(twin, job).attempt) == (job, 2)
    assert job_of(twin, job).due == job_of(twin, job).flow.queue_until
    finish(twin, other)
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_who_gets_further_begins_anew(impatient: Twin, ada: User) -> None:
    """It has the licence in time, and waits for a worker as long again."""
    twin = impatient
    job, other = waiting_for_a_licence(twin, ada)
    others = [submit(twin, ada, timeout=86400, priority=10) for _ in range(2)]
    twin.run()
    hello(twin, others[0])
    wait(twin, LIMIT - 60)
    finish(twin, other)
    assert holder(twin, "resource/licence") == job
    hello(twin, others[1])
    wait(twin, LIMIT - 60)
    assert job_of(twin, job).attempt == 1
    wait(twin, 120)
    assert (job_of(twin, job).attempt, holder(twin, "resource/licence")) == (2, None)


def test_who_holds_nothing_gives_nothing_back(impatient: Twin, ada: User) -> None:
    twin = impatient
    job, _ = waiting_for_a_licence(twin, ada)
    first = submit(twin, ada, resources=["licence"])
    twin.run()
    assert job_of(twin, first).due == job_of(twin, first).flow.queue_until, "nobody looks at it before"
    wait(twin, LIMIT + 122)
    assert (job_of(twin, first).attempt, job_of(twin, job).attempt) == (1, 2)


def test_without_a_limit_it_is_held_until_the_queue_deadline(ada: User) -> None:
    twin = site(SITE.replace(f"idle_hold = {LIMIT}", f"queue = {6 * LIMIT}"))
    job, _ = waiting_for_a_licence(twin, ada)
    wait(twin, 6 * LIMIT - 60)
    assert (holder(twin, "resource/bench"), job_of(twin, job).attempt) == (job, 1)
    wait(twin, 120)
    ended = job_of(twin, job)
    assert (holder(twin, "resource/bench"), ended.end.outcome) == (None, Outcome.ERRORED)
    assert ended.history.given_back == 0


@pytest.mark.parametrize("says", [[NoCapacity("none left")] * 99, []])
def test_a_worker_that_there_is_none_of_is_waited_for_without_the_resources(
    impatient: Twin, ada: User, says: list[Exception | NotYet]
) -> None:
    """Whether its pool is full, or its factory has none: then its slot goes back as well. JOB-2: before the next."""
    twin = impatient
    others = [submit(twin, ada, timeout=86400) for _ in range(0 if says else 2)]
    twin.run()
    for other in others:
        hello(twin, other)
    twin.drivers.hand.says = list(says)
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    assert holder(twin, "resource/bench") == job
    wait(twin, LIMIT + 122)
    assert (holder(twin, "resource/bench"), job_of(twin, job).history.given_back) == (None, 1)
    assert [slot.job for slot in twin.store.find(collection("target/linux"), "held#", Slot)] == sorted(others)
    assert job_of(twin, job).history.attempts[0].reason.startswith(f"it held bench and got no further for {LIMIT} s: ")


def test_a_grant_that_comes_before_it_gives_back_stands(impatient: Twin, ada: User) -> None:
    """QUEUE-1: between what the sweep read and its write. From there on it waits for its maker, and no queue."""
    twin = impatient
    job, other = waiting_for_a_licence(twin, ada)
    twin.pass_time(LIMIT + 1)
    unit = next(unit for unit in live(twin, other) if unit.lease.order == 1)

    def granted() -> None:
        finish_silently(twin, other)
        serving.serve(twin.on, ["resource/licence"])
        assert lease_of(twin, job, 2).state is LeaseState.GRANTED

    before_the_next_commit(twin, granted)
    usecases_sweep.nudge(twin.on, "job", job_of(twin, job).key)
    assert (job_of(twin, job).attempt, job_of(twin, job).history.given_back) == (1, 0)
    assert unit_by_id(twin, unit.id).state is UnitState.GONE
    twin.run()
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def finish_silently(twin: Twin, job: str) -> None:
    """Its licence is free, and granted; its well has not heard of it yet."""
    settle.settle(twin.on, job, 1, None, "it ended")
    while lease_of(twin, job, 1).state is not LeaseState.RELEASED:
        assert twin.deliver()


def test_a_job_that_is_cancelled_while_it_is_parked_ends_at_once(impatient: Twin, ada: User) -> None:
    twin = impatient
    job, _ = waiting_for_a_licence(twin, ada)
    wait(twin, LIMIT + 61)
    assert job_of(twin, job).flow.parked_until
    twin.run()
    assert (job, 2) not in twin.flows.executions
    cancel.cancel(twin.on, ada, job)
    twin.run()
    assert job_of(twin, job).end.outcome is Outcome.CANCELLED


def test_its_queue_deadline_stays(impatient: Twin, ada: User) -> None:
    """JOB-1: it is one wait, however often it gave back."""
    twin = impatient
    job, _ = waiting_for_a_licence(twin, ada)
    put(twin, job_of(twin, job), queue_until=twin.world.now() + timedelta(seconds=LIMIT + 600))
    wait(twin, LIMIT + 122)
    assert job_of(twin, job).state is State.QUEUED
    wait(twin, 600)
    assert job_of(twin, job).end.outcome is Outcome.ERRORED
    assert str(job_of(twin, job).end.reason).startswith("it waited longer than the queue deadline: the job gave back")


def test_the_flow_of_the_attempt_that_gave_back_is_stopped(impatient: Twin, ada: User) -> None:
    twin = impatient
    job, _ = waiting_for_a_licence(twin, ada)
    wait(twin, LIMIT + 61)
    assert twin.flows.executions[job, 1].ended
    assert job_of(twin, job).flow.stop_from is None


def test_only_who_is_parked_has_its_flow_started_to_hear_that_it_is_cancelled(impatient: Twin, ada: User) -> None:
    twin = impatient
    job, _ = waiting_for_a_licence(twin, ada)
    sent(twin)
    cancel.cancel(twin.on, ada, job)
    assert sent(twin) == []
