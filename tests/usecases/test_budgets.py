"""Budgets over the real use cases: owners are warned, then wait; and all get on. [QUEUE-1]"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.commands import SubmitJob
from penstock.domain.costs import Spend
from penstock.domain.jobs.backlogs import Backlogged
from penstock.domain.jobs.jobs import State
from penstock.domain.pools.forecast import Action
from penstock.domain.probes.canaries import USER
from penstock.domain.users.users import User, tally_key
from penstock.kernel.rows import Create
from penstock.system import current_site
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases import budgets
from penstock.usecases.jobs import cancel, jobs
from penstock.usecases.jobs import submit as jobs_submit
from penstock.usecases.site import apply
from tests.usecases.steps import SCRIPT, finish, hello, job_of, submit, sweep, told

BEA = User(name="bea", created=START, version=1)


def set_site(twin: Twin, budget: float | None = 10, limits: dict[str, int] | None = None, **more: Any) -> None:
    sections: dict[str, Any] = {"targets": {"linux": {"limit": 9, "price": 3600}, "default": "linux", **more}}
    sections["prices"] = {"currency": "EUR", "dollar": 1}
    if budget is not None:
        sections["budgets"] = {"owners": {"ada": budget}}
    apply.apply(twin.on, "root", site_toml(**sections, limits=limits or {}), "site.toml")
    twin.run()


@pytest.fixture
def twin() -> Twin:
    made = Twin()
    set_site(made)
    return made


def spend(twin: Twin, amount: float, owner: str = "ada", day: str = "2026-01-01", currency: str = "EUR") -> None:
    micros = round(amount * 1_000_000)
    row = Spend(owner=owner, target="x", day=day, currency=currency, part=0, jobs=1, worker=micros)
    assert twin.store.commit([Create(row)])


def states(twin: Twin, *made: str) -> list[State]:
    return [job_of(twin, each).state for each in made]


def backlog(twin: Twin) -> list[str]:
    return [row.job for row in twin.store.rows.values() if isinstance(row, Backlogged)]


def test_who_has_spent_its_budget_waits_and_others_do_not(twin: Twin, ada: User) -> None:
    spend(twin, 10)
    made = [submit(twin, ada), submit(twin, ada), submit(twin, BEA)]
    twin.run()
    assert states(twin, *made) == [State.WAITING, State.WAITING, State.ACQUIRING]
    assert sorted(backlog(twin)) == made[:2]
    why = [jobs.explain(twin.on, job_of(twin, each)) for each in made]
    assert why[0].summary == (
        "the job waits because the budget of ada is spent: jobs of ada have cost 10 of 10 EUR since 2026-01-01; "
        "the next period begins at 2026-02-01 00:00:00Z; none of its other jobs stands before it"
    )
    assert "1 of its jobs stands before it" in why[1].summary
    assert [each.way for each in why[0].unblocks] == [Action.BUDGET]
    assert [each.warning for each in why] == [None, None, None]
    assert any("it waits for other jobs of ada, or its budget" in line for line in told(twin, made[0]))


def test_what_jobs_really_cost_is_spent(twin: Twin, ada: User) -> None:
    """A job of twenty seconds costs twenty; the sweep counts it, and the next job waits."""
    first = submit(twin, ada)
    twin.run()
    hello(twin, first)
    twin.pass_time(20)
    finish(twin, first)
    second = submit(twin, ada)
    twin.run()
    assert states(twin, second) == [State.ACQUIRING], "its price is not final"
    sweep(twin, 301)
    third = submit(twin, ada)
    twin.run()
    assert states(twin, second, third) == [State.ACQUIRING, State.WAITING], "what is under way goes on"


def test_all_go_on_when_the_next_period_begins(twin: Twin, ada: User) -> None:
    twin.pass_time(timedelta(days=30, hours=23).total_seconds())
    spend(twin, 10)
    made = [submit(twin, ada) for _ in range(4)]
    sweep(twin, 1200)
    sweep(twin, 1200)
    assert states(twin, *made) == [State.WAITING] * 4
    sweep(twin, 1300)
    sweep(twin, 700)
    assert states(twin, *made) == [State.ACQUIRING] * 4
    assert backlog(twin) == []
    assert any("ada is within its budget; ready to run" in line for line in told(twin, made[0]))


@pytest.mark.parametrize("budget", [11, None])
def test_all_go_on_when_the_budget_is_raised_or_removed(twin: Twin, ada: User, budget: float | None) -> None:
    spend(twin, 10)
    made = [submit(twin, ada) for _ in range(3)]
    twin.run()
    set_site(twin, budget)
    sweep(twin, 700)
    assert states(twin, *made) == [State.ACQUIRING] * 3
    assert backlog(twin) == []


def test_a_job_goes_on_whose_owners_tally_is_gone(twin: Twin, ada: User) -> None:
    spend(twin, 10)
    job = submit(twin, ada)
    twin.run()
    twin.store.rows.pop(tally_key("ada"), None)
    set_site(twin, 11)
    sweep(twin, 700)
    assert states(twin, job) == [State.ACQUIRING]


def test_a_waiting_job_may_be_cancelled(twin: Twin, ada: User) -> None:
    spend(twin, 10)
    job = submit(twin, ada)
    twin.run()
    cancel.cancel(twin.on, ada, job)
    twin.run()
    assert (states(twin, job), backlog(twin)) == ([State.SETTLED], [])


def test_with_a_limit_of_jobs_too_both_count(twin: Twin, ada: User) -> None:
    set_site(twin, 10, {"at_once": 1})
    first, second = submit(twin, ada), submit(twin, ada)
    twin.run()
    assert states(twin, first, second) == [State.ACQUIRING, State.WAITING]
    spend(twin, 10)
    hello(twin, first)
    finish(twin, first)
    assert states(twin, second) == [State.WAITING]
    assert "the budget of ada is spent" in jobs.explain(twin.on, job_of(twin, second)).summary
    set_site(twin, 20, {"at_once": 1})
    sweep(twin, 700)
    third = submit(twin, ada)
    twin.run()
    assert states(twin, second, third) == [State.ACQUIRING, State.WAITING]
    assert "fewer jobs of ada" in jobs.explain(twin.on, job_of(twin, third)).summary


def test_who_is_near_its_budget_is_warned(twin: Twin, ada: User) -> None:
    spend(twin, 7.999999)
    calm = submit(twin, ada)
    spend(twin, 0.000001, day="2026-01-02")
    twin.pass_time(timedelta(days=1).total_seconds())
    warned, other = submit(twin, ada), submit(twin, BEA)
    twin.run()
    said = (
        "the budget: jobs of ada have cost 8 of 10 EUR since 2026-01-01; the next period begins at 2026-02-01 00:00:00Z"
    )
    assert f"warning: {said}" in told(twin, warned)
    assert not [line for job in (calm, other) for line in told(twin, job) if "warning" in line]
    assert jobs.explain(twin.on, job_of(twin, warned)).warning == said
    assert jobs.explain(twin.on, job_of(twin, other)).warning is None
    hello(twin, warned)
    finish(twin, warned)
    assert jobs.explain(twin.on, job_of(twin, warned)).warning is None, "it is over"


def test_a_job_that_waits_near_its_budget_is_warned_too(twin: Twin, ada: User) -> None:
    """What ends its wait is not the budget."""
    first = submit(twin, ada)
    second = submit(twin, ada, dependencies={"a": {"job": first}})
    twin.run()
    spend(twin, 8)
    why = jobs.explain(twin.on, job_of(twin, second))
    assert why.unblocks
    assert str(why.warning).startswith("the budget: jobs of ada have cost 8 of 10 EUR")
    assert "the job waits for 1 of the 1 that it depends on" in why.summary


def test_other_months_other_currencies_and_other_owners_do_not_count(twin: Twin, ada: User) -> None:
    spend(twin, 100, day="2025-12-31")
    spend(twin, 100, currency="USD")
    spend(twin, 100, owner="bea")
    job = submit(twin, ada)
    twin.run()
    assert states(twin, job) == [State.ACQUIRING]
    found = budgets.account(twin.on, current_site(twin.on), "ada")
    assert found
    assert found.spent == 0


def test_a_plan_says_that_it_would_wait(twin: Twin, ada: User) -> None:
    assert not jobs_submit.plan(twin.on, ada, SubmitJob(SCRIPT)).depends
    spend(twin, 10)
    planned = jobs_submit.plan(twin.on, ada, SubmitJob(SCRIPT))
    assert planned.sentences[0].startswith("first it would wait for its owner's budget: jobs of ada have cost 10 of 10")


def test_a_job_that_waited_for_another_waits_for_the_budget_too(twin: Twin, ada: User) -> None:
    first = submit(twin, ada)
    twin.run()
    second = submit(twin, ada, dependencies={"a": {"job": first}})
    spend(twin, 10)
    hello(twin, first)
    finish(twin, first)
    assert states(twin, second) == [State.WAITING]
    assert backlog(twin) == [second]


def test_canaries_have_no_budget(ada: User) -> None:
    twin = Twin()
    canary = {"every": "1h", "script": "true"}
    sections = {"targets": {"linux": {"limit": 2, "canary": canary}, "default": "linux"}}
    toml = site_toml(**sections, prices={"currency": "USD"}, budgets={"default": 0})
    apply.apply(twin.on, "root", toml, "site.toml")
    twin.run()
    sweep(twin, 3700)
    (job,) = [row for row in twin.store.rows.values() if getattr(row, "owner", "") == USER and hasattr(row, "end")]
    assert job.state is State.ACQUIRING  # type: ignore[attr-defined]
    waits = submit(twin, ada)
    twin.run()
    assert states(twin, waits) == [State.WAITING], "a default of nothing is everybody's"


def test_without_budgets_nothing_more_is_read(ada: User) -> None:
    twin = Twin()
    set_site(twin, None)
    asked = []
    find = twin.store.find
    twin.store.find = lambda pk, *more, **how: (asked.append(pk), find(pk, *more, **how))[1]  # type: ignore[method-assign]
    submit(twin, ada)
    twin.run()
    assert not [pk for pk in asked if pk.startswith(("spend#", "backlog#"))]
