"""Machines that exist already: there or away, leased once, cleaned before the next. [SLOT-1] [JOB-2] [UNIT-2]"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.commands import AgentHost
from penstock.domain.jobs.jobs import Outcome, Result, State
from penstock.domain.pools.pools import Lease, LeaseState, Pool, Slot, SlotName, SlotState, lease_key, pool_key
from penstock.domain.replies import HostInstruction
from penstock.domain.site.site import Limits
from penstock.domain.units import maintenance as unit_maintenance
from penstock.domain.units.hosts import host_key
from penstock.domain.units.units import Unit, UnitKind, UnitState, add_entry
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Change, Create, Key, Replace
from penstock.ports import NotYet
from penstock.system import System
from penstock.testing.store import lease_now
from penstock.testing.twin import Twin
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.jobs import cancel, jobs
from penstock.usecases.pools import resize
from penstock.usecases.site import apply as site_apply
from penstock.usecases.units import advance, maintenance
from penstock.usecases.workers import agents, hosts, presence
from tests.usecases.exact import put
from tests.usecases.lab_hosts import LAB, LEASE, Bench, apply, host_of, lab, states
from tests.usecases.races import before_the_next_write_of
from tests.usecases.steps import hello, job_of, submit, sweep, told, worker_of

MOVED = LAB.replace('"bench-7", "bench-8"', '"bench-8"') + '[targets.rack]\nfactory = "lab"\nnames = ["bench-7"]\n'


@pytest.fixture
def twin() -> Twin:
    return lab()


def order(twin: Twin, ada: User, **more: object) -> str:
    job = submit(twin, ada, target="lab", **more)
    twin.run()
    return job


def test_a_host_takes_job_after_job_and_is_clean_in_between(twin: Twin, ada: User) -> None:
    """UNIT-2: its slot is free again only with its word, which becomes the record."""
    bench = Bench(twin)
    assert bench.ask() == HostInstruction("wait", 5, LEASE)
    for _ in range(2):
        job = order(twin, ada)
        assert bench.run() == job
        assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
        unit = worker_of(twin, job)
        assert (unit.state, unit.lease.slot) == (UnitState.GONE, "bench-7")
        assert unit.cleaning.proof
        assert (unit.cleaning.proof.by, unit.cleaning.proof.checked) == ("the agent of host bench-7", "nothing is left")
        assert states(twin) == {"bench-7": "free", "bench-8": "away"}
        assert bench.do() == "wait"


def test_only_hosts_that_are_there_are_granted(twin: Twin, ada: User) -> None:
    """QUEUE-1: a job waits for a host to come, says so, and is granted when one does."""
    assert states(twin) == {"bench-7": "away", "bench-8": "away"}
    job = order(twin, ada)
    why = jobs.explain(twin.on, job_of(twin, job))
    assert why.summary.startswith("the job waits for a worker of lab: away are bench-7, which was never heard of, ")
    assert why.blocked_on
    assert [(one.host, one.since) for one in why.blocked_on.away] == [("bench-7", None), ("bench-8", None)]
    bench = Bench(twin, "bench-8")
    bench.ask()
    pool = twin.store.get(pool_key("target/lab"), Pool)
    assert pool
    assert [one.host for one in presence.absent_hosts(twin.on, pool)] == ["bench-7"]
    assert bench.run() == job


def test_a_host_that_falls_silent_is_away_and_comes_back(twin: Twin, ada: User) -> None:
    bench = Bench(twin)
    bench.ask()
    assert states(twin)["bench-7"] == "free"
    sweep(twin, LEASE - 1)
    assert states(twin)["bench-7"] == "free"
    sweep(twin, 1)
    assert states(twin)["bench-7"] == "away"
    job, gone = order(twin, ada), host_of(twin).away
    assert gone
    summary = jobs.explain(twin.on, job_of(twin, job)).summary
    assert f"bench-7 since {gone.isoformat(sep=' ', timespec='seconds').replace('+00:00', 'Z')}" in summary
    sweep(twin)
    assert host_of(twin).away == gone
    bench.ask()
    assert bench.run() == job


def test_a_host_that_leaves_is_granted_no_more(twin: Twin, ada: User) -> None:
    bench = Bench(twin)
    bench.ask()
    assert bench.do(leaving=True) == "wait"
    assert states(twin)["bench-7"] == "away"
    order(twin, ada)
    assert bench.do(leaving=True) == "wait"
    assert bench.do() == "wait"
    assert bench.do(leaving=True) == "wait"
    assert states(twin)["bench-7"] == "held"
    assert bench.do() == "work"


@pytest.mark.parametrize("came", [True, False])
def test_a_host_that_says_again_and_again_that_it_takes_no_jobs_is_away_since_the_first_time(
    twin: Twin, came: bool
) -> None:
    bench = Bench(twin)
    if came:
        bench.ask()
    bench.ask(leaving=True)
    assert states(twin)["bench-7"] == "away"
    first = host_of(twin)
    twin.pass_time(300)
    bench.ask(leaving=True)
    assert host_of(twin) == first
    bench.ask()
    assert host_of(twin).away is None


def test_an_idle_host_costs_a_write_in_half_a_lease(twin: Twin) -> None:
    bench = Bench(twin)
    bench.ask()
    first = host_of(twin)
    twin.pass_time(LEASE / 2 - 1)
    bench.ask()
    assert host_of(twin) == first
    twin.pass_time(1)
    bench.ask()
    assert host_of(twin).version == first.version + 1
    assert host_of(twin).due == twin.world.now() + timedelta(seconds=LEASE)


def test_a_message_that_is_lost_is_made_up_for_by_the_sweep(twin: Twin) -> None:
    hosts.poll(twin.on, Bench(twin).user, "bench-7", AgentHost("s" * 43))
    twin.queues.messages.clear()
    sweep(twin)
    assert states(twin)["bench-7"] == "free"


def test_a_second_machine_of_the_same_name_is_refused_while_the_first_is_there(twin: Twin, ada: User) -> None:
    """JOB-2: two machines would both run what is granted once."""
    first, second = Bench(twin), Bench(twin, session="z")
    first.ask()
    with pytest.raises(Refused, match="host bench-7 is served by another agent, on machine") as refused:
        second.ask()
    assert (refused.value.status, refused.value.code) == (409, "host-taken")
    job = order(twin, ada)
    assert first.do() == "work"
    first.hello()
    twin.pass_time(LEASE - 1)
    usecases_sweep.sweep(twin.on)
    with pytest.raises(Refused, match="served by another"):
        second.ask()
    sweep(twin, 120)
    assert second.do() == "clean"  # its slot is dirty: the first was lost with its worker
    with pytest.raises(Refused, match="served by another"):
        first.ask()
    assert job_of(twin, job).attempt == 2


def test_a_second_machine_of_a_host_is_refused_while_the_first_is_connected(twin: Twin, ada: User) -> None:
    """JOB-2: an agent goes on when the host's own died."""
    first, second = Bench(twin), Bench(twin, session="z")
    first.ask()
    order(twin, ada)
    first.ask()
    first.hello()
    unit = worker_of(twin, job_of(twin, first_job(twin)).id)
    sweep(twin, LEASE - 1)
    fresh = replace(unit, due=twin.world.now() + timedelta(seconds=LEASE))
    twin.store.commit([Replace(worker_of(twin, unit.lease.job), fresh)])
    sweep(twin, 1)
    assert host_of(twin).away
    with pytest.raises(Refused, match="served by another"):
        second.ask()
    assert first.do() == "wait"


def first_job(twin: Twin) -> str:
    return next(key.pk.partition("#")[2] for key in twin.store.rows if key.pk.startswith("job#"))


def test_a_host_whose_agent_died_says_so_and_its_attempt_is_lost_at_once(twin: Twin, ada: User) -> None:
    bench = Bench(twin)
    bench.ask()
    job = order(twin, ada)
    bench.ask()
    bench.hello()
    bench.stage = "ended"
    assert bench.ask() == HostInstruction("wait", 1, LEASE, bench.worker)
    assert "its agent on bench-7 ended before it reported" in "\n".join(told(twin, job))
    assert "before it reported:" not in "\n".join(told(twin, job))
    assert bench.clean().do == "forget"
    assert job_of(twin, job).attempt == 2
    assert bench.run() == job
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_an_agent_that_died_before_its_hello(twin: Twin, ada: User) -> None:
    bench = Bench(twin)
    bench.ask()
    job = order(twin, ada)
    bench.ask()
    bench.stage = "ended"
    assert bench.do() == "wait"
    assert bench.clean().do == "forget"
    assert bench.run() == job


def test_a_job_that_is_cancelled_before_its_host_came_for_it(twin: Twin, ada: User) -> None:
    """UNIT-2: nobody knows whether the host was there, so it cleans up."""
    bench = Bench(twin)
    bench.ask()
    job = order(twin, ada)
    cancel.cancel(twin.on, ada, job)
    twin.run()
    assert worker_of(twin, job).state is UnitState.DIRTY
    said = bench.ask()
    assert (said.do, said.worker) == ("clean", worker_of(twin, job).id)
    bench.worker = said.worker
    assert bench.clean().do == "forget"
    assert states(twin)["bench-7"] == "free"


def test_what_a_host_says_of_another_worker_changes_nothing(twin: Twin, ada: User) -> None:
    """SLOT-3: an old word, or one about somebody else's worker, frees no slot."""
    bench, other = Bench(twin), Bench(twin, "bench-8")
    bench.ask()
    other.ask()
    first, second = order(twin, ada), order(twin, ada)
    bench.ask()
    other.ask()
    bench.report(bench.hello())
    other.report(other.hello())
    rows = dict(twin.store.rows)
    for worker in (other.worker, "w-none", worker_of(twin, first).id[:-1]):
        said = hosts.poll(twin.on, bench.user, "bench-7", AgentHost("s" * 43, "machine", worker, "clean", "x"))
        assert said.do == "forget"
    assert twin.store.rows == rows
    assert bench.clean().do == "forget"
    assert states(twin) == {"bench-7": "free", "bench-8": "held"}
    assert {job_of(twin, job).end.outcome for job in (first, second)} == {Outcome.SUCCEEDED}


def test_what_is_said_again_changes_nothing(twin: Twin, ada: User) -> None:
    bench = Bench(twin)
    bench.ask()
    order(twin, ada)
    first = bench.ask()
    bench.worker = ""
    assert bench.ask() == first
    job, worker = bench.hello(), bench.worker
    assert (bench.do(), bench.do(worker="")) == ("wait", "wait")  # an old question must not cost a running job
    assert job_of(twin, job).state is State.RUNNING
    bench.report(job)
    bench.clean()
    assert bench.do(worker=worker, stage="clean", cleaned="again") == "forget"
    assert states(twin)["bench-7"] == "free"


def test_nothing_is_cleaned_while_an_operator_holds_the_machine(twin: Twin, ada: User, root: User) -> None:
    """UNIT-3"""
    bench = Bench(twin)
    bench.ask()
    job = order(twin, ada)
    bench.ask()
    bench.hello()
    unit = maintenance.hold(twin.on, root, UnitKind.WORKER, bench.worker, "look at it", 3600)
    bench.stage = "ended"
    bench.ask()
    assert worker_of(twin, job).state is UnitState.DIRTY
    said = bench.ask()
    assert (said.do, said.held_seconds, said.seconds) == ("wait", 3600, Limits().heartbeat)
    assert bench.do(stage="clean", cleaned="by itself") == "wait"
    maintenance.release(twin.on, root, UnitKind.WORKER, unit.id)
    assert hosts.poll(twin.on, bench.user, "bench-7", AgentHost("s" * 43, "", unit.id, "ended")).do == "wait"
    twin.run()
    assert bench.clean().do == "forget"


@pytest.mark.parametrize("does", ["works", "has ended", "is clean", "remembers nothing"])
def test_a_host_in_quarantine_waits_until_its_operator_releases_it(
    twin: Twin, ada: User, root: User, does: str
) -> None:
    """UNIT-1: nothing that happens by itself touches it; nor does it ask without a pause."""
    bench = Bench(twin)
    bench.ask()
    job = order(twin, ada, retries=0)
    assert bench.do() == "work"
    bench.hello()
    caller = agents.authenticate(twin.on, job, bench.token)
    agents.report_finished(twin.on, caller, Result.FAILED, "the disk is gone", 1, broken="the disk is gone")
    twin.run()
    unit = worker_of(twin, job)
    assert unit.state is UnitState.QUARANTINED
    bench.stage = {"has ended": "ended", "is clean": "clean"}.get(does, "working")
    bench.worker = "" if does == "remembers nothing" else bench.worker
    for _ in range(3):
        assert bench.ask().do == "wait"
        assert bench.ask().seconds > 0
    assert worker_of(twin, job).state is UnitState.QUARANTINED
    maintenance.release(twin.on, root, UnitKind.WORKER, unit.id)
    twin.run()
    bench.worker = unit.id
    bench.clean()
    assert worker_of(twin, job).state is UnitState.GONE
    assert states(twin)["bench-7"] == "free"


def test_a_host_that_cannot_get_clean_says_why(twin: Twin, ada: User) -> None:
    bench = Bench(twin)
    bench.ask()
    job = order(twin, ada)
    bench.ask()
    bench.report(bench.hello())
    bench.stage = "ended"
    assert bench.do() == "clean"
    assert "cannot get clean" not in str(worker_of(twin, job).step.reason)
    assert bench.do(trouble="a mount is busy") == "clean"
    assert worker_of(twin, job).step.reason == "bench-7 cannot get clean: a mount is busy"
    assert "bench-7 cannot get clean: a mount is busy" in "\n".join(told(twin, job))
    assert states(twin)["bench-7"] == "held"


def test_a_dead_host_keeps_its_slot_but_not_its_job(twin: Twin, ada: User) -> None:
    """JOB-2, UNIT-2: after a lease its agent has stopped the job; then only its traces are left, on its own slot."""
    bench, other = Bench(twin), Bench(twin, "bench-8")
    bench.ask()
    job = order(twin, ada, resources=["licence"])
    bench.ask()
    bench.hello()
    other.ask()
    lost = worker_of(twin, job)
    sweep(twin, LEASE)
    assert worker_of(twin, job).state is UnitState.DIRTY
    assert lease_of(twin, lost) is LeaseState.RELEASING
    twin.pass_time(LEASE - 1)
    other.ask()
    assert (job_of(twin, job).attempt, job_of(twin, job).state) == (2, State.QUEUED)
    assert lease_of(twin, lost) is LeaseState.RELEASING
    twin.pass_time(1)
    other.ask()
    assert lease_of(twin, lost) is LeaseState.RELEASED
    assert "nothing runs on bench-7 any more, which is still to be cleaned" in told(twin, job)
    assert other.run() == job
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert states(twin) == {"bench-7": "held", "bench-8": "free"}
    assert states(twin, "resource/licence") == {"1": "free"}
    bench.stage = "ended"
    assert bench.clean().do == "forget"
    assert states(twin) == {"bench-7": "free", "bench-8": "free"}


def lease_of(twin: Twin, unit: Unit) -> LeaseState:
    found = twin.store.get(lease_key(unit.lease.job, unit.lease.attempt, 0), Lease)
    assert found
    return lease_now(twin.store.rows, found).state


def test_a_host_ends_a_worker_whose_agent_hangs(twin: Twin, ada: User) -> None:
    """UNIT-1: a lease after its job was lost, and not before: until then it may end itself."""
    job = order(twin, ada, retries=0)
    bench = Bench(twin)
    bench.ask()
    assert bench.do() == "work"
    assert bench.hello() == job
    while not job_of(twin, job).is_settled:
        assert bench.do() == "wait"
        sweep(twin, 30)
    since = worker_of(twin, job).since
    while twin.world.now() < since + timedelta(seconds=LEASE - 30):
        assert bench.do() == "wait"
        sweep(twin, 10)
    sweep(twin, 30)
    assert bench.do() == "clean", "it still says that its worker works"
    assert bench.clean().do == "forget"
    assert worker_of(twin, job).state is UnitState.GONE
    assert states(twin)["bench-7"] == "free"


def test_a_host_whose_worker_is_at_work_asks_no_more_often_after_a_lease(twin: Twin, ada: User) -> None:
    job = order(twin, ada)
    bench = Bench(twin)
    bench.ask()
    bench.ask()
    assert bench.hello() == job
    for _ in range(5):
        sweep(twin, 40)
        bench.beat(job)
        assert bench.ask() == HostInstruction("wait", Limits().heartbeat, LEASE, bench.worker)
    assert twin.world.now() > worker_of(twin, job).since + timedelta(seconds=LEASE)


def test_not_one_that_an_operator_holds(twin: Twin, ada: User, root: User) -> None:
    """UNIT-3: also if its agent hangs."""
    job = order(twin, ada, retries=0)
    bench = Bench(twin)
    bench.ask()
    assert bench.do() == "work"
    assert bench.hello() == job
    maintenance.hold(twin.on, root, UnitKind.WORKER, bench.worker, "to see", 7200)
    for _ in range(20):
        assert bench.do() == "wait"
        sweep(twin, 60)
    assert worker_of(twin, job).state is UnitState.DIRTY


def test_a_name_that_is_taken_out_while_it_is_held(twin: Twin, ada: User) -> None:
    bench = Bench(twin)
    bench.ask()
    job = order(twin, ada)
    bench.ask()
    apply(twin, LAB.replace('"bench-7", ', ""))
    assert bench.hello() == job
    bench.report(job)
    assert bench.clean().do == "forget"
    assert states(twin) == {"bench-7": "off", "bench-8": "away"}
    with pytest.raises(Refused, match="there is no host"):
        bench.ask()


def test_a_name_that_is_taken_out_and_given_back_while_it_is_away(twin: Twin) -> None:
    apply(twin, LAB.replace('"bench-7", ', ""))
    assert states(twin) == {"bench-7": "off", "bench-8": "away"}
    with pytest.raises(Refused, match="there is no host"):
        Bench(twin).ask()
    assert host_key("bench-7") not in twin.store.rows
    apply(twin, LAB)
    assert states(twin) == {"bench-7": "away", "bench-8": "away"}
    Bench(twin).ask()
    assert states(twin)["bench-7"] == "free"


def test_a_host_that_moves_to_another_target_is_never_leased_in_both(twin: Twin, ada: User) -> None:
    """SLOT-1: it serves its new target when its slot in the old one is nobody's."""
    bench = Bench(twin)
    bench.ask()
    first = order(twin, ada)
    bench.ask()
    apply(twin, MOVED)
    second = submit(twin, ada, target="rack")
    twin.run()
    bench.hello()
    bench.ask()
    assert (states(twin)["bench-7"], states(twin, "target/rack")) == ("held", {"bench-7": "away"})
    bench.report(first)
    bench.clean()
    assert bench.do() == "wait"
    assert (states(twin)["bench-7"], host_of(twin).pool) == ("off", "target/rack")
    assert bench.run() == second


def test_a_move_that_comes_before_its_pools_were_fit(twin: Twin, ada: User) -> None:
    """SLOT-1: a free slot of the old pool goes with the same write that brings the host into the new one."""
    bench = Bench(twin)
    bench.ask()
    site_apply.apply(twin.on, "admin", MOVED, "site.toml")
    hosts.poll(twin.on, bench.user, "bench-7", AgentHost("s" * 43))
    assert states(twin)["bench-7"] == "off"
    twin.run()
    assert (states(twin)["bench-7"], states(twin, "target/rack")) == ("off", {"bench-7": "free"})
    apply(twin, LAB)
    bench.ask()
    assert states(twin)["bench-7"] == "free"


def test_a_move_from_a_pool_that_never_had_the_slot(twin: Twin) -> None:
    hosts.poll(twin.on, Bench(twin).user, "bench-7", AgentHost("s" * 43))
    host = host_of(twin)
    twin.store.commit([Replace(host, replace(host, pool="target/none"))])
    Bench(twin).ask()
    assert host_of(twin).pool == "target/lab"


def test_a_slot_on_the_move_is_waited_for(twin: Twin) -> None:
    """SLOT-1: while a slot is nowhere to be seen, somebody may be taking it."""
    bench = Bench(twin)
    bench.ask()
    slot = twin.store.get(Slot(pool="target/lab", name="bench-7", state=SlotState.FREE).key, Slot)
    assert slot
    del twin.store.rows[slot.key]
    site_apply.apply(twin.on, "admin", MOVED, "site.toml")
    hosts.poll(twin.on, bench.user, "bench-7", AgentHost("s" * 43))
    assert host_of(twin).pool == "target/lab"
    twin.store.commit([Create(slot)])
    hosts.poll(twin.on, bench.user, "bench-7", AgentHost("s" * 43))
    assert host_of(twin).pool == "target/rack"


@pytest.mark.parametrize("privileges", [(), ("host.bench-8",), ("host.bench-77", "target.lab")])
def test_who_may_not_speak_for_a_host(twin: Twin, privileges: tuple[str, ...]) -> None:
    """SEC-2"""
    bench = Bench(twin)
    bench.user = replace(bench.user, privileges=privileges)
    with pytest.raises(Refused, match=r"needs the privilege 'host\.bench-7'"):
        bench.ask()
    assert states(twin)["bench-7"] == "away"
    with pytest.raises(Refused, match="43 to 128"):
        Bench(twin, session="").ask()
    with pytest.raises(Refused, match="there is no host 'Bench'"):
        hosts.poll(twin.on, bench.user, "Bench", AgentHost("s" * 43))


def test_a_result_that_is_not_good_is_cleaned_after_as_well(twin: Twin, ada: User) -> None:
    bench = Bench(twin)
    bench.ask()
    job = order(twin, ada)
    bench.ask()
    bench.report(bench.hello(), Result.FAILED)
    assert bench.clean().do == "forget"
    assert job_of(twin, job).end.outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[targets.lab]\nfactory = "lab"\nlimit = 2\n', "exist already, each with a name"),
        ('[targets.lab]\nfactory = "here"\nnames = ["a"]\n', "its factory makes its machines"),
        ('[targets.lab]\nfactory = "lab"\nnames = ["a"]\nwarm = { max = 1 }\n', "keeps nothing for the next lease"),
        ('[targets.lab]\nfactory = "none"\nnames = ["a"]\n', "there is no factory"),
    ],
)
def test_sites_that_are_refused(text: str, said: str) -> None:
    makers = '[factories.lab]\ndriver = "hosts"\n[factories.here]\ndriver = "hand"\n'
    with pytest.raises(Refused) as refused:
        site_apply.apply(Twin().on, "admin", makers + text, "site.toml")
    assert any(said in fault.message for fault in refused.value.faults), refused.value.faults


def test_a_resize_that_read_a_host_before_it_went_does_not_free_its_slot(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SLOT-1: going is written with the pool's row, so what was decided from before it loses its race."""
    hosts.poll(twin.on, Bench(twin).user, "bench-7", AgentHost("s" * 43))
    here, seen = presence.present_hosts, []

    def reads_and_then_it_goes(on: System, pool: Pool) -> frozenset[str]:
        found = here(on, pool)
        if found and not seen:
            seen.append(found)
            presence.sign_off(twin.on, host_of(twin))
        return found

    monkeypatch.setattr(presence, "present_hosts", reads_and_then_it_goes)
    resize.resize(twin.on, "target/lab")
    assert (seen, states(twin)["bench-7"]) == ([{"bench-7"}], "away")


def test_that_a_host_went_is_not_forgotten_when_its_message_is(twin: Twin) -> None:
    Bench(twin).ask()
    presence.mark_silent(twin.on, "bench-7")
    assert not twin.queues.messages
    twin.pass_time(LEASE)
    presence.mark_silent(twin.on, "bench-7")
    twin.queues.messages.clear()
    assert states(twin)["bench-7"] == "free"
    sweep(twin)
    assert states(twin)["bench-7"] == "away"
    rows = dict(twin.store.rows)
    presence.mark_silent(twin.on, "bench-7")
    presence.mark_silent(twin.on, "bench-unheard-of")
    assert (twin.store.rows, list(twin.queues.messages)) == (rows, [])


def test_an_agent_that_was_followed_by_another_cannot_say_that_the_host_leaves(twin: Twin) -> None:
    Bench(twin).ask()
    old = host_of(twin)
    sweep(twin, LEASE)
    Bench(twin, session="z").ask()
    presence.sign_off(twin.on, old)
    assert host_of(twin).away is None


def test_a_host_whose_row_stands_at_the_end_of_its_lease_may_be_followed(twin: Twin) -> None:
    Bench(twin).ask()
    twin.pass_time(LEASE)
    assert Bench(twin, session="z").do() == "wait"
    assert states(twin)["bench-7"] == "free"
    assert host_of(twin).since == twin.world.now()


def test_a_resource_is_never_away_whatever_its_name(twin: Twin) -> None:
    pool = Pool(name="resource/bench", names=("bench-7",), limit=1)
    assert (presence.present_hosts(twin.on, pool), presence.absent_hosts(twin.on, pool)) == (frozenset(), [])


def test_a_machine_that_was_silent_with_its_worker_may_be_followed_before_the_sweep(twin: Twin, ada: User) -> None:
    first, second = Bench(twin), Bench(twin, session="z")
    first.ask()
    order(twin, ada)
    first.ask()
    first.hello()
    twin.pass_time(LEASE - 1)
    with pytest.raises(Refused, match="served by another agent, on machine; this"):
        second.ask()
    unit = worker_of(twin, first_job(twin))
    assert unit.due
    twin.world.time = unit.due
    assert second.do() == "wait"


def test_who_serves_a_host_may_have_no_name(twin: Twin) -> None:
    hosts.poll(twin.on, Bench(twin).user, "bench-7", AgentHost("s" * 43))
    with pytest.raises(Refused, match="served by another agent; this one"):
        Bench(twin, session="z").ask()


def test_a_host_that_the_site_forgot_stays_where_it_was(twin: Twin) -> None:
    bench = Bench(twin)
    bench.ask()
    apply(twin, LAB.replace('"bench-7", ', ""))
    with pytest.raises(Refused, match="there is no host"):
        bench.ask()
    assert host_of(twin).pool == "target/lab"


def test_a_slot_follows_its_host_by_a_resize_only(twin: Twin) -> None:
    Bench(twin).ask()
    sweep(twin, LEASE)
    hosts.poll(twin.on, Bench(twin).user, "bench-7", AgentHost("s" * 43))
    assert states(twin)["bench-7"] == "away"


def meddle(twin: Twin, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something just before the next commit."""
    commit, left = twin.store.commit, [act]

    def late(changes: Sequence[Change]) -> bool:
        if left:
            left.pop()()
        return commit(changes)

    monkeypatch.setattr(twin.store, "commit", late)


@pytest.mark.parametrize("is_known", [False, True])
def test_one_of_two_concurrent_agents_of_a_host_is_accepted(
    twin: Twin, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """JOB-2"""
    if is_known:
        Bench(twin, session="x").ask()
        sweep(twin, LEASE)
    first, second = Bench(twin), Bench(twin, session="z")
    meddle(twin, monkeypatch, first.ask)
    with pytest.raises(Refused, match="served by another"):
        second.ask()
    assert first.do() == "wait"


def test_a_host_that_is_heard_of_while_it_goes(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(twin)
    bench.ask()
    twin.pass_time(LEASE)
    meddle(twin, monkeypatch, bench.ask)
    presence.mark_silent(twin.on, "bench-7")
    twin.run()
    assert (host_of(twin).away, states(twin)["bench-7"]) == (None, "free")


def test_a_host_that_goes_while_it_is_heard_of(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(twin)
    bench.ask()
    twin.pass_time(LEASE)
    meddle(twin, monkeypatch, lambda: (presence.mark_silent(twin.on, "bench-7"), twin.run()))
    bench.ask()
    assert (host_of(twin).away, states(twin)["bench-7"]) == (None, "free")


def test_a_pool_that_is_paused_while_a_host_comes_stays_so(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    meddle(twin, monkeypatch, lambda: site_apply.pause(twin.on, "target/lab", paused=True))
    Bench(twin).ask()
    assert site_apply.find(twin.on, "target/lab").paused
    assert states(twin)["bench-7"] == "free"


def test_a_second_machine_is_not_given_what_the_first_may_be_about_to_begin(twin: Twin, ada: User) -> None:
    """JOB-2: it would take the other's running job for lost, and say that it is clean."""
    first, second = Bench(twin), Bench(twin, session="z")
    first.ask()
    job = order(twin, ada)
    assert first.do() == "work"
    sweep(twin, LEASE)
    assert host_of(twin).away
    with pytest.raises(Refused, match="served by another"):
        second.ask()
    assert first.hello() == job
    sweep(twin, LEASE)
    assert second.do() == "clean"


def test_a_second_machine_is_refused_while_the_script_of_a_recycled_worker_may_run(twin: Twin, ada: User) -> None:
    """JOB-2, UNIT-2: it would say that it is clean, and the job would begin anew beside its own script."""
    first, second = Bench(twin), Bench(twin, session="z")
    first.ask()
    job = order(twin, ada)
    assert first.do() == "work"
    first.hello()
    twin.pass_time(LEASE - 30)  # the machine was cut off after its hello, with all that runs there
    maintenance.recycle(twin.on, ada, UnitKind.WORKER, worker_of(twin, job).id, "it is hot")
    assert (worker_of(twin, job).state, job_of(twin, job).attempt) == (UnitState.DIRTY, 2)
    sweep(twin, 29)
    fall_silent(twin)
    with pytest.raises(Refused, match="served by another"):
        second.ask()
    twin.pass_time(1)
    assert second.do() == "clean"


def fall_silent(twin: Twin) -> None:
    host = host_of(twin)
    twin.store.commit([Replace(host, replace(host, due=twin.world.now()))])


def test_a_second_machine_is_refused_while_a_worker_is_being_recycled(twin: Twin, ada: User) -> None:
    """JOB-2: that it is due says only that its attempt has to end."""
    first, second = Bench(twin), Bench(twin, session="z")
    first.ask()
    job = order(twin, ada)
    first.do()
    first.hello()
    unit, now = worker_of(twin, job), twin.world.now()
    recycled = unit_maintenance.recycle(unit, "ada", "it is hot", now)
    twin.store.commit([Replace(unit, replace(recycled, due=now))])
    fall_silent(twin)
    with pytest.raises(Refused, match="served by another"):
        second.ask()


def test_a_second_machine_is_refused_while_a_worker_is_late_to_boot(twin: Twin, ada: User) -> None:
    """JOB-2: it may still say hello, until its end is written."""
    first, second = Bench(twin), Bench(twin, session="z")
    first.ask()
    unit = worker_of(twin, order(twin, ada))
    first.do()
    twin.store.commit([Replace(unit, replace(unit, due=twin.world.now()))])
    fall_silent(twin)
    with pytest.raises(Refused, match="served by another"):
        second.ask()


def test_a_second_machine_need_not_wait_for_a_script_that_has_ended(twin: Twin, ada: User) -> None:
    first, second = Bench(twin), Bench(twin, session="z")
    first.ask()
    order(twin, ada)
    first.do()
    first.report(first.hello())
    fall_silent(twin)
    assert second.do() == "clean"


def test_a_dead_host_lets_go_of_its_job_once(twin: Twin, ada: User) -> None:
    bench = Bench(twin)
    bench.ask()
    job = order(twin, ada)
    bench.ask()
    bench.hello()
    lost = worker_of(twin, job)
    sweep(twin, LEASE)
    for _ in range(4):
        sweep(twin, LEASE)
        advance.advance(twin.on, lost.id)
    assert "\n".join(told(twin, job)).count("nothing runs on bench-7 any more") == 1
    unit = worker_of(twin, job) if worker_of(twin, job).id == lost.id else None
    assert unit
    assert unit.step.reason == "its host has not reported yet that it is clean"
    del twin.store.rows[lease_key(job, 1, 0)]
    sweep(twin, 1000)
    assert states(twin)["bench-7"] == "held"


def test_machines_that_are_made_keep_their_job_until_they_are_gone(ada: User) -> None:
    """JOB-2: what a factory has not destroyed may still run, however long that takes."""
    twin = lab('[factories.hand]\ndriver = "hand"\n[targets.lab]\nfactory = "hand"\nlimit = 1\n')
    twin.drivers.hand.destroy = lambda unit, now: NotYet(7, "it is going down")  # type: ignore[method-assign]
    job = order(twin, ada)
    lost = worker_of(twin, job)
    hello(twin, job)
    sweep(twin, LEASE)
    dirty = worker_of(twin, job)
    assert (dirty.state, dirty.step.reason) == (UnitState.DIRTY, "it is going down")
    assert dirty.step.next_look == twin.world.now() + timedelta(seconds=7)
    for _ in range(4):
        sweep(twin, LEASE)
    assert lease_of(twin, lost) is LeaseState.RELEASING


def test_a_worker_that_is_due_at_no_time_may_be_followed(twin: Twin, ada: User) -> None:
    first = Bench(twin)
    first.ask()
    job = order(twin, ada)
    first.ask()
    first.hello()
    twin.pass_time(LEASE)
    unit = worker_of(twin, job)
    twin.store.commit([Replace(unit, replace(unit, due=None))])
    assert Bench(twin, session="z").do() == "wait"


def test_a_dead_host_whose_job_is_let_go_is_asked_for_later_and_what_others_wrote_of_it_stays(
    twin: Twin, ada: User
) -> None:
    """JOB-2: the lease ends over the row that was read, or not yet; and what was asked last is known at once."""
    bench = Bench(twin)
    bench.ask()
    job = order(twin, ada)
    bench.ask()
    bench.hello()
    lost = worker_of(twin, job)

    def now() -> Unit:
        found = twin.store.get(lost.key, Unit)
        assert found
        return found

    def note() -> None:
        assert twin.store.commit([Replace(now(), add_entry(now(), twin.world.now(), "somebody wrote this"))])

    before_the_next_write_of(twin, Unit, note, when=lambda row: row.lease.is_over)
    while not now().lease.is_over:
        sweep(twin, LEASE)
    assert "somebody wrote this" in [entry.what for entry in now().journal.entries]
    assert now().step.reason == "its host has not reported yet that it is clean"


def test_a_host_that_comes_back_from_another_machine_is_known_by_it(twin: Twin) -> None:
    Bench(twin).ask()
    sweep(twin, LEASE)
    hosts.poll(twin.on, Bench(twin).user, "bench-7", AgentHost("z" * 43, "another"))
    assert host_of(twin).machine == "another"


def test_that_a_host_came_back_is_not_forgotten_when_its_message_is(twin: Twin) -> None:
    """The sweep makes up for it: the pool's row says that a slot is to follow."""
    bench = Bench(twin)
    bench.ask()
    sweep(twin, LEASE)
    assert states(twin)["bench-7"] == "away"
    hosts.poll(twin.on, bench.user, "bench-7", AgentHost("s" * 43, "machine"))
    twin.queues.messages.clear()
    sweep(twin, 61)
    assert states(twin)["bench-7"] == "free"


def test_a_host_does_not_move_if_its_slot_is_made_and_lent_while_it_asks(twin: Twin) -> None:
    """SLOT-1: it moves at once only from a pool that never had its slot, and that is looked at last."""
    hosts.poll(twin.on, Bench(twin).user, "bench-7", AgentHost("s" * 43))
    put(twin, host_of(twin), pool="target/none")
    last = Slot(pool="target/none", name="bench-7", state=SlotState.OFF)
    get = twin.store.get

    def then_is_lent(key: Key, kind: type[Any]) -> Any:
        found = get(key, kind)
        if key == last.key:
            twin.store.get = get  # type: ignore[method-assign]
            lent = replace(last, state=SlotState.HELD)
            assert twin.store.commit([Create(SlotName(pool=last.pool, name=last.name)), Create(lent)])
        return found

    twin.store.get = then_is_lent  # type: ignore[method-assign]
    hosts.poll(twin.on, Bench(twin).user, "bench-7", AgentHost("s" * 43))
    assert twin.store.get == get, "it was lent"
    assert host_of(twin).pool == "target/none"


RACKS = LAB.replace(
    'names = ["bench-7", "bench-8"]',
    'hosts = { bench-7 = { labels = { rack = "3" } }, bench-8 = { labels = { rack = "4", probe = "jtag" } } }',
)


def test_a_job_chooses_its_host_by_labels_or_by_name(ada: User) -> None:
    """Who does not choose takes the one that nobody chooses, and who waits for one host keeps the other from nobody."""
    twin = lab(RACKS)
    seven, eight = Bench(twin, "bench-7"), Bench(twin, "bench-8", "t")
    for bench in (seven, eight):
        assert bench.do() == "wait"
    first = submit(twin, ada, target="lab", host={"labels": "probe && rack != 3"})
    second = submit(twin, ada, target="lab", host={"thing": "bench-8"})
    third = submit(twin, ada, target="lab")
    twin.run()
    assert (worker_of(twin, first).lease.slot, worker_of(twin, third).lease.slot) == ("bench-8", "bench-7")
    said = jobs.explain(twin.on, job_of(twin, second)).summary
    assert "only bench-8 fits name == bench-8" in said, said
    assert eight.run() == first
    assert eight.run() == second
    assert seven.run() == third


def test_a_job_that_waits_for_a_host_that_is_away_is_told_of_that_host_alone(ada: User) -> None:
    twin = lab(RACKS)
    job = submit(twin, ada, target="lab", host={"labels": "rack == 4"})
    twin.run()
    said = jobs.explain(twin.on, job_of(twin, job)).summary
    assert ("bench-8, which was never heard of" in said, "bench-7" in said) == (True, False), said
    bench = Bench(twin, "bench-7")
    assert bench.do() == "wait"
    assert states(twin)["bench-7"] == "free"
    assert Bench(twin, "bench-8", "t").do() in ("wait", "work")
    assert worker_of(twin, job).lease.slot == "bench-8"


REFUSED_HOSTS: list[tuple[str, dict[str, Any], str]] = [
    (
        "lab",
        {"labels": "rack == 5"},
        "no host of lab fits rack == 5: there are bench-7, bench-8; their labels: rack: 3, 4",
    ),
    ("lab", {"thing": "bench-9"}, "no host of lab fits name == bench-9"),
    ("linux", {"thing": "bench-9"}, "linux has no named hosts among which a job could choose: leave `host` out"),
]


@pytest.mark.parametrize(("target", "host", "why"), REFUSED_HOSTS)
def test_a_host_that_there_is_not_is_refused(ada: User, target: str, host: dict[str, Any], why: str) -> None:
    twin = lab(RACKS + '[factories.hand]\ndriver = "hand"\n[targets.linux]\nfactory = "hand"\n')
    with pytest.raises(Refused) as found:
        submit(twin, ada, target=target, host=host)
    assert (found.value.status, found.value.code, found.value.faults[0].where) == (422, "unsatisfiable", "host")
    assert why in found.value.detail
