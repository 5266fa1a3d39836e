"""Stops of the whole site, or of a factory or well: made and lifted by operators, and carried by the pools.

Whoever makes or lifts a stop writes its row, and then each pool that it concerns. Every such write names the stop's row
as it was read: a wish that was replaced meanwhile is brought to no pool. The stop is due until all is done, so the
sweep does what is left when the time of the request is over. Each of its calls goes on behind the units that the one
before it reached, however many there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from penstock import listings
from penstock.domain import metrics
from penstock.domain.pools import stops
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.pools.stops import AGAIN, WHOLE_SITE, ByHand, Stop, stop_key
from penstock.domain.site.site import Site
from penstock.domain.units import maintenance as rules
from penstock.domain.units.units import STEP_WITHIN, UnitKind
from penstock.domain.users.audit import Deed
from penstock.kernel import limits
from penstock.kernel.errors import not_found
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Change, Check, Create, Delete, Replace
from penstock.system import System, current_site, transact
from penstock.usecases.isolation import Isolation
from penstock.usecases.units import listing, maintenance
from penstock.usecases.users import audit

WITHIN = timedelta(seconds=10)
"""How long one call brings pools to a stop before it leaves the rest to another."""


def list_stops(on: System) -> list[Stop]:
    """All stops, by scope; also those that are being lifted."""
    return on.store.find(stops.STOPS, stops.PREFIX, Stop, limit=None)


def find(on: System, scope: str) -> Stop | None:
    """The stop of a scope, unless it is lifted."""
    found = on.store.get(stop_key(scope), Stop)
    return found if found and found.wish else None


def stop(on: System, by: str, scope: str, reason: str, *, drains: bool = False) -> None:
    """Have nothing new granted in a scope; what runs goes on. Raises Refused 400 without a reason, or 404.

    With `drains`, the units of a factory or well are drained too. Who stops what is stopped replaces the wish.
    """
    rules.check(reason, required=True)
    _check(on, scope)

    def decide() -> tuple[Sequence[Change], None]:
        was, now = on.store.get(stop_key(scope), Stop), on.world.now()
        row = Stop(scope=scope, wish=ByHand(by, now, reason, scope), drains=drains, due=now + STEP_WITHIN)
        did: Deed = "drain" if drains else "pause"
        return audit.record(on, [Replace(was, row) if was else Create(row)], by, did, _words(scope), reason), None

    transact(on, decide)
    spread(on, scope)


def lift(on: System, by: str, scope: str, reason: str = "") -> None:
    """Grant in a scope again. Does nothing if it is not stopped. Raises Refused 400 or 404."""
    rules.check(reason)
    _check(on, scope)

    def decide() -> tuple[Sequence[Change], None]:
        was = on.store.get(stop_key(scope), Stop)
        if was is None or was.wish is None:
            return [], None
        row = replace(was, wish=None, drains=False, is_spread=False, due=on.world.now() + STEP_WITHIN)
        return audit.record(on, [Replace(was, row)], by, "resume", _words(scope), reason), None

    transact(on, decide)
    spread(on, scope)


def _check(on: System, scope: str) -> None:
    """Raises Refused 404 for a factory or well that is neither on the site nor stopped."""
    sort, _, name = scope.partition("/")
    known = {"factory": current_site(on).factories, "well": current_site(on).wells}.get(sort, {})
    if scope == WHOLE_SITE or name in known:
        return
    if len(name) > limits.NAME_CHARS or on.store.get(stop_key(scope), Stop) is None:
        raise not_found(sort, name[:64])


def _words(scope: str) -> str:
    return "site" if scope == WHOLE_SITE else stops.in_words(scope)


@dataclass(frozen=True)
class Reached:
    """How far pools and units are brought to a stop: the version of its row, the page of units that is next, and how
    many failed before it.

    The page is empty while pools are left: those that carry the stop are passed by.
    """

    version: int
    page: str = ""
    failed: int = 0


def spread(on: System, scope: str, reached: Reached | None = None) -> Reached | None:
    """Bring all pools, and what is to be drained, to what a stop's row says. Doing so again changes nothing.

    Returns how far that came when its time, WITHIN, was over, for another call to go on from there; or None if nothing
    is left to do. A pool or a unit that fails costs only itself: the stop stays due, and the sweep begins anew.
    """
    row = on.store.get(stop_key(scope), Stop)
    if row is None or (reached and reached.version != row.version):
        return None  # who wrote the row since has pools and units brought to it from the beginning
    before, rows = reached or Reached(row.version), Isolation()
    page = _bring(on, row, before.page, on.world.now() + WITHIN, rows)
    failed = before.failed + rows.failed
    if rows.failed:
        on.metrics.add(metrics.FAILED_NUDGES, rows.failed)
    if page is not None:
        return Reached(row.version, page, failed)
    if not failed and not listings.unreadable(on, "pools", _pools(on)):  # what such a pool carries is not known
        _done(on, row)
    return None


def _bring(on: System, row: Stop, page: str, until: datetime, rows: Isolation) -> str | None:
    """Bring the pools, then the units from a page on. Returns the page to go on with; None if all are brought."""
    if not page and not _spread_to_pools(on, row, _pools(on), until, rows):
        return ""
    return _drain_units(on, row, page or listing.FIRST, until, rows)


def follow_site(on: System, until: datetime, rows: Isolation) -> bool:
    """Bring the pools that have another factory or well now to all stops. Returns False if the time was over."""
    pools = list(_pools(on))
    return all([_follow(on, row, pools, until, rows) for row in list_stops(on)])


def _follow(on: System, row: Stop, pools: Sequence[Pool], until: datetime, rows: Isolation) -> bool:
    """Units may have been made before such a pool carries the stop: what is drained is drained anew, by the sweep."""
    meant = current_site(on).pools_of(row.scope)
    if row.drains and any(_carrying(pool, row, meant) != pool for pool in pools):
        on.store.commit([Replace(row, replace(row, is_spread=False, due=on.world.now() + STEP_WITHIN))])
        row = on.store.get(row.key, Stop) or row
    return _spread_to_pools(on, row, pools, until, rows)


def _pools(on: System) -> Iterable[Pool]:
    return listings.every(on, "pools", Pool)


def _spread_to_pools(on: System, row: Stop, pools: Iterable[Pool], until: datetime, rows: Isolation) -> bool:
    """Whether all these pools carry the stop now, or carry it no more, but for those that failed."""
    meant = current_site(on).pools_of(row.scope)
    for pool in pools:
        if on.world.now() >= until:
            return False
        if _carrying(pool, row, meant) != pool:
            with rows.step("bringing a pool to a stop", pool=pool.name, stop=row.scope):
                _fit(on, pool.name, row, meant)
    return True


def _carrying(pool: Pool, row: Stop, meant: Collection[str]) -> Pool:
    """A pool with a stop if that concerns it, and else without. `meant` are the pools of its factory or well."""
    is_meant = row.scope == WHOLE_SITE or pool.name in meant
    return replace(pool, stops=stops.carried(pool.stops, row.scope, row.wish if is_meant else None))


def _fit(on: System, name: str, row: Stop, meant: Collection[str]) -> None:
    """Bring one pool to a stop, unless that was replaced meanwhile; and have the pool emptied or served."""

    def decide() -> tuple[Sequence[Change], tuple[Pool, Pool] | None]:
        was = on.store.get(pool_key(name), Pool)
        if was is None or on.store.get(row.key, Stop) != row:
            return [], None
        now = _carrying(was, row, meant)
        return ([Check(row), Replace(was, now)], (was, now)) if now != was else ([], None)

    found = transact(on, decide)
    if found is None:
        return
    was, now = found
    if now.is_paused and not was.is_paused:
        on.queues.schedule({"do": "resize", "pool": name})  # nothing is reserved elsewhere for its claims
    elif was.is_paused and not now.is_paused:
        on.queues.serve([name], name)


def _drain_units(on: System, row: Stop, page: str, until: datetime, rows: Isolation) -> str | None:
    """Drain what a factory or well has from a page on, one unit at least of those of its kind.

    Returns the page to go on with; None if all of it will go.
    """
    if not row.drains or row.wish is None:
        return None
    sort, _, name = row.scope.partition("/")
    kind = UnitKind.WORKER if sort == "factory" else UnitKind.RESOURCE
    for unit, behind in listing.every_from(on, kind, page):
        if unit.maker == name and not unit.drain:
            with rows.step("draining a unit", unit=unit.id, stop=row.scope):
                maintenance.drain_with_maker(on, unit, row.wish.by, row.wish.reason)
        if on.world.now() >= until:
            return behind
    return None


def _done(on: System, row: Stop) -> None:
    """All is brought to a stop. After a while it is done once more, and then a stop that was lifted goes.

    A list of pools, or of units, may lack what was made just now.
    """
    if not row.is_spread:
        on.store.commit([Replace(row, replace(row, is_spread=True, due=on.world.now() + AGAIN))])
    elif row.wish is None:
        on.store.commit([Delete(row)])
    elif row.due:
        on.store.commit([Replace(row, replace(row, due=None))])


def of_new_pool(on: System, name: str, site: Site) -> tuple[ByHand, ...]:
    """The stops that a pool has to carry from its beginning."""
    found: tuple[ByHand, ...] = ()
    for row in list_stops(on):
        if row.scope == WHOLE_SITE or name in site.pools_of(row.scope):
            found = stops.carried(found, row.scope, row.wish)
    return found
