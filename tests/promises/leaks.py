"""The bound of the leak ledger, for docs/internals/promises.md: computed from the constants that the code uses."""

from __future__ import annotations

from datetime import timedelta

from infra.alarms import DIFF_SECONDS
from penstock.domain import leftovers
from penstock.domain.units import comparison
from penstock.drivers.factories.ec2.factory import LISTING_LAG
from penstock.usecases import sweep
from penstock.usecases.units import drivers

ALARM = timedelta(minutes=15)
"""The period of the alarms Strays and Leftovers: infra/alarms.py."""

TURN = comparison.COMPARE_EVERY + sweep.PERIOD
"""The longest time between two comparisons: one that is due waits for the next sweep."""

LAG = timedelta(seconds=LISTING_LAG)

STRAY_KNOWN = LAG + TURN
STRAY_ENDED = LAG + TURN + comparison.STRAY_AFTER + TURN
LEFT_KNOWN = leftovers.LEFT_AFTER + leftovers.PERIOD + sweep.PERIOD


def section() -> str:
    """The section, as Markdown."""
    rows = [
        ("a whole unit that no row knows", _said(STRAY_KNOWN), _why_strays()),
        (
            "any other thing whose unit is gone or has no row: a volume, a network interface, a role",
            f"{_said(LEFT_KNOWN)}, and {_said(timedelta(seconds=drivers.CALL_SECONDS))} for each factory and well",
            _why_leftovers(),
        ),
        ("either, while a list cannot be had", f"{_said(leftovers.PERIOD)} more for each such night", _why_failures()),
    ]
    return "\n".join([HEAD, *(f"| {what} | {after} | {why} |" for what, after, why in rows), TAIL])


HEAD = """\
## The bound of the leak ledger

How long something can exist outside, with our tag, before anybody knows of it. The times are computed from the
constants in the code, by `tests/promises/leaks.py`.

| what | is known after at most | because |
|---|---|---|"""

TAIL = """
Not within the bound: what was made in a region or an account that no factory or well of the site names any more; disks
of the `libcloud` factory [where no disk says whose it is](../operators/libcloud.md#disks), such as OpenStack's volumes;
and what a service behind an `http` well does not list. Nothing is made without our tag: each call that makes something
gives it.
"""


def _why_strays() -> str:
    return (
        f"EC2 lists it after {_said(LAG)} at most, and each factory and well is listed every "
        f"{_said(comparison.COMPARE_EVERY)}, by a sweep that comes each minute. It is destroyed after "
        f"{_said(STRAY_ENDED)}; after an outage of ours, {_said(comparison.GRACE)} later"
    )


def _why_leftovers() -> str:
    return (
        f"it is a leftover {_said(leftovers.LEFT_AFTER)} after it was made and its unit was gone, and [the account "
        "diff](../operators/operations.md#what-was-left-behind) comes each night. The alarm `Leftovers` follows within "
        f"{_said(ALARM)}"
    )


def _why_failures() -> str:
    return (
        "the diff names each list that it could not have. After "
        f"{_said(timedelta(seconds=DIFF_SECONDS))} without a diff that listed everything, the alarm `DiffAge` is "
        "raised; `Unlisted` after 10 minutes"
    )


def _said(time: timedelta) -> str:
    """A time in words."""
    minutes = int(time.total_seconds() // 60)
    hours, rest = divmod(minutes, 60)
    parts = [f"{hours} hours"] * (hours > 1) + ["1 hour"] * (hours == 1)
    parts += [f"{rest} minutes"] * (rest > 1) + ["1 minute"] * (rest == 1)
    return " and ".join(parts)
