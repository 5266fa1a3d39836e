"""Exactly what `why` says and reads: of cool-downs, of what keeps units, and of the jobs that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from penstock.api.waiting import show_why
from penstock.domain.cooldowns import Cause, CoolDown
from penstock.domain.pools.forecast import Action
from penstock.domain.pools.pools import LeaseState, SlotState, lease_key
from penstock.domain.pools.why import Stopped
from penstock.domain.units.units import UnitKind, UnitLease, UnitState, unit_key
from penstock.domain.users.users import User
from penstock.kernel.errors import NoCapacity
from penstock.kernel.rows import Key, Row
from penstock.testing.twin import Twin
from penstock.usecases.cooldowns import cooldowns_of
from penstock.usecases.jobs import jobs
from penstock.usecases.jobs.jobs import job_key
from penstock.usecases.jobs.names import Named, names_of
from penstock.usecases.pools.delays import delays_of
from tests.domain.helpers import MINUTE, job, lease, slot, unit
from tests.usecases.exact import put
from tests.usecases.steps import finish, hello, job_of, submit

MINE = unit(id="w-mine")


def stand(twin: Twin, *rows: Row) -> None:
    """Let there be rows that nobody made."""
    twin.store.rows.update({row.key: row for row in rows})


def asked(twin: Twin) -> list[list[Key]]:
    """The keys that are read at once from here on."""
    found, read = list[list[Key]](), twin.store.rows_at

    def noting(keys: Sequence[Key]) -> Mapping[Key, Row]:
        found.append(list(keys))
        return read(keys)

    twin.store.rows_at = noting  # type: ignore[method-assign]
    return found


def cooling(twin: Twin, **changes: Any) -> CoolDown:
    """A cool-down that ends in 9 minutes, which another unit tries for 2 more."""
    now = twin.world.now()
    plain = {"probe": "w-other", "probe_until": now + 2 * MINUTE, "until": now + 9 * MINUTE, **changes}
    return CoolDown(
        maker="factory/here", scope="a", cause=Cause.CAPACITY, why="none", since=now, met_by="w-mine", **plain
    )


@pytest.mark.parametrize("state", [UnitState.CREATING, UnitState.READY, UnitState.IDLE])
def test_another_that_may_still_be_made_tries_first(twin: Twin, state: UnitState) -> None:
    """One that is leased, or one that is made ahead of need."""
    stand(twin, unit(id="w-other", state=state))
    row = cooling(twin)
    found = jobs._stopped(twin.on, row, MINE)
    assert found == Stopped(found.said, "none", row.until, "w-other")


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [unit(id="w-other", state=UnitState.GONE)],
        [unit(id="w-other", state=UnitState.IDLE, until=MINE.since)],
    ],
    ids=["forgotten", "gone", "made"],
)
def test_after_one_that_tries_no_more_its_time_has_to_pass(twin: Twin, rows: Sequence[Row]) -> None:
    stand(twin, *rows)
    row = cooling(twin)
    found = jobs._stopped(twin.on, row, MINE)
    assert found == Stopped(found.said, "none", twin.world.now() + 2 * MINUTE)


@pytest.mark.parametrize(
    ("changes", "minutes"),
    [({"probe": None, "probe_until": None}, None), ({"probe": "w-mine"}, 2), ({}, -1)],
    ids=["nobody", "the unit itself", "one whose time is over"],
)
def test_where_no_other_tries_the_cool_down_has_to_end(
    twin: Twin, changes: dict[str, Any], minutes: int | None
) -> None:
    stand(twin, MINE, unit(id="w-other"))
    until = {} if minutes is None else {"probe_until": twin.world.now() + minutes * MINUTE}
    row = cooling(twin, **(changes | until))
    found = jobs._stopped(twin.on, row, MINE)
    assert found == Stopped(found.said, "none", row.until)


def test_nobody_is_told_a_time_that_is_over(twin: Twin, ada: User) -> None:
    """The cool-down has ended, and another unit tries: nobody knows when the maker is asked for this one."""
    twin.drivers.hand.says = [NoCapacity("none left")]
    waits = submit(twin, ada)
    twin.run()
    stand(twin, unit(id="w-other"))
    (row,) = cooldowns_of(twin.on, "factory/hand")
    now = twin.world.now()
    put(twin, row, until=now, probe="w-other", probe_until=now + timedelta(minutes=1))
    found = jobs.explain(twin.on, job_of(twin, waits))
    assert (found.expected_start, found.basis) == (None, None)
    assert [(act.way, act.unit) for act in found.unblocks] == [(Action.MAKE, "w-other"), (Action.HELLO, "")]


def test_only_what_may_be_kept_is_read_and_a_worker_is_not_kept_by_what_is_released_after_it(twin: Twin) -> None:
    """UNIT-3: a worker, a resource that is not clean, and one that had no job yet; a free slot, and one aside."""
    bench = UnitLease(job="J1", attempt=1, order=1, pool="resource/bench", slot="2", fence=1)
    ahead = UnitLease(job="", attempt=0, order=1, pool="resource/bench", slot="3", fence=0)
    stand(
        twin,
        job(),
        lease(0, LeaseState.GRANTED, unit="w-1", fence=1),
        lease(1, LeaseState.GRANTED, unit="r-1", fence=1),
        unit(state=UnitState.READY),
        unit(id="r-1", is_a=UnitKind.RESOURCE, state=UnitState.DIRTY, lease=bench),
        unit(id="r-2", is_a=UnitKind.RESOURCE, state=UnitState.IDLE, lease=ahead),
        unit(id="r-3", is_a=UnitKind.RESOURCE, state=UnitState.DIRTY, lease=ahead),
    )
    slots = [
        slot("1", SlotState.HELD, unit="w-1"),
        slot("2", SlotState.HELD, unit="r-1"),
        slot("3", SlotState.IDLE, unit="r-2"),
        slot("4", SlotState.FREE, unit="r-3"),
        slot("5", SlotState.HELD),
    ]
    keys = asked(twin)
    assert set(delays_of(twin.on, slots)) == {"r-1"}
    assert keys == [
        [unit_key("w-1"), unit_key("r-1"), unit_key("r-2")],
        [job_key("J1")],
        [lease_key("J1", 1, 0), lease_key("J1", 1, 1)],
        [unit_key("w-1"), unit_key("r-1")],
    ]


def test_where_nobody_is_no_name_is_looked_for(twin: Twin, ada: User) -> None:
    known = submit(twin, ada, name="build")
    keys = asked(twin)
    assert names_of(twin.on, [None, known, "", known]) == {known: Named("build", "ada", run=1)}
    assert keys == [[job_key(known)]]


def test_only_a_script_that_runs_has_a_time_at_which_it_ends(twin: Twin, ada: User) -> None:
    id = submit(twin, ada, name="build")
    hello(twin, id)
    started = job_of(twin, id).times.started
    assert started
    assert names_of(twin.on, [id])[id].ends == started + timedelta(seconds=job_of(twin, id).limits.timeout)
    finish(twin, id)
    assert job_of(twin, id).times.started == started
    assert names_of(twin.on, [id])[id].ends is None


def test_a_job_is_shown_to_wait_only_while_it_stands_in_a_queue(twin: Twin, ada: User) -> None:
    boots, _, waits = (submit(twin, ada) for _ in range(3))
    twin.run()
    shown = show_why(twin.on, jobs.explain(twin.on, job_of(twin, boots)))
    assert (shown.state, shown.blocked_on) == ("acquiring", None)
    shown = show_why(twin.on, jobs.explain(twin.on, job_of(twin, waits)))
    assert shown.blocked_on
    assert (shown.state, shown.blocked_on.pool, shown.blocked_on.position) == ("waiting", "target/linux", 1)
