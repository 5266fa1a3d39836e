"""What is known of a machine that never said hello goes into its job's log: nobody else could say what went wrong."""

from __future__ import annotations

from penstock.domain.errors import DriverError
from penstock.domain.units import Unit
from penstock.ports import Witness
from penstock.system import System
from penstock.usecases import logs, sites


def tell(on: System, unit: Unit, hide: str) -> None:
    """Tell the job's log what the unit's driver knows, if it is one that can; never with what is to be hidden. [SEC-1]

    That it cannot be had is told as well, and stops nothing.
    """
    try:
        driver = sites.driver(on, sites.current(on), unit.is_a, unit.maker)
        told = driver.evidence(unit.id) if isinstance(driver, Witness) else None
    except DriverError as error:
        told = f"{unit.maker} cannot tell what became of {unit.id}: {error}"
    if told:
        logs.say(on, unit.job, unit.attempt, told.replace(hide, "(its key)"), "worker")
