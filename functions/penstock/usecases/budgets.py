"""How owners stand by their budgets. Only owners that have one cost a read. The rules are in domain/budgets.py."""

from __future__ import annotations

from penstock.domain import budgets
from penstock.domain.budgets import Account
from penstock.domain.site.site import Site
from penstock.system import System
from penstock.usecases import costs


def account(on: System, site: Site, owner: str) -> Account | None:
    """How an owner stands; None if it has no budget."""
    if site.budgets is None or site.prices is None or site.budgets.of(owner) is None:
        return None
    now = on.world.now()
    rows = costs.of_owner(on, owner, budgets.first_day(site.budgets, now), now.date())
    return budgets.account(owner, site.budgets, rows, site.prices.currency, now)


def spent(on: System, site: Site, owner: str) -> Account | None:
    """How an owner stands whose budget is spent, so that its further jobs wait; None if it is not."""
    found = account(on, site, owner)
    return found if found and found.is_spent else None


def warning(on: System, site: Site, owner: str) -> str | None:
    """What an owner is warned of, as a sentence; None if there is nothing."""
    found = account(on, site, owner)
    return f"the budget: {found}" if found and found.is_near else None
