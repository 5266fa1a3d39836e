"""Whom nothing is taken from, may be passed: a pool is not kept whole for one claim. [QUEUE-1] [QUEUE-2]"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.pools.pools import Claim, Pool, Slot, SlotState, pool_key
from penstock.domain.users.users import User
from penstock.kernel.rows import Create
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.jobs import cancel, settle
from penstock.usecases.pools import scheduler, serving
from penstock.usecases.site import apply
from tests.usecases.exact import drop
from tests.usecases.quotas import is_granted, run_to_end, used
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import submit

SITE = site_toml(
    targets={
        "full": {"limit": 1, "uses": {"vcpus": 1}},
        "wide": {"limit": 50, "uses": {"vcpus": 1}},
        "large": {"limit": 4, "uses": {"vcpus": 60}},
    },
    quotas={"vcpus": 64},
)
VCPUS = "quota/vcpus"


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", SITE, "site.toml")
    made.run()
    return made


def some(twin: Twin, user: User, target: str, count: int, **ask: int) -> list[str]:
    made = []
    for _ in range(count):
        made.append(submit(twin, user, target=target, **ask))
        twin.run()
    return made


def granted(twin: Twin, jobs: list[str], target: str) -> int:
    return sum(is_granted(twin, job, f"target/{target}") for job in jobs)


def counts(twin: Twin, job: str) -> dict[str, int]:
    return {row.pool: row.overtaken for row in twin.store.rows.values() if isinstance(row, Claim) and row.job == job}


def kept_for_large(twin: Twin, user: User) -> str:
    """A job that wants 60 of the 64 and was overtaken eight times; five are used."""
    some(twin, user, "wide", 5)
    (large,) = some(twin, user, "large", 1)
    for _ in range(8):
        run_to_end(twin, some(twin, user, "wide", 1)[0])
    assert counts(twin, large) == {"target/large": 0, VCPUS: 8}
    return large


def test_who_waits_for_a_full_target_keeps_no_more_of_a_quota_than_it_wants(twin: Twin, ada: User) -> None:
    """The quota has room for all of them: nobody takes anything from the one ahead, and nothing is counted."""
    first, second = some(twin, ada, "full", 2)
    wide = some(twin, ada, "wide", 20)
    assert (granted(twin, wide, "wide"), used(twin, VCPUS)) == (20, 21)
    assert counts(twin, second) == {"target/full": 0, VCPUS: 0}
    run_to_end(twin, first)
    assert is_granted(twin, second, "target/full")


def test_what_it_wants_is_kept_for_it(twin: Twin, ada: User) -> None:
    """Eight take the last of the quota before it; after that one is left for it, and the others have all the rest."""
    apply.resize(twin.on, VCPUS, 2)
    first, second = some(twin, ada, "full", 2)
    for _ in range(8):
        (passing,) = some(twin, ada, "wide", 1)
        run_to_end(twin, passing)
    assert counts(twin, second)[VCPUS] == 8
    (waiting,) = some(twin, ada, "wide", 1)
    assert not is_granted(twin, waiting, "target/wide")
    apply.resize(twin.on, VCPUS, 5)
    wide = [waiting, *some(twin, ada, "wide", 3)]
    assert (granted(twin, wide, "wide"), used(twin, VCPUS)) == (3, 4)
    run_to_end(twin, first)
    assert is_granted(twin, second, "target/full")


def test_a_job_that_is_cancelled_while_it_is_overtaken_waits_no_more(twin: Twin, ada: User) -> None:
    """Or its claim would come back, with no job behind it, and in time what falls free would be kept for it."""
    apply.resize(twin.on, VCPUS, 2)
    _, second = some(twin, ada, "full", 2)
    apply.pause(twin.on, "target/wide", paused=True)
    (passing,) = some(twin, ada, "wide", 1)
    apply.pause(twin.on, "target/wide", paused=False)

    def cancelled() -> None:
        cancel.cancel(twin.on, ada, second)
        settle.settle(twin.on, *twin.flows.settling.popleft())

    before_the_next_commit(twin, cancelled)
    serving.serve(twin.on, ["target/wide"])
    assert is_granted(twin, passing, "target/wide")
    assert counts(twin, second) == {}


def test_a_long_queue_for_a_full_target_keeps_as_much_as_can_be_used_of_it(twin: Twin, ada: User) -> None:
    """One at a time can be granted, however many wait, and however often they were passed."""
    apply.resize(twin.on, VCPUS, 12)
    some(twin, ada, "full", 9)
    for _ in range(10):
        wide = some(twin, ada, "wide", 10)
        assert granted(twin, wide, "wide") == 10
        for job in wide:
            run_to_end(twin, job)


@pytest.mark.parametrize("how", ["pause", "lower", "a claim before it"])
def test_nothing_is_kept_for_who_can_not_be_granted_whatever_falls_free(twin: Twin, ada: User, how: str) -> None:
    """QUEUE-1: who may have it then has it at once, without any sweep."""
    large = kept_for_large(twin, ada)
    wide = some(twin, ada, "wide", 3)
    assert granted(twin, wide, "wide") == 0
    if how == "pause":
        apply.pause(twin.on, "target/large", paused=True)
    elif how == "lower":
        apply.resize(twin.on, "target/large", 0)
    else:
        apply.resize(twin.on, "target/large", 1)
        twin.run()
        assert granted(twin, wide, "wide") == 0
        some(twin, ada, "large", 1, priority=5)
    twin.run()
    assert granted(twin, wide, "wide") == 3
    assert not is_granted(twin, large, "target/large")


def test_who_could_be_granted_again_is_kept_for_again(twin: Twin, ada: User) -> None:
    large = kept_for_large(twin, ada)
    apply.pause(twin.on, "target/large", paused=True)
    twin.run()
    apply.pause(twin.on, "target/large", paused=False)
    twin.run()
    assert granted(twin, some(twin, ada, "wide", 1), "wide") == 0
    assert counts(twin, large)[VCPUS] == 8
    row = twin.store.get(pool_key(VCPUS), Pool)
    assert row
    assert row.used == 5


def test_only_what_a_grant_may_turn_on_is_read(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is idle only where something is kept; and no slots of an amount, or of a paused pool."""
    large = kept_for_large(twin, ada)
    (waiting,) = some(twin, ada, "wide", 1)
    idle = Slot(pool=VCPUS, name="w-1", state=SlotState.IDLE, unit="w-1", count=1)
    assert twin.store.commit([Create(idle)])
    apply.pause(twin.on, "target/large", paused=True)
    read, find = [], twin.store.find

    def noting(pk: str, prefix: str, kind: Any, **how: Any) -> Any:
        read.append((pk, prefix))
        return find(pk, prefix, kind, **how)

    monkeypatch.setattr(twin.store, "find", noting)
    found = scheduler.read_stocks(twin.on, "target/wide")
    assert [slot.name for slot in found[VCPUS].idle] == ["w-1"]
    assert found["target/large"].pool.paused
    assert read == [
        ("pool#target/wide", "wait#"), ("pool#target/wide", "free#cold#"),
        ("pool#quota/vcpus", "wait#"), ("pool#quota/vcpus", "idle#"),
    ]  # fmt: skip
    read.clear()
    scheduler.read_stocks(twin.on, "target/large")
    assert ("pool#target/large", "free#warm#") not in read
    assert scheduler.read_stocks(twin.on, "target/large")["target/large"].free == []
    assert large < waiting


def test_the_other_queues_of_those_who_wait_are_served_too(twin: Twin, ada: User) -> None:
    kept_for_large(twin, ada)
    assert serving.with_others(twin.on, "target/large") == ["target/large", VCPUS]


def test_of_other_pools_only_those_are_read_that_decide_whose_turn_it_is(twin: Twin, ada: User) -> None:
    """QUEUE-2: a claim that a paused target cannot grant keeps nothing of a quota from those behind it."""
    some(twin, ada, "full", 2)
    apply.pause(twin.on, "target/wide", paused=True)
    some(twin, ada, "wide", 1)
    assert scheduler.read_stocks(twin.on, "target/full").keys() == {"target/full", VCPUS}, "the quota has room for all"
    apply.resize(twin.on, VCPUS, 2)
    found = scheduler.read_stocks(twin.on, "target/full")
    assert found.keys() == {"target/full", VCPUS, "target/wide"}
    assert (found["target/wide"].pool.paused, found["target/wide"].claims) == (True, ())


def test_who_waits_in_a_pool_that_is_gone_is_seen(twin: Twin, ada: User) -> None:
    some(twin, ada, "full", 2)
    pool = twin.store.get(pool_key("target/full"), Pool)
    assert pool
    drop(twin, pool)
    assert scheduler.head(twin.on, "target/full") == (None, True)
