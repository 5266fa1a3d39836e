"""The tables of a site and the checks of their keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from penstock.domain.artifacts import volumes
from penstock.domain.jobfile.machine import check_machine
from penstock.domain.jobfile.resources import check_options
from penstock.domain.pools.pools import Serves, Sharing, Warm
from penstock.domain.site import families, sections
from penstock.domain.site.sections import (
    check_budgets,
    check_console,
    check_environment,
    check_github,
    check_health,
    check_identity,
    check_prices,
    check_retention,
    check_shares,
    duration,
    price,
    privilege,
)
from penstock.domain.site.sharing import check_serves, check_share, share
from penstock.domain.site.site import Limits, Maker, Quota, ResourceType, Site, Target
from penstock.domain.site.things import check_hosts, check_things
from penstock.kernel import limits
from penstock.toml.checks import Check, Place, clip, entries, flag, listed, matching, number, record, text, wanted

T = TypeVar("T")

MAX_SLOTS = 10_000
"""The most slots one pool may have."""

MAX_LEASES = 100
"""How many may have one resource at once."""

MAX_AMOUNT = 10**12
"""The most of anything."""

MAX_ENTRIES = 500
"""The most entries one table may have."""

MAX_PUBLIC = 100
"""How many keys of its metadata a resource type may call public."""

MAX_JOBS = 10_000_000
MAX_STORED_BYTES = 10**16
"""The most jobs that one owner may have at once, or submit in a minute."""

RATES = (0.01, 1000)
"""How many calls a second a site may bound a factory or well to."""


DAY = 24 * 3600


NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


NAME_HINT = "letters, digits and . _ - only, at most 64, the first a letter or digit"
MAKER = 'driver = "process"'
TARGET = 'factory = "here"'
RESOURCE = 'well = "benches"'


ORDERED = (
    ("heartbeat", "lease", 1, "less than", "a worker is lost when its lease runs out: let several heartbeats fit in"),
    ("timeout", "timeout_most", 0, "at most", "`timeout` is for jobs that name none, `timeout_most` bounds them all"),
    ("boot", "idle_hold", 0, "at most", "or what a job holds is given back while its worker boots"),
)


def check_site(document: Mapping[str, Any], top: Place) -> Site:
    """The site that a document describes; of no account where there are faults."""
    values = _site_keys(document, top)
    return Site(**values)


def _tables(read: Callable[[str, Any, Place], T], example: str) -> Check:
    """A table of tables, whose names are free."""

    def check(value: object, place: Place) -> dict[str, T]:
        found: dict[str, T] = {}
        for name, entry in entries(value, place, MAX_ENTRIES, f"tables like [{place.path[-1]}.NAME] with {example}"):
            if not re.fullmatch(NAME, name):
                (place / name).fault(f"`{clip(name)}` cannot be a name", NAME_HINT, on_key=True)
            found[name] = read(name, entry, place / name)
        return found

    return check


def _maker(name: str, value: object, place: Place) -> Maker:
    """A factory or a well; what its settings mean is the driver's to check."""
    if not isinstance(value, Mapping):
        wanted("a table", value, place, f"like {{ {MAKER} }}")
        return Maker(name, "")
    if "driver" not in value:
        place.fault(f"{place.label} has no `driver`", f"like {MAKER}")
    driver = text(value["driver"], place / "driver") if "driver" in value else ""
    rate = _rate(value["rate"], place / "rate") if "rate" in value else None
    settings = {key: setting for key, setting in value.items() if key not in ("driver", "rate")}
    return Maker(name, driver, check_options(settings, place), rate)


def _rate(value: object, place: Place) -> float:
    """Calls per second; as a fraction for fewer than one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        wanted("a number of calls per second", value, place, "like rate = 2")
        return 1.0
    if not RATES[0] <= value <= RATES[1]:
        place.fault(f"{place.label} must be from {RATES[0]} to {RATES[1]} calls per second")
    return float(value)


def _target(name: str, value: object, place: Place) -> Target:
    before = len(place.faults)
    found = _target_keys(value, place)
    redirect, privilege = found.get("redirect"), found.get("privilege")
    if "redirect" in found:
        for key in sorted(found.keys() - {"redirect", "privilege"}):
            (place / key).fault(f"a redirect has no `{key}` of its own", f"take `{key}` out", on_key=True)
        return Target(name, redirect=redirect, privilege=privilege)
    if "machines" in found:
        return families.family(name, found, place)
    if "price_band" in found:
        (place / "price_band").fault("only a target with `machines` has a `price_band`", on_key=True)
    if "factory" not in found and len(place.faults) == before:
        place.fault(f"{place.label} has no `factory`, `redirect` or `machines`", f"like {TARGET}")
    hosts = found.get("hosts", {})
    names, limit = _limit_or_names(_with_names(found, hosts), place)
    if len(place.faults) == before:
        _check_least(found.get("warm"), limit, place)
    return Target(
        name, found.get("factory"), limit, privilege=privilege, uses=found.get("uses", {}), warm=found.get("warm"),
        health=found.get("health"), names=names, canary=found.get("canary"), sudo=found.get("sudo", True),
        price=found.get("price"), machine=found.get("machine"),
        hosts=hosts, share=_shared(found, names, place),
    )  # fmt: skip


def _shared(found: Mapping[str, Any], names: tuple[str, ...] | None, place: Place) -> Sharing | None:
    """How jobs share the hosts of a target, if they do."""
    said = found.get("share")
    if said is None:
        return None
    return share(said, found.get("machine"), None if names is None else len(names), place / "share")


def _with_names(found: dict[str, Any], more: Iterable[str]) -> dict[str, Any]:
    """A table whose names are those that it lists, and those that have a table of their own."""
    names = (*found.get("names", ()), *more)
    return {**found, "names": tuple(dict.fromkeys(names))} if more else found


def _limit_or_names(found: Mapping[str, Any], place: Place) -> tuple[tuple[str, ...] | None, int]:
    """The names of slots, if they have some, and how many slots there are."""
    names, limit = found.get("names"), found.get("limit", 1)
    if names is not None and "limit" in found:
        (place / "limit").fault("named slots are their own limit", "keep either `names` or `limit`", on_key=True)
    return names, limit if names is None else len(names)


def _resource(name: str, value: object, place: Place) -> ResourceType:
    before = len(place.faults)
    found = _resource_keys(value, place)
    things = found.get("things", {})
    names, limit = _limit_or_names(_with_names(found, things), place)
    if things and limit * found.get("leases", 1) > limits.THINGS_SLOTS:
        text = f"{place.label} has {limit} things with {found.get('leases', 1)} leases each"
        place.fault(f"{text}; there may be {limits.THINGS_SLOTS} leases in all", "jobs choose among fewer things")
    if names is None and "leases" in found:
        (place / "leases").fault("only named resources are leased more than once", "give it `names`", on_key=True)
    if len(place.faults) == before:
        _check_least(found.get("warm"), limit * (found.get("leases", 1) if names is not None else 1), place)
    return ResourceType(
        name=name,
        well=found.get("well", ""),
        limit=limit,
        names=names,
        things=things,
        privilege=found.get("privilege"),
        settings=found.get("settings", {}),
        leases=found.get("leases", 1),
        uses=found.get("uses", {}),
        warm=found.get("warm"),
        canary=found.get("canary"),
        public=found.get("public", ()),
        price=found.get("price"),
    )


def _warm(serves: Serves, value: object, place: Place) -> Warm | None:
    """What is kept for the next lease; nothing for `max = 0`. `serves`: what holds if the table does not say."""
    found = {"serves": serves, **_warm_keys(value, place)}
    least = found.pop("min", 0)
    most = found.pop("max", max(1, least))
    if least > most:
        (place / "min").fault(f"`min` ({least}) must be at most `max` ({most})", "raise `max`, or leave it out")
    return Warm(least=least, most=most, **found) if most else None


def _check_least(warm: Warm | None, limit: int, place: Place) -> None:
    """No more are made ahead of need than there are slots for."""
    if warm and warm.least > limit:
        (place / "warm" / "min").fault(f"`min` ({warm.least}) must be at most the number of slots ({limit})")


def _quota(name: str, value: object, place: Place) -> Quota:
    return Quota(name, _quota_keys(value, place).get("amount", 0))


def _uses(value: object, place: Place) -> dict[str, int]:
    """How much of what is used, by name of a quota or a resource type."""
    found = entries(value, place, MAX_ENTRIES, "a table like { vcpus = 8 }")
    return {name: _used(count, place / name) for name, count in found}


def _names(value: object, place: Place) -> tuple[str, ...]:
    """The names of slots. No name twice: a slot is known by it."""
    names: tuple[str, ...] = _slot_names(value, place)
    seen: set[str] = set()
    for at, name in enumerate(names):
        if name and name in seen:
            (place / at).fault(f"`{clip(name)}` is listed twice", "give every slot its own name")
        seen.add(name)
    return names


def _limits(value: object, place: Place) -> Limits:
    before = len(place.faults)
    found = _limit_keys(value, place)
    if len(place.faults) > before:
        return Limits()
    made = Limits(**found)
    for small, large, gap, relation, hint in ORDERED:
        if getattr(made, large) and getattr(made, small) + gap > getattr(made, large):
            pair = " ".join((_shown(small, found, made), "must be", relation, _shown(large, found, made)))
            (place / (small if small in found else large)).fault(pair, hint)
    return made


def _shown(key: str, found: Mapping[str, int], made: Limits) -> str:
    return f"`{key}` ({getattr(made, key)}s{'' if key in found else ' by default'})"


_warm_keys = record(
    {},
    {
        "min": number(0, MAX_SLOTS),
        "max": number(0, MAX_SLOTS),
        "idle": duration(DAY, "1 day"),
        "life": duration(30 * DAY, "30 days"),
        "reuse": number(1, 1_000_000),
        "serves": check_serves,
    },
    '{ max = 2, idle = "10m" }',
)


_slot_names = listed(matching(NAME, "a name", NAME_HINT), MAX_SLOTS, "names")


_used = number(1, MAX_AMOUNT)


_quota_keys = record({"amount": number(0, MAX_AMOUNT)}, {}, "{ amount = 64 }")


_target_keys = record(
    {},
    {
        "factory": text,
        "names": _names,
        "hosts": check_hosts,
        "limit": number(0, MAX_SLOTS),
        "redirect": text,
        "privilege": privilege,
        "uses": _uses,
        "warm": partial(_warm, Serves.OWNER),
        "health": check_health,
        "canary": sections.canary_of_target,
        "sudo": flag,
        "price": price,
        "machine": check_machine,
        "share": check_share,
        "machines": families.check_members,
        "price_band": families.check_band,
    },
    f"{{ {TARGET} }}",
)


_resource_keys = record(
    {"well": text},
    {
        "names": _names,
        "things": check_things,
        "limit": number(0, MAX_SLOTS),
        "leases": number(1, MAX_LEASES),
        "privilege": privilege,
        "settings": check_options,
        "uses": _uses,
        "warm": partial(_warm, Serves.SITE),
        "canary": sections.canary_of_resource,
        "public": listed(text, MAX_PUBLIC, "keys"),
        "price": price,
    },
    RESOURCE,
)


# A flow ends by itself after 31 days: queue, timeout and grace must fit into it.
_limit_keys = record(
    {},
    {
        "queue": duration(limits.QUEUE_SECONDS, "21 days"),
        "timeout": duration(limits.TIMEOUT_SECONDS, "7 days"),
        "timeout_most": duration(limits.TIMEOUT_SECONDS, "7 days"),
        "grace": duration(3600, "1 hour"),
        "heartbeat": duration(3600, "1 hour"),
        "lease": duration(DAY, "1 day"),
        "boot": duration(DAY, "1 day"),
        "idle_hold": duration(21 * DAY, "21 days"),
        "retries": number(0, limits.RETRIES),
        "output_bytes": number(1, volumes.MAX_PARTS * volumes.PART_BYTES),
        "hold": duration(7 * DAY, "7 days", least=0),
        "cache_bytes": number(0, MAX_AMOUNT),
        "unpacked_bytes": number(1, MAX_AMOUNT),
        "unpacked_entries": number(1, 100_000_000),
        "unpacked_depth": number(1, 500),
        "unpacked_ratio": number(1, 1100),
        "log_bytes": number(64 * 1024, limits.LOG_BYTES),
        "log_events": number(100, limits.LOG_EVENTS),
        "jobs": number(1, MAX_JOBS),
        "submits": number(1, MAX_JOBS),
        "stored_bytes": number(1, MAX_STORED_BYTES),
        "script_bytes": number(1, MAX_STORED_BYTES),
        "at_once": number(1, MAX_JOBS),
    },
    '{ queue = "7d" }',
)


_site_keys = record(
    {},
    {
        "factories": _tables(_maker, MAKER),
        "wells": _tables(_maker, MAKER),
        "targets": _tables(_target, TARGET),
        "resources": _tables(_resource, RESOURCE),
        "limits": _limits,
        "retention": check_retention,
        "identity": check_identity,
        "console": check_console,
        "shares": check_shares,
        "prices": check_prices,
        "budgets": check_budgets,
        "quotas": _tables(_quota, "amount = 64"),
        "github": check_github,
        "environments": _tables(check_environment, sections.ENVIRONMENT),
    },
    "",
)
