"""A claim that nobody stands before is granted in the commit that it comes with. [QUEUE-2] [SLOT-2]"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from penstock.domain.jobs.jobs import State
from penstock.domain.pools.pools import Claim, Lease, LeaseState, Pool, Slot, SlotState, collection, pool_key
from penstock.domain.units.units import Unit
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Create, Delete
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.pools import scheduler
from penstock.usecases.site import apply
from tests.usecases.quotas import used
from tests.usecases.steps import finish, hello, job_of, run_to_end, slots, submit

pytestmark = pytest.mark.usefixtures("by_flow")

SITE = site_toml(
    targets={
        "linux": {"limit": 3, "uses": {"vcpus": 2}},
        "small": {"limit": 9, "uses": {"vcpus": 1}},
        "default": "linux",
        "lab": {"privilege": "target.lab", "limit": 1},
        "ahead": {"limit": 3, "warm": {"min": 1, "max": 1}},
    },
    quotas={"vcpus": 4},
)


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", SITE, "site.toml")
    made.run()
    return made


def written(twin: Twin) -> list[Sequence[Change]]:
    """All commits from here on that were made."""
    found: list[Sequence[Change]] = []
    commit = twin.store.commit

    def recording(changes: Sequence[Change]) -> bool:
        done = commit(changes)
        found.extend([changes] if done else [])
        return done

    twin.store.commit = recording  # type: ignore[method-assign]
    return found


def claims(twin: Twin) -> list[Claim]:
    return [row for row in twin.store.rows.values() if isinstance(row, Claim)]


def was_claimed(commits: Sequence[Sequence[Change]]) -> bool:
    return any(isinstance(change, Create) and isinstance(change.row, Claim) for each in commits for change in each)


def is_granted(twin: Twin, job: str) -> bool:
    found = [row for row in twin.store.rows.values() if isinstance(row, Lease) and row.job == job]
    return [lease.state for lease in found] == [LeaseState.GRANTED]


def test_one_commit_has_the_leases_the_slots_the_share_and_the_unit_and_no_claim(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    commits = written(twin)
    twin.run()
    (granted,) = (each for each in commits if any(isinstance(getattr(one, "row", None), Lease) for one in each))
    kinds = sorted(type(change.row).__name__ for change in granted if isinstance(change, Create))
    assert kinds == ["Lease", "Slot", "Slot", "Unit"]
    assert [type(change.was).__name__ for change in granted if isinstance(change, Delete)] == ["Slot"]
    assert not was_claimed(commits)
    assert job_of(twin, job).state is State.ACQUIRING
    assert is_granted(twin, job)
    assert used(twin, "quota/vcpus") == 2


def test_who_comes_while_somebody_waits_waits_behind_though_there_is_enough(twin: Twin, ada: User) -> None:
    """The first that waits needs two of the quota, of which one is left: the last needs one, and is looked at later."""
    submit(twin, ada)
    submit(twin, ada, target="small")
    twin.run()
    waits = submit(twin, ada)
    twin.run()
    assert [claim.job for claim in claims(twin)] == [waits, waits]
    commits = written(twin)
    last = submit(twin, ada, target="small")
    twin.run()
    assert was_claimed(commits), "it did not pass in the commit that it came with"
    assert is_granted(twin, last), "but by the rule of overtaking, when the pool was served"


@pytest.mark.parametrize("pool", ["target/linux", "quota/vcpus"])
def test_what_is_paused_grants_nothing_at_once(twin: Twin, ada: User, pool: str) -> None:
    apply.pause(twin.on, pool, paused=True)
    submit(twin, ada)
    twin.run()
    assert len(claims(twin)) == 2


def test_what_is_not_enough_is_waited_for(twin: Twin, ada: User) -> None:
    made = [submit(twin, ada) for _ in range(3)]
    twin.run()
    assert [is_granted(twin, job) for job in made] == [True, True, False], "four of the quota are two jobs"
    assert {claim.job for claim in claims(twin)} == {made[2]}


def test_who_loses_race_after_race_waits_and_is_granted_by_whoever_serves(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    commits, commit, tries = written(twin), twin.store.commit, []

    def losing(changes: Sequence[Change]) -> bool:
        if any(isinstance(change, Create) and isinstance(change.row, Lease) for change in changes):
            tries.append(len(changes))
            if len(tries) <= scheduler.DIRECT_TRIES:
                return False
        return commit(changes)

    twin.store.commit = losing  # type: ignore[method-assign]
    twin.run()
    assert len(tries) == scheduler.DIRECT_TRIES + 1
    assert was_claimed(commits)
    assert is_granted(twin, job)


def test_it_asks_anew_who_waits_before_each_try(twin: Twin, ada: User) -> None:
    first, commit, came = submit(twin, ada), twin.store.commit, []

    def racing(changes: Sequence[Change]) -> bool:
        if not came and any(isinstance(change, Create) and isinstance(change.row, Unit) for change in changes):
            came.append(Claim(
                pool="quota/vcpus", job="0" * 26, attempt=1, step=0, count=1, pools=("quota/vcpus",), priority=0,
                since=twin.world.now(),
            ))  # fmt: skip
            commit([Create(came[0])])
            return False
        return commit(changes)

    twin.store.commit = racing  # type: ignore[method-assign]
    commits = written(twin)
    twin.run()
    assert came
    assert was_claimed(commits)
    assert is_granted(twin, first), "whose place nobody keeps, for it is of no job"


def test_one_slot_of_those_that_are_read_is_drawn(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def draw(count: int) -> int:
        drawn.append(count)
        return count - 1

    monkeypatch.setattr(twin.world, "draw", draw)
    submit(twin, ada, target="small")
    twin.run()
    monkeypatch.setattr(scheduler, "SPREAD", 4)
    submit(twin, ada, target="small")
    twin.run()
    assert drawn == [9, 4]
    assert slots(twin, "target/small", SlotState.HELD) == ["9", "4"] or slots(twin, "target/small", SlotState.HELD) == [
        "4",
        "9",
    ]


def test_who_lacks_the_privilege_is_not_granted_and_is_told(twin: Twin) -> None:
    owner = User(name="bob", privileges=("target.lab",), created=START)
    twin.store.commit([Create(owner)])
    job = submit(twin, owner, target="lab")
    stored = twin.store.get(owner.key, User)
    assert stored
    twin.store.commit([Delete(stored)])
    twin.run()
    assert job_of(twin, job).is_settled
    assert not [row for row in twin.store.rows.values() if isinstance(row, Unit) and row.lease.job]


def test_the_owner_is_checked_in_the_commit(twin: Twin) -> None:
    owner = User(name="bob", privileges=("target.lab",), created=START)
    twin.store.commit([Create(owner)])
    job = submit(twin, owner, target="lab")
    commit, came = twin.store.commit, []

    def racing(changes: Sequence[Change]) -> bool:
        if not came and any(isinstance(change, Create) and isinstance(change.row, Unit) for change in changes):
            came.append(twin.store.get(owner.key, User))
            commit([Delete(came[0])])
        return commit(changes)

    twin.store.commit = racing  # type: ignore[method-assign]
    twin.run()
    assert came
    assert job_of(twin, job).is_settled


def test_a_step_that_comes_again_is_reminded_and_nothing_is_doubled(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    (message,) = (each for _, _, each in twin.queues.messages if each.get("do") == "acquire")
    twin.run()
    before = {key for key, row in twin.store.rows.items() if isinstance(row, Unit | Lease | Slot)}
    twin.queues.messages.clear()
    twin.take("schedule", message)
    (unit,) = (row.id for row in twin.store.rows.values() if isinstance(row, Unit) and row.lease.job == job)
    assert [(queue, each) for _, queue, each in twin.queues.messages] == [("factory", {"unit": unit})]
    assert {key for key, row in twin.store.rows.items() if isinstance(row, Unit | Lease | Slot)} == before


def test_another_is_made_ahead_in_the_place_of_the_one_that_was_granted(twin: Twin, ada: User) -> None:
    twin.run()
    before = twin.store.find(collection("target/ahead"), "free#warm#", Slot)
    submit(twin, ada, target="ahead")
    twin.run()
    after = twin.store.find(collection("target/ahead"), "free#warm#", Slot)
    assert len(before) == len(after) == 1
    assert before[0].unit != after[0].unit


def test_a_pool_that_the_site_has_no_more_is_not_looked_at_further(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    row: Any = twin.store.get(pool_key("quota/vcpus"), Pool)
    twin.store.commit([Delete(row)])
    twin.run()
    assert len(claims(twin)) == 2
    assert not job_of(twin, job).is_settled


def test_all_is_put_back_and_granted_again(twin: Twin, ada: User) -> None:
    for _ in range(4):
        run_to_end(twin, submit(twin, ada))
    job = submit(twin, ada)
    twin.run()
    (held,) = twin.store.find(collection("target/linux"), "held#", Slot)
    assert (held.job, held.fence) == (job, 5)
    hello(twin, job)
    finish(twin, job)
    assert used(twin, "quota/vcpus") == 0
