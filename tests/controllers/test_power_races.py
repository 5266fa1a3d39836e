"""Somebody else writes while a host is switched, or what was read is gone: nothing is done twice. [JOB-2] [SLOT-1]"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.cooldowns import Budget, budget_key
from penstock.domain.pools.grants import Stock
from penstock.domain.pools.pools import Pool, Slot, SlotState, pool_key
from penstock.domain.site.site import Site
from penstock.domain.units.hosts import host_key
from penstock.domain.units.power import PowerOrder, power_key
from penstock.kernel.errors import Misconfigured
from penstock.kernel.rows import Create, Key, Replace, Row
from penstock.ports import Switching
from penstock.testing.twin import START, ScriptedDriver, Twin
from penstock.usecases import cooldowns
from penstock.usecases.pools import scheduler
from penstock.usecases.units import drivers
from penstock.usecases.workers import power, presence
from tests.controllers.benches import FaultyBenches
from tests.controllers.switched import (
    ADA,
    BOOT,
    after,
    failures,
    idle_since_long,
    left_on,
    order_of,
    posts,
    site,
    text,
    waits,
)
from tests.usecases.lab_hosts import Bench, apply, host_of, states
from tests.usecases.races import before_the_next_write_of
from tests.usecases.steps import submit

POOL = "target/lab"


@pytest.fixture
def benches() -> Iterator[FaultyBenches]:
    made = FaultyBenches("bench-7", "bench-8", "bench-9")
    yield made
    made.end()


def touch(twin: Twin, key: Key) -> Callable[[], object]:
    """Somebody else writes a row, which says the same afterwards."""

    def act() -> None:
        row = twin.store.get(key, Row)
        assert row
        assert twin.store.commit([Replace(row, row)])

    return act


def orders(twin: Twin) -> int:
    """How many messages there are about a host's power."""
    return sum(message.get("do") == "power" for _, _, message in twin.queues.messages)


def ordered(twin: Twin) -> Twin:
    """A host was just ordered to be switched on, and its message is on its way."""
    waits_without(twin)
    twin.queues.messages.clear()
    return twin


def waits_without(twin: Twin) -> None:
    """A job waits, and nobody has taken a step of the order yet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(power, "step", lambda *told: None)
        waits(twin)


def switched_on(twin: Twin) -> None:
    power.switch_on(twin.on, POOL, scheduler.read_stocks(twin.on, POOL))


def switched_off(twin: Twin) -> None:
    pool = twin.store.get(pool_key(POOL), Pool)
    assert pool
    power.switch_idle_off(twin.on, pool)


def test_two_that_serve_at_a_time_give_one_order(benches: FaultyBenches) -> None:
    twin = site(benches, names=["bench-7"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(power, "switch_on", lambda *told: None)
        waits(twin)
    before_the_next_write_of(twin, PowerOrder, lambda: switched_on(twin))
    switched_on(twin)
    assert (order_of(twin).serial, orders(twin)) == (1, 1)
    twin.queues.messages.clear()
    off = replace(order_of(twin), is_on=False, due=None, is_shut=False)
    twin.store.rows[power_key("bench-7")] = off
    before_the_next_write_of(twin, PowerOrder, lambda: switched_on(twin))
    switched_on(twin)
    assert (order_of(twin).serial, orders(twin)) == (2, 1)


def test_two_messages_at_a_time_ask_once(benches: FaultyBenches) -> None:
    twin = ordered(site(benches))
    before_the_next_write_of(twin, PowerOrder, lambda: power.step(twin.on, "bench-7"))
    power.step(twin.on, "bench-7")
    assert posts(benches) == ["bench-7/on"]


def test_an_answer_to_an_order_that_was_replaced_meanwhile_is_dropped(benches: FaultyBenches) -> None:
    """JOB-2: that an earlier order was carried out says nothing of the later one."""
    twin = ordered(site(benches))
    before_the_next_write_of(twin, PowerOrder, touch(twin, power_key("bench-7")), lambda row: row.done)
    power.step(twin.on, "bench-7")
    assert order_of(twin).done is None


@pytest.mark.parametrize("answer", [202, 500])
def test_so_is_one_that_it_takes_a_while_or_failed(benches: FaultyBenches, answer: int) -> None:
    twin = ordered(site(benches))
    benches.on("POST", lambda asked: asked.say(answer, {"reason": "the fuse is cold"}))
    before_the_next_write_of(twin, PowerOrder, touch(twin, power_key("bench-7")), lambda row: row.why)
    power.step(twin.on, "bench-7")
    assert (order_of(twin).why, order_of(twin).tries, orders(twin)) == (None, 0, 0)


def test_a_host_that_comes_at_the_last_moment_is_not_missed(benches: FaultyBenches) -> None:
    twin = ordered(site(benches))
    power.step(twin.on, "bench-7")
    twin.pass_time(BOOT)
    before_the_next_write_of(twin, PowerOrder, lambda: Bench(twin).ask(), lambda row: row.missed)
    power.step(twin.on, "bench-7")
    assert (order_of(twin).missed, failures(twin)) == (0, {})
    assert host_of(twin).away is None


def test_a_host_that_came_while_it_was_ordered_is_there(benches: FaultyBenches) -> None:
    """Its agent read that nothing was ordered, and whoever served the pool that it is away."""
    twin = ordered(site(benches))
    order = order_of(twin)
    del twin.store.rows[order.key]
    Bench(twin).ask()
    twin.store.commit([Create(replace(order, version=0))])
    before_the_next_write_of(twin, PowerOrder, touch(twin, order.key))
    power.step(twin.on, "bench-7")
    assert order_of(twin).due == order.due, "another process was first"
    power.step(twin.on, "bench-7")
    assert posts(benches) == []
    assert (order_of(twin).due, order_of(twin).is_on) == (None, True)


def test_a_host_that_may_lose_its_power_is_asked_for_although_it_is_there(benches: FaultyBenches) -> None:
    """JOB-2: an agent of an older release let it in."""
    twin = ordered(site(benches))
    order = order_of(twin)
    del twin.store.rows[order.key]
    Bench(twin).ask()
    twin.store.commit([Create(replace(order, version=0, is_shut=True))])
    power.step(twin.on, "bench-7")
    assert posts(benches) == ["bench-7/on"]
    power.step(twin.on, "bench-7")
    assert not order_of(twin).is_shut


def test_an_order_of_a_site_that_says_otherwise_meanwhile_rests_once(benches: FaultyBenches) -> None:
    twin = ordered(site(benches))
    apply(twin, text(benches, None))
    before_the_next_write_of(twin, PowerOrder, touch(twin, power_key("bench-7")))
    power.step(twin.on, "bench-7")
    assert order_of(twin).due is not None
    power.step(twin.on, "bench-7")
    assert order_of(twin).due is None


ROWS: dict[str, Callable[[Twin], Key]] = {
    "the host": lambda twin: host_key("bench-7"),
    "its slot": lambda twin: Slot(pool=POOL, name="bench-7", state=SlotState.FREE).key,
    "its order": lambda twin: power_key("bench-7"),
    "its pool": lambda twin: pool_key(POOL),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_host_is_not_switched_off_if_anything_about_it_changed(benches: FaultyBenches, row: str) -> None:
    """JOB-2, SLOT-1"""
    twin, _ = idle_since_long(benches)
    twin.queues.messages.clear()
    before_the_next_write_of(twin, PowerOrder, touch(twin, ROWS[row](twin)), lambda order: not order.is_on)
    switched_off(twin)
    assert (states(twin)["bench-7"], order_of(twin).is_on, orders(twin)) == ("free", True, 0)
    assert not twin.queues.messages
    switched_off(twin)
    assert (states(twin)["bench-7"], order_of(twin).is_shut, orders(twin)) == ("away", True, 1)
    assert {"do": "resize", "pool": POOL} in [message for _, _, message in twin.queues.messages]
    pool = twin.store.get(pool_key(POOL), Pool)
    assert pool
    assert pool.due, "and the sweep makes up for a lost message"


@pytest.mark.parametrize("is_known", [False, True])
def test_two_that_note_that_a_host_is_idle_note_the_first(benches: FaultyBenches, is_known: bool) -> None:
    twin = site(benches, {"idle": "10m"})
    Bench(twin).ask()
    first = twin.world.now()
    new = PowerOrder(host="bench-7", is_on=True, since=first)
    if is_known:
        twin.store.commit([Create(new)])

    def other() -> None:
        was = twin.store.get(new.key, PowerOrder)
        noted = replace(was or new, idle=first, serial=7)
        assert twin.store.commit([Replace(was, noted) if was else Create(noted)])

    before_the_next_write_of(twin, PowerOrder, other, lambda order: order.idle is not None)
    switched_off(twin)
    assert (order_of(twin).idle, order_of(twin).serial) == (first, 7)
    version = order_of(twin).version
    switched_off(twin)
    assert order_of(twin).version == version, "that costs one write"


def test_a_host_whose_slot_is_still_free_but_who_left_is_not_switched_off(benches: FaultyBenches) -> None:
    twin, bench = idle_since_long(benches)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin, "run", lambda: None)
        bench.ask(leaving=True)
    assert states(twin)["bench-7"] == "free"
    switched_off(twin)
    assert order_of(twin).is_on


def about_to_go(benches: FaultyBenches) -> Twin:
    """A host that is on and never came, at the moment at which it is to be switched off."""
    twin = left_on(benches)
    twin.pass_time(600)
    return twin


def test_a_host_that_comes_before_it_is_switched_off_stays_on(benches: FaultyBenches) -> None:
    """JOB-2: nothing is granted on a host that is about to lose its power."""
    twin = about_to_go(benches)
    before_the_next_write_of(twin, PowerOrder, Bench(twin).ask)
    switched_off(twin)
    assert not order_of(twin).is_shut
    assert posts(benches) == ["bench-7/on"]


def test_so_does_one_that_comes_while_its_rows_are_read(benches: FaultyBenches) -> None:
    """JOB-2"""
    twin = about_to_go(benches)
    get, bench, of_it = twin.store.get, Bench(twin), (power_key("bench-7"), host_key("bench-7"))

    def comes(key: Key, kind: type[Any]) -> Any:
        found = get(key, kind)
        if key in of_it:
            twin.store.get = get  # type: ignore[method-assign]
            bench.ask()
        return found

    twin.store.get = comes  # type: ignore[method-assign]
    switched_off(twin)
    assert host_of(twin).away is None
    assert not order_of(twin).is_shut


def test_one_whose_slot_follows_in_a_moment_stays_on_too(benches: FaultyBenches) -> None:
    """JOB-2"""
    twin = about_to_go(benches)
    came_behind_a_resize(twin, "bench-7")
    switched_off(twin)
    assert states(twin)["bench-7"] == "away"
    assert not order_of(twin).is_shut


def test_two_sweeps_at_a_time_switch_a_host_off_once(benches: FaultyBenches) -> None:
    twin = about_to_go(benches)
    before_the_next_write_of(twin, PowerOrder, lambda: switched_off(twin))
    switched_off(twin)
    assert (order_of(twin).serial, orders(twin)) == (2, 1)
    twin = about_to_go(benches)
    rows_at = twin.store.rows_at

    def after_another(keys: Any) -> Any:
        found = rows_at(keys)
        twin.store.rows_at = rows_at  # type: ignore[method-assign]
        switched_off(twin)
        return found

    twin.store.rows_at = after_another  # type: ignore[method-assign]
    switched_off(twin)
    assert (order_of(twin).serial, orders(twin)) == (2, 1)


def test_hosts_that_are_off_are_not_read_one_by_one(benches: FaultyBenches) -> None:
    twin = about_to_go(benches)
    switched_off(twin)
    get, read = twin.store.get, list[Key]()
    twin.store.get = lambda key, kind: read.append(key) or get(key, kind)  # type: ignore[method-assign,func-returns-value]
    switched_off(twin)
    assert power_key("bench-7") not in read


def test_an_agent_is_not_let_in_while_its_host_is_switched_off(benches: FaultyBenches) -> None:
    """JOB-2"""
    twin = about_to_go(benches)
    switched_off(twin)
    assert (order_of(twin).is_shut, orders(twin)) == (True, 1)
    Bench(twin).ask()
    assert (host_of(twin).away, states(twin)["bench-7"]) == (twin.world.now(), "away")


def test_a_host_that_is_to_be_switched_off_and_on_is_not_let_in_between(benches: FaultyBenches) -> None:
    """JOB-2: it missed its time once, comes now, and its controller is about to switch it off and on."""
    twin = site(benches, names=["bench-7"])
    waits(twin)
    after(twin, BOOT + 1)
    assert not order_of(twin).is_shut
    bench = Bench(twin)

    def again() -> None:
        twin.pass_time(120)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(power, "step", lambda *told: None)
            switched_on(twin)

    before_the_next_write_of(twin, PowerOrder, again)
    bench.ask()
    assert order_of(twin).serial == 2
    assert order_of(twin).done, "its message was taken then"
    bench.ask()
    assert bench.do() == "work"


def test_a_host_that_never_came_is_known_but_not_let_in_either(benches: FaultyBenches) -> None:
    """JOB-2"""
    twin = site(benches, names=["bench-7"])
    waits(twin)
    after(twin, BOOT + 1)
    benches.on("POST", lambda asked: asked.say(202, {"reason": "it restarts"}, Retry_After="600"))
    after(twin, 61)
    assert order_of(twin).is_shut
    bench = Bench(twin)
    assert bench.do() == "wait"
    assert host_of(twin).away == twin.world.now()
    assert states(twin)["bench-7"] == "away"
    benches.faults.clear()
    after(twin, 601)
    bench.ask()
    assert bench.do() == "work"


def stock(twin: Twin, name: str = POOL) -> dict[str, Any]:
    return dict(scheduler.read_stocks(twin.on, name))


def test_a_host_whose_last_order_cannot_be_read_keeps_nobody_waiting(benches: FaultyBenches) -> None:
    """QUEUE-1: no other order can be given for it."""
    twin = site(benches)
    row = PowerOrder(host="bench-7", is_on=False, since=START)
    twin.store.rows[row.key] = row
    twin.store.unreadable.add(row.key)
    waits(twin)
    assert posts(benches) == ["bench-8/on"]


def test_a_claim_of_a_pool_that_is_no_more_has_nobody_switched_on(benches: FaultyBenches) -> None:
    twin = ordered(site(benches))
    found = stock(twin)
    (claim,) = found[POOL].claims
    found[POOL] = replace(found[POOL], claims=[replace(claim, pools=(POOL, "quota/gone"))])
    del twin.store.rows[power_key("bench-7")]
    power.switch_on(twin.on, POOL, found)
    assert orders(twin) == 0
    power.switch_on(twin.on, "target/gone", {"target/gone": replace(found[POOL], claims=[claim])})
    assert orders(twin) == 0
    power.switch_on(twin.on, POOL, stock(twin))
    assert orders(twin) == 1


def test_a_target_that_became_an_alias_has_no_hosts(benches: FaultyBenches) -> None:
    twin = ordered(site(benches))
    found = stock(twin)
    del twin.store.rows[power_key("bench-7")]
    apply(
        twin, text(benches, True).replace("[targets.lab]", "[targets.other]") + '\n[targets.lab]\nredirect = "other"\n'
    )
    power.switch_on(twin.on, POOL, found)
    assert orders(twin) == 0
    switched_off(twin)


def test_pools_without_hosts_cost_nothing(benches: FaultyBenches) -> None:
    twin = ordered(site(benches))

    def no(*told: object) -> Site:
        raise AssertionError("the site is read")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(power, "current_site", no)
        pool = replace(stock(twin)[POOL].pool, hosts=False)
        power.switch_idle_off(twin.on, pool)
        power.switch_on(twin.on, POOL, {POOL: Stock(pool, stock(twin)[POOL].claims)})
        power.switch_on(twin.on, POOL, {})


def test_a_driver_of_others_that_cannot_switch_is_told_so(benches: FaultyBenches) -> None:
    twin = site(benches)
    with pytest.raises(Misconfigured, match="the driver of factory/lab cannot switch hosts"):
        drivers.switch(twin.on, "factory/lab", ScriptedDriver(), "bench-7", Switching(is_on=True, serial=1))


def test_an_order_is_not_due_before_its_time(benches: FaultyBenches) -> None:
    twin = ordered(site(benches))
    power.step(twin.on, "bench-7")
    order = order_of(twin)
    assert order.due == twin.world.now() + timedelta(seconds=BOOT)
    twin.pass_time(BOOT - 3)
    power.step(twin.on, "bench-7")
    assert order_of(twin) == order


def came_behind_a_resize(twin: Twin, name: str) -> None:
    """A host's agent connects, and its slot has not followed yet."""
    presence.check_in(twin.on, presence.HostSession(name, POOL, "s"), timedelta(seconds=120))
    twin.queues.messages.clear()


@pytest.mark.parametrize("is_coming", [False, True])
def test_a_host_that_is_there_is_not_ordered_and_counts_once(benches: FaultyBenches, is_coming: bool) -> None:
    twin = ordered(site(benches))
    waits_without(twin)
    order = order_of(twin)
    del twin.store.rows[order.key]
    came_behind_a_resize(twin, "bench-7")
    if is_coming:
        twin.store.commit([Create(replace(order, version=0))])
    switched_on(twin)
    assert [message["host"] for _, _, message in twin.queues.messages] == ["bench-8"]


def test_each_target_is_switched_by_its_own_factory(benches: FaultyBenches) -> None:
    twin = site(benches)
    others = '[factories.bare]\ndriver = "hosts"\n[targets.bare]\nfactory = "bare"\nnames = ["bare-1"]\n'
    for toml in (others + text(benches, True), text(benches, True) + others):
        apply(twin, toml)
        submit(twin, ADA, target="bare")
        twin.run()
        after(twin, 60)
        assert posts(benches) == []
        assert twin.store.get(power_key("bare-1"), PowerOrder) is None
    waits(twin)
    assert posts(benches) == ["bench-7/on"]


def test_where_no_time_is_said_nothing_is_noted(benches: FaultyBenches) -> None:
    twin = site(benches)
    Bench(twin).ask()
    switched_off(twin)
    assert twin.store.get(power_key("bench-7"), PowerOrder) is None


def test_only_a_controller_that_wants_to_be_left_alone_is(benches: FaultyBenches) -> None:
    twin = ordered(site(benches))
    benches.on("POST", lambda asked: asked.say(403, {"code": "misconfigured"}))
    power.step(twin.on, "bench-7")
    assert cooldowns.cooldowns_of(twin.on, "factory/lab") == []
    assert order_of(twin).again == twin.world.now() + timedelta(minutes=1)
    benches.faults.clear()
    benches.on("POST", lambda asked: asked.say(429, {}, Retry_After="300"))
    twin.pass_time(60)
    switched_on(twin)
    twin.run()
    assert order_of(twin, "bench-8").again == twin.world.now() + timedelta(minutes=5)


def test_a_call_that_is_not_made_is_not_counted(benches: FaultyBenches) -> None:
    twin = ordered(site(benches, rate=1.0))
    benches.on("POST", lambda asked: asked.say(429, {}, Retry_After="300"))
    power.step(twin.on, "bench-7")
    twin.pass_time(61)
    switched_on(twin)
    before = twin.store.get(budget_key("factory/lab"), Budget)
    twin.run()
    assert twin.store.get(budget_key("factory/lab"), Budget) == before


def test_a_known_host_that_comes_is_at_rest_at_once(benches: FaultyBenches) -> None:
    twin = site(benches)
    bench = Bench(twin)
    bench.ask()
    bench.ask(leaving=True)
    waits(twin)
    assert order_of(twin).due
    bench.ask()
    assert order_of(twin).due is None
