"""Nothing is reserved for a claim that waits for what no job's end brings back. [QUEUE-1] [QUEUE-2]

Otherwise a quota stands free, for days, and everybody who needs it waits for an operator whom they do not know. A slot
whose job ended is such a one after ten minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.pools.grants import MAX_OVERTAKEN
from penstock.domain.pools.pools import Claim, Slot, SlotState, collection, pool_key
from penstock.domain.units.units import LINGERS, Unit, UnitState, unit_key
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Unknown
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.pools import aside, serving
from penstock.usecases.site import apply
from penstock.usecases.units.release import enter_quarantine
from tests.usecases.holds import hold, release, running
from tests.usecases.steps import finish, hello, slots, submit, sweep, worker_of
from tests.usecases.warm import unit_of

LIC = "quota/lic"

BENCH = "target/bench"

LONG = LINGERS.total_seconds()

DAY = 24 * 3600


def site(twin: Twin, amount: int, bench: Mapping[str, Any]) -> None:
    """Two targets that use one quota."""
    factories = {"hand": {"driver": "hand"}, "lab": {"driver": "hosts"}}
    targets = {"bench": {"uses": {"lic": 1}, **bench}, "linux": {"factory": "hand", "limit": 5, "uses": {"lic": 1}}}
    resources = {"rig": {"well": "locks", "limit": 1}}
    text = site_toml(
        factories=factories, wells={"locks": "lock"}, targets=targets, resources=resources, quotas={"lic": amount}
    )
    apply.apply(twin.on, "root", text, "site.toml")
    twin.run()


def overtakes(twin: Twin, ada: User, most: int, **ask: Any) -> int:
    """How many jobs of the other target run one after the other while one waits, for a bench or for what it asks."""
    first = submit(twin, ada, target="linux")
    twin.run()
    hello(twin, first)
    submit(twin, ada, **({"target": "bench"} | ask))
    for done in range(most):
        following = submit(twin, ada, target="linux")
        twin.run()
        finish(twin, first)
        sweep(twin)
        if not any(isinstance(row, Slot) and row.job == following for row in twin.store.rows.values()):
            return done
        hello(twin, following)
        first = following
    return most


def test_a_quota_is_not_kept_for_who_waits_for_a_host_that_is_away(twin: Twin, ada: User) -> None:
    site(twin, 1, {"factory": "lab", "names": ["bench-7"]})
    assert overtakes(twin, ada, 3 * MAX_OVERTAKEN) == 3 * MAX_OVERTAKEN
    rows = [row for row in twin.store.rows.values() if isinstance(row, Claim) and row.pool == LIC]
    assert [row.overtaken for row in rows] == [MAX_OVERTAKEN], "more is not counted, for nothing is kept for it"


def test_a_quota_is_not_kept_for_who_waits_for_a_slot_in_quarantine(twin: Twin, ada: User) -> None:
    """Its own share of the quota stays with what is in quarantine."""
    site(twin, 2, {"factory": "hand", "limit": 1})
    running = submit(twin, ada, target="bench")
    twin.run()
    hello(twin, running)
    worker = worker_of(twin, running)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.drivers.hand, "destroy", lambda *_: _raise(Unknown("it does not answer")))
        finish(twin, running)
        assert twin.store.get(worker.key, Unit)
    enter_quarantine(twin.on, unit_of(twin, worker.id), "it does not answer")
    twin.run()
    assert overtakes(twin, ada, 2 * MAX_OVERTAKEN) == 2 * MAX_OVERTAKEN


def _raise(error: Exception) -> None:
    raise error


def test_a_quota_is_kept_for_who_waits_for_a_job_to_end(twin: Twin, ada: User) -> None:
    site(twin, 2, {"factory": "hand", "limit": 1})
    running = submit(twin, ada, target="bench")
    twin.run()
    hello(twin, running)
    assert overtakes(twin, ada, 2 * MAX_OVERTAKEN) < 2 * MAX_OVERTAKEN


def test_a_quota_is_not_kept_for_who_waits_for_a_worker_that_is_held(twin: Twin, ada: User) -> None:
    """UNIT-3: its job ended, and its slot stays that job's until the hold ends."""
    site(twin, 2, {"factory": "hand", "limit": 1})
    done, worker = running(twin, ada, target="bench")
    hold(twin, worker, 6 * DAY)
    finish(twin, done)
    twin.pass_time(LONG)
    assert overtakes(twin, ada, 2 * MAX_OVERTAKEN) == 2 * MAX_OVERTAKEN


def test_a_quota_is_not_kept_for_who_waits_for_what_is_put_back_after_a_held_worker(twin: Twin, ada: User) -> None:
    site(twin, 2, {"factory": "hand", "limit": 1})
    done, worker = running(twin, ada, target="linux", resources=["rig"])
    hold(twin, worker, 6 * DAY)
    finish(twin, done)
    twin.pass_time(LONG)
    ask = {"target": "linux", "resources": ["rig"]}
    assert overtakes(twin, ada, 2 * MAX_OVERTAKEN, **ask) == 2 * MAX_OVERTAKEN
    release(twin, worker)
    assert unit_of(twin, worker.id).state is UnitState.GONE
    assert slots(twin, "resource/rig", SlotState.HELD), "the one that waited has it now"


def test_what_is_being_put_back_comes_back(twin: Twin, ada: User) -> None:
    """A quota is kept while a worker whose job ended may still be gone any moment."""
    site(twin, 2, {"factory": "hand", "limit": 1})
    done, worker = running(twin, ada, target="bench")
    hold(twin, worker, 6 * DAY)
    finish(twin, done)
    assert overtakes(twin, ada, 2 * MAX_OVERTAKEN) == MAX_OVERTAKEN
    assert list(holders(twin, LIC)) == [done], "what is left of the quota is kept"
    sweep(twin, LONG)
    assert len(holders(twin, LIC)) == 2, "and no longer"


def test_who_wants_a_thing_for_itself_waits_for_none_that_somebody_holds(twin: Twin, ada: User) -> None:
    """Most is left of bench-1, which somebody holds for days; jobs on bench-2 would else follow each other for ever."""
    things = {"bench-1": {}, "bench-2": {}}
    resources = {"bench": {"well": "locks", "leases": 2, "things": things}}
    targets = {"linux": {"limit": 9}}
    text = site_toml(wells={"locks": "lock"}, targets=targets, resources=resources)
    apply.apply(twin.on, "root", text, "site.toml")
    first, second = ({"target": "linux", "resources": {"bench": {"thing": name}}} for name in things)
    done, worker = running(twin, ada, **first)
    hold(twin, worker, 6 * DAY)
    finish(twin, done)
    twin.pass_time(LONG)
    here = [running(twin, ada, **second)[0] for _ in range(2)]
    alone = submit(twin, ada, target="linux", resources={"bench": {"exclusive": True}})
    for _ in range(3 * MAX_OVERTAKEN):
        here.append(submit(twin, ada, **second))
        finish(twin, here.pop(0))
        sweep(twin, 30)
        if alone in holders(twin, "resource/bench"):
            break
        hello(twin, here[1 if here[1] in holders(twin, "resource/bench") else 0])
    assert holders(twin, "resource/bench")[alone] == ["bench-2/1", "bench-2/2"]


def holders(twin: Twin, pool: str) -> Mapping[str, list[str]]:
    """Which slots of a pool each job holds."""
    found: dict[str, list[str]] = {}
    for slot in twin.store.find(collection(pool), f"{SlotState.HELD}#", Slot):
        found.setdefault(slot.job or "", []).append(slot.name)
    return found


def held(number: int, **changes: Any) -> Slot:
    return replace(Slot(pool=BENCH, name=str(number), state=SlotState.HELD, job="J", unit=f"w-{number}"), **changes)


def test_of_more_than_a_hundred_slots_no_unit_is_looked_at(twin: Twin, ada: User) -> None:
    """Nor of those that were handed over so recently that their jobs can't have ended long ago."""
    done, worker = running(twin, ada, target="linux")
    finish(twin, done)
    ended = twin.world.now()
    for number in range(limits.BATCH_KEYS + 1):
        late = replace(worker, id=f"w-{number}", state=UnitState.DIRTY, since=ended, version=0)
        twin.store.rows[late.key] = late
    twin.pass_time(LONG)
    many = [held(number) for number in range(limits.BATCH_KEYS)]
    assert aside.among(twin.on, many) == many
    kept = held(999, job=None)
    assert aside.among(twin.on, [*many, held(limits.BATCH_KEYS), kept]) == [kept]
    young = [held(number, since=ended + timedelta(seconds=1)) for number in range(2)]
    old = [held(number, since=ended) for number in range(2, 4)]
    assert aside.among(twin.on, [*young, *old]) == old
    twin.store.rows[unit_key("w-2")] = replace(worker, id="w-2", state=UnitState.READY, since=ended, version=0)
    assert aside.among(twin.on, old) == old[1:]


def test_of_a_paused_pool_nothing_is_read(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has, nobody is granted anyway."""
    site(twin, 1, {"factory": "lab", "names": ["bench-7"]})
    assert overtakes(twin, ada, 2 * MAX_OVERTAKEN) == 2 * MAX_OVERTAKEN
    read = set[str]()
    monkeypatch.setattr(aside, "read", lambda on, pool: [read.add(pool.name)][:0])
    serving.stocks_of(twin.on, LIC)
    assert read == {LIC, "target/bench"}
    apply.pause(twin.on, "target/bench", paused=True)
    read.clear()
    assert "target/bench" in serving.stocks_of(twin.on, LIC)
    assert read == {LIC}


def test_of_a_pool_without_hosts_none_are_read(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    site(twin, 1, {"factory": "lab", "names": ["bench-7"]})
    assert overtakes(twin, ada, 2 * MAX_OVERTAKEN) == 2 * MAX_OVERTAKEN
    read, find = [], twin.store.find

    def noting(pk: str, prefix: str, kind: Any, **how: Any) -> Any:
        read.append((pk, prefix))
        return find(pk, prefix, kind, **how)

    monkeypatch.setattr(twin.store, "find", noting)
    serving.stocks_of(twin.on, LIC)
    assert [pk for pk, prefix in read if prefix == f"{SlotState.AWAY}#"] == [collection(BENCH)]


def test_a_claim_for_which_something_is_reserved_may_wait_for_a_pool_that_is_gone(twin: Twin, ada: User) -> None:
    site(twin, 1, {"factory": "lab", "names": ["bench-7"]})
    assert overtakes(twin, ada, 2 * MAX_OVERTAKEN) == 2 * MAX_OVERTAKEN
    del twin.store.rows[pool_key("target/bench")]
    assert "target/bench" not in serving.stocks_of(twin.on, LIC)
