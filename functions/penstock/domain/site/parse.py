"""From the text of a site to a Site, or to all faults in the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.domain.site.families import check_families
from penstock.domain.site.keys import check_site
from penstock.domain.site.site import MAX_REDIRECTS, ResourceType, Site, Target
from penstock.domain.units import hosts
from penstock.kernel.errors import Fault
from penstock.toml import document as toml_document
from penstock.toml.checks import Place, clip, did_you_mean

MAX_FAULTS = 100
"""How many faults are told at once."""


def parse(text: str, path: str) -> Site | tuple[Fault, ...]:
    """The site that a TOML text describes, or its faults in the order of its lines; `path` is only for messages."""
    document = toml_document.read(text, path)
    if isinstance(document, Fault):
        return (document,)
    top = Place()
    site = check_site(document.content, top)
    _check_makers(site, top)
    _check_redirects(site.targets, top / "targets")
    check_families(site.targets, top / "targets")
    _check_hosts(site.targets, top / "targets")
    _check_uses(site, top)
    _check_prices(site, top)
    faults = sorted(map(document.fault, top.faults), key=lambda fault: (fault.line, fault.column))
    return tuple(faults[:MAX_FAULTS]) or site


def _check_makers(site: Site, top: Place) -> None:
    """Targets name factories that there are, and resource types wells."""
    for target in site.targets.values():
        here = top / "targets" / target.name / "factory"
        _check_name("factory", target.factory, site.factories, here, "[factories.NAME]")
    for kind in site.resources.values():
        here = top / "resources" / kind.name
        _check_name("well", kind.well, site.wells, here / "well", "[wells.NAME]")
        runs_on = kind.canary.target if kind.canary else None
        _check_name("target", runs_on, site.targets, here / "canary" / "target", "[targets.NAME]")


def _check_redirects(targets: Mapping[str, Target], place: Place) -> None:
    """Redirects lead to a target that is none, and not over too many others. A circle is told once."""
    told: set[str] = set()
    for target in targets.values():
        here = place / target.name / "redirect"
        _check_name("target", target.redirect, targets, here, "[targets.NAME]")
        path = _path(targets, target)
        if path[0] in path[1:] and not told.intersection(path):
            here.fault(f"the redirects go in a circle: {' -> '.join(path)}", "let one of them have a `factory`")
            told.update(path)
        elif len(path) > MAX_REDIRECTS + 1:
            here.fault(f"more than {MAX_REDIRECTS} redirects follow one another", "redirect to the last target itself")


def _check_hosts(targets: Mapping[str, Target], place: Place) -> None:
    """A host's name is also a privilege's, and serves one target: two pools could lease it twice. [SLOT-1]"""
    seen: dict[str, str] = {}
    for target in targets.values():
        for at, name in enumerate(target.names or ()):
            here = place / target.name / "names" / at
            if name and not hosts.is_name(name):
                here.fault(f"`{clip(name)}` cannot be the name of a host", hosts.NAME_HINT)
            if seen.setdefault(name, target.name) != target.name:
                hint = "a host serves one target: two could lease it at once"
                here.fault(f"`{clip(name)}` serves [targets.{seen[name]}] already", hint)


def _check_prices(site: Site, top: Place) -> None:
    """Prices and budgets are of a currency, which the site names."""
    priced: list[tuple[str, Target | ResourceType]] = [
        *(("targets", target) for target in site.targets.values() if target.price is not None),
        *(("resources", kind) for kind in site.resources.values() if kind.price is not None),
    ]
    for table, each in priced if site.prices is None else ():
        here = top / table / each.name / "price"
        here.fault("a price needs the site's currency", 'add a table [prices] with currency = "USD"', on_key=True)
    if site.budgets and site.prices is None:
        hint = 'add a table [prices] with currency = "USD"'
        (top / "budgets").fault("budgets need the site's currency", hint, on_key=True)


def _check_uses(site: Site, top: Place) -> None:
    """What is used is there. A target uses quotas only, and none that a resource type uses: the worker comes last."""
    known = {**site.resources, **site.quotas}
    drawn = {name for kind in site.resources.values() for name in kind.uses}
    for kind in site.resources.values():
        for name in kind.uses:
            here = top / "resources" / kind.name / "uses" / name
            if name == kind.name:
                here.fault("a type has its own slot anyway", "take it out", on_key=True)
            _check_used(name, known, here)
    for target in site.targets.values():
        for name in target.uses:
            here = top / "targets" / target.name / "uses" / name
            _check_used(name, site.quotas, here)
            if name in drawn:
                here.fault(
                    f"`{clip(name)}` is used by a resource type too, which is acquired before any worker",
                    "split it into two quotas",
                    on_key=True,
                )


def _check_used(name: str, known: Mapping[str, Any], place: Place) -> None:
    if name not in known:
        hint = did_you_mean(name, known) if known else "add a table [quotas.NAME]"
        place.fault(f"there is nothing `{clip(name)}` to use", clip(hint, 200), on_key=True)


def _path(targets: Mapping[str, Target], start: Target) -> list[str]:
    """The names that redirects lead over, up to the end, the first that comes again, or one too many."""
    path = [start.name]
    step = targets.get(start.redirect or "")
    while step and len(set(path)) == len(path) <= MAX_REDIRECTS + 1:
        path.append(step.name)
        step = targets.get(step.redirect or "")
    return path


def _check_name(what: str, name: str | None, known: Mapping[str, Any], place: Place, table: str) -> None:
    """A name leads somewhere. What is empty or missing was told before."""
    if name and name not in known:
        hint = did_you_mean(name, known) if known else f"add a table {table}"
        place.fault(f"there is no {what} `{clip(name)}`", clip(hint, 200))
