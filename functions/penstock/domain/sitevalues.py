"""Checks of values that several tables of a site have."""

from __future__ import annotations

from penstock.domain import users
from penstock.domain.jobfile import parse_duration
from penstock.toml.checks import Check, Place, clip, text


def duration(most: int, spelled: str, least: int = 1) -> Check:
    """Seconds from `least` to `most`."""

    def check(value: object, place: Place) -> int:
        found = parse_duration(value)
        if isinstance(found, str):
            place.fault(f"{place.label}: {found}")
            return least
        if not least <= found <= most:
            place.fault(f"{place.label} must be from {'1 second' if least else '0'} to {spelled}")
        return found

    return check


def privilege(value: object, place: Place) -> str:
    """The name of a privilege."""
    before = len(place.faults)
    found = text(value, place)
    if len(place.faults) == before and not users.is_privilege(found):
        place.fault(f"{place.label}: `{clip(found)}` cannot be a privilege", "lower-case, like target.lab")
    return found
