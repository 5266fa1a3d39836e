"""Stops: operators have nothing new granted on the whole site, or of one factory or well, and lift that again."""

from __future__ import annotations

from typing import Annotated

from penstock.api.app import Caller, Operator, Router
from penstock.api.pools import NO_REASON, PoolReason
from penstock.api.shapes import view
from penstock.domain.pools.stops import WHOLE_SITE
from penstock.domain.units.units import HOLD_REASON_CHARS
from penstock.domain.users.users import READ, SITE
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System
from penstock.usecases.site import stops

router = Router("stops")


@dataclass(frozen=True)
class StopView:
    """A stop: nothing new is granted of all that it concerns, and what runs goes on."""

    scope: Annotated[str, "What is stopped: `site`, `factory/NAME` or `well/NAME`."]
    by: Annotated[str, "The operator."]
    since: Annotated[str, "Since when, as RFC 3339."]
    reason: Annotated[str, "Why, for others to read."]
    drains: Annotated[bool, "Whether its units are drained: idle ones go now, the others after their lease."]
    is_spread: Annotated[bool, "Whether all pools are stopped by now. On a large site that takes a while."]


@dataclass(frozen=True)
class StopPage:
    """All stops."""

    items: Annotated[list[StopView], "The stops, by scope."]
    next: Annotated[str | None, "Always null: all fit into one page."]


@dataclass(frozen=True)
class StopReason:
    """Why something is stopped."""

    reason: Annotated[str, Bound(most=HOLD_REASON_CHARS), "Why, for everybody whose job waits."]


@router.get("/v1/site/stops", "List what is stopped: the whole site, factories, wells", READ)
def list_stops(on: System, user: Caller) -> StopPage:
    return StopPage(show_stops(on), None)


def show_stops(on: System) -> list[StopView]:
    """All stops that are in force, by scope."""
    rows = [(row, row.wish) for row in stops.list_stops(on) if row.wish]
    return [view(StopView, row, by=wish.by, since=wish.at, reason=wish.reason) for row, wish in rows]


@router.post("/v1/site/pause", "Grant nothing on the whole site until it is resumed; what runs goes on", SITE)
def pause_site(on: System, user: Operator, ask: StopReason) -> StopPage:
    stops.stop(on, user.name, WHOLE_SITE, ask.reason)
    return list_stops(on, user)


@router.post("/v1/site/resume", "Grant on the whole site again", SITE)
def resume_site(on: System, user: Operator, ask: PoolReason = NO_REASON) -> StopPage:
    stops.lift(on, user.name, WHOLE_SITE, ask.reason)
    return list_stops(on, user)


@router.post("/v1/factories/{name}/disable", "Grant nothing of a factory's targets; what runs goes on", SITE)
def disable_factory(on: System, user: Operator, name: str, ask: StopReason) -> StopPage:
    stops.stop(on, user.name, f"factory/{name}", ask.reason)
    return list_stops(on, user)


@router.post("/v1/factories/{name}/drain", "Disable a factory, and destroy each worker once nobody leases it", SITE)
def drain_factory(on: System, user: Operator, name: str, ask: StopReason) -> StopPage:
    stops.stop(on, user.name, f"factory/{name}", ask.reason, drains=True)
    return list_stops(on, user)


@router.post("/v1/factories/{name}/enable", "Grant of a factory's targets again", SITE)
def enable_factory(on: System, user: Operator, name: str, ask: PoolReason = NO_REASON) -> StopPage:
    stops.lift(on, user.name, f"factory/{name}", ask.reason)
    return list_stops(on, user)


@router.post("/v1/wells/{name}/disable", "Grant nothing of a well's resource types; what is leased goes on", SITE)
def disable_well(on: System, user: Operator, name: str, ask: StopReason) -> StopPage:
    stops.stop(on, user.name, f"well/{name}", ask.reason)
    return list_stops(on, user)


@router.post("/v1/wells/{name}/drain", "Disable a well, and destroy each resource once nobody leases it", SITE)
def drain_well(on: System, user: Operator, name: str, ask: StopReason) -> StopPage:
    stops.stop(on, user.name, f"well/{name}", ask.reason, drains=True)
    return list_stops(on, user)


@router.post("/v1/wells/{name}/enable", "Grant of a well's resource types again", SITE)
def enable_well(on: System, user: Operator, name: str, ask: PoolReason = NO_REASON) -> StopPage:
    stops.lift(on, user.name, f"well/{name}", ask.reason)
    return list_stops(on, user)
