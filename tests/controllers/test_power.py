"""Hosts that are switched on when jobs wait for them, and off when nobody does. [JOB-2] [QUEUE-1] [SLOT-1]"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock import listings
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.units.power import PowerOrder, describe, power_key
from penstock.drivers import MAKER, Registry
from penstock.drivers.factories.hosts import HostsFactory
from penstock.kernel.errors import Misconfigured, Unknown, Unsatisfiable
from penstock.kernel.rows import Change
from penstock.ports import NotYet, Ready, Switching, UnitContext
from penstock.testing.twin import Twin
from penstock.usecases.jobs import cancel
from penstock.usecases.pools import resize
from penstock.usecases.site import apply as site_apply
from penstock.usecases.units import console
from penstock.usecases.workers import power, presence
from tests.controllers.benches import FaultyBenches
from tests.controllers.switched import (
    ADA,
    BOOT,
    NAMES,
    after,
    failures,
    idle_since_long,
    left_on,
    order_of,
    posts,
    site,
    summary,
    text,
    waits,
)
from tests.usecases.lab_hosts import Bench, apply, host_of, states
from tests.usecases.steps import submit, told, worker_of
from tests.wells.faulty import ANYBODY, Asked
from tests.wells.service import SURROUNDINGS

GOOD = {"url": "https://lab.example.com/penstock", "secret": "secretsmanager:penstock/lab"}
ON = Switching(is_on=True, serial=4)


@pytest.fixture
def benches() -> Iterator[FaultyBenches]:
    made = FaultyBenches(*NAMES)
    yield made
    made.end()


# The driver


def driver(benches: FaultyBenches) -> HostsFactory:
    given = {"url": benches.url, "secret": "env:RACK", "timeout": "1s", "power": True}
    return HostsFactory(given, {**SURROUNDINGS, MAKER: "lab"})


@pytest.mark.parametrize("said", [True, False, {}, {"idle": "30m"}, {"idle": 60}])
def test_good_settings(said: Any) -> None:
    assert HostsFactory.complaints({**GOOD, "power": said}) == []


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("yes", "`hosts.power` wants true or false, not a string"),
        ({"idle": "10s"}, "`hosts.power.idle` must be from 1 minute to 30 days"),
        ({"idle": "31d"}, "`hosts.power.idle` must be from 1 minute to 30 days"),
        ({"after": "1h"}, "unknown key `after`"),
    ],
)
def test_bad_settings(said: Any, wrong: str) -> None:
    assert any(wrong in each for each in HostsFactory.complaints({**GOOD, "power": said}))


def test_a_factory_without_a_controller_switches_nothing() -> None:
    assert any("`url`" in each for each in HostsFactory.complaints({"power": True}))
    with pytest.raises(Misconfigured, match="without a `url`"):
        Registry({}).factory("hosts", {}).switch("bench-7", ON)  # type: ignore[attr-defined]


def test_a_host_is_on_when_its_status_says_so_too(benches: FaultyBenches) -> None:
    assert driver(benches).switch("bench-7", ON) == Ready()
    assert benches.lit == ["bench-7"]
    assert benches.asked == [("POST", "/hosts/bench-7/on"), ("GET", "/hosts/bench-7")]
    assert driver(benches).switch("bench-7", ON) == Ready(), "a repeated order is the same"
    assert driver(benches).switch("bench-7", Switching(is_on=False, serial=5)) == Ready()
    assert benches.lit == []


def test_a_late_order_changes_nothing(benches: FaultyBenches) -> None:
    """JOB-2"""
    driver(benches).switch("bench-7", ON)
    with pytest.raises(Unknown, match="a later order"):
        driver(benches).switch("bench-7", Switching(is_on=False, serial=3))
    assert benches.lit == ["bench-7"]


def test_what_takes_a_while_is_waited_for(benches: FaultyBenches) -> None:
    benches.on("POST", lambda asked: asked.say(202, {"reason": "the fuse is cold"}, Retry_After="90"))
    assert driver(benches).switch("bench-7", ON) == NotYet(90, "the fuse is cold")
    benches.faults.clear()
    benches.on("POST", lambda asked: asked.say(202, {}))
    assert driver(benches).switch("bench-7", ON) == NotYet(5, "it is being switched on")


def test_a_host_that_is_not_there_cannot_be_switched(benches: FaultyBenches) -> None:
    with pytest.raises(Unknown, match="does not know bench-1"):
        driver(benches).switch("bench-1", ON)


@pytest.mark.parametrize("odd", ANYBODY)
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_nothing_odd_is_taken_for_an_answer(benches: FaultyBenches, method: str, odd: str) -> None:
    """JOB-2"""
    fault, error = ANYBODY[odd]
    benches.on(method, fault)
    with pytest.raises(error):
        driver(benches).switch("bench-7", ON)
    benches.let_go.set()


@pytest.mark.parametrize("lie", [{"power": "off"}, {"serial": 3}, {"power": None}])
def test_who_contradicts_itself_is_not_believed(benches: FaultyBenches, lie: dict[str, Any]) -> None:
    """JOB-2: a host that may still lose its power gets no job."""
    benches.on("GET", lambda asked: asked.say(200, {**benches.service.status("bench-7"), **lie}))
    with pytest.raises(Unsatisfiable, match="bench-7 is on, with serial 4, but its status is"):
        driver(benches).switch("bench-7", ON)
    benches.faults.clear()
    benches.on("POST", lambda asked: asked.say(200, {"unit": "bench-7", "power": "on", "serial": 4, **lie}))
    with pytest.raises(Misconfigured, match="instead of"):
        driver(benches).switch("bench-7", ON)


def test_a_controller_that_only_cleans_is_asked_for_nothing_else(benches: FaultyBenches) -> None:
    class Cleans:
        status = benches.service.status

    made = FaultyBenches()
    made.service.__class__ = Cleans
    with pytest.raises(Misconfigured, match="there is no POST of /hosts/bench-7/on"):
        driver(made).switch("bench-7", ON)
    made.end()


# The whole


def test_a_host_is_switched_on_for_a_job_that_waits_and_takes_it(benches: FaultyBenches) -> None:
    twin = site(benches)
    job = waits(twin)
    assert benches.lit == ["bench-7"], "as many as jobs wait"
    assert "bench-7, which was never heard of (switched on at 2026-01-01 " in summary(twin, job)
    bench = Bench(twin)
    bench.ask()
    assert bench.do() == "work"
    assert bench.hello() == job
    assert (order_of(twin).due, order_of(twin).is_on) == (None, True)
    after(twin, 30, times=3)
    assert posts(benches) == ["bench-7/on"]


def test_as_many_are_switched_on_as_jobs_wait(benches: FaultyBenches) -> None:
    twin = site(benches)
    waits(twin)
    waits(twin)
    after(twin, 60)
    assert benches.lit == ["bench-7", "bench-8"]
    waits(twin)
    waits(twin)
    after(twin, 60, times=2)
    assert benches.lit == list(NAMES)
    assert len(posts(benches)) == 3


def test_who_is_there_is_not_asked_for(benches: FaultyBenches) -> None:
    twin = site(benches)
    Bench(twin, "bench-8").ask()
    waits(twin)
    after(twin, 60)
    assert posts(benches) == []


def test_a_host_whose_slot_follows_in_a_moment_counts(benches: FaultyBenches) -> None:
    twin = site(benches)
    submit(twin, ADA, target="lab")
    while twin.queues.messages and twin.queues.messages[0][2]["do"] != "serve":
        twin.deliver()
    session = presence.HostSession("bench-8", "target/lab", "s")
    presence.check_in(twin.on, session, timedelta(seconds=120))
    twin.queues.messages.pop()  # its resize
    twin.run()
    assert states(twin)["bench-8"] == "away"
    assert posts(benches) == []


@pytest.mark.parametrize("said", [False, None])
def test_a_controller_that_is_not_to_switch_is_not_asked(benches: FaultyBenches, said: Any) -> None:
    twin = site(benches, said)
    waits(twin)
    after(twin, 60)
    assert posts(benches) == []
    assert twin.store.get(power_key("bench-7"), PowerOrder) is None


def test_nobody_is_switched_on_for_a_pool_that_is_paused(benches: FaultyBenches) -> None:
    twin = site(benches)
    site_apply.pause(twin.on, "target/lab", paused=True)
    twin.run()
    waits(twin)
    after(twin, 60)
    assert posts(benches) == []
    site_apply.pause(twin.on, "target/lab", paused=False)
    twin.run()
    assert benches.lit == ["bench-7"]


def test_nobody_is_switched_on_for_a_job_that_lacks_something_else(benches: FaultyBenches) -> None:
    twin = site(benches)
    toml = text(benches, True) + "\n[quotas.licences]\namount = 1\n"
    apply(twin, toml.replace('factory = "lab"\n', 'factory = "lab"\nuses = { licences = 1 }\n'))
    first = waits(twin)
    assert benches.lit == ["bench-7"]
    bench = Bench(twin)
    bench.ask()
    assert bench.do() == "work"
    assert bench.hello() == first
    waits(twin)
    after(twin, 60)
    assert posts(benches) == ["bench-7/on"]


def test_a_lost_message_costs_at_most_two_minutes(benches: FaultyBenches) -> None:
    twin = site(benches)
    submit(twin, ADA, target="lab")
    while not any(message.get("do") == "power" for _, _, message in twin.queues.messages):
        assert twin.deliver()
    twin.queues.messages.clear()
    after(twin, 59, times=2)
    assert benches.lit == ["bench-7"]


def test_a_message_that_comes_twice_or_without_need_asks_nobody(benches: FaultyBenches) -> None:
    twin = site(benches)
    power.step(twin.on, "bench-7")
    waits(twin)
    for _ in range(3):
        power.step(twin.on, "bench-7")
    assert posts(benches) == ["bench-7/on"]


def test_a_host_that_does_not_come_is_shown_and_another_takes_its_place(benches: FaultyBenches) -> None:
    twin = site(benches)
    job = waits(twin)
    after(twin, BOOT + 1)
    assert order_of(twin).missed == 1
    assert failures(twin) == {"Unknown:HostNotCome": 1}
    assert "which failed: it was switched on at" in summary(twin, job)
    assert "and no agent came" in summary(twin, job)
    after(twin, 30)
    assert posts(benches) == ["bench-7/on", "bench-8/on"]
    bench = Bench(twin)  # later than anybody expected
    bench.ask()
    assert bench.do() == "work"
    assert order_of(twin).missed == 0


def test_who_did_not_come_is_asked_for_again_after_growing_pauses_and_the_controller_is_told(
    benches: FaultyBenches,
) -> None:
    twin = site(benches, names=["bench-7"])
    told = list[tuple[int, int]]()
    switch = benches.service.on
    benches.service.on = lambda unit, order: told.append((order["serial"], order["missed"])) or switch(unit, order)
    waits(twin)
    after(twin, 60, times=60)
    assert told == [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)]
    assert order_of(twin).missed == 4


def test_nobody_is_asked_for_again_when_nobody_waits_any_more(benches: FaultyBenches) -> None:
    twin = site(benches, names=["bench-7"])
    job = waits(twin)
    after(twin, BOOT + 1)
    cancel.cancel(twin.on, ADA, job)
    twin.run()
    after(twin, 60, times=60)
    assert posts(benches) == ["bench-7/on"]
    waits(twin)
    assert posts(benches) == ["bench-7/on"] * 2


@pytest.mark.parametrize("odd", ANYBODY)
def test_a_controller_that_fails_is_asked_again_with_pauses_and_the_job_says_why(
    benches: FaultyBenches, odd: str
) -> None:
    fault, error = ANYBODY[odd]
    benches.on("POST", fault)
    twin = site(benches, names=["bench-7"])
    job = waits(twin)
    benches.let_go.set()
    assert f"which failed: {error.__name__}" in summary(twin, job)
    assert order_of(twin).tries == 1
    after(twin, 20, times=2)
    assert len(posts(benches)) == 1
    after(twin, 60, times=2)
    assert order_of(twin).tries == 2
    benches.faults.clear()
    after(twin, 61, times=3)
    assert benches.lit == ["bench-7"]
    assert sum(failures(twin).values()) == 2


def test_a_controller_that_wants_to_be_left_alone_is(benches: FaultyBenches) -> None:
    """For all of its hosts."""
    benches.on("POST", lambda asked: asked.say(429, {}, Retry_After="300"))
    twin = site(benches)
    waits(twin)
    job = waits(twin)
    after(twin, 60, times=4)
    assert len(posts(benches)) == 1
    assert "the provider asks to slow down" in summary(twin, job)
    benches.faults.clear()
    after(twin, 60, times=3)
    assert len(benches.lit) == 2


def test_no_more_calls_a_second_are_made_than_the_rate_says(benches: FaultyBenches) -> None:
    twin = site(benches, rate=0.02)
    waits(twin)
    waits(twin)
    after(twin, 5)
    assert len(posts(benches)) == 1
    assert "than its `rate` says" in str(order_of(twin, "bench-8").why)
    after(twin, 60, times=2)
    assert len(benches.lit) == 2


def test_what_takes_a_while_is_shown_and_asked_for_when_the_controller_says(benches: FaultyBenches) -> None:
    benches.on("POST", lambda asked: asked.say(202, {"reason": "the fuse is cold"}, Retry_After="20"))
    twin = site(benches, names=["bench-7"])
    job = waits(twin)
    assert "being switched on since 2026-01-01" in summary(twin, job)
    assert "the fuse is cold" in summary(twin, job)
    twin.pass_time(20)
    twin.run()
    assert len(posts(benches)) == 2
    after(twin, BOOT)
    assert "it was not switched on in time, and no agent came: the fuse is cold" in summary(twin, job)


def test_a_call_that_leaves_no_answer_is_repeated(benches: FaultyBenches) -> None:
    """The function died in it."""
    twin = site(benches)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(power, "_call", lambda *told: None)
        waits(twin)
    after(twin, 170)
    assert posts(benches) == []
    after(twin, 20)
    assert benches.lit == ["bench-7"]


def test_an_idle_host_is_switched_off_and_on_again_for_the_next_job(benches: FaultyBenches) -> None:
    twin, _ = idle_since_long(benches)
    assert benches.lit == ["bench-7"]
    after(twin, 1)
    assert benches.lit == []
    assert (states(twin)["bench-7"], host_of(twin).away is not None) == ("away", True)
    assert not order_of(twin).is_shut
    after(twin, 60, times=5)
    assert posts(benches) == ["bench-7/off"]
    job = waits(twin)
    assert benches.lit == ["bench-7"]
    anew = Bench(twin)
    anew.ask()
    assert anew.do() == "work"
    assert anew.hello() == job


def test_a_host_is_not_idle_while_or_shortly_after_it_had_a_job(benches: FaultyBenches) -> None:
    twin, bench = idle_since_long(benches)
    waits(twin)
    assert bench.do() == "work"
    after(twin, 1)
    assert posts(benches) == []
    job = bench.hello()
    bench.report(job)
    benches.service.hosts["bench-7"]["power"] = "on"
    bench.stage = "ended"
    assert bench.do() == "forget"
    after(twin, 1)
    assert states(twin)["bench-7"] == "free"
    assert benches.lit == ["bench-7"]


def test_no_host_is_switched_off_while_somebody_waits(benches: FaultyBenches) -> None:
    twin, _ = idle_since_long(benches)
    pool = twin.store.get(pool_key("target/lab"), Pool)
    assert pool
    with pytest.MonkeyPatch.context() as patch:
        find = twin.store.find
        patch.setattr(
            twin.store, "find", lambda pk, at, *told, **more: ["x"] if at == "wait#" else find(pk, at, *told, **more)
        )
        power.switch_idle_off(twin.on, pool)
    assert states(twin)["bench-7"] == "free"


def after_a_job(benches: FaultyBenches, idle: str) -> tuple[Twin, Bench]:
    """A host that was switched on for a job, which has ended; it was cleaned since."""
    twin = site(benches, {"idle": idle}, names=["bench-7"])
    waits(twin)
    bench = Bench(twin)
    bench.ask()
    assert bench.do() == "work"
    bench.report(bench.hello())
    bench.stage = "ended"
    assert bench.do() == "forget"
    return twin, Bench(twin)


def test_a_host_that_is_on_and_never_came_is_switched_off_when_nobody_waits(benches: FaultyBenches) -> None:
    twin = left_on(benches)
    assert (posts(benches), order_of(twin).missed) == (["bench-7/on"], 1)
    after(twin, 60, times=8)
    assert posts(benches) == ["bench-7/on"]
    after(twin, 60, times=3)
    assert posts(benches) == ["bench-7/on", "bench-7/off"]
    assert benches.lit == []
    after(twin, 60, times=30)
    assert posts(benches) == ["bench-7/on", "bench-7/off"]
    waits(twin)
    assert posts(benches)[2:] == ["bench-7/on"]


def test_one_that_was_switched_off_because_it_never_came_is_the_last_to_be_switched_on(benches: FaultyBenches) -> None:
    """QUEUE-1: else each job waits for it first, for as long as it may take to boot."""
    twin = left_on(benches)
    after(twin, 60, times=12)
    apply(twin, text(benches, {"idle": "20m"}, names=["bench-7", "bench-8"]))
    waits(twin)
    assert posts(benches) == ["bench-7/on", "bench-7/off", "bench-8/on"]
    assert order_of(twin).missed == 1


def test_so_is_one_that_fell_silent(benches: FaultyBenches) -> None:
    twin, bench = after_a_job(benches, "10m")
    for _ in range(8):
        after(twin, 60)
        bench.ask()
    assert states(twin)["bench-7"] == "free"
    bench.ask(leaving=True)
    after(twin, 60, times=9)
    assert states(twin)["bench-7"] == "away"
    assert posts(benches) == ["bench-7/on"], "it was there for a while"
    after(twin, 60, times=2)
    assert posts(benches) == ["bench-7/on", "bench-7/off"]


def test_so_is_one_whose_agent_says_every_few_minutes_that_it_takes_no_jobs(benches: FaultyBenches) -> None:
    """Its container engine does not answer, for example."""
    twin, bench = after_a_job(benches, "20m")
    bench.ask(leaving=True)
    for _ in range(4):
        assert posts(benches) == ["bench-7/on"]
        after(twin, 60, times=5)
        bench.ask(leaving=True)
    after(twin, 60)
    assert posts(benches) == ["bench-7/on", "bench-7/off"]


def test_a_host_whose_agent_takes_no_jobs_has_not_come(benches: FaultyBenches) -> None:
    twin = site(benches)
    waits(twin)
    order, bench = order_of(twin), Bench(twin)
    bench.ask(leaving=True)
    assert order_of(twin) == order
    after(twin, BOOT + 1)
    assert order_of(twin).missed == 1


def test_a_host_that_may_be_about_to_come_stays_on(benches: FaultyBenches) -> None:
    """It was just cleaned, and boots; one that is free is switched off after a minute."""
    twin, bench = after_a_job(benches, "1m")
    bench.ask(leaving=True)
    after(twin, 60, times=BOOT // 60 - 1)
    assert posts(benches) == ["bench-7/on"]
    after(twin, 60, times=2)
    assert posts(benches) == ["bench-7/on", "bench-7/off"]


def test_a_host_of_a_paused_pool_that_is_away_stays_on(benches: FaultyBenches) -> None:
    """An operator who works at a host paused its pool."""
    twin = left_on(benches)
    site_apply.pause(twin.on, "target/lab", paused=True)
    after(twin, 60, times=20)
    assert posts(benches) == ["bench-7/on"]
    site_apply.pause(twin.on, "target/lab", paused=False)
    after(twin, 60)
    assert posts(benches) == ["bench-7/on", "bench-7/off"]


def test_a_free_host_of_a_paused_pool_stays_on(benches: FaultyBenches) -> None:
    twin, bench = idle_since_long(benches)
    site_apply.pause(twin.on, "target/lab", paused=True)
    for _ in range(20):
        after(twin, 60)
        bench.ask()
    assert (states(twin)["bench-7"], posts(benches)) == ("free", [])
    site_apply.pause(twin.on, "target/lab", paused=False)
    after(twin, 60)
    assert posts(benches) == ["bench-7/off"]


def test_a_host_that_somebody_switched_on_by_hand_stays_on(benches: FaultyBenches) -> None:
    twin, bench = idle_since_long(benches)
    bench.ask(leaving=True)
    after(twin, 60, times=30)
    assert states(twin)["bench-7"] == "away"
    assert posts(benches) == []


def test_so_does_one_that_penstock_had_switched_off_before(benches: FaultyBenches) -> None:
    """Until its agent answers: what was ordered before says nothing of who switched it on since."""
    twin, bench = idle_since_long(benches)
    after(twin, 1)
    assert posts(benches) == ["bench-7/off"]
    bench.ask()
    bench.ask(leaving=True)
    after(twin, 60, times=40)
    assert (states(twin)["bench-7"], posts(benches)) == ("away", ["bench-7/off"])


@pytest.mark.parametrize("status", [202, 500])
@pytest.mark.parametrize("comes", [True, False])
def test_a_host_whose_controller_never_said_that_it_is_on_does_not_stay_on(
    benches: FaultyBenches, status: int, comes: bool
) -> None:
    """Its answer was lost, or it takes a while; the agent comes before, or not at all."""
    twin = site(benches, {"idle": "20m"}, names=["bench-7"])

    def acts_and_says_no(asked: Asked) -> bool:
        asked.act()
        return asked.say(status, {}, Retry_After="30")

    benches.on("POST", acts_and_says_no)
    job = waits(twin)
    cancel.cancel(twin.on, ADA, job)
    twin.run()
    if comes:
        Bench(twin).ask()
    after(twin, 31, times=21)
    assert benches.lit == ["bench-7"]
    benches.faults.clear()
    after(twin, 60, times=30)
    assert (benches.lit, posts(benches)[-1], order_of(twin).done is None) == ([], "bench-7/off", False)


@pytest.mark.parametrize("said", [True, {}, None])
def test_hosts_stay_on_without_a_time(benches: FaultyBenches, said: Any) -> None:
    twin, _ = idle_since_long(benches)
    apply(twin, text(benches, said))
    after(twin, 1)
    assert posts(benches) == []


def test_nothing_is_granted_on_a_host_before_its_power_goes(benches: FaultyBenches) -> None:
    """JOB-2: its slot is away, and its agent is not let in, until the controller says that it is off."""
    twin, bench = idle_since_long(benches)
    benches.on("POST", lambda asked: asked.say(202, {"reason": "it shuts down"}, Retry_After="60"))
    after(twin, 1)
    assert order_of(twin).is_shut
    for _ in range(3):
        assert bench.do() == "wait"
        assert states(twin)["bench-7"] == "away"
    assert Bench(twin, session="n").do() == "wait"
    assert host_of(twin).away is not None
    benches.faults.clear()
    after(twin, 60)
    assert benches.lit == []
    assert bench.do() == "wait"  # somebody switched it on by hand
    assert states(twin)["bench-7"] == "free"


def test_a_job_that_comes_before_the_power_is_gone_has_it_switched_on_and_gets_the_host_when_that_is_certain(
    benches: FaultyBenches,
) -> None:
    """JOB-2: the order to switch it off may be under way still, and takes no effect after the later one."""
    twin, bench = idle_since_long(benches, names=["bench-7"])
    benches.on("POST", lambda asked: asked.raw(500, b"<html>"))
    after(twin, 1)
    job = waits(twin)
    bench.ask()
    assert states(twin)["bench-7"] == "away"
    assert posts(benches) == ["bench-7/off", "bench-7/on"]
    assert "being switched on since" in summary(twin, job)
    benches.faults.clear()
    after(twin, 61)
    assert (benches.lit, benches.service.hosts["bench-7"]["serial"]) == (["bench-7"], 2)
    bench.ask()
    assert bench.do() == "work"
    assert bench.hello() == job


def test_a_job_that_takes_the_host_first_keeps_it(benches: FaultyBenches) -> None:
    """JOB-2, SLOT-1: of a grant and the order to switch off, one comes first."""
    twin, bench = idle_since_long(benches)
    commit, fresh = twin.store.commit, iter([True])

    def granted_first(changes: Sequence[Change]) -> bool:
        if any(isinstance(each.was, PowerOrder) for each in changes if hasattr(each, "was")) and next(fresh, False):
            waits(twin)
        return commit(changes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.store, "commit", granted_first)
        after(twin, 1)
    assert states(twin)["bench-7"] == "held"
    assert posts(benches) == []
    assert bench.do() == "work"


def test_a_resize_that_saw_the_host_before_frees_nothing(benches: FaultyBenches) -> None:
    """SLOT-1, JOB-2"""
    twin, _ = idle_since_long(benches)
    pool = twin.store.get(pool_key("target/lab"), Pool)
    assert pool
    seen, once = presence.present_hosts(twin.on, pool), iter([True])

    def stale(on: Any, of: Pool) -> frozenset[str]:
        if next(once, False):
            power.switch_idle_off(on, pool)
            return seen
        return real(on, of)

    real = presence.present_hosts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presence, "present_hosts", stale)
        resize.resize(twin.on, "target/lab")
    assert states(twin)["bench-7"] == "away"


def test_one_whose_controller_never_confirms_keeps_nobody_waiting(benches: FaultyBenches) -> None:
    """QUEUE-1: another host is switched on, once that one should have come. It is asked for as before."""
    twin, _ = idle_since_long(benches)
    benches.on("POST", lambda asked: "bench-7" in asked.path and asked.say(202, {"reason": "stuck"}, Retry_After="60"))
    after(twin, 1)
    waits(twin)
    after(twin, 60, times=9)
    assert set(posts(benches)) == {"bench-7/off", "bench-7/on"}
    after(twin, 60, times=3)
    assert posts(benches).count("bench-8/on") == 1
    before = posts(benches).count("bench-7/on")
    after(twin, 60, times=2)
    assert posts(benches).count("bench-7/on") == before + 2


def test_a_controller_that_is_down_is_asked_to_switch_off_until_it_answers(benches: FaultyBenches) -> None:
    twin, bench = idle_since_long(benches)
    benches.on("POST", lambda asked: asked.raw(500, b"<html>"))
    after(twin, 1)
    after(twin, 60, times=10)
    assert 3 <= len(posts(benches)) <= 5
    assert bench.do() == "wait"
    benches.faults.clear()
    after(twin, 600)
    assert benches.lit == []


def test_a_site_that_no_longer_switches_lets_its_hosts_in(benches: FaultyBenches) -> None:
    twin, bench = idle_since_long(benches)
    benches.on("POST", lambda asked: asked.raw(500, b"<html>"))
    after(twin, 1)
    apply(twin, text(benches, None))
    after(twin, 61)
    assert not order_of(twin).is_shut
    bench.ask()
    assert states(twin)["bench-7"] == "free"
    apply(twin, text(benches, {"idle": "10m"}, names=["bench-8"]))
    twin.store.rows[power_key("bench-7")] = replace(order_of(twin), is_shut=True, due=twin.world.now())
    after(twin, 61)
    assert not order_of(twin).is_shut, "nor does one that has no host of that name any more"


def test_once_it_switches_again_what_was_not_switched_off_before_is(benches: FaultyBenches) -> None:
    """The controller never confirmed that, so the host may be on. People are not told that it is being switched off."""
    twin, _ = idle_since_long(benches)
    benches.on("POST", lambda asked: asked.raw(500))
    after(twin, 1)
    apply(twin, text(benches, None))
    after(twin, 120)
    assert describe(order_of(twin)) is None
    benches.faults.clear()
    apply(twin, text(benches, {"idle": "10m"}))
    after(twin, 60, times=30)
    assert (benches.lit, posts(benches)[-1]) == ([], "bench-7/off")


def test_two_idle_hosts_go_in_one_sweep(benches: FaultyBenches) -> None:
    twin, _ = idle_since_long(benches)
    other = Bench(twin, "bench-8")
    other.ask()
    benches.service.hosts["bench-8"]["power"] = "on"
    twin.store.rows[power_key("bench-8")] = replace(order_of(twin), host="bench-8", serial=0)
    after(twin, 1)
    assert sorted(posts(benches)) == ["bench-7/off", "bench-8/off"]


def test_the_host_that_a_job_chooses_is_switched_on(benches: FaultyBenches) -> None:
    labelled = f'{text(benches, True)}[targets.lab.hosts.bench-8]\nlabels = {{ rack = "4" }}\n'
    twin = site(benches)
    apply(twin, labelled)
    submit(twin, ADA, target="lab", host={"labels": "rack == 4"})
    twin.run()
    assert benches.lit == ["bench-8"]


# What a host printed


def test_hosts_beyond_a_page_are_switched_too(benches: FaultyBenches, monkeypatch: pytest.MonkeyPatch) -> None:
    """QUEUE-1: of a pool's slots that are away, all are read."""
    monkeypatch.setattr(listings, "PAGE", 1)
    twin = site(benches, {"idle": "20m"})
    waiting = [waits(twin) for _ in range(3)]
    after(twin, 1)
    assert posts(benches) == ["bench-7/on", "bench-8/on", "bench-9/on"]
    for job in waiting:
        cancel.cancel(twin.on, ADA, job)
    twin.run()
    after(twin, 60, times=35)
    assert sorted(posts(benches)[3:]) == ["bench-7/off", "bench-8/off", "bench-9/off"]


def talking(benches: FaultyBenches, **more: Any) -> HostsFactory:
    given = {"url": benches.url, "secret": "env:RACK", "timeout": "1s", **more}
    made = HostsFactory(given, {**SURROUNDINGS, MAKER: "lab"})
    return made.with_context(UnitContext("bench-7", 1, {}))


def test_a_controller_tells_what_a_host_printed(benches: FaultyBenches) -> None:
    benches.service.printed["bench-7"] = "x" * 9000 + "login:\n"
    shown = talking(benches, console=True).evidence("w-1")
    assert shown
    assert shown.startswith("end of what host bench-7 printed:\nxxx")
    assert shown.endswith("xlogin:")
    assert benches.asked == [("GET", "/hosts/bench-7/console")]


def test_who_prints_nothing_or_says_nothing_of_it_has_no_console(benches: FaultyBenches) -> None:
    assert talking(benches, console=True).evidence("w-1") is None
    benches.asked.clear()
    for silent in (talking(benches), HostsFactory({}, {}), driver(benches)):
        assert silent.evidence("w-1") is None
    assert benches.asked == []
    assert HostsFactory.complaints({**GOOD, "console": True}) == []
    assert any("`hosts.console` wants true" in each for each in HostsFactory.complaints({**GOOD, "console": 1}))


def test_an_operator_sees_it_and_a_jobs_log_never(benches: FaultyBenches) -> None:
    """SEC-2: jobs of others ran on the host before."""
    benches.service.printed["bench-7"] = "a secret of eve's"
    twin = site(benches, console=True)
    job = waits(twin)
    bench = Bench(twin)
    bench.ask()
    assert bench.do() == "work"
    console.read(twin.on, bench.worker, "root")
    unit = worker_of(twin, job)
    assert any("a secret of eve's" in entry.what for entry in unit.journal.entries)
    after(twin, 60, times=15)
    assert worker_of(twin, job).session.agent == "", "it did not say hello"
    lines = told(twin, job)
    assert any("did not say hello" in line for line in lines), lines
    assert not any("secret" in line for line in lines)


def test_another_host_is_switched_on_for_who_is_behind_the_one_that_got_the_last_free_one(
    benches: FaultyBenches,
) -> None:
    """QUEUE-1: at once, not when the sweep comes."""
    twin = site(benches)
    Bench(twin).ask()
    site_apply.pause(twin.on, "target/lab", paused=True)
    for _ in range(2):
        waits(twin)
    site_apply.pause(twin.on, "target/lab", paused=False)
    twin.run()
    assert posts(benches) == ["bench-8/on"]
