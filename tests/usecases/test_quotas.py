"""Amounts, claims over several pools, several leases on one resource. [SLOT-1] [SLOT-2] [QUEUE-2] [QUEUE-3]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain import metrics
from penstock.domain.jobs.jobs import Outcome, State
from penstock.domain.pools.grants import MAX_OVERTAKEN, WINDOW
from penstock.domain.pools.pools import Claim
from penstock.domain.units.units import Unit
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Replace
from penstock.system import current_site
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases import sweep
from penstock.usecases.jobs import cancel, jobs, settle
from penstock.usecases.pools.forecast import first_waiting
from penstock.usecases.site import apply
from penstock.usecases.telemetry import gauges
from penstock.usecases.units import drivers
from tests.usecases.quotas import is_granted, run_to_end, used
from tests.usecases.steps import hello, job_of, submit, told

SITE = site_toml(
    targets={
        "small": {"limit": 9, "uses": {"vcpus": 2}},
        "large": {"limit": 9, "uses": {"vcpus": 8}},
        "plain": {"limit": 9},
    },
    wells={"locks": "lock"},
    resources={
        "database": {"well": "locks", "limit": 3, "uses": {"server": 1, "tokens": 5}},
        "server": {"well": "locks", "names": ["one", "two"], "leases": 2},
    },
    quotas={"vcpus": 8, "tokens": 12},
)


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", SITE, "site.toml")
    made.run()
    return made


def test_a_worker_takes_its_slot_and_its_share_of_the_quota_and_gives_both_back(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, target="large")
    twin.run()
    assert used(twin, "quota/vcpus") == 8
    run_to_end(twin, job)
    assert used(twin, "quota/vcpus") == 0
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_an_amount_never_exceeds_its_limit_and_what_is_given_back_goes_to_who_waits(twin: Twin, ada: User) -> None:
    small = [submit(twin, ada, target="small") for _ in range(6)]
    twin.run()
    assert [is_granted(twin, job, "target/small") for job in small] == [True] * 4 + [False] * 2
    why = jobs.explain(twin.on, job_of(twin, small[4]))
    assert why.blocked_on
    assert (why.blocked_on.pool, why.blocked_on.kind, why.blocked_on.free) == ("quota/vcpus", "amount", 0)
    run_to_end(twin, small[0])
    assert is_granted(twin, small[4], "target/small")
    assert used(twin, "quota/vcpus") == 8


def test_a_large_claim_is_overtaken_eight_times_and_then_waited_for(twin: Twin, ada: User) -> None:
    running = [submit(twin, ada, target="small")]
    twin.run()
    large = submit(twin, ada, target="large")
    twin.run()
    passed = 0
    for _ in range(12):
        running.append(submit(twin, ada, target="small"))
        twin.run()
        passed += is_granted(twin, running[-1], "target/small")
        for job in running[:]:
            if is_granted(twin, job, "target/small") and job is not running[-1]:
                run_to_end(twin, job)
                running.remove(job)
    assert passed == 8
    for job in running:
        if is_granted(twin, job, "target/small"):
            run_to_end(twin, job)
    assert is_granted(twin, large, "target/large")


def test_what_is_kept_for_a_cancelled_claim_goes_to_the_next_at_once(twin: Twin, ada: User) -> None:
    holder = submit(twin, ada, target="small")
    twin.run()
    large = submit(twin, ada, target="large")
    twin.run()
    claims = [row for row in twin.store.rows.values() if isinstance(row, Claim) and row.job == large]
    for row in claims:
        twin.store.rows[row.key] = type(row)(**{**row.__dict__, "overtaken": 8})
    waiting = submit(twin, ada, target="small")
    twin.run()
    assert not is_granted(twin, waiting, "target/small")
    cancel.cancel(twin.on, ada, large)
    twin.run()
    assert is_granted(twin, waiting, "target/small"), "without any sweep"
    run_to_end(twin, holder)


def test_what_is_kept_for_a_claim_that_came_while_its_job_was_ended_goes_to_the_next(twin: Twin, ada: User) -> None:
    """QUEUE-1: between the reads of the end and its commit the flow's claim comes, and somebody waits behind it."""
    for resource in ("database", "database", "server"):
        submit(twin, ada, target="plain", resources=[resource])
        twin.run()
    database = submit(twin, ada, target="plain", resources=["database"])
    commit, servers = twin.store.commit, []

    def racing(changes: Sequence[Change]) -> bool:
        twin.store.commit = commit  # type: ignore[method-assign]
        twin.run()
        kept = next(row for row in twin.store.rows.values() if isinstance(row, Claim) and row.pool == "resource/server")
        twin.store.rows[kept.key] = replace(kept, overtaken=MAX_OVERTAKEN)
        servers.append(submit(twin, ada, target="plain", resources=["server"]))
        twin.run()
        assert not is_granted(twin, servers[0], "resource/server")
        return commit(changes)

    twin.store.commit = racing  # type: ignore[method-assign]
    settle.settle(twin.on, database, 1, "QueueDeadline", "it waited too long")
    assert job_of(twin, database).is_settled
    twin.run()
    assert is_granted(twin, servers[0], "resource/server")


def waiting_for_a_full_target(twin: Twin, ada: User) -> list[str]:
    """A target with one slot, which is held, and more claims that wait for it than are read of a line."""
    apply.resize(twin.on, "target/large", 1)
    twin.run()
    found = [submit(twin, ada, target="large") for _ in range(WINDOW + 2)]
    twin.run()
    return found


def test_those_who_wait_for_a_full_target_do_not_delay_others_on_the_same_quota(twin: Twin, ada: User) -> None:
    """QUEUE-1: the target has free slots and the quota much left, and all before it in that queue want the full one."""
    apply.resize(twin.on, "quota/vcpus", 999)
    waiting_for_a_full_target(twin, ada)
    small = submit(twin, ada, target="small")
    twin.run()
    assert is_granted(twin, small, "target/small")


def test_what_only_the_quota_gets_back_goes_past_those_who_wait_for_a_full_target(twin: Twin, ada: User) -> None:
    """QUEUE-1 and QUEUE-2: nobody else serves the queue of the small ones, and the first large one is overtaken."""
    apply.resize(twin.on, "quota/vcpus", 10)
    holder = submit(twin, ada, target="plain")
    waiting_for_a_full_target(twin, ada)
    small = [submit(twin, ada, target="small") for _ in range(3)]
    twin.run()
    assert [is_granted(twin, job, "target/small") for job in small] == [True, False, False]
    apply.resize(twin.on, "quota/vcpus", 14)
    twin.run()
    assert [is_granted(twin, job, "target/small") for job in small] == [True] * 3, "without any sweep"
    large = [row for row in twin.store.rows.values() if isinstance(row, Claim) and row.pool == "quota/vcpus"]
    assert [row.overtaken for row in large] == [3] + [0] * WINDOW
    assert not is_granted(twin, holder, "target/large")


def test_who_stands_behind_more_than_are_read_of_a_line_is_granted_when_these_are(twin: Twin, ada: User) -> None:
    large = waiting_for_a_full_target(twin, ada)
    for before, job in enumerate(large):
        assert [is_granted(twin, each, "target/large") for each in large] == [True] * (before + 1) + [False] * (
            len(large) - before - 1
        )
        run_to_end(twin, job)


def test_of_each_line_only_the_first_claims_are_read_however_long_it_is(twin: Twin, ada: User) -> None:
    apply.resize(twin.on, "quota/vcpus", 0)
    jobs_of = {
        target: [submit(twin, ada, target=target) for _ in range(count)]
        for target, count in (("large", 2 * WINDOW + 3), ("small", WINDOW))
    }
    twin.run()
    reads, find = [], twin.store.find

    def noting(pk: str, prefix: str, kind: Any, **how: Any) -> Any:
        reads.append(find(pk, prefix, kind, **how))
        return reads[-1]

    twin.store.find = noting  # type: ignore[method-assign]
    found = first_waiting(twin.on, "quota/vcpus")
    assert [claim.job for claim in found] == [*jobs_of["large"][:WINDOW], *jobs_of["small"]]
    assert len(reads) <= 3
    assert sum(map(len, reads)) <= 3 * WINDOW


def test_a_resource_that_uses_another_is_granted_with_it_or_not_at_all(twin: Twin, ada: User) -> None:
    first, second, third = (submit(twin, ada, target="plain", resources=["database"]) for _ in range(3))
    twin.run()
    assert [is_granted(twin, job, "resource/database") for job in (first, second, third)] == [True, True, False]
    assert used(twin, "quota/tokens") == 10
    server = submit(twin, ada, target="plain", resources=["server"])
    twin.run()
    assert is_granted(twin, server, "resource/server"), "what the third could not have is not kept from the fourth"
    run_to_end(twin, first)
    assert is_granted(twin, third, "resource/database")
    for job in (second, third, server):
        run_to_end(twin, job)
    assert used(twin, "quota/tokens") == 0


def test_a_resource_has_as_many_leases_as_the_site_sets(twin: Twin, ada: User) -> None:
    held = [submit(twin, ada, target="plain", resources=["server"]) for _ in range(5)]
    twin.run()
    assert [is_granted(twin, job, "resource/server") for job in held] == [True] * 4 + [False]
    hello(twin, held[0])
    unit = next(row for row in twin.store.rows.values() if isinstance(row, Unit) and row.lease.job == held[0])
    assert (unit.lease.slot, drivers.unseal(twin.on, unit)["name"]) == ("one/1", "one")


def test_jobs_that_want_pools_in_both_directions_never_wait_for_each_other(twin: Twin, ada: User) -> None:
    both = [submit(twin, ada, target="plain", resources=["server", "database"]) for _ in range(4)]
    for _ in range(8):
        twin.run()
        for job in both:
            if job_of(twin, job).state is State.ACQUIRING and is_granted(twin, job, "target/plain"):
                run_to_end(twin, job)
    assert {job_of(twin, job).end.outcome for job in both} == {Outcome.SUCCEEDED}


def test_what_could_never_be_granted_is_refused(twin: Twin, ada: User) -> None:
    with pytest.raises(Refused, match="wants 15 of quota/tokens at once and there are 12"):
        submit(twin, ada, target="plain", resources={f"db{n}": {"type": "database"} for n in range(3)})


def test_lowering_an_amount_takes_nothing_from_a_holder(twin: Twin, ada: User) -> None:
    jobs_ = [submit(twin, ada, target="small") for _ in range(4)]
    twin.run()
    apply.resize(twin.on, "quota/vcpus", 2)
    twin.run()
    assert used(twin, "quota/vcpus") == 8
    waiting = submit(twin, ada, target="small")
    for job in jobs_[:3]:
        run_to_end(twin, job)
        assert not is_granted(twin, waiting, "target/small")
    run_to_end(twin, jobs_[3])
    assert is_granted(twin, waiting, "target/small")
    sweep.sweep(twin.on)


def test_a_job_that_waits_in_several_queues_is_counted_once(twin: Twin, ada: User) -> None:
    waiting_for_a_full_target(twin, ada)
    site = current_site(twin.on)
    gauges.report_pools(twin.on, site, [], ["target/large", "quota/vcpus"], twin.world.now() + timedelta(seconds=20))
    assert twin.metrics.last(metrics.JOBS_WAITING) == WINDOW + 1
    gauges.report_pools(twin.on, site, [], ["quota/vcpus"], twin.world.now() + timedelta(seconds=20))
    assert twin.metrics.last(metrics.JOBS_WAITING) == 0, "they are counted where the target is reported"
    assert twin.metrics.last(metrics.POOL_WAITING, pool="quota/vcpus") == WINDOW + 1


@pytest.mark.parametrize(
    ("pool", "change", "says"),
    [
        ("target/small", None, "held are {unit} by {holder}"),
        ("target/small", {"paused": True}, "target/small is paused by an operator"),
        (
            "quota/vcpus",
            {"limit": 0},
            "quota/vcpus has a limit of 0, so nothing is granted until an operator raises it",
        ),
    ],
)
def test_the_log_of_a_waiting_job_names_the_pool_that_lacks_something(
    twin: Twin, ada: User, pool: str, change: dict[str, Any] | None, says: str
) -> None:
    holder = submit(twin, ada, target="large")
    twin.run()
    row = apply.find(twin.on, pool)
    assert twin.store.commit([Replace(row, replace(row, **(change or {})))])
    job = submit(twin, ada, target="small")
    twin.run()
    unit = next(row.id for row in twin.store.rows.values() if isinstance(row, Unit))
    assert [line for line in told(twin, job) if "waits" in line] == [
        f"the job waits for a worker of small: {says.format(unit=unit, holder=holder)}"
    ]
