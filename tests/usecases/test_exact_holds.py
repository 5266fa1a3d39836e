"""What is held, warm, recycled or put back: each condition of its steps is asked for by rows. [UNIT-3] [UNIT-2]"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from penstock.domain.pools.grants import Allocator, Stock
from penstock.domain.pools.pools import Claim, LeaseState, Pool, Warm, pool_key
from penstock.domain.site.site import Limits
from penstock.domain.units.retries import BACK_OFF, BACK_OFF_MOST
from penstock.domain.units.units import STEP_WITHIN, CleanProof, Drain, Hold, Unit, UnitKind, UnitState, unit_key
from penstock.domain.users.users import User
from penstock.kernel.errors import DriverError, RateLimited, Refused
from penstock.kernel.rows import Row
from penstock.ports import NotYet
from penstock.testing.twin import START, Twin
from penstock.usecases import cooldowns
from penstock.usecases.jobs.flow import slots_of, turn_pause
from penstock.usecases.pools import scheduler
from penstock.usecases.site import apply
from penstock.usecases.units import advance, maintenance, release, reuse
from penstock.usecases.units.driver_calls import lock
from penstock.usecases.workers import agents
from tests.domain.helpers import claim, lease, pool, unit
from tests.usecases.exact import commits, drop, pool_row, put, running, sent, unit_of
from tests.usecases.steps import job_of, live, submit, worker_of
from tests.usecases.warm import SITE, Agent, databases, slots, worker_at_rest

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
DB = "resource/db"
PROOF = CleanProof(by="spring", time=START, checked="it")
UNIT = unit(
    id="r-1", is_a=UnitKind.RESOURCE, maker="spring", state=UnitState.CLEANING, is_kept=True, order=1, pool=DB,
    since=START, due=START,
)  # fmt: skip
WORKER = replace(
    UNIT, is_a=UnitKind.WORKER, lease=replace(UNIT.lease, order=0), session=replace(UNIT.session, past_hash="hash")
)


def hold_of(until: datetime) -> Hold:
    return Hold("root", "looking", START, until)


HELD = hold_of(START + HOUR)


@pytest.fixture
def warm_twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", SITE, "site.toml")
    made.run()
    return made


def there(twin: Twin, row: Row) -> None:
    """A row that no use case has written."""
    twin.store.rows[row.key] = replace(row, version=1)


def row_of(twin: Twin, unit_id: str = "r-1") -> Unit:
    found = twin.store.get(unit_key(unit_id), Unit)
    assert found
    return found


UNFIT: dict[str, Callable[[Twin, Unit], None]] = {
    "gone": lambda twin, unit: drop(twin, unit),
    "held": lambda twin, unit: put(twin, unit, hold=hold_of(twin.world.now() + HOUR)),
    "dirty": lambda twin, unit: put(twin, unit, state=UnitState.DIRTY),
    "lent": lambda twin, unit: put(twin, unit, state=UnitState.CREATING),
}


@pytest.mark.usefixtures("by_flow")
@pytest.mark.parametrize("how", ["as it was", *UNFIT])
def test_a_warm_unit_is_lent_only_if_it_is_idle_and_not_held(warm_twin: Twin, ada: User, how: str) -> None:
    """UNIT-3: its slot may have been read as free before it was held, retired or lent. It takes nothing besides."""
    apply.apply(warm_twin.on, "admin", SITE.replace("uses = { vcpus = 4 }\n", ""), "site.toml")
    warm_twin.run()
    agent = worker_at_rest(warm_twin, ada)
    (slot,) = slots(warm_twin, "target/linux", "free#warm#")
    pool = warm_twin.store.get(pool_key(slot.pool), Pool)
    assert pool
    job = job_of(warm_twin, submit(warm_twin, ada, target="linux"))
    if how in UNFIT:
        UNFIT[how](warm_twin, row_of(warm_twin, agent.worker))
    hand, mine = (
        Allocator({slot.pool: Stock(pool, ())}),
        Claim(**vars(claim(job.id, pool=slot.pool, step=0, pools=(slot.pool,)))),
    )
    lent = scheduler._assign_warm(warm_twin.on, hand, mine, slot, job.request.needs[-1])
    assert (lent is None, hand.changes() == []) == (how in UNFIT, how in UNFIT)


def test_who_comes_after_a_unit_that_is_held_looks_again_when_that_ends_or_after_ten_minutes(twin: Twin) -> None:
    """UNIT-2, UNIT-3: nobody looks every minute at what stands for hours, nor hours after it was released."""
    there(twin, lease(0, LeaseState.RELEASING, pool="target/linux", unit="w-1"))
    now = twin.world.now()
    assert turn_pause(twin.on, UNIT) == STEP_WITHIN  # also if its row is not there
    for hold, pause in [
        (None, STEP_WITHIN),
        (now + HOUR, BACK_OFF_MOST),
        (now + BACK_OFF_MOST - SECOND, BACK_OFF_MOST - SECOND),
        (now + SECOND, STEP_WITHIN),
        (START, STEP_WITHIN),
    ]:
        there(twin, unit(id="w-1", state=UnitState.DIRTY, hold=hold and hold_of(hold)))
        assert turn_pause(twin.on, UNIT) == pause
    there(twin, lease(0, LeaseState.RELEASED, pool="target/linux", unit="w-1"))
    assert turn_pause(twin.on, UNIT) is None


def test_who_had_its_turn_waits_for_no_other_unit_of_its_last_job(twin: Twin) -> None:
    """QUEUE-1: its lease is over, and nobody would wake it when the other is put back."""
    there(twin, lease(0, LeaseState.RELEASING, pool="target/linux", unit="w-1"))
    there(twin, unit(id="w-1", state=UnitState.DIRTY, hold=hold_of(twin.world.now() + HOUR)))
    assert turn_pause(twin.on, UNIT) == BACK_OFF_MOST
    assert turn_pause(twin.on, replace(UNIT, lease=replace(UNIT.lease, is_over=True))) is None


@pytest.mark.usefixtures("by_flow")
def test_an_idle_worker_makes_room_while_a_resource_of_its_last_job_is_held(ada: User) -> None:
    """QUEUE-1: the worker was released before the resource, and stayed for the next job."""
    twin = Twin()
    apply.apply(twin.on, "admin", SITE.replace("amount = 8", "amount = 4"), "site.toml")
    twin.run()
    job = submit(twin, ada, target="linux", resources=["db"])
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    assert agent.hello().job == job
    (db,) = databases(twin)
    root = User(name="root", privileges=("admin",), created=START)
    maintenance.hold(twin.on, root, db.is_a, db.id, "looking", 7 * 24 * 3600)
    agent.finish(job)
    assert agent.hello().idle
    second = submit(twin, ada, target="other")
    twin.run()
    assert row_of(twin, agent.worker).state is UnitState.GONE
    assert row_of(twin, db.id).hold
    assert live(twin, second)


def test_a_held_worker_that_says_it_is_clean_is_to_ask_again_and_not_kept(twin: Twin) -> None:
    there(twin, replace(WORKER, hold=hold_of(twin.world.now() + HOUR)))
    written = commits(twin)
    assert agents.wait_for_job(twin.on, "r-1", "hash", "all of it", Limits())
    assert not written
    assert row_of(twin).state is UnitState.CLEANING


@pytest.mark.parametrize(("seconds", "said"), [(90, 90), (0, None), (-90, None)])
def test_an_agent_is_told_of_a_hold_that_stands(twin: Twin, seconds: int, said: int | None) -> None:
    held = replace(WORKER, hold=hold_of(twin.world.now() + seconds * SECOND))
    assert agents.held_seconds(twin.on, held) == said
    assert agents.held_seconds(twin.on, replace(WORKER, hold=None)) is None
    assert agents.held_seconds(twin.on, None) is None


def test_the_agent_of_a_held_machine_asks_as_seldom_as_it_beats(warm_twin: Twin, ada: User) -> None:
    agent = worker_at_rest(warm_twin, ada)
    assert agent.hello().bell
    put(warm_twin, row_of(warm_twin, agent.worker), hold=hold_of(warm_twin.world.now() + HOUR))
    said = agent.hello()
    assert (said.seconds, said.bell) == (Limits().heartbeat, None)


def test_a_worker_that_is_held_is_due_when_its_hold_ends_however_often_its_agent_asks(
    warm_twin: Twin, ada: User
) -> None:
    """UNIT-3: also a hold that ends before half a lease is over."""
    agent = worker_at_rest(warm_twin, ada)
    maintenance.hold(warm_twin.on, User(name="root", created=START), UnitKind.WORKER, agent.worker, "looking", 10)
    held = row_of(warm_twin, agent.worker)
    warm_twin.pass_time(5)
    assert agents.idle_renewal(warm_twin.on, held, timedelta(seconds=Limits().lease)) == []
    assert agent.hello().held_seconds == 5
    assert row_of(warm_twin, agent.worker) == held


def test_what_was_held_meanwhile_is_not_kept_though_it_is_clean(twin: Twin) -> None:
    there(twin, pool(name=DB, warm=Warm()))
    there(twin, replace(UNIT, hold=hold_of(twin.world.now() + HOUR)))
    written = commits(twin)
    assert reuse.unit_cleaned(twin.on, "r-1", PROOF, timedelta(0)) is None
    assert written == [] or written == [[]]
    assert (row_of(twin).state, row_of(twin).version) == (UnitState.CLEANING, 1)


@pytest.mark.parametrize("site", [None, pool(name=DB), pool(name=DB, warm=Warm(), over=True)])
def test_the_journal_says_why_a_clean_unit_is_not_kept(twin: Twin, site: Row | None) -> None:
    if site:
        there(twin, site)
    there(twin, UNIT)
    kept = reuse.unit_cleaned(twin.on, "r-1", PROOF, timedelta(0))
    assert kept
    assert (kept.state, kept.step.reason) == (UnitState.DIRTY, "its slot was withdrawn")


def test_a_unit_that_is_cleaned_has_begun_and_one_that_is_made_has_not(twin: Twin) -> None:
    """UNIT-3: from when its well cleans it, it is too late to hold it."""
    for is_to_clean, begun in ((True, twin.world.now()), (False, None)):
        there(twin, UNIT)
        alone = lock(twin.on, row_of(twin), is_to_clean=is_to_clean)
        assert alone
        assert (alone.cleaning.begun, row_of(twin).cleaning.begun) == (begun, begun)


def test_a_unit_that_vanished_after_the_write_has_no_owner(twin: Twin) -> None:
    there(twin, UNIT)
    was, commit = row_of(twin), twin.store.commit

    def then_drops(changes: Any) -> bool:
        done = commit(changes)
        drop(twin, was)
        return done

    twin.store.commit = then_drops  # type: ignore[method-assign]
    assert lock(twin.on, was) is None


def test_a_unit_that_moved_before_the_write_is_left_as_it_is(twin: Twin) -> None:
    """UNIT-3: who holds it meanwhile still does."""
    there(twin, UNIT)
    was = row_of(twin)
    put(twin, was, hold=HELD)
    held = row_of(twin)
    assert lock(twin.on, was) is None
    assert row_of(twin) == held


def test_a_unit_that_is_recycled_has_its_attempt_ended_by_its_next_step(twin: Twin, ada: User) -> None:
    """JOB-1: also when who asked for it died after the write."""
    job = running(twin, ada)
    put(twin, worker_of(twin, job), drain=Drain("root", "", START, at_once=True))
    advance.advance(twin.on, worker_of(twin, job).id)
    (past,) = job_of(twin, job).history.attempts
    assert past.outcome == "lost"
    assert "recycled by root" in past.reason


def test_a_kept_worker_is_made_without_a_write_before_the_call(warm_twin: Twin, ada: User) -> None:
    """Only a well is called by one handler at a time: a factory's call may be repeated."""
    warm_twin.drivers.hand.says = [NotYet(5)]
    job = submit(warm_twin, ada, target="linux")
    warm_twin.run()
    worker = worker_of(warm_twin, job)
    assert worker.cleaning.is_kept
    assert worker.creation.made is None
    advance.advance(warm_twin.on, worker.id)
    made = worker_of(warm_twin, job)
    assert made.creation.made
    assert (made.step.busy, made.version) == (None, worker.version + 1)


def dirty(twin: Twin, ada: User, begun: datetime | None) -> Unit:
    """A bench whose turn it is to be put back."""
    job = running(twin, ada, resources=["bench"])
    found = unit_of(twin, job, 1)
    put(twin, found, state=UnitState.DIRTY, begun=begun, next_look=None)
    sent(twin)
    return unit_of(twin, job, 1)


@pytest.mark.parametrize(("begun", "noted"), [(None, 1), (START, 0)])
def test_what_has_begun_is_destroyed_without_another_write(
    twin: Twin, ada: User, begun: datetime | None, noted: int
) -> None:
    was = dirty(twin, ada, begun)
    twin.drivers.makes_nothing = lambda driver: False  # type: ignore[method-assign]
    advance.advance(twin.on, was.id)
    assert row_of(twin, was.id).state is UnitState.GONE
    assert row_of(twin, was.id).version == was.version + noted + 1


@pytest.mark.parametrize(
    ("error", "after"),
    [(RateLimited("slow down", 200), 200), (DriverError("it is away"), BACK_OFF.seconds)],
)
def test_destroy_is_repeated_when_the_provider_allows_it(twin: Twin, ada: User, error: DriverError, after: int) -> None:
    was = dirty(twin, ada, START)

    class Well:
        def destroy(self, unit: str, now: datetime) -> CleanProof:
            raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.drivers, "well", lambda *given: Well())
        advance.advance(twin.on, was.id)
    assert row_of(twin, was.id).due == twin.world.now() + after * SECOND
    assert row_of(twin, was.id).state is UnitState.DIRTY


@pytest.mark.parametrize(("is_a", "queue"), [(UnitKind.WORKER, "factory"), (UnitKind.RESOURCE, "well")])
def test_who_lost_the_race_to_begin_asks_its_own_maker_anew(twin: Twin, is_a: UnitKind, queue: str) -> None:
    twin.store.commit = lambda changes: False  # type: ignore[method-assign]
    dirty = unit(id="x-1", is_a=is_a, state=UnitState.DIRTY)
    assert release._record_destroy(twin.on, dirty) is None
    assert [message[1:] for message in twin.queues.messages][-1] == (queue, {"unit": "x-1"})


def test_who_holds_or_recycles_says_why_in_one_line(warm_twin: Twin, ada: User) -> None:
    agent, root = worker_at_rest(warm_twin, ada), User(name="root", created=START)
    for reason, said in [(" ", "must say why"), ("two\nlines", "one line")]:
        with pytest.raises(Refused, match=said):
            maintenance.hold(warm_twin.on, root, UnitKind.WORKER, agent.worker, reason, 10)
    with pytest.raises(Refused, match="a hold is for"):
        maintenance.hold(warm_twin.on, root, UnitKind.WORKER, agent.worker, "looking", 0)
    with pytest.raises(Refused, match="one line"):
        maintenance.recycle(warm_twin.on, root, UnitKind.WORKER, agent.worker, "two\nlines")
    assert row_of(warm_twin, agent.worker).state is UnitState.IDLE
    maintenance.hold(warm_twin.on, root, UnitKind.WORKER, agent.worker, "looking", 1)
    maintenance.release(warm_twin.on, root, UnitKind.WORKER, agent.worker)
    maintenance.recycle(warm_twin.on, root, UnitKind.WORKER, agent.worker, "")
    assert row_of(warm_twin, agent.worker).state is UnitState.DIRTY


def held_at_rest(twin: Twin, ada: User) -> str:
    """An idle worker that root holds."""
    worker = worker_at_rest(twin, ada).worker
    maintenance.hold(twin.on, User(name="root", created=START), UnitKind.WORKER, worker, "looking", 60)
    return worker


def test_a_unit_that_is_released_and_not_kept_has_no_slot_that_is_granted(warm_twin: Twin, ada: User) -> None:
    worker = held_at_rest(warm_twin, ada)
    put(warm_twin, pool_row(warm_twin, "target/linux"), warm=None)
    maintenance.release(warm_twin.on, User(name="root", created=START), UnitKind.WORKER, worker)
    found = slots_of(warm_twin.on, row_of(warm_twin, worker))
    assert found
    assert all(slot.leaving for slot in found)


def test_a_unit_is_not_kept_by_a_pool_that_changes_while_it_is_released(
    warm_twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SLOT-1: the pool is written too, so that one of the two commits sees the other."""
    worker = held_at_rest(warm_twin, ada)
    look = reuse.why_not_kept

    def then_changes(*given: Any) -> str | None:
        said = look(*given)
        put(warm_twin, pool_row(warm_twin, "target/linux"), warm=None)
        monkeypatch.setattr(reuse, "why_not_kept", look)
        return said

    monkeypatch.setattr(reuse, "why_not_kept", then_changes)
    maintenance.release(warm_twin.on, User(name="root", created=START), UnitKind.WORKER, worker)
    assert row_of(warm_twin, worker).state is UnitState.DIRTY


def test_a_unit_that_is_written_just_after_it_was_locked_is_unlocked(twin: Twin) -> None:
    """UNIT-3: its lease may be over; whoever looks next does not wait for a call that nobody makes."""
    there(twin, UNIT)
    was, commit = row_of(twin), twin.store.commit

    def then_writes(changes: Any) -> bool:
        done = commit(changes)
        twin.store.commit = commit  # type: ignore[method-assign]
        put(twin, row_of(twin), reason="somebody else was here")
        return done

    twin.store.commit = then_writes  # type: ignore[method-assign]
    assert lock(twin.on, was) is None
    assert row_of(twin).step.busy is None


class Cleaner:
    """A well that cleans, or says why not."""

    def __init__(self, said: DriverError | NotYet) -> None:
        self.said = said

    def create(self, order: Any) -> NotYet:
        return NotYet(5)

    def clean(self, unit: str, now: datetime) -> NotYet:
        if isinstance(self.said, NotYet):
            return self.said
        raise self.said

    def destroy(self, unit: str, now: datetime) -> NotYet:
        return NotYet(5)

    def list(self) -> list[str]:
        return []


@pytest.mark.parametrize(("said", "failures"), [(DriverError("it is away"), 1), (NotYet(70, "it dries"), 0)])
def test_a_unit_that_cannot_be_cleaned_yet_is_cleaned_when_its_well_said(
    warm_twin: Twin, monkeypatch: pytest.MonkeyPatch, said: DriverError | NotYet, failures: int
) -> None:
    """UNIT-3: from when its well cleans it, it is too late to hold it, also if that takes several calls."""
    there(warm_twin, UNIT)
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(warm_twin.drivers, "well", lambda *given: Cleaner(said))
    monkeypatch.setattr(warm_twin.queues, "advance", lambda unit, **how: asked.append(how))
    reuse.clean(warm_twin.on, row_of(warm_twin))
    assert row_of(warm_twin).cleaning.begun == warm_twin.world.now()
    due = row_of(warm_twin).due
    assert due
    after = int((due - warm_twin.world.now()).total_seconds())
    assert asked == [{"is_worker": False, "after": after, "maker": "spring"}]
    assert after > 1
    assert len(cooldowns.failures(warm_twin.on, "well/spring")) == failures
