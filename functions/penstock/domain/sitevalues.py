"""Checks of values that several tables of a site have."""

from __future__ import annotations

from penstock.domain.jobfile import parse_duration
from penstock.domain.jobfile.checks import Check
from penstock.domain.jobfile.place import Place


def duration(most: int, spelled: str) -> Check:
    """Seconds from 1 to `most`."""

    def check(value: object, place: Place) -> int:
        found = parse_duration(value)
        if isinstance(found, str):
            place.fault(f"{place.label}: {found}")
            return 1
        if not 1 <= found <= most:
            place.fault(f"{place.label} must be from 1 second to {spelled}")
        return found

    return check
