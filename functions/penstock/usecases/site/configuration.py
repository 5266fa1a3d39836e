"""The site as last applied, and the drivers that it names. Read by almost every use case."""

from __future__ import annotations

from penstock.domain.site import parse
from penstock.domain.site.site import SITE_KEY, Maker, Site, SiteText
from penstock.domain.units.units import Unit, UnitKind
from penstock.kernel.errors import Misconfigured
from penstock.ports import ContextDriver, Driver, UnitContext
from penstock.system import System

_parsed: dict[str, Site] = {}
"""The last text that was parsed, and its site; a warm function mostly reads the same text again."""


def current(on: System) -> Site:
    """The site. A site that was never applied is empty."""
    row = on.store.get(SITE_KEY, SiteText)
    return parsed(row.toml) if row else Site()


def parsed(toml: str) -> Site:
    """The site that an applied text describes. Raises Misconfigured if it is no longer valid."""
    if toml not in _parsed:
        found = parse.parse(toml, "site.toml")
        if not isinstance(found, Site):
            raise Misconfigured(f"the site no longer parses: {found[0].message}")
        _parsed.clear()
        _parsed[toml] = found
    return _parsed[toml]


def driver(on: System, site: Site, is_a: UnitKind, maker: str) -> Driver:
    """The driver of a factory or well. Raises Misconfigured if the site has none of that name."""
    makers = site.factories if is_a is UnitKind.WORKER else site.wells
    found = makers.get(maker) or Maker(maker, "")
    if not found.driver:
        kind = "factory" if is_a is UnitKind.WORKER else "well"
        raise Misconfigured(f"the site has no {kind} {maker!r} any more")
    plug = on.drivers.factory if is_a is UnitKind.WORKER else on.drivers.well
    return plug(found.driver, found.settings, maker)


def driver_of(on: System, site: Site, unit: Unit) -> Driver:
    """The driver of a unit, for one call. Raises Misconfigured."""
    found = driver(on, site, unit.is_a, unit.maker)
    return (
        found.with_context(UnitContext(unit.lease.slot, unit.lease.fence, unit.creation.notes))
        if isinstance(found, ContextDriver)
        else found
    )


def quarantines(on: System, site: Site, unit: Unit) -> bool:
    """Whether a broken unit is quarantined, since its maker cannot make it anew: it stands for a thing that exists."""
    is_worker = unit.is_a is UnitKind.WORKER
    found = (site.factories if is_worker else site.wells).get(unit.maker)
    return found is not None and on.drivers.quarantines("factory" if is_worker else "well", found.driver)
