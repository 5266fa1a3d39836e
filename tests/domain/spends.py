"""Rows with sums of bills."""

from __future__ import annotations

from penstock.domain.costs import Spend


def spend(owner: str = "ada", target: str = "u", day: str = "2026-01-02", currency: str = "EUR", **sums: int) -> Spend:
    return Spend(owner=owner, target=target, day=day, currency=currency, part=0, **sums)
