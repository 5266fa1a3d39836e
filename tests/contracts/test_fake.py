"""The fake cloud does each thing wrong that it has a knob for, and its driver stays within what a driver may do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.kernel.errors import (
    DriverError,
    Misconfigured,
    NoCapacity,
    QuotaReached,
    RateLimited,
    Unknown,
    Unsatisfiable,
)
from penstock.ports import CleaningDriver, Driver, EvidenceDriver, NotYet, Order, Ready
from penstock.testing.fake import Ailment, Birth, Cloud, FakeDriver, Faults, Machine

KNOWN = (RateLimited, QuotaReached, NoCapacity, Unknown, Unsatisfiable, Misconfigured)
START = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = {"types": [{"name": "big", "price": 0.4}, {"name": "small", "price": 0.3}, {"name": "huge", "price": 9}]}
ALL = Faults(
    create=0.2, destroy=0.2, clean=0.2, list=0.2, unsatisfiable=0.1, slow=0.2, lost=0.2, twice=0.2, lingers=0.3,
    stale=0.3, lag=5, unseen=2, ghost=5, create_every=0.5, list_every=0.5, quota=8, short=("fake/type/small",),
)  # fmt: skip


class Rig:
    """A cloud whose clock is moved by hand, and a driver in it."""

    def __init__(self, faults: Faults | None = None, settings: Mapping[str, Any] | None = None, seed: int = 0) -> None:
        self.now = START
        self.cloud = Cloud(lambda: self.now, Random(seed), faults or Faults())
        self.driver = FakeDriver(settings or {}, {MAKER: "aws"}, self.cloud)

    def create(self, number: int = 1, **how: Any) -> Ready | NotYet:
        return self.driver.create(Order(f"w-{number}", "linux", "1", url="http://here", key="k", **how))

    def destroy(self, number: int = 1) -> CleanProof | NotYet:
        return self.driver.destroy(f"w-{number}", self.now)

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def test_it_is_a_driver() -> None:
    driver: Driver = Rig().driver
    assert isinstance(driver, CleaningDriver)
    assert isinstance(driver, EvidenceDriver)


def _do(rig: Rig, dice: Random) -> None:
    """One thing that the core may do."""
    number = dice.randrange(60)
    rig.pass_time(dice.choice((0.1, 1, 10)))
    call: Callable[[], Any] = dice.choice(
        (lambda: rig.create(number), lambda: rig.create(number), lambda: rig.destroy(number),
         lambda: list(rig.driver.list()), lambda: rig.driver.clean(f"w-{number}", rig.now))
    )  # fmt: skip
    call()


@pytest.mark.parametrize("seed", range(10))
def test_whatever_goes_wrong_is_an_error_of_the_closed_set(seed: int) -> None:
    rig, dice = Rig(ALL, TYPES, seed), Random(seed)
    met: set[type[DriverError]] = set()
    for _ in range(1500):
        try:
            _do(rig, dice)
        except KNOWN as error:
            met.add(type(error))
    assert met == set(KNOWN)
    assert rig.cloud.most == ALL.quota
    assert {name for name, count in rig.cloud.met.items() if not count} <= {"taken back"}


@pytest.mark.parametrize("seed", range(5))
def test_what_was_proved_gone_never_comes_back(seed: int) -> None:
    """UNIT-1, JOB-2: with client tokens, whatever else goes wrong, a late create makes no second machine."""
    rig, dice, gone = Rig(ALL, TYPES, seed), Random(seed), set[str]()
    for _ in range(1500):
        number = dice.randrange(30)
        rig.pass_time(dice.choice((0.1, 1, 10)))
        try:
            if dice.random() < 0.6:
                rig.create(number)
            elif rig.cloud.was_made(f"w-{number}"):
                proof = rig.destroy(number)
                if (
                    isinstance(proof, CleanProof) and not proof.lag
                ):  # else it may come too early: domain/units/visibility.py
                    gone.add(f"w-{number}")
        except KNOWN:
            pass
        assert not gone & {machine.unit for machine in rig.cloud.machines.values()}
    assert gone


def test_the_same_seed_is_the_same_cloud() -> None:
    told = []
    for _ in range(2):
        rig, dice = Rig(ALL, TYPES, 7), Random(7)
        for _ in range(300):
            with suppress(*KNOWN):
                _do(rig, dice)
        told.append((dict(rig.cloud.met), dict(rig.cloud.calls), sorted(rig.cloud.machines)))
    assert told[0] == told[1]


def test_a_lost_answer_leaves_a_machine_that_the_next_call_finds() -> None:
    rig = Rig(Faults(lost=1.0))
    with pytest.raises(Unknown):
        rig.create()
    assert isinstance(rig.create(), Ready)
    assert list(rig.driver.list()) == ["w-1"]
    assert len(rig.cloud.machines) == 1


def test_two_machines_for_one_call_are_one_unit_and_both_go() -> None:
    rig = Rig(Faults(twice=1.0))
    rig.create()
    assert len(rig.cloud.machines) == 2
    assert list(rig.driver.list()) == ["w-1"]
    assert isinstance(rig.destroy(), CleanProof)
    assert not rig.cloud.machines


def test_a_machine_that_does_not_die_at_first_has_no_proof_until_it_does() -> None:
    rig = Rig(Faults(lingers=1.0, linger=60))
    rig.create()
    assert isinstance(rig.destroy(), NotYet)
    rig.pass_time(59)
    assert isinstance(rig.destroy(), NotYet)
    rig.pass_time(1)
    assert isinstance(rig.destroy(), CleanProof)


def test_lists_miss_what_is_new_and_show_what_is_gone() -> None:
    rig = Rig(Faults(lag=10, ghost=10))
    rig.create()
    assert list(rig.driver.list()) == []
    rig.pass_time(10)
    assert list(rig.driver.list()) == ["w-1"]
    rig.destroy()
    assert list(rig.driver.list()) == ["w-1"]
    rig.pass_time(10)
    assert list(rig.driver.list()) == []


def test_calls_that_come_too_soon_get_the_time_to_wait() -> None:
    rig = Rig(Faults(create_every=2, list_every=2))
    rig.create(1)
    with pytest.raises(RateLimited) as told:
        rig.create(2)
    assert (told.value.seconds, told.value.calls) == (2, "create")
    rig.driver.list()
    with pytest.raises(RateLimited):
        rig.driver.list()
    rig.pass_time(2)
    assert isinstance(rig.create(2), Ready)


def test_a_quota_counts_every_machine_until_it_is_gone() -> None:
    rig = Rig(Faults(quota=2, twice=1.0))
    rig.create(1)
    with pytest.raises(QuotaReached) as told:
        rig.create(2)
    assert [each.is_quota for each in told.value.shortages] == [True]
    rig.destroy(1)
    assert isinstance(rig.create(2), Ready)


@pytest.mark.parametrize(
    ("short", "made"),
    [
        ((), "small spot in a"),
        (("fake/spot/small/a",), "small spot in b"),
        (("fake/zone/a",), "small spot in b"),
        (("fake/type/small",), "big spot in a"),
        (("fake/market/spot",), "small on-demand in a"),
        (("fake/market/spot", "fake/type/small", "fake/zone/a"), "big on-demand in b"),
    ],
)
def test_a_shortage_leads_to_the_next_way_and_is_told(short: tuple[str, ...], made: str) -> None:
    settings = {**TYPES, "market": "spot-first", "zones": ["a", "b"], "price_band": 1.5}
    rig = Rig(Faults(short=short), settings)
    done = rig.create()
    assert isinstance(done, Ready)
    (machine,) = rig.cloud.machines.values()
    assert str(machine.offer) == made
    assert {each.scope for each in done.shortages} == set(short)
    assert set(done.proves or ()) == set(machine.offer.scopes)
    again = Rig(Faults(short=short), settings)
    assert isinstance(again.create(avoid=frozenset(short)), Ready)
    assert not again.cloud.met["no capacity"]


def test_the_quota_is_shared_and_no_other_shortage_is() -> None:
    rig = Rig(Faults(quota=0, short=("fake/all",)))
    with pytest.raises(QuotaReached) as told:
        Rig(Faults(quota=0)).create()
    assert [rig.driver.shares_scope(each.scope) for each in told.value.shortages] == [True]
    assert not rig.driver.shares_scope("fake/all")


def test_what_was_just_made_may_not_be_seen_and_who_looks_says_so() -> None:
    rig = Rig(Faults(unseen=40.5))
    rig.create()
    proof = rig.destroy()
    assert isinstance(proof, CleanProof)
    assert (proof.lag, len(rig.cloud.machines)) == (41, 1)
    rig.now += timedelta(seconds=41)
    seen = rig.destroy()
    assert isinstance(seen, CleanProof)
    assert (seen.lag, len(rig.cloud.machines)) == (0, 0)


def test_when_no_way_is_left_all_are_told() -> None:
    rig = Rig(Faults(short=("fake/all",)), TYPES)
    with pytest.raises(NoCapacity) as told:
        rig.create()
    assert [each.scope for each in told.value.shortages] == ["fake/all"]
    with pytest.raises(NoCapacity, match="too short of late"):
        rig.create(avoid=frozenset({"fake/all"}))


def test_without_client_tokens_a_late_create_makes_another() -> None:
    for forgets in (False, True):
        rig = Rig(Faults(forgets=forgets))
        rig.create()
        rig.destroy()
        rig.create()
        assert len(rig.cloud.machines) == forgets


def _ill(ailment: Ailment) -> tuple[Rig, Machine]:
    def ailing(birth: Birth, dice: Random) -> Ailment:
        assert birth.number == 0
        assert birth.now == START
        return ailment

    rig = Rig(Faults(ailing=ailing))
    rig.create()
    (machine,) = rig.cloud.machines.values()
    return rig, machine


@pytest.mark.parametrize(
    ("ailment", "works"),
    [
        (Ailment(), (True, True, True)),
        (Ailment(boot=10), (False, True, True)),
        (Ailment(is_mute=True), (False, False, False)),
        (Ailment(breaks=15), (True, True, False)),
        (Ailment(reclaimed=15), (True, True, False)),
    ],
)
def test_what_a_machine_suffers_from(ailment: Ailment, works: tuple[bool, ...]) -> None:
    _, machine = _ill(ailment)
    assert tuple(machine.works(START + timedelta(seconds=age)) for age in (0, 10, 20)) == works


def test_a_machine_that_is_taken_back_says_so_before_and_is_gone_then() -> None:
    rig, machine = _ill(Ailment(reclaimed=300, notice=120))
    told: list[Machine] = []
    rig.cloud.gone = told.append
    assert not machine.says(START + timedelta(seconds=179))
    assert machine.says(START + timedelta(seconds=180)) == "it is taken back"
    rig.pass_time(300)
    assert list(rig.driver.list()) == []
    assert told == [machine]
    assert rig.driver.evidence("w-1") is None


def test_a_machine_says_that_it_is_broken_and_its_network_may_be_cut() -> None:
    _, machine = _ill(Ailment(reports=5, cut=(10, 20)))
    at = [START + timedelta(seconds=age) for age in (4, 5, 10, 20)]
    assert [machine.says(now) for now in at] == ["", *["it is broken"] * 3]
    assert [machine.reaches(now) for now in at] == [True, True, False, True]
    machine.cut_until = at[1]
    assert not machine.reaches(at[0])


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"types": []}, "empty"),
        ({"types": [{"price": 1}]}, "name"),
        ({"types": [{"name": "a", "price": 0}]}, "more than 0"),
        ({"zones": "a"}, "list"),
        ({"market": "futures"}, "spot-first"),
        ({"price_band": True}, "number"),
        ({"no_such": 1}, "no_such"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], part: str) -> None:
    assert any(part in complaint for complaint in FakeDriver.complaints(settings))
    with pytest.raises(Misconfigured):
        Rig(settings=settings)
    assert FakeDriver.complaints(TYPES) == []
    assert FakeDriver.objections({"a": 1})


def test_faults_can_be_turned_off_at_any_time() -> None:
    rig = Rig(replace(ALL, create=1.0))
    with pytest.raises(DriverError):
        rig.create()
    rig.cloud.faults = Faults()
    assert isinstance(rig.create(), Ready)
