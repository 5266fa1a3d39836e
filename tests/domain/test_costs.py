"""Sums of bills."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from penstock.domain import costs
from penstock.domain.costs import By, PoolSpend
from penstock.domain.jobs.jobs import Bill, Charge
from penstock.domain.pools.pools import WORKER
from tests.domain.helpers import NOW, job
from tests.domain.spends import spend

BILL = Bill(
    None, "EUR", 100, 20, 3, (Charge(1, "it", "bench", 5, 2, 7000, 3000), Charge(WORKER, "w", "u", 5, 1, 400, 100))
)


def test_a_bill_is_added_to_the_row_of_its_owner_target_and_day() -> None:
    late = job(id="J7", times=replace(job().times, settled=datetime(2026, 1, 3, 23, 59, tzinfo=UTC)))
    row = costs.row_of(late, BILL, NOW)
    assert (row.owner, row.target, row.day, row.currency, row.jobs) == ("ada", "ubuntu", "2026-01-03", "EUR", 0)
    assert costs.row_of(job(), BILL, NOW).day == "2026-01-02"
    once = costs.add(row, BILL)
    assert (once.jobs, once.control, once.worker, once.resources, once.stored, once.sent, once.unused) == (
        1, 100, 400, 7000, 20, 3, 3100,
    )  # fmt: skip
    assert once.total == BILL.total
    twice = costs.add(once, BILL)
    assert (twice.jobs, twice.total, twice.unused, twice.key) == (2, 2 * BILL.total, 6200, row.key)
    assert [getattr(twice, name) for name in ("control", "worker", "resources", "stored", "sent")] == [
        200, 800, 14000, 40, 6,
    ]  # fmt: skip


def test_many_jobs_are_spread_over_the_rows() -> None:
    parts = {costs.row_of(job(id=f"J{number}"), BILL, NOW).part for number in range(100)}
    assert parts == set(range(costs.PARTS))


def test_rows_are_in_the_order_of_their_days() -> None:
    rows = [spend(day=f"2026-01-{number:02}", target=target) for number in (1, 2, 10) for target in ("a", "z")]
    assert [row.key.sk for row in rows] == sorted(row.key.sk for row in rows)
    assert rows[1].key.sk < costs.before(date(2026, 1, 2)) < rows[2].key.sk
    places = [row.place.sort for row in rows]
    assert places == sorted(places)
    assert places[1] < costs.place_before(date(2026, 1, 2)) < places[2]
    assert len({spend(currency="USD").key, spend().key, spend(target="t").key, spend(owner="b").key}) == 4
    assert len({spend(currency="USD").place, spend().place, spend(target="t").place, spend(owner="b").place}) == 4
    assert spend().expiry == datetime(2026, 1, 2, tzinfo=UTC) + timedelta(days=costs.KEPT_DAYS)


def test_costs_are_added_up_by_what_is_asked_and_never_over_currencies() -> None:
    rows = [
        spend("ada", "u", "2026-01-03", control=1, worker=2),
        spend("bea", "u", "2026-01-02", control=50, sent=4, stored=3),
        spend("ada", "v", "2026-01-02", jobs=2, resources=7, unused=6),
        spend("ada", "u", "2026-01-02", "USD", jobs=1, control=1000),
    ]

    def told(by: By) -> list[tuple[str, str, int, int]]:
        return [(cost.name, cost.currency, cost.jobs, cost.total) for cost in costs.sums(rows, by)]

    assert told(By.OWNER) == [("ada", "USD", 1, 1000), ("bea", "EUR", 0, 57), ("ada", "EUR", 2, 10)]
    assert told(By.TARGET) == [("u", "USD", 1, 1000), ("u", "EUR", 0, 60), ("v", "EUR", 2, 7)]
    assert told(By.DAY) == [
        ("2026-01-02", "EUR", 2, 64),
        ("2026-01-02", "USD", 1, 1000),
        ("2026-01-03", "EUR", 0, 3),
    ]
    assert costs.sums(rows, By.OWNER)[2].unused == 6


def test_a_row_has_what_its_jobs_had_of_each_pool() -> None:
    once = costs.add(costs.row_of(job(), BILL, NOW), BILL)
    assert once.pools == (PoolSpend("resource/bench", 1, 7000, 3000), PoolSpend("target/u", 1, 400, 100))
    two = replace(BILL, charges=(Charge(1, "a", "bench", 5, 2, 10, 4), Charge(2, "b", "bench", 5, 2, 20, 5)))
    assert costs.add(once, two).pools == (PoolSpend("resource/bench", 2, 7030, 3009), once.pools[1])
    assert costs.add(once, replace(BILL, charges=())).pools == once.pools


def test_a_row_has_a_bound_of_pools_and_those_that_it_has_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "POOLS_MOST", 2)
    once = costs.add(spend(), BILL)
    more = replace(BILL, charges=(*BILL.charges, Charge(2, "a", "another", 5, 2, 9, 4)))
    twice = costs.add(once, more)
    assert [(each.pool, each.jobs, each.cost) for each in twice.pools] == [
        ("resource/bench", 2, 14000),
        ("target/u", 2, 800),
    ]
    assert twice.resources == 14009
    rest = next(cost for cost in costs.sums([twice], By.POOL) if cost.name == costs.OTHER)
    assert (rest.resources, rest.worker, rest.unused) == (9, 0, 4)


def test_costs_by_pool_are_those_of_the_pools_and_the_rest_is_of_none() -> None:
    dollars = spend("ada", "u", currency="USD", sent=1)
    rows = [costs.add(spend("ada"), BILL), costs.add(spend("bea", "v"), BILL), dollars]
    found = costs.sums(rows, By.POOL)
    assert [(cost.name, cost.currency, cost.jobs, cost.worker, cost.resources, cost.unused) for cost in found] == [
        ("resource/bench", "EUR", 2, 0, 14000, 6000),
        ("target/u", "EUR", 2, 800, 0, 200),
        ("other", "EUR", 2, 0, 0, 0),
        ("other", "USD", 0, 0, 0, 0),
    ]
    assert [cost.total for cost in found] == [14000, 800, 246, 1]
    for name in ("control", "worker", "resources", "stored", "sent", "unused", "total"):
        whole = sum(getattr(cost, name) for cost in costs.sums(rows, By.OWNER))
        assert sum(getattr(cost, name) for cost in found) == whole, name
