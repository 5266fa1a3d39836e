"""What operators do with the site, over HTTP: parse, call, reply."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from penstock import bootstrap, wire
from penstock.domain.pools.pools import Claim, Pool, Slot, SlotState, collection
from penstock.domain.site.site import SITE_KEY, SiteText
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import not_found
from penstock.usecases.pools import forecast
from penstock.usecases.site import apply, configuration
from penstock.usecases.users import audit, privileges, users
from penstock.usecases.workers import presence
from penstock.web import makers, views
from penstock.web.entry import body, is_on, moment, page_after, reply, whole_number
from penstock.web.operations import SORTS
from penstock.web.times import stamp

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]
PAGE = 100


def caller() -> User:
    """Whose request this is."""
    return users.authenticate(bootstrap.aws(), router.current_event.headers.get("authorization"))


def operator() -> User:
    """Whose request this is, if they may do everything."""
    user = caller()
    users.require_admin(user)
    return user


def _pool(pool: Pool, *, whole: bool) -> wire.PoolView:
    store, pk = bootstrap.aws().store, collection(pool.name)
    shown = (SlotState.FREE, SlotState.HELD, SlotState.IDLE, *((SlotState.AWAY,) if pool.hosts else ()))
    slots = [slot for state in shown for slot in store.find(pk, f"{state}#", Slot)]
    apart = forecast.quarantined_of(bootstrap.aws(), slots, makers.SHOWN) if whole else []
    known = presence.hosts_of(bootstrap.aws(), pool) if whole else {}
    return views.pool(pool, slots, store.find(pk, "wait#", Claim), apart, known, whole=whole)


@router.get("/v1/pools")
def list_pools() -> Response[Any]:
    caller()
    found = bootstrap.aws().store.listed("pools", Pool, limit=1000)
    return reply(wire.PoolPage([_pool(pool, whole=False) for pool in found], None))


@router.get("/v1/pools/<sort>/<name>")
def get_pool(sort: str, name: str) -> Response[Any]:
    caller()
    return reply(_pool(apply.find(bootstrap.aws(), f"{sort}/{name}"), whole=True))


@router.put("/v1/pools/<sort>/<name>/limit")
def resize_pool(sort: str, name: str) -> Response[Any]:
    user = operator()
    limit = int(body(router, wire.PoolLimit).limit)
    return reply(_pool(apply.resize(bootstrap.aws(), f"{sort}/{name}", limit, user.name), whole=True))


@router.post("/v1/pools/<sort>/<name>/pause")
def pause_pool(sort: str, name: str) -> Response[Any]:
    return _pause(sort, name, paused=True)


@router.post("/v1/pools/<sort>/<name>/resume")
def resume_pool(sort: str, name: str) -> Response[Any]:
    return _pause(sort, name, paused=False)


def _pause(sort: str, name: str, *, paused: bool) -> Response[Any]:
    user = operator()
    return reply(_pool(apply.pause(bootstrap.aws(), f"{sort}/{name}", paused=paused, by=user.name), whole=True))


@router.get("/v1/graph")
def get_graph() -> Response[Any]:
    operator()
    return reply(views.graph(forecast.wait_graph(bootstrap.aws())))


@router.get("/v1/config")
def get_site() -> Response[Any]:
    operator()
    row = bootstrap.aws().store.get(SITE_KEY, SiteText)
    shown = wire.SiteView(row.toml, stamp(row.applied_at), row.applied_by) if row else None
    return reply(shown or wire.SiteView(None, None, None))


@router.put("/v1/config")
def apply_site() -> Response[Any]:
    user, ask = operator(), body(router, wire.ApplySite)
    if is_on(router, "check"):
        site = apply.check(bootstrap.aws(), ask.toml, ask.path)
        return reply(wire.SiteChanges(apply.differences(configuration.current(bootstrap.aws()), site)))
    return reply(wire.SiteChanges(apply.apply(bootstrap.aws(), user.name, ask.toml, ask.path)))


def _list_entries(sort: str) -> Response[Any]:
    user = caller()
    return reply(wire.EntryPage(views.entries(configuration.current(bootstrap.aws()), sort, whole=user.is_admin), None))


def _get_entry(sort: str, name: str) -> Response[Any]:
    user = caller()
    if sort in makers.MAKERS:
        return makers.show(sort, lambda: _entry(sort, name, user), user)
    found = _entry(sort, name, user)
    return reply(_resource_type(found) if sort == "resource-types" else found)


def _resource_type(entry: wire.Entry) -> wire.ResourceTypeView:
    """A resource type with what jobs may choose, by the settings that its well has here."""
    site = configuration.current(bootstrap.aws())
    kind = site.resources[entry.name]
    well = site.wells[kind.well]
    known = bootstrap.aws().drivers.options(well.driver, well.settings, kind.settings)
    return wire.ResourceTypeView(entry.name, entry.settings, None if known is None else [*map(views.option, known)])


def _entry(sort: str, name: str, user: User) -> wire.Entry:
    for entry in views.entries(configuration.current(bootstrap.aws()), sort, whole=user.is_admin):
        if entry.name == name:
            return entry
    raise not_found(SORTS[sort], name[:64])


def _add_entries(sort: str) -> None:
    router.get(f"/v1/{sort}")(lambda: _list_entries(sort))
    router.get(f"/v1/{sort}/<name>")(lambda name: _get_entry(sort, name))


for _sort in SORTS:
    _add_entries(_sort)


@router.get("/v1/whoami")
def who_am_i() -> Response[Any]:
    return reply(views.user(caller()))


@router.get("/v1/users")
def list_users() -> Response[Any]:
    operator()
    found = bootstrap.aws().store.listed("users", User, limit=PAGE, after=page_after(router))
    return reply(wire.UserPage([views.user(user) for user in found], found[-1].name if len(found) == PAGE else None))


@router.post("/v1/users")
def create_user() -> Response[Any]:
    by = operator()
    ask = body(router, wire.NewUser)
    return reply(views.user(users.create(bootstrap.aws(), ask.name, ask.privileges, by.name)), 201)


@router.put("/v1/users/<name>/privileges/<privilege>")
def grant(name: str, privilege: str) -> Response[Any]:
    by = operator()
    return reply(views.user(users.change_privilege(bootstrap.aws(), name, privilege, grant=True, by=by.name)))


@router.delete("/v1/users/<name>/privileges/<privilege>")
def revoke(name: str, privilege: str) -> Response[Any]:
    by = operator()
    user, found = privileges.revoke(bootstrap.aws(), by, name, privilege, at_once=is_on(router, "now"))
    shown = views.user(user)
    return reply(
        wire.RevokedView(shown.name, shown.privileges, shown.created, list(found.stopped), list(found.holding))
    )


@router.get("/v1/audit")
def list_audit() -> Response[Any]:
    operator()
    who = router.current_event.get_query_string_value("who", "") or ""
    limit = whole_number(router, "limit", 100, 1, limits.PAGE)
    found, page = audit.list_entries(bootstrap.aws(), who, moment(router, "since"), limit, page_after(router))
    return reply(wire.AuditPage([views.audited(entry) for entry in found], page))


@router.post("/v1/users/<name>/tokens")
def create_token(name: str) -> Response[Any]:
    user = caller()
    if user.name != name:
        users.require_admin(user)
    ask = body(router, wire.NewToken) if router.current_event.body else wire.NewToken()
    secret, token = users.issue_token(bootstrap.aws(), name, ask.expires_in, user.name)
    return reply(wire.TokenView(secret, stamp(token.expires)), 201)
