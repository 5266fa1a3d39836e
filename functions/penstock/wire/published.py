"""Published files: names for good, and who may read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from penstock.wire.shapes import Bound


@dataclass(frozen=True)
class PublishOutput:
    """What an output is to be published as."""

    series: Annotated[str, Bound(most=100)]
    version: Annotated[str, Bound(most=100)]
    name: Annotated[str, Bound(most=100)]


@dataclass(frozen=True)
class PublishedView:
    """A published file. `size` in bytes, `sha256` in hex; `path` is what its `job` called it, `by` is who published it.

    `url` is where it is read, relative to the service. `withdrawn` is since when it is not published any more.
    """

    owner: str
    series: str
    version: str
    name: str
    size: int
    sha256: str
    url: str
    path: str
    job: str
    by: str
    time: str
    withdrawn: str | None
    withdrawn_by: str | None


@dataclass(frozen=True)
class PublishedPage:
    """Some published files, by name. `next` is the page to ask for next, or null."""

    items: list[PublishedView]
    next: str | None


@dataclass(frozen=True)
class SetAccess:
    """Who may read a series, `*` for all of which nothing else is said; without `access` it is as all the others.

    `public` is anybody, `private` who may see the owner's jobs; `privilege` is these, and who has the one named.
    """

    series: Annotated[str, Bound(most=100)]
    access: Literal["public", "private", "privilege"] | None = None
    privilege: Annotated[str, Bound(most=192)] = ""


@dataclass(frozen=True)
class AccessView:
    """Who may read a series, `*` for all of which nothing else is said."""

    series: str
    access: Literal["public", "private", "privilege"]
    privilege: str | None


@dataclass(frozen=True)
class AccessPage:
    """All that an owner said of who may read; `next` is always null, for it fits into one page."""

    items: list[AccessView]
    next: str | None
