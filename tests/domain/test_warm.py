"""What is kept for the next lease, and what makes room for others. [SLOT-1] [QUEUE-1] [UNIT-2]"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.pools import capacity, grants, pools
from penstock.domain.pools.grants import Allocator, Stock
from penstock.domain.pools.pools import Claim, Need, Serves, Slot, SlotState, Warm
from penstock.domain.site.site import Maker, ResourceType, Site, Target
from penstock.domain.units import reuse, units
from penstock.domain.units.units import CleanProof, Unit, UnitKind, UnitState
from penstock.kernel.rows import Create, Delete, Replace
from tests.domain.helpers import MINUTE, NOW, SECOND, claim, job, pool, slot, unit
from tests.rows import changed

HELD, IDLE = SlotState.HELD, SlotState.IDLE
TARGET, QUOTA = "target/linux", "quota/vcpus"
TAKES = {TARGET: 1, QUOTA: 4}
LEASE = timedelta(minutes=2)
PROOF = CleanProof(by="hand", time=NOW, checked="it")


def warm(name: str = "1", unit: str = "w-1", **changes: object) -> Slot:
    return slot(name, pool=TARGET, unit=unit, since=NOW, **changes)


def idle_slot(unit: str = "w-1", count: int = 4, **changes: object) -> Slot:
    return slot(unit, IDLE, **{"pool": QUOTA, "unit": unit, "count": count, "since": NOW, **changes})


def claims(job: str = "A", leases: int = 1, **changes: object) -> dict[str, Claim]:
    takes = (TAKES,) * leases
    return {
        name: claim(job, pool=name, count=count * leases, pools=(TARGET, QUOTA), takes=takes, **changes)
        for name, count in TAKES.items()
    }


def stocks(
    wanted: dict[str, Claim],
    *,
    cold: int = 0,
    warm: tuple[Slot, ...] = (),
    used: int = 8,
    idle: tuple[Slot, ...] = (),
    paused: bool = False,
) -> dict[str, Stock]:
    free = [slot(f"c{number}", pool=TARGET) for number in range(cold)]
    vcpus = pool(name=QUOTA, is_amount=True, limit=8, used=used, paused=paused)
    return {
        TARGET: Stock(pool(name=TARGET, warm=Warm()), [wanted[TARGET]], free, warm),
        QUOTA: Stock(vcpus, [wanted[QUOTA]], idle=idle),
    }


def test_a_warm_unit_brings_all_that_it_takes() -> None:
    given = stocks(claims(), warm=(warm(),))
    found = grants.pick(TARGET, given)
    assert found
    assert grants.cold_demand(found, given) == {TARGET: 0, QUOTA: 0}


@pytest.mark.parametrize(("used", "granted"), [(4, True), (5, False)])
def test_a_step_of_two_takes_what_the_warm_unit_does_not_bring(used: int, granted: bool) -> None:
    """SLOT-2: one lease is warm, the other cold; the quota is needed for the cold one, and the step is whole or not."""
    given = stocks(claims(leases=2), cold=1, warm=(warm(),), used=used)
    assert bool(grants.pick(TARGET, given)) is granted


def test_a_warm_unit_of_a_paused_quota_is_not_handed_over() -> None:
    assert grants.pick(TARGET, stocks(claims(), warm=(warm(),), paused=True)) is None


@pytest.mark.parametrize(
    ("cold", "used", "idle_", "evicted"),
    [
        (1, 8, (idle_slot("w-1"), idle_slot("w-2")), ["w-1"]),
        (1, 8, (idle_slot("w-1"), idle_slot("w-2", since=NOW - SECOND)), ["w-2"]),
        (1, 8, (idle_slot("w-1", 2), idle_slot("w-2", 2)), ["w-1", "w-2"]),
        (1, 8, (idle_slot("w-1", leaving=True), idle_slot("w-2")), []),
        (1, 8, (idle_slot("w-1", 2, leaving=True), idle_slot("w-2", 2)), ["w-2"]),
        (1, 8, (idle_slot("w-1", 2),), []),
        (1, 4, (idle_slot("w-1"),), []),
        (0, 8, (idle_slot("w-1"),), []),
    ],
)
def test_those_make_room_that_were_idle_for_longest_and_no_more_than_needed(
    cold: int, used: int, idle_: tuple[Slot, ...], evicted: list[str]
) -> None:
    assert grants.units_to_evict(TARGET, stocks(claims(), cold=cold, used=used, idle=idle_))[1] == evicted


def test_a_unit_that_makes_room_in_one_pool_makes_it_in_the_next_before_another_does() -> None:
    """Also where another was idle for longer: one unit is destroyed, and not two."""
    cores, memory = "quota/cores", "quota/memory"
    takes = ({cores: 1, memory: 1},)
    rows = {name: claim("A", pool=name, pools=(cores, memory), takes=takes) for name in (cores, memory)}
    older = idle_slot("w-2", 1, pool=memory, since=NOW - SECOND)
    of = {cores: [idle_slot("w-1", 1, pool=cores)], memory: [older, idle_slot("w-1", 1, pool=memory)]}
    given = {
        name: Stock(pool(name=name, is_amount=True, limit=2, used=2), [rows[name]], idle=of[name])
        for name in (cores, memory)
    }
    assert grants.units_to_evict(cores, given)[1] == ["w-1"]


def test_nobody_makes_room_in_a_paused_pool() -> None:
    assert grants.units_to_evict(TARGET, stocks(claims(), cold=1, idle=(idle_slot(),), paused=True))[1] == []


def test_a_warm_unit_makes_room_on_its_own_slot_for_a_type_that_uses_the_slot_alone() -> None:
    """A slot that another type takes besides carries no unit of its own: a warm one goes first."""
    own, bench = "resource/rack", "resource/bench"
    takes = ({own: 1, bench: 1},)
    rack = claim("A", pool=own, pools=(own, bench), takes=takes)
    used = claim("A", pool=bench, pools=(own, bench), takes=takes)
    given = {
        own: Stock(pool(name=own), [rack], [slot("r", pool=own)]),
        bench: Stock(pool(name=bench), [used], (), [slot("b", unit="r-1", since=NOW)]),
    }
    assert grants.pick(own, given) is None
    assert grants.units_to_evict(own, given)[1] == ["r-1"]


def test_a_warm_unit_that_the_claim_itself_gets_makes_no_room_for_it() -> None:
    assert grants.units_to_evict(TARGET, stocks(claims(leases=2), warm=(warm(),), used=4))[1] == []


def test_nobody_makes_room_for_who_stands_too_far_back_in_another_queue() -> None:
    """It could not be granted even then: whoever is before it there comes first."""
    given = stocks(claims("Z"), cold=1, idle=(idle_slot(),))
    others = [claim(f"A{number:02d}", pool=QUOTA, pools=(QUOTA,)) for number in range(grants.WINDOW)]
    given[QUOTA] = replace(given[QUOTA], claims=others)
    assert grants.units_to_evict(TARGET, given)[1] == []


def test_who_must_not_be_passed_keeps_others_from_making_room() -> None:
    wanted = claims("B")
    given = stocks(wanted, cold=1, idle=(idle_slot(),))
    ahead = claim("A", pool=TARGET, count=3, overtaken=grants.MAX_OVERTAKEN, pools=(TARGET,), takes=({TARGET: 3},))
    given[TARGET] = replace(given[TARGET], pool=pool(name=TARGET, limit=3), claims=[ahead, wanted[TARGET]])
    assert grants.units_to_evict(TARGET, given)[1] == []


NEED = Need(0, 0, "worker", "linux", TARGET, "here", uses={QUOTA: 4})


def test_a_hand_takes_from_all_pools_of_a_claim_in_one_commit() -> None:
    given = stocks(claims(), cold=1, used=0)
    hand = Allocator(given)
    made = hand.order(claims()[TARGET], unit(pool=TARGET, order=0), NEED)
    assert (made.lease.slot, made.lease.fence, made.lease.also, made.cleaning.is_kept) == (
        "c0",
        1,
        ((QUOTA, "w-1"),),
        True,
    )
    before, after = given[QUOTA].pool, replace(given[QUOTA].pool, used=4)
    assert Replace(before, after) in hand.changes()
    assert [change.row.name for change in hand.changes() if isinstance(change, Create) and isinstance(change.row, Slot)]


def test_a_hand_gives_a_warm_unit_to_its_next_lease() -> None:
    """SLOT-3: the slot's fence grows, and the unit goes with it."""
    own, other = warm(fence=3), idle_slot()
    mine = claims("B", attempt=2)[TARGET]
    hand = Allocator(stocks(claims("B"), warm=(own,)))
    assert hand.warm(mine, TARGET) is own
    assert hand.warm(mine, TARGET) is None
    was = unit(state=UnitState.IDLE, until=NOW, proof=PROOF)
    given = hand.over(mine, was, own, [other], 0, NOW)
    assert (given.lease.job, given.lease.attempt, given.lease.fence, given.lease.leases, given.state) == (
        "B",
        2,
        4,
        2,
        UnitState.CREATING,
    )
    moved = [change for change in hand.changes() if isinstance(change, Create)]
    assert {(one.row.pool, one.row.state, one.row.job) for one in moved} == {(TARGET, HELD, "B"), (QUOTA, HELD, "B")}
    assert Replace(was, given) in hand.changes()
    assert {change.was.name for change in hand.changes() if isinstance(change, Delete)} == {"1", "w-1"}


def test_what_a_hand_read_is_stale_if_one_slot_is_free_and_a_warm_units() -> None:
    """SLOT-1: a unit took it between the two reads, and came to rest."""
    mine, was = claims("B")[TARGET], unit(state=UnitState.IDLE, until=NOW, proof=PROOF)
    hand = Allocator({TARGET: Stock(pool(name=TARGET), [mine], [slot("1", pool=TARGET)], (warm("1"),))})
    hand.over(mine, was, warm("1"), [], 0, NOW)
    assert not hand.is_stale
    hand.order(mine, unit(id="w-2"), replace(NEED, uses={}))
    assert hand.is_stale
    hand.committed()
    assert not hand.is_stale


def test_a_slot_is_kept_idle_handed_over_left_and_given_back() -> None:
    held = slot(state=HELD, job="A", attempt=1, order=0, unit="w-1", since=NOW, fence=2)
    own, other = (pools.keep_warm(held, Warm(), is_own=is_own, now=NOW + SECOND) for is_own in (True, False))
    assert (own.state, own.key.sk, own.job, own.fence) == (SlotState.FREE, "free#warm#1", None, 2)
    assert (other.state, other.since) == (IDLE, NOW + SECOND)
    assert pools.hand_over(other, claim("B"), 0, NOW).job == "B"
    left = pools.mark_leaving(own)
    assert (left.state, left.leaving, left.unit) == (IDLE, True, "w-1")
    assert pools.give_back(left) == slot(fence=2)


def test_what_is_idle_counts_as_free_for_who_looks_ahead() -> None:
    vcpus = pool(name=QUOTA, is_amount=True, limit=8, used=6)
    assert pools.as_free(vcpus, [], [idle_slot(count=4)])[0].used == 2
    benches = pool()
    seen = pools.as_free(benches, [slot("2", HELD)], [slot("1", IDLE, unit="r-1"), slot("3", IDLE, withdrawn=True)])
    assert seen == (benches, [slot("2", HELD), slot("1")])


@pytest.mark.parametrize(
    ("limit", "most", "slots", "gone"),
    [
        (2, 2, [slot("1", unit="w-1"), slot("2", unit="w-2")], ""),
        (2, 1, [slot("1", unit="w-1"), slot("2", unit="w-2")], "2"),
        (2, 0, [slot("1", unit="w-1"), slot("2")], "1"),
        (1, 2, [slot("1", HELD), slot("2", unit="w-2")], "2"),
        (1, 2, [slot("1"), slot("2", unit="w-2")], ""),
        (0, 0, [slot("1", IDLE, unit="w-1", withdrawn=True)], "1"),
        (0, 0, [slot("1", IDLE, unit="w-1", withdrawn=True, leaving=True)], ""),
        (1, 0, [slot("1", IDLE, unit="w-1")], ""),
        (0, 0, [slot("1", HELD, unit="w-1", withdrawn=True)], ""),
    ],
)
def test_a_resize_destroys_warm_units_that_are_too_many(limit: int, most: int, slots: list[Slot], gone: str) -> None:
    resized = pool(limit=limit, warm=Warm(most=most) if most else None)
    assert " ".join(one.name for one in capacity.surplus(resized, slots)) == gone
    moved = {change.was.name for step in capacity.fit(resized, slots) for change in step if isinstance(change, Delete)}
    assert not moved & {one.name for one in slots if one.unit and one.state is SlotState.FREE}


def test_an_idle_slot_is_withdrawn_and_taken_back_like_a_held_one() -> None:
    (step,) = capacity.fit(pool(limit=0), [slot("1", IDLE, unit="w-1")])
    assert step == (Replace(slot("1", IDLE, unit="w-1"), slot("1", IDLE, unit="w-1", withdrawn=True)),)
    (back,) = capacity.fit(pool(limit=1), [slot("1", IDLE, unit="w-1", withdrawn=True)])
    assert back == (Replace(slot("1", IDLE, unit="w-1", withdrawn=True), slot("1", IDLE, unit="w-1")),)


READY = unit(state=UnitState.READY, is_kept=True, token_hash="hash", born=NOW - MINUTE, sealed="x")


@pytest.mark.parametrize(
    ("was", "well", "state"),
    [
        (READY, True, UnitState.CLEANING),
        (READY, False, UnitState.DIRTY),
        (replace(READY, cleaning=replace(READY.cleaning, is_kept=False)), True, UnitState.DIRTY),
        (replace(READY, state=UnitState.CREATING), True, UnitState.DIRTY),
        (replace(READY, state=UnitState.IDLE), True, UnitState.IDLE),
    ],
)
def test_only_what_was_ready_and_ended_well_is_cleaned_for_the_next(was: Unit, well: bool, state: UnitState) -> None:
    after = units.end_lease(was, "its lease ended", NOW, ended_well=well)
    assert after.state is state
    if state is UnitState.CLEANING:
        assert (after.session.token_hash, after.session.past_hash, after.access.sealed) == (None, "hash", "")
        assert after.due == NOW + units.CLEAN_WITHIN
        resource = units.end_lease(replace(was, is_a=UnitKind.RESOURCE), "", NOW, ended_well=True)
        assert resource.due == NOW + units.STEP_WITHIN


CLEANING = units.end_lease(READY, "its lease ended", NOW, ended_well=True)


@pytest.mark.parametrize(
    ("changes", "others", "why"),
    [
        ({}, 0, None),
        ({}, 1, "1 are kept already"),
        ({"leases": 100}, 0, "it had 100 leases"),
        ({"leases": 99}, 0, None),
        ({"born": NOW - timedelta(hours=24)}, 0, "it is too old"),
        ({"born": None, "since": NOW - timedelta(hours=24)}, 0, "it is too old"),
    ],
)
def test_why_a_unit_is_not_kept(changes: dict[str, object], others: int, why: str | None) -> None:
    assert reuse.why_not_kept(changed(CLEANING, **changes), pool(warm=Warm()), others, 0, NOW) == why
    assert reuse.why_not_kept(CLEANING, pool(), 0, 0, NOW) == "0 are kept already"


@pytest.mark.parametrize(("serves", "owned", "leases", "is_kept"), [
    (Serves.OWNER, 1, 1, True),
    (Serves.OWNER, 2, 1, False),
    (Serves.OWNER, 2, 0, True),
    (Serves.SITE, 2, 1, True),
])  # fmt: skip
def test_units_of_owners_leave_room_for_those_that_serve_anybody(
    serves: Serves, owned: int, leases: int, is_kept: bool
) -> None:
    """Of four, two are to be made ahead; a unit that had no lease yet is one of those."""
    four, at_rest = Warm(least=2, most=4, serves=serves), changed(CLEANING, leases=leases)
    why = "2 are kept already that serve one owner; the others are to serve anybody"
    assert reuse.why_not_kept(at_rest, pool(warm=four), owned, owned, NOW) == (None if is_kept else why)


@pytest.mark.parametrize(("warm_", "is_kept"), [
    (Warm(), True),
    (Warm(least=1, most=1), False),
    (Warm(least=1, most=1, serves=Serves.SITE), True),
    (None, False),
])  # fmt: skip
def test_a_unit_that_could_not_stay_is_not_cleaned_for_it(warm_: Warm | None, is_kept: bool) -> None:
    given = {TARGET: Stock(pool(name=TARGET, warm=warm_), [], [slot("1", pool=TARGET)], [warm("2")])}
    hand, mine = Allocator(given), claims("B")[TARGET]
    made = hand.order(mine, unit(), replace(NEED, uses={}))
    lent = hand.over(mine, unit(state=UnitState.IDLE, is_kept=True), warm("2"), [], 0, NOW)
    assert (made.cleaning.is_kept, lent.cleaning.is_kept) == (is_kept, is_kept)


def test_a_warm_unit_serves_its_owner_and_nobody_else() -> None:
    """SEC-2: what a job left behind on a machine, another's job does not meet."""
    adas = warm(owner="ada")
    for owner, gets in (("ada", True), ("eve", False), ("", False)):
        wanted = claims(owner=owner)
        given = stocks(wanted, warm=(adas,))
        assert bool(grants.pick(TARGET, given)) is gets
        assert Allocator(given).warm(wanted[TARGET], TARGET) == (adas if gets else None)
        assert (grants.pick_at_once(list(wanted.values()), given) is not None) is gets


def test_who_has_a_unit_of_their_own_leaves_the_others_to_anybody() -> None:
    mine, anybodys, others = warm("3", "w-3", owner="ada"), warm("2", "w-2"), warm("1", "w-1", owner="eve")
    wanted = claims(owner="ada")
    given = stocks(wanted, warm=(others, anybodys, mine))
    hand = Allocator(given)
    assert [hand.warm(wanted[TARGET], TARGET) for _ in range(3)] == [mine, anybodys, None]
    found = grants.pick(TARGET, given)
    assert found
    assert grants.after([found], given)[TARGET].warm == [others, anybodys]


def test_a_unit_that_serves_somebody_else_makes_room() -> None:
    wanted = claims(owner="eve")
    assert grants.units_to_evict(TARGET, stocks(wanted, used=4, warm=(warm(owner="ada"),)))[1] == ["w-1"]
    assert grants.units_to_evict(TARGET, stocks(wanted, used=4, warm=(warm(owner="eve"),)))[1] == []


def test_a_slot_says_whom_its_unit_serves() -> None:
    taken = pools.take(slot(pool=TARGET), claim("A", owner="ada"), 0, "w-1", NOW)
    over = pools.hand_over(idle_slot(), claim("B", owner="eve"), 0, NOW)
    assert (taken.owner, over.owner) == ("ada", "eve")
    assert pools.keep_warm(taken, Warm(), is_own=True, now=NOW).owner == "ada"
    assert pools.keep_warm(taken, Warm(serves=Serves.SITE), is_own=True, now=NOW).owner == ""
    assert pools.give_back(taken).owner == ""


def test_a_canary_is_the_sites() -> None:
    """Its machine serves anybody after it, and it gets none that served somebody."""
    assert {each.owner for each in grants.claims(job(canary="target/u"), 0, NOW)} == {""}
    assert {each.owner for each in grants.claims(job(), 0, NOW)} == {"ada"}


def test_a_kept_worker_is_due_when_it_must_be_heard_and_a_resource_when_it_was_idle_too_long() -> None:
    kept = reuse.keep_warm(CLEANING, PROOF, Warm(idle=600), NOW, LEASE)
    assert (kept.state, kept.cleaning.proof, kept.due, kept.cleaning.until) == (
        UnitState.IDLE, PROOF, NOW + LEASE, NOW + timedelta(seconds=600),
    )  # fmt: skip
    assert reuse.renew(kept, NOW + timedelta(seconds=590), LEASE).due == kept.cleaning.until
    resource = reuse.keep_warm(replace(CLEANING, is_a=UnitKind.RESOURCE), PROOF, Warm(idle=600), NOW, LEASE)
    assert resource.due == resource.cleaning.until
    old = reuse.keep_warm(CLEANING, PROOF, Warm(idle=600, life=90), NOW, LEASE)
    assert old.cleaning.until == NOW + timedelta(seconds=30)
    assert (
        reuse.keep_warm(
            replace(CLEANING, creation=replace(CLEANING.creation, born=None)), PROOF, Warm(life=90), NOW, LEASE
        ).cleaning.until
        == NOW + 90 * SECOND
    )
    assert reuse.renew(replace(kept, cleaning=replace(kept.cleaning, until=None)), NOW, LEASE).due == NOW


@pytest.mark.parametrize(("is_a", "made"), [(UnitKind.WORKER, NOW), (UnitKind.RESOURCE, None)])
def test_a_unit_that_is_lent_again_is_made_already_only_if_it_is_a_worker(is_a: UnitKind, made: object) -> None:
    lent = reuse.lend(unit(state=UnitState.IDLE, is_a=is_a, proof=PROOF, until=NOW), "B", 2, 0, 5, NOW)
    assert (lent.creation.made, lent.cleaning.proof, lent.lease.fence, lent.due) == (
        made,
        None,
        5,
        NOW + units.STEP_WITHIN,
    )


def test_the_lease_of_a_kept_unit_is_over_until_it_is_lent_again() -> None:
    """Also when it is destroyed after that: its job's lease was released before."""
    kept = reuse.keep_warm(CLEANING, PROOF, Warm(idle=600), NOW, LEASE)
    assert units.ends_lease(CLEANING)
    assert [units.ends_lease(each) for each in (kept, units.give_up(kept, "it is too old", NOW))] == [False, False]
    lent = units.end_lease(reuse.lend(kept, "B", 2, 0, 5, NOW), "it ended", NOW)
    assert units.ends_lease(lent)


def test_only_what_nobody_leases_is_given_up() -> None:
    assert units.give_up(CLEANING, "it is too old", NOW).state is UnitState.DIRTY
    with pytest.raises(ValueError, match="is ready, not cleaning or idle"):
        units.give_up(READY, "", NOW)


def test_a_site_knows_who_makes_what() -> None:
    here, spring = Maker("here", "process"), Maker("spring", "lock")
    site = Site(factories={"here": here}, wells={"spring": spring})
    assert site.maker(Target("linux", "here")) is here
    assert site.maker(ResourceType("bench", "spring", 1)) is spring
