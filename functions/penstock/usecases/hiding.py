"""What a driver says when it fails is told to people: without the secret that it was given. [SEC-1]"""

from __future__ import annotations

import traceback
from dataclasses import replace

from penstock.kernel.errors import DriverError, Short
from penstock.ports import Driver, NotYet, Order, Ready

KEY = "(its key)"


def create(driver: Driver, order: Order) -> Ready | NotYet:
    """Have a unit made. What is raised or said of it stands in rows, logs and answers, so the key is taken out."""
    try:
        done = driver.create(order)
    except DriverError as error:
        _clean(error, order.key)
        raise
    except Exception as error:  # it ends the function, which logs it with all that led to it, in whatever words it has
        told = "".join(traceback.format_exception(error))
        if _without(told, order.key) != told:
            raise RuntimeError(_without(told, order.key)) from None
        raise
    if isinstance(done, NotYet) and done.reason:
        return replace(done, reason=_without(done.reason, order.key))
    return done


def _clean(error: DriverError, key: str) -> None:
    error.args = tuple(_without(str(part), key) for part in error.args)
    if isinstance(error, Short):
        error.shortages = tuple(replace(each, why=_without(each.why, key)) for each in error.shortages)


def _without(text: str, key: str) -> str:
    return text.replace(key, KEY) if key else text
