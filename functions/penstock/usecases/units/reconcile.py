"""Comparison of what drivers list with our rows: strays are destroyed, and vanished units are lost. [JOB-1] [UNIT-1]

The sweep calls `reconcile`. The list is read before the rows, so a unit that is made in between has its row. If a list
cannot be had, nothing is done; after an outage of ours, nothing is done for a while: docs/operators/capacity.md.

That a list is requested is recorded before the driver is called, which may hang, or end the process. So whoever does
that is not the first again, and none calls it a second time for a while.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta

from aws_lambda_powertools import Logger

from penstock.domain import cooldowns, metrics
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.jobs.outcome import Boot
from penstock.domain.site.site import Site
from penstock.domain.units import comparison, units
from penstock.domain.units.comparison import SWEEP_KEY, Comparison, LastSweep, comparison_key
from penstock.domain.units.units import Unit, UnitKind, UnitState, unit_key
from penstock.kernel.errors import DriverError
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Create, Replace, next_version
from penstock.ports import Driver
from penstock.system import System, current_site
from penstock.usecases import cooldowns as remembering
from penstock.usecases.isolation import Isolation
from penstock.usecases.jobs import settle
from penstock.usecases.rotation import rotate
from penstock.usecases.units import drivers, listing, retire

log = Logger(child=True)

UNWANTED_AFTER = timedelta(minutes=10)
"""How long a unit stays in a state before it is checked whether its attempt still wants it."""

CALL = timedelta(seconds=drivers.CALL_SECONDS)
"""How long a call of a driver may take. None begins that may end too late."""


@dataclasses.dataclass
class Reconciled:
    """The counts, and the units that were read for them: all of them, or none. `failed` are units and makers."""

    failed: int = 0
    asked: int = 0
    unlisted: int = 0
    strays: int = 0
    lost: int = 0
    rows: Mapping[UnitKind, list[Unit]] = field(default_factory=dict)


@dataclass(frozen=True)
class DueMaker:
    """A factory or well that is to be compared, and its last comparison."""

    is_a: UnitKind
    maker: str
    before: Comparison | None

    @property
    def name(self) -> str:
        """The maker's name among all makers."""
        return cooldowns.maker_of(self.is_a, self.maker)


@dataclass(frozen=True)
class MakerList(DueMaker):
    """What one factory or well lists. `before` is its comparison, as it was when the list was requested."""

    before: Comparison
    start: datetime
    ids: frozenset[str]


def reconcile(on: System, until: datetime) -> Reconciled:
    """Compare each maker whose last comparison is long enough ago. A failure of one does not stop the others.

    No driver is called that may take longer than there is time, except for the first: a busy sweep lists one at least.
    """
    site, done, steps = current_site(on), Reconciled(), Isolation()
    is_quiet = _is_recovering(on)
    for makers in _rounds(_due_makers(on, site)):
        lists = list(_list_makers(on, site, makers, until, done))
        if lists:
            done.rows = {kind: list(listing.every(on, kind)) for kind in UnitKind}
            strays = _compare_all(on, site, lists, done, steps, is_quiet=is_quiet)
            _destroy_strays(on, site, strays, until, done, steps)
    done.failed = steps.failed
    return done


def _is_recovering(on: System) -> bool:
    """Whether sweeps have not been running again for long enough after an outage. Records this sweep."""
    row, now = on.store.get(SWEEP_KEY, LastSweep), on.world.now()
    recorded = comparison.begin_sweep(row, now)
    on.store.commit([Replace(row, recorded) if row else Create(recorded)])
    return now - recorded.resumed < comparison.GRACE


def _due_makers(on: System, site: Site) -> list[DueMaker]:
    """The makers that are due, first those that were never asked, and then who was asked longest ago."""
    makers = [(UnitKind.WORKER, name) for name in site.factories] + [(UnitKind.RESOURCE, name) for name in site.wells]
    found = [
        DueMaker(is_a, name, on.store.get(comparison_key(cooldowns.maker_of(is_a, name)), Comparison))
        for is_a, name in makers
    ]
    now = on.world.now()
    due = [maker for maker in found if comparison.is_due(maker.before, now)]
    return sorted(due, key=lambda maker: (maker.before is not None, maker.before.tried if maker.before else now))


def _rounds(due: Iterable[DueMaker]) -> Iterator[Sequence[DueMaker]]:
    """Those that are listed together before the rows are read. A doubtful maker is alone: whoever is before it is
    compared first, whatever it does.
    """
    together: list[DueMaker] = []
    for maker in due:
        if comparison.is_doubtful(maker.before):
            yield together
            yield [maker]
            together = []
        else:
            together.append(maker)
    yield together


def _list_makers(
    on: System, site: Site, makers: Iterable[DueMaker], until: datetime, done: Reconciled
) -> Iterator[MakerList]:
    """The lists of the makers that can be listed in time."""
    for maker in makers:
        start = on.world.now()
        if done.asked and start + CALL > until:
            return
        begun = _begin(on, maker, start)
        if begun is None:
            continue
        done.asked += 1
        try:
            yield MakerList(maker.is_a, maker.maker, begun, start, _call_list(on, site, maker.is_a, maker.maker))
        except DriverError as error:
            log.warning("a driver could not be listed", extra={"maker": maker.name, "why": str(error)})
            done.unlisted += 1
            failed = comparison.listing_failed(begun, maker.name, f"{type(error).__name__}: {error}", start)
            on.store.commit([Replace(begun, failed)])
            remembering.count_failure(on, maker.name, error)


def _begin(on: System, maker: DueMaker, start: datetime) -> Comparison | None:
    """Record that a list is requested. None if another sweep was first."""
    begun = comparison.listing_began(maker.before, maker.name, start)
    change = Replace(maker.before, begun) if maker.before else Create(begun)
    return replace(begun, version=next_version(change)) if on.store.commit([change]) else None


def _call_list(on: System, site: Site, is_a: UnitKind, maker: str) -> frozenset[str]:
    name = cooldowns.maker_of(is_a, maker)
    return drivers.list_ids(on, name, drivers.driver_named(on, site, is_a, maker))


def _compare_all(
    on: System, site: Site, lists: Sequence[MakerList], done: Reconciled, steps: Isolation, *, is_quiet: bool
) -> list[tuple[MakerList, str]]:
    """Compare some lists; the strays to destroy, with their makers."""
    strays: list[tuple[MakerList, str]] = []
    for one in lists:
        with steps.step("a comparison", maker=one.name):
            found = _compare(on, site, one, done.rows[one.is_a], done, steps, is_quiet=is_quiet)
            strays += [(one, id) for id in found]
    return strays


def _compare(
    on: System, site: Site, one: MakerList, units: list[Unit], done: Reconciled, steps: Isolation, *, is_quiet: bool
) -> Sequence[str]:
    """Commit what the comparison found, then act on it. If another sweep commits first, that one acts.

    Returns the ids to destroy, which takes calls of the driver.
    """
    rows = {unit.id: unit for unit in units if unit.maker == one.maker}
    others, unread = _read_others(on, one.ids - rows.keys(), steps)
    rows |= others
    lease = timedelta(seconds=site.limits.lease)
    verdict = comparison.compare(one.before, one.name, one.ids - unread, rows, one.start, lease, is_quiet=is_quiet)
    if not on.store.commit([Replace(one.before, verdict.row)]):
        return ()
    for unit in verdict.lost:
        with steps.step("ending what vanished", unit=unit.id):
            vanished = end_vanished(on, unit, lease, one.start)
            on.metrics.add(metrics.UNITS_VANISHED, int(vanished), maker=one.name, state=unit.state)
            done.lost += vanished
    if not is_quiet:
        for unit in rows.values():
            with steps.step("ending what nobody wants", unit=unit.id):
                end_unwanted(on, unit)
    return verdict.destroy


def _destroy_strays(
    on: System,
    site: Site,
    strays: Sequence[tuple[MakerList, str]],
    until: datetime,
    done: Reconciled,
    steps: Isolation,
) -> None:
    """Destroy strays, at least one, while there is time. The next comparison finds the others, and begins elsewhere."""
    for number, (one, id) in enumerate(rotate(strays, on.world.now(), comparison.COMPARE_EVERY)):
        if number and on.world.now() + CALL > until:
            return
        with steps.step("destroying a stray", maker=one.name, unit=id):
            driver = drivers.driver_named(on, site, one.is_a, one.maker)
            done.strays += _destroy_stray(on, driver, one.name, id)


def _read_others(on: System, ids: Collection[str], steps: Isolation) -> tuple[dict[str, Unit], set[str]]:
    """The units of ids that are listed outside and were not found by an index: it may lag, and the row does not.

    And the ids whose rows cannot be read. They are units all the same: nothing is known of them, and nothing follows.
    """
    found, unread = dict[str, Unit](), set(ids)
    for id in sorted(ids):
        with steps.step("reading a unit", unit=id):
            unit = on.store.get(unit_key(id), Unit)
            found |= {id: unit} if unit else {}
            unread.discard(id)
    return found, unread


def _destroy_stray(on: System, driver: Driver, maker: str, id: str) -> bool:
    """Destroy what no row knows. A stray that has a row by now is left alone."""
    unit = on.store.get(unit_key(id), Unit)
    if unit is not None and unit.state is not UnitState.GONE:
        return False
    try:
        drivers.destroy(on, maker, driver, id)
    except DriverError as error:
        log.warning("a stray could not be destroyed", extra={"maker": maker, "unit": id, "why": str(error)})
        return False
    on.metrics.add(metrics.STRAYS_DESTROYED, maker=maker)
    log.warning("a stray was destroyed", extra={"maker": maker, "unit": id})
    return True


def end_vanished(on: System, unit: Unit, lease: timedelta, start: datetime) -> bool:
    """End the attempt of a unit that its maker no longer lists, unless it was heard from since."""
    cause = f"{unit.is_a} {unit.id} was lost: {unit.maker} does not list it any more"
    if unit.state is UnitState.IDLE:
        return retire.retire(on, unit.id, cause, is_setback=True, boot=Boot.DISAPPEARED)

    def is_lost(fresh: Unit) -> bool:
        return fresh.state is unit.state and not comparison.was_in_contact(fresh, start, lease)

    return settle.lose(on, unit, cause, is_lost, cause) is not None


def end_unwanted(on: System, unit: Unit) -> None:
    """Release a unit whose attempt is over. The attempt's end does that too; this is for units that it missed."""
    now = on.world.now()
    if unit.state not in (UnitState.CREATING, UnitState.READY) or now - unit.since < UNWANTED_AFTER:
        return
    job = on.store.get(job_key(unit.lease.job), Job)
    if job and not job.is_settled and job.attempt == unit.lease.attempt:
        return
    if on.store.commit([Replace(unit, units.end_lease(unit, "its attempt is over", now))]):
        on.queues.advance(unit.id, unit.is_a is UnitKind.WORKER)
