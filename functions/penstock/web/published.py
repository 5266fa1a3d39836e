"""Published files over HTTP: parse, call, reply. Whoever reads them is led to where the bytes are."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from penstock import bootstrap, wire
from penstock.domain.published import Access, Published, Series
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.usecases import published
from penstock.usecases.artifacts import outputs
from penstock.usecases.jobs import jobs
from penstock.usecases.users import users
from penstock.web.entry import body, reply, whole_number
from penstock.web.times import present, stamp

FILE = "/<owner>/<series>/<version>/<name>"

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]


def caller() -> User:
    """Whose request this is."""
    return users.authenticate(bootstrap.aws(), router.current_event.headers.get("authorization"))


def _anybody() -> User | None:
    """Whose request this is, if it says so."""
    return caller() if router.current_event.headers.get("authorization") else None


@router.post("/v1/jobs/<job>/outputs/<output>/publish")
def publish_output(job: str, output: str) -> Response[Any]:
    on, user = bootstrap.aws(), caller()
    found, ask = jobs.find(on, user, job), body(router, wire.PublishOutput)
    row, is_news = published.publish(on, user, found, output, ask.series, ask.version, ask.name)
    return reply(_view(row), 201 if is_news else 200)


@router.get("/v1/published")
def list_published() -> Response[Any]:
    user, query = caller(), router.current_event.query_string_parameters or {}
    limit = whole_number(router, "limit", 50, 1, limits.PAGE)
    of, page = query.get("owner") or user.name, query.get("page", "")
    series, version = query.get("series", ""), query.get("version", "")
    found, after = published.list_published(bootstrap.aws(), user, of, series, version, limit, page)
    return reply(wire.PublishedPage([_view(row) for row in found], after))


@router.get(f"/v1/published{FILE}")
def get_published(owner: str, series: str, version: str, name: str) -> Response[Any]:
    return reply(_view(published.find(bootstrap.aws(), caller(), owner, series, version, name)))


@router.delete(f"/v1/published{FILE}")
def unpublish(owner: str, series: str, version: str, name: str) -> Response[Any]:
    return reply(_view(published.unpublish(bootstrap.aws(), caller(), owner, series, version, name)))


@router.post(f"/v1/published{FILE}/sign")
def sign_published(owner: str, series: str, version: str, name: str) -> Response[Any]:
    on, user = bootstrap.aws(), caller()
    ask = body(router, wire.SignOutput) if router.current_event.body else wire.SignOutput()
    row = published.find(on, user, owner, series, version, name)
    return reply(wire.SignedOutput(**published.sign(on, row, ask.expires_in)))


@router.get("/v1/series/<owner>")
def list_access(owner: str) -> Response[Any]:
    found = published.show_access(bootstrap.aws(), caller(), owner)
    return reply(wire.AccessPage([_access(row) for row in found], None))


@router.put("/v1/series/<owner>")
def set_access(owner: str) -> Response[Any]:
    on, user, ask = bootstrap.aws(), caller(), body(router, wire.SetAccess)
    access = Access(ask.access) if ask.access else None
    published.set_access(on, user, owner, ask.series, access, ask.privilege)
    return list_access(owner)


@router.route(f"/v1/public/file{FILE}", method=["GET", "HEAD"])
def read_published(owner: str, series: str, version: str, name: str) -> Response[Any]:
    """The way to the bytes, for whoever may read them; what HEAD asks is answered here, for a signed URL is for GET."""
    on = bootstrap.aws()
    row = published.find(on, _anybody(), owner, series, version, name)
    given = published.sign(on, row, outputs.SIGNED_SECONDS_MOST)
    etag = f'"{row.sha256}"'
    headers = {"etag": etag, "cache-control": "no-cache", "content-disposition": f'attachment; filename="{row.name}"'}
    if etag in _known_already():
        return Response(304, headers=headers)
    if router.current_event.http_method == "HEAD":
        return Response(200, "application/octet-stream", "", headers | {"content-length": str(row.size)})
    return Response(302, "text/plain", "", headers | {"location": given["url"]})


def _known_already() -> list[str]:
    """The digests that whoever asks has already."""
    asked: str = router.current_event.headers.get("if-none-match") or ""
    return [each.strip().removeprefix("W/") for each in asked[: limits.ENV_BYTES].split(",")]


def _view(row: Published) -> wire.PublishedView:
    return wire.PublishedView(
        owner=row.of,
        series=row.series,
        version=row.version_name,
        name=row.name,
        size=row.size,
        sha256=row.sha256,
        url=f"/v1/public/file/{row.full}",
        path=row.path,
        job=row.job,
        by=row.by,
        time=present(row.time),
        withdrawn=stamp(row.withdrawn),
        withdrawn_by=row.withdrawn_by or None,
    )


def _access(row: Series) -> wire.AccessView:
    return wire.AccessView(row.name, row.access.value, row.privilege or None)
