"""What needs a person at the moment, all over the site: read once, for whoever looks after it. Nothing is written.

It reads every unit, three rows or lists of each factory and well, the last account diff, and the newest deliveries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain

from penstock.domain import metrics
from penstock.domain.cooldowns import Cause, CoolDown, Failure
from penstock.domain.github.deliveries import Delivery
from penstock.domain.pools.pools import Pool
from penstock.domain.probes.canaries import Canary
from penstock.domain.units.comparison import Comparison, comparison_key
from penstock.domain.units.units import Unit, UnitKind, UnitState, is_held
from penstock.kernel.frozen import dataclass
from penstock.system import System, current_site
from penstock.usecases import cooldowns
from penstock.usecases.github import webhook
from penstock.usecases.probes import canaries
from penstock.usecases.site import apply, preview
from penstock.usecases.site.preview import Drift
from penstock.usecases.units import listing

DIRTY_MOST = timedelta(hours=1)
"""For how long a unit may wait to be destroyed, as for the alarm NotPutBack."""

NEWEST = 100
"""How many deliveries are looked at."""

MISTAKES = frozenset({Cause.WRONG, Cause.BROKEN})
"""Causes of cool-downs that only an operator removes."""


@dataclass(frozen=True)
class Units:
    """The units that need somebody, each kind with those first that are most urgent."""

    quarantined: Sequence[Unit]
    held: Sequence[Unit]
    not_put_back: Sequence[Unit]


@dataclass(frozen=True)
class Makers:
    """The factories and wells: when each was compared, those first of which something is wrong; and what each met."""

    compared: Sequence[tuple[str, Comparison | None]]
    cooling: Sequence[CoolDown]
    failures: Sequence[Failure]


def find_units(on: System) -> Units:
    """The units in quarantine, those held, and those that wait too long to be destroyed."""
    now = on.world.now()
    found = [unit for kind in UnitKind for unit in listing.every(on, kind)]
    return Units(
        quarantined=_by_age(unit for unit in found if unit.state is UnitState.QUARANTINED),
        held=sorted((unit for unit in found if is_held(unit, now)), key=_end_of_hold),
        not_put_back=_by_age(unit for unit in found if _is_left(unit, now)),
    )


def _by_age(found: Iterator[Unit]) -> list[Unit]:
    return sorted(found, key=lambda unit: (unit.since, unit.id))


def _end_of_hold(unit: Unit) -> tuple[datetime, str]:
    return (unit.hold.until if unit.hold else unit.since, unit.id)


def _is_left(unit: Unit, now: datetime) -> bool:
    """Whether a unit waits too long to be destroyed, and nobody holds it."""
    return unit.state is UnitState.DIRTY and not is_held(unit, now) and now - unit.since > DIRTY_MOST


def find_makers(on: System) -> Makers:
    """What is remembered of every factory and well."""
    names = metrics.makers(current_site(on))
    compared = [(name, on.store.get(comparison_key(name), Comparison)) for name in names]
    failures = chain.from_iterable(cooldowns.failures(on, name) for name in names)
    return Makers(
        compared=sorted(compared, key=lambda each: (not is_wrong(each[1]), each[0])),
        cooling=[row for name in names for row in cooldowns.cooldowns_of(on, name)],
        failures=sorted(failures, key=lambda row: row.last, reverse=True),
    )


def is_wrong(row: Comparison | None) -> bool:
    """Whether something is wrong with what exists outside, or it could not be listed."""
    return row is not None and bool(row.failures or row.strays or row.missing)


def find_canaries(on: System) -> Sequence[Canary]:
    """All canaries."""
    return canaries.list_canaries(on)


def find_pools(on: System) -> tuple[Sequence[Pool], Sequence[Drift]]:
    """The pools that are paused, and all that was changed by hand since the configuration was applied."""
    pools = list(apply.every_pool(on))
    return [pool for pool in pools if pool.paused], preview.drift(on, pools)


def find_deliveries(on: System) -> tuple[Sequence[Delivery], int]:
    """Of the newest deliveries those that GitHub had to send again, or that led to nothing yet; and how many they are
    of.
    """
    rows, _ = webhook.list_deliveries(on, NEWEST, "")
    return [row for row in rows if row.missed or not row.outcome], len(rows)
