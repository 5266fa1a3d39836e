"""Bills of jobs: opened with a job's end, closed by the sweep once all is given back. [JOB-1]"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from penstock.domain import prices
from penstock.domain.artifacts.artifacts import INPUT, Artifact, ArtifactState, id_of
from penstock.domain.jobs.jobs import Bill, Outcome, job_key
from penstock.domain.units import units
from penstock.domain.units.units import UnitState
from penstock.domain.users.users import User
from penstock.kernel.rows import Change, Create, key_of
from penstock.ports import NotYet
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.jobs import bills, cancel, settle
from penstock.usecases.site import apply
from tests.usecases.conftest import SITE as FREE
from tests.usecases.exact import commits, put, site
from tests.usecases.steps import finish, hello, job_of, live, submit, sweep, worker_of

SITE = site_toml(
    prices={"currency": "EUR", "dollar": 0.5, "sent": 1},
    targets={"linux": {"limit": 2, "price": 3.6}, "default": "linux"},
    wells={"locks": "lock"},
    resources={"bench": {"well": "locks", "names": ["bench-1"], "price": 36}},
)
SECOND = 1000
"""What the worker costs in a second, in millionths; the bench costs ten times as much."""


@pytest.fixture
def twin() -> Twin:
    return site(SITE)


def ran(twin: Twin, user: User, boots: int = 10, runs: int = 20) -> str:
    """A job that has a bench and a worker, and has succeeded."""
    job = submit(twin, user, resources=["bench"])
    twin.run()
    twin.pass_time(boots)
    hello(twin, job)
    twin.pass_time(runs)
    finish(twin, job)
    return job


def of_job(written: list[Sequence[Change]], job: str) -> list[Change]:
    """The changes of a job's own row."""
    return [change for each in written for change in each if key_of(change) == job_key(job)]


def bill_of(twin: Twin, job: str) -> Bill:
    found = job_of(twin, job).bill
    assert found
    return found


def test_a_bill_is_closed_by_the_sweep(twin: Twin, ada: User) -> None:
    job = ran(twin, ada)
    settled = job_of(twin, job).times.settled
    assert settled
    assert bill_of(twin, job) == Bill(due=settled + prices.CLOSE_AFTER)
    sweep(twin)
    assert bill_of(twin, job).due, "not before its time"
    sweep(twin, 300)
    bill = bill_of(twin, job)
    assert (bill.due, bill.currency, bill.sent, bill.stored) == (None, "EUR", 0, 0)
    bench, worker = bill.charges
    assert (bench.name, bench.type, worker.name, worker.type) == ("bench", "bench", "worker", "linux")
    assert (round(bench.cost / SECOND, -1), round(bench.unused_cost / SECOND, -1)) == (300, 100)
    assert (round(worker.cost / SECOND), round(worker.unused_cost / SECOND)) == (30, 10)
    assert bill.control == (prices.ATTEMPT + prices.LEASE + 2) // 2


def test_a_closed_bill_is_never_written_again(twin: Twin, ada: User) -> None:
    job = ran(twin, ada)
    sweep(twin, 301)
    closed = job_of(twin, job)
    apply.apply(twin.on, "admin", SITE.replace("3.6", "7.2"), "site.toml")
    written = commits(twin)
    bills.close(twin.on, job)
    sweep(twin, 301)
    assert of_job(written, job) == []
    assert bills.bill_of(twin.on, closed) == closed.bill


def test_an_attempt_that_is_followed_by_another_opens_no_bill(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    settle.settle(twin.on, job, 1, "Lost", "it is gone")
    assert not job_of(twin, job).is_settled
    assert job_of(twin, job).bill is None
    twin.run()
    settle.settle(twin.on, job, 2, "Lost", "it is gone")
    assert bill_of(twin, job).due


def test_until_it_is_closed_a_bill_says_what_the_job_cost_so_far(twin: Twin, ada: User) -> None:
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    before = bills.bill_of(twin.on, job_of(twin, job))
    twin.pass_time(10)
    after = bills.bill_of(twin.on, job_of(twin, job))
    assert [one.cost - other.cost for one, other in zip(after.charges, before.charges, strict=True)] == [
        100 * SECOND,
        10 * SECOND,
    ]
    assert after.unused == sum(charge.cost for charge in after.charges)
    hello(twin, job)
    finish(twin, job)
    assert bills.bill_of(twin.on, job_of(twin, job)).total >= after.total


def test_the_end_of_a_job_writes_no_more_for_its_bill(ada: User) -> None:
    """Whatever waits for a job's end waits for no price."""
    counted = []
    for prices_of in ({"prices": {"currency": "USD"}}, {}):
        made = site(site_toml(targets={"linux": {}, "default": "linux"}, **prices_of))
        job = submit(made, ada)
        made.run()
        hello(made, job)
        written = commits(made)
        finish(made, job)
        assert (job_of(made, job).bill is not None) == bool(prices_of)
        counted.append([len(each) for each in written])
    assert counted[0] == counted[1]


def test_what_is_held_costs_until_it_is_released(twin: Twin, ada: User) -> None:
    """A bill waits for what is not given back, and is looked at again each hour."""
    job = ran(twin, ada, runs=0)
    worker = worker_of(twin, job)
    assert worker.state is UnitState.GONE
    twin.drivers.hand.stuck = NotYet(60, "its machine is shutting down")
    late = ran(twin, ada, runs=0)
    sweep(twin, 301)
    assert bill_of(twin, job).due is None
    assert bill_of(twin, late).due == twin.world.now() + prices.CLOSE_AGAIN
    twin.drivers.hand.stuck = None
    sweep(twin, 600)
    assert worker_of(twin, late).state is UnitState.GONE
    assert bill_of(twin, late).due
    sweep(twin, 3600)
    held = next(charge for charge in bill_of(twin, late).charges if charge.name == "worker")
    assert 900 * SECOND < held.cost < 1100 * SECOND, "what it cost until it was destroyed"
    assert held.unused_cost == held.cost


def test_at_last_a_bill_is_closed_whatever_is_not_given_back(twin: Twin, ada: User) -> None:
    twin.drivers.hand.stuck = NotYet(60, "its machine is shutting down")
    job = ran(twin, ada)
    sweep(twin, prices.CLOSE_AT_LAST.total_seconds() - 60)
    assert bill_of(twin, job).due == twin.world.now() + prices.CLOSE_AGAIN
    sweep(twin, prices.CLOSE_AGAIN.total_seconds() + 1)
    assert bill_of(twin, job).due is None
    assert not [unit for unit in live(twin, job) if unit.state is not UnitState.DIRTY]


def test_a_site_without_prices_writes_no_bill_and_still_says_what_a_job_cost(ada: User) -> None:
    twin = site(FREE)
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    finish(twin, job)
    row = job_of(twin, job)
    assert row.bill is None
    assert bills.bill_of(twin.on, row).control == prices.ATTEMPT
    written = commits(twin)
    sweep(twin, 301)
    bills.close(twin.on, job)
    assert of_job(written, job) == []


def test_a_job_that_never_had_anything_costs_its_control(twin: Twin, ada: User) -> None:
    apply.pause(twin.on, "target/linux", paused=True)
    job = submit(twin, ada)
    twin.run()
    cancel.cancel(twin.on, ada, job)
    twin.run()
    assert job_of(twin, job).end.outcome is Outcome.CANCELLED
    sweep(twin, 301)
    assert bill_of(twin, job).charges == ()
    assert bill_of(twin, job).control > 0


def _file(twin: Twin, job: str, size: int, sort: str, state: ArtifactState = ArtifactState.CREATED) -> None:
    made = Artifact(
        id=id_of(job, twin.world.ulid()), path="/work/x", size=size, sha256="", by="ada", time=twin.world.now(),
        sort=sort, state=state, owners=(f"job#{job}",),
    )  # fmt: skip
    assert twin.store.commit([Create(made)])


def test_files_are_stored_and_sent(twin: Twin, ada: User) -> None:
    prior = ran(twin, ada)
    _file(twin, prior, 2**30, "output")
    job = submit(twin, ada, dependencies={"a": {"job": prior}})
    twin.run()
    _file(twin, job, 2**29, INPUT)
    _file(twin, job, 2**40, "log")
    _file(twin, job, 2**40, "output", ArtifactState.CREATING)
    assert bills.bill_of(twin.on, job_of(twin, job)).sent == 0, "no attempt has downloaded it yet"
    hello(twin, job)
    finish(twin, job)
    bill = bills.bill_of(twin.on, job_of(twin, job))
    assert bill.sent == 1_500_000
    assert bill.stored == round(0.5 * 23_000 * 720 / 730)


def test_each_attempt_that_began_downloads_the_files_again(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    _file(twin, job, 2**30, INPUT)
    hello(twin, job)
    sweep(twin, 200)
    row = job_of(twin, job)
    assert row.attempt == 2
    assert bills.bill_of(twin.on, row).sent == 1_000_000
    hello(twin, job)
    finish(twin, job)
    assert bills.bill_of(twin.on, job_of(twin, job)).sent == 2_000_000


def test_the_retention_of_a_job_goes_on_once_its_bill_is_closed(twin: Twin, ada: User) -> None:
    job = ran(twin, ada)
    sweep(twin, 301)
    until = job_of(twin, job).end.kept_until
    assert until
    assert job_of(twin, job).deadline == until
    sweep(twin, timedelta(days=30).total_seconds())
    sweep(twin)
    assert job_of(twin, job).end.kept_until is None
    assert bill_of(twin, job).due is None


def test_where_both_are_due_two_sweeps_do_both(twin: Twin, ada: User) -> None:
    job = ran(twin, ada)
    for _ in range(4):
        sweep(twin, timedelta(days=31).total_seconds() if bill_of(twin, job).due else 61)
    assert bill_of(twin, job).due is None
    assert job_of(twin, job).end.kept_until is None


def test_a_unit_whose_row_has_expired_costs_by_the_lease_alone(twin: Twin, ada: User) -> None:
    job = ran(twin, ada)
    for row in [row for row in twin.store.rows.values() if row.key.pk.startswith("unit#")]:
        del twin.store.rows[row.key]
    bench, worker = bills.bill_of(twin.on, job_of(twin, job)).charges
    assert round(worker.cost / SECOND) == 30
    assert round(bench.cost / SECOND, -1) == 300


def test_a_price_that_a_factory_says_counts(twin: Twin, ada: User) -> None:
    job = submit(twin, ada)
    twin.run()
    worker = worker_of(twin, job)
    put(twin, worker, creation=units.mark_made(worker, twin.world.now(), timedelta(0), {"price": "36"}).creation)
    twin.pass_time(10)
    hello(twin, job)
    finish(twin, job)
    (charge,) = bills.bill_of(twin.on, job_of(twin, job)).charges
    assert round(charge.cost / SECOND) == 100
