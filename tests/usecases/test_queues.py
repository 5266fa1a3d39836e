"""Who waits is granted, in order, and nobody blocks anybody for ever. [QUEUE-1] [QUEUE-2] [QUEUE-3] [SLOT-2]"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.api import pools
from penstock.domain import metrics
from penstock.domain.jobs.jobs import Outcome, State
from penstock.domain.pools.pools import Claim, HoldTimes, Slot, collection
from penstock.domain.units.units import UnitState
from penstock.domain.users.users import User
from penstock.kernel.rows import Create
from penstock.system import current_site
from penstock.testing.twin import Twin
from penstock.usecases.jobs import jobs
from penstock.usecases.pools import forecast, scheduler, serving
from penstock.usecases.site import apply
from penstock.usecases.telemetry import gauges
from tests.usecases.steps import (
    assert_all_is_put_back,
    finish,
    hello,
    job_of,
    live,
    run_to_end,
    submit,
    sweep,
    told,
)

pytestmark = pytest.mark.usefixtures("by_flow")


class Stopped(BaseException):
    """A function that was killed."""


def stop_serving(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(on: Any, names: Sequence[str], group: str = "") -> None:
        raise Stopped(names)

    monkeypatch.setattr(serving, "serve", serve)


def test_a_claim_whose_function_died_before_serving_is_granted_by_the_sweep(twin: Twin, ada: User) -> None:
    """QUEUE-1: no lost wake-up."""
    job = submit(twin, ada)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "DIRECT_TRIES", 0)
        stop_serving(patch)
        with pytest.raises(Stopped):
            twin.run()
    assert len(twin.store.find(collection("target/linux"), "wait#", Claim)) == 1
    assert not twin.queues.messages
    sweep(twin)
    run_to_end(twin, job)
    assert_all_is_put_back(twin)


def test_a_release_whose_function_died_before_handing_over_is_made_good(twin: Twin, ada: User) -> None:
    """QUEUE-1: when a slot is free and a claim waits, a grant follows without any outside event."""
    first, second = submit(twin, ada, resources=["bench"]), submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, first)
    with pytest.MonkeyPatch.context() as patch:
        stop_serving(patch)
        with pytest.raises(Stopped):
            finish(twin, first)
        twin.queues.messages.clear()
    for _ in range(3):
        sweep(twin)
    run_to_end(twin, second)
    assert_all_is_put_back(twin)


def test_claims_are_granted_by_priority_and_then_by_age(twin: Twin, ada: User) -> None:
    """QUEUE-2: by priority, then age, whatever order the messages come in."""
    holder = submit(twin, ada, resources=["bench"])
    twin.run()
    ranked = [(5, "c"), (0, "d"), (100, "a"), (5, "c2"), (-100, "f"), (0, "e"), (100, "b")]
    made = {name: submit(twin, ada, resources=["bench"], priority=priority, name=name) for priority, name in ranked}
    twin.queues.messages.reverse()
    twin.run()
    order = []
    for _ in ranked:
        run_to_end(twin, holder)
        holder = next(job for job in made.values() if job_of(twin, job).state is State.ACQUIRING and holds(twin, job))
        order.append(next(name for name, job in made.items() if job == holder))
    assert order == ["a", "b", "c", "c2", "d", "e", "f"]


def holds(twin: Twin, job: str) -> bool:
    return any(slot.job == job for slot in twin.store.find(collection("resource/bench"), "held#", Slot))


@pytest.mark.parametrize("lost", range(16))
def test_two_jobs_that_name_their_resources_in_opposite_order_never_block_each_other(
    twin: Twin, ada: User, lost: int
) -> None:
    """QUEUE-3: no deadlock; also when a message between the control plane's own functions is lost."""
    one = {"x": {"type": "bench"}, "y": {"type": "licence"}, "z": {"type": "licence"}}
    made = [submit(twin, ada, resources=one), submit(twin, ada, resources=dict(reversed(one.items())))]
    advance, count = twin.queues.advance, itertools.count()

    def losing(*given: Any, **named: Any) -> None:
        if next(count) != lost:
            advance(*given, **named)

    twin.queues.advance = losing  # type: ignore[method-assign]
    for _ in range(8):
        sweep(twin)
        for job in made:
            if worker := [
                unit for unit in live(twin, job) if unit.lease.order == 0 and unit.id in twin.drivers.hand.made
            ]:
                if job_of(twin, job).state is State.ACQUIRING:
                    hello(twin, job)
                if worker[0].state is not UnitState.DIRTY and not job_of(twin, job).is_settled:
                    finish(twin, job)
    assert [job_of(twin, job).end.outcome for job in made] == [Outcome.SUCCEEDED] * 2
    assert_all_is_put_back(twin)


def test_several_of_one_type_are_had_together_or_not_at_all(twin: Twin, ada: User) -> None:
    """SLOT-2: two jobs that each want both licences cannot each get one."""
    both = {"x": {"type": "licence"}, "y": {"type": "licence"}}
    made = [submit(twin, ada, resources=both) for _ in range(2)]
    twin.run()
    held = [slot.job for slot in twin.store.find(collection("resource/licence"), "held#", Slot)]
    assert held == [made[0]] * 2
    for job in made:
        run_to_end(twin, job)
    assert_all_is_put_back(twin)


def test_positions_and_counts_are_true_above_what_is_read_of_a_queue(twin: Twin, ada: User) -> None:
    apply.resize(twin.on, "target/linux", 1)
    twin.run()
    _, last = submit(twin, ada), submit(twin, ada)
    twin.run()
    (waiting,) = twin.store.find(collection("target/linux"), "wait#", Claim)
    for number in range(1500):
        twin.store.commit([Create(replace(waiting, job=f"00{number:04d}", line=("aa", "bb")[number % 2]))])
    found = jobs.explain(twin.on, job_of(twin, last))
    assert found.blocked_on
    assert found.blocked_on.position == 1501
    assert "position 1501 in the queue" in found.summary
    shown = {each.pool: each.waiting for each in pools.list_pools(twin.on, ada).items}
    assert shown["target/linux"] == 1501
    gauges.report_pools(twin.on, current_site(twin.on), [], ["target/linux"], twin.world.now() + timedelta(seconds=20))
    assert twin.metrics.last(metrics.JOBS_WAITING) == 1501
    assert twin.metrics.last(metrics.POOL_WAITING, pool="target/linux") == 1501
    whole = pools.get_pool(twin.on, ada, "target", "linux")
    assert [(each.position, each.job) for each in whole.queue or ()][::99] == [(1, "000000"), (100, "000099")]
    assert len(whole.queue or ()) == 100


def test_a_pools_page_reads_as_much_however_many_wait(twin: Twin, ada: User) -> None:
    """Of each line the first hundred claims, and the names of those that are shown."""
    apply.resize(twin.on, "target/linux", 1)
    twin.run()
    for _ in range(2):
        submit(twin, ada)
    twin.run()
    (waiting,) = twin.store.find(collection("target/linux"), "wait#", Claim)
    for number in range(300):
        twin.store.commit([Create(replace(waiting, job=f"00{number:04d}"))])
    twin.store.commit([Create(HoldTimes(pool="target/linux", holds=3, mean_hold=60.0))])
    find, rows_at, read = twin.store.find, twin.store.rows_at, Counter[str]()

    def finding(pk: str, prefix: str, kind: Any, **how: Any) -> Any:
        found = find(pk, prefix, kind, **how)
        read["counted" if "upto" in how else prefix] += len(found)
        return found

    def reading(keys: Any) -> Any:
        read["jobs"] += len(keys)
        return rows_at(keys)

    twin.store.find, twin.store.rows_at = finding, reading  # type: ignore[method-assign]
    whole = pools.get_pool(twin.on, ada, "target", "linux")
    assert (whole.waiting, len(whole.queue or ())) == (301, 100)
    assert [place for place, each in enumerate(whole.queue or (), 1) if each.expected] == list(range(1, 21))
    assert read["wait#"] <= 200
    assert read["jobs"] <= 110


def test_the_place_of_a_claim_is_behind_those_before_it_in_every_line(twin: Twin) -> None:
    waits = Claim(
        pool="p", job="J5", attempt=1, step=0, count=1, pools=("p",), priority=0, since=twin.world.now(), line="a"
    )
    rest = [("J1", 0, "a"), ("J9", 0, "a"), ("J2", 0, "b"), ("J8", 0, "b"), ("J7", 5, "c"), ("J0", -5, "c")]
    for job, priority, line in rest:
        twin.store.commit([Create(replace(waits, job=job, priority=priority, line=line))])
    assert forecast.position(twin.on, waits) == 4
    twin.store.commit([Create(waits)])
    assert forecast.position(twin.on, waits) == 4
    assert forecast.queue_length(twin.on, "p") == 7
    assert [(first.job, count) for first, count in forecast.line_lengths(twin.on, "p")] == [
        ("J1", 3),
        ("J2", 2),
        ("J7", 2),
    ]


def test_a_waiting_claim_reads_little_of_its_queue_and_its_holders(twin: Twin, ada: User) -> None:
    """Its log says whom it waits for, at most three by name; nobody counts who is before it."""
    apply.resize(twin.on, "target/linux", 6)
    twin.run()
    held = [submit(twin, ada) for _ in range(6)]
    twin.run()
    job, reads, find = submit(twin, ada), [], twin.store.find

    def noting(pk: str, prefix: str, kind: Any, **how: Any) -> Any:
        reads.append((prefix, how.get("limit")))
        return find(pk, prefix, kind, **how)

    twin.store.find = noting  # type: ignore[method-assign]
    twin.run()
    assert ("held#", 4) in reads
    assert all(limit <= 100 for prefix, limit in reads if prefix in ("held#", "wait#", "free#"))
    assert [line for line in told(twin, job) if "waits" in line] == [
        f"the job waits for a worker of linux: held are 1 by {held[0]}, 2 by {held[1]}, 3 by {held[2]} and others"
    ]
