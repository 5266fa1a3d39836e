"""One call at a time serves a pool, and grants several claims by one commit. [QUEUE-1] [QUEUE-2] [SLOT-2]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.jobs.jobs import Job
from penstock.domain.pools.grants import Pick
from penstock.domain.pools.pools import Claim, Lease, LeaseState, Pool, Slot, SlotState, lease_key
from penstock.domain.units.units import Unit, UnitState
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.rows import Change, Delete
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel
from penstock.usecases.pools import resize, scheduler, serving
from penstock.usecases.site import apply
from penstock.usecases.units import retire
from penstock.usecases.users import users
from tests.domain.helpers import claim, unit
from tests.usecases.exact import lease_of, put, sent, site
from tests.usecases.steps import finish, hello, job_of, live, submit, told
from tests.usecases.warm import SITE as WARM
from tests.usecases.warm import unit_of, worker_at_rest

pytestmark = pytest.mark.usefixtures("by_flow")

WAITS = Lease(
    job="A", attempt=1, order=0, step=0, name="", type="default", pool="target/default",
    state=LeaseState.WAITING, token="", since=START,
)  # fmt: skip

SITE = site_toml(
    targets={"default": {"limit": 1}, "other": {"limit": 1, "uses": {"cores": 1}}, "third": {"uses": {"cores": 1}}},
    wells={"spring": "hand"},
    resources={"bench": {"well": "spring", "limit": 1, "privilege": "resource.bench"}},
    quotas={"cores": 9},
)


@pytest.fixture
def twin() -> Twin:
    return site(SITE)


def grants(twin: Twin) -> list[int]:
    """How many claims each commit from here on grants, or drops; those that are refused count with a minus."""
    commit, found = twin.store.commit, list[int]()

    def counting(changes: Sequence[Change]) -> bool:
        count = sum(isinstance(change, Delete) and isinstance(change.was, Claim) for change in changes)
        done = commit(changes)
        found.extend([count if done else -count] if count else [])
        return done

    twin.store.commit = counting  # type: ignore[method-assign]
    return found


def waiting(twin: Twin, ada: User, count: int, **ask: Any) -> list[str]:
    """Jobs that wait for a target without slots."""
    apply.resize(twin.on, f"target/{ask.get('target', 'default')}", 0)
    made = [submit(twin, ada, **ask) for _ in range(count)]
    twin.run()
    assert not any(live(twin, job) for job in made)
    return made


def test_several_are_granted_by_one_commit_and_told_of_it(twin: Twin, ada: User) -> None:
    jobs = waiting(twin, ada, 5)
    found = grants(twin)
    twin.pass_time(9)
    apply.resize(twin.on, "target/default", 5)
    twin.run()
    assert found == [5]
    for job in jobs:
        (unit,) = live(twin, job)
        assert unit.id in twin.drivers.hand.made
        line = f"target/default: got slot {unit.lease.slot} (unit {unit.id}) after 9 s"
        assert [each for each in told(twin, job) if "got slot" in each] == [line]


def test_what_follows_is_left_to_another_call_that_may_come_late(twin: Twin, ada: User) -> None:
    """By then a unit may be gone."""
    first, second, third = waiting(twin, ada, 3)
    apply.resize(twin.on, "target/default", 3)
    while not live(twin, third):
        assert twin.deliver()
    ((_, message),) = [each for each in sent(twin) if each[1].get("do") == "granted"]
    units = [live(twin, job)[0] for job in (first, second, third)]
    assert message == {"do": "granted", "units": [unit.id for unit in units], "warm": []}
    del twin.store.rows[units[1].key]
    serving.granted(twin.on, [*message["units"], "w-none"], message["warm"])
    assert [each[1]["unit"] for each in sent(twin)] == [units[0].id, units[2].id]


def test_a_claim_waited_until_it_was_granted_however_late_that_is_told(twin: Twin, ada: User) -> None:
    first, second, third = waiting(twin, ada, 3)
    twin.pass_time(9)
    apply.resize(twin.on, "target/default", 3)
    while not live(twin, third):
        assert twin.deliver()
    ((_, message),) = [each for each in sent(twin) if each[1].get("do") == "granted"]
    units = [live(twin, job)[0] for job in (first, second, third)]
    put(twin, units[0], since=units[0].since + timedelta(seconds=50))
    serving.granted(twin.on, message["units"], message["warm"])
    assert any(line.endswith("after 9 s") for line in told(twin, first))


def test_a_unit_that_another_lease_has_by_now_is_nobodys_news(twin: Twin, ada: User) -> None:
    """A grant is told of later, by another call: its lease may be over then, and stand for another unit."""
    job = submit(twin, ada)
    twin.run()
    (unit,) = (row for row in twin.store.rows.values() if isinstance(row, Unit))
    held = twin.store.get(lease_key(job, 1, 0), Lease)
    assert held
    put(twin, held, unit="w-other")
    before = dict(twin.store.rows)
    serving.granted(twin.on, [unit.id], [])
    assert twin.store.rows == before


def test_after_a_lost_race_one_is_granted_and_then_the_others(twin: Twin, ada: User) -> None:
    """Whoever else serves takes less of what was read."""
    jobs = waiting(twin, ada, 4)
    commit = twin.store.commit

    def refused(changes: Sequence[Change]) -> bool:
        if sum(isinstance(change, Delete) and isinstance(change.was, Claim) for change in changes) < 4:
            return commit(changes)
        return False

    apply.resize(twin.on, "target/default", 4)
    twin.store.commit = refused  # type: ignore[method-assign]
    counted, paused = grants(twin), list[int]()
    twin.world.pause = paused.append  # type: ignore[method-assign]
    twin.run()
    assert all(live(twin, job) for job in jobs)
    assert counted == [-4, 1, 3]
    assert paused == [0, 0], "after the resize moved slots, and after the lost grant; no other"


def test_a_commit_has_no_more_rows_than_there_is_room_for(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = waiting(twin, ada, 7)
    commit, most = twin.store.commit, list[int]()
    monkeypatch.setattr(limits, "TRANSACTION_ITEMS", 20)
    twin.store.commit = lambda changes: [most.append(len(changes)), commit(changes)][1]  # type: ignore[method-assign]
    found = grants(twin)
    apply.resize(twin.on, "target/default", 7)
    twin.run()
    assert all(live(twin, job) for job in jobs)
    assert max(most) <= 20
    assert found == [4, 3], "each takes five rows"


def test_who_needs_a_privilege_is_granted_alone(twin: Twin) -> None:
    """SEC-2: the commit checks the owner's row, and no two checks of one row stand in a commit."""
    eve = users.create(twin.on, "eve", ["resource.bench"], "root")
    apply.resize(twin.on, "resource/bench", 0)
    jobs = [submit(twin, eve, resources=["bench"]) for _ in range(3)]
    twin.run()
    found = grants(twin)
    apply.resize(twin.on, "resource/bench", 3)
    while not all(live(twin, job) for job in jobs):
        assert twin.deliver()
    assert found == [1, 1, 1]


@pytest.mark.parametrize("gone", ["job", "lease"])
def test_a_claim_that_no_longer_waits_leaves_its_queue_and_stops_nobody(twin: Twin, ada: User, gone: str) -> None:
    jobs = waiting(twin, ada, 4)
    if gone == "job":
        del twin.store.rows[job_of(twin, jobs[1]).key]
    else:
        put(twin, lease_of(twin, jobs[1], 0), state=LeaseState.RELEASED)
    found = grants(twin)
    apply.resize(twin.on, "target/default", 4)
    twin.run()
    assert found == [1, 1, 2]
    assert [bool(live(twin, job)) for job in jobs] == [True, False, True, True]


def test_a_job_that_cannot_be_read_among_others_keeps_its_place(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row is of a newer version, perhaps: it is not gone."""
    (job,) = waiting(twin, ada, 1)
    apply.resize(twin.on, "target/default", 1)
    rows_at = twin.store.rows_at
    monkeypatch.setattr(
        twin.store, "rows_at", lambda keys: {k: row for k, row in rows_at(keys).items() if not isinstance(row, Job)}
    )
    twin.run()
    assert live(twin, job)


def test_the_first_of_a_line_asks_to_be_served_and_no_other(twin: Twin, ada: User) -> None:
    """Whatever lets the first go on serves those behind it."""
    apply.resize(twin.on, "target/other", 0)
    twin.run()
    for asks in (True, False):
        submit(twin, ada, target="other")
        asked = []
        while twin.queues.messages:
            asked += [message for _, _, message in twin.queues.messages if message.get("do") == "serve"]
            twin.deliver()
        expected = {"do": "serve", "pools": ["target/other", "quota/cores"], "group": "quota/cores"}
        assert asked[:1] == ([expected] if asks else [])


def test_who_comes_before_others_of_another_line_has_their_queues_served(twin: Twin, ada: User) -> None:
    """QUEUE-1: what was reserved for them may be for nobody now."""
    for name in ("other", "third"):
        apply.pause(twin.on, f"target/{name}", paused=True)
    for target, priority in (("other", 9), ("third", 1)):
        submit(twin, ada, target=target, priority=priority)
    twin.run()
    submit(twin, ada, target="other", priority=5)
    asked = []
    while twin.queues.messages:
        asked += [message["pools"] for _, _, message in twin.queues.messages if message.get("do") == "serve"]
        twin.deliver()
    assert asked[0] == ["target/other", "quota/cores"]


def test_a_release_asks_to_be_served_only_if_somebody_waits(twin: Twin, ada: User) -> None:
    first, second = (submit(twin, ada) for _ in range(2))
    twin.run()
    hello(twin, first)
    serve, asked = twin.queues.serve, list[tuple[Sequence[str], str]]()

    def noting(names: Sequence[str], group: str) -> None:
        asked.append((names, group))
        serve(names, group)

    twin.queues.serve = noting  # type: ignore[method-assign]
    finish(twin, first)
    assert asked == [(["target/default"], "target/default")]
    hello(twin, second)
    finish(twin, second)
    assert len(asked) == 1


def test_a_pool_that_takes_many_rounds_is_left_to_another_call(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "AT_ONCE", 2)
    monkeypatch.setattr(serving, "ROUNDS", 1)
    jobs = waiting(twin, ada, 5)
    apply.resize(twin.on, "target/default", 5)
    twin.run()
    assert all(live(twin, job) for job in jobs)


def test_a_cancelled_claim_makes_room_for_those_behind_it(twin: Twin, ada: User) -> None:
    """QUEUE-1: they had asked for nothing, because it stood before them."""
    holder, first, second = (submit(twin, ada) for _ in range(3))
    twin.run()
    cancel.cancel(twin.on, ada, first)
    twin.run()
    hello(twin, holder)
    finish(twin, holder)
    assert [unit.state for unit in live(twin, second)] == [UnitState.CREATING]
    assert [row for row in twin.store.rows.values() if isinstance(row, Unit) and row.lease.job == first] == []


def test_those_that_are_all_that_there_is_to_grant_are_read_once(twin: Twin, ada: User) -> None:
    """Who gives something back after that asks anew."""
    waiting(twin, ada, 3)
    apply.resize(twin.on, "target/default", 2)
    while not any(message.get("do") == "serve" for _, _, message in twin.queues.messages):
        assert twin.deliver()
    read, reading = list[str](), scheduler.read_stocks
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "read_stocks", lambda on, name: [read.append(name), reading(on, name)][1])
        serving.serve(twin.on, ["target/default"])
    assert read == ["target/default"]


def test_a_warm_unit_that_does_not_fit_costs_a_waiting_claim_nothing(ada: User) -> None:
    """It is destroyed, and the claim keeps its place until it is."""
    twin = site(WARM)
    agent = worker_at_rest(twin, ada)
    apply.pause(twin.on, "target/linux", paused=True)
    job = submit(twin, ada, target="linux")
    twin.run()
    put(twin, unit_of(twin, agent.worker), maker="other")
    apply.pause(twin.on, "target/linux", paused=False)
    twin.run()
    (given,) = live(twin, job)
    assert given.id != agent.worker


@pytest.mark.parametrize(("takes", "rows"), [({"target/a": 1}, 5), ({"target/a": 2, "quota/b": 99}, 10)])
def test_a_grant_has_room_for_all_its_rows(takes: dict[str, int], rows: int) -> None:
    """A share of an amount is one row, or two if it moves, however much it is."""
    claims = {name: claim("A", pool=name, takes=(takes,)) for name in takes}
    assert serving.Turn(Pick(claims, ()), None, ()).rows == rows


def test_those_that_are_too_many_for_one_commit_are_granted_one_by_one(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JOB-1, SLOT-2: whatever was counted, no job ends for others, and nothing is taken that no lease names."""
    monkeypatch.setattr(serving.Turn, "rows", 1)
    jobs = waiting(twin, ada, 12)
    monkeypatch.setattr(limits, "TRANSACTION_ITEMS", 5 * 11)
    found = grants(twin)
    apply.resize(twin.on, "target/default", 12)
    twin.run()
    assert found == [1, 11]
    units = [row for row in twin.store.rows.values() if isinstance(row, Unit)]
    named = [twin.store.get(lease_key(job, 1, 0), Lease) for job in jobs]
    assert sorted(unit.id for unit in units) == sorted(str(lease.unit) for lease in named if lease)
    assert not any(job_of(twin, job).is_settled for job in jobs)


def test_one_that_wants_many_kept_units_makes_all_of_them_go(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    """QUEUE-1: 150 are kept of a quota, and one claim wants 120 of it."""
    big, quota = "resource/big", "quota/q"
    both = {"pools": (big, quota), "takes": ({big: 1, quota: 120},), "line": "big"}
    kept = [Slot(pool=quota, name=f"r-{at:03}", state=SlotState.IDLE, unit=f"r-{at:03}") for at in range(150)]
    rows = [
        Pool(name=big, limit=1), Slot(pool=big, name="1", state=SlotState.FREE), claim("A", pool=big, **both),
        Pool(name=quota, limit=150, used=150, is_amount=True), *kept, claim("A", pool=quota, count=120, **both),
    ]  # fmt: skip
    for row in rows:
        twin.store.rows[row.key] = replace(row, version=1)
    gone: list[str] = []
    monkeypatch.setattr(retire, "retire", lambda on, unit, why: [gone.append(unit), True][1])
    serving.evict(twin.on, big, scheduler.read_stocks(twin.on, big))
    assert len(gone) == 120
    for slot in kept[-100:]:
        twin.store.rows[slot.key] = replace(slot, leaving=True, version=1)
    gone.clear()
    serving.evict(twin.on, big, scheduler.read_stocks(twin.on, big))
    assert len(gone) == 20, "the others are leaving"


@pytest.mark.parametrize("tries", [serving.FAILED - 1, serving.FAILED])
def test_another_unit_makes_room_for_one_that_cannot_be_destroyed(
    twin: Twin, monkeypatch: pytest.MonkeyPatch, tries: int
) -> None:
    """QUEUE-1: two are kept of a quota of 2, and one of them is leaving, however long."""
    mine, quota = "resource/c", "quota/q"
    both = {"pools": (mine, quota), "takes": ({mine: 1, quota: 1},), "line": "c"}
    kept = [
        Slot(pool=quota, name=name, state=SlotState.IDLE, unit=name, leaving=name == "r-1") for name in ("r-1", "r-2")
    ]
    for row in (
        Pool(name=mine, limit=1), Slot(pool=mine, name="1", state=SlotState.FREE), claim("A", pool=mine, **both),
        Pool(name=quota, limit=2, used=2, is_amount=True), *kept, claim("A", pool=quota, **both),
        unit(id="r-1", state=UnitState.DIRTY, tries=tries),
    ):  # fmt: skip
        twin.store.rows[row.key] = replace(row, version=1)
    gone: list[str] = []
    monkeypatch.setattr(retire, "retire", lambda on, unit, why: [gone.append(unit), True][1])
    serving.evict(twin.on, mine, scheduler.read_stocks(twin.on, mine))
    assert gone == (["r-2"] if tries >= serving.FAILED else [])


def test_a_unit_that_is_not_made_yet_makes_room_however_often_that_failed(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QUEUE-1: it goes like any other that is kept. Only one that is leaving already may fail to go."""
    mine, quota = "resource/c", "quota/q"
    both = {"pools": (mine, quota), "takes": ({mine: 1, quota: 1},), "line": "c"}
    for row in (
        Pool(name=mine, limit=1), Slot(pool=mine, name="1", state=SlotState.FREE), claim("A", pool=mine, **both),
        Pool(name=quota, limit=1, used=1, is_amount=True), claim("A", pool=quota, **both),
        Slot(pool=quota, name="r-1", state=SlotState.IDLE, unit="r-1"),
        unit(id="r-1", state=UnitState.CREATING, tries=serving.FAILED),
    ):  # fmt: skip
        twin.store.rows[row.key] = replace(row, version=1)
    gone: list[str] = []
    monkeypatch.setattr(retire, "retire", lambda on, unit, why: [gone.append(unit), True][1])
    serving.evict(twin.on, mine, scheduler.read_stocks(twin.on, mine))
    assert gone == ["r-1"]


def test_those_who_overtake_are_alone_in_their_commit() -> None:
    other = claim("B")
    assert serving.Turn(Pick({other.pool: claim("A")}, [other]), None, [WAITS]).is_alone
    assert not serving.Turn(Pick({other.pool: claim("A")}, ()), None, [WAITS]).is_alone


@pytest.mark.parametrize(("group", "found"), [("", "quota/cores"), ("quota/else", "quota/else")])
def test_what_is_left_to_others_stays_in_its_group(twin: Twin, ada: User, group: str, found: str) -> None:
    apply.resize(twin.on, "target/other", 0)
    for _ in range(2):
        submit(twin, ada, target="other")
    twin.run()
    apply.resize(twin.on, "target/other", 1)
    while twin.queues.messages[0][2]["do"] == "resize":
        twin.deliver()
    twin.queues.messages.clear()
    serving.serve(twin.on, ["target/other", *(["quota/cores"] if not group else [])], group)
    asked = [message for _, _, message in twin.queues.messages if message.get("do") == "serve"]
    assert {message["group"] for message in asked} == ({found} if asked else set())
    assert asked or not group


def test_of_a_pool_that_nobody_waits_for_any_more_no_slots_are_read(ada: User) -> None:
    """Its last claim left after the pool was chosen. DynamoDB refuses to read no rows at all."""
    twin = site(WARM)
    worker_at_rest(twin, ada)
    find = twin.store.find

    def reading(*given: Any, limit: int = 1000, **how: Any) -> Any:
        assert limit > 0
        return find(*given, limit=limit, **how)

    twin.store.find = reading  # type: ignore[method-assign]
    stock = scheduler.read_stock(twin.on, "target/linux", [])
    assert stock
    assert (stock.free, stock.warm) == ([], [])


def test_who_grants_one_claim_tells_of_it_without_a_message(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = waiting(twin, ada, 1)
    asked = list[str]()
    monkeypatch.setattr(twin.queues, "schedule", lambda message: asked.append(message["do"]))
    apply.resize(twin.on, "target/default", 1)
    resize.resize(twin.on, "target/default")
    serving.serve(twin.on, ["target/default"])
    assert live(twin, job)
    assert "granted" not in asked
    assert [each for each in told(twin, job) if "got slot" in each]
