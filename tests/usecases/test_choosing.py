"""Jobs and leases choose among named things: by name, by labels, for themselves, beside others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.commands import AcquireLease
from penstock.domain.jobs.jobs import State
from penstock.domain.pools import grants
from penstock.domain.pools.choices import Choice
from penstock.domain.pools.grants import Pick
from penstock.domain.pools.pools import Claim, Pool, Slot, SlotState, Warm, collection, pool_key
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.rows import Create, Key, Replace
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import leases, submit_lease
from penstock.usecases.pools import scheduler, serving
from penstock.usecases.site import apply
from penstock.usecases.workers import agents
from tests.usecases.exact import lease_of, lease_of_or_none, site, unit_of
from tests.usecases.races import before_the_next_commit, before_the_next_read
from tests.usecases.steps import TOKEN, finish, hello, job_of, slots, submit, sweep

ADA = User(name="ada", created=START, version=1)
BENCH = "resource/bench"

THINGS: dict[str, Any] = {
    "bench-1": {"labels": {"board": "gimlet", "rack": "3"}, "address": "10.0.0.1"},
    "bench-2": {"labels": {"board": "gimlet", "rack": "4"}, "address": "10.0.0.2"},
    "bench-3": {"labels": {"board": "sidecar", "rack": "4"}, "address": "10.0.0.3"},
}


def text(things: Mapping[str, Any] = THINGS, **more: Any) -> str:
    return site_toml(
        targets={"linux": {"limit": 9}, "default": "linux"},
        wells={"locks": "lock"},
        resources={"bench": {"well": "locks", "things": dict(things), **more}},
    )


@pytest.fixture
def lab() -> Twin:
    return site(text())


@pytest.fixture
def shared() -> Twin:
    return site(text(leases=2))


def ask(twin: Twin, **choice: Any) -> str:
    return queued(twin, resources={"bench": choice})


def queued(twin: Twin, **what: Any) -> str:
    job = submit(twin, ADA, **what)
    twin.run()
    return job


def assert_all_is_free(twin: Twin) -> None:
    taken = [slots(twin, BENCH, state) for state in (SlotState.HELD, SlotState.IDLE, SlotState.OFF)]
    assert taken == [[], [], []]


def got(twin: Twin, job: str, order: int = 1) -> str | None:
    found = lease_of_or_none(twin, job, order)
    return found.slot if found and found.fence else None


def end(twin: Twin, job: str) -> None:
    hello(twin, job)
    finish(twin, job)
    twin.run()


def test_a_job_gets_a_thing_that_fits(lab: Twin) -> None:
    asked = [
        ask(lab, labels="board == gimlet && rack != 4"),
        ask(lab, thing="bench-3"),
        ask(lab, labels="board == gimlet"),
    ]
    assert [got(lab, job) for job in asked] == ["bench-1", "bench-3", "bench-2"]
    for job in asked:
        end(lab, job)
    assert_all_is_free(lab)


def test_a_job_is_told_the_labels_and_the_rest_of_its_thing(lab: Twin) -> None:
    job = ask(lab, thing="bench-2")
    hello(lab, job)
    found = agents.resources(lab.on, agents.authenticate(lab.on, job, TOKEN)).resources["bench"]
    assert found.metadata == {
        "name": "bench-2", "type": "bench", "board": "gimlet", "rack": "4", "address": "10.0.0.2"
    }  # fmt: skip
    assert sorted(found.public) == ["board", "name", "rack", "type"]


def test_a_claim_that_only_one_thing_serves_neither_blocks_the_others_nor_starves(lab: Twin) -> None:
    """It waits for bench-3; the others come and go, and it gets bench-3 as soon as that is free."""
    has = ask(lab, thing="bench-3")
    waits = ask(lab, thing="bench-3")
    for _ in range(20):
        other = ask(lab, labels="board == gimlet")
        assert got(lab, other) in ("bench-1", "bench-2")
        end(lab, other)
    anybody = [ask(lab, labels="name != none") for _ in range(3)]
    assert [got(lab, job) for job in (waits, *anybody)] == [None, "bench-1", "bench-2", None]
    end(lab, has)
    assert got(lab, waits) == "bench-3"
    end(lab, anybody[0])
    assert got(lab, anybody[2]) == "bench-1"


def test_those_who_take_any_leave_what_others_choose(lab: Twin) -> None:
    """Three wait while a stop lasts: the first two of them take any, and the third chooses what these could take."""
    apply.pause(lab.on, BENCH, paused=True)
    asked = [queued(lab, resources=["bench"]) for _ in range(2)] + [ask(lab, thing="bench-1")]
    apply.pause(lab.on, BENCH, paused=False)
    lab.run()
    assert [got(lab, job) for job in asked] == ["bench-2", "bench-3", "bench-1"]


def test_several_at_once_are_numbered_and_granted_together(lab: Twin) -> None:
    has = ask(lab, thing="bench-2")
    two = ask(lab, labels="board == gimlet", count=2)
    assert [lease_of(lab, two, order).name for order in (1, 2)] == ["bench.1", "bench.2"]
    assert got(lab, two) is None
    end(lab, has)
    assert {got(lab, two, order) for order in (1, 2)} == {"bench-1", "bench-2"}


def test_a_thing_for_oneself_has_no_other_lease(shared: Twin) -> None:
    beside = ask(shared, labels="rack == 3")
    alone = ask(shared, labels="board == gimlet", exclusive=True)
    assert [got(shared, job) for job in (beside, alone)] == ["bench-1/1", "bench-2/1"]
    assert [job_of(shared, job).request.needs[0].slots for job in (beside, alone)] == [1, 2]
    assert sorted(slots(shared, BENCH, SlotState.HELD)) == ["bench-1/1", "bench-2/1", "bench-2/2"]
    again = ask(shared, thing="bench-2")
    second = ask(shared, labels="board == gimlet", exclusive=True)
    assert [got(shared, job) for job in (again, second)] == [None, None]
    end(shared, beside)
    assert [got(shared, job) for job in (again, second)] == [None, "bench-1/1"]
    end(shared, alone)
    assert got(shared, again) in ("bench-2/1", "bench-2/2")
    for job in (again, second):
        end(shared, job)
    assert_all_is_free(shared)


def test_who_wants_a_thing_for_itself_is_overtaken_so_often_and_then_has_its_turn(shared: Twin) -> None:
    """QUEUE-2: two who share each bench are always there, and one ends after the other."""
    here = [ask(shared, thing=thing) for thing in THINGS for _ in range(2)]
    alone = ask(shared, exclusive=True)
    passed = 0
    for _ in range(200):
        if got(shared, alone):
            break
        here.append(queued(shared, resources=["bench"]))
        oldest = next(job for job in here if got(shared, job) and job_of(shared, job).state is not State.SETTLED)
        end(shared, oldest)
        passed += 1
    assert got(shared, alone), passed
    assert passed <= 6 + 2 * 8  # those that were there, and as many as may overtake it, with what they leave


@pytest.mark.parametrize(("placement", "expected"), [("packed", 1), ("least-loaded", 3)])
def test_leases_are_packed_or_spread(shared: Twin, placement: str, expected: int) -> None:
    asked = [ask(shared, placement=placement) for _ in range(2 if expected == 1 else 3)]
    assert len({str(got(shared, job)).partition("/")[0] for job in asked}) == expected


def test_a_thing_that_gets_another_slot_meanwhile_is_not_given_as_a_whole(
    shared: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SLOT-1: the site gives it a third lease between the look and the grant, and somebody takes that."""
    taken: list[str] = []

    def more() -> None:
        apply.apply(shared.on, "root", text(leases=3), "site.toml")
        shared.run()
        monkeypatch.setattr(shared.world, "draw", lambda _: 2)  # the first free slot that it looks at is the third
        taken.append(submit_lease.acquire(shared.on, ADA, AcquireLease({"bench": {"thing": "bench-1"}}), None))

    before_the_next_commit(shared, more)
    alone = ask(shared, thing="bench-1", exclusive=True)
    shared.run()
    assert [got(shared, taken[0]), got(shared, alone)] == ["bench-1/3", None]


def test_who_wants_a_thing_for_itself_gets_it_although_the_pool_s_row_is_written_meanwhile(shared: Twin) -> None:
    """QUEUE-1: for a reason that changes nothing of its slots, so nobody has it served after that."""
    has = ask(shared, thing="bench-1")
    alone = ask(shared, thing="bench-1", exclusive=True)

    def write() -> None:
        pool = shared.store.get(pool_key(BENCH), Pool)
        assert pool
        assert shared.store.commit([Replace(pool, pool)])

    before_the_next_read(shared, "held#", write)
    end(shared, has)
    assert got(shared, alone) == "bench-1/1"


def test_a_row_that_is_written_at_every_read_is_not_read_for_ever(
    shared: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who wants the thing for itself gets it with the next sweep then."""
    has = ask(shared, thing="bench-1")
    alone = ask(shared, thing="bench-1", exclusive=True)
    find, read = shared.store.find, list[str]()

    def racing(pk: str, begins: str, *more: Any, **how: Any) -> Any:
        if begins == "held#":
            read.append(begins)
            pool = shared.store.get(pool_key(BENCH), Pool)
            assert pool
            assert shared.store.commit([Replace(pool, pool)])
        return find(pk, begins, *more, **how)

    with monkeypatch.context() as patched:
        patched.setattr(shared.store, "find", racing)
        end(shared, has)
    assert got(shared, alone) is None
    assert len(read) == scheduler.READINGS
    sweep(shared)
    assert got(shared, alone) == "bench-1/1"


def test_a_thing_that_loses_a_slot_is_not_given_as_a_whole_before_that_is_back() -> None:
    twin = site(text(leases=3))
    has = [ask(twin, thing="bench-1") for _ in range(3)]
    apply.apply(twin.on, "root", text(leases=2), "site.toml")
    twin.run()
    last = next(job for job in has if got(twin, job) == "bench-1/3")
    alone = ask(twin, thing="bench-1", exclusive=True)
    for job in has:
        if job != last:
            end(twin, job)
    assert got(twin, alone) is None
    end(twin, last)
    assert got(twin, alone) == "bench-1/1"


def test_a_lease_without_a_job_chooses_too(lab: Twin) -> None:
    lease = submit_lease.acquire(lab.on, ADA, AcquireLease({"bench": {"labels": "board == sidecar"}}), None)
    lab.run()
    assert got(lab, lease) == "bench-3"
    leases.release(lab.on, ADA, lease)
    lab.run()
    assert_all_is_free(lab)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"thing": "bench-9"}, "no bench fits name == bench-9: there are bench-1, bench-2, bench-3"),
        ({"labels": "board == gimlet && rack == 5"}, "board: gimlet, sidecar; rack: 3, 4"),
        ({"labels": "board == sidecar", "count": 2}, "the job wants 2 of bench, and not enough of them fit"),
        ({"labels": "board ="}, "some values of the request cannot be"),
        ({"count": 4}, "the job wants 4 of bench and there are 3"),
    ],
)
def test_what_nothing_fits_is_refused_at_once(lab: Twin, choice: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused) as caught:
        ask(lab, **choice)
    assert said in str(caught.value)


def test_nobody_chooses_among_things_without_names(lab: Twin) -> None:
    plain = site(site_toml(targets={"default": {"limit": 1}}, wells={"l": "lock"}, resources={"bench": {"well": "l"}}))
    with pytest.raises(Refused, match="bench has no named things among which a job could choose"):
        ask(plain, labels="rack == 4")


def test_labels_that_change_let_those_go_on_who_wait_for_them(lab: Twin) -> None:
    for thing in ("bench-1", "bench-2"):
        ask(lab, thing=thing)
    waits = ask(lab, labels="board == gimlet")
    assert got(lab, waits) is None
    changed = {**THINGS, "bench-3": {"labels": {"board": "gimlet"}}}
    said = apply.apply(lab.on, "root", text(changed), "site.toml")
    assert any("bench-3 (board sidecar, rack 4)" in each and "bench-3 (board gimlet)" in each for each in said)
    lab.run()
    assert got(lab, waits) == "bench-3"


def test_a_kept_unit_goes_to_who_chooses_its_thing_and_makes_room_for_who_wants_it_whole() -> None:
    twin = site(
        site_toml(
            targets={"linux": {"limit": 9}, "default": "linux"},
            wells={"cloud": "hand"},
            resources={"bench": {"well": "cloud", "things": THINGS, "leases": 2, "warm": {"max": 6}}},
        )
    )
    first = ask(twin, thing="bench-2")
    twin.run()
    unit = lease_of(twin, first, 1).unit
    end(twin, first)
    other = ask(twin, thing="bench-1")
    again = ask(twin, thing="bench-2")
    assert lease_of(twin, other, 1).unit != unit
    assert lease_of(twin, again, 1).unit == unit
    end(twin, again)
    alone = ask(twin, thing="bench-2", exclusive=True)
    for _ in range(5):
        twin.run()
        sweep(twin)
    assert got(twin, alone) == "bench-2/1"
    assert lease_of(twin, alone, 1).unit != unit
    end(twin, alone)
    assert not slots(twin, BENCH, SlotState.IDLE)


def test_what_is_chosen_in_two_steps_is_that_of_each() -> None:
    jigs = {"jig-1": {"labels": {"rack": "1"}}, "jig-2": {"labels": {"rack": "2"}}}
    kinds = {"bench": {"well": "locks", "things": THINGS}, "jig": {"well": "locks", "things": jigs}}
    twin = site(site_toml(targets={"default": {"limit": 1}}, wells={"locks": "lock"}, resources=kinds))
    job = queued(twin, resources={"bench": {"thing": "bench-3"}, "jig": {"thing": "jig-2"}})
    assert [got(twin, job, order) for order in (1, 2)] == ["bench-3", "jig-2"]


@pytest.mark.parametrize("page", [1, 2, 3, 4, 5])
def test_who_chooses_gets_the_last_of_many_things(lab: Twin, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    """More may be free, or had, than one request reads."""
    monkeypatch.setattr(limits, "THINGS_SLOTS", page)
    for name in sorted(THINGS, reverse=True):
        for alone in (True, False):
            job = ask(lab, thing=name, exclusive=alone)
            assert got(lab, job) == name
            end(lab, job)
    held = [ask(lab, thing=name) for name in sorted(THINGS)[:-1]]
    last = ask(lab, thing=max(THINGS), exclusive=True)
    assert [got(lab, job) for job in (*held, last)] == sorted(THINGS)


ROW = Pool(name=BENCH, limit=4, names=("b1/1", "b1/2"), version=7)
HAD = [Slot(pool=BENCH, name="b2/1", state=SlotState.HELD)]


@pytest.mark.parametrize(
    ("before", "pool", "had", "known"),
    [
        (ROW, ROW, HAD, True),
        (None, ROW, HAD, False),
        (replace(ROW, version=6), ROW, HAD, False),
        (ROW, replace(ROW, due=START), HAD, False),  # its slots are about to change
    ],
)
def test_what_was_read_tells_which_things_are_free_as_a_whole_or_not(
    before: Pool | None, pool: Pool, had: list[Slot], known: bool
) -> None:
    assert scheduler._known_whole(before, pool, had) == (had if known else None)


def test_slots_are_read_between_two_readings_of_their_row_where_somebody_wants_a_thing_for_itself(
    lab: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SLOT-1; where nobody does, the row is read once, after them."""
    found: list[str] = []
    get, find = lab.store.get, lab.store.find

    def getting(key: Key, kind: type[Any]) -> Any:
        found.extend(["row"] if kind is Pool else [])
        return get(key, kind)

    def finding(pk: str, prefix: str, kind: type[Any], **how: Any) -> Any:
        found.extend([prefix] if kind is Slot else [])
        return find(pk, prefix, kind, **how)

    job = {text: ask(lab, thing="bench-1", exclusive=text == "alone") for text in ("alone", "beside")}
    monkeypatch.setattr(lab.store, "get", getting)
    monkeypatch.setattr(lab.store, "find", finding)
    for text, reads in (("beside", ["free#cold#", "row"]), ("alone", ["row", "free#cold#", "held#", "row"])):
        claims = grants.claims(job_of(lab, job[text]), 1, lab.world.now())
        found.clear()
        assert scheduler.read_stock(lab.on, BENCH, claims)
        assert found == reads


def test_among_all_kept_units_who_chooses_finds_the_one_that_fits(lab: Twin) -> None:
    names = [f"b{number:03d}" for number in range(150)]
    for name in names:
        row = Slot(pool="resource/many", name=name, state=SlotState.FREE, unit=f"r-{name}")
        assert lab.store.commit([Create(row)])
    plain = Claim(
        pool="resource/many", job="A", attempt=1, step=1, count=1, pools=("resource/many",), priority=0, since=START,
        takes=({"resource/many": 1},),
    )  # fmt: skip
    chooses = replace(plain, choices=(Choice("name == b149"),))
    found = [scheduler._warm(lab.on, "resource/many", Warm(most=150), [one]) for one in (plain, chooses)]
    assert list(map(len, found)) == [scheduler.WARM, 150]


def test_a_grant_has_room_for_all_slots_of_a_thing() -> None:
    """The claim counts two, and the thing has three by now: a row for each key of a slot, and the pool's is checked."""
    whole = Choice("name == b1", exclusive=True)
    slots = tuple(Slot(pool=BENCH, name=f"b1/{lease}", state=SlotState.FREE) for lease in (1, 2, 3))
    asked = Claim(
        pool=BENCH, job="A", attempt=1, step=1, count=2, pools=(BENCH,), priority=0, since=START,
        takes=({BENCH: 2},), choices=(whole,),
    )  # fmt: skip
    assert serving.Turn(Pick({BENCH: asked}, (), {BENCH: {0: slots}}), None, ()).rows == 1 + 2 + 2 * 3 + 1


def test_a_kept_unit_keeps_its_slot_where_another_unit_takes_one_beside_its_own() -> None:
    """SLOT-1: somebody chooses a database, so it matters which slots are taken. Seed 1349."""
    database = {"well": "spring", "leases": 2, "things": {"db-1": {"labels": {"rack": "1"}}}}
    twin = site(
        site_toml(
            targets={"default": {"limit": 4}},
            wells={"spring": "hand"},
            resources={
                "bench": {"well": "spring", "limit": 1, "uses": {"database": 1}},
                "database": {**database, "warm": {"max": 1, "idle": "1h"}},
            },
        )
    )
    end(twin, queued(twin, resources=["database"]))
    (kept,) = twin.store.find(collection("resource/database"), "free#warm#", Slot)
    job = queued(twin, resources={"bench": {}, "database": {"labels": "rack == 1"}})
    assert lease_of(twin, job, 2).unit == kept.unit
    assert unit_of(twin, job, 1).lease.also != (("resource/database", kept.name),)
