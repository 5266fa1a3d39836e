"""A body's text as JSON that every part of Penstock can take: finite, whole where it can be, and not very deep."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from penstock.kernel.errors import Fault, Refused

NESTED = 32
"""How deeply a request may be nested."""

MOST = 2**53 - 1
"""The largest whole number; of beyond it not every program keeps each digit. Source: RFC 7493, section 2.2."""


def read(raw: str) -> Any:
    """What a text of JSON says. Raises Refused 400 with what is wrong and, where that is known, at which place."""
    try:
        given = json.loads(raw, parse_constant=_no_constant, parse_int=_bounded, parse_float=_number)
        json.dumps(given, ensure_ascii=False).encode()
        deep = _depth(given, NESTED)
    except json.JSONDecodeError as error:
        said = f"the body is not JSON: {error.msg} at line {error.lineno} column {error.colno}"
        raise Refused(400, "malformed-json", said, [Fault(said, line=error.lineno, column=error.colno)]) from None
    except (ValueError, RecursionError) as error:
        raise Refused(400, "malformed-json", f"the body is not JSON that can be read: {type(error).__name__}") from None
    if deep:
        raise Refused(400, "malformed-json", f"the body is nested more than {NESTED} deep")
    return given


def _no_constant(name: str) -> NoReturn:
    raise Refused(400, "malformed-json", f"the body is not JSON: {name} is no number")


def _bounded(text: str) -> int:
    return int(_within(int(text), text))


def _number(text: str) -> int | float:
    """What is written with a point or an exponent. `5.0` is a whole number: so say JSON Schema, and our document."""
    number = _within(float(text), text)
    return int(number) if number == int(number) else number


def _within(number: float, text: str) -> float:
    if abs(number) > MOST:
        said = f"numbers are from -{MOST} to {MOST}, and {text[:40]} is not"
        raise Refused(400, "bad-request", said, [Fault(said)])
    return number


def _depth(value: object, left: int) -> bool:
    """Whether a value is nested too deeply."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return left == 0 or any(_depth(one, left - 1) for one in inner)
