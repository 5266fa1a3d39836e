"""Amounts of money: whole millionths of a currency, so that sums are exact, whatever their order.

A rate is an amount for so much of something; `rated` rounds once, when it is multiplied.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

MILLION = 1_000_000

MOST = 10**15
"""The largest amount, in millionths: a thousand million."""


PRICE, DOLLAR_PRICE = "price", "price_usd"
"""What a factory's driver calls the price per hour of a machine, in its metadata: in the site's currency, or in US
dollars.
"""


class Micros(int):
    """Millionths of a currency, as a site's file says them: 0.0816 are 81,600."""

    def __str__(self) -> str:
        return f"{shown(self).rstrip('0').rstrip('.')}"


def shown(micros: int) -> str:
    """An amount with all its six decimals: 81,600 as 0.081600."""
    return f"{micros // MILLION}.{micros % MILLION:06d}"


def micros_of(value: object) -> Micros | None:
    """The millionths that a number or a text means; None for what is none, is negative, too much, or finer."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        found = Decimal(str(value)) * MILLION
    except InvalidOperation:
        return None
    is_whole = found.is_finite() and 0 <= found <= MOST and found == found.to_integral_value()
    return Micros(int(found)) if is_whole else None


def rated(rate: int, amount: int, per: int) -> int:
    """What an amount costs at a rate for each `per` of it, rounded to the nearest millionth, halves up."""
    return (2 * rate * amount + per) // (2 * per)
