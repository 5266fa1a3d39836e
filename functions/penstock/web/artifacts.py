"""Artifacts over HTTP: parse, call, reply."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from penstock import bootstrap, wire
from penstock.domain.artifacts import artifacts
from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.artifacts.why import Kept
from penstock.domain.users.users import User, is_name
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.usecases.artifacts import explain, pins
from penstock.usecases.users import users
from penstock.web.entry import body, page_after, reply, whole_number
from penstock.web.times import stamp

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]


def caller() -> User:
    """Whose request this is."""
    return users.authenticate(bootstrap.aws(), router.current_event.headers.get("authorization"))


def _find(artifact: str) -> Artifact:
    return pins.find(bootstrap.aws(), caller(), artifact)


@router.get("/v1/artifacts")
def list_artifacts() -> Response[Any]:
    user, query = caller(), router.current_event.query_string_parameters or {}
    by = query.get("by", "")
    if by and not is_name(by):
        raise Refused(400, "bad-request", "by is the name of a user")
    limit = whole_number(router, "limit", 50, 1, limits.PAGE)
    found, after = explain.list_artifacts(bootstrap.aws(), user, by, limit, page_after(router))
    return reply(wire.ArtifactPage([_view(one) for one in found], after))


@router.get("/v1/artifacts-to-go")
def list_artifacts_to_go() -> Response[Any]:
    users.require_admin(caller())
    within = whole_number(router, "within", 0, 0, artifacts.MOST)
    found = explain.dry_run(bootstrap.aws(), within)
    items = [wire.GoingView(one.id, one.path, one.size, str(stamp(one.at)), one.why) for one in found.going]
    return reply(wire.ForeseenView(items, found.is_whole))


@router.get("/v1/artifacts/<artifact>")
def get_artifact(artifact: str) -> Response[Any]:
    return reply(_view(explain.why(bootstrap.aws(), _find(artifact))))


@router.get("/v1/artifacts/<artifact>/why")
def explain_artifact(artifact: str) -> Response[Any]:
    found = explain.why(bootstrap.aws(), _find(artifact))
    keepers = [wire.KeeperView(one.owner, one.why, stamp(one.until), one.frees) for one in found.keepers]
    return reply(wire.ArtifactWhy(_view(found), found.summary, keepers))


@router.put("/v1/artifacts/<artifact>/pin")
def pin_artifact(artifact: str) -> Response[Any]:
    on, user, ask = bootstrap.aws(), caller(), body(router, wire.PinArtifact)
    return reply(_view(explain.why(on, pins.pin(on, user, artifact, ask.reason, ask.for_))))


@router.delete("/v1/artifacts/<artifact>/pin")
def unpin_artifact(artifact: str) -> Response[Any]:
    user, query = caller(), router.current_event.query_string_parameters or {}
    pins.unpin(bootstrap.aws(), user, artifact, query.get("by", user.name)[: limits.NAME_CHARS])
    return reply({})


@router.post("/v1/artifacts/<artifact>/sign")
def sign_artifact(artifact: str) -> Response[Any]:
    found = _find(artifact)
    ask = body(router, wire.SignOutput) if router.current_event.body else wire.SignOutput()
    return reply(wire.SignedOutput(**explain.sign(bootstrap.aws(), found, ask.expires_in)))


def _view(found: Kept) -> wire.ArtifactView:
    row, volume = found.artifact, found.volume
    state: Any = "none" if volume is None else "lost" if volume.lost else volume.state.value
    return wire.ArtifactView(
        id=row.id,
        path=row.path,
        size=row.size,
        sha256=row.sha256,
        by=row.by,
        time=str(stamp(row.time)),
        job=row.job or None,
        owners=list(row.owners),
        state=state,
        until=stamp(found.until),
    )
