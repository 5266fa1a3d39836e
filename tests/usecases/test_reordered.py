"""A site gets another order of acquisition while jobs hold and wait in the old one. [QUEUE-3] [JOB-1]

Types that share a quota are acquired in one step, with the first of them by name. So a new type may bring a licence
before the database that a job holds while it waits for this licence.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.jobs import unused
from penstock.domain.jobs.jobs import Job, Outcome, State
from penstock.domain.pools.pools import Slot, SlotState, collection
from penstock.domain.users.users import User
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.jobs import cancel, settle
from penstock.usecases.site import apply
from tests.usecases.exact import site
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import finish, hello, job_of, run_to_end, submit, sweep

CHECK = unused.ORDER_CHECK.total_seconds()


def text(**more: Mapping[str, Any]) -> str:
    """A database comes first; then a licence, which uses a quota."""
    types: dict[str, Mapping[str, Any]] = {
        "database": {"limit": 1},
        "licence": {"limit": 1, "uses": {"gib": 1}},
        **more,
    }
    return site_toml(
        targets={"linux": {"limit": 9}, "default": "linux"},
        wells={"locks": "lock"},
        resources={name: {"well": "locks", **kind} for name, kind in types.items()},
        quotas={"gib": 9},
    )


def grow(twin: Twin) -> None:
    """The site gets benches that use the quota too: they and licences come before databases now."""
    apply.apply(twin.on, "root", text(bench={"limit": 1, "uses": {"gib": 1}}), "site.toml")
    twin.run()


@pytest.fixture
def old() -> Twin:
    return site(text())


def holders(twin: Twin) -> dict[str, str | None]:
    """Who has the only slot of each type."""
    pools = {name: collection(f"resource/{name}") for name in ("bench", "database", "licence")}
    held = {name: twin.store.find(pool, f"{SlotState.HELD}#", Slot) for name, pool in pools.items()}
    return {name: slots[0].job for name, slots in held.items() if slots}


def two_that_wait_for_each_other(twin: Twin, ada: User) -> tuple[str, str]:
    """One has the database and waits for the licence; another came later, and has this and waits for the database."""
    before = submit(twin, ada, resources=["licence"])
    twin.run()
    hello(twin, before)
    first = submit(twin, ada, resources=["database", "licence"])
    twin.run()
    grow(twin)
    second = submit(twin, ada, resources=["bench", "database", "licence"], priority=10)
    twin.run()
    finish(twin, before)
    assert holders(twin) == {"bench": second, "database": first, "licence": second}
    return first, second


def steps(job: Job) -> dict[str, int]:
    return {need.type: need.step for need in job.request.needs if need.order}


def test_who_waits_in_the_old_order_begins_anew_in_the_new_one(old: Twin, ada: User) -> None:
    first, second = two_that_wait_for_each_other(old, ada)
    sweep(old, CHECK - 1)
    assert holders(old)["database"] == first
    sweep(old, 61)
    assert holders(old) == {"bench": second, "database": second, "licence": second}
    waits = job_of(old, first)
    assert (waits.attempt, waits.history.given_back, waits.history.spared) == (2, 1, 0)
    assert [past.reason for past in waits.history.attempts] == [
        "it held database, which the site now has jobs acquire with or after what it waited for"
    ]
    assert steps(waits) == {"licence": 1, "database": 2}
    run_to_end(old, second)
    sweep(old)
    run_to_end(old, first)
    assert [job_of(old, job).end.outcome for job in (first, second)] == [Outcome.SUCCEEDED] * 2


def test_its_queue_deadline_goes_on(old: Twin, ada: User) -> None:
    first, _ = two_that_wait_for_each_other(old, ada)
    until = job_of(old, first).flow.queue_until
    sweep(old, CHECK + 1)
    assert (job_of(old, first).attempt, job_of(old, first).flow.queue_until) == (2, until)


def test_who_waits_in_an_order_that_is_still_good_keeps_what_it_has(old: Twin, ada: User) -> None:
    """And it is looked at again, for the site may change later, too."""
    apply.pause(old.on, "resource/licence", paused=True)
    waits = submit(old, ada, resources=["database", "licence"])
    old.run()
    for _ in range(3):
        due = job_of(old, waits).due
        assert due
        assert timedelta() <= old.world.now() + unused.ORDER_CHECK - due < timedelta(seconds=1)
        sweep(old, CHECK)
    assert job_of(old, waits).attempt == 1


def test_who_holds_nothing_waits_until_its_queue_deadline(old: Twin, ada: User) -> None:
    apply.pause(old.on, "resource/licence", paused=True)
    waits = submit(old, ada, resources=["licence"])
    old.run()
    assert job_of(old, waits).due == job_of(old, waits).flow.queue_until


def test_who_got_further_since_the_sweep_looked_keeps_what_it_has(old: Twin, ada: User) -> None:
    first, second = two_that_wait_for_each_other(old, ada)

    def ends() -> None:
        cancel.cancel(old.on, ada, second)
        old.run()

    before_the_next_commit(old, ends)
    old.world.time += timedelta(seconds=CHECK)
    settle.settle(old.on, first, 1, unused.REORDERED_ERROR, "it held database")
    old.run()
    row = job_of(old, first)
    assert (row.attempt, row.state, holders(old)["licence"]) == (1, State.ACQUIRING, first)
    run_to_end(old, first)


def test_an_attempt_that_is_followed_for_another_reason_keeps_its_steps(old: Twin, ada: User) -> None:
    """What it needs was accepted as it was. Should it wait in the old order again, the sweep sees that."""
    first, _ = two_that_wait_for_each_other(old, ada)
    settle.settle(old.on, first, 1, "Lost", "its machine vanished")
    old.run()
    assert (job_of(old, first).attempt, steps(job_of(old, first))) == (2, {"database": 1, "licence": 2})


def test_who_is_cancelled_meanwhile_is_cancelled(old: Twin, ada: User) -> None:
    first, _ = two_that_wait_for_each_other(old, ada)
    cancel.cancel(old.on, ada, first)
    settle.settle(old.on, first, 1, unused.REORDERED_ERROR, "it held database")
    old.run()
    row = job_of(old, first)
    assert (row.end.outcome, row.attempt, steps(row)) == (Outcome.CANCELLED, 1, {"database": 1, "licence": 2})
