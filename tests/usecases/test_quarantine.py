"""Units that cannot be put back: kept apart until an operator has seen to them. [UNIT-1] [UNIT-2] [JOB-2]"""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.domain.jobs.jobs import Outcome, PastAttempt, State
from penstock.domain.pools.delays import Cause
from penstock.domain.pools.pools import (
    WORKER,
    HoldTimes,
    Lease,
    LeaseState,
    Pool,
    Slot,
    SlotState,
    collection,
    lease_key,
    pool_key,
)
from penstock.domain.units import quarantine
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import (
    DriverError,
    Misconfigured,
    NoCapacity,
    QuotaReached,
    RateLimited,
    Refused,
    Unknown,
    Unsatisfiable,
)
from penstock.ports import NotYet
from penstock.testing.store import lease_now
from penstock.testing.twin import START, Twin
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.jobs import jobs
from penstock.usecases.site import apply
from penstock.usecases.units import listing, maintenance
from penstock.usecases.units import quarantine as units_quarantine
from penstock.usecases.units.release import enter_quarantine
from tests.usecases.exact import drop, put
from tests.usecases.holds import running, wait
from tests.usecases.races import Died
from tests.usecases.steps import finish, hello, job_of, submit, sweep, told
from tests.usecases.warm import SITE, databases, unit_of, worker_at_rest

ROOT = User(name="root", privileges=("admin",), created=START)
ONE = SITE.replace("limit = 2", "limit = 1")
NEVER = Unsatisfiable("its disk is gone")
DAY = 24 * 3600


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", SITE, "site.toml")
    made.run()
    return made


def quarantined(twin: Twin, ada: User, error: DriverError = NEVER, **ask: object) -> tuple[str, Unit]:
    """A worker whose job has ended, and which its factory says that it can never destroy."""
    job, worker = running(twin, ada, **ask)
    twin.drivers.hand.stuck = error
    finish(twin, job)
    wait(twin, 3600)
    found = unit_of(twin, worker.id)
    assert found.state is UnitState.QUARANTINED
    return job, found


def slots_of(twin: Twin, unit: Unit) -> list[Slot]:
    return [row for row in twin.store.rows.values() if isinstance(row, Slot) and row.unit == unit.id]


def test_what_can_never_be_destroyed_is_kept_apart_with_all_that_it_takes(twin: Twin, ada: User) -> None:
    """UNIT-1: it exists, so it is in the ledger: as quarantined, since when and why; what it takes stays taken."""
    job, worker = quarantined(twin, ada)
    assert worker.step.reason == "tried 3 times to destroy it: Unsatisfiable: its disk is gone"
    assert worker.due
    assert timedelta(hours=23) < worker.due - twin.world.now() <= timedelta(days=1)
    held = [(slot.pool, slot.state, slot.job, slot.count) for slot in slots_of(twin, worker)]
    assert sorted(held) == [("quota/vcpus", SlotState.HELD, None, 4), ("target/other", SlotState.HELD, None, 1)]
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
    assert any("is quarantined, until an operator has seen to it" in line for line in told(twin, job))


@pytest.mark.parametrize(
    ("error", "after"), [(NEVER, 3), (Misconfigured("no such key"), 20)], ids=lambda each: type(each).__name__
)
def test_so_many_failures_are_enough(twin: Twin, ada: User, error: DriverError, after: int) -> None:
    job, worker = running(twin, ada)
    twin.drivers.hand.stuck = error
    finish(twin, job)
    for failures in range(1, after):
        found = unit_of(twin, worker.id)
        assert (found.state, found.health.stuck) == (UnitState.DIRTY, failures)
        assert found.due
        twin.pass_time((found.due - twin.world.now()).total_seconds())
        twin.run()
    assert unit_of(twin, worker.id).state is UnitState.QUARANTINED


PASSING = [RateLimited(), QuotaReached(), NoCapacity(), Unknown(), DriverError("?"), NotYet(30, "shutting down")]


@pytest.mark.parametrize("said", PASSING, ids=lambda each: type(each).__name__)
def test_waiting_for_a_cloud_that_is_down_for_days_is_right(twin: Twin, ada: User, said: DriverError | NotYet) -> None:
    """UNIT-1: what time mends is waited for, however long that takes."""
    job, worker = running(twin, ada)
    twin.drivers.hand.stuck = said
    finish(twin, job)
    wait(twin, 3 * DAY, each=3601)
    assert unit_of(twin, worker.id).state is UnitState.DIRTY
    twin.drivers.hand.stuck = None
    wait(twin, 1300)
    assert unit_of(twin, worker.id).state is UnitState.GONE


def test_nothing_touches_it_but_a_reminder_each_day(twin: Twin, ada: User) -> None:
    _, worker = quarantined(twin, ada)
    twin.drivers.hand.stuck = None
    wait(twin, 4.5 * DAY, each=3601)
    found = unit_of(twin, worker.id)
    assert (found.state, found.health.reminders, worker.id in twin.drivers.hand.made) == (
        UnitState.QUARANTINED,
        4,
        True,
    )
    notes = [entry.what for _, entry in found.journal.after(0) if entry.what.startswith("still")]
    assert len(notes) == 3, "the first, the second and the fourth"
    assert found.due
    assert found.due > twin.world.now()


def test_a_hint_before_the_reminder_is_due_changes_nothing(twin: Twin, ada: User) -> None:
    _, worker = quarantined(twin, ada)
    twin.queues.advance(worker.id, is_worker=True)
    twin.run()
    assert unit_of(twin, worker.id) == worker


def test_what_was_released_is_destroyed_and_its_tries_are_counted_anew(twin: Twin, ada: User) -> None:
    _, worker = quarantined(twin, ada)
    maintenance.release(twin.on, ROOT, worker.is_a, worker.id)
    twin.run()
    found = unit_of(twin, worker.id)
    assert (found.state, found.health.stuck, found.health.reminders) == (UnitState.DIRTY, 1, 0)
    twin.drivers.hand.stuck = None
    wait(twin, 100)
    assert unit_of(twin, worker.id).state is UnitState.GONE
    assert slots_of(twin, worker) == []


def test_what_is_not_mended_is_quarantined_again(twin: Twin, ada: User) -> None:
    _, worker = quarantined(twin, ada)
    maintenance.release(twin.on, ROOT, worker.is_a, worker.id)
    wait(twin, 1300)
    assert unit_of(twin, worker.id).state is UnitState.QUARANTINED
    assert sorted(slot.pool for slot in slots_of(twin, worker)) == ["quota/vcpus", "target/other"]


def test_what_is_recycled_is_destroyed_once_more(twin: Twin, ada: User) -> None:
    _, worker = quarantined(twin, ada)
    twin.drivers.hand.stuck = None
    maintenance.recycle(twin.on, ROOT, worker.is_a, worker.id, "try again")
    twin.run()
    assert unit_of(twin, worker.id).state is UnitState.GONE
    assert "recycled by root: try again; it is to be destroyed" in [
        entry.what for _, entry in unit_of(twin, worker.id).journal.after(0)
    ]


def test_what_an_operator_removed_by_hand_is_gone_with_their_word_as_the_proof(twin: Twin, ada: User) -> None:
    """UNIT-2: the slot is free only with the record: who, when, and what was checked."""
    job, worker = quarantined(twin, ada)
    now = twin.world.now()
    gone = units_quarantine.confirm_removed(
        twin.on, ROOT, worker.is_a, worker.id, "pulled the plug; the disk is shredded"
    )
    twin.run()
    assert (gone.state, gone.cleaning.proof and gone.cleaning.proof.by) == (UnitState.GONE, "the operator root")
    assert gone.cleaning.proof
    assert (gone.cleaning.proof.checked, gone.cleaning.proof.time) == ("pulled the plug; the disk is shredded", now)
    assert unit_of(twin, worker.id).state is UnitState.GONE
    assert slots_of(twin, worker) == []
    assert twin.store.get(pool_key("quota/vcpus"), Pool).used == 0  # type: ignore[union-attr]
    assert "removed by root" in told(twin, job)[-1]


@pytest.mark.parametrize("proof", ["", "   ", "two\nlines", "x" * 301])
def test_a_proof_says_something(twin: Twin, ada: User, proof: str) -> None:
    _, worker = quarantined(twin, ada)
    with pytest.raises(Refused, match="reason") as told:
        units_quarantine.confirm_removed(twin.on, ROOT, worker.is_a, worker.id, proof)
    assert told.value.status == 400


def test_a_release_does_not_free_a_unit_outside_of_quarantine(twin: Twin, ada: User) -> None:
    """UNIT-2: what its driver can destroy, it destroys."""
    _, worker = running(twin, ada)
    with pytest.raises(Refused) as told:
        units_quarantine.confirm_removed(twin.on, ROOT, worker.is_a, worker.id, "it is gone, I swear")
    assert (told.value.status, told.value.code) == (409, "not-quarantined")
    assert unit_of(twin, worker.id).state is UnitState.READY


def test_what_is_in_quarantine_need_not_be_held_and_is_lent_to_nobody(twin: Twin, ada: User) -> None:
    _, worker = quarantined(twin, ada)
    with pytest.raises(Refused) as refused:
        maintenance.hold(twin.on, ROOT, worker.is_a, worker.id, "looking", 60)
    assert (refused.value.status, refused.value.code) == (409, "quarantined")
    assert maintenance.drain(twin.on, ROOT, worker.is_a, worker.id, "").version == worker.version
    assert unit_of(twin, worker.id) == worker


def test_a_held_unit_is_not_quarantined(twin: Twin, ada: User) -> None:
    """UNIT-3: a hold beats this as well, for its unit takes no step."""
    job, worker = running(twin, ada)
    maintenance.hold(twin.on, ROOT, worker.is_a, worker.id, "looking", 2 * 3600)
    twin.drivers.hand.stuck = NEVER
    finish(twin, job)
    wait(twin, 3600)
    assert (unit_of(twin, worker.id).state, unit_of(twin, worker.id).health.stuck) == (UnitState.DIRTY, 0)
    wait(twin, 2 * 3600)
    assert unit_of(twin, worker.id).state is UnitState.QUARANTINED


def test_the_resources_of_its_attempt_are_put_back_when_its_script_has_ended(twin: Twin, ada: User) -> None:
    job, worker = quarantined(twin, ada, resources=["db"])
    assert databases(twin)[0].state is UnitState.GONE, "it was kept, and was idle for too long"
    assert released(twin, job, 1)
    assert unit_of(twin, worker.id).state is UnitState.QUARANTINED


def released(twin: Twin, job: str, attempt: int) -> bool:
    lease = twin.store.get(lease_key(job, attempt, WORKER), Lease)
    return lease is not None and lease_now(twin.store.rows, lease).state is LeaseState.RELEASED


def test_while_its_script_may_run_the_next_attempt_waits_and_is_told_for_what(twin: Twin, ada: User) -> None:
    """JOB-2: a lost machine that cannot be destroyed may still run. Its operator knows when it does not."""
    job, worker = running(twin, ada, resources=["db"])
    twin.drivers.hand.stuck = NEVER
    wait(twin, 3600)
    assert unit_of(twin, worker.id).state is UnitState.QUARANTINED
    assert (job_of(twin, job).state, job_of(twin, job).attempt) == (State.QUEUED, 2)
    assert not released(twin, job, 1)
    assert databases(twin)[0].state is UnitState.CLEANING, "the script may use it"
    found = jobs.explain(twin.on, job_of(twin, job))
    assert f"worker {worker.id} is quarantined since" in found.summary
    assert found.next_steps == f"an operator releases, recycles or removes worker {worker.id}"
    twin.drivers.hand.stuck = None
    units_quarantine.confirm_removed(twin.on, ROOT, worker.is_a, worker.id, "switched it off")
    twin.run()
    sweep(twin)
    assert databases(twin)[0].state is not UnitState.CLEANING
    hello(twin, job)
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("what", ["being destroyed", "no lease", "under way"])
def test_nothing_else_is_told_to_be_in_quarantine(twin: Twin, ada: User, what: str) -> None:
    job, worker = running(twin, ada)
    past = (PastAttempt(1, "lost", "its machine vanished"),)
    state = State.ACQUIRING if what == "under way" else State.QUEUED
    put(twin, job_of(twin, job), state=state, attempt=2, attempts=past)
    put(twin, worker, state=UnitState.DIRTY if what == "being destroyed" else UnitState.QUARANTINED)
    lease = twin.store.get(lease_key(job, 1, WORKER), Lease)
    if lease and what == "no lease":
        drop(twin, lease)
    assert "quarantined" not in jobs.explain(twin.on, job_of(twin, job)).summary
    kept = jobs._kept_worker(twin.on, job_of(twin, job))
    assert (kept and kept.cause) == (Cause.CLEANING if what == "being destroyed" else None)


def test_who_waits_behind_it_is_told_which_it_is_since_when_why_and_what_helps(ada: User) -> None:
    twin = Twin()
    apply.apply(twin.on, "admin", ONE, "site.toml")
    twin.run()
    _, worker = quarantined(twin, ada)
    job = submit(twin, ada, target="other")
    twin.run()
    found = jobs.explain(twin.on, job_of(twin, job))
    since = worker.since.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")
    said = f"worker {worker.id} is quarantined since {since}: {worker.step.reason}"
    assert found.blocked_on
    assert {each.delay.says for each in found.blocked_on.kept} == {said}
    assert said in found.summary
    assert found.next_steps == f"an operator releases, recycles or removes worker {worker.id}"
    assert found.expected_start is None


def test_a_quarantined_unit_is_never_evicted_and_others_are_evicted_instead(twin: Twin, ada: User) -> None:
    """QUEUE-1: an idle worker that cannot be destroyed is nothing to wait for: another makes room."""
    first = worker_at_rest(twin, ada)
    maintenance.drain(twin.on, ROOT, UnitKind.WORKER, first.worker, "old")
    twin.drivers.hand.stuck = NEVER
    wait(twin, 3600)
    kept = unit_of(twin, first.worker)
    assert kept.state is UnitState.QUARANTINED
    assert {slot.state for slot in slots_of(twin, kept)} == {SlotState.HELD}
    assert not any(slot.leaving for slot in slots_of(twin, kept))
    twin.drivers.hand.stuck = None
    second = worker_at_rest(twin, ada)
    job = submit(twin, ada, target="other")
    twin.run()
    assert unit_of(twin, second.worker).state is UnitState.GONE
    hello(twin, job)
    assert job_of(twin, job).state is State.RUNNING


def test_how_long_it_was_kept_apart_is_not_how_long_jobs_hold(twin: Twin, ada: User) -> None:
    _, worker = quarantined(twin, ada)
    wait(twin, DAY)
    units_quarantine.confirm_removed(twin.on, ROOT, worker.is_a, worker.id, "gone")
    assert twin.store.get(HoldTimes(pool="target/other").key, HoldTimes) is None


def test_the_sweep_asks_nobody_but_knows_it(twin: Twin, ada: User) -> None:
    """UNIT-1: it is listed, and in the rows: it is neither a stray nor lost, whatever is compared."""
    _, worker = quarantined(twin, ada)
    twin.drivers.hand.stuck = None
    for _ in range(10):
        twin.pass_time(601)
        done = usecases_sweep.sweep(twin.on)
        twin.run()
        assert (done.strays, done.lost) == (0, 0)
    assert [unit.id for unit in listing.quarantined(twin.on, UnitKind.WORKER, "hand")] == [worker.id]
    assert listing.quarantined(twin.on, UnitKind.WORKER, "another") == []
    assert listing.quarantined(twin.on, UnitKind.RESOURCE, "hand") == []


def test_a_resource_is_quarantined_too(twin: Twin, ada: User) -> None:
    apply.apply(twin.on, "admin", SITE.replace("warm = { max = 2 }", ""), "site.toml")
    job, _ = running(twin, ada, resources=["db"])
    twin.drivers.basin.stuck = NEVER
    finish(twin, job)
    wait(twin, 1300)
    (database,) = [row for row in twin.store.rows.values() if isinstance(row, Unit) and row.lease.order == 1]
    assert database.state is UnitState.QUARANTINED
    assert listing.quarantined(twin.on, UnitKind.RESOURCE, "spring") == [database]
    assert len(twin.store.find(collection("resource/db"), "held#", Slot)) == 1


def test_who_moved_first_knows_more(twin: Twin, ada: User) -> None:
    """UNIT-3: a unit that was moved since it was read is looked at anew."""
    _, worker = quarantined(twin, ada)
    before = unit_of(twin, worker.id)
    maintenance.release(twin.on, ROOT, worker.is_a, worker.id)
    stale = quarantine.release(before, "", twin.world.now())
    enter_quarantine(twin.on, stale, "late")
    assert unit_of(twin, worker.id).state is UnitState.DIRTY


def test_a_handler_that_died_while_it_let_a_machine_go_is_followed_at_once(twin: Twin, ada: User) -> None:
    """Its factory knows the machine by its worker, not by its name alone: a late call meets nobody else's lease."""
    twin.drivers.quarantining = True
    job, worker = running(twin, ada)
    twin.drivers.hand.stuck = Died()
    with pytest.raises(Died):
        finish(twin, job)
    twin.drivers.hand.stuck = None
    twin.take("factory", {"unit": worker.id})
    assert unit_of(twin, worker.id).state is UnitState.GONE
