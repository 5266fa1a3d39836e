"""The site: its configuration, and its targets, resource types, factories and wells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from penstock.api.app import Caller, Header, Operator, Router
from penstock.api.pools import ByHandView
from penstock.api.shapes import view
from penstock.api.units import SHOWN
from penstock.domain import cooldowns
from penstock.domain.cooldowns import CoolDown, Failure
from penstock.domain.site.site import SITE_KEY, Site, SiteText, Target
from penstock.domain.site.warnings import warnings
from penstock.domain.units.comparison import Comparison, comparison_key
from penstock.domain.units.units import UnitKind
from penstock.domain.users.users import READ, SITE, User
from penstock.kernel.errors import not_found
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.ports import Option
from penstock.system import System, current_site
from penstock.usecases import cooldowns as remembering
from penstock.usecases.site import apply, preview, stops
from penstock.usecases.site.preview import Drift, Loss
from penstock.usecases.units import listing

router = Router("site")

SORTS = {"targets": "target", "resource-types": "resource type", "factories": "factory", "wells": "well"}
"""What a site is made of, as paths say it, and what one of each is called."""

CauseName = Literal["rate", "capacity", "quota", "misconfigured", "broken"]


@dataclass(frozen=True)
class SiteView:
    """The site's configuration."""

    toml: Annotated[str | None, "The configuration, as TOML; null before the first was applied."]
    applied_at: Annotated[str | None, "When it was applied, as RFC 3339."]
    applied_by: Annotated[str | None, "The operator who applied it."]
    base: Annotated[str, "What `If-Match` takes to replace exactly this one."]


@dataclass(frozen=True)
class ApplySite:
    """A configuration to check or apply."""

    toml: Annotated[str, "The configuration, as TOML."]
    path: Annotated[str, Bound(most=1024), "The file's path, as error messages name it."] = "site.toml"


@dataclass(frozen=True)
class DifferenceView:
    """A key of the configuration that differs."""

    sign: Annotated[Literal["+", "-", "~"], "+: it is added. -: it is removed. ~: it has another value."]
    path: Annotated[str, "The key, such as `limits.queue`."]
    before: Annotated[str, "The value before, shortened; empty if there is none. A secret is not shown."]
    after: Annotated[str, "The value after."]


@dataclass(frozen=True)
class LossView:
    """A pool that would have less than now, while jobs hold it or wait for it; or a factory or well with units."""

    what: Annotated[str, "The pool, such as `target/linux`; or `factory/NAME` or `well/NAME`."]
    change: Annotated[str, "What would become of it."]
    held: Annotated[int, "How many slots are held, or how much of an amount; or how many units exist."]
    waiting: Annotated[int, "How many jobs wait for it."]
    gone: Annotated[bool, "Whether it would be removed."]
    summary: Annotated[str, "All of this in a sentence."]


@dataclass(frozen=True)
class DriftView:
    """What somebody changed on the site since its configuration was applied."""

    pool: Annotated[str, "The pool."]
    change: Annotated[str, "What is different."]
    by: Annotated[str | None, "Who did it; null if no entry of the audit log says it."]
    at: Annotated[str | None, "When, as RFC 3339."]
    reset: Annotated[bool, "Whether applying a configuration takes it back."]


@dataclass(frozen=True)
class SiteChanges:
    """What applying a configuration changed, or would change. All but the first two only if it was only checked."""

    changes: Annotated[list[str], "The changes, a sentence each."]
    warnings: Annotated[list[str], "What it allows and you may not mean, a sentence each."]
    differences: Annotated[list[DifferenceView], "The keys that differ."]
    losses: Annotated[list[LossView], "What jobs hold or wait for, and would lose."]
    drift: Annotated[list[DriftView], "What was changed by hand since the configuration in force was applied."]
    base: Annotated[str | None, "What `If-Match` takes to replace the configuration that this was compared with."]
    applied_at: Annotated[str | None, "When that one was applied, as RFC 3339."]
    applied_by: Annotated[str | None, "The operator who applied it."]


@dataclass(frozen=True)
class Entry:
    """A target, resource type, factory or well."""

    name: Annotated[str, "Its name."]
    settings: Annotated[dict[str, Any], "Its settings, by name. What drivers are configured with is for operators."]


@dataclass(frozen=True)
class EntryPage:
    """All targets, resource types, factories or wells."""

    items: Annotated[list[Entry], "The entries, by name."]
    next: Annotated[str | None, "Always null: all entries fit into one page."]


@dataclass(frozen=True)
class OptionView:
    """An option that a job may pass to a resource."""

    name: Annotated[str, "Its name."]
    kind: Annotated[str, "What its values are: string, number, whole number, true or false, list, or table."]
    meaning: Annotated[str, "What it does."]
    default: Annotated[Any, "Its value if a job does not pass it."]
    allowed: Annotated[list[Any], "The values that it may have; any of its kind if there are none here."]


@dataclass(frozen=True)
class ResourceTypeView:
    """A resource type."""

    name: Annotated[str, "Its name."]
    settings: Annotated[dict[str, Any], "Its settings, by name. What drivers are configured with is for operators."]
    options: Annotated[list[OptionView] | None, "The options that jobs may pass; null if its well does not list them."]


@dataclass(frozen=True)
class CoolDownView:
    """A time for which a factory or well is not asked, but by one probe."""

    scope: Annotated[str, "What it is not asked for; empty for everything."]
    cause: Annotated[CauseName, "Why: a rate limit, no capacity, a quota, wrong settings, or an outage."]
    why: Annotated[str, "What the driver said."]
    since: Annotated[str, "Since when, as RFC 3339."]
    until: Annotated[str, "Until when, as RFC 3339."]
    tried: Annotated[int, "How many times in a row it failed."]
    probe: Annotated[str | None, "The id of the unit that probes now; null if none does."]
    summary: Annotated[str, "All of this in a sentence."]


@dataclass(frozen=True)
class FailureView:
    """Failures of a driver with the same code."""

    code: Annotated[str, "The code."]
    count: Annotated[int, "How many there were."]
    message: Annotated[str, "What the driver said with the last."]
    first: Annotated[str, "When the first was, as RFC 3339."]
    last: Annotated[str, "When the last was, as RFC 3339."]


@dataclass(frozen=True)
class ComparedView:
    """The last comparison of what exists outside with what the service knows."""

    at: Annotated[str | None, "When it was, as RFC 3339; null if there was none yet."]
    seconds_ago: Annotated[int | None, "How many seconds ago it was."]
    failures: Annotated[int, "How many times since then the driver could not list what exists."]
    why: Annotated[str | None, "Why it could not the last time."]
    strays: Annotated[list[str], "Ids of units that exist outside, and that the service does not know; at most 100."]
    missing: Annotated[list[str], "Ids of units that existed outside, and do not any more; at most 100."]


@dataclass(frozen=True)
class ApartView:
    """A unit in quarantine."""

    unit: Annotated[str, "Its id."]
    type: Annotated[str, "Its target or resource type."]
    slot: Annotated[str, "Its slot."]
    since: Annotated[str, "Since when, as RFC 3339."]
    reason: Annotated[str, "Why."]


@dataclass(frozen=True)
class MakerView:
    """A factory or a well."""

    name: Annotated[str, "Its name."]
    settings: Annotated[dict[str, Any], "Its settings, by name. What drivers are configured with is for operators."]
    cooling: Annotated[list[CoolDownView], "Its cool-downs."]
    failures: Annotated[list[FailureView] | None, "Its driver's failures; null unless you are an operator."]
    compared: Annotated[ComparedView | None, "The last comparison with what exists outside; null if there was none."]
    quarantined: Annotated[list[ApartView], "Its units in quarantine; at most 100."]
    stop: Annotated[ByHandView | None, "Who disabled or drained it, and why; null if nobody did."]


@router.get("/v1/config", "Show the site's configuration", READ)
def get_site(on: System, user: Operator) -> SiteView:
    row: SiteText | None = on.store.get(SITE_KEY, SiteText)
    return view(SiteView, row, base=apply.tag(row)) if row else SiteView(None, None, None, apply.tag(row))


@router.put("/v1/config", "Apply a configuration to the site, or with check=true only say what that would do", SITE)
def apply_site(
    on: System,
    user: Operator,
    ask: ApplySite,
    *,
    check: Annotated[bool, "Whether to only check it, and change nothing."] = False,
    base: Annotated[
        str | None,
        Header("If-Match"),
        Bound(least=1, most=100),
        "Only apply it if the configuration in force is this one: `base` of a check. Otherwise the reply is 412.",
    ] = None,
) -> SiteChanges:
    if check:
        return _preview(on, ask)
    changes = apply.apply(on, user.name, ask.toml, ask.path, (base or "").strip('"'))
    return SiteChanges(changes, list(warnings(apply.check(on, ask.toml, ask.path))), [], [], [], None, None, None)


def _preview(on: System, ask: ApplySite) -> SiteChanges:
    """What applying a configuration would do."""
    found = preview.preview(on, ask.toml, ask.path)
    return view(
        SiteChanges,
        found,
        changes=[str(each) for each in found.differences],
        warnings=list(warnings(found.site)),
        losses=[_loss(each) for each in found.losses],
        drift=[show_drift(each) for each in found.drift],
        applied_at=found.was and found.was.applied_at,
        applied_by=found.was and found.was.applied_by,
    )


def _loss(row: Loss) -> LossView:
    return view(LossView, row, summary=str(row))


def show_drift(row: Drift) -> DriftView:
    """What somebody changed by hand."""
    return view(DriftView, row, by=row.by or None)


@router.get("/v1/targets", "List the targets", READ)
def list_targets(on: System, user: Caller) -> EntryPage:
    return _listed(on, user, "targets")


@router.get("/v1/resource-types", "List the resource types", READ)
def list_resource_types(on: System, user: Caller) -> EntryPage:
    return _listed(on, user, "resource-types")


@router.get("/v1/factories", "List the factories", READ)
def list_factories(on: System, user: Caller) -> EntryPage:
    return _listed(on, user, "factories")


@router.get("/v1/wells", "List the wells", READ)
def list_wells(on: System, user: Caller) -> EntryPage:
    return _listed(on, user, "wells")


@router.get("/v1/targets/{name}", "Show a target", READ)
def get_target(on: System, user: Caller, name: str) -> Entry:
    return _entry(on, user, "targets", name)


@router.get("/v1/resource-types/{name}", "Show a resource type, and the options that jobs may pass", READ)
def get_resource_type(on: System, user: Caller, name: str) -> ResourceTypeView:
    entry = _entry(on, user, "resource-types", name)
    site = current_site(on)
    kind = site.resources[entry.name]
    well = site.wells[kind.well]
    known = on.drivers.options(well.driver, well.settings, kind.settings)
    return view(ResourceTypeView, entry, options=None if known is None else [show_option(one) for one in known])


@router.get("/v1/factories/{name}", "Show a factory, and how it is", READ)
def get_factory(on: System, user: Caller, name: str) -> MakerView:
    return _maker(on, user, UnitKind.WORKER, "factory", _entry(on, user, "factories", name))


@router.get("/v1/wells/{name}", "Show a well, and how it is", READ)
def get_well(on: System, user: Caller, name: str) -> MakerView:
    return _maker(on, user, UnitKind.RESOURCE, "well", _entry(on, user, "wells", name))


def _listed(on: System, user: User, sort: str) -> EntryPage:
    return EntryPage(entries(current_site(on), sort, whole=user.is_admin), None)


def _entry(on: System, user: User, sort: str, name: str) -> Entry:
    for entry in entries(current_site(on), sort, whole=user.is_admin):
        if entry.name == name:
            return entry
    raise not_found(SORTS[sort], name[:64])


def entries(site: Site, sort: str, *, whole: bool) -> list[Entry]:
    """The targets, resource types, factories or wells of a site.

    Only `whole`, for operators, with what drivers are configured with: a resource's is for its job alone. [SEC-1]
    """
    table: Mapping[str, Any] = getattr(site, "resources" if sort == "resource-types" else sort)
    left_out = {"name"} if whole else {"name", "settings"}
    return [
        Entry(name, {key: value for key, value in _told(entry, whole=whole).items() if key not in left_out})
        for name, entry in sorted(table.items())
    ]


def _told(entry: Any, *, whole: bool) -> dict[str, Any]:
    """The keys of a site's table. Of its things everybody sees the labels, by which jobs choose. [SEC-1]"""
    told = asdict(entry)
    if isinstance(entry, Target) and entry.machine:
        told["machine"] = entry.machine.said
    if told.get("things") and not whole:
        told["things"] = {name: {"labels": thing["labels"]} for name, thing in told["things"].items()}
    return told


def show_option(known: Option) -> OptionView:
    """An option of a resource type."""
    return view(OptionView, known)


def _maker(on: System, user: User, kind: UnitKind, sort: str, entry: Entry) -> MakerView:
    """A factory or well: its settings, its cool-downs, its failures, and when it was compared."""
    maker, now = f"{sort}/{entry.name}", on.world.now()
    compared = on.store.get(comparison_key(maker), Comparison)
    apart = listing.quarantined(on, kind, entry.name)[:SHOWN]
    return view(
        MakerView,
        entry,
        cooling=[show_cool_down(row, now) for row in remembering.cooldowns_of(on, maker)],
        failures=[show_driver_failure(row) for row in remembering.failures(on, maker)] if user.is_admin else None,
        compared=show_compared(compared, now) if compared else None,
        quarantined=[view(ApartView, unit, unit.lease, unit=unit.id, reason=str(unit.step.reason)) for unit in apart],
        stop=stop.wish if (stop := stops.find(on, maker)) else None,
    )


def show_driver_failure(row: Failure) -> FailureView:
    """A driver's failures with one code."""
    return view(FailureView, row)


def show_cool_down(row: CoolDown, now: datetime) -> CoolDownView:
    """A cool-down, and who probes now."""
    probe = row.probe if row.is_probed(now) else None
    return view(CoolDownView, row, tried=row.count, probe=probe, summary=cooldowns.describe(row, now))


def show_compared(row: Comparison, now: datetime) -> ComparedView:
    """The last comparison of what exists outside with what the service knows."""
    return view(
        ComparedView,
        row,
        seconds_ago=int((now - row.at).total_seconds()) if row.at else None,
        strays=sorted(row.strays)[:SHOWN],
        missing=sorted(row.missing)[:SHOWN],
    )
