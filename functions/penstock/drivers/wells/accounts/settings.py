"""The settings of an `accounts` well, and their checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from penstock.drivers.checks import not_empty, sentences
from penstock.kernel.errors import Misconfigured
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import Place, entries, flag, listed, matching, number, record, text

CLEANINGS = 10
"""The most consecutive cleanings that a site can set."""

NAMES = 500
FUNCTION = r"arn:aws[a-z-]*:lambda:[a-z0-9-]+:\d{12}:function:[A-Za-z0-9_-]{1,64}|[A-Za-z0-9_-]{1,64}"
EXAMPLE = '{ lambda = "arn:aws:lambda:eu-west-1:123456789012:function:clean-sandboxes" }'


@dataclass(frozen=True)
class Settings:
    """What cleans, how often in a row, and whether the result is checked.

    `baseline` has the expected digest of each thing, by name. A thing without one must be as before the lease.
    """

    function: str = ""
    command: tuple[str, ...] = ()
    cleanings: int = 1
    check: bool = False
    baseline: Mapping[str, str] = field(default_factory=dict)


def read(given: Mapping[str, Any]) -> Settings:
    """The settings in a site's table. Raises Misconfigured."""
    top = Place(("accounts",))
    values = _checked(given, top)
    if top.faults:
        raise Misconfigured("; ".join(sentences(top)))
    values["function"] = values.pop("lambda", "")
    return Settings(**values)


def complaints(given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with settings, one sentence each. Calls no service."""
    top = Place(("accounts",))
    _checked(given, top)
    return sentences(top)


def _checked(given: Mapping[str, Any], top: Place) -> dict[str, Any]:
    values: dict[str, Any] = _keys(given, top)
    if ("lambda" in given) == ("command" in given):
        top.fault("`accounts` needs either `lambda` or `command`", f"like {EXAMPLE}")
    if "baseline" in values and not values.get("check"):
        (top / "baseline").fault("`baseline` needs `check = true`", "add it, or remove `baseline`")
    return values


def _baseline(value: object, place: Place) -> dict[str, str]:
    found = entries(value, place, NAMES, 'a table like { red = "4f2a…" }')
    return {name: text(digest, place / name) for name, digest in found}


_function = matching(FUNCTION, "the name or ARN of a function", "without an alias or version")
_keys = record(
    {},
    {
        "lambda": _function,
        "command": not_empty(listed(text, 20, "words")),
        "cleanings": number(1, CLEANINGS),
        "check": flag,
        "baseline": _baseline,
    },
    EXAMPLE,
)
