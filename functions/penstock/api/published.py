"""Published files: their names, and who may read them. Downloads are redirected to the bytes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from aws_lambda_powertools.event_handler import Response

from penstock.api.app import Also, Anybody, Caller, Header, Limit, Reply, Router
from penstock.api.files import AN_HOUR, SignOutput
from penstock.api.shapes import NextPage, digests, view
from penstock.domain.published import Access, Published, Series
from penstock.domain.replies import COMPOSITE, SignedOutput
from penstock.domain.users.users import READ, SUBMIT
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System
from penstock.usecases import published
from penstock.usecases.artifacts import outputs
from penstock.usecases.jobs import jobs

router = Router("published files")

FILE = "{owner}/{series}/{version}/{name}"
AccessName = Literal["public", "private", "privilege"]
UNCHANGED = Also(304, "the file has the digest that If-None-Match names")
IfNoneMatch = Annotated[
    str | None, Header("If-None-Match"), Bound(most=10**6), "Digests of copies that you have, as ETags."
]


@dataclass(frozen=True)
class PublishOutput:
    """The name to publish an output under."""

    series: Annotated[str, Bound(most=100), "The series."]
    version: Annotated[str, Bound(most=100), "The version in the series."]
    name: Annotated[str, Bound(most=100), "The file's name in the version."]


@dataclass(frozen=True)
class PublishedView:
    """A published file."""

    owner: Annotated[str, "The user or repository whose series it is in."]
    series: Annotated[str, "Its series."]
    version: Annotated[str, "Its version."]
    name: Annotated[str, "Its name."]
    size: Annotated[int, "Its size in bytes."]
    sha256: Annotated[str | None, "Its SHA-256 in hex, as the store verified it; null for a file in parts."]
    composite: Annotated[str | None, COMPOSITE]
    url: Annotated[str, "Where to read it, relative to the service."]
    path: Annotated[str, "Its path in the job that produced it."]
    job: Annotated[str, "The id of that job."]
    by: Annotated[str, "The user who published it."]
    time: Annotated[str, "When it was published, as RFC 3339."]
    withdrawn: Annotated[str | None, "When it was withdrawn, as RFC 3339; null while it is published."]
    withdrawn_by: Annotated[str | None, "The user who withdrew it."]


@dataclass(frozen=True)
class PublishedPage:
    """Some published files, by name."""

    items: Annotated[list[PublishedView], "The files."]
    next: NextPage


@dataclass(frozen=True)
class SetAccess:
    """Who may read a series."""

    series: Annotated[str, Bound(most=100), "The series, or `*` for all that have no rule of their own."]
    access: Annotated[
        AccessName | None,
        "`public` for anybody, `private` for those who may see the owner's jobs, `privilege` also for those with "
        "`privilege`. Without it the rule is removed.",
    ] = None
    privilege: Annotated[str, Bound(most=192), "The privilege that lets a user read the series."] = ""


@dataclass(frozen=True)
class AccessView:
    """Who may read a series."""

    series: Annotated[str, "The series, or `*` for all that have no rule of their own."]
    access: Annotated[
        AccessName,
        "`public` for anybody, `private` for those who may see the owner's jobs, `privilege` also for those with "
        "`privilege`.",
    ]
    privilege: Annotated[str | None, "The privilege that lets a user read the series; null if none does."]


@dataclass(frozen=True)
class AccessPage:
    """All rules of an owner."""

    items: Annotated[list[AccessView], "The rules."]
    next: Annotated[str | None, "Always null: all rules fit into one page."]


@router.post(
    "/v1/jobs/{job}/outputs/{output}/publish",
    "Publish an output",
    SUBMIT,
    status=201,
    also=[Also(200, "it was published already, with the same bytes", PublishedView)],
)
def publish_output(on: System, user: Caller, job: str, output: str, ask: PublishOutput) -> PublishedView | Reply:
    found = jobs.find(on, user, job)
    row, is_news = published.publish(on, user, found, output, ask.series, ask.version, ask.name)
    return show(row) if is_news else Reply(200, show(row))


@router.get("/v1/published", "List what an owner published, by name", READ)
def list_published(
    on: System,
    user: Caller,
    *,
    owner: Annotated[str, "The owner. By default you."] = "",
    series: Annotated[str, "Only this series."] = "",
    version: Annotated[str, "Only this version of the series."] = "",
    limit: Limit = 50,
    page: Annotated[str, "The page to show: `next` of the page before it. By default the first."] = "",
) -> PublishedPage:
    found, after = published.list_published(on, user, owner or user.name, series, version, limit, page)
    return PublishedPage([show(row) for row in found], after)


@router.get(f"/v1/published/{FILE}", "Show a published file", READ)
def get_published(on: System, user: Caller, owner: str, series: str, version: str, name: str) -> PublishedView:
    return show(published.find(on, user, owner, series, version, name))


@router.delete(f"/v1/published/{FILE}", "Withdraw a published file", SUBMIT)
def unpublish(on: System, user: Caller, owner: str, series: str, version: str, name: str) -> PublishedView:
    return show(published.unpublish(on, user, owner, series, version, name))


@router.post(f"/v1/published/{FILE}/sign", "Get a URL to download a published file", READ)
def sign_published(
    on: System,
    user: Caller,
    owner: str,
    series: str,
    version: str,
    name: str,
    ask: SignOutput = AN_HOUR,
) -> SignedOutput:
    row = published.find(on, user, owner, series, version, name)
    return published.sign(on, row, ask.expires_in)


@router.get("/v1/series/{owner}", "Show who may read an owner's series", READ)
def list_access(on: System, user: Caller, owner: str) -> AccessPage:
    return AccessPage([show_access(row) for row in published.show_access(on, user, owner)], None)


@router.put("/v1/series/{owner}", "Set who may read a series", SUBMIT)
def set_access(on: System, user: Caller, owner: str, ask: SetAccess) -> AccessPage:
    access = Access(ask.access) if ask.access else None
    published.set_access(on, user, owner, ask.series, access, ask.privilege)
    return list_access(on, user, owner)


@router.get(f"/v1/public/file/{FILE}", "Download a published file, by a redirect", READ, status=302, also=[UNCHANGED])
def read_published(
    on: System,
    user: Anybody,
    owner: str,
    series: str,
    version: str,
    name: str,
    *,
    if_none_match: IfNoneMatch = None,
) -> Response[Any]:
    row = published.find(on, user, owner, series, version, name)
    location = {"location": published.sign(on, row, outputs.SIGNED_SECONDS_MOST).url}
    return _unchanged(row, if_none_match) or Response(302, "text/plain", "", _headers(row) | location)


@router.declare("HEAD", f"/v1/public/file/{FILE}", "Check whether a file is published", READ, also=[UNCHANGED])
def look_at_published(
    on: System,
    user: Anybody,
    owner: str,
    series: str,
    version: str,
    name: str,
    *,
    if_none_match: IfNoneMatch = None,
) -> Response[Any]:
    """Answered here, and not by a redirect: a signed URL is for GET alone."""
    row = published.find(on, user, owner, series, version, name)
    published.sign(on, row, outputs.SIGNED_SECONDS_MOST)
    size = {"content-length": str(row.size)}
    return _unchanged(row, if_none_match) or Response(200, "application/octet-stream", "", _headers(row) | size)


def _headers(row: Published) -> dict[str, str]:
    named = f'attachment; filename="{row.name}"'
    return {"etag": f'"{row.content.etag}"', "cache-control": "no-cache", "content-disposition": named}


def _unchanged(row: Published, etags: str | None) -> Response[Any] | None:
    """The reply if the caller has the bytes already."""
    known = [each.strip().removeprefix("W/") for each in (etags or "")[: limits.ENV_BYTES].split(",")]
    headers = _headers(row)
    return Response(304, headers=headers) if headers["etag"] in known else None


def show(row: Published) -> PublishedView:
    """A published file."""
    return view(
        PublishedView,
        row,
        owner=row.of,
        version=row.version_name,
        url=f"/v1/public/file/{row.full}",
        withdrawn_by=row.withdrawn_by or None,
        **digests(row.content),
    )


def show_access(row: Series) -> AccessView:
    """Who may read a series."""
    return view(AccessView, row, series=row.name, privilege=row.privilege or None)
