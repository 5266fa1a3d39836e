"""Which parts of which host a job gets, where several share one; and whom a grant harms."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.jobfile.machine import Machine, Size
from penstock.domain.pools import grants, packing, pools
from penstock.domain.pools.choices import Choice, Placement
from penstock.domain.pools.grants import MAX_OVERTAKEN, Allocator, Stock
from penstock.domain.pools.packing import Packing, Place, Prospect
from penstock.domain.pools.pools import Claim, Need, Pool, Serves, Sharing, Slot, SlotState, line_of, pool_key
from penstock.domain.site import sharing
from penstock.domain.site.site import Target
from penstock.domain.units import power
from penstock.domain.units.power import PowerOrder
from penstock.domain.units.units import UnitLease
from penstock.kernel.rows import Check, Create, Delete, key_of
from tests.domain.helpers import NOW, claim, job, pool, slot, unit

LAB = "target/lab"
HOSTS = ("a", "b")
NAMES = tuple(f"{host}/{part}" for host in HOSTS for part in (1, 2, 3, 4))
BUSY = ("a/1", "b/1", "b/2", "b/3", "b/4")
LABELS = {"b": {"rack": "1"}}
TOGETHER = Choice(together=True, placement=Placement.PACKED)
SITE = Sharing(4, Serves.SITE)


def lab(**changes: Any) -> Pool:
    given = {"name": LAB, "names": NAMES, "limit": len(NAMES), "labels": LABELS, "hosts": True, "share": Sharing(4)}
    return pool(**{**given, **changes})


def parts(*names: str, **changes: Any) -> list[Slot]:
    return [slot(name, pool=LAB, **changes) for name in names]


def had(*names: str, owner: str) -> list[Slot]:
    return parts(*names, state=SlotState.HELD, owner=owner, unit="w-1", job="J")


def aside(*names: str) -> list[Slot]:
    """Slots of units that are in quarantine."""
    return parts(*names, state=SlotState.HELD, unit="w-2")


def wants(job: str, count: int = 1, owner: str = "ada", labels: str = "", **changes: Any) -> Claim:
    choice = replace(TOGETHER, labels=labels)
    takes, choices = ({LAB: count},), (choice,)
    line = line_of(takes, fresh=False, choices=choices, owner=owner)
    given = {"pool": LAB, "pools": (LAB,), "count": count, "takes": takes, "choices": choices, "owner": owner}
    return claim(job, **{**given, "line": line, "step": 0, **changes})


def stock(claims: Sequence[Claim], free: Sequence[str], taken: Sequence[Slot] | None = (), **changes: Any) -> Stock:
    away = [slot for slot in taken or () if pools.is_aside(slot)]
    return Stock(lab(**changes), claims, parts(*free), had=taken, aside=away)


def picked(*args: Any, **changes: Any) -> list[tuple[str, list[str]]]:
    """The jobs that are granted together, each with its parts."""
    found = grants.picks(LAB, {LAB: stock(*args, **changes)}, 100)
    return [(next(iter(each.rows.values())).job, [one.name for one in each.taken(LAB)]) for each in found]


def free_but(*taken: str) -> list[str]:
    return [name for name in NAMES if name not in taken]


@pytest.mark.parametrize(
    ("queue", "free", "taken", "given"),
    [
        ([wants("A", 2)], NAMES, [], [("A", ["a/1", "a/2"])]),
        ([wants("A", 2)], free_but("b/1"), had("b/1", owner="ada"), [("A", ["b/2", "b/3"])]),
        ([wants("A", 4)], free_but("b/1"), had("b/1", owner="ada"), [("A", ["a/1", "a/2", "a/3", "a/4"])]),
        ([wants("A", 4)], ["a/1", "a/2", "a/3", "b/1"], [], []),
        ([wants("A", labels="rack == 1")], NAMES, [], [("A", ["b/1"])]),
        ([wants("A"), wants("B"), wants("C")], NAMES, [], [("A", ["a/1"]), ("B", ["a/2"]), ("C", ["a/3"])]),
        ([wants("A"), wants("B", owner="eve")], NAMES, [], [("A", ["a/1"]), ("B", ["b/1"])]),
        ([wants("A", owner="eve")], free_but("a/1"), had("a/1", owner="ada"), [("A", ["b/1"])]),
        ([wants("A")], free_but(*BUSY), had(*BUSY, owner="ada"), [("A", ["a/2"])]),
        ([wants("A", owner="eve")], free_but(*BUSY), had(*BUSY, owner="ada"), []),
        ([wants("A", owner="")], free_but(*BUSY), had(*BUSY, owner="ada"), []),
        ([wants("A")], NAMES, None, []),
        ([wants("A", choices=())], free_but(*BUSY), had(*BUSY, owner="ada"), [("A", ["a/2"])]),  # of before they shared
        ([wants("A", owner="eve", choices=())], free_but(*BUSY), had(*BUSY, owner="ada"), []),
        ([wants("A")], free_but("a/1"), [], [("A", ["b/1"])]),  # one was seen in no state: who has it is not known
    ],
)
def test_who_gets_which_parts(
    queue: list[Claim], free: Sequence[str], taken: list[Slot] | None, given: list[tuple[str, list[str]]]
) -> None:
    assert picked(queue, free, taken) == given


def test_a_pool_that_is_not_named_yet_has_no_parts_to_miss() -> None:
    free = parts("a/1")
    assert packing.reachable(lab(names=None), free, [], "ada") == free


def test_where_anybody_shares_it_does_not_matter_who_has_the_rest() -> None:
    queue = [wants("A", owner="eve"), wants("B")]
    for taken in (had("a/1", owner="ada"), None):
        assert [job for job, _ in picked(queue, ["a/2", "a/3"], taken, share=SITE)] == ["A", "B"]


@pytest.mark.parametrize(
    ("ahead", "free", "taken", "harmed"),
    [
        ([wants("A", 4)], free_but("a/1"), "b/1", ["A"]),  # the only host that has enough
        ([wants("A", 4)], free_but("a/1", "b/1", "b/2"), "a/2", ["A"]),  # the host that it waits for
        ([wants("A", 4)], free_but("a/1", "b/1", "b/2"), "b/3", []),
        ([wants("A", 4), wants("B", 4)], free_but("a/1", "b/1", "b/2"), "b/3", ["B"]),  # each waits for another
        ([wants("A", 1)], free_but("a/1"), "a/2", []),  # it has enough all the same
        ([wants("A", 3, labels="rack == 2")], NAMES, "a/1", []),  # it never fits
        ([wants("A", 1, owner="eve")], NAMES, "a/1", []),  # there is another host
        ([wants("A", 1, owner="eve"), wants("B", 1, owner="bob")], NAMES, "a/1", ["B"]),
    ],
)
def test_whom_a_grant_harms(ahead: list[Claim], free: Sequence[str], taken: str, harmed: list[str]) -> None:
    given = stock(ahead, free, had("a/1", owner="ada") if "a/1" not in free else ())
    assert [each.job for each in given.overtaken(ahead, parts(taken), "ada")] == harmed


def test_where_anybody_shares_owners_harm_each_other_by_what_they_take_only() -> None:
    two = [wants("A"), wants("B", owner="eve")]
    for free, taken in ((["a/2", "a/3", "a/4"], had("a/1", owner="bob")), (["a/1", "a/2", "a/3"], ())):
        given = stock(two, free, taken, share=SITE)
        assert given.overtaken(two, parts(free[0]), "bob") == []
        assert given.overtaken(two, parts(*free[:2]), "bob") == [two[1]]


def test_each_owner_has_lines_of_its_own_where_hosts_are_shared() -> None:
    need = Need(0, 0, "worker", "lab", LAB, "lab", choice=TOGETHER)

    def line(owner: str, choice: Choice | None) -> str:
        plain = job(owner=owner)
        asked = replace(plain.request, needs=(replace(need, choice=choice),))
        return grants.claims(replace(plain, request=asked), 0, NOW)[0].line

    assert line("ada", TOGETHER) != line("eve", TOGETHER)
    assert line("ada", None) == line("eve", None)
    assert line("ada", Choice("rack == 1")) == line("eve", Choice("rack == 1"))


def test_who_waits_takes_what_is_left_of_a_host_from_those_behind() -> None:
    left = Packing(lab(), {"a": 1, "b": 2}, {})
    assert left.add(wants("A", 3)) == [Place("b", has_it=False)]
    assert left.add(wants("B")) == [Place("a", has_it=True)]
    assert left.add(wants("C", labels="rack == 2")) == [Place(None, has_it=False)]


def test_a_host_that_jobs_share_no_more_has_one_part() -> None:
    left = Packing(lab(share=None), {"a": 0, "b": 0}, {}, lacking={"a": 1})
    assert left.add(wants("A")) == [Place("b", has_it=False)]


def test_a_copy_is_a_trial() -> None:
    left = Packing(lab(), {"a": 1}, {})
    assert left.copy().add(wants("A"))[0].has_it
    assert left.copy().add(wants("B", owner="eve"))[0].has_it


def test_what_could_be_granted_together() -> None:
    prospect = Prospect(lab(), NAMES)
    for name, owner in (("A", "ada"), ("B", "eve")):
        mine = wants(name, 3, owner)
        assert prospect.has(mine)
        prospect.add(mine)
    assert prospect.has(wants("C", 1, "ada"))
    assert not prospect.has(wants("C", 2, "ada"))
    assert not prospect.has(wants("C", 1, "bob"))
    for changes in ({"paused": True}, {"limit": 0}, {"names": None}):
        assert grants.satisfiable([wants("A")], {LAB: stock([], NAMES, **changes)}) == [False]
    assert grants.satisfiable([wants("A", 5)], {LAB: stock([], NAMES)}) == [False]


@pytest.mark.parametrize(
    ("away", "is_met"), [(("a/1",), True), (("a/1", "b/1"), False), (("a/1", "a/2"), True), ((), True)]
)
def test_nothing_is_reserved_for_who_wants_more_of_a_host_than_jobs_bring_back(
    away: Sequence[str], is_met: bool
) -> None:
    given = replace(stock([], NAMES), aside=aside(*away))
    assert grants.satisfiable([wants("A", 4)], {LAB: given}) == [is_met]


@pytest.mark.parametrize(
    ("kept", "taken", "harmed"),
    [
        (("a/1",), "b/1", True),  # more is left of a, but never all of it
        (("a/1",), "a/2", False),
        ((), "a/2", True),
        ((), "b/1", False),
        (("a/1", "b/2"), "a/2", True),  # of neither: it waits as if nothing were aside
    ],
)
def test_who_waits_for_a_whole_host_waits_for_none_of_which_a_part_is_aside(
    kept: Sequence[str], taken: str, harmed: bool
) -> None:
    """QUEUE-2: jobs on b would else follow each other for ever."""
    others = [name for name in ("a/1", "b/2", "b/3", "b/4") if name not in kept]
    given = stock([wants("A", 4)], ["a/2", "a/3", "a/4", "b/1"], [*aside(*kept), *had(*others, owner="ada")])
    assert [each.job for each in given.overtaken(given.claims, parts(taken), "ada")] == ["A"] * harmed


def test_where_a_part_is_aside_who_wants_few_of_it_waits_there() -> None:
    given = stock(
        [wants("A", 3)], ["a/2", "a/3", "b/1"], [*aside("a/1"), *had("a/4", "b/2", "b/3", "b/4", owner="ada")]
    )
    assert [each.job for each in given.overtaken(given.claims, parts("a/2"), "ada")] == ["A"]
    assert given.overtaken(given.claims, parts("b/1"), "ada") == []


def test_nobody_starves_and_nobody_meets_another_owner() -> None:
    """QUEUE-2, SEC-2: whatever comes and ends, in any order."""
    for seed in range(40):
        dice = random.Random(seed)
        names = [f"j{number:03d}" for number in range(60)]
        coming = [wants(name, dice.choice((1, 1, 1, 2, 4)), dice.choice(("ada", "ada", "eve"))) for name in names]
        queue: list[Claim] = []
        held: dict[str, list[Slot]] = {}
        done = 0
        while done < len(names):
            if coming and dice.random() < 0.6:
                queue.append(coming.pop(0))
            elif held:
                del held[dice.choice(sorted(held))]
                done += 1
            queue = _served(queue, held)
        assert not queue


def _served(queue: list[Claim], held: dict[str, list[Slot]]) -> list[Claim]:
    """Grant what can be granted, and check what must hold after each grant."""
    while True:
        taken = [one for slots in held.values() for one in slots]
        names = {one.name for one in taken}
        found = grants.pick(LAB, {LAB: stock(queue, free_but(*names), taken)})
        if found is None:
            return queue
        mine = found.rows[LAB]
        held[mine.job] = [replace(one, state=SlotState.HELD, owner=mine.owner) for one in found.taken(LAB)]
        assert len({one.thing for one in held[mine.job]}) == 1
        assert len(held[mine.job]) == mine.count
        owners = Counter((one.thing, one.owner) for slots in held.values() for one in slots)
        assert len({thing for thing, _ in owners}) == len(owners)
        passed = {each.job for each in found.overtaken}
        queue = [
            replace(each, overtaken=each.overtaken + (each.job in passed)) for each in queue if each.job != mine.job
        ]
        assert all(each.overtaken <= MAX_OVERTAKEN for each in queue)


def test_the_commit_checks_all_other_parts_of_the_host() -> None:
    """SEC-2: the free ones, and those that are had; and the pool's row, without which none appears. Two grants in one
    commit check nothing that they write."""
    first, second = wants("A", 2), wants("B")
    given = stock([first, second], free_but("a/1"), had("a/1", owner="ada"))
    hand = Allocator({LAB: given})
    need = Need(0, 0, "worker", "lab", LAB, "lab", choice=TOGETHER, slots=2, beside=2)
    for mine, names, id in ((first, ("a/2", "a/3"), "w-2"), (second, ("a/4",), "w-3")):
        made = unit(id=id, lease=UnitLease(job=mine.job, attempt=1, order=0, pool=LAB, slot="", fence=0))
        hand.order(mine, made, replace(need, slots=len(names)), {LAB: tuple(parts(*names))})
    changes = hand.changes()
    assert len(set(map(key_of, changes))) == len(changes)
    assert {each.was.key for each in changes if isinstance(each, Check)} == {given.pool.key, given.had[0].key}  # type: ignore[index]
    assert Counter(map(type, changes)) == {Check: 2, Delete: 3, Create: 5}
    hand.committed()
    hand.order(second, replace(made, id="w-4"), replace(need, slots=1), {LAB: tuple(parts("b/1"))})
    checked = {each.was.key.sk for each in hand.changes() if isinstance(each, Check)}
    assert checked == {"pool", *(f"free#cold#b/{number}" for number in (2, 3, 4))}


def test_after_a_commit_its_parts_are_checked_as_it_wrote_them() -> None:
    hand = Allocator({LAB: stock([], NAMES, ())})
    need = Need(0, 0, "worker", "lab", LAB, "lab", choice=TOGETHER, beside=3)
    for name, id in (("a/1", "w-1"), ("a/2", "w-2")):
        hand.order(wants(id), unit(id=id), need, {LAB: tuple(parts(name))})
        last = hand.changes()
        hand.committed()
    (checked,) = [each.was for each in last if isinstance(each, Check) and each.was.key.sk == "held#a/1"]
    assert (checked.version, checked.fence) == (1, 1)  # type: ignore[attr-defined]


def test_where_anybody_shares_no_other_part_is_checked_but_that_it_is_so() -> None:
    """SEC-2: an operator who keeps owners apart from now on writes the pool's row. Seed 270."""
    hand = Allocator({LAB: stock([], NAMES, (), share=SITE)})
    hand.order(wants("A"), unit(), Need(0, 0, "worker", "lab", LAB, "lab"), {LAB: tuple(parts("a/1"))})
    assert [each.was.key for each in hand.changes() if isinstance(each, Check)] == [pool_key(LAB)]


def test_where_nobody_shares_anything_nothing_is_checked() -> None:
    hand = Allocator({LAB: stock([], NAMES, (), share=None)})
    hand.order(wants("A"), unit(), Need(0, 0, "worker", "lab", LAB, "lab"), {LAB: tuple(parts("a/1"))})
    assert not [each for each in hand.changes() if isinstance(each, Check)]


def test_how_many_rows_a_grant_has() -> None:
    need = Need(0, 0, "worker", "lab", LAB, "lab", choice=TOGETHER, slots=2, beside=6)
    plain = replace(need, choice=None, beside=0)
    assert grants.rows_of_grant([need], ()) == grants.rows_of_grant([plain], ()) + 7
    assert grants.rows_of_grant([replace(plain, choice=Choice("rack == 1"))], ()) == grants.rows_of_grant([plain], ())


def test_what_people_are_told() -> None:
    assert packing.wants(lab(), wants("A", 3)) == "3 of the 4 parts of one host, on which only jobs of its owner run"
    assert packing.wants(lab(share=SITE), wants("A")) == "1 of the 4 parts of one host"
    assert packing.wants(pool(), claim()) == ""
    assert packing.wants(lab(share=None), wants("A")) == ""
    for now, parts_ in ((lab(), 4), (lab(share=None), 1)):
        told = f"5 parts of one host, and a host has {parts_} now: it waits until the site changes"
        assert packing.wants(now, wants("A", 5)) == told


MACHINE = Machine(cpus=8, memory=Size(32 << 30), scratch=Size(100 << 30), gpu=2, arch="x86_64")


@pytest.mark.parametrize(
    ("needs", "count"),
    [
        (Machine(), 1),
        (Machine(cpus=1), 1),
        (Machine(cpus=3), 3),
        (Machine(cpus=1, memory=Size(9 << 30)), 3),
        (Machine(cpus=1, memory=Size(8 << 30)), 2),
        (Machine(gpu=1), 4),
        (Machine(cpus=2, scratch=Size(50 << 30), arch="x86_64"), 4),
        (Machine(cpus=8, memory=Size(32 << 30), gpu=2), 8),
        (Machine(gpu=0), 1),
    ],
)
def test_how_many_parts_a_job_takes(needs: Machine, count: int) -> None:
    assert sharing.parts_for(needs, MACHINE, 8) == count


def test_what_a_job_takes_of_a_host() -> None:
    target = Target("lab", "lab", machine=MACHINE, share=Sharing(8))
    plain = Need(0, 0, "worker", "lab", LAB, "lab", choice=Choice("rack == 1"))
    found = sharing.of_shared(plain, target, Machine(cpus=3))
    assert (found.slots, found.beside, found.choice) == (3, 5, replace(TOGETHER, labels="rack == 1"))
    anybody = sharing.of_shared(plain, replace(target, share=Sharing(8, Serves.SITE)), Machine())
    assert (anybody.slots, anybody.beside) == (1, 0)
    mine = sharing.portion(target, 3)
    assert (mine.cpus, mine.memory) == (3.0, 12 << 30)


ON = PowerOrder(host="a", is_on=True, since=NOW, due=NOW + timedelta(minutes=1))


@pytest.mark.parametrize(
    ("queue", "there", "taken", "orders", "chosen"),
    [
        ([wants("A")], [], [], {}, ["a"]),
        ([wants("A", 2), wants("B", 2)], [], [], {}, ["a"]),
        ([wants("A", 3), wants("B", 3)], [], [], {}, ["a", "b"]),
        ([wants("A"), wants("B", owner="eve")], [], [], {}, ["a", "b"]),
        ([wants("A")], ["c"], had("c/1", owner="ada"), {}, []),
        ([wants("A")], ["c"], had("c/1", owner="eve"), {}, ["a"]),
        ([wants("A", 4)], [], [], {"a": ON}, []),
        ([wants("A", 4), wants("B", 1)], [], [], {"a": ON}, ["b"]),
        ([wants("A", labels="rack == 1")], [], [], {}, ["b"]),
        ([wants("A", labels="rack == 2")], [], [], {}, []),
        ([wants("A")], [], None, {}, ["a"]),
    ],
)
def test_which_hosts_are_switched_on(
    queue: list[Claim], there: list[str], taken: list[Slot] | None, orders: dict[str, PowerOrder], chosen: list[str]
) -> None:
    away = [host for host in HOSTS if host not in there]
    assert power.chosen(queue, stock(queue, (), taken), there, away, orders, NOW) == chosen
