"""Artifacts: files that are kept, why, and until when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from penstock.api.app import Caller, FilePage, Limit, Operator, Router
from penstock.api.files import AN_HOUR, SignOutput
from penstock.api.shapes import JobName, NextPage, digests, view
from penstock.domain.artifacts import artifacts
from penstock.domain.artifacts.artifacts import ArtifactState
from penstock.domain.artifacts.content import Content
from penstock.domain.artifacts.why import Explanation
from penstock.domain.replies import COMPOSITE, Empty, SignedOutput
from penstock.domain.users.users import READ, SUBMIT, is_name
from penstock.kernel import limits
from penstock.kernel.errors import Refused
from penstock.kernel.frozen import dataclass
from penstock.kernel.limits import Bound
from penstock.system import System
from penstock.usecases.artifacts import explain, pins
from penstock.usecases.jobs.names import Named, name_of, names_of

router = Router("artifacts")


@dataclass(frozen=True)
class ArtifactView:
    """A file that is kept."""

    id: Annotated[str, "Its id."]
    path: Annotated[str, "Its path in the job that produced it, or what it is."]
    size: Annotated[int, "Its size in bytes."]
    sha256: Annotated[str | None, "Its SHA-256 in hex, as the store verified it; null for a file in parts."]
    composite: Annotated[str | None, COMPOSITE]
    by: Annotated[str, "The user or repository that it belongs to."]
    time: Annotated[str, "When its upload began, as RFC 3339."]
    job: Annotated[str, "The id of the job that it was made for."]
    job_name: JobName
    owners: Annotated[list[str], "What keeps it, such as `job/…` or `pin/…`. It is deleted when the last lets it go."]
    state: Annotated[Literal["creating", "created", "lost"], "How its bytes are: being uploaded, stored, or lost."]
    until: Annotated[str | None, "When it is deleted if nothing changes, as RFC 3339; null if unknown."]


@dataclass(frozen=True)
class ArtifactPage:
    """Some artifacts, those of the newest job first."""

    items: Annotated[list[ArtifactView], "The artifacts."]
    next: NextPage


@dataclass(frozen=True)
class KeeperView:
    """What keeps an artifact."""

    owner: Annotated[str, "Its name, such as `job/…` or `pin/…`."]
    why: Annotated[str, "Why it keeps the artifact."]
    until: Annotated[str | None, "Until when, as RFC 3339; null if unknown."]
    frees: Annotated[str, "What would end that sooner."]


@dataclass(frozen=True)
class ArtifactWhy:
    """Why an artifact is kept."""

    artifact: Annotated[ArtifactView, "The artifact."]
    summary: Annotated[str, "The answer in a sentence."]
    keepers: Annotated[list[KeeperView], "Everything that keeps it. It is deleted when the last lets it go."]


@dataclass(frozen=True)
class PinArtifact:
    """A request to keep an artifact."""

    reason: Annotated[str, Bound(most=artifacts.REASON_CHARS), "Why, for others to read."]
    for_: Annotated[
        int | None,
        Bound(least=1, most=artifacts.MAX_PIN_SECONDS),
        "For how many seconds. By default until you remove the pin.",
    ] = None


@dataclass(frozen=True)
class GoingView:
    """An artifact that the sweep would delete if nothing changes."""

    id: Annotated[str, "Its id."]
    path: Annotated[str, "Its path in the job that produced it, or what it is."]
    size: Annotated[int, "Its size in bytes."]
    at: Annotated[str, "When, as RFC 3339."]
    why: Annotated[str, "Why."]


@dataclass(frozen=True)
class ForeseenView:
    """What the sweep would delete."""

    items: Annotated[list[GoingView], "The artifacts."]
    is_whole: Annotated[bool, "Whether these are all; false if there are more than one reply holds."]


@router.get("/v1/artifacts", "List your artifacts, those of your newest job first", READ)
def list_artifacts(
    on: System,
    user: Caller,
    *,
    by: Annotated[str, "Only artifacts of this user or repository; others' are for operators."] = "",
    limit: Limit = 50,
    page: FilePage = "",
) -> ArtifactPage:
    if by and not is_name(by):
        raise Refused(400, "bad-request", "by is the name of a user")
    found, after = explain.list_artifacts(on, user, by, limit, page)
    names = names_of(on, [one.artifact.job for one in found])
    return ArtifactPage([show(one, names) for one in found], after)


@router.get("/v1/artifacts-to-go", "List what the sweep would delete within some seconds", READ)
def list_artifacts_to_go(
    on: System,
    user: Operator,
    *,
    within: Annotated[int, Bound(most=artifacts.MAX_PIN_SECONDS), "Within how many seconds."] = 0,
) -> ForeseenView:
    found = explain.dry_run(on, within)
    return view(ForeseenView, found, items=found.going)


@router.get("/v1/artifacts/{artifact}", "Show an artifact", READ)
def get_artifact(on: System, user: Caller, artifact: str) -> ArtifactView:
    return _show_one(on, explain.why(on, pins.find(on, user, artifact)))


@router.get("/v1/artifacts/{artifact}/why", "Show why an artifact is kept", READ)
def explain_artifact(on: System, user: Caller, artifact: str) -> ArtifactWhy:
    found = explain.why(on, pins.find(on, user, artifact))
    return view(ArtifactWhy, found, artifact=_show_one(on, found))


@router.put("/v1/artifacts/{artifact}/pin", "Keep an artifact, by a pin", SUBMIT)
def pin_artifact(on: System, user: Caller, artifact: str, ask: PinArtifact) -> ArtifactView:
    return _show_one(on, explain.why(on, pins.pin(on, user, artifact, ask.reason, ask.for_)))


@router.delete("/v1/artifacts/{artifact}/pin", "Remove a pin from an artifact", SUBMIT)
def unpin_artifact(
    on: System,
    user: Caller,
    artifact: str,
    *,
    by: Annotated[str | None, "The user whose pin it is. By default you."] = None,
) -> Empty:
    pins.unpin(on, user, artifact, (user.name if by is None else by)[: limits.NAME_CHARS])
    return Empty()


@router.post("/v1/artifacts/{artifact}/sign", "Get a URL to download an artifact", READ)
def sign_artifact(on: System, user: Caller, artifact: str, ask: SignOutput = AN_HOUR) -> SignedOutput:
    return explain.sign(on, pins.find(on, user, artifact), ask.expires_in)


def _show_one(on: System, found: Explanation) -> ArtifactView:
    return show(found, names_of(on, [found.artifact.job]))


def show(found: Explanation, names: Mapping[str | None, Named]) -> ArtifactView:
    """An artifact, and until when it is kept; with the name of its job, of some names."""
    row = found.artifact
    state = "lost" if row.lost else row.state
    content = Content(0, "") if row.state is ArtifactState.CREATING else row.content
    return view(ArtifactView, row, name_of(names, row.job), state=state, until=found.until, **digests(content))
