"""A merge gate: what a job takes is counted anew, and is what tests/figures/counts.toml says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from math import ceil

import pytest

from penstock.domain import prices as domain_prices
from penstock.domain.site.site import Limits
from penstock.domain.units.units import Unit
from penstock.local import prices
from penstock.usecases.workers import agents
from tests.figures import contention, price

CLOSING = 8
"""The write units of closing a bill, and of the sum that it is added to; of the day's first, which costs one more."""


@pytest.mark.parametrize(("title", "resources"), price.KINDS.items())
def test_a_job_takes_what_is_committed(title: str, resources: Sequence[str]) -> None:
    found, allowed = price.counts(price.run(resources)), price.allowed()[title]
    assert found == allowed, "a figure that went down is lowered there too; one that went up needs a reason"


def test_every_kind_of_job_has_its_counts() -> None:
    assert set(price.allowed()) == {*price.KINDS, *price.HOURS, contention.STORM}


@pytest.mark.parametrize("resources", price.KINDS.values())
def test_prices_cost_nothing_before_a_job_has_settled(resources: Sequence[str]) -> None:
    """The sweep closes the bill afterwards: it writes the job's row once more, and its entry in the due index."""
    plain, priced = (price.counts(price.run(resources, site)) for site in (price.SITE, price.PRICED))
    more = priced.pop("write_units_afterwards") - plain.pop("write_units_afterwards")
    assert priced == plain
    assert more == CLOSING


def test_what_a_bill_says_of_the_service_is_what_is_counted_here() -> None:
    """With the seconds of functions, which depend on the machine, a third more at most."""
    plain, two = (price.allowed()[title] for title in price.KINDS)
    afterwards = plain["write_units_afterwards"] * prices.WRITE_UNIT * 1_000_000
    assert plain["microdollars"] + afterwards <= domain_prices.ATTEMPT <= 1.33 * (plain["microdollars"] + afterwards)
    each = (two["microdollars"] - plain["microdollars"]) / len(price.KINDS["a job with two resources"])
    assert each <= domain_prices.LEASE <= 1.33 * each
    assert round(prices.TRANSITION * 1_000_000) == domain_prices.TRANSITION
    assert ceil(price.allowed()[price.PRINTING]["microdollars"]) == domain_prices.RUNNING_HOUR


@pytest.mark.parametrize("title", price.HOURS)
def test_an_hour_costs_what_is_committed(title: str) -> None:
    assert price.hour_counts(price.run_hour(title)) == price.allowed()[title]


def test_an_hour_of_a_running_job_costs_little_beside_its_machine() -> None:
    assert price.hour_counts(price.run_hour(price.SILENT))["microdollars"] <= price.RUNNING


def test_the_heartbeats_of_a_hundred_thousand_workers_are_within_the_limits_of_one_table() -> None:
    """The default quota of a table, and what a partition of its due index takes. Each worker is a partition itself."""
    bill, workers = price.run_hour(price.SILENT), 100_000
    assert workers * bill.units / price.HOUR < price.TABLE_UNITS / 4
    assert workers * bill.index.total() / Unit.shards / price.HOUR < price.PARTITION_UNITS / 2


def test_the_sweep_never_looks_at_a_worker_that_is_heard_of() -> None:
    twin = price.BilledTwin()
    job = price.running(twin)
    for _ in range(40):
        twin.pass_time(Limits().heartbeat)
        agents.heartbeat(twin.on, agents.authenticate(twin.on, job, price.TOKEN))
        (unit,) = (row for row in twin.store.rows.values() if isinstance(row, Unit))
        assert unit.indexed
        assert unit.indexed.at > twin.world.now() + timedelta(seconds=Limits().heartbeat)
