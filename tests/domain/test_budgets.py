"""How owners stand by their budgets."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from penstock.domain import budgets
from penstock.domain.budgets import Account
from penstock.domain.money import Micros
from penstock.domain.pools import why
from penstock.domain.site.site import Budgets, Period
from tests.domain.helpers import job
from tests.domain.spends import spend

NOW = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)
HUNDRED = Micros(100_000_000)


def account(spent: int, budget: int = HUNDRED, warn: int = 80) -> Account:
    return Account("ada", Micros(budget), Micros(spent), "EUR", date(2026, 12, 1), NOW, warn)


@pytest.mark.parametrize(
    ("period", "since", "ends"),
    [
        (Period.MONTH, date(2026, 12, 1), datetime(2027, 1, 1, tzinfo=UTC)),
        (Period.DAY, date(2026, 12, 31), datetime(2027, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_period_is_a_day_or_a_month_of_utc(period: Period, since: date, ends: datetime) -> None:
    rules = Budgets(period, HUNDRED)
    assert budgets.first_day(rules, NOW) == since
    found = budgets.account("ada", rules, [], "EUR", NOW)
    assert found
    assert (found.since, found.ends) == (since, ends)
    early = budgets.account("ada", rules, [], "EUR", datetime(2026, 2, 1, tzinfo=UTC))
    assert early
    assert early.ends == datetime(2026, 2, 2 if period is Period.DAY else 1, tzinfo=UTC).replace(
        month=2 if period is Period.DAY else 3
    )


def test_what_was_spent_in_the_sites_currency_counts() -> None:
    rows = [spend(control=5, worker=7), spend(stored=1), spend(currency="USD", control=1000)]
    found = budgets.account("ada", Budgets(default=HUNDRED, warn=70), rows, "EUR", NOW)
    assert found
    assert (found.spent, found.budget, found.warn, found.currency) == (13, HUNDRED, 70, "EUR")
    assert budgets.account("ada", Budgets(owners={"bea": HUNDRED}), rows, "EUR", NOW) is None


def test_near_is_from_the_warning_on_and_spent_when_nothing_is_left() -> None:
    stands = [(account(spent).is_near, account(spent).is_spent) for spent in (79_999_999, 80_000_000, 99_999_999)]
    assert stands == [(False, False), (True, False), (True, False)]
    assert account(HUNDRED).is_spent
    assert account(HUNDRED + 1).is_near
    assert account(0, 0).is_spent, "nothing may be spent"


def test_an_account_is_a_sentence() -> None:
    assert str(account(81_500_000)) == (
        "jobs of ada have cost 81.5 of 100 EUR since 2026-12-01; the next period begins at 2026-12-31 23:30:00Z"
    )


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (0, "none of its other jobs stands before it"),
        (1, "1 of its jobs stands before it"),
        (2, "2 of its jobs stand before it"),
    ],
)
def test_who_waits_for_a_budget_is_told_so(before: int, said: str) -> None:
    found = why.explain_budget(job(), account(HUNDRED), before)
    assert found.summary == (
        "the job waits because the budget of ada is spent: jobs of ada have cost 100 of 100 EUR since 2026-12-01; "
        f"the next period begins at 2026-12-31 23:30:00Z; {said}"
    )
    assert found.waiting_for == "budget of ada"
    assert found.next_steps == "the budget of ada is raised, or its next period begins at 2026-12-31 23:30:00Z"
