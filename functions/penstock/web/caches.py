"""Caches over HTTP: parse, call, reply."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from penstock import bootstrap, wire
from penstock.domain.caches import CacheEntry
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.usecases import caches
from penstock.usecases.site import configuration
from penstock.usecases.users import users
from penstock.web.entry import page_after, reply, whole_number
from penstock.web.times import present

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]


def caller() -> User:
    """Whose request this is."""
    return users.authenticate(bootstrap.aws(), router.current_event.headers.get("authorization"))


@router.get("/v1/caches")
def list_caches() -> Response[Any]:
    on, user, query = bootstrap.aws(), caller(), router.current_event.query_string_parameters or {}
    owner = query.get("owner", "") or user.name
    limit = whole_number(router, "limit", 50, 1, limits.PAGE)
    found, after = caches.list_caches(on, user, owner, limit, page_after(router))
    quota = configuration.current(on).limits.cache_bytes
    return reply(wire.CachePage([_view(one) for one in found], caches.usage(on, owner).size, quota, after))


@router.get("/v1/caches/<cache>")
def get_cache(cache: str) -> Response[Any]:
    return reply(_view(caches.find_entry(bootstrap.aws(), caller(), cache)))


@router.delete("/v1/caches/<cache>")
def delete_cache(cache: str) -> Response[Any]:
    return reply(_view(caches.delete(bootstrap.aws(), caller(), cache)))


def _view(row: CacheEntry) -> wire.CacheView:
    return wire.CacheView(
        id=row.id,
        owner=row.shelf.owner,
        name=row.shelf.name,
        key=row.words,
        scope=row.scope,
        target=row.shelf.target,
        paths=row.about,
        size=row.size,
        sha256=row.sha256,
        job=row.job,
        time=present(row.made),
        used=present(row.used),
        until=present(row.until),
    )
