"""Checks of the settings that a site gives to drivers."""

from __future__ import annotations

from typing import Any

from penstock.toml.checks import Check, Place, wanted

SHELL_BYTES = 6 * 1024
"""EC2 takes 16 KiB of user data. The script that starts the agent needs less than 2 KiB of it."""


def sentences(top: Place) -> list[str]:
    """The faults, one sentence each."""
    return [f"{fault.message}: {fault.hint}" if fault.hint else fault.message for fault in top.faults]


def not_empty(check: Check) -> Check:
    """A check that also refuses an empty list."""

    def checked(value: object, place: Place) -> Any:
        if value == []:
            place.fault(f"{place.label} is empty", "name at least one")
        return check(value, place)

    return checked


def shell(value: object, place: Place) -> str:
    """Checks shell commands that run before the agent."""
    if not isinstance(value, str):
        wanted("shell commands as text", value, place)
        return ""
    if len(value.encode()) > SHELL_BYTES:
        place.fault(f"{place.label} is longer than {SHELL_BYTES} bytes", "put the rest into the image")
    return value
