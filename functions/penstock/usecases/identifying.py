"""Whether the machine that shows a worker's key is the one that was made for it, where its factory can tell. [SEC-2]

The key says who read the machine's user data; what the machine shows besides says which machine it is. That is no fresh
word, so it counts only together with the key, and for the one worker whose machine it names.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.domain.site.site import Site
from penstock.domain.units.units import Unit, UnitKind, noted
from penstock.kernel.errors import DriverError, Refused
from penstock.kernel.rows import Replace
from penstock.ports import Identifier
from penstock.system import System
from penstock.usecases import sites

SETTING = "identity"
"""The setting of a factory that asks for it. No other factory's driver is loaded to answer an agent."""


def check(on: System, site: Site, unit: Unit, shown: Mapping[str, str]) -> None:
    """Raises Refused 401 for another machine, and 429 as long as nobody knows which was made. [SEC-2]"""
    maker = site.factories.get(unit.maker)
    if maker is None or SETTING not in maker.settings:
        return
    try:
        driver = sites.driver(on, site, UnitKind.WORKER, unit.maker)
    except DriverError as error:
        raise Refused(429, "not-yet", f"nobody can tell whose machine this is: {error}") from error
    if not isinstance(driver, Identifier):
        return
    if unit.made is None:
        raise Refused(429, "not-yet", "which machine was made is not written yet; try again in a moment")
    why = driver.stranger(shown, unit.metadata)
    if why is None:
        return
    _note(on, unit, f"a machine that had its key was refused: {why}")
    raise Refused(401, "no-identity" if not any(shown.values()) else "wrong-machine", f"not this machine: {why}")


def _note(on: System, unit: Unit, what: str) -> None:
    """Once for all tries, or whoever has the key could fill the journal."""
    if what not in (entry.what for entry in unit.journal.entries):
        on.store.commit([Replace(unit, noted(unit, on.world.now(), what))])
