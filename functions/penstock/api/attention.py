"""What needs a person, in one reply: each list with how many there are, and at most the first hundred of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from penstock.api import github, pools, privileges, probes, site, stops, units
from penstock.api.account import DiffSummary, show_summary
from penstock.api.app import Operator, Router
from penstock.api.github import DeliveryView
from penstock.api.privileges import PrivilegeRequestView
from penstock.api.probes import CanaryView
from penstock.api.shapes import view
from penstock.api.site import ComparedView, CoolDownView, DriftView, FailureView
from penstock.api.stops import StopView
from penstock.api.units import Names, NeedyUnit
from penstock.domain.cooldowns import CoolDown, Failure
from penstock.domain.pools.pools import Pool
from penstock.domain.pools.stops import ByHand
from penstock.domain.probes.canaries import is_failing
from penstock.domain.units.comparison import Comparison
from penstock.domain.units.units import Unit
from penstock.domain.users.users import READ
from penstock.kernel.frozen import dataclass
from penstock.system import System
from penstock.usecases import account, attention
from penstock.usecases.attention import MISTAKES, Makers
from penstock.usecases.site.preview import Drift
from penstock.usecases.users import requests

router = Router("workers and resources")

MOST = 100
"""How many entries each list has at most."""

Count = Annotated[int, "How many there are."]
MakerName = Annotated[str, "The factory or well, such as `factory/aws`."]


@dataclass(frozen=True)
class NeedyUnits:
    """Workers and resources that need somebody."""

    count: Count
    items: Annotated[list[NeedyUnit], "The first 100, the most urgent before the others."]


@dataclass(frozen=True)
class ComparedMaker:
    """A factory or well, and its last comparison with what exists outside."""

    maker: MakerName
    compared: Annotated[ComparedView | None, "The comparison, without `seconds_ago`; null if there was none yet."]


@dataclass(frozen=True)
class ComparedMakers:
    """What exists outside and the service does not know, and the other way round."""

    count: Annotated[int, "How many factories and wells there are."]
    strays: Annotated[int, "How many units exist outside that the service does not know."]
    missing: Annotated[int, "How many units existed outside and do not any more."]
    unlisted: Annotated[int, "How many factories and wells could not be listed the last time."]
    items: Annotated[list[ComparedMaker], "The first 100, those with something wrong before the others."]


@dataclass(frozen=True)
class MakerCoolDown(CoolDownView):
    """A cool-down, and whose it is."""

    maker: MakerName


@dataclass(frozen=True)
class MakerCoolDowns:
    """Cool-downs of all factories and wells."""

    count: Count
    items: Annotated[list[MakerCoolDown], "The first 100."]


@dataclass(frozen=True)
class MakerFailure(FailureView):
    """Failures of a driver, and of which factory or well."""

    maker: MakerName


@dataclass(frozen=True)
class MakerFailures:
    """What drivers reported within a week."""

    count: Annotated[int, "How many codes there are, over all factories and wells."]
    items: Annotated[list[MakerFailure], "The first 100, the newest first."]


@dataclass(frozen=True)
class Canaries:
    """The canaries."""

    count: Annotated[int, "How many fail."]
    of: Annotated[int, "How many there are."]
    items: Annotated[list[CanaryView], "The first 100, those that fail first."]


@dataclass(frozen=True)
class PausedPool:
    """A pool that an operator has paused."""

    pool: Annotated[str, "Its name, such as `target/linux`."]
    limit: Annotated[int, "How many slots it has, or how much of an amount."]
    held: Annotated[int, "How many are held."]
    waiting: Annotated[int, "How many jobs wait for it."]
    by: Annotated[str | None, "Who paused it; null if that is not known."]
    at: Annotated[str | None, "When, as RFC 3339; null likewise."]
    reason: Annotated[str, "Why, for others to read; empty if no reason was given."] = ""


@dataclass(frozen=True)
class PausedPools:
    """The pools that operators have paused."""

    count: Count
    items: Annotated[list[PausedPool], "The first 100, by name."]


@dataclass(frozen=True)
class Requests:
    """Requests for privileges that wait for an operator."""

    count: Count
    items: Annotated[list[PrivilegeRequestView], "The first 100, the oldest before the others."]


@dataclass(frozen=True)
class Stops:
    """What operators have stopped: the whole site, factories, wells."""

    count: Count
    items: Annotated[list[StopView], "The stops, by scope."]


@dataclass(frozen=True)
class Drifts:
    """What was changed by hand since the configuration in force was applied."""

    count: Count
    items: Annotated[list[DriftView], "The first 100."]


@dataclass(frozen=True)
class NeedyDeliveries:
    """Deliveries that GitHub had to be asked for again, or that led to nothing yet."""

    count: Annotated[int, "How many there are of the newest `of`."]
    of: Annotated[int, "How many deliveries were looked at: the newest 100."]
    items: Annotated[list[DeliveryView], "All of them, newest first."]


@dataclass(frozen=True)
class AttentionView:
    """What needs a person at the moment. Nothing in it changes while nothing happens."""

    quarantined: Annotated[NeedyUnits, "Units in quarantine, the oldest first."]
    held: Annotated[NeedyUnits, "Units that operators hold, by the end of the hold."]
    not_put_back: Annotated[NeedyUnits, "Units that have waited to be destroyed for an hour or longer, oldest first."]
    compared: Annotated[ComparedMakers, "Comparisons with what exists outside."]
    misconfigured: Annotated[MakerCoolDowns, "Cool-downs for wrong settings or broken workers."]
    short: Annotated[MakerCoolDowns, "Cool-downs because there is no capacity, or no more is allowed."]
    failures: Annotated[MakerFailures, "What drivers reported."]
    account: Annotated[DiffSummary | None, "The last account diff: what was left behind. Null if there was none yet."]
    canaries: Annotated[Canaries, "The canaries."]
    stops: Annotated[Stops, "What is stopped as a whole: the site, factories, wells."]
    requests: Annotated[Requests, "The requests for privileges that wait."]
    paused: Annotated[PausedPools, "Pools that are paused by themselves."]
    drift: Annotated[Drifts, "What was changed by hand."]
    deliveries: Annotated[NeedyDeliveries, "Deliveries of GitHub."]


@router.get("/v1/attention", "Show what needs a person", READ)
def get_attention(on: System, user: Operator) -> AttentionView:
    now = on.world.now()
    found, makers = attention.find_units(on), attention.find_makers(on)
    firsts = [each[:MOST] for each in (found.quarantined, found.held, found.not_put_back)]
    names = units.names(on, [unit for each in firsts for unit in each])
    paused, drift = attention.find_pools(on)
    stopped = stops.show_stops(on)
    asked = requests.list_requests(on, user, everybody=True)
    mistakes = [row for row in makers.cooling if row.cause in MISTAKES]
    return AttentionView(
        quarantined=_units(on, found.quarantined, names),
        held=_units(on, found.held, names),
        not_put_back=_units(on, found.not_put_back, names),
        compared=_compared(makers, now),
        misconfigured=_cooling(mistakes, now),
        short=_cooling([row for row in makers.cooling if row.cause not in MISTAKES], now),
        failures=_failures(makers.failures),
        account=_account(on),
        canaries=_canaries(on),
        stops=Stops(len(stopped), stopped),
        requests=Requests(len(asked), [privileges.show(row) for row in asked[:MOST]]),
        paused=PausedPools(len(paused), [_paused(on, pool, drift) for pool in paused[:MOST]]),
        drift=Drifts(len(drift), [site.show_drift(row) for row in drift[:MOST]]),
        deliveries=_deliveries(on),
    )


def _units(on: System, found: Sequence[Unit], names: Names) -> NeedyUnits:
    return NeedyUnits(len(found), [units.show_needy(on, unit, names) for unit in found[:MOST]])


def _compared(makers: Makers, now: datetime) -> ComparedMakers:
    rows = [row for _, row in makers.compared if row]
    return ComparedMakers(
        count=len(makers.compared),
        strays=sum(len(row.strays) + row.more_strays for row in rows),
        missing=sum(len(row.missing) + row.more_missing for row in rows),
        unlisted=sum(row.failures > 0 for row in rows),
        items=[ComparedMaker(name, _without_age(row, now)) for name, row in makers.compared[:MOST]],
    )


def _without_age(row: Comparison | None, now: datetime) -> ComparedView | None:
    """A comparison, without what would be another with each reply."""
    return view(ComparedView, site.show_compared(row, now), seconds_ago=None) if row else None


def _cooling(rows: Sequence[CoolDown], now: datetime) -> MakerCoolDowns:
    shown = [view(MakerCoolDown, site.show_cool_down(row, now), maker=row.maker) for row in rows[:MOST]]
    return MakerCoolDowns(len(rows), shown)


def _failures(rows: Sequence[Failure]) -> MakerFailures:
    return MakerFailures(len(rows), [view(MakerFailure, row) for row in rows[:MOST]])


def _account(on: System) -> DiffSummary | None:
    row = account.last(on)
    return show_summary(row) if row else None


def _canaries(on: System) -> Canaries:
    rows = sorted(attention.find_canaries(on), key=lambda row: not is_failing(row))
    return Canaries(sum(map(is_failing, rows)), len(rows), [probes.show_canary(row) for row in rows[:MOST]])


def _paused(on: System, pool: Pool, drift: Sequence[Drift]) -> PausedPool:
    """A paused pool, and who paused it as far as it is known."""
    said: Drift | ByHand | None = pool.pause or next((row for row in drift if _is_pause(row, pool)), None)
    reason = pool.pause.reason if pool.pause else ""
    return view(
        PausedPool, pools.show_listed(on, pool), by=(said and said.by) or None, at=said and said.at, reason=reason
    )


def _is_pause(row: Drift, pool: Pool) -> bool:
    """Whether a change by hand is that a pool was paused."""
    return row.pool == pool.name and row.change == "paused"


def _deliveries(on: System) -> NeedyDeliveries:
    rows, of = attention.find_deliveries(on)
    return NeedyDeliveries(len(rows), of, [github.show_delivery(row) for row in rows])
