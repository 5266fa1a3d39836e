"""Factories and wells over HTTP: what the site says of them, and how they are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from aws_lambda_powertools.event_handler import Response

from penstock import bootstrap, wire
from penstock.domain import cooldowns
from penstock.domain.cooldowns import CoolDown, Failure
from penstock.domain.units.comparison import Comparison, comparison_key
from penstock.domain.units.units import UnitKind
from penstock.domain.users.users import User
from penstock.system import System
from penstock.usecases import cooldowns as remembering
from penstock.usecases.units import quarantine
from penstock.web.entry import reply
from penstock.web.times import stamp

MAKERS = {"factories": "factory", "wells": "well"}
SHOWN = 100
"""How many ids of a sort are shown."""


def show(sort: str, find: Callable[[], wire.Entry], user: User) -> Response[Any]:
    """A factory or well: its settings, its cool-downs, its failures, and when it was compared."""
    entry, on = find(), bootstrap.aws()
    maker, now = f"{MAKERS[sort]}/{entry.name}", on.world.now()
    compared = on.store.get(comparison_key(maker), Comparison)
    failures = [_failure(row) for row in remembering.failures(on, maker)] if user.is_admin else None
    found = wire.MakerView(
        name=entry.name,
        settings=entry.settings,
        cooling=[cool_down(row, now) for row in remembering.cooldowns_of(on, maker)],
        failures=failures,
        compared=_compared(compared, now) if compared else None,
        quarantined=_quarantined(on, sort, entry.name),
    )
    return reply(found)


def _quarantined(on: System, sort: str, maker: str) -> list[wire.ApartView]:
    kind = UnitKind.WORKER if sort == "factories" else UnitKind.RESOURCE
    found = quarantine.list_of_maker(on, kind, maker)[:SHOWN]
    return [wire.ApartView(unit.id, unit.type, unit.slot, str(stamp(unit.since)), str(unit.reason)) for unit in found]


def cool_down(row: CoolDown, now: datetime) -> wire.CoolDownView:
    """A cool-down, and who probes now."""
    cause: Any = row.cause.value
    return wire.CoolDownView(
        scope=row.scope,
        cause=cause,
        why=row.why,
        since=str(stamp(row.since)),
        until=str(stamp(row.until)),
        tried=row.count,
        probe=row.probe if row.is_probed(now) else None,
        summary=cooldowns.say(row, now),
    )


def _failure(row: Failure) -> wire.FailureView:
    first, last = str(stamp(row.first)), str(stamp(row.last))
    return wire.FailureView(row.code, row.count, row.message, first, last)


def _compared(row: Comparison, now: datetime) -> wire.ComparedView:
    return wire.ComparedView(
        at=stamp(row.at),
        seconds_ago=int((now - row.at).total_seconds()) if row.at else None,
        failures=row.failures,
        why=row.why,
        strays=sorted(row.strays)[:SHOWN],
        missing=sorted(row.missing)[:SHOWN],
    )
