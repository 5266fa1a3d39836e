"""Users: who they are, what they may do, their tokens, and what operators did."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Annotated

from penstock.api.app import Caller, Limit, Operator, Page, Router, UlidPage
from penstock.api.shapes import NextPage, view
from penstock.domain.users.audit import Entry
from penstock.domain.users.users import User
from penstock.kernel.frozen import dataclass
from penstock.system import System
from penstock.usecases.users import audit, privileges, users

router = Router("users")

PAGE = 100


@dataclass(frozen=True)
class NewUser:
    """A user to create."""

    name: Annotated[str, "The user's name."]
    privileges: Annotated[list[str], "What the user may do."] = field(default_factory=list)


@dataclass(frozen=True)
class UserView:
    """A user."""

    name: Annotated[str, "The user's name."]
    privileges: Annotated[list[str], "What the user may do."]
    created: Annotated[str, "When the user was created, as RFC 3339."]


@dataclass(frozen=True)
class RevokedView(UserView):
    """A user who lost a privilege, and the jobs that used it."""

    stopped: Annotated[list[str], "Ids of jobs that waited under the privilege, and were ended."]
    holding: Annotated[list[str], "Ids of jobs that hold something under the privilege, and go on."]


@dataclass(frozen=True)
class UserPage:
    """Some users."""

    items: Annotated[list[UserView], "The users."]
    next: NextPage


@dataclass(frozen=True)
class AuditView:
    """Something that an operator did."""

    id: Annotated[str, "The entry's id."]
    time: Annotated[str, "When, as RFC 3339."]
    by: Annotated[str, "The operator."]
    did: Annotated[str, "What the operator did."]
    what: Annotated[str, "To what."]
    detail: Annotated[str, "How, or what changed."]


@dataclass(frozen=True)
class AuditPage:
    """Some entries of the audit log, newest first."""

    items: Annotated[list[AuditView], "The entries."]
    next: NextPage


@dataclass(frozen=True)
class NewToken:
    """A token to create."""

    expires_in: Annotated[int | None, "After how many seconds it expires. By default never."] = None


@dataclass(frozen=True)
class TokenView:
    """A new token."""

    token: Annotated[str, "The token. It is shown this once."]
    expires: Annotated[str | None, "When it expires, as RFC 3339; null for never."]


FOR_EVER = NewToken()


@router.get("/v1/whoami", "Show whose token this is")
def who_am_i(on: System, user: Caller) -> UserView:
    return show(user)


@router.get("/v1/users", "List the users")
def list_users(on: System, user: Operator, *, page: Page = "") -> UserPage:
    found = on.store.listed("users", User, limit=PAGE, after=page)
    return UserPage([show(each) for each in found], found[-1].name if len(found) == PAGE else None)


@router.post("/v1/users", "Create a user", status=201)
def create_user(on: System, user: Operator, ask: NewUser) -> UserView:
    return show(users.create(on, ask.name, ask.privileges, user.name))


@router.put("/v1/users/{name}/privileges/{privilege}", "Grant a privilege to a user")
def grant(on: System, user: Operator, name: str, privilege: str) -> UserView:
    return show(users.change_privilege(on, name, privilege, grant=True, by=user.name))


@router.delete("/v1/users/{name}/privileges/{privilege}", "Revoke a privilege from a user")
def revoke(
    on: System,
    user: Operator,
    name: str,
    privilege: str,
    *,
    now: Annotated[bool, "Whether to also end jobs that hold something under the privilege."] = False,
) -> RevokedView:
    found, ended = privileges.revoke(on, user, name, privilege, at_once=now)
    return view(RevokedView, found, stopped=ended.stopped, holding=ended.holding)


@router.get("/v1/audit", "List what operators did, newest first")
def list_audit(
    on: System,
    user: Operator,
    *,
    since: Annotated[datetime | None, "Only entries since this time."] = None,
    who: Annotated[str, "Only entries of this operator."] = "",
    limit: Limit = 100,
    page: UlidPage = "",
) -> AuditPage:
    found, following = audit.list_entries(on, who, since, limit, page)
    return AuditPage([show_audit(entry) for entry in found], following)


@router.post("/v1/users/{name}/tokens", "Create a token for yourself, or as an operator for any user", status=201)
def create_token(on: System, user: Caller, name: str, ask: NewToken = FOR_EVER) -> TokenView:
    if user.name != name:
        users.require_admin(user)
    secret, token = users.issue_token(on, name, ask.expires_in, user.name)
    return view(TokenView, token, token=secret)


def show(row: User) -> UserView:
    """A user."""
    return view(UserView, row)


def show_audit(entry: Entry) -> AuditView:
    """Something that an operator did."""
    return view(AuditView, entry, time=entry.at)
