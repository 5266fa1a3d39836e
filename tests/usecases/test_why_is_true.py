"""What `why` names unblocks a job: whoever does it, step by step, sees the job start. And nothing else unblocks it."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.api import pools as pools_api
from penstock.domain.jobs.jobs import Job, Result, State
from penstock.domain.pools.forecast import Action, Unblock
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.units.units import Unit, UnitState, format_time, unit_key
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured, Refused, Unknown, Unsatisfiable
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import cancel, jobs
from penstock.usecases.site import apply
from penstock.usecases.units import maintenance
from tests.usecases.steps import finish, hello, job_of, submit, sweep

ROOT = User(name="root", privileges=("admin",), created=START, version=1)
MOST_STEPS = 60
ERRORS = (Unsatisfiable("its disk is gone"), Misconfigured("the role may not do that"), Unknown("HTTP 500"))


def site(limit: int) -> Twin:
    twin = Twin()
    made = site_toml(
        targets={"linux": {"limit": limit, "uses": {"vcpus": 2}}, "wide": {"limit": 40}},
        quotas={"vcpus": 2 * limit},
        wells={"locks": "lock", "accounts": "hand"},
        resources={
            "bench": {"well": "locks", "names": [f"bench-{number}" for number in range(limit)]},
            "account": {"well": "accounts", "limit": limit},
        },
    )
    apply.apply(twin.on, "root", made, "site.toml")
    twin.run()
    return twin


ASKS: list[dict[str, Any]] = [
    {"target": "linux"},
    {"target": "wide", "resources": ["bench"]},
    {"target": "wide", "resources": ["account"]},
    {"target": "linux", "resources": ["account"]},
    {"target": "linux", "resources": ["bench"]},
    {"target": "wide", "resources": ["account", "bench"]},
]
POOLS = ("target/linux", "target/wide", "quota/vcpus", "resource/bench", "resource/account")


def units(twin: Twin) -> list[Unit]:
    return [row for row in twin.store.rows.values() if isinstance(row, Unit) and row.state is not UnitState.GONE]


def open_jobs(twin: Twin) -> list[Job]:
    return [row for row in twin.store.rows.values() if isinstance(row, Job) and not row.is_settled]


def hold(twin: Twin, unit: Unit) -> None:
    with suppress(Refused):  # it is too late for it
        maintenance.hold(twin.on, ROOT, unit.is_a, unit.id, "to look at it", 5 * 86400)


def end(twin: Twin, job: str) -> None:
    found = job_of(twin, job)
    if found.state is State.RUNNING:
        finish(twin, job, Result.SUCCEEDED)
    elif not found.is_settled:
        cancel.cancel(twin.on, ROOT, job)
    twin.run()


def begin(twin: Twin, job: str) -> None:
    """Let the job's worker say hello, if it has one."""
    twin.run()
    mine = [unit for unit in units(twin) if (unit.lease.job, unit.lease.order) == (job, 0)]
    if any(unit.state is UnitState.CREATING and unit.creation.made for unit in mine):
        hello(twin, job)


def let_go(twin: Twin, name: str) -> None:
    """Do what ends a delay: end a hold, repair what makes a unit and wait for it, or let it out of quarantine."""
    twin.drivers.hand.stuck = twin.drivers.basin.stuck = None
    unit = twin.store.get(unit_key(name), Unit)
    assert unit
    if unit.hold or unit.state is UnitState.QUARANTINED:
        maintenance.release(twin.on, ROOT, unit.is_a, unit.id)
    twin.run()
    sweep(twin, 700)


def do(twin: Twin, act: Unblock) -> None:
    """Do exactly what is named."""
    match act.way:
        case Action.RESUME:
            apply.pause(twin.on, act.pool, paused=False)
        case Action.GIVE_BACK | Action.END:
            assert act.job, act
            end(twin, act.job)
        case Action.LET_GO:
            let_go(twin, act.unit)
        case Action.HELLO:
            begin(twin, act.job)
        case Action.MAKE if act.unit:
            probe = twin.store.get(unit_key(act.unit), Unit)
            assert probe
            begin(twin, probe.lease.job)
        case Action.MAKE | Action.PUT_BACK:
            sweep(twin, 700)
        case _:
            raise AssertionError(act)
    twin.run()


def do_something_else(twin: Twin, acts: tuple[Unblock, ...], mine: str, data: st.DataObject) -> None:
    """Do one thing that would unblock others, and is not named."""
    named = {each for act in acts for each in (act.pool if act.way is Action.RESUME else "", act.job, act.unit)}
    ends = [job.id for job in open_jobs(twin) if job.id not in {*named, mine}]
    held = [unit.id for unit in units(twin) if unit.hold and unit.id not in named and unit.lease.job != mine]
    shut = [name for name in POOLS if name not in named and pool(twin, name).paused]
    if ends or held or shut:
        what = data.draw(st.sampled_from([*ends, *held, *shut]))
        if what in ends:
            end(twin, what)
        elif what in held:
            unit = twin.store.get(unit_key(what), Unit)
            assert unit
            maintenance.release(twin.on, ROOT, unit.is_a, unit.id)
        else:
            apply.pause(twin.on, what, paused=False)
        twin.run()


def pool(twin: Twin, name: str) -> Pool:
    found = twin.store.get(pool_key(name), Pool)
    assert found
    return found


def stir(twin: Twin, data: st.DataObject) -> None:
    """Something happens at the site."""
    what = data.draw(
        st.sampled_from(
            ["submit"] * 5 + ["begin", "end", "end", "hold", "hold", "stuck", "stuck", "pause", "time", "time"]
        )
    )
    if what == "submit":
        submit(twin, ROOT, **data.draw(st.sampled_from(ASKS)))
        twin.run()
        return
    if what == "stuck":
        driver = data.draw(st.sampled_from([twin.drivers.hand, twin.drivers.basin]))
        driver.stuck = data.draw(st.sampled_from([*ERRORS, None]))
    elif what == "pause":
        apply.pause(twin.on, data.draw(st.sampled_from(POOLS)), paused=True)
    elif what == "time":
        for _ in range(data.draw(st.integers(1, 4))):
            sweep(twin, data.draw(st.sampled_from([1, 20, 61, 700])))
    elif what == "hold" and units(twin):
        hold(twin, data.draw(st.sampled_from(units(twin))))
    elif open_jobs(twin):
        job = data.draw(st.sampled_from(open_jobs(twin))).id
        (begin if what == "begin" else end)(twin, job)
    twin.run()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
@pytest.mark.parametrize("limit", [1, 2])
def test_whoever_does_what_is_named_sees_the_job_start(limit: int, data: st.DataObject) -> None:
    """No blocker is named twice, and where there is one of everything, nothing that is not named unblocks the job."""
    twin = site(limit)
    for _ in range(data.draw(st.integers(4, 20))):
        stir(twin, data)
    left = [job.id for job in open_jobs(twin) if job.state in (State.ACQUIRING, State.QUEUED)]
    if not left:
        return
    job = data.draw(st.sampled_from(left))
    done: list[str] = []
    while job_of(twin, job).state in (State.ACQUIRING, State.QUEUED):
        was = jobs.explain(twin.on, job_of(twin, job))
        assert was.unblocks, was
        if limit == 1 and was.blocked_on and data.draw(st.booleans()):
            do_something_else(twin, was.unblocks, job, data)
            now = jobs.explain(twin.on, job_of(twin, job))
            assert now.blocked_on, (was, now)
            was = now
        act = was.unblocks[0]
        assert str(act) not in done, (act, done)
        done.append(str(act))
        assert len(done) < MOST_STEPS
        do(twin, act)
    assert job_of(twin, job).state in (State.RUNNING, State.SETTLED), done


def running(twin: Twin, **ask: Any) -> str:
    job = submit(twin, ROOT, **ask)
    begin(twin, job)
    assert job_of(twin, job).state is State.RUNNING
    return job


def unit_of(twin: Twin, job: str, order: int) -> Unit:
    return next(unit for unit in units(twin) if (unit.lease.job, unit.lease.order) == (job, order))


def waiting(twin: Twin, **ask: Any) -> str:
    job = submit(twin, ROOT, **ask)
    twin.run()
    return job


def test_a_hold_is_named_with_who_why_and_until_when_and_not_the_job_that_has_ended() -> None:
    """UNIT-3"""
    twin = site(1)
    first = running(twin, target="linux", resources=["account"])
    worker, account = unit_of(twin, first, 0), unit_of(twin, first, 1)
    hold(twin, worker)
    held = twin.store.get(worker.key, Unit)
    assert held
    assert held.hold
    job = waiting(twin, target="wide", resources=["account"])
    during = jobs.explain(twin.on, job_of(twin, job))
    ends = f"root or an operator releases worker {worker.id}, or its hold ends at {format_time(held.hold.until)}"
    assert during.next_steps == f"{first} ends; then {ends}"
    end(twin, first)
    found = jobs.explain(twin.on, job_of(twin, job))
    said = f"worker {worker.id} is {held.hold}"
    assert found.summary == f"the job waits for account: {said}; position 1 in the queue"
    assert (found.next_steps, found.expected_start, found.basis) == (ends, held.hold.until, said)
    assert found.blocked_on
    assert (found.blocked_on.held_by, [each.slot for each in found.blocked_on.kept]) == ((), [account.lease.slot])
    shown = pools_api._pool(twin.on, pool(twin, "resource/account"), whole=True).slots
    assert shown
    assert shown[0].kept
    assert (shown[0].kept.cause, shown[0].kept.by, shown[0].kept.says) == ("hold", "root", said)


def test_what_cannot_be_cleaned_is_named_with_its_error_and_the_start_is_unknown() -> None:
    twin = site(1)
    first = running(twin, target="wide", resources=["account"])
    account = unit_of(twin, first, 1)
    end_ = jobs.explain(twin.on, job_of(twin, waiting(twin, target="wide", resources=["account"])))
    assert end_.next_steps == f"slot 1 of resource/account is given back by {first}"
    twin.drivers.basin.stuck = Misconfigured("the role may not do that")
    end(twin, first)
    job = waiting(twin, target="wide", resources=["account"])
    found = jobs.explain(twin.on, job_of(twin, job))
    assert f"resource {account.id} is not clean since" in found.summary
    assert "well accounts failed 1 time: cleaning failed: Misconfigured: the role may not do that" in found.summary
    assert first not in found.summary
    assert (found.next_steps or "").startswith(
        f"well accounts can clean resource {account.id} again, which an operator may have to see to"
    )
    assert (found.expected_start, found.basis) == (None, None)


def test_a_holder_that_waits_itself_is_named_after_what_it_waits_for() -> None:
    twin = site(1)
    first = running(twin, target="linux")
    second = waiting(twin, target="linux", resources=["bench"])
    job = waiting(twin, target="wide", resources=["bench"])
    found = jobs.explain(twin.on, job_of(twin, job))
    assert [(act.way, act.job) for act in found.unblocks] == [(Action.GIVE_BACK, first), (Action.GIVE_BACK, second)]
    apply.pause(twin.on, "target/linux", paused=True)
    found = jobs.explain(twin.on, job_of(twin, job))
    assert [act.way for act in found.unblocks] == [Action.RESUME, Action.GIVE_BACK, Action.GIVE_BACK]
    assert (found.expected_start, found.basis) == (None, None)


def test_a_unit_that_is_held_before_it_is_made_is_named() -> None:
    twin = site(1)
    job = waiting(twin, target="linux")
    worker = unit_of(twin, job, 0)
    hold(twin, worker)
    found = jobs.explain(twin.on, job_of(twin, job))
    assert f"(worker {worker.id} is held by root until" in found.summary
    assert [(act.way, act.unit) for act in found.unblocks] == [(Action.LET_GO, worker.id), (Action.HELLO, "")]
    assert found.expected_start == twin.world.now() + timedelta(days=5)


def test_slots_that_a_raised_limit_would_make_have_no_names() -> None:
    twin = site(1)
    apply.resize(twin.on, "target/linux", 0)
    twin.run()
    first, job = waiting(twin, target="linux"), waiting(twin, target="linux")
    assert jobs.explain(twin.on, job_of(twin, job)).next_steps == (
        "an operator raises the limit of target/linux to 1; then "
        f"a slot of target/linux and 2 of quota/vcpus are given back by {first}"
    )
