"""What a well says of a resource may end by itself, as credentials do: it is asked anew while the lease lasts. [SEC-1]

It is the resource's due time that leads here, and nobody else: whoever answers agents only reads.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.domain import metrics
from penstock.domain.units import renewals, units
from penstock.domain.units.units import Unit
from penstock.kernel.errors import DriverError
from penstock.kernel.rows import Replace
from penstock.ports import NotYet, Order
from penstock.system import System
from penstock.usecases import cooling, counting, hiding, keeping, retrying, sealing, sites


def renew(on: System, unit: Unit, order: Order) -> None:
    """Ask a leased resource's well anew, and seal what it says for the same lease.

    It is written only over the row that was read: what comes after the lease's end is sealed for nobody. [SLOT-3]
    """
    begun = keeping.alone(on, unit) if unit.is_kept else unit
    if begun:
        _renew(on, begun, order)


def _renew(on: System, unit: Unit, order: Order) -> None:
    site = sites.current(on)
    leave = cooling.leave(on, site, unit)
    if leave.wait is not None:
        retrying.again(on, unit, leave.why, leave.wait)
        return
    try:
        asked = replace(order, avoid=leave.avoid)
        driver = sites.driver_of(on, site, unit)
        done = counting.called_for(on, unit, metrics.CREATE, lambda: hiding.create(driver, asked))
        sealed = sealing.answer(on, site, unit, done)
    except DriverError as error:
        reason, after = cooling.refused(on, unit, leave, error)
        retrying.again(on, unit, reason, after)
        return
    if isinstance(done, NotYet):
        retrying.again(on, units.noting(unit, done.notes), done.reason, done.after)
    else:
        told = renewals.renewed(unit, sealed, on.world.now(), done.expires)
        on.store.commit([Replace(unit, units.noting(told, done.notes))])
    cooling.answered(on, unit, leave, done)
