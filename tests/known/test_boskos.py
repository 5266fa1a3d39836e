"""What went wrong in Boskos, which leases the Kubernetes project's accounts, and around it."""

from __future__ import annotations

import pytest

from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.domain.units.units import Unit, UnitState, unit_key
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured, Refused
from penstock.ports import NotYet
from penstock.usecases.jobs import jobs, settle
from penstock.usecases.workers import agents
from tests.known import breaks, breaks_later
from tests.known.caught import fails_with
from tests.known.races import grants, just_before, renews, restart
from tests.known.site import TWO, Known, assert_nothing_is_left, held, holders, units_of
from tests.simulation import plants as planted
from tests.usecases.steps import TOKEN, finish, hello, job_of, run_to_end, submit, sweep, told, worker_of


@fails_with(breaks.reads_again_in_the_write)
def test_an_update_reads_again_what_it_overwrites_so_that_one_resource_is_leased_twice(twin: Known, ada: User) -> None:
    """test-infra#15985: Update did get, modify, update, so an old owner's renewal met no conflict. SLOT-1 SLOT-3"""
    job = submit(twin, ada, retries=0)
    twin.run()
    caller = hello(twin, job)
    twin.pass_time(30)

    def end() -> None:
        settle.settle(twin.on, job, 1, "Lost", "it was given up")
        twin.run()

    with just_before(twin, renews, end), pytest.raises(Refused):
        agents.heartbeat(twin.on, caller)
    unit = twin.store.get(unit_key(caller.unit.id), Unit)
    assert unit
    assert unit.state is UnitState.GONE
    assert_nothing_is_left(twin)


@fails_with(planted.last_comes_first)
def test_the_queue_is_forgotten_when_its_only_replica_restarts(twin: Known, ada: User) -> None:
    """boskos#23, #99: ranks were kept in memory. QUEUE-2"""
    made = [submit(twin, ada, resources=["bench"]) for _ in range(4)]
    twin.run()
    for job in made:
        assert holders(twin, "resource/bench") == {"bench-1": job}
        hello(twin, job)
        restart(twin)
        finish(twin, job)
    assert_nothing_is_left(twin)


@fails_with(breaks_later.one_janitor)
def test_what_cannot_be_cleaned_starves_the_cleaning_of_other_types(twin: Known, ada: User) -> None:
    """boskos#17: the janitors were busy with the type that was dirty most. UNIT-2 QUEUE-1"""
    first, second, third = (submit(twin, ada, resources=[kind]) for kind in ("bench", "board", "board"))
    twin.run()
    twin.well.unclean = [Misconfigured("its power switch does not answer")]
    run_to_end(twin, first)
    run_to_end(twin, second)
    assert holders(twin, "resource/bench") == {"bench-1": first}
    assert holders(twin, "resource/board") == {"board-1": third}, "without any sweep"


@fails_with(breaks_later.frees_what_is_not_clean)
def test_a_resource_whose_cleaning_failed_is_free_again(twin: Known, ada: User) -> None:
    """aws-janitor-boskos cleanResource: the last failure was a warning, and the account was given away. UNIT-2"""
    first, second = (submit(twin, ada, resources=["bench"]) for _ in range(2))
    twin.run()
    bench = units_of(twin, first)[0].id
    twin.well.unclean = [Misconfigured("the key was revoked")] * 100
    run_to_end(twin, first)
    for _ in range(3):
        assert holders(twin, "resource/bench") == {"bench-1": first}
        sweep(twin, 700)
    twin.well.unclean.clear()
    sweep(twin, 700)
    assert holders(twin, "resource/bench") == {"bench-1": second}
    unit = twin.store.get(unit_key(bench), Unit)
    assert unit
    assert unit.cleaning.proof


@fails_with(breaks_later.frees_what_is_not_clean)
def test_a_resource_is_taken_from_its_janitor_because_cleaning_takes_long(twin: Known, ada: User) -> None:
    """test-infra#12362: the reaper took what was cleaned for more than half an hour, for nobody renewed it. UNIT-2"""
    first, second = (submit(twin, ada, resources=["bench"]) for _ in range(2))
    twin.run()
    twin.well.unclean = [NotYet(600, "the disks are being erased")] * 1000
    run_to_end(twin, first)
    for _ in range(18):
        assert holders(twin, "resource/bench") == {"bench-1": first}
        sweep(twin, 601)
    twin.well.unclean.clear()
    sweep(twin, 601)
    assert holders(twin, "resource/bench") == {"bench-1": second}


@fails_with(planted.free_before_clean)
def test_a_lease_is_reaped_in_the_middle_of_its_teardown_and_given_to_another(twin: Known, ada: User) -> None:
    """kube-agents#1196: the old owner deleted on, in what the new one had built. SLOT-3 UNIT-2 JOB-2"""
    first = submit(twin, ada, resources=["bench"], retries=0)
    second = submit(twin, ada, resources=["bench"])
    twin.run()
    caller = hello(twin, first)
    twin.factory.unclean = [NotYet(60, "it is still going down")] * 3
    sweep(twin, 121)
    for _ in range(2):
        assert holders(twin, "resource/bench") == {"bench-1": first}, "its worker may still use it"
        assert worker_of(twin, first).lease.slot in holders(twin, "target/wide")
        sweep(twin, 61)
    sweep(twin, 61)
    assert holders(twin, "resource/bench") == {"bench-1": second}
    with pytest.raises(Refused):
        agents.report_finished(twin.on, caller, Result.SUCCEEDED, "late", 0)


@fails_with(breaks_later.silence_is_not_noticed)
def test_a_heartbeat_ends_silently_and_the_holder_does_not_know(twin: Known, ada: User) -> None:
    """kube-agents#1687: `boskosctl heartbeat` stopped after five hours with exit code 0. JOB-1"""
    job = submit(twin, ada, retries=0)
    twin.run()
    caller = hello(twin, job)
    sweep(twin, 121)
    assert job_of(twin, job).end.outcome is Outcome.ERRORED
    assert "nothing was heard from its agent" in str(job_of(twin, job).end.reason)
    assert any("was lost: nothing was heard" in line for line in told(twin, job))
    with pytest.raises(Refused) as refused:
        agents.heartbeat(twin.on, caller)
    assert refused.value.status == 410


@fails_with(breaks.writes_in_part)
def test_some_of_what_a_resource_needs_is_held_while_it_waits_for_the_rest(twin: Known, ada: User) -> None:
    """Mason took its needs one by one, in the random order of a map, and left them when it failed. SLOT-2 QUEUE-3"""
    first = submit(twin, ada, resources=["database"])
    second = submit(twin, ada, resources=["database"], priority=10)
    with just_before(twin, grants, twin.run):
        twin.run()
    assert list(holders(twin, "resource/database").values()) == [second]
    assert sum(slot.count for slot in held(twin, "quota/tokens")) == 5
    assert not units_of(twin, first)
    run_to_end(twin, second)
    run_to_end(twin, first)
    assert_nothing_is_left(twin)


@fails_with(planted.one_by_one)
def test_half_of_what_was_asked_for_is_acquired_and_kept(twin: Known, ada: User) -> None:
    """acquirebystate returns what it got so far together with its error: "not a bug". SLOT-2"""
    one = submit(twin, ada, resources=["licence"])
    twin.run()
    two = submit(twin, ada, resources=TWO)
    twin.run()
    assert list(holders(twin, "resource/licence").values()) == [one]
    run_to_end(twin, one)
    assert list(holders(twin, "resource/licence").values()) == [two, two]


@fails_with(planted.old_agents_write)
def test_anybody_who_names_the_owner_can_release_and_update(twin: Known, ada: User) -> None:
    """The server has no authentication, and the owner is a text that its caller chooses. SEC-2"""
    job, other = submit(twin, ada), submit(twin, ada)
    twin.run()
    hello(twin, job)
    for wrong in ("", "ada", "u" * 43):
        with pytest.raises(Refused):
            agents.authenticate(twin.on, job, wrong)
    with pytest.raises(Refused):
        agents.authenticate(twin.on, other, TOKEN)


@fails_with(planted.old_agents_write)
def test_a_credential_outlives_the_lease_that_it_came_with(twin: Known, ada: User) -> None:
    """Static keys stood in the user data of a resource, for whoever had it before. SEC-1"""
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, job)
    finish(twin, job)
    with pytest.raises(Refused):
        agents.authenticate(twin.on, job, TOKEN)
    rows = [row for row in twin.store.rows.values() if isinstance(row, Unit)]
    assert not [row for row in rows if row.session.token_hash or row.access.sealed]


@fails_with(breaks.fails_when_nothing_is_free)
def test_an_exhausted_pool_fails_the_build(twin: Known, ada: User) -> None:
    """test-infra#16987, #15860: wait, and say who has it. JOB-1"""
    first, second = (submit(twin, ada, resources=["bench"]) for _ in range(2))
    twin.run()
    assert job_of(twin, second).state is State.ACQUIRING
    assert f"held are bench-1 by {first}" in jobs.explain(twin.on, job_of(twin, second)).summary
    run_to_end(twin, first)
    run_to_end(twin, second)
    assert job_of(twin, second).end.outcome is Outcome.SUCCEEDED
