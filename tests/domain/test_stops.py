"""Stops, and the pools that carry them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from penstock.domain.pools import stops
from penstock.domain.pools.pools import Pool
from penstock.domain.pools.stops import ByHand, Stop
from tests.domain.helpers import NOW

SITE = ByHand("root", NOW, "a move", "site")
EC2 = ByHand("bert", NOW - timedelta(hours=1), "", "factory/ec2")


def test_a_stop_says_what_it_stops_and_a_change_of_one_pool_does_not() -> None:
    assert str(SITE) == "with the whole site by root at 2026-01-02 03:04:05Z: a move"
    assert str(EC2) == "with factory ec2 by bert at 2026-01-02 02:04:05Z"
    assert str(replace(SITE, scope="")) == "by root at 2026-01-02 03:04:05Z: a move"


def test_a_pool_carries_one_stop_of_each_scope_the_oldest_first() -> None:
    both = stops.carried(stops.carried((), "site", SITE), "factory/ec2", EC2)
    assert both == (EC2, SITE)
    again = replace(SITE, reason="a longer move")
    assert stops.carried(both, "site", again) == (EC2, again)
    assert stops.carried(both, "factory/ec2", None) == (SITE,)
    assert stops.carried((), "site", None) == ()


def test_a_pool_is_paused_by_itself_or_by_what_it_belongs_to() -> None:
    pool = Pool(name="target/linux", limit=1)
    assert not pool.is_paused
    assert pool.paused_by is None
    stopped = replace(pool, stops=(EC2, SITE))
    assert stopped.is_paused
    assert stopped.is_closed
    assert stopped.paused_by == EC2
    own = ByHand("carl", NOW)
    assert replace(stopped, paused=True, pause=own).paused_by == own
    assert replace(stopped, pause=own).paused_by == EC2, "it was resumed by itself"
    assert replace(stopped, paused=True).paused_by == EC2


def test_a_stop_has_a_row_that_may_be_due() -> None:
    row = Stop(scope="factory/ec2", wish=EC2, due=NOW)
    assert row.key == stops.stop_key("factory/ec2")
    assert row.key.sk.startswith(stops.PREFIX)
    assert row.deadline == NOW
    assert replace(row, due=None).deadline is None
