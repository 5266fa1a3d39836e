"""The canaries of a site: small scripts of its own that are run again and again, to see whether things work."""

from __future__ import annotations

from typing import Any

from penstock.domain.jobfile import Problems, parse
from penstock.domain.site import CanaryScript
from penstock.domain.sitehealth import check_script
from penstock.domain.sitevalues import duration
from penstock.toml.checks import Place, record, text

DAY = 24 * 3600
LEAST = 60
"""How often a canary may be run at most, in seconds: the sweep looks each minute."""

CANARY = 'every = "1h", script = "df -h /work"'


def of_target(value: object, place: Place) -> CanaryScript:
    """The canary of a target."""
    return _checked(_of_target(value, place), place)


def of_resource(value: object, place: Place) -> CanaryScript:
    """The canary of a resource type, which needs a target to run on."""
    return _checked(_of_resource(value, place), place)


def _checked(found: dict[str, Any], place: Place) -> CanaryScript:
    if found.get("every", LEAST) < LEAST:
        (place / "every").fault(f"{place.label}.every must be at least {LEAST} seconds", "the sweep looks each minute")
    return CanaryScript(**{"every": LEAST, "script": "", **found})


def _script(value: object, place: Place) -> str:
    """A job file, or a script for bash."""
    before = len(place.faults)
    script = check_script(value, place)
    whole = script if script.startswith("#!") else f"#!/bin/bash\n{script}"
    found = parse(whole, place.label)
    if isinstance(found, Problems) and len(place.faults) == before:
        place.fault(f"{place.label} is not a job file that can run: {found.items[0].message}", found.items[0].hint)
    return whole


_needed = {"every": duration(30 * DAY, "30 days"), "script": _script}
_more = {"timeout": duration(3600, "1 hour")}
_of_target = record(_needed, _more, f"{{ {CANARY} }}")
_of_resource = record({**_needed, "target": text}, _more, f'{{ {CANARY}, target = "default" }}')
