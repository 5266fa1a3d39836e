"""The targets that stand for several others: how a site's file says them.

    [targets.linux]
    machines = ["linux-small", "linux-large", "linux-arm"]
    price_band = 1.5

Each member has workers of its own, and says what its machines have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.domain.site.site import Target
from penstock.toml.checks import Place, clip, did_you_mean, listed, text, wanted

MAX_MEMBERS = 20
"""How many targets a family may stand for: a job that names it has some of them read."""

MOST_BAND = 100

OWN = ("machines", "privilege", "price_band")
"""The keys that a family may have."""


def family(name: str, found: Mapping[str, Any], place: Place) -> Target:
    """A target with `machines`, of which no other key says anything of workers."""
    for key in sorted(found.keys() - set(OWN)):
        (place / key).fault(f"a family has no `{key}` of its own", f"take `{key}` out", on_key=True)
    return Target(
        name, privilege=found.get("privilege"), machines=found["machines"], price_band=found.get("price_band")
    )


def check_members(value: object, place: Place) -> tuple[str, ...]:
    """The names of a family's members."""
    before = len(place.faults)
    found: tuple[str, ...] = _names(value, place)
    if not found and len(place.faults) == before:
        place.fault(f"{place.label} names no target", 'like machines = ["linux-small", "linux-large"]')
    for at, name in enumerate(found):
        if name and name in found[:at]:
            (place / at).fault(f"`{clip(name)}` is listed twice")
    return found


def check_band(value: object, place: Place) -> float:
    """How many times as much as the cheapest a target may cost."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        wanted("a number", value, place, "like price_band = 1.5")
        return 1.0
    if not 1 <= value <= MOST_BAND:
        place.fault(f"{place.label} must be from 1 to {MOST_BAND}", "1 is for the cheapest only")
    return float(value)


def check_families(targets: Mapping[str, Target], place: Place) -> None:
    """The members of each family are there, have workers, and say what they have and cost."""
    for target in targets.values():
        here = place / target.name / "machines"
        for at, name in enumerate(target.machines):
            if name:
                _check_member(name, targets, here / at)
        members = [targets[name] for name in target.machines if name in targets]
        if len({member.price is None for member in members}) > 1:
            unpriced = ", ".join(member.name for member in members if member.price is None)
            here.fault(f"some of its targets have a price, and these have none: {unpriced}", "give each a `price`")


def _check_member(name: str, targets: Mapping[str, Target], place: Place) -> None:
    member = targets.get(name)
    if member is None:
        place.fault(f"there is no target `{clip(name)}`", clip(did_you_mean(name, targets), 200))
    elif not member.has_workers:
        what = "a family" if member.machines else "an alias"
        place.fault(f"`{clip(name)}` is {what}, and has no workers of its own", "name targets with a `factory`")
    elif member.machine is None:
        hint = 'like machine = { cpus = 4, memory = "16GiB" }'
        place.fault(f"[targets.{clip(name)}] does not say what its machines have", hint)


_names = listed(text, MAX_MEMBERS, "targets")
