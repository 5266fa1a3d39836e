"""The account diff: each night, everything outside that has our tags against the rows. It destroys nothing. [UNIT-1]

The sweep begins it, and sends the message of one that goes on to a call of its function that has time for it. Each
factory and well is one step, with one commit, so that none is counted twice, however often a message comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from aws_lambda_powertools import Logger

from penstock.domain import leftovers, metrics
from penstock.domain.account import DIFFS, PK, AccountDiff, Checked, Leftover, diff_key
from penstock.domain.cooldowns import maker_of
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.leftovers import MOST, TRIES
from penstock.domain.site.site import Site
from penstock.domain.units.units import Unit, UnitKind, unit_key
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import DriverError, Refused
from penstock.kernel.rows import Change, Create, Replace
from penstock.listings import rows_at
from penstock.system import System, current_site, transact
from penstock.usecases.units import drivers, listing
from penstock.usecases.users import audit

log = Logger(child=True)

STEP = timedelta(seconds=drivers.CALL_SECONDS + 10)
"""What time one factory or well may take: one call of its driver, and the reads and the commit after it."""

LATEST = 3
"""How many of the latest diffs a sweep reads: the one that goes on, and the one before it, which is finished."""

SINGLY = 1000
"""How many units that a batch does not find are read one by one, in some seconds. More are taken to be gone."""

SHOWN = 200
"""How many diffs a list shows: 90 nights, and those that operators asked for."""


def latest(on: System, limit: int = LATEST) -> list[AccountDiff]:
    """The latest diffs, newest first."""
    return on.store.find(PK, DIFFS, AccountDiff, limit=limit, last=True)


def remind(on: System) -> None:
    """Begin the night's diff, send what goes on its message, and report the last one. Each sweep calls it: one read."""
    now, found = on.world.now(), latest(on)
    newest = found[0] if found else None
    if leftovers.is_due(newest, now):
        on.store.commit([Create(leftovers.begin(newest, now))])
        found = latest(on)
    for diff in found:
        if leftovers.is_silent(diff, now) and on.store.commit([Replace(diff, leftovers.sent(diff, now))]):
            on.queues.sweep({"diff": diff.id})
    _report(on, found, now)


def _report(on: System, found: Sequence[AccountDiff], now: datetime) -> None:
    for diff in [diff for diff in found if diff.finished][:1]:
        on.metrics.add(metrics.LEFTOVERS, diff.left)
        on.metrics.add(metrics.DIFF_AGE, metrics.elapsed(diff.whole, now))


def go_on(on: System, id: str, until: datetime) -> None:
    """Take the next steps of a diff, as many as there is time for, at least one; then leave the rest to a message."""
    diff, site = on.store.get(diff_key(id), AccountDiff), current_site(on)
    while diff and not diff.finished:
        maker = next(_left_to_do(site, diff), None)
        diff = _finish(on, site, diff) if maker is None else _step(on, site, diff, *maker)
        if diff and not diff.finished and on.world.now() + STEP > until:
            on.queues.sweep({"diff": id})
            return


def _left_to_do(site: Site, diff: AccountDiff) -> Iterator[tuple[UnitKind, str]]:
    for is_a, names in _names(site).items():
        yield from ((is_a, name) for name in names if maker_of(is_a, name) not in diff.makers)


def _names(site: Site) -> Mapping[UnitKind, Collection[str]]:
    return {UnitKind.WORKER: site.factories.keys(), UnitKind.RESOURCE: site.wells.keys()}


def _step(on: System, site: Site, diff: AccountDiff, is_a: UnitKind, name: str) -> AccountDiff | None:
    """Do one factory or well. None if another call did it first, and goes on itself."""
    maker = maker_of(is_a, name)
    if diff.tries > TRIES:
        why = f"its list was begun {TRIES} times, and never ended"
        return _commit(on, diff, leftovers.with_maker(diff, maker, leftovers.unlisted(why), [], on.world.now()))
    try:
        checked, found = _check(on, site, is_a, name)
    except DriverError as error:
        log.warning("what a driver made could not be listed", extra={"maker": maker, "why": str(error)})
        checked, found = leftovers.unlisted(f"{type(error).__name__}: {error}"), []
    return _commit(on, diff, leftovers.with_maker(diff, maker, checked, found, on.world.now()))


def _check(on: System, site: Site, is_a: UnitKind, name: str) -> tuple[Checked, list[Leftover]]:
    """Compare what exists with its units. They are read after it: a unit has its row before anything is made for it."""
    maker = maker_of(is_a, name)
    found = drivers.things(on, is_a, maker, drivers.driver_named(on, site, is_a, name))
    units = _units(on, sorted({thing.unit for thing in found}))
    checked, left = leftovers.find_leftovers(maker, found, units, _names(site)[is_a], on.world.now())
    return checked, [replace(each, owner=_owner(on, units.get(each.unit))) for each in left[:MOST]] + left[MOST:]


def _units(on: System, ids: Sequence[str]) -> Mapping[str, Unit]:
    """The units with these ids. A batch leaves out what it cannot read, so what it does not find is read by itself."""
    keys = [unit_key(id) for id in ids]
    found = rows_at(on, keys)
    missing = [key for key in keys if key not in found]
    found |= {key: unit for key in missing[:SINGLY] if (unit := on.store.get(key, Unit))}
    return {unit.id: unit for unit in found.values() if isinstance(unit, Unit)}


def _owner(on: System, unit: Unit | None) -> str | None:
    """Whose job had a unit last, as far as that is still known."""
    job = on.store.get(job_key(unit.lease.job), Job) if unit else None
    return job.owner if job else None


def _finish(on: System, site: Site, diff: AccountDiff) -> AccountDiff | None:
    """The diff is done. Factories and wells that units have and the site has not any more cannot be listed."""
    now, done = on.world.now(), diff
    for is_a, names in _names(site).items():
        for name, count in sorted(Counter(unit.maker for unit in listing.every(on, is_a)).items()):
            if name not in names:
                why = f"the site does not have it any more, so nobody can list it; {count} units of it have rows"
                done = leftovers.with_maker(done, maker_of(is_a, name), leftovers.unlisted(why), [], now)
    return _commit(on, diff, leftovers.finish(done, now))


def _commit(on: System, was: AccountDiff, diff: AccountDiff) -> AccountDiff | None:
    """The diff as it stands now; None if another call was first."""
    return on.store.get(diff.key, AccountDiff) if on.store.commit([Replace(was, diff)]) else None


def last(on: System) -> AccountDiff | None:
    """The last diff that is finished, or else the one that goes on; None before there was any."""
    found = latest(on)
    return next((diff for diff in found if diff.finished), found[0] if found else None)


def find(on: System, id: str = "") -> AccountDiff:
    """A diff; by default the last that is finished, or else the one that goes on. Raises Refused 404."""
    known = _named(on, id) if id else last(on)
    if known is None:
        why = "there is no such account diff: the sweep makes one each night, and `penstock account diff --now` one now"
        raise Refused(404, "account-diff-not-found", why)
    return known


def _named(on: System, id: str) -> AccountDiff | None:
    return on.store.get(diff_key(id), AccountDiff) if len(id) <= limits.NAME_CHARS else None


def ask(on: System, user: User) -> AccountDiff:
    """Have a diff made now. One that is asked for and not finished is that one."""

    def decide() -> tuple[Sequence[Change], AccountDiff]:
        now, found = on.world.now(), latest(on)
        running = next((diff for diff in found if not diff.finished), None)
        if running:
            return [], running
        begun = leftovers.ask(found[0] if found else None, now, user.name)
        return audit.record(on, [Create(begun)], user.name, "account diff", "account"), begun

    return transact(on, decide)


def history(on: System) -> list[AccountDiff]:
    """The diffs that are kept, newest first."""
    return latest(on, SHOWN)
