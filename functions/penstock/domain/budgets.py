"""Budgets: how much the jobs of an owner may cost in a day or a month.

What counts are closed bills, of jobs that ended in the period. From a part of the budget on, its owner is warned. Once
it is spent, the owner's further jobs wait in its backlog, and hold nothing; those under way go on. They wait until the
next period begins, or the budget is raised.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from penstock.domain.costs import Spend
from penstock.domain.money import Micros
from penstock.domain.site.site import Budgets, Period
from penstock.domain.units.units import format_time
from penstock.kernel.frozen import dataclass


@dataclass(frozen=True)
class Account:
    """How an owner stands: its budget, and what it has spent of it since a day; the next period begins at `ends`."""

    owner: str
    budget: Micros
    spent: Micros
    currency: str
    since: date
    ends: datetime
    warn: int

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left, so that further jobs wait."""
        return self.spent >= self.budget

    @property
    def is_near(self) -> bool:
        """Whether the owner is to be warned."""
        return self.spent * 100 >= self.budget * self.warn

    def __str__(self) -> str:
        return (
            f"jobs of {self.owner} have cost {self.spent} of {self.budget} {self.currency} since {self.since}; the "
            f"next period begins at {format_time(self.ends)}"
        )


def first_day(budgets: Budgets, now: datetime) -> date:
    """The first day of the present period, in UTC."""
    today = now.astimezone(UTC).date()
    return today if budgets.period is Period.DAY else today.replace(day=1)


def _next_period(budgets: Budgets, since: date) -> datetime:
    days = 1 if budgets.period is Period.DAY else 32
    after = since + timedelta(days=days)
    begin = after if budgets.period is Period.DAY else after.replace(day=1)
    return datetime(begin.year, begin.month, begin.day, tzinfo=UTC)


def account(owner: str, budgets: Budgets, rows: Iterable[Spend], currency: str, now: datetime) -> Account | None:
    """How an owner stands by the sums of the present period; None if it has no budget."""
    budget = budgets.of(owner)
    if budget is None:
        return None
    spent = sum(row.total for row in rows if row.currency == currency)
    since = first_day(budgets, now)
    return Account(owner, budget, Micros(spent), currency, since, _next_period(budgets, since), budgets.warn)
