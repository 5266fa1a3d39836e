"""Leases without a job: queues, order, fences, privileges and limits are those of jobs; nobody forgets their end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from penstock.domain import metrics
from penstock.domain.commands import AcquireLease
from penstock.domain.jobs import deadlines
from penstock.domain.jobs.failures import Kind
from penstock.domain.jobs.jobs import Job, Outcome, State
from penstock.domain.pools.pools import SlotState
from penstock.domain.pools.shares import Use, use_key
from penstock.domain.units.units import UnitKind, UnitState
from penstock.domain.users.audit import Wanted as Deeds
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.ports import NotYet
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.jobs import cancel, holds, jobs, leases, listing, submit_lease
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.jobs.listing import Wanted
from penstock.usecases.pools import scheduler
from penstock.usecases.units import maintenance
from penstock.usecases.users import audit
from penstock.usecases.workers import agents
from tests.usecases.exact import Flows, drop, lease_of, put, site
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import assert_all_is_put_back, finish, hello, job_of, live, slots, submit, sweep, told

HOUR = 3600

MADE = site_toml(
    targets={"linux": {"limit": 2}, "default": "linux"},
    wells={"cloud": "hand"},
    resources={"account": {"well": "cloud", "limit": 1}, "board": {"well": "cloud", "limit": 1}},
)
"""A site whose resources are made, and so not there at once."""


def acquire(twin: Twin, user: User, *types: str, key: str | None = None, **more: Any) -> str:
    lease = submit_lease.acquire(twin.on, user, AcquireLease(list(types) or ["bench"], **more), key)
    twin.run()
    return lease


def begun(job: Job) -> datetime:
    assert job.times.started
    return job.times.started


def refusal(twin: Twin, user: User, ask: Mapping[str, Any]) -> Refused:
    with pytest.raises(Refused) as refused:
        submit_lease.acquire(twin.on, user, AcquireLease(**ask), None)
    return refused.value


def open_leases(twin: Twin, user: User) -> list[str]:
    found, _ = listing.list_jobs(twin.on, user, None, Wanted(leases=True, is_open=True), 50, "")
    return [lease.id for lease in found]


def test_what_is_only_a_slot_is_held_at_once_and_back_when_it_is_released(twin: Twin, ada: User) -> None:
    lease = submit_lease.acquire(twin.on, ada, AcquireLease(["bench"], for_="2h"), None)
    held = job_of(twin, lease)
    assert held.state is State.RUNNING
    assert held.indexed
    assert held.indexed.at == held.due
    assert deadlines.ends(held) == begun(held) + timedelta(hours=2)
    assert slots(twin, "resource/bench", SlotState.HELD) == ["bench-1"]
    after = leases.release(twin.on, ada, lease)
    twin.run()
    assert (after.end.outcome, after.end.reason) == (Outcome.SUCCEEDED, "released by ada")
    assert told(twin, lease)[-2:] == [
        "ada has it until 2026-01-01 02:00:00Z",
        "settled: succeeded: released by ada; took 0 s, 0 s of it since it was held",
    ]
    assert_all_is_put_back(twin)


def test_a_lease_that_waits_stands_in_the_queue_of_jobs_and_says_why(twin: Twin, ada: User) -> None:
    first, job, last = acquire(twin, ada), submit(twin, ada, resources=["bench"]), acquire(twin, ada)
    twin.run()
    assert (job_of(twin, job).state, job_of(twin, last).state) == (State.ACQUIRING, State.ACQUIRING)
    why = jobs.explain(twin.on, job_of(twin, last)).summary
    assert why.startswith(f"the lease waits for bench: held are bench-1 by {first}; position 2 in the queue")
    leases.release(twin.on, ada, first)
    twin.run()
    assert job_of(twin, last).state is State.ACQUIRING  # the job came before it
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, last).state is State.RUNNING
    assert jobs.explain(twin.on, job_of(twin, last)).summary.startswith("ada has it until 2026-01-01 04:00:00Z")
    assert lease_of(twin, last, 1).fence == 3  # each grant has a larger one than that before it


def test_it_is_held_once_all_that_it_is_of_was_made(ada: User) -> None:
    twin = site(MADE)
    lease = submit_lease.acquire(twin.on, ada, AcquireLease(["board", "account"]), None)
    assert job_of(twin, lease).state is State.QUEUED
    twin.run()
    held = job_of(twin, lease)
    assert held.state is State.RUNNING
    assert [lease_of(twin, lease, order).type for order in (1, 2)] == ["account", "board"]
    assert twin.flows.executions[lease, 1].ended  # nobody waits for it any more
    assert held.due == deadlines.ends(held)
    leases.release(twin.on, ada, lease)
    twin.run()
    assert not twin.drivers.basin.made


def test_its_step_may_come_again(ada: User) -> None:
    twin = site(MADE)
    lease = acquire(twin, ada, "board")
    before, flows = (job_of(twin, lease), told(twin, lease)), Flows(twin)
    twin.queues.schedule({"do": "acquire", "job": lease, "attempt": 1, "step": 0, "token": "again"})
    twin.run()
    assert (job_of(twin, lease), told(twin, lease)) == before
    assert before[1][-1] == "ada has it until 2026-01-01 04:00:00Z"
    assert (flows.succeeded, flows.failed) == (["again"], [])
    assert len(twin.metrics.of(metrics.STARTED_AFTER, target="(lease)")) == 1
    twin.queues.schedule({"do": "acquire", "job": lease, "attempt": 2, "step": 0, "token": "other"})
    twin.run()
    assert [token for token, _, _ in flows.failed] == ["other"]


def test_its_step_does_nothing_while_something_is_missing(ada: User) -> None:
    twin = site(MADE)
    acquire(twin, ada, "board")
    second = acquire(twin, ada, "board")
    twin.queues.schedule({"do": "acquire", "job": second, "attempt": 1, "step": 0, "token": "early"})
    twin.run()
    assert job_of(twin, second).state is State.ACQUIRING


def test_it_does_not_begin_while_it_has_a_part_only_or_is_being_cancelled(ada: User) -> None:
    twin = site(MADE)
    lease = leases_of_two(twin, ada)
    while not [one for one in live(twin, lease) if one.state is UnitState.READY]:
        twin.deliver()
    scheduler.acquire(twin.on, lease, 1, 0, "early")
    assert job_of(twin, lease).state is State.ACQUIRING
    while not any(message.get("step") == 0 for _, _, message in twin.queues.messages):
        twin.deliver()
    put(twin, job_of(twin, lease), cancelled_by="ada")
    flows = Flows(twin)
    scheduler.acquire(twin.on, lease, 1, 0, "late")
    assert (job_of(twin, lease).state, flows.failed[0][1]) == (State.ACQUIRING, "Cancelled")


def leases_of_two(twin: Twin, user: User) -> str:
    return submit_lease.acquire(twin.on, user, AcquireLease(["board", "account"]), None)


def test_a_cancellation_that_comes_between_read_and_write_counts(ada: User) -> None:
    twin = site(MADE)
    lease = submit_lease.acquire(twin.on, ada, AcquireLease(["board"]), None)
    while not any(message.get("step") == 0 for _, _, message in twin.queues.messages):
        twin.deliver()
    before_the_next_commit(twin, lambda: put(twin, job_of(twin, lease), cancelled_by="ada"))
    scheduler.acquire(twin.on, lease, 1, 0, "late")
    assert job_of(twin, lease).state is State.ACQUIRING


def test_a_lost_step_is_made_up_for(ada: User) -> None:
    twin = site(MADE)
    lease = submit_lease.acquire(twin.on, ada, AcquireLease(["board"]), None)
    while not any(message.get("step") == 0 for _, _, message in twin.queues.messages):
        twin.deliver()
    kept = [message for message in twin.queues.messages if message[2].get("step") != 0]
    twin.queues.messages = type(twin.queues.messages)(kept)
    for _ in range(12):
        sweep(twin)
    assert job_of(twin, lease).state is State.RUNNING


def test_the_sweep_ends_it_when_its_time_is_over_and_that_is_a_failure(twin: Twin, ada: User) -> None:
    lease = acquire(twin, ada, for_=120)
    sweep(twin, 119)
    assert job_of(twin, lease).state is State.RUNNING
    sweep(twin, 61)
    ended = job_of(twin, lease)
    assert ended.end.outcome is Outcome.FAILED
    assert ended.end.reason == "it was neither released nor renewed by 2026-01-01 00:02:00Z"
    assert ended.run.failure
    assert ended.run.failure.kind is Kind.TIMED_OUT
    assert_all_is_put_back(twin)


def test_a_renewal_moves_its_end_and_never_makes_it_earlier(twin: Twin, ada: User) -> None:
    lease = acquire(twin, ada, for_=600)
    since = begun(job_of(twin, lease))
    twin.world.time = since + timedelta(seconds=300)
    leases.renew(twin.on, ada, lease, "10m")
    assert deadlines.ends(job_of(twin, lease)) == since + timedelta(seconds=900)
    leases.renew(twin.on, ada, lease, 60)
    assert deadlines.ends(job_of(twin, lease)) == since + timedelta(seconds=900)
    sweep(twin, 400)
    assert job_of(twin, lease).state is State.RUNNING
    sweep(twin, 300)
    assert job_of(twin, lease).is_settled


def test_a_renewal_in_time_wins_over_the_sweep(twin: Twin, ada: User) -> None:
    lease = acquire(twin, ada, for_=60)
    was = job_of(twin, lease)
    twin.pass_time(61)
    before_the_next_commit(twin, lambda: leases.renew(twin.on, ada, lease, 600))
    leases.expire(twin.on, was)
    assert job_of(twin, lease).state is State.RUNNING
    leases.expire(twin.on, was)
    assert job_of(twin, lease).state is State.RUNNING


def test_the_sweep_ends_only_what_is_over_and_is_there(twin: Twin, ada: User) -> None:
    lease, other = acquire(twin, ada, for_=60), acquire(twin, ada)
    was, waits = job_of(twin, lease), job_of(twin, other)
    leases.expire(twin.on, waits)
    assert job_of(twin, other) == waits
    twin.world.time = begun(was) + timedelta(seconds=60)
    leases.expire(twin.on, was)
    assert job_of(twin, lease).is_settled
    drop(twin, job_of(twin, lease))
    leases.expire(twin.on, was)


def test_of_two_who_end_it_one_does(twin: Twin, ada: User, root: User) -> None:
    lease = acquire(twin, ada)
    before_the_next_commit(twin, lambda: leases.release(twin.on, root, lease))
    assert leases.release(twin.on, ada, lease).end.reason == "released by root"


def test_no_lease_is_longer_than_a_job_may_run(twin: Twin, ada: User) -> None:
    most = 24 * HOUR
    assert refusal(twin, ada, {"resources": ["bench"], "for_": most + 1}).code == "too-long"
    lease = acquire(twin, ada, for_=most)
    twin.pass_time(1)
    with pytest.raises(Refused, match="longer than 86400 s in all") as refused:
        leases.renew(twin.on, ada, lease, most)
    assert refused.value.status == 422


@pytest.mark.parametrize("length", ["soon", 0, -5])
def test_a_renewal_says_what_is_no_length(twin: Twin, ada: User, length: int | str) -> None:
    lease = acquire(twin, ada)
    with pytest.raises(Refused) as refused:
        leases.renew(twin.on, ada, lease, length)
    assert (refused.value.status, refused.value.faults[0].where) == (400, "for")


def test_only_a_held_lease_is_renewed(twin: Twin, ada: User) -> None:
    first, second = acquire(twin, ada), acquire(twin, ada)
    with pytest.raises(Refused, match="it waits, or is being cancelled"):
        leases.renew(twin.on, ada, second, 60)
    put(twin, job_of(twin, first), cancelled_by="root")
    with pytest.raises(Refused, match="it waits, or is being cancelled"):
        leases.renew(twin.on, ada, first, 60)
    put(twin, job_of(twin, first), cancelled_by=None)
    leases.release(twin.on, ada, first)
    with pytest.raises(Refused, match="has ended: succeeded: released by ada"):
        leases.renew(twin.on, ada, first, 60)


def test_to_release_what_waits_is_to_stop_waiting(twin: Twin, ada: User) -> None:
    first, second = acquire(twin, ada), acquire(twin, ada)
    leases.release(twin.on, ada, second)
    twin.run()
    assert job_of(twin, second).end.outcome is Outcome.CANCELLED
    leases.release(twin.on, ada, first)
    twin.run()
    assert leases.release(twin.on, ada, first).end.reason == "released by ada"  # safe to repeat
    assert_all_is_put_back(twin)


def test_what_ends_while_somebody_stops_waiting_for_it_has_ended(twin: Twin, ada: User, root: User) -> None:
    _, second = acquire(twin, ada), acquire(twin, ada)

    def ends() -> None:
        cancel.cancel(twin.on, root, second)
        twin.run()

    before_the_next_commit(twin, ends)
    assert leases.release(twin.on, ada, second).end.reason == "cancelled by root"


def test_to_cancel_what_is_held_is_to_end_it_at_once(twin: Twin, ada: User) -> None:
    lease = acquire(twin, ada)
    cancel.cancel(twin.on, ada, lease)
    twin.run()
    assert job_of(twin, lease).end.outcome is Outcome.CANCELLED
    assert_all_is_put_back(twin)


def test_max_wait_ends_a_lease_and_a_job_that_wait_for_longer(twin: Twin, ada: User) -> None:
    first = acquire(twin, ada)
    lease, job = acquire(twin, ada, max_wait="5m"), submit(twin, ada, resources=["bench"], max_wait="10m")
    patient = acquire(twin, ada, max_wait="21d")
    twin.run()
    sweep(twin, 310)
    assert job_of(twin, lease).run.failure
    assert job_of(twin, lease).end.reason.startswith("it waited longer than the queue deadline: the lease waits for")  # type: ignore[union-attr]
    assert not job_of(twin, job).is_settled
    sweep(twin, 310)
    assert job_of(twin, job).end.outcome is Outcome.ERRORED
    assert job_of(twin, patient).limits.queue_seconds == 7 * 24 * HOUR  # the site's bound
    assert job_of(twin, first).state is State.RUNNING


def test_the_same_key_is_the_same_lease(twin: Twin, ada: User) -> None:
    assert acquire(twin, ada, key="once") == acquire(twin, ada, key="once")
    with pytest.raises(Refused, match="used for another request"):
        acquire(twin, ada, key="once", for_=60)


@pytest.mark.parametrize(
    ("ask", "code", "where"),
    [
        ({"resources": []}, "bad-request", "resources"),
        ({"resources": ["bench", "bench"]}, "bad-request", "resources"),
        ({"resources": ["bench"], "for_": "soon"}, "bad-request", "for"),
        ({"resources": ["bench"], "max_wait": 0}, "bad-request", "max_wait"),
        ({"resources": ["bench"], "name": "a\nb"}, "bad-request", "name"),
        ({"resources": ["bench"], "priority": 101}, "bad-request", "priority"),
        ({"resources": ["benches"]}, "unknown-resource-type", None),
        ({"resources": {"a": {"type": "bench"}, "b": {"type": "bench"}}}, "unsatisfiable", None),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    twin: Twin, ada: User, ask: Mapping[str, Any], code: str, where: str | None
) -> None:
    refused = refusal(twin, ada, ask)
    assert refused.code == code
    assert where is None or refused.faults[0].where is not None
    assert where is None or str(refused.faults[0].where).startswith(where)


def test_a_priority_needs_its_privilege(twin: Twin, ada: User) -> None:
    poor = replace(ada, privileges=())
    assert refusal(twin, poor, {"resources": ["bench"], "priority": 1}).code == "privilege-missing"
    assert job_of(twin, acquire(twin, ada, priority=1)).request.priority == 1


def test_a_lost_resource_ends_a_held_lease_for_good(ada: User, root: User) -> None:
    twin = site(MADE)
    lease = acquire(twin, ada, "board")
    maintenance.recycle(twin.on, root, UnitKind.RESOURCE, live(twin, lease)[0].id, "it burns")
    twin.run()
    ended = job_of(twin, lease)
    assert (ended.end.outcome, ended.attempt) == (Outcome.ERRORED, 1)  # who used it learns that it is over
    assert ended.run.failure
    assert ended.run.failure.kind is Kind.RESOURCE_LOST


def test_what_is_lost_before_it_is_held_is_tried_again(ada: User, root: User) -> None:
    twin = site(MADE)
    twin.drivers.basin.says = [NotYet(600)]
    lease = acquire(twin, ada, "board")
    maintenance.recycle(twin.on, root, UnitKind.RESOURCE, live(twin, lease)[0].id, "it burns")
    for _ in range(10):
        sweep(twin)
    assert (job_of(twin, lease).state, job_of(twin, lease).attempt) == (State.RUNNING, 2)


def test_only_its_owner_is_told_what_it_has(ada: User, root: User) -> None:
    twin = site(MADE)
    lease = acquire(twin, ada, "board")
    assert list(agents.lease_resources(twin.on, ada, lease).resources) == ["board"]
    with pytest.raises(Refused, match="only ada is told") as refused:
        agents.lease_resources(twin.on, root, lease)
    assert refused.value.status == 403
    with pytest.raises(Refused, match="there is no lease"):
        agents.lease_resources(twin.on, replace(ada, name="eve"), lease)
    leases.release(twin.on, ada, lease)
    with pytest.raises(Refused, match="has ended"):
        agents.lease_resources(twin.on, ada, lease)


def test_lists_of_leases_and_of_jobs_are_apart(twin: Twin, ada: User) -> None:
    first, job, second = acquire(twin, ada, "licence"), submit(twin, ada), acquire(twin, ada, "bench")
    assert open_leases(twin, ada) == [second, first]
    assert [each.id for each in listing.list_jobs(twin.on, ada, None, Wanted(), 50, "")[0]] == [job]
    leases.release(twin.on, ada, first)
    twin.run()
    assert open_leases(twin, ada) == [second]
    every, _ = listing.list_jobs(twin.on, ada, None, Wanted(leases=True), 50, "")
    assert [each.id for each in every] == [second, first]


def test_an_operator_who_releases_it_is_in_the_audit_log(twin: Twin, ada: User, root: User) -> None:
    lease = acquire(twin, ada)
    leases.release(twin.on, root, lease)
    entry = audit.list_entries(twin.on, Deeds(), 10, "")[0][0]
    assert (entry.by, entry.did, entry.what, entry.detail) == ("root", "release", f"lease {lease}", "of ada")
    other = acquire(twin, ada)
    leases.release(twin.on, ada, other)
    assert audit.list_entries(twin.on, Deeds(), 10, "")[0][0] == entry


def test_what_is_for_scripts_is_not_for_leases(twin: Twin, ada: User) -> None:
    lease = acquire(twin, ada)
    with pytest.raises(Refused, match="is a lease without a job"):
        jobs_submit.retry(twin.on, ada, job_of(twin, lease))
    with pytest.raises(Refused, match="is a lease without a job"):
        holds.request(twin.on, ada, lease, "look", None, whatever=False)
    for other in (submit(twin, ada), "01KDVDNA00000000000000000Z", "x"):
        with pytest.raises(Refused, match="there is no lease"):
            leases.find(twin.on, ada, other)


def test_a_lease_counts_in_the_turns_of_its_owner(ada: User) -> None:
    twin = site(
        site_toml(
            targets={"linux": {"limit": 1}, "default": "linux"},
            wells={"locks": "lock"},
            resources={"bench": {"well": "locks", "names": ["bench-1"]}},
            shares={"half_life": "1h"},
        )
    )
    lease = acquire(twin, ada)
    assert job_of(twin, lease).usage.expected > 0
    assert live(twin, lease)
    leases.release(twin.on, ada, lease)
    twin.run()
    used = twin.store.get(use_key("ada"), Use)
    assert used
    assert used.seconds < job_of(twin, lease).usage.expected  # what it took is counted, not what was expected
