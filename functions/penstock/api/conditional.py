"""Replies to GET that the caller has already are answered 304, without a body.

Every reply has a tag. It is the hash of the body, which saves the bytes, and not the reads that the body was made of.
Where a row's version says that nothing has changed, the tag is made of that: an unchanged page then costs the read of
that row. The declaration of a route says how: `tag`. docs/decisions/0090-conditional-requests.md
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from aws_lambda_powertools.event_handler import Response

from penstock.kernel.frozen import dataclass

HEADER = "If-None-Match"

CACHED = "private, no-cache"
"""A browser may keep what it got, for itself; and asks each time whether it is still good."""

TAGS_CHARS = 10_000
"""How much of a header with tags is read."""

JSON = "application/json"


def tags_in(header: str | None) -> frozenset[str]:
    """The tags of the copies that a caller has. Whoever compressed a reply on its way made its tag a weak one."""
    return frozenset(each.strip().removeprefix("W/") for each in (header or "")[:TAGS_CHARS].split(",") if each.strip())


def tag_of_versions(*parts: object) -> str:
    """A tag made of the versions of rows, and of the release that makes a body of them."""
    return f'"{_PREFIX}{_release()}-{"-".join(map(str, parts))}"'


_PREFIX = "v"


def has_versions(tags: Collection[str]) -> bool:
    """Whether one of some tags was made of versions, so that it is worth a read to make the tag anew."""
    return any(tag.startswith(f'"{_PREFIX}') for tag in tags)


@cache
def _release() -> str:
    """What replies of another shape have another of: the digest of the OpenAPI document."""
    return hashlib.sha256(Path(__file__).with_name("openapi.json").read_bytes()).hexdigest()[:12]


@dataclass(frozen=True)
class Tag:
    """How a route makes the tag of a reply from versions, with fewer reads than the reply, and the same refusals.

    `of` takes the arguments of the route, and gives "" for none. `cached`: how long others may keep the reply.
    """

    of: Callable[..., str]
    cached: str = CACHED


def answer(
    header: str | None, tag: Tag | None, given: Mapping[str, Any], call: Callable[[], Response[Any]]
) -> Response[Any]:
    """The answer to a GET with these tags in its header."""
    tags, cached = tags_in(header), tag.cached if tag else CACHED
    if tag and has_versions(tags):
        found = tag.of(**given)
        if found in tags:
            return _unchanged(found, cached)
    return _tagged(call(), tags, cached)


def _unchanged(tag: str, cached: str) -> Response[Any]:
    """The answer to a caller who has what there is. Gateways want a body, if an empty one."""
    return Response(304, body="", headers={"etag": tag, "cache-control": cached})


def _tagged(made: Response[Any], tags: Collection[str], cached: str) -> Response[Any]:
    """A reply with its tag, unless the caller has it. What is no JSON, or was not to be had, stays as it is."""
    if made.status_code != 200 or made.content_type != JSON:
        return made
    tag = str(made.headers.setdefault("etag", _hash(str(made.body))))
    made.headers.setdefault("cache-control", cached)
    return _unchanged(tag, cached) if tag in tags else made


def _hash(body: str) -> str:
    return f'"{hashlib.sha256(body.encode()).hexdigest()[:32]}"'
