"""The site and its users."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from penstock.wire.shapes import Bound


@dataclass(frozen=True)
class SiteView:
    """The site's configuration."""

    toml: str | None
    applied_at: str | None
    applied_by: str | None


@dataclass(frozen=True)
class ApplySite:
    """A site's configuration to check or apply."""

    toml: str
    path: Annotated[str, Bound(most=1024)] = "site.toml"


@dataclass(frozen=True)
class SiteChanges:
    """What applying changed, or would change, a sentence each."""

    changes: list[str]


@dataclass(frozen=True)
class Entry:
    """One target, resource type, factory or well of the site."""

    name: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class OptionView:
    """One option that a job may pass to a well; any of its kind when nothing is listed as allowed."""

    name: str
    kind: str
    meaning: str
    default: Any
    allowed: list[Any]


@dataclass(frozen=True)
class ResourceTypeView:
    """A resource type, and the options that jobs may pass; null when its well's driver does not say."""

    name: str
    settings: dict[str, Any]
    options: list[OptionView] | None


@dataclass(frozen=True)
class EntryPage:
    """All of one sort."""

    items: list[Entry]
    next: str | None


@dataclass(frozen=True)
class NewUser:
    """A user to be created."""

    name: str
    privileges: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class UserView:
    """A user and what they may do."""

    name: str
    privileges: list[str]
    created: str


@dataclass(frozen=True)
class RevokedView:
    """A user from whom a privilege was taken; the jobs that waited under it and were ended, and those that hold on."""

    name: str
    privileges: list[str]
    created: str
    stopped: list[str]
    holding: list[str]


@dataclass(frozen=True)
class AuditView:
    """One thing that was done: when, by whom, what, to what, and how."""

    id: str
    time: str
    by: str
    did: str
    what: str
    detail: str


@dataclass(frozen=True)
class AuditPage:
    """What was done, newest first."""

    items: list[AuditView]
    next: str | None


@dataclass(frozen=True)
class UserPage:
    """All users."""

    items: list[UserView]
    next: str | None


@dataclass(frozen=True)
class NewToken:
    """A token to be made; `expires_in` in seconds, never when absent."""

    expires_in: int | None = None


@dataclass(frozen=True)
class TokenView:
    """A token, shown this once."""

    token: str
    expires: str | None
