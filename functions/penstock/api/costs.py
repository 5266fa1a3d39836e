"""Costs: what a job cost, part by part, and what all jobs of somebody did.

Amounts are decimal numbers as text, so that no reader rounds them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from penstock.api.app import Caller, Router
from penstock.api.shapes import present, view
from penstock.domain.budgets import Account
from penstock.domain.costs import By, Cost
from penstock.domain.jobs.jobs import Bill, Charge, Job
from penstock.domain.money import shown
from penstock.domain.pools.pools import WORKER
from penstock.domain.users.users import READ
from penstock.kernel.frozen import dataclass
from penstock.system import System, current_site
from penstock.usecases import budgets, costs
from penstock.usecases.jobs import bills, jobs

router = Router("costs")


@dataclass(frozen=True)
class ChargeView:
    """What one thing cost that a job had, in all its attempts."""

    name: Annotated[str, "The resource's name in the job, or `worker`."]
    type: Annotated[str, "Its resource type, or the worker's target."]
    seconds: Annotated[float, "For how many seconds the job had it, until it was given back clean."]
    unused_seconds: Annotated[float, "How many of them the script did not run."]
    cost: Annotated[str, "What it cost."]
    unused: Annotated[str, "The part of that for the seconds in which the script did not run."]


@dataclass(frozen=True)
class CostView:
    """What a job cost. Amounts are decimal numbers with six decimals, like `0.002231`."""

    job: Annotated[str, "The job's id."]
    currency: Annotated[str, "The currency of all amounts, such as `USD`."]
    is_final: Annotated[bool, "Whether it will not change any more. If not, this is what the job has cost so far."]
    final_after: Annotated[str | None, "When it is looked at again, as RFC 3339; null if it is not."]
    total: Annotated[str, "All of it."]
    unused: Annotated[str, "The part for what the job had while its script did not run."]
    control: Annotated[str, "What the service's own work for the job costs, at the list prices of AWS."]
    worker: Annotated[str, "What its workers cost."]
    resources: Annotated[str, "What its resources cost."]
    stored: Annotated[str, "What its inputs and outputs cost, for as long as they are kept after its end."]
    sent: Annotated[str, "What the bytes cost that its workers downloaded."]
    charges: Annotated[list[ChargeView], "Its resources and its worker, one by one."]


@dataclass(frozen=True)
class SumView:
    """What the jobs of one owner, target or day cost together, or what jobs had of one pool.

    Amounts are decimal numbers with six decimals.
    """

    name: Annotated[
        str,
        "The owner, the target, the day, such as `2026-11-27` in UTC, or the pool, such as `target/linux` or "
        "`resource/bench`. `other` is all that is of no pool: the service and files.",
    ]
    currency: Annotated[str, "The currency of all amounts, such as `USD`."]
    jobs: Annotated[int, "How many jobs they are. Those of a pool had something of it; those of `other` are all."]
    total: Annotated[str, "All of it."]
    unused: Annotated[str, "The part for what the jobs had while their scripts did not run."]
    control: Annotated[str, "What the service's own work for the jobs costs, at the list prices of AWS."]
    worker: Annotated[str, "What their workers cost."]
    resources: Annotated[str, "What their resources cost."]
    stored: Annotated[str, "What their inputs and outputs cost, for as long as they are kept."]
    sent: Annotated[str, "What the bytes cost that their workers downloaded."]


@dataclass(frozen=True)
class BudgetView:
    """How an owner stands by its budget."""

    owner: Annotated[str, "The user or repository."]
    budget: Annotated[str, "What its jobs may cost in a period. Once that is spent, further jobs wait."]
    spent: Annotated[str, "What its jobs have cost in the present period."]
    currency: Annotated[str, "The currency of both, such as `USD`."]
    since: Annotated[str, "The first day of the period, in UTC."]
    ends: Annotated[str, "When the next period begins, as RFC 3339."]
    is_near: Annotated[bool, "Whether the owner is warned."]
    is_spent: Annotated[bool, "Whether further jobs wait."]


@dataclass(frozen=True)
class SumPage:
    """What jobs cost that ended in some days: first the dearest; days in their order."""

    items: Annotated[list[SumView], "The sums."]
    next: Annotated[str | None, "Always null: all fit into one page."]
    by: Annotated[Literal["owner", "target", "pool", "day"], "What the sums are of."]
    since: Annotated[str, "The first day, in UTC."]
    until: Annotated[str, "The last day, in UTC, which is counted too."]
    budget: Annotated[BudgetView | None, "How `owner` stands, or else you; null without a budget."]
    is_counted: Annotated[bool, "Whether the site has prices now. Without, no further job is counted."]


@router.get("/v1/costs", "Show what jobs cost, by owner, target, pool or day", READ)
def list_costs(
    on: System,
    user: Caller,
    *,
    by: Annotated[Literal["owner", "target", "pool", "day"], "What to add up by."] = "owner",
    since: Annotated[
        datetime | None, "Only jobs that ended on this day or later, in UTC. By default on the first of the month."
    ] = None,
    until: Annotated[datetime | None, "Only jobs that ended on this day or before. By default today."] = None,
    owner: Annotated[
        str | None, "Only jobs of this owner. By default everybody's if you are an operator, or else your own."
    ] = None,
) -> SumPage:
    first, last, found = costs.list_costs(on, user, By(by), since, until, owner)
    site = current_site(on)
    stands = budgets.account(on, site, owner or user.name)
    return SumPage(
        [_sum(each) for each in found],
        next=None,
        by=by,
        since=first.isoformat(),
        until=last.isoformat(),
        budget=_budget(stands) if stands else None,
        is_counted=site.prices is not None,
    )


def _budget(stands: Account) -> BudgetView:
    since = stands.since.isoformat()
    return view(BudgetView, stands, budget=shown(stands.budget), spent=shown(stands.spent), since=since)


def _sum(cost: Cost) -> SumView:
    amounts = ("total", "unused", "control", "worker", "resources", "stored", "sent")
    return SumView(cost.name, cost.currency, cost.jobs, **{name: shown(getattr(cost, name)) for name in amounts})


@router.get("/v1/jobs/{job}/cost", "Show what a job cost", READ)
def get_cost(on: System, user: Caller, job: str) -> CostView:
    found = jobs.find(on, user, job)
    return show(found, bills.bill_of(on, found))


def show(job: Job, bill: Bill) -> CostView:
    """A job's bill, closed or so far."""
    is_final = job.bill is not None and job.bill.due is None
    due = job.bill.due if job.bill else None
    return CostView(
        job=job.id,
        currency=bill.currency,
        is_final=is_final,
        final_after=present(due) if due else None,
        total=shown(bill.total),
        unused=shown(bill.unused),
        control=shown(bill.control),
        worker=shown(sum(each.cost for each in bill.charges if each.order == WORKER)),
        resources=shown(sum(each.cost for each in bill.charges if each.order != WORKER)),
        stored=shown(bill.stored),
        sent=shown(bill.sent),
        charges=[_charge(each) for each in bill.charges],
    )


def _charge(charge: Charge) -> ChargeView:
    return ChargeView(
        name=charge.name,
        type=charge.type,
        seconds=charge.held / 1000,
        unused_seconds=charge.unused / 1000,
        cost=shown(charge.cost),
        unused=shown(charge.unused_cost),
    )
