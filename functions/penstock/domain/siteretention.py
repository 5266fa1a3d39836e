"""The site's [retention]: every span of the table may be said anew, within its bounds."""

from __future__ import annotations

from dataclasses import fields

from penstock.domain.jobfile import parse_duration
from penstock.domain.retention import DAY, HOUR, Rule, Spans
from penstock.toml.checks import Check, Place, record

UNITS = ((DAY, "day"), (HOUR, "hour"), (60, "minute"), (1, "second"))


def check_retention(value: object, place: Place) -> Spans:
    """The spans that a site says, and the defaults of the others; of no account where there are faults."""
    before = len(place.faults)
    found = _keys(value, place)
    return Spans(**found) if len(place.faults) == before else Spans()


def spelled(seconds: int) -> str:
    """Seconds in the largest unit that they are a whole number of."""
    unit, name = next((unit, name) for unit, name in UNITS if seconds % unit == 0)
    return f"{seconds // unit} {name}{'' if seconds == unit else 's'}"


def _lasting(rule: Rule) -> Check:
    def check(value: object, place: Place) -> int:
        found = parse_duration(value)
        if isinstance(found, str):
            place.fault(f"{place.label}: {found}")
            return rule.least
        if not rule.least <= found <= rule.most:
            place.fault(f"{place.label} must be from {spelled(rule.least)} to {spelled(rule.most)}")
        return found

    return check


_keys = record({}, {each.name: _lasting(each.metadata["rule"]) for each in fields(Spans)}, '{ failed = "14d" }')
