"""What the service answers where it refuses: RFC 9457 problem details, with a code for programs and a sentence."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response

from penstock.kernel.errors import Moved, Newer, Refused, Throttled, Unreached
from penstock.kernel.frozen import dataclass

log = Logger(child=True)

TITLES = {
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 409: "Conflict", 410: "Gone",
    412: "Precondition Failed", 413: "Content Too Large", 422: "Unprocessable Content", 429: "Too Many Requests",
    500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip


RETRY_AFTER = 1
"""After how many seconds a client should try again when rows would not stop changing."""

FAULTS = 100
"""How many errors a refusal lists at most."""


@dataclass(frozen=True)
class FaultView:
    """One thing that is wrong with a request."""

    message: Annotated[str, "What is wrong."]
    where: Annotated[str | None, "The key in the body, as a path like `resources[0]`; null if it is not one key."] = (
        None
    )
    file: Annotated[str | None, "The file that the error is in: a job file or a site's configuration."] = None
    line: Annotated[int | None, "The line in that file, or in the body. Lines count from 1."] = None
    column: Annotated[int | None, "The column in that line. Columns count from 1."] = None
    hint: Annotated[str | None, "What was probably meant, or what is possible."] = None


@dataclass(frozen=True)
class ProblemView:
    """A refusal, as RFC 9457 describes it."""

    type: Annotated[str, "Always `about:blank`."]
    title: Annotated[str, "The HTTP status in words."]
    status: Annotated[int, "The HTTP status."]
    code: Annotated[str, "A stable code for programs, such as `job-not-found`."]
    detail: Annotated[str, "What is wrong, in a sentence."]
    errors: Annotated[list[FaultView], "What is wrong in detail; at most 100 errors."]


def problem(refused: Refused) -> Response[Any]:
    """A refusal as RFC 9457 problem details."""
    errors = [FaultView(**asdict(fault)) for fault in refused.faults[:FAULTS]]
    title = TITLES.get(refused.status, "Refused")
    view = ProblemView("about:blank", title, refused.status, refused.code, refused.detail, errors)
    headers = {"www-authenticate": "Bearer"} if refused.status == 401 else {}
    if refused.status in (429, 503):
        headers["retry-after"] = str(RETRY_AFTER)
    return Response(refused.status, "application/problem+json", json.dumps(asdict(view)), headers)


def busy(_: Moved) -> Response[Any]:
    """Rows would not stop changing."""
    return problem(Refused(429, "busy", "too many changed the same thing at once; try again in a moment"))


def throttled(_: Throttled) -> Response[Any]:
    """The store takes no more at the moment."""
    return problem(Refused(503, "throttled", "the service has too much to do at the moment; try again in a moment"))


def newer(newer: Newer) -> Response[Any]:
    """What a newer release wrote is met during its deployment."""
    log.warning("a request met what a newer release wrote", extra={"why": str(newer)})
    return problem(
        Refused(503, "newer", "a newer release of the service wrote this; try again when its deployment has ended")
    )


def unreached(unreached: Unreached) -> Response[Any]:
    """A service that is needed does not answer."""
    log.warning("a request could not be done now", extra={"why": str(unreached)})
    return problem(Refused(503, "unreached", "a service that this needs does not answer; try again in a moment"))


def no_route(_: Exception) -> Response[Any]:
    """There is no such path."""
    return problem(Refused(404, "not-found", "there is nothing at this path; GET /v1/openapi.json lists what there is"))
