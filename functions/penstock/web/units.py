"""What operators do with workers and resources, over HTTP: parse, call, reply."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from penstock import bootstrap, wire
from penstock.domain.units.units import Unit, UnitKind
from penstock.domain.users.users import User
from penstock.system import System
from penstock.usecases.units import maintenance, quarantine
from penstock.usecases.users import users
from penstock.web import unitviews
from penstock.web.entry import body, page_after, reply, whole_number

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]
PAGE = 100


def operator() -> User:
    """Whose request this is, if they may do everything."""
    user = users.authenticate(bootstrap.aws(), router.current_event.headers.get("authorization"))
    users.require_admin(user)
    return user


def _now() -> datetime:
    return bootstrap.aws().world.now()


def _units(listing: str) -> tuple[list[Unit], str | None]:
    operator()
    found = bootstrap.aws().store.listed(listing, Unit, limit=PAGE, after=page_after(router))
    return found, (found[-1].id if len(found) == PAGE else None)


def _unit(unit: str, is_a: UnitKind) -> Unit:
    operator()
    return maintenance.find(bootstrap.aws(), is_a, unit)


@router.get("/v1/workers")
def list_workers() -> Response[Any]:
    found, page = _units("workers")
    return reply(wire.WorkerPage([unitviews.worker(unit, _now()) for unit in found], page))


@router.get("/v1/workers/<worker>")
def get_worker(worker: str) -> Response[Any]:
    return reply(unitviews.worker(_unit(worker, UnitKind.WORKER), _now()))


@router.get("/v1/resources")
def list_resources() -> Response[Any]:
    found, page = _units("resources")
    return reply(wire.ResourcePage([unitviews.resource(unit, _now()) for unit in found], page))


@router.get("/v1/resources/<resource>")
def get_resource(resource: str) -> Response[Any]:
    return reply(unitviews.resource(_unit(resource, UnitKind.RESOURCE), _now()))


def _view(unit: Unit) -> wire.WorkerView | wire.ResourceView:
    return unitviews.worker(unit, _now()) if unit.is_a is UnitKind.WORKER else unitviews.resource(unit, _now())


def _events(is_a: UnitKind, unit: str) -> Response[Any]:
    found = _unit(unit, is_a)
    after = whole_number(router, "after", 0, 0, 10**11)
    return reply(unitviews.unit_events(found, after, whole_number(router, "limit", 500, 1, 1000)))


def _hold(is_a: UnitKind, unit: str) -> Response[Any]:
    user, ask = operator(), body(router, wire.HoldUnit)
    return reply(_view(maintenance.hold(bootstrap.aws(), user, is_a, unit, ask.reason, ask.for_)))


def _release(is_a: UnitKind, unit: str) -> Response[Any]:
    user = operator()
    ask = body(router, wire.ReleaseUnit) if router.current_event.body else wire.ReleaseUnit()
    if ask.proof:
        return reply(_view(quarantine.confirm_removed(bootstrap.aws(), user, is_a, unit, ask.proof)))
    return reply(_view(maintenance.release(bootstrap.aws(), user, is_a, unit)))


def _remove(is_a: UnitKind, unit: str, how: Callable[[System, User, UnitKind, str, str], Unit]) -> Response[Any]:
    user = operator()
    ask = body(router, wire.RemoveUnit) if router.current_event.body else wire.RemoveUnit()
    return reply(_view(how(bootstrap.aws(), user, is_a, unit, ask.reason)))


def _add_custody(is_a: UnitKind) -> None:
    path = f"/v1/{is_a}s/<{is_a}>"
    router.get(f"{path}/events")(lambda **unit: _events(is_a, unit[is_a]))
    router.post(f"{path}/hold")(lambda **unit: _hold(is_a, unit[is_a]))
    router.post(f"{path}/release")(lambda **unit: _release(is_a, unit[is_a]))
    router.post(f"{path}/drain")(lambda **unit: _remove(is_a, unit[is_a], maintenance.drain))
    router.post(f"{path}/recycle")(lambda **unit: _remove(is_a, unit[is_a], maintenance.recycle))


for _is_a in UnitKind:
    _add_custody(_is_a)
