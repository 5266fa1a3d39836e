"""Users: who they are, what they may do, whether they may act, and what operators did."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal

from penstock.api import tokens
from penstock.api.app import Caller, Limit, Operator, Page, Pattern, Router, UlidPage
from penstock.api.shapes import NextPage, view
from penstock.api.tokens import TokenView
from penstock.domain.users.audit import Deed, Entry, Wanted
from penstock.domain.users.users import ANY, READ, USERS, User
from penstock.kernel.frozen import dataclass
from penstock.system import System
from penstock.usecases.users import audit, lifecycle, privileges, users
from penstock.usecases.users import tokens as tokens_of

router = Router("users")

PAGE = 100

_WHO = Pattern(r"[^\n]{0,200}", "who is the name of a user or a repository, in one line of at most 200 characters")
_WHAT = Pattern(
    r"[^\n]{0,200}",
    "what is the beginning of what an entry is about, in one line of at most 200 characters: `pool resource/bench`, "
    "`user ada`, `job `, `worker `, `resource `…",
)


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
    state: Annotated[Literal["active", "disabled", "removed"], "Whether the user may act."]
    former: Annotated[list[str], "Former names of the user, which lead to the present one."]


@dataclass(frozen=True)
class WhoView(UserView):
    """The user whose token this is, and the token."""

    token: Annotated[TokenView, "The token that was shown."]


@dataclass(frozen=True)
class DisableUser:
    """A request to disable a user."""

    leases: Annotated[Literal["end", "keep"], "Whether jobs that run are ended too. Jobs that wait always are."] = (
        "keep"
    )


@dataclass(frozen=True)
class RenameUser:
    """A request to rename a user."""

    name: Annotated[str, "The new name."]


@dataclass(frozen=True)
class DisabledView(UserView):
    """A disabled user, and what still runs of theirs."""

    is_done: Annotated[bool, "Whether all their jobs were looked at. If not, the sweep goes on with it."]
    running: Annotated[list[str], "Ids of jobs that still run, or end at the moment; at most 100."]


@dataclass(frozen=True)
class RemovedView(UserView):
    """A removed user, and what is left of theirs."""

    left: Annotated[list[str], "What is left, and what becomes of it, a sentence each."]


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


KEEP = DisableUser()


@router.get("/v1/whoami", "Show whose token this is, and what it is good for", ANY)
def who_am_i(on: System, user: Caller) -> WhoView:
    return view(WhoView, user, token=tokens.show(user.token, on.world.now()), **_state(user))


@router.get("/v1/users", "List the users", READ)
def list_users(on: System, user: Operator, *, page: Page = "") -> UserPage:
    found = on.store.listed("users", User, limit=PAGE, after=page)
    return UserPage([show(each) for each in found], found[-1].name if len(found) == PAGE else None)


@router.post("/v1/users", "Create a user", USERS, status=201)
def create_user(on: System, user: Operator, ask: NewUser) -> UserView:
    tokens_of.check_gives(user, ask.privileges)
    return show(users.create(on, ask.name, ask.privileges, user.name))


@router.put("/v1/users/{name}/privileges/{privilege}", "Grant a privilege to a user", USERS)
def grant(on: System, user: Operator, name: str, privilege: str) -> UserView:
    tokens_of.check_gives(user, [privilege])
    return show(users.change_privilege(on, name, privilege, grant=True, by=user.name))


@router.delete("/v1/users/{name}/privileges/{privilege}", "Revoke a privilege from a user", USERS)
def revoke(
    on: System,
    user: Operator,
    name: str,
    privilege: str,
    *,
    now: Annotated[bool, "Whether to also end jobs that hold something under the privilege."] = False,
) -> RevokedView:
    found, ended = privileges.revoke(on, user, name, privilege, at_once=now)
    return view(RevokedView, found, stopped=ended.stopped, holding=ended.holding, **_state(found))


@router.post("/v1/users/{name}/disable", "Refuse all tokens of a user, and end the jobs that wait", USERS)
def disable_user(on: System, user: Operator, name: str, ask: DisableUser = KEEP) -> DisabledView:
    found = lifecycle.disable(on, user, name, ends_live=ask.leases == "end")
    todo = found.withdrawal
    is_done = todo is not None and todo.is_last and not todo.names
    return view(DisabledView, found, is_done=is_done, running=todo.live if todo else (), **_state(found))


@router.post("/v1/users/{name}/enable", "Let a disabled user act again", USERS)
def enable_user(on: System, user: Operator, name: str) -> UserView:
    return show(lifecycle.enable(on, user.name, name))


@router.post("/v1/users/{name}/rename", "Give a user another name", USERS)
def rename_user(on: System, user: Operator, name: str, ask: RenameUser) -> UserView:
    return show(lifecycle.rename(on, user.name, name, ask.name))


@router.delete("/v1/users/{name}", "Remove a disabled user", USERS)
def remove_user(on: System, user: Operator, name: str) -> RemovedView:
    found = lifecycle.remove(on, user.name, name)
    return view(RemovedView, found, left=lifecycle.what_is_left(on, found), **_state(found))


@router.get("/v1/audit", "List what operators did, newest first", READ)
def list_audit(
    on: System,
    user: Operator,
    *,
    since: Annotated[datetime | None, "Only entries since this time."] = None,
    until: Annotated[datetime | None, "Only entries before this time."] = None,
    who: Annotated[str, _WHO, "Only entries of this operator."] = "",
    did: Annotated[Deed | None, "Only entries about this action."] = None,
    what: Annotated[str, _WHAT, "Only entries whose `what` begins so, like `pool resource/` or `user ada`."] = "",
    limit: Limit = 100,
    page: UlidPage = "",
) -> AuditPage:
    wanted = Wanted(who, did or "", what, since, until)
    found, following = audit.list_entries(on, wanted, limit, page)
    return AuditPage([show_audit(entry) for entry in found], following)


def show(row: User) -> UserView:
    """A user."""
    return view(UserView, row, **_state(row))


def _state(row: User) -> dict[str, object]:
    return {"state": row.status.standing if row.status else "active"}


def show_audit(entry: Entry) -> AuditView:
    """Something that an operator did."""
    return view(AuditView, entry, time=entry.at)
