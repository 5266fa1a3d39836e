"""What is known of a machine that never said hello: nobody else could say what went wrong.

It goes into its job's log. Of one that has no job yet, the end of it is kept where operators look: see `ahead`.
"""

from __future__ import annotations

from penstock.domain.units.units import JOURNAL_CHARS, Unit
from penstock.kernel.errors import DriverError
from penstock.ports import Witness
from penstock.system import System
from penstock.usecases import logs, sites

HEAD = 150
"""How many characters of the beginning stay of what is too long: which machine it was, and its state."""


def tell(on: System, unit: Unit, hide: str) -> None:
    """Tell the job's log what the unit's driver knows, if it is one that can."""
    told = of(on, unit, hide)
    if told:
        logs.say(on, unit.job, unit.attempt, told, "worker")


def of(on: System, unit: Unit, hide: str) -> str | None:
    """What a unit's driver knows of it, if it is one that can tell; never with what is to be hidden. [SEC-1]

    That it cannot be had is told as well, and stops nothing.
    """
    try:
        driver = sites.driver(on, sites.current(on), unit.is_a, unit.maker)
        told = driver.evidence(unit.id) if isinstance(driver, Witness) else None
    except DriverError as error:
        told = f"{unit.maker} cannot tell what became of {unit.id}: {error}"
    return told.replace(hide, "(its key)") if told else None


def short(told: str) -> str:
    """As much as an entry of a journal holds: the beginning, and the end, which is what was printed last."""
    if len(told) <= JOURNAL_CHARS:
        return told
    return f"{told[:HEAD]} … {told[-(JOURNAL_CHARS - HEAD - 3) :]}"
