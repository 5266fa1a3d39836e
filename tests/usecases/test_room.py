"""What a job may want at once is bounded before it is accepted; what fails all the same costs only itself. [QUEUE-1]"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from penstock import listings
from penstock.domain import metrics
from penstock.domain.commands import SubmitJob
from penstock.domain.jobs import admission
from penstock.domain.jobs.jobs import Outcome
from penstock.domain.pools.grants import WINDOW, rows_of_grant
from penstock.domain.pools.pools import WORKER, Pool
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Misconfigured, Refused, Unknown
from penstock.kernel.rows import Change, Create
from penstock.ports import NotYet, Order
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases import sweep
from penstock.usecases.artifacts import expire
from penstock.usecases.isolation import Isolation
from penstock.usecases.jobs import settle
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.pools import scheduler, serving
from penstock.usecases.site import apply
from penstock.usecases.units import reconcile
from penstock.usecases.users import privileges
from tests.usecases.races import Died, die
from tests.usecases.steps import finish, hello, job_of, run_to_end, submit

MIDS = WINDOW - 1
"""As many claims as can stand before another, for it must be one of the first WINDOW itself."""

SITE = site_toml(
    targets={"linux": {"limit": 40}, "default": "linux"},
    wells={"locks": "lock", "spring": "hand"},
    resources={
        "account": {
            "well": "spring", "limit": 40, "uses": {"credit": 1}, "privilege": "bank",
            "warm": {"max": 40, "idle": "5h", "life": "9h"},
        },
        "mid": {"well": "locks", "limit": MIDS, "uses": {"credit": 50}},
        "plain": {"well": "locks", "limit": 40},
        "hall": {"well": "locks", "limit": 2, "uses": {"plain": 40}},
    },
    quotas={"credit": MIDS * 50 + 13},
)  # fmt: skip
AMOUNTS = ("quota/credit",)
CAROL = User(name="carol", privileges=("bank",), created=Twin().world.now())


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    apply.apply(made.on, "admin", SITE, "site.toml")
    made.store.commit([Create(CAROL)])
    made.run()
    return made


def many(kind: str, count: int) -> dict[str, Any]:
    return {f"{kind}{number:02d}": {"type": kind} for number in range(count)}


def written(twin: Twin) -> list[Sequence[Change]]:
    """All commits from here on."""
    found: list[Sequence[Change]] = []
    commit = twin.store.commit

    def recording(changes: Sequence[Change]) -> bool:
        found.append(changes)
        return commit(changes)

    twin.store.commit = recording  # type: ignore[method-assign]
    return found


def bound(twin: Twin, job: str) -> int:
    return rows_of_grant([need for need in job_of(twin, job).request.needs if need.order != WORKER], AMOUNTS)


def test_a_grant_has_as_many_rows_as_it_was_counted_to_have(twin: Twin) -> None:
    """The most that there can be: warm units that bring their share of an amount, an owner's row, overtaken claims."""
    run_to_end(twin, submit(twin, CAROL, resources=many("account", 13)))
    for _ in range(2 * MIDS):
        submit(twin, CAROL, resources=["mid"])
    twin.run()
    commits = written(twin)
    job = submit(twin, CAROL, resources=many("account", 13))
    twin.run()
    most = max(map(len, commits))
    assert most == bound(twin, job) - (WINDOW - MIDS)
    assert most <= limits.TRANSACTION_ITEMS < most + 6, "with one more it could not be accepted"


@pytest.mark.parametrize("waits", [False, True])
def test_a_grant_of_units_that_are_yet_to_be_made_has_fewer_rows(
    twin: Twin, monkeypatch: pytest.MonkeyPatch, *, waits: bool
) -> None:
    """At once it has no rows of claims, but the job's."""
    monkeypatch.setattr(scheduler, "DIRECT_TRIES", int(not waits))
    commits = written(twin)
    job = submit(twin, CAROL, resources=many("account", 13))
    twin.run()
    assert max(map(len, commits)) == bound(twin, job) - WINDOW - 12 - (0 if waits else 2 - 1)


def test_a_job_of_as_many_resources_as_there_may_be_is_granted_and_ends(twin: Twin) -> None:
    job = submit(twin, CAROL, resources=many("plain", limits.RESOURCES))
    run_to_end(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("count", [14, limits.RESOURCES])
def test_more_than_one_commit_can_grant_is_refused_with_what_to_do(twin: Twin, count: int) -> None:
    """P1: a job of 20 resources that use a quota was accepted, and its grant had 103 rows."""
    with pytest.raises(Refused, match=rf"wants {count} of account at once.*room for 100: ask for at most 13") as told:
        submit(twin, CAROL, resources=many("account", count))
    (fault,) = told.value.faults
    assert (told.value.status, told.value.code, fault.where) == (422, "unsatisfiable", "resources")
    assert fault.hint == "ask for at most 13 of them, or let several jobs share them"


def test_more_slots_than_one_commit_can_grant_are_refused(twin: Twin) -> None:
    with pytest.raises(Refused, match=r"wants 1 of hall at once, .* up to 103 rows, and there is room for 100"):
        submit(twin, CAROL, resources=["hall"])


def test_nothing_is_made_ahead_that_no_commit_has_room_for(twin: Twin) -> None:
    site = site_toml(
        targets={"linux": {"limit": 1}},
        wells={"spring": "hand"},
        resources={
            "plain": {"well": "spring", "limit": 60},
            "hall": {"well": "spring", "limit": 1, "uses": {"plain": 50}, "warm": {"min": 1, "max": 1}},
        },
    )
    apply.apply(twin.on, "admin", site, "site.toml")
    twin.run()
    assert sweep.sweep(twin.on).failed == 0
    assert twin.drivers.basin.made == {}


def test_a_job_that_an_older_version_accepted_ends_and_keeps_nobody_waiting(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "rows_of_grant", lambda needs, amounts: 0)
    large = submit(twin, CAROL, resources=many("account", limits.RESOURCES))
    twin.run()
    small = submit(twin, CAROL, resources=["account"])
    twin.run()
    ended = job_of(twin, large)
    assert ended.end.outcome is Outcome.FAILED
    assert "to grant all that the job wants at once takes 10" in str(ended.end.reason)
    hello(twin, small)
    finish(twin, small)
    assert job_of(twin, small).end.outcome is Outcome.SUCCEEDED
    assert sweep.sweep(twin.on).failed == 0


@pytest.mark.usefixtures("by_flow")
@pytest.mark.parametrize("less", [0, 1])
def test_a_claim_is_granted_if_a_commit_has_just_room_for_it(
    twin: Twin, monkeypatch: pytest.MonkeyPatch, less: int
) -> None:
    commits = written(twin)
    run_to_end(twin, submit(twin, CAROL, resources=many("plain", 20)))
    job = submit(twin, CAROL, resources=many("plain", 20))
    monkeypatch.setattr(limits, "TRANSACTION_ITEMS", max(map(len, commits)) - less)
    twin.run()
    assert job_of(twin, job).is_settled is bool(less)


def test_a_script_whose_row_would_be_too_big_is_refused(twin: Twin) -> None:
    """As JSON a character that nobody can print takes six bytes, and a row is JSON."""
    script = "#!/bin/sh\n" + "\x01" * (limits.ROW_BYTES // 6)
    assert len(script) < limits.SCRIPT_BYTES
    with pytest.raises(Refused, match="the job's script take") as refused:
        jobs_submit.submit(twin.on, CAROL, SubmitJob(script), None)
    assert (refused.value.status, refused.value.code) == (413, "job-too-big")


@pytest.mark.usefixtures("by_flow")
def test_a_job_that_no_commit_has_room_for_ends_also_if_the_function_dies_first(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JOB-1: its claim stays until it has ended, so that whoever serves next finds it."""
    commits = written(twin)
    run_to_end(twin, submit(twin, CAROL, resources=many("plain", 20)))
    job = submit(twin, CAROL, resources=many("plain", 20))
    monkeypatch.setattr(limits, "TRANSACTION_ITEMS", max(map(len, commits)) - 1)
    with monkeypatch.context() as patch:
        patch.setattr(privileges, "end_waiting", die)
        with pytest.raises(Died):
            twin.run()
    twin.queues.messages.clear()
    sweep.sweep(twin.on)
    twin.run()
    assert job_of(twin, job).end.outcome is Outcome.FAILED


def test_one_pool_that_cannot_be_served_keeps_no_other_waiting(twin: Twin) -> None:
    jobs = [submit(twin, CAROL, resources=[kind]) for kind in ("account", "mid", "plain")]
    serve = serving.serve

    def failing(on: Any, names: Sequence[str]) -> None:
        if "quota/credit" in names:  # the first of all
            raise ValueError("a row that cannot be")
        serve(on, names)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "DIRECT_TRIES", 0)
        patch.setattr(serving, "serve", lambda *_: None)
        twin.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "serve", failing)
        assert sweep.sweep(twin.on).failed == 1
    for job in jobs:
        run_to_end(twin, job)
    assert {job_of(twin, job).end.outcome for job in jobs} == {Outcome.SUCCEEDED}


PARTS = {
    "served": (sweep, "serve_all"),
    "ended": (sweep, "settle_ended"),
    "deleted": (expire, "expire_overdue"),
    "compared": (reconcile, "reconcile"),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_the_sweep_that_fails_stops_no_other(twin: Twin, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    called = []
    for name, (module, function) in PARTS.items():
        real = getattr(module, function)

        def one(*given: Any, name: str = name, real: Any = real) -> Any:
            called.append(name)
            if name == part:
                raise ValueError("a row that cannot be")
            return real(*given)

        monkeypatch.setattr(module, function, one)
    assert sweep.sweep(twin.on).failed == 1
    assert called == list(PARTS)
    assert twin.metrics.last(metrics.FAILED_NUDGES) == 1


def test_a_flow_that_cannot_be_settled_stops_no_other(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (submit(twin, CAROL, resources=["plain"], retries=0) for _ in range(2))
    twin.run()
    settled = settle.settle

    def failing(on: Any, job: str, *given: Any, **how: Any) -> None:
        if job == one:
            raise ValueError("a row that cannot be")
        settled(on, job, *given, **how)

    monkeypatch.setattr(twin.flows, "ended", lambda: [(one, 1, "FAILED"), (two, 1, "FAILED")])
    monkeypatch.setattr(settle, "settle", failing)
    done = sweep.sweep(twin.on)
    assert (done.failed, done.flows) == (1, 1)
    assert [job_of(twin, job).is_settled for job in (one, two)] == [False, True]


def test_all_pools_are_served_however_many_there_are(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "PAGE", 2)
    pools, _ = sweep.serve_all(twin.on, Isolation())
    assert [pool.name for pool in pools] == [pool.name for pool in twin.store.listed("pools", Pool)]
    apply.apply(twin.on, "admin", site_toml(targets={"linux": {"limit": 1}}), "site.toml")
    assert {pool.name: pool.limit for pool in apply.every_pool(twin.on) if pool.limit} == {"target/linux": 1}


def test_a_stray_that_cannot_be_destroyed_keeps_no_other(twin: Twin) -> None:
    """Its driver may raise anything: not only what it should."""
    destroy = twin.drivers.hand.destroy

    def failing(unit: str, now: datetime) -> Any:
        if unit == "w-1":
            raise KeyError("a driver's own mistake")
        return destroy(unit, now)

    twin.drivers.hand.destroy = failing  # type: ignore[method-assign]
    for name in ("w-1", "w-2"):
        twin.drivers.hand.made[name] = Order(name, "linux", "1")
    for _ in range(20):
        twin.pass_time(60)
        done = sweep.sweep(twin.on)
    assert list(twin.drivers.hand.made) == ["w-1"]
    assert done.failed <= 1


@pytest.mark.parametrize("said", [NotYet(5, "x" * 500_000), Unknown("x" * 500_000), Misconfigured("x" * 500_000)])
def test_a_driver_that_says_too_much_stops_nothing(twin: Twin, said: Any) -> None:
    """A service may answer with a whole page: the unit's row, and its job's log, have room for its beginning."""
    twin.drivers.basin.says = [said]
    job = submit(twin, CAROL, resources=["account"])
    for _ in range(30):
        twin.run()
        if twin.drivers.hand.made:
            break
        twin.pass_time(61)
        sweep.sweep(twin.on)
    run_to_end(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED
