"""The health checks of a target: scripts of the site's own, bounded in size and time."""

from __future__ import annotations

from penstock.domain.site import Health
from penstock.domain.sitevalues import duration
from penstock.toml.checks import Place, record, wanted

SECONDS = 300
"""How long a script may take at most: the job waits for it."""

SCRIPT_BYTES = 16 * 1024
"""How long a script may be. It travels with every job's assignment, and stands in the site's one item."""

HEALTH = 'before = "df -h /work"'


def check_health(value: object, place: Place) -> Health:
    """The scripts that tell whether a machine is fit; one of them at least."""
    before = len(place.faults)
    found = _keys(value, place)
    if not found.keys() & {"before", "after"} and len(place.faults) == before:
        place.fault(f"{place.label} has neither `before` nor `after`", f"like {HEALTH}")
    return Health(**found)


def check_script(value: object, place: Place) -> str:
    """A script for bash, of any number of lines."""
    if not isinstance(value, str):
        wanted("a script", value, place, f"like {HEALTH}")
        return ""
    if not value.strip():
        place.fault(f"{place.label} is empty")
    elif len(value.encode()) > SCRIPT_BYTES:
        place.fault(f"{place.label} is longer than {SCRIPT_BYTES // 1024} KiB", "call a program of the image from it")
    elif "\0" in value:
        place.fault(f"{place.label} has a zero byte", "no shell reads that")
    return value


_keys = record(
    {},
    {"before": check_script, "after": check_script, "timeout": duration(SECONDS, "5 minutes")},
    f"{{ {HEALTH} }}",
)
