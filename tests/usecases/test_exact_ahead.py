"""What moves between a look and the commit that follows it, where units are made ahead of need. [SLOT-1] [UNIT-3]"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.pools.pools import Pool, SlotState, Warm, move, pool_key
from penstock.domain.site.site import SITE_KEY, SiteText
from penstock.domain.units import prewarm as domain_prewarm
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Replace
from penstock.testing.twin import Twin
from penstock.usecases.pools import scheduler
from penstock.usecases.site import apply
from penstock.usecases.units import advance, drivers, maintenance, prewarm, release, retire
from tests.rows import changed
from tests.usecases.prewarmed import (
    ALIKE,
    DB,
    LINUX,
    MADE,
    NONE,
    SITE,
    a_twin,
    at_rest,
    change_pool,
    existing,
    only,
    pool_of,
)
from tests.usecases.quotas import used
from tests.usecases.races import before_the_next_commit, before_the_next_read
from tests.usecases.steps import submit
from tests.usecases.warm import Agent, slots, unit_of, worker_at_rest


@pytest.fixture
def twin() -> Twin:
    return a_twin()


def wanting(site: str = NONE, name: str = LINUX) -> Twin:
    """A site that wants one more, and nobody has looked yet."""
    twin = a_twin(site)
    change_pool(twin, name, warm=Warm(least=1))
    return twin


def change_unit(twin: Twin, unit: Unit, **given: object) -> Unit:
    row = unit_of(twin, unit.id)
    assert twin.store.commit([Replace(row, changed(row, **given))])  # type: ignore[arg-type]
    return unit_of(twin, unit.id)


def test_an_amount_that_is_taken_meanwhile_is_not_used_twice(ada: User) -> None:
    """SLOT-1."""
    twin = wanting(NONE.replace("amount = 8", "amount = 4"))

    def granted() -> None:
        submit(twin, ada, target="other")
        twin.run()

    before_the_next_commit(twin, granted)
    prewarm.fill(twin.on, LINUX)
    assert used(twin, "quota/vcpus") == 4
    assert [unit.lease.leases for unit in existing(twin)] == [1]


@pytest.mark.parametrize(("name", "queue"), [(LINUX, "factory"), ("resource/db", "well")])
def test_whoever_makes_it_is_asked_to(name: str, queue: str) -> None:
    twin = wanting(name=name)
    prewarm.fill(twin.on, name)
    assert [(message[1], message[2]) for message in twin.queues.messages] == [(queue, {"unit": only(twin).id})]


def test_nothing_is_made_for_a_pool_that_is_none_or_of_one(ada: User) -> None:
    twin = wanting()
    prewarm.fill(twin.on, "target/none")
    del twin.store.rows[pool_key("quota/vcpus")]
    prewarm.fill(twin.on, LINUX)
    assert existing(twin) == []


@pytest.mark.parametrize("linux", ["", '[targets.linux]\nredirect = "other"\n'])
def test_a_site_that_was_changed_a_moment_ago_is_the_one_that_counts(twin: Twin, linux: str) -> None:
    """Its pools are brought to it after it is written."""
    agent = at_rest(twin)
    before, after = SITE.index("[targets.linux]"), SITE.index("[targets.other]")
    row = twin.store.get(SITE_KEY, SiteText)
    assert row
    assert twin.store.commit([Replace(row, replace(row, toml=SITE[:before] + linux + SITE[after:]))])
    change_pool(twin, LINUX, warm=Warm(least=2, idle=600))
    prewarm.fill(twin.on, LINUX)
    assert only(twin).id == agent.worker
    twin.pass_time(600)
    unit = change_unit(twin, only(twin), until=twin.world.now())
    prewarm.idle_ended(twin.on, unit)
    assert unit_of(twin, unit.id).state is UnitState.DIRTY


def test_a_unit_of_another_maker_does_not_stay(twin: Twin) -> None:
    """The site was written a moment ago, and its pools are as they were."""
    unit = unit_of(twin, at_rest(twin).worker)
    assert prewarm._stay_changes(twin.on, unit.id)[1]
    row = twin.store.get(SITE_KEY, SiteText)
    assert row
    other = SITE.replace('linux]\nfactory = "hand"', 'linux]\nfactory = "new"')
    assert twin.store.commit([Replace(row, replace(row, toml=f'[factories.new]\ndriver = "hand"\n{other}'))])
    assert prewarm._stay_changes(twin.on, unit.id) == ([], False)


def test_a_hello_and_its_factorys_word_at_once_are_both_noted() -> None:
    twin = wanting()
    prewarm.fill(twin.on, LINUX)
    agent = Agent(twin, only(twin).id)
    before_the_next_commit(twin, lambda: advance.advance(twin.on, agent.worker))
    agent.hello()
    told = [entry.what for entry in only(twin).journal.entries]
    assert told[-2:] == ["made", "its agent said hello; it waits for its first lease"]


def test_a_hello_writes_nothing_of_a_pool_that_has_had_no_setback(twin: Twin) -> None:
    before = pool_of(twin).version
    at_rest(twin)
    assert pool_of(twin).version == before


def test_a_hello_whose_pool_is_no_more_is_heard(twin: Twin) -> None:
    agent = Agent(twin, only(twin).id)
    del twin.store.rows[pool_key(LINUX)]
    assert agent.hello().idle
    assert only(twin).cleaning.until


@pytest.mark.parametrize("state", [UnitState.DIRTY, UnitState.GONE, UnitState.QUARANTINED])
def test_a_worker_that_is_no_longer_wanted_before_its_first_hello_is_sent_home(twin: Twin, state: UnitState) -> None:
    """UNIT-2: it was evicted while it booted; it is destroyed, and comes back to nobody."""
    agent = Agent(twin, only(twin).id)
    was = change_unit(twin, only(twin), state=state)
    with pytest.raises(Refused, match="no longer wanted"):
        agent.hello()
    assert unit_of(twin, was.id) == was


def test_a_pool_that_is_paused_meanwhile_stays_so(twin: Twin) -> None:
    change_pool(twin, LINUX, setback=domain_prewarm.failed(pool_of(twin), "no hello", twin.world.now()).setback)
    before_the_next_commit(twin, lambda: apply.pause(twin.on, LINUX, paused=True))
    agent = at_rest(twin)
    assert (pool_of(twin).paused, pool_of(twin).setback) == (True, None)
    before_the_next_commit(twin, lambda: apply.pause(twin.on, LINUX, paused=False))
    assert retire.retire(twin.on, agent.worker, "it is old", is_setback=True)
    assert (pool_of(twin).paused, pool_of(twin).setback is None) == (False, False)


def test_a_slot_that_is_changed_meanwhile_stays_so(twin: Twin) -> None:
    """Those of other pools may be withdrawn by a resize."""
    (slot,) = slots(twin, LINUX, "free#warm#")
    withdrawn = replace(slot, withdrawn=True)
    before_the_next_commit(twin, lambda: twin.store.commit([Replace(slot, withdrawn)]))
    at_rest(twin)
    (after,) = slots(twin, LINUX, "free#warm#")
    assert (after.withdrawn, after.since is None) == (True, False)


def test_the_slot_of_one_that_is_held_says_since_when_it_is_held(twin: Twin, root: User) -> None:
    unit = only(twin)
    maintenance.hold(twin.on, root, UnitKind.WORKER, unit.id, "looking", 3600)
    (held,) = slots(twin, LINUX, "held#")
    twin.pass_time(5)
    Agent(twin, unit.id).hello()
    assert slots(twin, LINUX, "held#") == [held]


def test_a_call_lets_go_of_what_it_began_and_of_nothing_else() -> None:
    twin = a_twin(DB)
    unit, now = only(twin), twin.world.now()
    drivers.unlock(twin.on, replace(unit, id="r-none", step=replace(unit.step, busy=now)))
    drivers.unlock(twin.on, unit)
    other = change_unit(twin, unit, busy=now + timedelta(seconds=9))
    drivers.unlock(twin.on, replace(unit, step=replace(unit.step, busy=now)))
    assert (unit_of(twin, unit.id), list(twin.queues.messages)) == (other, [])
    before_the_next_commit(twin, lambda: change_unit(twin, unit, reason="it moved"))
    drivers.unlock(twin.on, other)
    after = unit_of(twin, unit.id)
    assert (after.step.busy, after.step.reason) == (None, "it moved")
    assert [(message[1], message[2]) for message in twin.queues.messages] == [("well", {"unit": unit.id})]


def no_pool(twin: Twin, unit: Unit) -> None:
    del twin.store.rows[pool_key(unit.lease.pool)]


def not_kept(twin: Twin, unit: Unit) -> None:
    change_pool(twin, unit.lease.pool, warm=None)


def lent(twin: Twin, unit: Unit) -> None:
    """To a canary, after which it still serves anybody."""
    (slot,) = slots(twin, unit.lease.pool, "free#warm#")
    assert twin.store.commit(move(slot, replace(slot, state=SlotState.HELD, job="J1", attempt=1, order=0)))
    change_unit(twin, unit, state=UnitState.CREATING)


@pytest.mark.parametrize("meddle", [no_pool, not_kept, lent])
def test_who_does_not_stay(meddle: Callable[[Twin, Unit], None]) -> None:
    twin = a_twin(SITE.replace("uses = { vcpus = 4 }\nwarm", "warm"))
    unit = unit_of(twin, at_rest(twin).worker)
    assert prewarm._stay_changes(twin.on, unit.id)[1]
    meddle(twin, unit)
    assert prewarm._stay_changes(twin.on, unit.id) == ([], False)
    assert prewarm._stay_changes(twin.on, "w-none") == ([], False)


def test_a_hold_that_comes_before_it_stays_stands(twin: Twin, root: User) -> None:
    """UNIT-3."""
    agent = at_rest(twin)
    twin.pass_time(600)
    unit = only(twin)
    kind = UnitKind.WORKER
    before_the_next_commit(twin, lambda: maintenance.hold(twin.on, root, kind, agent.worker, "looking", 3600))
    prewarm.idle_ended(twin.on, unit)
    held = unit_of(twin, agent.worker)
    assert held.hold
    assert (held.state, held.due, held.cleaning.until) == (UnitState.IDLE, held.hold.until, unit.cleaning.until)


def test_a_worker_that_had_a_job_is_no_setback(ada: User) -> None:
    twin = a_twin(NONE)
    agent = worker_at_rest(twin, ada)
    assert retire.retire(twin.on, agent.worker, prewarm.SILENT, is_setback=True)
    assert pool_of(twin).setback is None
    assert isinstance(pool_of(twin), Pool)


@pytest.mark.parametrize(("site", "queue"), [(SITE, "factory"), (DB, "well")])
def test_whoever_destroys_an_idle_unit_is_asked_to(site: str, queue: str) -> None:
    twin = a_twin(site)
    unit = only(twin)
    later = twin.world.now() + timedelta(seconds=1)
    before_the_next_commit(twin, lambda: change_unit(twin, unit, born=later))
    assert retire.retire(twin.on, unit.id, "it is in the way")
    assert [(message[1], message[2]) for message in twin.queues.messages] == [(queue, {"unit": unit.id})]
    assert (unit_of(twin, unit.id).state, unit_of(twin, unit.id).creation.born) == (UnitState.DIRTY, later)


def test_a_worker_that_never_had_a_job_starts_no_attempt_when_it_gives_up_its_slot(twin: Twin) -> None:
    release.slot_freed(twin.on, only(twin))
    assert [message for _, _, message in twin.queues.messages if message.get("do") == "start"] == []


def test_only_what_is_idle_is_retired(twin: Twin) -> None:
    """UNIT-2: what is being cleaned is given up by whoever cleans it."""
    assert not retire.retire(twin.on, "w-none", "it is in the way")
    cleaning = change_unit(twin, only(twin), state=UnitState.CLEANING)
    assert not retire.retire(twin.on, cleaning.id, "it is in the way")
    assert unit_of(twin, cleaning.id) == cleaning


@pytest.mark.parametrize(
    ("site", "most"), [(SITE, scheduler.WARM), (MADE, scheduler.WARM), (NONE, scheduler.WARM), (ALIKE, 1)]
)
def test_more_warm_slots_are_read_than_are_wanted_only_where_some_may_not_do(ada: User, site: str, most: int) -> None:
    """Elsewhere a unit is kept after a job and serves anybody, so any of them does."""
    twin = a_twin(site)
    counts = warm_limits(twin)
    submit(twin, ada, target="linux")
    twin.deliver()
    assert counts[0] == most


def warm_limits(twin: Twin) -> list[int]:
    """How many warm slots each read from here on may return."""
    find, found = twin.store.find, list[int]()

    def noting(pk: str, prefix: str, *more: Any, **how: Any) -> Any:
        if prefix == "free#warm#":
            found.append(how["limit"])
        return find(pk, prefix, *more, **how)

    twin.store.find = noting  # type: ignore[method-assign]
    return found


def test_a_pool_that_makes_nothing_ahead_is_not_read_for_warm_slots() -> None:
    """DynamoDB refuses a read of no rows."""
    twin = a_twin(NONE)
    found = warm_limits(twin)
    for pool in (LINUX, "target/other"):  # one that makes none ahead, and one that keeps none at all
        prewarm.fill(twin.on, pool)
    assert (found, existing(twin)) == ([], [])


@pytest.mark.parametrize("less", [0, 1])
def test_a_unit_is_made_ahead_if_a_commit_has_just_room_for_it(monkeypatch: pytest.MonkeyPatch, less: int) -> None:
    twin = wanting()
    decided = prewarm._order_one(twin.on, LINUX)
    assert decided
    monkeypatch.setattr(limits, "TRANSACTION_ITEMS", len(decided[1]) - less)
    prewarm.fill(twin.on, LINUX)
    assert len(existing(twin)) == 1 - less


def test_a_slot_that_is_warmed_between_two_looks_is_one_slot(ada: User) -> None:
    """SLOT-1: the free ones are read first, then the warm: one that was given a unit in between is in both.

    Who warms it has looked before anybody waited, and writes late.
    """
    twin = wanting(name="resource/db")
    decided = prewarm._order_one(twin.on, "resource/db")
    assert decided is not None
    job = submit(twin, ada, target="linux", resources={"a": {"type": "db"}, "b": {"type": "db"}})
    before_the_next_read(twin, "free#warm#", lambda: twin.store.commit(decided[1]))
    twin.run()
    held = slots(twin, "resource/db", "held#")
    assert [slot.job for slot in held] == [job, job]
    assert len({slot.unit for slot in held}) == 2
