"""The settings of an `http` well, the schema of its options, and the checks of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from penstock.drivers.checks import sentences
from penstock.drivers.http.settings import EXAMPLE, NEEDED, OPTIONAL, ServiceSettings
from penstock.kernel.errors import Misconfigured
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import Place, clip, did_you_mean, entries, flag, listed, record, wanted


@dataclass(frozen=True)
class Settings(ServiceSettings):
    """The service, and the schema of a job's options."""

    options: Mapping[str, Any] = field(default_factory=dict)


def read(given: Mapping[str, Any]) -> Settings:
    """The settings in a site's table. Raises Misconfigured."""
    top = Place(("http",))
    values = _keys(given, top)
    if top.faults:
        raise Misconfigured("; ".join(sentences(top)))
    return Settings(**values)


def complaints(given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with settings, one sentence each. Calls no service."""
    top = Place(("http",))
    _keys(given, top)
    return sentences(top)


def check_schema(value: object, place: Place) -> dict[str, Any]:
    """Check the schema of a job's options in the settings: a table of tables."""
    found: dict[str, Any] = {}
    for name, entry in entries(value, place, MOST_OPTIONS, f"tables like {OPTION_EXAMPLE}"):
        found[name] = {"type": "string", **_option(entry, place / name)}
        _check_enum(found[name], place / name)
    return found


_keys = record(NEEDED, {**OPTIONAL, "options": check_schema}, EXAMPLE)

TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


MOST_OPTIONS = 50
STRING_CHARS = 1000
OPTION_EXAMPLE = '{ type = "integer", max = 8 }'


def objections(schema: Mapping[str, Any], options: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with a job's options, one sentence each."""
    unknown = [f"there is no option {clip(name)!r}: {_hint(name, schema)}" for name in options if name not in schema]
    missing = [f"the option {name!r} is required" for name, of in schema.items() if _is_missing(name, of, options)]
    wrong = [_wrong_value(name, options[name], of) for name, of in schema.items() if name in options]
    return [*unknown, *missing, *(each for each in wrong if each)]


def _hint(name: str, schema: Mapping[str, Any]) -> str:
    return did_you_mean(name, schema) if schema else "the well has no options"


def _is_missing(name: str, of: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    return bool(of.get("required")) and name not in options


def _wrong_value(name: str, value: object, of: Mapping[str, Any]) -> str | None:
    is_flag = isinstance(value, bool)
    if not isinstance(value, TYPES[of["type"]]) or (is_flag and of["type"] != "boolean"):
        return f"the option {name!r} must be of type {of['type']}"
    if "enum" in of and value not in of["enum"]:
        return f"the option {name!r} must be one of {', '.join(map(str, of['enum']))}"
    if isinstance(value, str):
        most = of.get("max", STRING_CHARS)
        return f"the option {name!r} may have at most {most} characters" if len(value) > most else None
    if isinstance(value, int | float) and not of.get("min", value) <= value <= of.get("max", value):
        bounds = [f"{word} {of[key]}" for key, word in (("min", "at least"), ("max", "at most")) if key in of]
        return f"the option {name!r} must be {' and '.join(bounds)}"
    return None


def _check_enum(option: Mapping[str, Any], place: Place) -> None:
    kind = TYPES[option["type"]]
    if any(not isinstance(each, kind) for each in option.get("enum", ())):
        (place / "enum").fault(f"{place.label} has an `enum` with values that are not of type {option['type']}")


def _type(value: object, place: Place) -> str:
    if not isinstance(value, str) or value not in TYPES:
        place.fault(f"{place.label} is not one of {', '.join(TYPES)}")
        return "string"
    return value


def _value(value: object, place: Place) -> object:
    if not isinstance(value, str | int | float):
        wanted("a string, a number, true or false", value, place)
    return value


def _number(value: object, place: Place) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        wanted("a number", value, place)
        return 0
    return value


_option = record(
    {},
    {"type": _type, "enum": listed(_value, MOST_OPTIONS, "values"), "min": _number, "max": _number, "required": flag},
    OPTION_EXAMPLE,
)
