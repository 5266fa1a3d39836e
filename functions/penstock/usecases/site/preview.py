"""What applying a site would do, before it is done: to its keys, to what jobs hold and wait for, and to what operators
changed by hand since the last one was applied. Nothing is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime

from penstock.domain.pools.pools import WAITING, Pool, Slot, SlotState, collection
from penstock.domain.site.differences import Difference
from penstock.domain.site.site import SITE_KEY, Shape, Site, SiteText
from penstock.domain.units.units import UnitKind
from penstock.domain.users.audit import Entry, Wanted
from penstock.kernel.frozen import dataclass
from penstock.system import System, parse_site
from penstock.usecases.site import apply
from penstock.usecases.units import listing
from penstock.usecases.users import audit

NO_SHAPE = Shape(0)
"""What a pool is that the site no longer has."""


@dataclass(frozen=True)
class Loss:
    """What a pool would lose while jobs hold it or wait for it; or a factory or well while its units exist."""

    what: str
    change: str
    held: int
    waiting: int
    gone: bool

    def __str__(self) -> str:
        if self.what.startswith(("factory/", "well/")):
            kept = f"{self.held} {'unit exists' if self.held == 1 else 'units exist'}"
            return f"{self.what}: {kept} that nobody could destroy without it: keep it until they are gone"
        then = ""
        if self.gone and self.waiting:
            then = "; those who wait get nothing, and fail at their queue deadline"
        return f"{self.what}: {self.change}; {self.held} held, {self.waiting} waiting{then}"


@dataclass(frozen=True)
class Drift:
    """What somebody changed on the site since its configuration was applied. `by` is "" where no audit entry says it.

    `reset`: applying any configuration takes it back.
    """

    pool: str
    change: str
    by: str
    at: datetime | None
    reset: bool


@dataclass(frozen=True)
class Preview:
    """All of it. `site` is the one that would be applied; `base` is the tag of the one that it is compared with."""

    base: str
    was: SiteText | None
    site: Site
    differences: list[Difference]
    losses: list[Loss]
    drift: list[Drift]


def preview(on: System, toml: str, path: str) -> Preview:
    """What applying a site would do now. Raises Refused 422 as applying it would."""
    site = apply.check(on, toml, path)
    was = on.store.get(SITE_KEY, SiteText)
    before = parse_site(was.toml) if was else Site()
    existing = list(apply.every_pool(on))
    return Preview(
        base=apply.tag(was),
        was=was,
        site=site,
        differences=apply.differences(was, toml, site),
        losses=[*_losses(on, existing, site.pools()), *_without_maker(on, before, site)],
        drift=list(_drift(on, existing, before.pools())),
    )


def _losses(on: System, existing: list[Pool], wanted: Mapping[str, Shape]) -> Iterator[Loss]:
    """The pools that would have less than now, if anybody holds them or waits for them."""
    for pool in existing:
        shape = wanted.get(pool.name, NO_SHAPE)
        if shape.limit >= pool.limit and not _names_gone(pool, shape):
            continue
        held, waiting = _held(on, pool, shape), on.store.count(collection(pool.name), WAITING)
        if held or waiting:
            now = apply.describe(shape) if pool.name in wanted else "removed"
            change = f"{apply.describe(apply.shape_of(pool))} -> {now}"
            yield Loss(pool.name, change, held, waiting, gone=pool.name not in wanted)


def _names_gone(pool: Pool, shape: Shape) -> set[str]:
    """The named slots that a pool would lose."""
    return set(pool.names or ()) - set(shape.names or ())


def _held(on: System, pool: Pool, shape: Shape) -> int:
    """How many slots are held of those that may be lost, or how much of an amount."""
    if pool.is_amount:
        return pool.used
    gone = _names_gone(pool, shape)
    held = on.store.find(collection(pool.name), f"{SlotState.HELD}#", Slot, limit=10_000)
    return sum(not gone or slot.name in gone for slot in held)


def _without_maker(on: System, before: Site, after: Site) -> Iterator[Loss]:
    """The factories and wells that would be gone while units of theirs exist. [UNIT-1]"""
    for kind, sort, was, now in (
        (UnitKind.WORKER, "factory", before.factories, after.factories),
        (UnitKind.RESOURCE, "well", before.wells, after.wells),
    ):
        gone = set(was) - set(now)
        units = Counter(unit.maker for unit in listing.every(on, kind)) if gone else Counter[str]()
        for name in sorted(gone):
            if units[name]:
                yield Loss(f"{sort}/{name}", "removed", units[name], 0, gone=True)


def drift(on: System, existing: list[Pool]) -> list[Drift]:
    """What somebody changed by hand since the configuration in force was applied. `existing` are all pools."""
    was = on.store.get(SITE_KEY, SiteText)
    return list(_drift(on, existing, parse_site(was.toml).pools())) if was else []


def _drift(on: System, existing: list[Pool], applied: Mapping[str, Shape]) -> Iterator[Drift]:
    """The pools that are not as the configuration in force says, and those that are paused."""
    resized = [pool for pool in existing if pool.name in applied and apply.shape_of(pool) != applied[pool.name]]
    paused = [pool for pool in existing if pool.paused]
    log = audit.list_entries(on, Wanted(), audit.SCANNED, "")[0] if resized or paused else []
    for pool in resized:
        change = f"{apply.describe(applied[pool.name])} -> {apply.describe(apply.shape_of(pool))}"
        yield _by(log, pool, "resize", change)
    for pool in paused:
        yield _by(log, pool, "pause", "paused")


def _by(log: list[Entry], pool: Pool, did: str, change: str) -> Drift:
    """A change with who made it, by the newest entry that tells of one."""
    found = next((entry for entry in log if (entry.did, entry.what) == (did, f"pool {pool.name}")), None)
    return Drift(pool.name, change, found.by if found else "", found.at if found else None, reset=did == "resize")
