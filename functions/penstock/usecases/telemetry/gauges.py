"""Gauges that the sweep reports each minute, from what it has read and little besides. None wanted, none read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import takewhile

from penstock import listings
from penstock.domain import metrics
from penstock.domain.cooldowns import maker_of
from penstock.domain.metrics import Fold, Level, Metric, elapsed
from penstock.domain.pools.pools import WAITING, Claim, Pool, SlotState, collection
from penstock.domain.probes.canaries import Canary, is_failing
from penstock.domain.site.site import Site
from penstock.domain.units.comparison import Comparison, comparison_key
from penstock.domain.units.units import Unit, UnitKind, UnitState, is_held
from penstock.system import System
from penstock.usecases import cooldowns
from penstock.usecases.pools import forecast


def report(on: System, site: Site, pools: Sequence[Pool], waited_for: Sequence[str], until: datetime) -> None:
    """What is reported each minute of pools and canaries; zeros of everything first, for what does not exist."""
    if not on.metrics.wants(metrics.SWEEPS):
        return
    report_zeros(on, site)
    report_pools(on, site, pools, waited_for, until)
    if site.canaries():
        _report_canaries(on, site)


def report_pools(on: System, site: Site, pools: Sequence[Pool], waited_for: Sequence[str], until: datetime) -> None:
    """What some pools hold, and who waits for them. Of very many, each call of the sweep function reports its own.

    Until then it is looked who waits longest, however many wait: in the order of a queue, that may be its last.
    """
    if on.metrics.wants(metrics.SWEEPS):
        _report_waits(on, site, waited_for, until)
    if on.metrics.wants(metrics.POOL_HELD):
        for pool in pools:
            _report_pool(on, pool)


def _report_waits(on: System, site: Site, waited_for: Sequence[str], until: datetime) -> None:
    """Who waits, and for how long. A job that waits in several queues counts in that of its own pool, so once."""
    jobs = 0
    for pool in waited_for:
        lengths = list(forecast.line_lengths(on, pool))
        jobs += sum(length for first, length in lengths if first.pools[0] == pool)
        on.metrics.add(metrics.POOL_WAITING, sum(length for _, length in lengths), pool=pool)
    on.metrics.add(metrics.JOBS_WAITING, jobs)
    for pool in waited_for:
        _report_oldest(on, site, pool, until)


def _report_oldest(on: System, site: Site, pool: str, until: datetime) -> None:
    claims = listings.every_of(on, collection(pool), WAITING, Claim)
    since = [claim.since for claim in takewhile(lambda _: on.world.now() < until, claims)]
    if since:
        seconds = elapsed(min(since), on.world.now())
        on.metrics.add(metrics.OLDEST_WAIT, seconds, pool=pool)
        on.metrics.add(metrics.OLDEST_WAIT_PERCENT, 100 * seconds / site.limits.queue)


def _report_pool(on: System, pool: Pool) -> None:
    held, free = pool.used, max(0, pool.limit - pool.used)
    if not pool.is_amount:
        held, free = (on.store.count(collection(pool.name), f"{state}#") for state in (SlotState.HELD, SlotState.FREE))
    for metric, value in ((metrics.POOL_LIMIT, pool.limit), (metrics.POOL_HELD, held), (metrics.POOL_FREE, free)):
        on.metrics.add(metric, value, pool=pool.name)


def report_makers(on: System, site: Site) -> None:
    """What is remembered of every factory and well, among it what their comparisons have just found."""
    for maker in metrics.makers(site) if on.metrics.wants(metrics.SWEEPS) else ():
        _report_maker(on, maker)


def _report_maker(on: System, maker: str) -> None:
    """What is remembered of a factory or well, which `factory show` and `well show` print in full."""
    now = on.world.now()
    row = on.store.get(comparison_key(maker), Comparison)
    if row:
        on.metrics.add(metrics.UNLISTED, int(row.failures > 0), maker=maker)
        on.metrics.add(metrics.STRAYS, len(row.strays) + row.more_strays, maker=maker)
        on.metrics.add(metrics.MISSING, len(row.missing) + row.more_missing, maker=maker)
    for cool_down in cooldowns.cooldowns_of(on, maker):
        on.metrics.add(metrics.COOL_DOWNS, int(now < cool_down.until), maker=maker, cause=cool_down.cause)


def _report_canaries(on: System, site: Site) -> None:
    """Which canaries fail."""
    known = site.canaries()
    for row in listings.every(on, "canaries", Canary):
        if row.pool in known:
            on.metrics.add(metrics.CANARIES_FAILING, int(is_failing(row)), pool=row.pool)


def report_units(on: System, site: Site, rows: Mapping[UnitKind, Sequence[Unit]]) -> None:
    """The states of all units, if all were read. What was not read is not reported as 0."""
    if not rows or not on.metrics.wants(metrics.UNITS):
        return
    now = on.world.now()
    for metric in metrics.OF_UNITS:
        _report_zero(on, site, metric)
    for unit in (unit for units in rows.values() for unit in units):
        if unit.state is not UnitState.GONE:  # the listing may lag
            _report_unit(on, unit, now)


def _report_zero(on: System, site: Site, metric: Metric) -> None:
    for by in metric.combinations(site, Level.POOLS):
        on.metrics.add(metric, 0, **by)


def _report_unit(on: System, unit: Unit, now: datetime) -> None:
    maker = maker_of(unit.is_a, unit.maker)
    state = metrics.HELD if is_held(unit, now) else unit.state
    on.metrics.add(metrics.UNITS, maker=maker, kind=unit.is_a, state=state)
    if state == metrics.HELD and unit.hold:
        on.metrics.add(metrics.OLDEST_HOLD, elapsed(unit.hold.since, now), maker=maker)
    elif state is UnitState.DIRTY:
        on.metrics.add(metrics.OLDEST_DIRTY, elapsed(unit.since, now), maker=maker)


def report_zeros(on: System, site: Site) -> None:
    """A zero of every sum and maximum. What was reported already keeps its value."""
    for metric in metrics.METRICS:
        if metric.fold is not Fold.EACH and metric not in metrics.OF_UNITS:
            _report_zero(on, site, metric)
